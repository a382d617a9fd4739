// SPDX-License-Identifier: Apache-2.0
// Rotary positions and the writing of keys and values. Activations F32, F16 or BF16; caches F32, F16, BF16, F8E4M3 or F8E5M2
// (rounded to nearest, saturated).
#pragma once

#include "engine/device/cuda/kernels/kernel_types.h"

namespace headroom::engine::cuda {

// cosSin (tokens, rotaryDim) F32: cosines then sines of position * inverseFrequencies[i], times `factor`; computed in double.
// positions: I32 (1, tokens); inverseFrequencies: rotaryDim / 2 doubles in device memory.
void ropeAngles(Stream stream, TensorView cosSin, TensorView positions, const double* inverseFrequencies, double factor);
// Rotates the first rotaryDim elements of each head of x (tokens, heads * headDim) in place.
void applyRope(Stream stream, TensorView x, int64_t headDim, TensorView cosSin, KernelRope style);
// A cache without V (vHeadDim 0) takes k alone. k (tokens, kvHeads * headDim) and v (tokens, kvHeads * vHeadDim) into slots[t] =
// block * blockTokens + offset; slots: I32 (1, tokens); a token with a slot below 0 is not stored.
void storeKv(Stream stream, const KvCache& cache, TensorView k, TensorView v, TensorView slots);

// What lies between the projections and attention, in one reading: RMS norm of q's and k's heads (where a norm is given),
// rotation, and the store of k and v. q is written in place; k is not, only the cache holds what becomes of it.
struct RopeStore {
  TensorView q, k, v;  // (tokens, heads * headDim), (tokens, kvHeads * headDim), (tokens, kvHeads * vHeadDim)
  const float *qNorm = nullptr, *kNorm = nullptr;  // headDim floats each; null: none
  double epsilon = 1e-6, offset = 0.0;
  TensorView cosSin;  // rotaryDim columns; no data: no rotation
  KernelRope style = KernelRope::Neox;
  KvCache cache;
  TensorView slots;
};
void ropeAndStoreKv(Stream stream, const RopeStore& task);

}  // namespace headroom::engine::cuda
