// SPDX-License-Identifier: Apache-2.0
// The list of activation buffers of a rank: one truth for the plan and for the engine.
#include "core/memory/workspace.h"

#include <algorithm>

namespace headroom {
namespace {

// Logits of one chunk stay below this, so that prompt logprobs of a long prompt do not need a (tokens, vocabulary) buffer.
constexpr Bytes kLogitsChunk = 32_MiB;
constexpr int64_t kLeastLogitsRows = 16;

bool hasAttention(const LayerSpec& layer) { return layer.qHeads > 0 && layer.attention != AttentionKind::None; }

}  // namespace

LayerShare layerShare(const ModelConfig& config, const LayerSpec& layer, const RankSlice& rank, int tp) {
  LayerShare share;
  if (hasAttention(layer)) {
    share.qHeads = qHeadsOfLayer(config, rank, layer);
    share.kvHeads = kvHeadsOfLayer(config, rank, layer);
  }
  if (layer.ffn == FfnKind::Dense) {
    TensorEntry up;  // asks the one place that slices
    up.role = TensorRole::Up;
    up.layer = static_cast<int>(rank.layers.begin);
    up.shape = {layer.intermediateSize, config.hiddenSize};
    up.splitDim = 0;
    up.segments = {{SplitUnit::MlpColumns, layer.intermediateSize, 1}};
    const std::optional<TensorSlice> slice = sliceOf(up, config, rank, tp);
    if (slice) share.mlpColumns = slice->dim < 0 ? Range{0, layer.intermediateSize} : slice->ranges.front();
  }
  return share;
}

int64_t WorkspaceShape::layerElements() const {
  const int64_t attentionElements = paddedElements(q) + paddedElements(k) + paddedElements(v) + paddedElements(attention);
  return std::max(attentionElements, paddedElements(mlp) * (gated ? 2 : 1));
}

WorkspaceShape workspaceShape(const ModelConfig& config, const RankSlice& rank, int tp, int pp, const EngineLimits& limits) {
  WorkspaceShape shape;
  shape.tokens = limits.maxNumBatchedTokens;
  shape.sequences = limits.maxNumSeqs;
  shape.blocksPerSequence = ceilDiv(limits.maxModelLen, limits.blockTokens);
  shape.hidden = config.hiddenSize;
  shape.gated = config.decoder.gatedMlp;
  for (int64_t i = rank.layers.begin; i < rank.layers.end; ++i) {
    const LayerSpec& layer = config.layers[i];
    const LayerShare share = layerShare(config, layer, rank, tp);
    if (hasAttention(layer)) {
      shape.q = std::max(shape.q, share.qHeads.size() * layer.headDim);
      shape.k = std::max(shape.k, share.kvHeads.size() * layer.headDim);
      shape.v = std::max(shape.v, share.kvHeads.size() * layer.vHeadDim);
      shape.attention = std::max(shape.attention, share.qHeads.size() * layer.vHeadDim);
      if (layer.rope && layer.localRope) shape.localRotaryDim = config.localRope.rotaryDim;
      if (layer.rope && !layer.localRope) shape.rotaryDim = config.rope.rotaryDim;
    }
    if (layer.ffn == FfnKind::Dense) shape.mlp = std::max(shape.mlp, share.mlpColumns.size());
  }
  if (rank.projects) {
    const int64_t fitting = kLogitsChunk / (config.vocabSize * 4_B);
    const int64_t wanted = std::max(limits.maxNumSeqs, kLeastLogitsRows);
    shape.logitsRows = std::min(std::clamp(fitting, kLeastLogitsRows, wanted), limits.maxNumBatchedTokens);
    shape.vocabulary = rank.tpRank == 0 ? config.vocabSize : 0;
    shape.localVocabulary = tp > 1 && rank.tpRank > 0 ? rank.vocabulary.size() : 0;
  }
  if (pp > 1 && rank.stage > 0) shape.pipelineRows = kPipelineDepth * shape.tokens;
  return shape;
}

std::vector<WorkspaceBuffer> workspaceBuffers(const ModelConfig& config, const RankSlice& rank, int tp, int pp,
                                              const EngineLimits& limits) {
  const WorkspaceShape shape = workspaceShape(config, rank, tp, pp, limits);
  std::vector<WorkspaceBuffer> buffers;
  auto list = [&](const char* name, int64_t elements, Bytes each) {
    if (elements > 0) buffers.push_back({name, each * elements});
  };
  constexpr Bytes kIndex = 4_B, kFloat = 4_B, kDouble = 8_B;
  list("token_ids", rank.embeds ? shape.tokens : 0, kIndex);
  list("positions", shape.tokens, kIndex);
  list("slots", shape.tokens, kIndex);
  list("sequence_start", shape.sequences + 1, kIndex);
  list("context_length", shape.sequences, kIndex);
  list("block_table", shape.sequences * shape.blocksPerSequence, kIndex);
  list("logits_rows", shape.logitsRows, kIndex);
  list("rope_frequencies", (shape.rotaryDim + shape.localRotaryDim) / 2, kDouble);
  list("rope_angles", shape.tokens * shape.rotaryDim, kFloat);
  list("local_rope_angles", shape.tokens * shape.localRotaryDim, kFloat);
  list("hidden", shape.tokens * shape.hidden, kFloat);
  list("normed", shape.tokens * shape.hidden, kFloat);
  list("branch", shape.tokens * shape.hidden, kFloat);
  list("layer", shape.layerElements(), kFloat);
  list("last_hidden", shape.logitsRows * shape.hidden, kFloat);
  list("logits", shape.logitsRows * shape.vocabulary, kFloat);
  list("local_logits", shape.logitsRows * shape.localVocabulary, kFloat);
  list("pipeline_in", shape.pipelineRows * shape.hidden, kFloat);
  return buffers;
}

Bytes activationBytes(const ModelConfig& config, const RankSlice& rank, int tp, int pp, const EngineLimits& limits) {
  Bytes sum;
  for (const WorkspaceBuffer& buffer : workspaceBuffers(config, rank, tp, pp, limits)) sum += buffer.bytes;
  return sum;
}

}  // namespace headroom
