// SPDX-License-Identifier: Apache-2.0
// Stored numbers as floats, one row at a time: plain floating types and GGUF's blocks. The slow, plain truth that kernels are
// judged by.
#pragma once

#include "core/model/dtype.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace headroom::engine::cpu {

// True where toFloats reads the type.
bool canRead(DType dtype);
// `count` elements (a multiple of the block) from `from`, the start of a block, to floats.
void toFloats(DType dtype, const void* from, int64_t count, float* to);
// Floats to F32, F16 or BF16, rounded to nearest even.
void fromFloats(DType dtype, const float* from, int64_t count, void* to);

inline float bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t floatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);  // NaN stays one
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float f16ToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float small = static_cast<float>(magnitude) * 0x1p-24f;  // subnormal: exact
  return sign ? -small : small;
}

inline uint16_t floatToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {                                               // subnormal: let the addition round
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// FP8 (E4M3 without infinities): https://arxiv.org/abs/2209.05433. Rounded to nearest even; what is larger becomes 448.
inline uint8_t floatToE4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80u);
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);  // NaN
  if (magnitude >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7eu);
  if (magnitude < 0x3c800000u) {  // below 2^-6: let the addition round to multiples of 2^-9
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x46800000u));
  }
  const uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  return static_cast<uint8_t>(sign | ((rounded - 0x3c000000u) >> 20));
}
inline float e4m3ToFloat(uint8_t bits) {
  const auto half = static_cast<uint16_t>((bits & 0x80u) << 8 | (bits & 0x7fu) << 7);
  return (bits & 0x7f) == 0x7f ? std::bit_cast<float>(0x7fc00000u) : f16ToFloat(half) * 256.0f;
}
// FP8 (E5M2): the upper byte of half precision.
inline uint8_t floatToE5m2(float value) {
  const uint16_t half = floatToF16(value);
  if ((half & 0x7fffu) >= 0x7c00u) return static_cast<uint8_t>(half >> 8 | ((half & 0x3ffu) != 0 ? 2 : 0));
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  if (magnitude < 0x38800000u) {  // subnormal: multiples of 2^-16
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p7f;
    return static_cast<uint8_t>((bits >> 24 & 0x80u) | (std::bit_cast<uint32_t>(shifted) - 0x43000000u));
  }
  const uint32_t rounded = magnitude + 0xfffffu + ((magnitude >> 21) & 1u);
  return static_cast<uint8_t>((bits >> 24 & 0x80u) | ((rounded - 0x38000000u) >> 21));
}
inline float e5m2ToFloat(uint8_t bits) { return f16ToFloat(static_cast<uint16_t>(bits << 8)); }

template <class T>
T readAs(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace headroom::engine::cpu
