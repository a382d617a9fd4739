// SPDX-License-Identifier: Apache-2.0
#include "core/memory/cuda_memory.h"

#include <algorithm>
#include <initializer_list>

namespace headroom {
namespace {

// Code of the module's kernels and of those of cuBLASLt that a model calls, which the driver loads at their first launch. An
// estimate: a driver says nothing of it before.
constexpr Bytes kLoadedCode = 48_MiB;
constexpr int64_t kBuffersOfRank = 64, kBuffersOfLayer = 64, kMatricesOfExpert = 3, kMatricesOfLatentHead = 2;
constexpr Bytes kOneShot = 832_KiB;  // small sums: two buffers of 256 KiB, a third for their trial, flags and turns

int64_t padded(int64_t bytes) { return roundUp(bytes, kCudaAlignment); }
// Rows of 16-bit numbers begin on 16 bytes, those of F32 as well.
int64_t halves(int64_t rows, int64_t columns) { return padded(2 * rows * roundUp(columns, 8)); }
int64_t floats(int64_t rows, int64_t columns) { return padded(4 * rows * roundUp(columns, 4)); }

// The widest input and output of the rank's matrices over `tokens` rows, the head aside.
struct Widths {
  int64_t in = 0, out = 0;
};
Widths widthsOf(const WorkspaceShape& shape) {
  const int64_t tokens = std::max<int64_t>(shape.tokens, 1);
  const int64_t experts = shape.expertScratch > 0 ? shape.expertScratch / (2 * tokens) - shape.hidden : 0;
  const int64_t latent = shape.latentWork / tokens;  // of the heads that are worked on at a time
  Widths widths;
  widths.in = std::max({shape.hidden, shape.q, shape.attention, shape.mlp, shape.linearValues, shape.queryLatent, shape.latentKey,
                        latent, experts});
  widths.out = std::max({shape.hidden, shape.q, shape.k, shape.v, shape.attention, shape.mlp, shape.queryGate, shape.queryLatent,
                         shape.latentKey, latent, shape.linearChannels, shape.linearValues, shape.experts, experts});
  return widths;
}

// The gated MLPs of kCudaExpertTokens tokens: where they are sorted to, and gate, up, result and rounded input of each choice.
int64_t expertBytes(const WorkspaceShape& shape) {
  if (shape.expertScratch == 0) return 0;
  const int64_t slots = std::min(shape.tokens, kCudaExpertTokens) * shape.expertsPerToken;
  const int64_t columns = shape.expertScratch / (2 * shape.tokens) - shape.hidden;
  return padded(4 * (shape.experts + 1)) + 2 * padded(4 * slots) + 2 * floats(slots, columns) + floats(slots, shape.hidden) +
         halves(slots, std::max(columns, shape.hidden));
}

}  // namespace

Bytes cudaScratchBytes(const ModelConfig& config, const WorkspaceShape& shape, const EngineLimits& limits) {
  if (!limits.cuda) return {};
  const Widths widths = widthsOf(shape);
  const bool exact = limits.computeDType == DType::F32;
  const int64_t rounded = exact ? 0 : halves(shape.tokens, widths.in);
  const int64_t results = std::max(shape.tokens * widths.out, shape.logitsRows * config.vocabSize);  // of one product
  const int64_t rows = std::max(widths.out, config.vocabSize);                                       // of the largest matrix
  const int64_t product = shape.tokens > kCudaSmallTokens ? cudaProductWorkspace(results).count() : 0;
  const int64_t unpacked =
      exact || shape.tokens <= kCudaSmallTokens
          ? 0
          : std::min(halves(rows, widths.in), std::max(kCudaUnpack.count() + halves(64, 8), halves(64, widths.in)));
  const int64_t partial =
      exact || shape.tokens <= kCudaSmallTokens
          ? 0
          : std::min(kCudaPartialSums.count(), padded(8 * 4 * std::min(shape.tokens, kCudaUnpackTokens) * rows));
  const int64_t linear = rounded + std::max(product + unpacked, partial);

  // A query and a result of each head, in parts of a context; two more numbers a head, and no head is narrower than two.
  const int64_t heads = std::max(shape.attention, shape.latentWork / std::max<int64_t>(shape.tokens, 1));
  const int64_t parts = std::min(kCudaAttentionParts.count(), padded(kCudaMostParts * 4 * shape.tokens * 2 * heads));
  const int64_t attention = (exact ? 0 : 2 * halves(shape.tokens, std::max(shape.q, heads))) + parts;

  const int64_t load = std::min(std::max(kCudaLoad.count(), padded(4 * widths.in)), floats(rows, widths.in));
  const int64_t delta = padded(4 * shape.tokens * shape.linearChannels);
  // How each row is sampled, and a part of the lists or at least one mask.
  const int64_t sampling = shape.vocabulary > 0 ? padded(shape.logitsRows * 64) + 2 * kCudaAlignment +
                                                      std::max(kCudaSampling.count(), padded(shape.vocabulary / 8 + 4)) +
                                                      padded(shape.logitsRows * 4)
                                                : 0;
  return Bytes(std::max({linear, attention, expertBytes(shape), load, delta, sampling}) + 8 * kCudaAlignment);
}

Bytes cudaMessageBytes(const ModelConfig& config, const EngineLimits& limits) {
  const int64_t elements =
      std::max(limits.maxNumBatchedTokens * config.hiddenSize, logitsRows(config, limits) * config.vocabSize);
  return Bytes(roundUp(4 * elements, int64_t{1} << 16));
}

CudaRuntime cudaRuntime(const ModelConfig& config, const RankSlice& rank, int tp, const EngineLimits& limits) {
  CudaRuntime runtime;
  if (!limits.cuda) return runtime;
  int64_t buffers = kBuffersOfRank, addresses = 0;
  for (int64_t index = rank.layers.begin; index < rank.layers.end; ++index) {
    const LayerSpec& layer = config.layers[static_cast<size_t>(index)];
    buffers += kBuffersOfLayer;
    if (layer.ffn == FfnKind::MixtureOfExperts) {
      buffers += kMatricesOfExpert * layer.moe.experts;
      addresses += kMatricesOfExpert * padded(8 * layer.moe.experts);
    }
    if (layer.attention == AttentionKind::Latent) {  // a few heads at a time have a list
      const int64_t heads = qHeadsOfLayer(config, rank, layer).size();
      buffers += kMatricesOfLatentHead * heads;
      addresses += kMatricesOfLatentHead * heads * kCudaAlignment;
    }
  }
  runtime.arena = Bytes(buffers * (kCudaAlignment - 1) + addresses);
  runtime.beside = kLoadedCode;
  // Sums of ranks: the module's own way has two buffers for peers and one to copy into. NCCL's buffers, whose size nothing tells
  // before, take their place where NCCL sums.
  if (tp > 1) runtime.beside += cudaMessageBytes(config, limits) * 3 + kOneShot;
  return runtime;
}

}  // namespace headroom
