// SPDX-License-Identifier: Apache-2.0
// How quantized matrices lie in device memory. A stored block is taken apart into planes (codes of 4, 2, 1 or 8 bits, and
// scales), each kept for the whole matrix one behind the other, so that a warp's loads are whole and aligned; no byte is added:
// the planes together are as large as the blocks.
//
// Rows are grouped by 16 (the rows of a tensor-core tile; the last group may have fewer), columns by 32. A plane has units: of
// codes, one for each row and 32 columns (kGroup); of scales, one for each row and as many columns as share it. A group of rows
// lies as
//   (runs of units along the row, rows, lanes t = 0 … 3 of codes, units of the run)
// where a run has as many units as make 16 bytes a lane (fewer at the end of the row). Lane t of a unit of codes holds the
// columns 4t … 4t+3 and 16+4t … 16+4t+3, its slots 0 … 7: what that lane of a tensor-core fragment needs, with pairs of slots
// (2p, 2p+1) in reach of one shift:
//   4 bits: slot 2p in nibble p, slot 2p+1 in nibble p+4        2 bits: 2p at bits 2p, 2p+1 at bits 8+2p
//   1 bit: 2p at bit p, 2p+1 at bit 4+p                         8 bits: slot s in byte s; whole numbers with the sign bit flipped
//   (value + 128)
// Codebook formats have no planes of codes: a unit of 256 columns is the super-block itself without its scale.
#pragma once

#include "engine/device/cuda/kernels/kernel_types.h"

namespace headroom::engine::cuda {

enum class WeightFormat : uint8_t {
  Q8_0,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_NL,
  IQ4_XS,
  MXFP4,
  IQ1_S,  // codebooks and ternary digits: codebook_codes.cuh
  IQ1_M,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  TQ1_0,
  TQ2_0,
  Int4,    // (code - zero) * scale, a scale and zero for each row and `groupSize` columns: AWQ, GPTQ, compressed-tensors
  F8E4M3,  // code * scale, a scale for each tile of scaleRows x scaleColumns
};
inline constexpr int kWeightFormats = 24;

// Codebooks and ternary digits: linear layers of few tokens read them, others unpack them first.
inline constexpr bool hasCodebook(WeightFormat format) { return format >= WeightFormat::IQ1_S && format <= WeightFormat::TQ2_0; }

inline constexpr int kGroup = 32;  // columns
inline constexpr int kTileRows = 16;

// One plane: from byte `begin` of the matrix, `bytes` for each unit (of codes: all four lanes together), `units` along a row.
struct Plane {
  int64_t begin = 0;
  int bytes = 0;
  int64_t units = 0;
};

// Codes and scales of one matrix. Scales of the last two formats are in memory of their own.
struct PackedWeight {
  WeightFormat format = WeightFormat::Q8_0;
  int64_t out = 0, in = 0;
  const uint8_t* data = nullptr;
  // Int4: scales (out, in / groupSize), zeros (out, in / groupSize) U8; null zeros: 8. F8E4M3: scales (ceil(out /
  // scaleRows), ceil(in / scaleColumns)); scaleColumns a multiple of 32, or at least `in`.
  const void* scales = nullptr;
  DType scaleType = DType::F32;  // F32, F16 or BF16
  const uint8_t* zeros = nullptr;
  int64_t scaleRows = 1, scaleColumns = 128;  // Int4: 1, groupSize
};

// Planes: at most three of codes (4 or 8 bits, 2, 1) and two of scales, in an order that keeps every access aligned.
struct PackedLayout {
  Plane codes, twos, ones, scales, more;  // `bytes` 0: none
  int64_t bytes = 0;                      // of all planes
};
PackedLayout packedLayout(WeightFormat format, int64_t out, int64_t in);
// Bytes of `in` columns of one row as stored: what packing reads and takes.
int64_t packedRowBytes(WeightFormat format, int64_t in);

// Rows [firstRow, firstRow + rows) of a matrix from `blocks` (device memory, stored blocks row by row without gaps) into
// `weight`'s planes. The stored form of Int4: 16 bytes for 32 columns, column 2i in the low nibble of byte i; of F8E4M3: its
// bytes.
void packRows(Stream stream, const PackedWeight& weight, int64_t firstRow, int64_t rows, const void* blocks);

// out (rows, in) = rows of the matrix in F32, F16 or BF16, from `firstRow`.
void dequantizeRows(Stream stream, TensorView out, const PackedWeight& weight, int64_t firstRow);
// out(t) = row ids[t] - firstId, zeros where that is outside: a quantized embedding table. ids: I32 (1, tokens).
void embedPacked(Stream stream, TensorView out, const PackedWeight& table, TensorView ids, int64_t firstId);

}  // namespace headroom::engine::cuda
