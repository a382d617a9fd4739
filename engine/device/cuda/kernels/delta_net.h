// SPDX-License-Identifier: Apache-2.0
// Linear attention by gated delta nets (https://arxiv.org/abs/2412.06464), as Backend::gatedDeltaNet defines it. Its memory of a
// sequence is a slot of F32: the last kernel - 1 rows of the convolution's input (kernel - 1, channels), then the state
// (valueHeads, keyDim, valueDim).
#pragma once

#include "engine/device/cuda/kernels/kernel_types.h"

namespace headroom::engine::cuda {

struct DeltaNet {
  TensorView out, qkv, z, betaAlpha;  // (tokens, valueHeads * valueDim), (tokens, channels), as out, (tokens, 2 * valueHeads);
                                      // one activation type; out may be z
  float* state = nullptr;             // slots, one behind the other
  int64_t sequences = 0;
  const int *sequenceStart = nullptr, *contextLength = nullptr,
            *stateSlots = nullptr;  // as AttentionBatch has them, in device memory; a slot below 0: begins empty, nothing is kept
  int64_t keyHeads = 0, valueHeads = 0, keyDim = 0, valueDim = 0,
          kernel = 0;                                 // keyDim at most 128 (256), valueDim then at most 128 (32)
  const float* convolution = nullptr;                 // (channels, kernel), the newest token last
  const float *timeBias = nullptr, *decay = nullptr;  // (valueHeads)
  const float* norm = nullptr;                        // (valueDim)
  double epsilon = 1e-6;                              // of the norm; lengths of q and k have 1e-6 under their root
  void* scratch = nullptr;                            // deltaNetBytes(tokens, channels)

  int64_t channels() const { return 2 * keyHeads * keyDim + valueHeads * valueDim; }
};
void gatedDeltaNet(Stream stream, const DeltaNet& net);
int64_t deltaNetBytes(int64_t tokens, int64_t channels);

}  // namespace headroom::engine::cuda
