// SPDX-License-Identifier: Apache-2.0
// int8 products with AVX2 (vpmaddubsw), and the rounding of activations that all int8 families share.
#include "engine/device/cpu/codebooks.h"
#include "engine/device/cpu/int8_activations.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
namespace headroom::engine::cpu {
namespace {

#include "engine/device/cpu/int8_vectors_avx2-inl.h"

template <int kTop, int kCount>
inline Ints dotWords(Ints start, const Ints* weights, const int8_t* activations) {
  const auto four = [&](int i) { return _mm256_set1_epi32(reinterpret_cast<const int32_t*>(activations)[i]); };
  const Ints ones = _mm256_set1_epi16(1);
  if constexpr (kTop == 255) {
    start = _mm256_setzero_si256();  // the weights become signed again: nothing is owed for value + 128
    // Pairs of products of full bytes overflow 16 bits unless one factor is a magnitude of at most 128 and the other of at most
    // 127.
    for (int i = 0; i < kCount; ++i) {
      const Ints value = _mm256_xor_si256(weights[i], _mm256_set1_epi8(static_cast<char>(0x80)));
      const Ints pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(four(i), value));
      start = _mm256_add_epi32(start, _mm256_madd_epi16(pairs, ones));
    }
    return start;
  } else {
    // As many pairs of products as fit in 16 bits: 8 * 2 * 15 * 127 = 30480.
    constexpr int kPairs = std::min(kCount, 32767 / (2 * 127 * kTop));
    for (int i = 0; i < kCount; i += kPairs) {
      Ints pairs = _mm256_maddubs_epi16(weights[i], four(i));
      for (int j = i + 1; j < std::min(kCount, i + kPairs); ++j)
        pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(weights[j], four(j)));
      start = _mm256_add_epi32(start, _mm256_madd_epi16(pairs, ones));
    }
    return start;
  }
}

#include "engine/device/cpu/int8_linear-inl.h"

// Rounds one block; leaves the sums of the whole numbers of each half.
inline void roundBlock(const float* from, int8_t* to, float& scale, int32_t (&sums)[2]) {
  __m256 x[4], top = _mm256_setzero_ps();
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm256_loadu_ps(from + 8 * i);
    top = _mm256_max_ps(top, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x[i]));
  }
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(top), _mm256_extractf128_ps(top, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  four = _mm_max_ss(four, _mm_movehdup_ps(four));
  const float largest = _mm_cvtss_f32(four);
  scale = largest / 127.0f;
  const __m256 factor = _mm256_set1_ps(largest > 0.0f ? 127.0f / largest : 0.0f);
  __m256i q[4];
  for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], factor));
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  const __m256i low = _mm256_add_epi32(q[0], q[1]), high = _mm256_add_epi32(q[2], q[3]);
  __m256i both = _mm256_hadd_epi32(low, high);  // per lane of 128 bits: two parts of low's sum, two of high's
  both = _mm256_hadd_epi32(both, both);
  const __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  sums[0] = _mm_cvtsi128_si32(sum);
  sums[1] = _mm_extract_epi32(sum, 1);
}

}  // namespace

void fillInt8(const float* rows, int64_t stride, int64_t tokens, int64_t in, int width, void* tile) {
  auto* block = static_cast<uint8_t*>(tile);
  for (int64_t k = 0; k < in; k += 32, block += width * kInt8BlockBytes) {
    auto* quants = reinterpret_cast<int8_t*>(block);
    auto* ints = reinterpret_cast<int32_t*>(block + 32 * width);
    auto* floats = reinterpret_cast<float*>(ints + 2 * width);
    auto* halfInts = reinterpret_cast<int32_t*>(floats + 2 * width);
    auto* halfFloats = reinterpret_cast<float*>(halfInts + 2 * width);
    for (int t = 0; t < width; ++t) {
      int32_t sums[2] = {};
      float scale = 0;
      if (t < tokens) {
        roundBlock(rows + t * stride + k, quants + 32 * t, scale, sums);
      } else {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants + 32 * t), _mm256_setzero_si256());
      }
      ints[t] = -128 * (sums[0] + sums[1]);
      ints[width + t] = -8 * (sums[0] + sums[1]);
      floats[t] = scale;
      floats[width + t] = scale * static_cast<float>(sums[0] + sums[1]);
      for (int half = 0; half < 2; ++half) {
        halfInts[half * width + t] = -4 * sums[half];
        halfFloats[half * width + t] = scale * static_cast<float>(sums[half]);
      }
    }
  }
}

void lostByInt8(const float* row, int64_t in, float* rest) {
  for (int64_t k = 0; k < in; k += 32) {
    alignas(32) int8_t quants[32];
    int32_t sums[2];
    float scale = 0;
    roundBlock(row + k, quants, scale, sums);
    for (int i = 0; i < 32; ++i) rest[k + i] = row[k + i] - scale * static_cast<float>(quants[i]);
  }
}

const LinearFamily* int8FamilyAvx2() {
  static constexpr LinearFamily family = {kWidths, findInt8, int8TokenBytes, fillInt8, lostByInt8};
  return &family;
}
GroupToFloats groupToFloatsAvx2(DType dtype) { return findGroupToFloats(dtype); }

}  // namespace headroom::engine::cpu
#pragma GCC pop_options
#else
namespace headroom::engine::cpu {
const LinearFamily* int8FamilyAvx2() { return nullptr; }
GroupToFloats groupToFloatsAvx2(DType) { return nullptr; }
}  // namespace headroom::engine::cpu
#endif
