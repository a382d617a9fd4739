// SPDX-License-Identifier: Apache-2.0
// int8 products with AVX-VNNI (256-bit vpdpbusd).
#include "engine/device/cpu/int8_activations.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <iterator>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avxvnni")
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
  for (int i = 0; i < 8; ++i)
    start = _mm256_dpbusd_avx_epi32(start, weights[i], _mm256_set1_epi32(reinterpret_cast<const int32_t*>(activations)[i]));
  return start;
}

#include "engine/device/cpu/int8_linear-inl.h"

}  // namespace

const LinearFamily* int8FamilyAvx2Vnni() {
  static constexpr LinearFamily family = {kWidths, findInt8, int8TokenBytes, fillInt8};
  return &family;
}

}  // namespace headroom::engine::cpu
#pragma GCC pop_options
#else
namespace headroom::engine::cpu {
const LinearFamily* int8FamilyAvx2Vnni() { return nullptr; }
}  // namespace headroom::engine::cpu
#endif
