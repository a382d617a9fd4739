// SPDX-License-Identifier: Apache-2.0
// Reading packed weights (packed_weight.h): for each format, which planes it has, and how a lane's codes become pairs of Half or
// BFloat16 that are exact whole numbers (or exact multiples of a power of two), to be multiplied on tensor cores, with scale and
// minimum applied to the sums in F32.
#pragma once

#include "engine/device/cuda/kernels/codebook_codes.cuh"
#include "engine/device/cuda/kernels/common.cuh"
#include "engine/device/cuda/kernels/packed_weight.h"

#include <type_traits>

namespace headroom::engine::cuda {

// What a format is made of; the same for host and device.
struct FormatTraits {
  int codeBits = 4;  // of the first plane: 0, 4 or 8
  bool twos = false, ones = false;
  int onesShift = 0;                          // where the single bit goes in the code
  int offset = 0;                             // subtracted from codes
  int scaleBytes = 0, scaleColumns = kGroup;  // of the plane of scales; 0: in memory of their own
  int moreBytes = 0, moreColumns = kGroup;    // of a second one
  bool minimums = false;                      // weight = scale * code + minimum
  int scalesPerGroup = 1;                     // 2: one for each 16 columns
  bool table = false;                         // codes are indices of a table
};

__host__ __device__ constexpr FormatTraits formatTraits(WeightFormat format) {
  FormatTraits traits;
  switch (format) {
    case WeightFormat::Q8_0:
      traits.codeBits = 8, traits.scaleBytes = 2;
      break;
    case WeightFormat::Q4_0:
      traits.offset = 8, traits.scaleBytes = 2;
      break;
    case WeightFormat::Q4_1:
      traits.scaleBytes = 4, traits.minimums = true;
      break;
    case WeightFormat::Q5_0:
      traits.ones = true, traits.onesShift = 4, traits.offset = 16, traits.scaleBytes = 2;
      break;
    case WeightFormat::Q5_1:
      traits.ones = true, traits.onesShift = 4, traits.scaleBytes = 4, traits.minimums = true;
      break;
    case WeightFormat::Q2_K:
      traits.codeBits = 0, traits.twos = true, traits.scaleBytes = 16, traits.scaleColumns = 256, traits.moreBytes = 4,
      traits.moreColumns = 256, traits.minimums = true, traits.scalesPerGroup = 2;
      break;
    case WeightFormat::Q3_K:
      traits.codeBits = 0, traits.twos = true, traits.ones = true, traits.onesShift = 2, traits.offset = 4,
      traits.scaleBytes = 12, traits.scaleColumns = 256, traits.moreBytes = 2, traits.moreColumns = 256,
      traits.scalesPerGroup = 2;
      break;
    case WeightFormat::Q4_K:
      traits.scaleBytes = 16, traits.scaleColumns = 256, traits.minimums = true;
      break;
    case WeightFormat::Q5_K:
      traits.ones = true, traits.onesShift = 4, traits.scaleBytes = 16, traits.scaleColumns = 256, traits.minimums = true;
      break;
    case WeightFormat::Q6_K:
      traits.twos = true, traits.offset = 32, traits.scaleBytes = 16, traits.scaleColumns = 256, traits.moreBytes = 2,
      traits.moreColumns = 256, traits.scalesPerGroup = 2;
      break;
    case WeightFormat::IQ4_NL:
      traits.table = true, traits.scaleBytes = 2;
      break;
    case WeightFormat::IQ4_XS:
      traits.table = true, traits.scaleBytes = 8, traits.scaleColumns = 256;
      break;
    case WeightFormat::MXFP4:
      traits.table = true, traits.scaleBytes = 1;
      break;
    // The super-block's bytes stand where others have their scales.
    case WeightFormat::IQ1_S:
      traits.codeBits = 0, traits.scaleBytes = 48, traits.scaleColumns = 256, traits.moreBytes = 2, traits.moreColumns = 256;
      break;
    case WeightFormat::IQ1_M:
      traits.codeBits = 0, traits.scaleBytes = 56, traits.scaleColumns = 256, traits.scalesPerGroup = 2;
      break;
    case WeightFormat::IQ2_XXS:
    case WeightFormat::TQ2_0:
      traits.codeBits = 0, traits.scaleBytes = 64, traits.scaleColumns = 256, traits.moreBytes = 2, traits.moreColumns = 256;
      break;
    case WeightFormat::IQ2_XS:
      traits.codeBits = 0, traits.scaleBytes = 72, traits.scaleColumns = 256, traits.moreBytes = 2, traits.moreColumns = 256,
      traits.scalesPerGroup = 2;
      break;
    case WeightFormat::IQ2_S:
      traits.codeBits = 0, traits.scaleBytes = 80, traits.scaleColumns = 256, traits.moreBytes = 2, traits.moreColumns = 256,
      traits.scalesPerGroup = 2;
      break;
    case WeightFormat::IQ3_XXS:
      traits.codeBits = 0, traits.scaleBytes = 96, traits.scaleColumns = 256, traits.moreBytes = 2, traits.moreColumns = 256;
      break;
    case WeightFormat::IQ3_S:
      traits.codeBits = 0, traits.scaleBytes = 108, traits.scaleColumns = 256, traits.moreBytes = 2, traits.moreColumns = 256;
      break;
    case WeightFormat::TQ1_0:
      traits.codeBits = 0, traits.scaleBytes = 52, traits.scaleColumns = 256, traits.moreBytes = 2, traits.moreColumns = 256;
      break;
    case WeightFormat::Int4:
      break;
    case WeightFormat::F8E4M3:
      traits.codeBits = 8;
      break;
  }
  return traits;
}

// A matrix as kernels take it. Planes' first bytes, and what the layout's units come to for one row.
struct PackedArguments {
  const uint8_t *codes, *twos, *ones, *scales, *more;
  const void* outerScales;  // Int4, F8E4M3
  const uint8_t* zeros;
  DType scaleType;
  int scaleRows, scaleColumns, scalesPerRow;
  int out, in, groups;                                // groups of 32 columns
  int64_t codesAt, twosAt, onesAt, scalesAt, moreAt;  // where the planes begin in the matrix
};

// Where the piece of `bytes` for (row, unit, lane) lies in a plane whose runs have kRun units of kLanes * kBytes.
template <int kBytes, int kLanes, int kRun>
__device__ inline int64_t pieceAt(int row, int unit, int lane, int out, int units) {
  const int tile = row / kTileRows, inTile = row % kTileRows, tileRows = min(kTileRows, out - tile * kTileRows);
  const int run = unit / kRun, count = min(kRun, units - run * kRun);
  return static_cast<int64_t>(tile) * kTileRows * units * (kLanes * kBytes) +
         static_cast<int64_t>(run) * kRun * tileRows * (kLanes * kBytes) + (inTile * kLanes + lane) * count * kBytes +
         unit % kRun * kBytes;
}

template <class V>
__device__ inline V loadAs(const uint8_t* from) {
  return loadStreaming(reinterpret_cast<const V*>(from));
}

// `word` with another byte j. (By shifts, a host compiler would see one wide access in several small ones.)
__device__ inline uint32_t withByte(uint32_t word, uint32_t byte, int j) {
  return __byte_perm(word, byte, (0x3210u & ~(15u << (4 * j))) | 4u << (4 * j));
}

__device__ inline float halfBits(uint32_t bits) { return unpackPair<Half>(bits & 0xffffu).x; }

// The scale and minimum numbers of the 12 bytes (three words) that Q4_K and Q5_K keep for 8 groups: 6 bits each.
__device__ inline void scaleAndMinimum(uint32_t w0, uint32_t w1, uint32_t w2, int j, uint32_t& scale, uint32_t& minimum) {
  const int shift = j % 4 * 8;
  if (j < 4) {
    scale = (w0 >> shift) & 63u;
    minimum = (w1 >> shift) & 63u;
  } else {
    scale = ((w2 >> shift) & 15u) | ((w0 >> (shift + 6)) & 3u) << 4;
    minimum = ((w2 >> (shift + 4)) & 15u) | ((w1 >> (shift + 6)) & 3u) << 4;
  }
}

__device__ inline float scaleFrom(const void* scales, DType type, int64_t index) {
  if (type == DType::F32) return static_cast<const float*>(scales)[index];
  if (type == DType::F16) return toFloat(static_cast<const Half*>(scales)[index]);
  return toFloat(static_cast<const BFloat16*>(scales)[index]);
}

// Pairs of T from biased bytes: the numbers value + 128 in byte `p` of a and of b, as value.
template <class T>
__device__ inline uint32_t pairOfBytes(uint32_t a, uint32_t b, int p) {
  const uint32_t pair = __byte_perm(a, b, static_cast<unsigned>(p | (4 + p) << 4));           // bytes 0 and 1
  if constexpr (std::is_same_v<T, Half>) {                                                    // 0x6400 | n is 1024 + n
    return fmaPair<Half>(__byte_perm(pair, 0x64646464u, 0x4140u), 0x3c003c00u, 0xe480e480u);  // * 1 - 1152
  } else {  // 0x4b000000 | n is 2^23 + n; the upper halves of such small whole floats are their BFloat16
    const float x = __uint_as_float(__byte_perm(pair, 0x4b000000u, 0x7440u)) - 8388736.0f;
    const float y = __uint_as_float(__byte_perm(pair, 0x4b000000u, 0x7441u)) - 8388736.0f;
    return __byte_perm(__float_as_uint(x), __float_as_uint(y), 0x7632u);
  }
}

// Pairs of T from two E4M3 numbers in byte `p` of a and of b, times 2^-8 (Half) or exact (BFloat16).
template <class T>
__device__ inline uint32_t pairOfFp8(uint32_t a, uint32_t b, int p) {
  const uint32_t pair = __byte_perm(a, b, static_cast<unsigned>(p | (4 + p) << 4));
  const uint32_t spread = __byte_perm(pair, 0u, 0x4140u);
  if constexpr (std::is_same_v<T, Half>)
    return (spread & 0x00800080u) << 8 | (spread & 0x007f007fu) << 7;
  else  // the exponent's bias is 120 less than BFloat16's
    return fmaPair<BFloat16>((spread & 0x00800080u) << 8 | (spread & 0x007f007fu) << 4, 0x7b807b80u, 0u);
}

// What pairOfFp8 leaves to the scale.
template <class T>
inline constexpr float kFp8Factor = std::is_same_v<T, Half> ? 256.0f : 1.0f;

// One lane's part of one row and one chunk of four groups (128 columns).
template <WeightFormat kFormat>
struct PackedPart {
  static constexpr FormatTraits kTraits = formatTraits(kFormat);
  static constexpr bool kOuter = kFormat == WeightFormat::Int4 || kFormat == WeightFormat::F8E4M3;
  static constexpr int kCodeWords = kTraits.codeBits, kTwoWords = kTraits.twos ? 2 : 0, kOneWords = kTraits.ones ? 1 : 0;
  static constexpr bool kCodebook = hasCodebook(kFormat);
  static constexpr int kHeaderWords = kCodebook                     ? 0
                                      : kTraits.scaleColumns == 256 ? kTraits.scaleBytes / 4
                                      : kTraits.scaleBytes == 1     ? 1
                                                                    : kTraits.scaleBytes;

