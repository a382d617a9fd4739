// SPDX-License-Identifier: Apache-2.0
// Stored blocks to planes, and planes back to numbers. Packing runs once a matrix, at the rate of the copy that feeds it.
// Dequantizing (for cuBLASLt at large batches, and for embeddings) is bound by what it writes: 2 bytes a weight at the copy
// bandwidth, worth it from some hundred tokens up. Test: tests/engine/cuda_kernels_packed_weight_test.cpp.
#include "engine/device/cuda/kernels/packed_codes.cuh"

namespace headroom::engine::cuda {
namespace {

struct StoredBlock {
  int columns, bytes;
  int scaleAt, moreAt;  // where the bytes of the planes of scales lie in the block
};

__host__ __device__ constexpr StoredBlock storedBlock(WeightFormat format) {
  switch (format) {
    case WeightFormat::Q8_0:
      return {32, 34, 0, 0};
    case WeightFormat::Q4_0:
    case WeightFormat::IQ4_NL:
      return {32, 18, 0, 0};
    case WeightFormat::Q4_1:
      return {32, 20, 0, 0};
    case WeightFormat::Q5_0:
      return {32, 22, 0, 0};
    case WeightFormat::Q5_1:
      return {32, 24, 0, 0};
    case WeightFormat::MXFP4:
      return {32, 17, 0, 0};
    case WeightFormat::Q2_K:
      return {256, 84, 0, 80};
    case WeightFormat::Q3_K:
      return {256, 110, 96, 108};
    case WeightFormat::Q4_K:
      return {256, 144, 0, 0};
    case WeightFormat::Q5_K:
      return {256, 176, 0, 0};
    case WeightFormat::Q6_K:
      return {256, 210, 192, 208};
    case WeightFormat::IQ4_XS:
      return {256, 136, 0, 0};
    case WeightFormat::IQ1_S:
      return {256, 50, 2, 0};
    case WeightFormat::IQ1_M:
      return {256, 56, 0, 0};
    case WeightFormat::IQ2_XXS:
      return {256, 66, 2, 0};
    case WeightFormat::IQ2_XS:
      return {256, 74, 2, 0};
    case WeightFormat::IQ2_S:
      return {256, 82, 2, 0};
    case WeightFormat::IQ3_XXS:
      return {256, 98, 2, 0};
    case WeightFormat::IQ3_S:
      return {256, 110, 2, 0};
    case WeightFormat::TQ1_0:
      return {256, 54, 0, 52};
    case WeightFormat::TQ2_0:
      return {256, 66, 0, 64};
    case WeightFormat::Int4:
      return {32, 16, 0, 0};
    case WeightFormat::F8E4M3:
      return {32, 32, 0, 0};
  }
  return {};
}

// The code of column k of a stored block, before the format's offset is subtracted; signed bytes with the sign bit flipped.
// https://github.com/ggml-org/ggml (the block_* structures say what the bytes are).
template <WeightFormat kFormat>
__device__ uint32_t codeOf(const uint8_t* block, int k) {
  // Columns i and i + 16 of 32 share byte i, as all types of 32 columns have it.
  const auto nibble = [&](int at) { return static_cast<uint32_t>(k < 16 ? block[at + k] & 15 : block[at + k - 16] >> 4); };
  const auto bit = [&](int at) { return static_cast<uint32_t>(block[at + k / 8] >> (k % 8)) & 1u; };
  if constexpr (kFormat == WeightFormat::Q8_0) return block[2 + k] ^ 128u;
  if constexpr (kFormat == WeightFormat::Q4_0 || kFormat == WeightFormat::IQ4_NL) return nibble(2);
  if constexpr (kFormat == WeightFormat::Q4_1) return nibble(4);
  if constexpr (kFormat == WeightFormat::Q5_0) return nibble(6) | bit(2) << 4;
  if constexpr (kFormat == WeightFormat::Q5_1) return nibble(8) | bit(4) << 4;
  if constexpr (kFormat == WeightFormat::MXFP4) return nibble(1);
  if constexpr (kFormat == WeightFormat::Q2_K)  // 64 bytes of bit pairs: 32 bytes serve 128 columns, a pair for each 32
    return (block[16 + k / 128 * 32 + k % 32] >> (k % 128 / 32 * 2)) & 3u;
  if constexpr (kFormat == WeightFormat::Q3_K)
    return ((block[32 + k / 128 * 32 + k % 32] >> (k % 128 / 32 * 2)) & 3u) | ((block[k % 32] >> (k / 32)) & 1u) << 2;
  if constexpr (kFormat == WeightFormat::Q4_K || kFormat == WeightFormat::Q5_K) {
    const int group = k / 32, at = kFormat == WeightFormat::Q4_K ? 16 : 48;
    const uint8_t byte = block[at + group / 2 * 32 + k % 32];
    const uint32_t low = group % 2 == 0 ? byte & 15u : byte >> 4;
    return kFormat == WeightFormat::Q4_K ? low : low | ((block[16 + k % 32] >> group) & 1u) << 4;
  }
  if constexpr (kFormat == WeightFormat::Q6_K) {
    const int half = k / 128, part = k % 128 / 32, i = k % 32;
    const uint8_t byte = block[half * 64 + part % 2 * 32 + i];
    return (part < 2 ? byte & 15u : byte >> 4) | ((block[128 + half * 32 + i] >> (2 * part)) & 3u) << 4;
  }
  if constexpr (kFormat == WeightFormat::IQ4_XS) {
    const uint8_t byte = block[8 + k / 32 * 16 + k % 16];
    return k % 32 < 16 ? byte & 15u : byte >> 4;
  }
  if constexpr (kFormat == WeightFormat::Int4) return (block[k / 2] >> (k % 2 * 4)) & 15u;
  if constexpr (kFormat == WeightFormat::F8E4M3) return block[k];
  return 0u;
}

__device__ inline void copyBytes(uint8_t* to, const uint8_t* from, int bytes) {
  for (int i = 0; i < bytes; ++i) to[i] = from[i];
}

// A thread a (row, group of 32 columns, lane).
template <WeightFormat kFormat>
__global__ void packKernel(PackedArguments matrix, const uint8_t* blocks, int64_t rowBytes, int firstRow, int64_t items) {
  constexpr FormatTraits kTraits = formatTraits(kFormat);
  constexpr StoredBlock kStored = storedBlock(kFormat);
  const int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= items) return;
  const int t = static_cast<int>(item % 4), group = static_cast<int>(item / 4 % matrix.groups);
  const auto localRow = item / 4 / matrix.groups;
  const int row = firstRow + static_cast<int>(localRow);
  const int firstColumn = group * kGroup;
  const uint8_t* block = blocks + localRow * rowBytes + firstColumn / kStored.columns * kStored.bytes;
  [[maybe_unused]] uint32_t code[8];
#pragma unroll
  for (int slot = 0; slot < 8; ++slot) code[slot] = codeOf<kFormat>(block, firstColumn % kStored.columns + columnOf(t, slot));
  if constexpr (kTraits.codeBits == 4) {
    uint32_t word = 0;
#pragma unroll
    for (int slot = 0; slot < 8; ++slot) word |= (code[slot] & 15u) << (4 * (slot / 2 + slot % 2 * 4));
    *reinterpret_cast<uint32_t*>(const_cast<uint8_t*>(matrix.codes) +
                                 pieceAt<4, 4, 4>(row, group, t, matrix.out, matrix.groups)) = word;
  }
  if constexpr (kTraits.codeBits == 8) {
    uint2 word = make_uint2(0u, 0u);
#pragma unroll
    for (int slot = 0; slot < 4; ++slot) {
      word.x |= code[slot] << (8 * slot);
      word.y |= code[slot + 4] << (8 * slot);
    }
    *reinterpret_cast<uint2*>(const_cast<uint8_t*>(matrix.codes) + pieceAt<8, 4, 2>(row, group, t, matrix.out, matrix.groups)) =
        word;
  }
  if constexpr (kTraits.twos) {
    uint32_t word = 0;
#pragma unroll
    for (int slot = 0; slot < 8; ++slot)
      word |= ((code[slot] >> (kTraits.codeBits == 4 ? 4 : 0)) & 3u) << (slot / 2 * 2 + slot % 2 * 8);
    *reinterpret_cast<unsigned short*>(const_cast<uint8_t*>(matrix.twos) +
                                       pieceAt<2, 4, 4>(row, group, t, matrix.out, matrix.groups)) =
        static_cast<unsigned short>(word);
  }
  if constexpr (kTraits.ones) {
    uint32_t word = 0;
#pragma unroll
    for (int slot = 0; slot < 8; ++slot) word |= ((code[slot] >> kTraits.onesShift) & 1u) << (slot / 2 + slot % 2 * 4);
    *(const_cast<uint8_t*>(matrix.ones) + pieceAt<1, 4, 4>(row, group, t, matrix.out, matrix.groups)) =
        static_cast<uint8_t>(word);
  }
  if constexpr (kTraits.scaleBytes > 0) {
    constexpr int kPerUnit = kTraits.scaleColumns / kGroup, kRun = kPerUnit == 1 ? 4 : 1;
    if (t == 0 && group % kPerUnit == 0) {
      copyBytes(const_cast<uint8_t*>(matrix.scales) +
                    pieceAt<kTraits.scaleBytes, 1, kRun>(row, group / kPerUnit, 0, matrix.out, matrix.groups / kPerUnit),
                block + kStored.scaleAt, kTraits.scaleBytes);
      if constexpr (kTraits.moreBytes > 0)
        copyBytes(const_cast<uint8_t*>(matrix.more) +
                      pieceAt<kTraits.moreBytes, 1, kRun>(row, group / kPerUnit, 0, matrix.out, matrix.groups / kPerUnit),
                  block + kStored.moreAt, kTraits.moreBytes);
    }
  }
}

// A thread a (row, chunk of four groups, lane). Row i of `to` is row firstRow + i, or ids[i] - firstRow where ids are given.
template <WeightFormat kFormat, class T>
__global__ void dequantizeKernel(Rows<T> to, PackedArguments matrix, const int* ids, int64_t firstRow, bool aligned,
                                 int64_t items) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= items) return;
  const int chunks = (matrix.groups + 3) / 4, t = static_cast<int>(item % 4), chunk = static_cast<int>(item / 4 % chunks);
  const int64_t index = item / 4 / chunks, row = ids ? ids[index] - firstRow : firstRow + index;
  const bool inside = row >= 0 && row < matrix.out;
  PackedPart<kFormat> part;
  if (inside) part.load(matrix, static_cast<int>(row), chunk, t);
  const int count = min(4, matrix.groups - 4 * chunk);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (j >= count) break;
    float values[2][4] = {};
    if (inside) {
      uint32_t pairs[4];
      part.template pairs<Half>(j, pairs);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float scale, minimum;
        part.template scale<Half>(chunk, j, half, scale, minimum);
        const float2 first = unpackPair<Half>(pairs[2 * half]), second = unpackPair<Half>(pairs[2 * half + 1]);
        values[half][0] = first.x * scale + minimum;
        values[half][1] = first.y * scale + minimum;
        values[half][2] = second.x * scale + minimum;
        values[half][3] = second.y * scale + minimum;
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      T* at = to.row(index) + (chunk * 4 + j) * kGroup + columnOf(t, 4 * half);
      if (aligned) {
        storeFloats(values[half], at);
      } else {
        for (int i = 0; i < 4; ++i) at[i] = fromFloat<T>(values[half][i]);
      }
    }
  }
}

