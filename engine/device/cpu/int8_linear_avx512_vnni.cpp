// SPDX-License-Identifier: Apache-2.0
// int8 products with AVX-512 VNNI (512-bit vpdpbusd): a vector holds a whole group of rows.
#include "engine/device/cpu/int8_activations.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <iterator>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512vnni,prefer-vector-width=512")
namespace headroom::engine::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kWidths[] = {1, 2, 4, 8, 16};
constexpr int64_t kPrefetchBytes = 2048;
using Floats = __m512;
using Ints = __m512i;

inline Ints load(const uint8_t* from) { return _mm512_loadu_si512(from); }
inline Ints lowNibbles(Ints x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
inline Ints highNibbles(Ints x) { return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15)); }
inline Ints broadcast(int32_t x) { return _mm512_set1_epi32(x); }
inline Floats broadcast(float x) { return _mm512_set1_ps(x); }
inline Floats halves(const uint8_t* from) { return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))); }
inline Floats toFloats(Ints x) { return _mm512_maskz_cvtepi32_ps(0xffff, x); }
inline Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Floats zero() { return _mm512_setzero_ps(); }
inline Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
inline Floats loadFloats(const float* from) { return _mm512_loadu_ps(from); }
inline void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }

template <DType kType>
inline Ints dotBlock(Ints start, const Ints (&weights)[8], const int8_t* activations) {
  for (int i = 0; i < 8; ++i)
    start = _mm512_dpbusd_epi32(start, weights[i], _mm512_set1_epi32(reinterpret_cast<const int32_t*>(activations)[i]));
  return start;
}

#include "engine/device/cpu/int8_linear-inl.h"

}  // namespace

const LinearFamily* int8FamilyAvx512Vnni() {
  static constexpr LinearFamily family = {kWidths, findInt8, int8TokenBytes, fillInt8};
  return &family;
}

}  // namespace headroom::engine::cpu
#pragma GCC pop_options
#else
namespace headroom::engine::cpu {
const LinearFamily* int8FamilyAvx512Vnni() { return nullptr; }
}  // namespace headroom::engine::cpu
#endif
