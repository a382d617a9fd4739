// SPDX-License-Identifier: Apache-2.0
// Reads a rank's share of a checkpoint: slices by core's sliceOf, reads only the bytes of the slice, and hands them to the
// backend. Memory beside the weights themselves is one bounded buffer.
#pragma once

#include "core/memory/memory_plan.h"
#include "engine/device/backend.h"

#include <functional>
#include <vector>

namespace headroom::engine {

// Weights of one layer as a rank holds them. Matrices are (out, in); one with out 0 is not held. Vectors are F32.
struct LayerWeights {
  DeviceBuffer attentionNorm, attentionNormBias, postAttentionNorm, ffnNorm, ffnNormBias, postFfnNorm;
  WeightMatrix q, k, v, o;
  DeviceBuffer qBias, kBias, vBias, oBias, qNorm, kNorm, sinks;
  WeightMatrix gate, up, down;
  DeviceBuffer gateBias, upBias, downBias;
};

struct RankWeights {
  WeightMatrix embedding, head;  // head is not held when it is tied to the embedding
  DeviceBuffer finalNorm, finalNormBias, headBias;
  std::vector<LayerWeights> layers;  // of the rank's range
  DeviceBuffer ropeFrequencies;      // a GGUF's rope_freqs.weight
  std::vector<double> ropeDivisors;  // the same on the host: divides the inverse frequencies
  Bytes allocated;                   // of all matrices and vectors

  const WeightMatrix& projection() const { return head.out > 0 ? head : embedding; }
};

// Called after each read with the bytes of the file read so far and in all; false cancels.
using LoadProgress = std::function<bool(Bytes done, Bytes total)>;

// Errors name the tensor, what was found and what was expected; a file that ends early names the file.
Result<RankWeights> loadRankWeights(const ModelSource& model, const RankSlice& rank, int tp, DType computeDType, Backend& backend,
                                    const LoadProgress& progress);

}  // namespace headroom::engine
