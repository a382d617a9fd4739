// SPDX-License-Identifier: Apache-2.0
// Vectors of 8 rows with AVX2, for int8_linear-inl.h and block_decoders-inl.h. Included inside a target region and an unnamed
// namespace.

constexpr int kLanes = 8;
constexpr int kWidths[] = {1, 2, 4};
constexpr int64_t kPrefetchBytes = 1024;
using Floats = __m256;
using Ints = __m256i;
using Words = uint32_t __attribute__((vector_size(32)));
using Shorts = uint16_t __attribute__((vector_size(32)));

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
inline void store(uint8_t* to, Ints x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x); }
inline Ints bytesToInts(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
inline Floats asFloats(Ints x) { return _mm256_castsi256_ps(x); }
// The low halves of 32-bit words as half-precision numbers.
inline Floats halvesOfWords(Ints x) {
  x = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
  x = _mm256_permute4x64_epi64(_mm256_packus_epi32(x, x), 0x08);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(x));
}
inline Ints addBytes(Ints a, Ints b) { return _mm256_add_epi8(a, b); }
inline Ints subtractBytes(Ints a, Ints b) { return _mm256_sub_epi8(a, b); }
// table[byte & 15] of each byte below 128.
inline Ints lookUp(const int8_t* table, Ints bytes) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table))), bytes);
}
inline Ints gatherWords(const int8_t* base, Ints index) {
  return _mm256_i32gather_epi32(reinterpret_cast<const int*>(base), index, 4);
}
