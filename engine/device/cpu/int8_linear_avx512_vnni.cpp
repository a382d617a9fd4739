// SPDX-License-Identifier: Apache-2.0
// int8 products with AVX-512 VNNI (512-bit vpdpbusd): a vector holds a whole group of rows.
#include "engine/device/cpu/codebooks.h"
#include "engine/device/cpu/int8_activations.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512vnni,prefer-vector-width=512")
namespace headroom::engine::cpu {
namespace {

#include "engine/device/cpu/int8_vectors_avx512-inl.h"

template <int kTop, int kCount>
inline Ints dotWords(Ints start, const Ints* weights, const int8_t* activations) {
  for (int i = 0; i < kCount; ++i)
    start = _mm512_dpbusd_epi32(start, weights[i], _mm512_set1_epi32(reinterpret_cast<const int32_t*>(activations)[i]));
  return start;
}

#include "engine/device/cpu/int8_linear-inl.h"

}  // namespace

const LinearFamily* int8FamilyAvx512Vnni() {
  static constexpr LinearFamily family = {kWidths, findInt8, int8TokenBytes, fillInt8, lostByInt8};
  return &family;
}
GroupToFloats groupToFloatsAvx512(DType dtype) { return findGroupToFloats(dtype); }

}  // namespace headroom::engine::cpu
#pragma GCC pop_options
#else
namespace headroom::engine::cpu {
const LinearFamily* int8FamilyAvx512Vnni() { return nullptr; }
GroupToFloats groupToFloatsAvx512(DType) { return nullptr; }
}  // namespace headroom::engine::cpu
#endif