void dequantize(Stream stream, TensorView out, const PackedWeight& weight, const int* ids, int64_t firstRow) {
  if (out.rows == 0) return;
  withActivationType(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const PackedArguments matrix = packedArguments(weight);
    const int64_t items = out.rows * ((matrix.groups + 3) / 4) * 4;
    const bool aligned = reinterpret_cast<uintptr_t>(out.data) % (4 * sizeof(T)) == 0 && out.stride % 4 == 0;
    withFormat(weight.format, [&](auto format) {
      launchKernel(dequantizeKernel<decltype(format)::value, T>, dim3(blocksFor(items, 128)), dim3(128), 0, stream,
                   rowsOf<T>(out), matrix, ids, firstRow, aligned, items);
    });
  });
}

}  // namespace

PackedLayout packedLayout(WeightFormat format, int64_t out, int64_t in) {
  const FormatTraits traits = formatTraits(format);
  const int64_t groups = in / kGroup;
  PackedLayout layout;
  int64_t at = 0;
  const auto place = [&](Plane& plane, int bytes, int64_t units) {
    plane = {at, bytes, units};
    at += bytes * units * out;
  };
  const auto placeScales = [&] {
    if (traits.scaleBytes > 0) place(layout.scales, traits.scaleBytes, in / traits.scaleColumns);
  };
  if (traits.codeBits > 0) place(layout.codes, traits.codeBits * 4, groups);
  if (traits.twos) place(layout.twos, 8, groups);
  const bool scalesFirst = traits.scaleBytes == 4;  // read in 16 bytes: behind the codes of 16
  if (scalesFirst) placeScales();
  if (traits.ones) place(layout.ones, 4, groups);
  if (!scalesFirst) placeScales();
  if (traits.moreBytes > 0) place(layout.more, traits.moreBytes, in / traits.moreColumns);
  layout.bytes = at;
  return layout;
}