  uint32_t codes[kCodeWords > 0 ? kCodeWords : 1];  // 4 bits: a word a group; 8 bits: two
  uint32_t twos[kTwoWords > 0 ? kTwoWords : 1];     // 16 bits a group
  uint32_t ones;                                    // 8 bits a group
  uint32_t header[kHeaderWords > 0 ? kHeaderWords : 1];
  uint32_t super;  // the second plane of scales
  struct None {};
  std::conditional_t<kCodebook, CodebookPart<kFormat>, None> book;
  float scales[kOuter ? 4 : 1];
  uint32_t zeros;  // 8 bits a group

  // Groups [4 chunk, 4 chunk + count) of a row, lane t.
  __device__ void load(const PackedArguments& matrix, int row, int chunk, int t) {
    const int count = min(4, matrix.groups - 4 * chunk);
    if constexpr (kTraits.codeBits == 4) {
      const uint8_t* from = matrix.codes + pieceAt<4, 4, 4>(row, 4 * chunk, t, matrix.out, matrix.groups);
      if (count == 4) {
        const uint4 word = loadAs<uint4>(from);
        codes[0] = word.x, codes[1] = word.y, codes[2] = word.z, codes[3] = word.w;
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) codes[j] = j < count ? loadAs<uint32_t>(from + 4 * j) : 0u;
      }
    }
    if constexpr (kTraits.codeBits == 8) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int unit = 4 * chunk + 2 * half;
        uint4 word = make_uint4(0u, 0u, 0u, 0u);
        if (2 * half < count) {
          const uint8_t* from = matrix.codes + pieceAt<8, 4, 2>(row, unit, t, matrix.out, matrix.groups);
          if (2 * half + 1 < count) {
            word = loadAs<uint4>(from);
          } else {
            const uint2 one = loadAs<uint2>(from);
            word.x = one.x, word.y = one.y;
          }
        }
        codes[4 * half] = word.x, codes[4 * half + 1] = word.y, codes[4 * half + 2] = word.z, codes[4 * half + 3] = word.w;
      }
    }
    if constexpr (kTraits.twos) {  // only types of 256 columns a block: whole runs
      const uint2 word = loadAs<uint2>(matrix.twos + pieceAt<2, 4, 4>(row, 4 * chunk, t, matrix.out, matrix.groups));
      twos[0] = word.x, twos[1] = word.y;
    }
    if constexpr (kTraits.ones) {
      const uint8_t* from = matrix.ones + pieceAt<1, 4, 4>(row, 4 * chunk, t, matrix.out, matrix.groups);
      if (count == 4) {
        ones = loadAs<uint32_t>(from);
      } else {
        ones = 0u;
        for (int j = 0; j < count; ++j) ones = withByte(ones, from[j], j);
      }
    }
    if constexpr (kCodebook) {
      const int superBlocks = matrix.groups / 8;
      book.load(matrix.scales + pieceAt<kTraits.scaleBytes, 1, 1>(row, chunk / 2, 0, matrix.out, superBlocks), chunk % 2, t);
      if constexpr (kTraits.moreBytes > 0)
        super = loadAs<unsigned short>(matrix.more + pieceAt<2, 1, 1>(row, chunk / 2, 0, matrix.out, superBlocks));
    } else {
      loadScales(matrix, row, chunk, count);
    }
  }

  __device__ void loadScales(const PackedArguments& matrix, int row, int chunk, int count) {
    if constexpr (kOuter) {
      const int64_t first = static_cast<int64_t>(row / matrix.scaleRows) * matrix.scalesPerRow;
      zeros = 0x08080808u;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int64_t at = first + (4 * chunk + min(j, count - 1)) * kGroup / matrix.scaleColumns;
        scales[j] = scaleFrom(matrix.outerScales, matrix.scaleType, at);
        if constexpr (kFormat == WeightFormat::Int4)
          if (matrix.zeros) zeros = (zeros & ~(255u << (8 * j))) | static_cast<uint32_t>(matrix.zeros[at]) << (8 * j);
      }
    } else if constexpr (kTraits.scaleColumns == 256) {
      const int superBlocks = matrix.groups / 8;
      const uint8_t* from = matrix.scales + pieceAt<kTraits.scaleBytes, 1, 1>(row, chunk / 2, 0, matrix.out, superBlocks);
      if constexpr (kTraits.scaleBytes == 16 && kTraits.scalesPerGroup == 2) {  // a byte for each 16 columns: this chunk's eight
        const uint2 word = loadAs<uint2>(from + chunk % 2 * 8);
        header[0] = word.x, header[1] = word.y;
      } else if constexpr (kTraits.scaleBytes == 16) {
        const uint4 word = loadAs<uint4>(from);
        header[0] = word.x, header[1] = word.y, header[2] = word.z, header[3] = word.w;
      } else if constexpr (kTraits.scaleBytes == 8) {
        const uint2 word = loadAs<uint2>(from);
        header[0] = word.x, header[1] = word.y;
      } else {
#pragma unroll
        for (int i = 0; i < kTraits.scaleBytes / 4; ++i) header[i] = loadAs<uint32_t>(from + 4 * i);
      }
      if constexpr (kTraits.moreBytes > 0) {
        from = matrix.more + pieceAt<kTraits.moreBytes, 1, 1>(row, chunk / 2, 0, matrix.out, superBlocks);
        if constexpr (kTraits.moreBytes == 4)
          super = loadAs<uint32_t>(from);
        else
          super = loadAs<unsigned short>(from);
      }
    } else {
      constexpr int kBytes = kTraits.scaleBytes;
      const uint8_t* from = matrix.scales + pieceAt<kBytes, 1, 4>(row, 4 * chunk, 0, matrix.out, matrix.groups);
      if (count == 4) {
        if constexpr (kBytes == 4) {
          const uint4 word = loadAs<uint4>(from);
          header[0] = word.x, header[1] = word.y, header[2] = word.z, header[3] = word.w;
        } else if constexpr (kBytes == 2) {  // 8 bytes, but behind a plane of single bits perhaps not aligned to 8
          header[0] = loadAs<uint32_t>(from);
          header[1] = loadAs<uint32_t>(from + 4);
        } else {
          header[0] = loadAs<uint32_t>(from);
        }
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if constexpr (kBytes == 4) {
            header[j] = j < count ? loadAs<uint32_t>(from + 4 * j) : 0u;
          } else if constexpr (kBytes == 2) {
            const uint32_t one = j < count ? loadAs<unsigned short>(from + 2 * j) : 0u;
            header[j / 2] = j % 2 == 0 ? one : __byte_perm(header[j / 2], one, 0x5410u);
          } else {
            const uint32_t one = j < count ? from[j] : 0u;
            header[0] = withByte(j == 0 ? 0u : header[0], one, j);
          }
        }
      }
    }
  }

  // Slots (0, 1), (2, 3), (4, 5), (6, 7) of group j as pairs.
  template <class T>
  __device__ void pairs(int j, uint32_t (&to)[4]) const {
    if constexpr (kCodebook) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const uint32_t word = book.bytes(j, side);
        to[2 * side] = pairOfBytes<T>(word, word >> 8, 0);
        to[2 * side + 1] = pairOfBytes<T>(word, word >> 8, 2);
      }
    } else if constexpr (kTraits.codeBits == 8) {
      // Slots 2p and 2p + 1 are neighbours: bytes 2p and 2p + 1 of the two words.
      const uint32_t low = codes[2 * j], high = codes[2 * j + 1];
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const uint32_t word = p < 2 ? low : high;
        const int byte = p % 2 * 2;
        if constexpr (kFormat == WeightFormat::F8E4M3)
          to[p] = pairOfFp8<T>(word, word >> 8, byte);
        else
          to[p] = pairOfBytes<T>(word, word >> 8, byte);
      }
    } else if constexpr (kTraits.table) {
      uint32_t bytes[2];  // numbers + 128 of slots 0, 2, 4, 6 and of 1, 3, 5, 7
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const uint32_t word = codes[j] >> (16 * odd);
        uint32_t low, high;
        if constexpr (kFormat == WeightFormat::MXFP4) {  // 0, 1, 2, 3, 4, 6, 8, 12 halves, and the same below zero
          low = __byte_perm(0x83828180u, 0x8c888684u, word & 0x7777u);
          high = __byte_perm(0x7d7e7f80u, 0x74787a7cu, word & 0x7777u);
        } else {  // -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
          low = __byte_perm(0x3f2d1801u, 0x766a5d4fu, word & 0x7777u);
          high = __byte_perm(0xa6998d81u, 0xf1d9c5b5u, word & 0x7777u);
        }
        bytes[odd] = __byte_perm(low, high, 0x3210u | (word & 0x8888u) >> 1);
      }
