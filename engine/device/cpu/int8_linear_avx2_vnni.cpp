// SPDX-License-Identifier: Apache-2.0
// int8 products with AVX-VNNI (256-bit vpdpbusd).
#include "engine/device/cpu/codebooks.h"
#include "engine/device/cpu/int8_activations.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avxvnni")
namespace headroom::engine::cpu {
namespace {

#include "engine/device/cpu/int8_vectors_avx2-inl.h"

template <int kTop, int kCount>
inline Ints dotWords(Ints start, const Ints* weights, const int8_t* activations) {
  for (int i = 0; i < kCount; ++i)
    start = _mm256_dpbusd_avx_epi32(start, weights[i], _mm256_set1_epi32(reinterpret_cast<const int32_t*>(activations)[i]));
  return start;
}

#include "engine/device/cpu/int8_linear-inl.h"

}  // namespace

const LinearFamily* int8FamilyAvx2Vnni() {
  static constexpr LinearFamily family = {kWidths, findInt8, int8TokenBytes, fillInt8, lostByInt8};
  return &family;
}

}  // namespace headroom::engine::cpu
#pragma GCC pop_options
#else
namespace headroom::engine::cpu {
const LinearFamily* int8FamilyAvx2Vnni() { return nullptr; }
}  // namespace headroom::engine::cpu
#endif
