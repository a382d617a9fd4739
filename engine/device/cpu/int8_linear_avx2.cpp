// SPDX-License-Identifier: Apache-2.0
// int8 products with AVX2 (vpmaddubsw), and the rounding of activations that all int8 families share.
#include "engine/device/cpu/int8_activations.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <iterator>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
namespace headroom::engine::cpu {
namespace {

constexpr int kLanes = 8;
constexpr int kWidths[] = {1, 2, 4};
constexpr int64_t kPrefetchBytes = 1024;
using Floats = __m256;
using Ints = __m256i;

inline Ints load(const uint8_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline Ints lowNibbles(Ints x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
inline Ints highNibbles(Ints x) { return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15)); }
inline Ints broadcast(int32_t x) { return _mm256_set1_epi32(x); }
inline Floats broadcast(float x) { return _mm256_set1_ps(x); }
inline Floats halves(const uint8_t* from) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }
inline Floats toFloats(Ints x) { return _mm256_cvtepi32_ps(x); }
inline Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
inline Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
inline Floats zero() { return _mm256_setzero_ps(); }
inline Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
inline Floats loadFloats(const float* from) { return _mm256_loadu_ps(from); }
inline void store(float* to, Floats x) { _mm256_storeu_ps(to, x); }

template <DType kType>
inline Ints dotBlock(Ints start, const Ints (&weights)[8], const int8_t* activations) {
  const auto four = [&](int i) { return _mm256_set1_epi32(reinterpret_cast<const int32_t*>(activations)[i]); };
  const Ints ones = _mm256_set1_epi16(1);
  if constexpr (kType == DType::Q8_0) {
    start = _mm256_setzero_si256();  // the weights become signed again: nothing is owed for value + 128
    // Pairs of products of full bytes overflow 16 bits unless one factor is a magnitude of at most 128 and the other of at most
    // 127.
    for (int i = 0; i < 8; ++i) {
      const Ints value = _mm256_xor_si256(weights[i], _mm256_set1_epi8(static_cast<char>(0x80)));
      const Ints pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(four(i), value));
      start = _mm256_add_epi32(start, _mm256_madd_epi16(pairs, ones));
    }
    return start;
  } else {
    // 8 pairs of products of a nibble and a byte fit: 8 * 2 * 15 * 127 = 30480.
    Ints pairs = _mm256_maddubs_epi16(weights[0], four(0));
    for (int i = 1; i < 8; ++i) pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(weights[i], four(i)));
    return _mm256_add_epi32(start, _mm256_madd_epi16(pairs, ones));
  }
}

#include "engine/device/cpu/int8_linear-inl.h"

// Rounds one block; returns the sum of the whole numbers.
inline int32_t roundBlock(const float* from, int8_t* to, float& scale) {
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
  __m256i total = _mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return _mm_cvtsi128_si32(sum);
}

}  // namespace

void fillInt8(const float* rows, int64_t stride, int64_t tokens, int64_t in, int width, void* tile) {
  auto* block = static_cast<uint8_t*>(tile);
  for (int64_t k = 0; k < in; k += 32, block += width * kInt8BlockBytes) {
    auto* quants = reinterpret_cast<int8_t*>(block);
    auto* ints = reinterpret_cast<int32_t*>(block + 32 * width);
    auto* floats = reinterpret_cast<float*>(ints + 2 * width);
    for (int t = 0; t < width; ++t) {
      int32_t sum = 0;
      float scale = 0;
      if (t < tokens) {
        sum = roundBlock(rows + t * stride + k, quants + 32 * t, scale);
      } else {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants + 32 * t), _mm256_setzero_si256());
      }
      ints[t] = -128 * sum;
      ints[width + t] = -8 * sum;
      floats[t] = scale;
      floats[width + t] = scale * static_cast<float>(sum);
    }
  }
}

const LinearFamily* int8FamilyAvx2() {
  static constexpr LinearFamily family = {kWidths, findInt8, int8TokenBytes, fillInt8};
  return &family;
}

}  // namespace headroom::engine::cpu
#pragma GCC pop_options
#else
namespace headroom::engine::cpu {
const LinearFamily* int8FamilyAvx2() { return nullptr; }
}  // namespace headroom::engine::cpu
#endif