#pragma unroll
      for (int p = 0; p < 4; ++p) to[p] = pairOfBytes<T>(bytes[0], bytes[1], p);
    } else {
      constexpr bool kHalf = std::is_same_v<T, Half>;
      constexpr uint32_t kMagic = kHalf ? 0x64006400u : 0x43004300u;  // 1024 + n, 128 + n
      constexpr uint32_t kOne = kHalf ? 0x3c003c00u : 0x3f803f80u;
      constexpr float kBase = kHalf ? 1024.0f : 128.0f;
      float offset = kBase + static_cast<float>(kTraits.offset);
      if constexpr (kFormat == WeightFormat::Int4) offset += static_cast<float>((zeros >> (8 * j)) & 255u);
      const uint32_t subtract = packPair<T>(-offset, -offset);
      const uint32_t two = kTraits.twos ? __byte_perm(twos[j / 2], 0u, j % 2 == 0 ? 0x4140u : 0x4342u) : 0u;
      const uint32_t eight = ones >> (8 * j), one = kTraits.ones ? (eight & 15u) | (eight & 0xf0u) << 12 : 0u;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        uint32_t code = kMagic;
        if constexpr (kTraits.codeBits == 4) code |= (codes[j] >> (4 * p)) & 0x000f000fu;
        if constexpr (kTraits.twos) code |= ((two >> (2 * p)) & 0x00030003u) << (kTraits.codeBits == 4 ? 4 : 0);
        if constexpr (kTraits.ones) code |= ((one >> p) & 0x00010001u) << kTraits.onesShift;
        to[p] = fmaPair<T>(code, kOne, subtract);
      }
    }
  }

  // Scale and minimum of the 16 columns `half` of group j (both halves where scalesPerGroup is 1); `chunk` tells which half of a
  // super-block.
  template <class T>
  __device__ void scale(int chunk, int j, int half, float& factor, float& minimum) const {
    minimum = 0.0f;
    const int group = chunk % 2 * 4 + j, sixteen = group * 2 + half;  // in the super-block
    if constexpr (kCodebook) {
      factor = book.scale(j, half, kTraits.moreBytes > 0 ? halfBits(super) : 0.0f);
    } else if constexpr (kFormat == WeightFormat::Q4_1 || kFormat == WeightFormat::Q5_1) {
      factor = halfBits(header[j]);
      minimum = halfBits(header[j] >> 16);
    } else if constexpr (kFormat == WeightFormat::Q8_0 || kFormat == WeightFormat::Q4_0 || kFormat == WeightFormat::Q5_0 ||
                         kFormat == WeightFormat::IQ4_NL) {
      factor = halfBits(header[j / 2] >> (j % 2 * 16));
    } else if constexpr (kFormat == WeightFormat::MXFP4) {  // an exponent; codes count halves
      const uint32_t exponent = (header[0] >> (8 * j)) & 255u;
      factor = __uint_as_float(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
    } else if constexpr (kFormat == WeightFormat::Q4_K || kFormat == WeightFormat::Q5_K) {
      uint32_t s, m;
      scaleAndMinimum(header[1], header[2], header[3], group, s, m);
      factor = halfBits(header[0]) * static_cast<float>(s);
      minimum = -halfBits(header[0] >> 16) * static_cast<float>(m);
    } else if constexpr (kFormat == WeightFormat::Q2_K) {
      const uint32_t both = header[j / 2] >> ((j % 2 * 2 + half) * 8);
      factor = halfBits(super) * static_cast<float>(both & 15u);
      minimum = -halfBits(super >> 16) * static_cast<float>((both >> 4) & 15u);
    } else if constexpr (kFormat == WeightFormat::Q6_K) {
      const uint32_t byte = (header[j / 2] >> ((j % 2 * 2 + half) * 8)) & 255u;
      factor = halfBits(super) * static_cast<float>(static_cast<int>(byte ^ 128u) - 128);
    } else if constexpr (kFormat == WeightFormat::Q3_K) {  // sixteen numbers of 6 bits: low nibbles in 8 bytes, upper pairs in 4
      const uint32_t low = header[(j * 2 + half) / 4] >> (sixteen % 4 * 8 + (sixteen < 8 ? 0 : 4)) & 15u;
      const uint32_t high = header[2] >> (sixteen % 4 * 8 + sixteen / 4 * 2) & 3u;
      factor = halfBits(super) * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    } else if constexpr (kFormat == WeightFormat::IQ4_XS) {
      const uint32_t low = header[1] >> (group * 4) & 15u, high = header[0] >> (16 + group * 2) & 3u;
      factor = halfBits(header[0]) * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    } else if constexpr (kFormat == WeightFormat::F8E4M3) {
      factor = scales[j] * kFp8Factor<T>;
    } else {
      factor = scales[j];
    }
  }
};

