// SPDX-License-Identifier: Apache-2.0
// BF16 products with AVX512_BF16 (vdpbf16ps): twice the rate of float products, activations rounded to BF16.
#include "engine/device/cpu/linear_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512bf16,prefer-vector-width=512")
namespace headroom::engine::cpu {
namespace {

constexpr int kWidths[] = {1, 2, 4, 8, 12};

inline __m512bh asBf16(__m512i bits) { return reinterpret_cast<__m512bh>(bits); }

// R groups at once; activations (in / 2, T) pairs, the odd last element paired with zero.
template <int R, int T>
void runGroups(const LinearTile& tile, int64_t first) {
  const auto* groups = reinterpret_cast<const uint8_t*>(tile.groups) + first * tile.groupBytes;
  const auto* inputs = static_cast<const int32_t*>(tile.activations);
  __m512 sums[R][T];
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) sums[r][t] = _mm512_setzero_ps();
  const auto step = [&](const __m512i(&weights)[R]) {
    for (int t = 0; t < T; ++t) {
      const __m512i a = _mm512_set1_epi32(inputs[t]);
      for (int r = 0; r < R; ++r) sums[r][t] = _mm512_dpbf16_ps(sums[r][t], asBf16(weights[r]), asBf16(a));
    }
    inputs += T;
  };
  __m512i weights[R];
  for (int64_t pair = 0; pair < tile.in / 2; ++pair) {
    for (int r = 0; r < R; ++r) weights[r] = _mm512_loadu_si512(groups + r * tile.groupBytes + pair * 64);
    step(weights);
  }
  if (tile.in % 2) {
    for (int r = 0; r < R; ++r) {
      const auto* last = reinterpret_cast<const __m256i*>(groups + r * tile.groupBytes + tile.in / 2 * 64);
      weights[r] = _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256(last));
    }
    step(weights);
  }
  for (int r = 0; r < R; ++r) {
    const int64_t row = (first + r) * kGroupRows;
    const __m512 bias = tile.bias ? _mm512_loadu_ps(tile.bias + row) : _mm512_setzero_ps();
    for (int t = 0; t < T; ++t)
      if (t < tile.tokens) _mm512_storeu_ps(tile.out + t * tile.outStride + row, _mm512_add_ps(sums[r][t], bias));
  }
}

template <int T>
void kernel(const LinearTile& tile) {
  constexpr int R = T <= 2 ? 4 : 2;
  int64_t group = 0;
  for (; group + R <= tile.groupCount; group += R) runGroups<R, T>(tile, group);
  for (; group < tile.groupCount; ++group) runGroups<1, T>(tile, group);
}

LinearKernel find(DType dtype, size_t width) {
  static constexpr std::array<LinearKernel, 5> kTable = {kernel<1>, kernel<2>, kernel<4>, kernel<8>, kernel<12>};
  return dtype == DType::BF16 ? kTable[width] : nullptr;
}

int64_t tokenBytes(int64_t in) { return (in + 1) / 2 * 4; }

// Rounds 16 pairs of one token at a time.
void fill(const float* rows, int64_t stride, int64_t tokens, int64_t in, int width, void* tile) {
  auto* to = static_cast<uint32_t*>(tile);
  for (int64_t k = 0; k < in; k += 32, to += 16 * width) {
    const int64_t count = std::min<int64_t>(32, in - k), pairs = (count + 1) / 2;
    const auto present = static_cast<uint32_t>((uint64_t{1} << count) - 1);
    for (int64_t t = 0; t < width; ++t) {
      alignas(64) uint32_t rounded[16] = {};
      if (t < tokens) {
        const float* x = rows + t * stride + k;
        const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(present), x),
                     high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(present >> 16), x + 16);
        _mm512_store_si512(rounded, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
      }
      for (int64_t pair = 0; pair < pairs; ++pair) to[pair * width + t] = rounded[pair];
    }
  }
}

}  // namespace

const LinearFamily* bf16FamilyAvx512() {
  static constexpr LinearFamily family = {kWidths, find, tokenBytes, fill};
  return &family;
}

}  // namespace headroom::engine::cpu
#pragma GCC pop_options
#else
namespace headroom::engine::cpu {
const LinearFamily* bf16FamilyAvx512() { return nullptr; }
}  // namespace headroom::engine::cpu
#endif
