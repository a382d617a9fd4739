// SPDX-License-Identifier: Apache-2.0
// Activations rounded to int8: blocks of 32 with one scale, max|x| / 127. A tile keeps a block of all its tokens together.
#pragma once

#include "engine/device/cpu/linear_kernels.h"

#include <cstdint>

namespace headroom::engine::cpu {

// 32 int8; the sum of them times -128 and times -8 (what unsigned weights owe: value + 128, value + 8), the sums of their first
// and last 16 times -4; the scale, scale * sum, and that of the first and last 16.
inline constexpr int64_t kInt8BlockBytes = 64;

template <int T>
struct Int8Block {
  explicit Int8Block(const void* block)
      : quants(static_cast<const int8_t*>(block)),
        minus128(reinterpret_cast<const int32_t*>(quants + 32 * T)),
        minus8(minus128 + T),
        scale(reinterpret_cast<const float*>(minus8 + T)),
        sum(scale + T),
        minus4{reinterpret_cast<const int32_t*>(sum + T), reinterpret_cast<const int32_t*>(sum + 2 * T)},
        halfSum{sum + 3 * T, sum + 4 * T} {}
  const int8_t* quants;  // (T, 32)
  const int32_t *minus128, *minus8;
  const float *scale, *sum;
  const int32_t* minus4[2];
  const float* halfSum[2];
};

inline int64_t int8TokenBytes(int64_t in) { return in / 32 * kInt8BlockBytes; }
// LinearFamily::fill of the int8 families; needs AVX2.
void fillInt8(const float* rows, int64_t stride, int64_t tokens, int64_t in, int width, void* tile);
// LinearFamily::lost of the int8 families; needs AVX2.
void lostByInt8(const float* row, int64_t in, float* rest);

}  // namespace headroom::engine::cpu
