// SPDX-License-Identifier: Apache-2.0
// Reading GGUF's codebook and ternary formats (IQ1, IQ2, IQ3, TQ): a super-block's bytes lie whole in one plane, its scale in
// another, and a lane takes the words of its chunk that it needs. A codebook's entries are digits of 16 bits
// (engine/device/codebook_digits.h) in the device's memory, from where caches serve them; digits become bytes (value + 128) by
// byte permutations, signs by exclusive-or.
#pragma once

#include "engine/device/cuda/kernels/common.cuh"
#include "engine/device/cuda/kernels/packed_weight.h"

#define HEADROOM_CODEBOOK [[maybe_unused]] static __device__ const
#include "engine/device/codebook_digits.h"
#undef HEADROOM_CODEBOOK

namespace headroom::engine::cuda {

// 7 stored signs; the eighth makes their number even.
__device__ inline uint32_t eightSigns(uint32_t seven) { return seven | (static_cast<uint32_t>(__popc(seven)) & 1u) << 7; }

// Four bits to four bytes, 255 where a bit is set.
__device__ inline uint32_t bytesOfBits(uint32_t four) {
  return ((four & 1u) | (four & 2u) << 7 | (four & 4u) << 14 | (four & 8u) << 21) * 255u;
}

// Four magnitudes (1 … 127) with signs, plus 128.
__device__ inline uint32_t signedBytes(uint32_t magnitudes, uint32_t signs) {
  const uint32_t mask = bytesOfBits(signs);
  return ((magnitudes ^ mask) + (mask & 0x01010101u)) ^ 0x80808080u;
}

// Four digits of 2 bits (of 3 bits) as the bytes that stand for them.
__device__ inline uint32_t bytesOfTwos(uint32_t digits, uint32_t table) {
  return __byte_perm(table, 0u, (digits & 3u) | (digits & 12u) << 2 | (digits & 48u) << 4 | (digits & 192u) << 6);
}
__device__ inline uint32_t bytesOfThrees(uint32_t digits, uint32_t low, uint32_t high) {
  return __byte_perm(low, high, (digits & 7u) | (digits & 56u) << 1 | (digits & 448u) << 2 | (digits & 3584u) << 3);
}

// Four bytes' digits of 3^-(n+1), plus 127.
__device__ inline uint32_t ternaryBytes(uint32_t bytes, int n) {
  const uint32_t power = n == 0 ? 1u : n == 1 ? 3u : n == 2 ? 9u : n == 3 ? 27u : 81u;
  uint32_t digits = 0u;
#pragma unroll
  for (int i = 0; i < 4; ++i) digits |= ((((bytes >> (8 * i) & 255u) * power) & 255u) * 3u >> 8) << (8 * i);
  return digits + 0x7f7f7f7fu;
}

// One lane's part of one row and one chunk of four groups, half a super-block.
template <WeightFormat kFormat>
struct CodebookPart {
  static constexpr int kWords = kFormat == WeightFormat::IQ2_XXS   ? 8
                                : kFormat == WeightFormat::IQ2_XS  ? 9
                                : kFormat == WeightFormat::IQ2_S   ? 10
                                : kFormat == WeightFormat::IQ3_XXS ? 12
                                : kFormat == WeightFormat::IQ3_S   ? 14
                                : kFormat == WeightFormat::IQ1_S   ? 6
                                : kFormat == WeightFormat::IQ1_M   ? 8
                                : kFormat == WeightFormat::TQ1_0   ? 4
                                                                   : 2;
  uint32_t words[kWords];
  int t, upper;  // the lane, and which half of the super-block