// The column of slot s of lane t in a group.
__device__ inline int columnOf(int t, int slot) { return slot / 4 * 16 + t * 4 + slot % 4; }

PackedArguments packedArguments(const PackedWeight& weight);

template <class Body>
void withFormat(WeightFormat format, const Body& body) {
#define HEADROOM_FORMAT(name) \
  case WeightFormat::name:    \
    return body(std::integral_constant<WeightFormat, WeightFormat::name>());
  switch (format) {
    HEADROOM_FORMAT(Q8_0)
    HEADROOM_FORMAT(Q4_0)
    HEADROOM_FORMAT(Q4_1)
    HEADROOM_FORMAT(Q5_0)
    HEADROOM_FORMAT(Q5_1)
    HEADROOM_FORMAT(Q2_K)
    HEADROOM_FORMAT(Q3_K)
    HEADROOM_FORMAT(Q4_K)
    HEADROOM_FORMAT(Q5_K)
    HEADROOM_FORMAT(Q6_K)
    HEADROOM_FORMAT(IQ4_NL)
    HEADROOM_FORMAT(IQ4_XS)
    HEADROOM_FORMAT(MXFP4)
    HEADROOM_FORMAT(IQ1_S)
    HEADROOM_FORMAT(IQ1_M)
    HEADROOM_FORMAT(IQ2_XXS)
    HEADROOM_FORMAT(IQ2_XS)
    HEADROOM_FORMAT(IQ2_S)
    HEADROOM_FORMAT(IQ3_XXS)
    HEADROOM_FORMAT(IQ3_S)
    HEADROOM_FORMAT(TQ1_0)
    HEADROOM_FORMAT(TQ2_0)
    HEADROOM_FORMAT(Int4)
    HEADROOM_FORMAT(F8E4M3)
  }
#undef HEADROOM_FORMAT
}

}  // namespace headroom::engine::cuda
