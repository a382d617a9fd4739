// SPDX-License-Identifier: Apache-2.0
// How the CPU backend keeps weight matrices: 16 rows interleaved, so that one vector holds the same element (or four neighbours)
// of 16 rows. A group takes exactly the bytes of its 16 rows; rows that do not fill a group stay as they are, after the last
// group.
//   F32, F16   (in, 16)                     BF16  (in / 2, 16, 2), then (16) where `in` is odd
//   Q8_0       (blocks, 8, 16, 4) bytes with the sign bit flipped (value + 128), then scales (blocks, 16)
//   Q4_0       (blocks, 4, 16, 4) bytes as GGUF has them, then scales (blocks, 16)
//   Q4_1       (blocks, 4, 16, 4) bytes, then scales and minimums (blocks, 2, 16)
//   others     (blocks, words, 16, 4) bytes as GGUF has them, then what is left of each block, 2 bytes or 1: (blocks, 16, rest)
#pragma once

#include "engine/device/tensor.h"

namespace headroom::engine::cpu {

inline constexpr int64_t kGroupRows = 16;
inline constexpr int kPlainRows = 0, kRowGroups = 1;  // WeightMatrix::packing

// How a block of the `others` divides: words of 4 bytes, and before or behind them a scale of 2 bytes or 1.
struct BlockPieces {
  int words = 0;    // 0: not such a type
  int wordsAt = 0;  // byte in the block where they begin
  int restBytes = 0, restAt = 0;
};
constexpr BlockPieces blockPieces(DType dtype) {
  switch (dtype) {
    case DType::Q5_0:
      return {5, 2, 2, 0};
    case DType::Q5_1:
      return {6, 0, 0, 0};
    case DType::Q2_K:
      return {21, 0, 0, 0};
    case DType::Q3_K:
      return {27, 0, 2, 108};
    case DType::Q4_K:
      return {36, 0, 0, 0};
    case DType::Q5_K:
      return {44, 0, 0, 0};
    case DType::Q6_K:
      return {52, 0, 2, 208};
    case DType::IQ4_NL:
      return {4, 2, 2, 0};
    case DType::IQ4_XS:
      return {34, 0, 0, 0};
    case DType::MXFP4:
      return {4, 1, 1, 0};
    case DType::IQ2_XXS:
      return {16, 2, 2, 0};
    case DType::IQ2_XS:
      return {18, 2, 2, 0};
    case DType::IQ2_S:
      return {20, 2, 2, 0};
    case DType::IQ3_XXS:
      return {24, 2, 2, 0};
    case DType::IQ3_S:
      return {27, 2, 2, 0};
    case DType::IQ1_S:
      return {12, 2, 2, 0};
    case DType::IQ1_M:
      return {14, 0, 0, 0};
    case DType::TQ1_0:
      return {13, 0, 2, 52};
    case DType::TQ2_0:
      return {16, 0, 2, 64};
    default:
      return {};
  }
}
bool hasRowGroups(DType dtype);
inline int64_t rowBytes(const WeightMatrix& matrix) { return storageBytes(matrix.dtype, matrix.in).count(); }
inline int64_t fullGroups(const WeightMatrix& matrix) { return matrix.packing == kRowGroups ? matrix.out / kGroupRows : 0; }
// The start of group `group`, or of the plain rows after the last group.
inline std::byte* groupAt(const WeightMatrix& matrix, int64_t group) {
  return static_cast<std::byte*>(matrix.storage.data()) + group * kGroupRows * rowBytes(matrix);
}
// One row in the matrix's own type, without packing. `scratch` as in readRow: rowBytes(matrix).
void writeRow(const WeightMatrix& matrix, int64_t row, const void* from);
void readRow(const WeightMatrix& matrix, int64_t row, void* to);
// 16 rows of floats to (in, 16); row r begins at from + r * in.
void interleave(const float* from, int64_t in, float* to);

}  // namespace headroom::engine::cpu