  // `block`: the super-block's bytes without its scale, on a multiple of 4.
  __device__ void load(const uint8_t* block, int half, int lane) {
    t = lane, upper = half;
    const auto word = [&](int at) { return loadStreaming(reinterpret_cast<const uint32_t*>(block + at)); };
    if constexpr (kFormat == WeightFormat::IQ2_XXS) {
#pragma unroll
      for (int i = 0; i < 8; ++i) words[i] = word(32 * half + 4 * i);
    } else if constexpr (kFormat == WeightFormat::IQ2_XS) {
#pragma unroll
      for (int i = 0; i < 8; ++i) words[i] = word(32 * half + 4 * i);
      words[8] = word(64 + 4 * half);
    } else if constexpr (kFormat == WeightFormat::IQ2_S) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        words[i] = word(16 * half + 4 * i);
        words[4 + i] = word(32 + 16 * half + 4 * i);
      }
      words[8] = word(64 + 4 * half);
      words[9] = word(72 + 4 * half);
    } else if constexpr (kFormat == WeightFormat::IQ3_XXS) {
#pragma unroll
      for (int i = 0; i < 8; ++i) words[i] = word(32 * half + 4 * i);
#pragma unroll
      for (int i = 0; i < 4; ++i) words[8 + i] = word(64 + 16 * half + 4 * i);
    } else if constexpr (kFormat == WeightFormat::IQ3_S) {
#pragma unroll
      for (int i = 0; i < 8; ++i) words[i] = word(32 * half + 4 * i);
#pragma unroll
      for (int i = 0; i < 4; ++i) words[8 + i] = word(72 + 16 * half + 4 * i);
      words[12] = word(64 + 4 * half);
      words[13] = word(104);
    } else if constexpr (kFormat == WeightFormat::IQ1_S || kFormat == WeightFormat::IQ1_M) {
#pragma unroll
      for (int i = 0; i < 4; ++i) words[i] = word(16 * half + 4 * i);
      words[4] = word(32 + 8 * half);
      words[5] = word(36 + 8 * half);
      if constexpr (kFormat == WeightFormat::IQ1_M) {
        words[6] = word(48);
        words[7] = word(52);
      }
    } else if constexpr (kFormat == WeightFormat::TQ1_0) {
      words[0] = word(4 * t);
      words[1] = word(16 + 4 * t);
      words[2] = word(32 + 4 * t);
      words[3] = word(48);
    } else {
      words[0] = word(32 * half + 4 * t);
      words[1] = word(32 * half + 16 + 4 * t);
    }
  }

  // The value + 128 of columns 4t … 4t+3 (`side` 0) or 16+4t … 16+4t+3 (1) of group j, a byte each.
  __device__ uint32_t bytes(int j, int side) const {
    using namespace codebook_digits;
    const int eighth = 2 * side + t / 2;  // the run of 8 weights; its half is t % 2
    if constexpr (kFormat == WeightFormat::IQ2_XXS) {
      const uint32_t index = words[2 * j] >> (8 * eighth) & 255u;
      const uint32_t signs = eightSigns(words[2 * j + 1] >> (7 * eighth) & 127u);
      return signedBytes(bytesOfTwos(kIQ2_XXS[index] >> (8 * (t % 2)), kTwos), signs >> (4 * (t % 2)) & 15u);
    } else if constexpr (kFormat == WeightFormat::IQ2_XS) {
      const uint32_t code = words[2 * j + side] >> (16 * (t / 2)) & 0xffffu;
      return signedBytes(bytesOfTwos(kIQ2_XS[code & 511u] >> (8 * (t % 2)), kTwos), eightSigns(code >> 9) >> (4 * (t % 2)) & 15u);
    } else if constexpr (kFormat == WeightFormat::IQ2_S) {
      const uint32_t index = (words[j] >> (8 * eighth) & 255u) | (words[8] >> (8 * j + 2 * eighth) & 3u) << 8;
      return signedBytes(bytesOfTwos(kIQ2_S[index] >> (8 * (t % 2)), kTwos), words[4 + j] >> (8 * eighth + 4 * (t % 2)) & 15u);
    } else if constexpr (kFormat == WeightFormat::IQ3_XXS) {
      const uint32_t signs = eightSigns(words[8 + j] >> (7 * eighth) & 127u);
      return signedBytes(bytesOfThrees(kIQ3_XXS[words[2 * j + side] >> (8 * t) & 255u], 0x1c140c04u, 0x3e342c24u),
                         signs >> (4 * (t % 2)) & 15u);
    } else if constexpr (kFormat == WeightFormat::IQ3_S) {
      const uint32_t index = (words[2 * j + side] >> (8 * t) & 255u) | (words[12] >> (8 * j + 4 * side + t) & 1u) << 8;
      return signedBytes(bytesOfThrees(kIQ3_S[index], 0x07050301u, 0x0f0d0b09u),
                         words[8 + j] >> (8 * eighth + 4 * (t % 2)) & 15u);
    } else if constexpr (kFormat == WeightFormat::IQ1_S || kFormat == WeightFormat::IQ1_M) {
      const uint32_t high = words[4 + j / 2] >> (16 * (j % 2)) & 0xffffu;  // of the group
      uint32_t index, below;
      if constexpr (kFormat == WeightFormat::IQ1_S) {
        index = high >> (3 * eighth) & 7u;
        below = high >> 15;
      } else {
        index = high >> (4 * eighth) & 7u;
        below = high >> (4 * eighth + 3) & 1u;
      }
      index = index << 8 | (words[j] >> (8 * eighth) & 255u);
      // Eight times -1, 0, 1 with an eighth less or more.
      return bytesOfTwos(kIQ1_S[index] >> (8 * (t % 2)), below ? 0x00877f77u : 0x00898179u);
    } else if constexpr (kFormat == WeightFormat::TQ1_0) {
      // 160 columns in five digits of 32 bytes, 80 of 16 bytes, 16 in four digits of 4 bytes.
      if (!upper) return ternaryBytes(words[side], j);
      if (j == 0) return ternaryBytes(words[side], 4);
      const int n = 2 * (j - 1) + side;
      return n < 5 ? ternaryBytes(words[2], n) : ternaryBytes(words[3], t);
    } else {
      return (words[side] >> (2 * j) & 0x03030303u) + 0x7f7f7f7fu;
    }
  }

  // What those numbers are multiplied by, for the 16 columns `side` of group j. `super`: the super-block's scale, F16.
  __device__ float scale(int j, int side, float super) const {
    if constexpr (kFormat == WeightFormat::IQ2_XXS) {
      return super * 0.125f * static_cast<float>(2u * (words[2 * j + 1] >> 28) + 1u);
    } else if constexpr (kFormat == WeightFormat::IQ2_XS || kFormat == WeightFormat::IQ2_S) {
      return super * 0.125f * static_cast<float>(2u * (words[kWords - 1] >> (8 * j + 4 * side) & 15u) + 1u);
    } else if constexpr (kFormat == WeightFormat::IQ3_XXS) {
      return super * 0.25f * static_cast<float>(2u * (words[8 + j] >> 28) + 1u);
    } else if constexpr (kFormat == WeightFormat::IQ3_S) {
      return super * static_cast<float>(2u * (words[13] >> (16 * upper + 4 * j) & 15u) + 1u);
    } else if constexpr (kFormat == WeightFormat::IQ1_S) {
      return super * 0.125f * static_cast<float>(2u * (words[4 + j / 2] >> (16 * (j % 2) + 12) & 7u) + 1u);
    } else if constexpr (kFormat == WeightFormat::IQ1_M) {
      // Four words of four 3-bit scales; their upper nibbles together are the super-block's scale.
      const uint32_t bits =
          (words[6] >> 12 & 0xfu) | (words[6] >> 24 & 0xf0u) | (words[7] >> 4 & 0xf00u) | (words[7] >> 16 & 0xf000u);
      const uint32_t four = words[6 + upper] >> (16 * (j / 2));
      return unpackPair<Half>(bits).x * 0.125f * static_cast<float>(2u * (four >> (3 * (2 * (j % 2) + side)) & 7u) + 1u);
    } else {
      return super;
    }
  }

 private:
  static constexpr uint32_t kTwos = 0x002b1908u;  // 8, 25, 43
};

}  // namespace headroom::engine::cuda
