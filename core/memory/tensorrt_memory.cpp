// SPDX-License-Identifier: Apache-2.0
#include "core/memory/tensorrt_memory.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr int64_t kMiB = 1024 * 1024;

int64_t cacheElements(const LayerSpec& layer, int64_t kvHeads) {
  if (layer.sharesKv) return 0;
  switch (layer.attention) {
    case AttentionKind::Full:
    case AttentionKind::SlidingWindow:
    case AttentionKind::ChunkedWindow:
      return kvHeads * (layer.headDim + (layer.vHeadDim > 0 ? layer.vHeadDim : layer.headDim));
    case AttentionKind::Latent:
      return layer.latent.kvLoraRank + layer.latent.qkRopeHeadDim;
    default:
      return 0;
  }
}

}  // namespace

Bytes tensorRtFreeAtStart(const MachineGpu& gpu) { return gpu.leftByOthers() - Bytes(600 * kMiB); }

Bytes tensorRtActivations(const ModelConfig& config, Range layers, int tp, bool projects, int64_t batchedTokens,
                          int64_t sequences, int64_t elementBytes) {
  int64_t columns = 0;
  for (int64_t i = layers.begin; i < layers.end; ++i) {
    const LayerSpec& layer = config.layers[i];
    columns = std::max(columns, layer.ffn == FfnKind::Dense
                                    ? layer.intermediateSize
                                    : layer.moe.expertIntermediate * layer.moe.expertsPerToken + layer.moe.sharedIntermediate);
  }
  int64_t peak = batchedTokens * (3 * columns / tp + 6 * config.hiddenSize) * elementBytes;
  // Logits in 32 bits for every sequence of the batch, gathered on each rank.
  if (projects) peak = std::max(peak, sequences * config.vocabSize * 4 + batchedTokens * config.hiddenSize * elementBytes);
  return Bytes(peak);
}

Bytes tensorRtTokenBytes(const ModelConfig& config, Range layers, int tp, DType kvDType) {
  int64_t elements = 0;
  for (int64_t i = layers.begin; i < layers.end; ++i)
    elements += cacheElements(config.layers[i], std::max<int64_t>(1, ceilDiv(config.layers[i].kvHeads, tp)));
  const DTypeInfo& type = dtypeInfo(kvDType);
  return Bytes(elements * type.blockBytes / type.blockElements);
}

Bytes llamaCppUsable(const MachineGpu& gpu) { return gpu.leftByOthers() - Bytes((500 + 1024) * kMiB); }

Bytes llamaCppComputeBuffer(const ModelConfig& config, int64_t microBatch, int64_t columns, int64_t vocabulary) {
  // Logs: vocabulary + hidden + columns of a dense model where the output layer stands; 32-bit numbers.
  return Bytes(microBatch * (vocabulary + 2 * config.hiddenSize + columns) * 4);
}

LlamaCppCache llamaCppCache(const LayerSpec& layer, int64_t kvHeads, DType kvDType, int64_t tokens, int64_t sequences,
                            int64_t microBatch) {
  const DTypeInfo& type = dtypeInfo(kvDType);
  const Bytes token(cacheElements(layer, kvHeads) * type.blockBytes / type.blockElements);
  if (layer.attention != AttentionKind::SlidingWindow || layer.window <= 0) return {token, {}};
  // A window cache of its own, padded to 256 tokens.
  const int64_t kept = std::min(tokens * sequences, roundUp(layer.window * sequences + microBatch, 256));
  return {{}, token * kept};
}

}  // namespace headroom
