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
  // Mixture of experts, by expert: gate and up (columns, hidden), down (hidden, columns); biases (experts, columns) and (experts,
  // hidden). A rank without columns holds none.
  WeightMatrix router;
  DeviceBuffer routerBias;
  std::vector<WeightMatrix> expertGate, expertUp, expertDown;
  DeviceBuffer expertGateBias, expertUpBias, expertDownBias;
  WeightMatrix sharedGate, sharedUp, sharedDown, sharedRouter;
  // Latent attention: q is the second projection of the queries where there is a first, qLatent. Keys and values come through
  // kvLatent (latent, hidden) and keyRope (rope, hidden); keyUp and valueUp by query head of this rank.
  WeightMatrix qLatent, kvLatent, keyRope;
  DeviceBuffer qLatentNorm, kvLatentNorm;
  std::vector<WeightMatrix> keyUp, valueUp;  // (latent, nope) and (value, latent)
  // A gate beside each query head, and a gated delta net; its rows lie as Backend::gatedDeltaNet reads them.
  WeightMatrix queryGate, linearQkv, linearZ, linearBeta, linearAlpha, linearOut;
  DeviceBuffer linearConvolution, linearTimeBias, linearDecay, linearNorm;
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
