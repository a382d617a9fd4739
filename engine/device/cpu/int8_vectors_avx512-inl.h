// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 rows with AVX-512, as int8_vectors_avx2-inl.h.

constexpr int kLanes = 16;
constexpr int kWidths[] = {1, 2, 4, 8, 16};
constexpr int64_t kPrefetchBytes = 2048;
using Floats = __m512;
using Ints = __m512i;
using Words = uint32_t __attribute__((vector_size(64)));
using Shorts = uint16_t __attribute__((vector_size(64)));

inline Ints load(const uint8_t* from) { return _mm512_loadu_si512(from); }
inline Ints lowNibbles(Ints x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
inline Ints highNibbles(Ints x) { return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15)); }
inline Ints broadcast(int32_t x) { return _mm512_set1_epi32(x); }
inline Floats broadcast(float x) { return _mm512_set1_ps(x); }
inline Floats halves(const uint8_t* from) {
  return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline Floats toFloats(Ints x) { return _mm512_maskz_cvtepi32_ps(0xffff, x); }
inline Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Floats zero() { return _mm512_setzero_ps(); }
inline Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
inline Floats loadFloats(const float* from) { return _mm512_loadu_ps(from); }
inline void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
inline void store(uint8_t* to, Ints x) { _mm512_storeu_si512(to, x); }
inline Ints bytesToInts(const uint8_t* from) {
  return _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Floats asFloats(Ints x) { return _mm512_castsi512_ps(x); }
inline Floats halvesOfWords(Ints x) { return _mm512_maskz_cvtph_ps(0xffff, _mm512_maskz_cvtepi32_epi16(0xffff, x)); }
inline Ints addBytes(Ints a, Ints b) { return _mm512_add_epi8(a, b); }
inline Ints subtractBytes(Ints a, Ints b) { return _mm512_sub_epi8(a, b); }
inline Ints lookUp(const int8_t* table, Ints bytes) {
  return _mm512_shuffle_epi8(_mm512_maskz_broadcast_i32x4(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(table))),
                             bytes);
}
inline Ints gatherWords(const int8_t* base, Ints index) {
  return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xffff, index, base, 4);
}
