// SPDX-License-Identifier: Apache-2.0
// How the CPU backend keeps weight matrices: 16 rows interleaved, so that one vector holds the same element (or four neighbours)
// of 16 rows. A group takes exactly the bytes of its 16 rows; rows that do not fill a group stay as they are, after the last
// group.
//   F32, F16   (in, 16)                     BF16  (in / 2, 16, 2), then (16) where `in` is odd
//   Q8_0       (blocks, 8, 16, 4) bytes with the sign bit flipped (value + 128), then scales (blocks, 16)
//   Q4_0       (blocks, 4, 16, 4) bytes as GGUF has them, then scales (blocks, 16)
//   Q4_1       (blocks, 4, 16, 4) bytes, then scales and minimums (blocks, 2, 16)
// Matrices of other types keep plain rows.
#pragma once

#include "engine/device/tensor.h"

namespace headroom::engine::cpu {

inline constexpr int64_t kGroupRows = 16;
inline constexpr int kPlainRows = 0, kRowGroups = 1;  // WeightMatrix::packing

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