int64_t packedRowBytes(WeightFormat format, int64_t in) {
  const StoredBlock stored = storedBlock(format);
  return in / stored.columns * stored.bytes;
}

PackedArguments packedArguments(const PackedWeight& weight) {
  const PackedLayout layout = packedLayout(weight.format, weight.out, weight.in);
  PackedArguments arguments;
  arguments.codesAt = layout.codes.begin, arguments.twosAt = layout.twos.begin, arguments.onesAt = layout.ones.begin;
  arguments.scalesAt = layout.scales.begin, arguments.moreAt = layout.more.begin;
  arguments.codes = weight.data + layout.codes.begin;
  arguments.twos = weight.data + layout.twos.begin;
  arguments.ones = weight.data + layout.ones.begin;
  arguments.scales = weight.data + layout.scales.begin;
  arguments.more = weight.data + layout.more.begin;
  arguments.outerScales = weight.scales;
  arguments.zeros = weight.zeros;
  arguments.scaleType = weight.scaleType;
  arguments.scaleRows = static_cast<int>(weight.scaleRows);
  arguments.scaleColumns = static_cast<int>(weight.scaleColumns);
  arguments.scalesPerRow = static_cast<int>((weight.in + weight.scaleColumns - 1) / weight.scaleColumns);
  arguments.out = static_cast<int>(weight.out);
  arguments.in = static_cast<int>(weight.in);
  arguments.groups = static_cast<int>(weight.in / kGroup);
  return arguments;
}

void packRows(Stream stream, const PackedWeight& weight, int64_t firstRow, int64_t rows, const void* blocks) {
  kernelExpects(weight.in % storedBlock(weight.format).columns == 0, "a packed matrix has part of a block in a row");
  if (rows == 0) return;
  const PackedArguments matrix = packedArguments(weight);
  const int64_t items = rows * matrix.groups * 4;
  withFormat(weight.format, [&](auto format) {
    launchKernel(packKernel<decltype(format)::value>, dim3(blocksFor(items, 128)), dim3(128), 0, stream, matrix,
                 static_cast<const uint8_t*>(blocks), packedRowBytes(weight.format, weight.in), static_cast<int>(firstRow),
                 items);
  });
}

void dequantizeRows(Stream stream, TensorView out, const PackedWeight& weight, int64_t firstRow) {
  dequantize(stream, out, weight, nullptr, firstRow);
}

void embedPacked(Stream stream, TensorView out, const PackedWeight& table, TensorView ids, int64_t firstId) {
  dequantize(stream, out, table, static_cast<const int*>(ids.data), firstId);
}

}  // namespace headroom::engine::cuda
