// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/row_groups.h"

#include "engine/device/cpu/block_formats.h"

namespace headroom::engine::cpu {
namespace {

// Where the pieces of one row lie, in the row and in its group. Pieces of one kind have a fixed step on both sides.
struct Pieces {
  int64_t bytes, count;           // of one piece; how many in a row
  int64_t rowBegin, rowStep;      // in the row
  int64_t groupBegin, groupStep;  // in the group, for row 0; row r adds r * bytes
  int64_t perStep = 1;            // pieces that follow each other in the row before rowStep applies
  uint8_t flip = 0;               // xor on every byte
};

template <class Visit>
void eachKindOfPiece(const WeightMatrix& matrix, const Visit& visit) {
  const int64_t in = matrix.in, blocks = in / 32;
  switch (matrix.dtype) {
    case DType::F32:
      visit(Pieces{4, in, 0, 4, 0, 64});
      break;
    case DType::F16:
      visit(Pieces{2, in, 0, 2, 0, 32});
      break;
    case DType::BF16:
      visit(Pieces{4, in / 2, 0, 4, 0, 64});
      if (in % 2) visit(Pieces{2, 1, (in - 1) * 2, 2, in / 2 * 64, 32});
      break;
    case DType::Q8_0:
      visit(Pieces{4, blocks * 8, 2, 34, 0, 64, 8, 0x80});
      visit(Pieces{2, blocks, 0, 34, blocks * 512, 32});
      break;
    case DType::Q4_0:
      visit(Pieces{4, blocks * 4, 2, 18, 0, 64, 4});
      visit(Pieces{2, blocks, 0, 18, blocks * 256, 32});
      break;
    case DType::Q4_1:
      visit(Pieces{4, blocks * 4, 4, 20, 0, 64, 4});
      visit(Pieces{2, blocks * 2, 0, 20, blocks * 256, 32, 2});
      break;
    default: {
      const BlockPieces pieces = blockPieces(matrix.dtype);
      const DTypeInfo& info = dtypeInfo(matrix.dtype);
      const int64_t count = in / info.blockElements;
      visit(Pieces{4, count * pieces.words, pieces.wordsAt, info.blockBytes, 0, 64, pieces.words});
      if (pieces.restBytes > 0)
        visit(Pieces{pieces.restBytes, count, pieces.restAt, info.blockBytes, count * pieces.words * 64,
                     kGroupRows * pieces.restBytes});
      break;
    }
  }
}

template <class Copy>
void eachPiece(const WeightMatrix& matrix, int64_t lane, const Copy& copy) {
  eachKindOfPiece(matrix, [&](const Pieces& p) {
    for (int64_t i = 0, step = 0; i < p.count; ++step)
      for (int64_t j = 0; j < p.perStep; ++j, ++i)
        copy(p.rowBegin + step * p.rowStep + j * p.bytes, p.groupBegin + i * p.groupStep + lane * p.bytes, p.bytes, p.flip);
  });
}

void copyPiece(std::byte* to, const std::byte* from, int64_t bytes, uint8_t flip) {
  if (bytes == 4) {
    uint32_t value = readAs<uint32_t>(from) ^ (flip * 0x01010101u);
    std::memcpy(to, &value, 4);
  } else if (bytes == 2) {
    std::memcpy(to, from, 2);
  } else {
    *to = *from;
  }
}

}  // namespace

bool hasRowGroups(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::Q8_0 || dtype == DType::Q4_0 ||
         dtype == DType::Q4_1 || blockPieces(dtype).words > 0;
}

void writeRow(const WeightMatrix& matrix, int64_t row, const void* from) {
  const int64_t group = row / kGroupRows;
  if (group >= fullGroups(matrix)) {
    std::memcpy(groupAt(matrix, 0) + row * rowBytes(matrix), from, static_cast<size_t>(rowBytes(matrix)));
    return;
  }
  std::byte* to = groupAt(matrix, group);
  eachPiece(matrix, row % kGroupRows, [&](int64_t inRow, int64_t inGroup, int64_t bytes, uint8_t flip) {
    copyPiece(to + inGroup, static_cast<const std::byte*>(from) + inRow, bytes, flip);
  });
}

void readRow(const WeightMatrix& matrix, int64_t row, void* to) {
  const int64_t group = row / kGroupRows;
  if (group >= fullGroups(matrix)) {
    std::memcpy(to, groupAt(matrix, 0) + row * rowBytes(matrix), static_cast<size_t>(rowBytes(matrix)));
    return;
  }
  const std::byte* from = groupAt(matrix, group);
  eachPiece(matrix, row % kGroupRows, [&](int64_t inRow, int64_t inGroup, int64_t bytes, uint8_t flip) {
    copyPiece(static_cast<std::byte*>(to) + inRow, from + inGroup, bytes, flip);
  });
}

void interleave(const float* from, int64_t in, float* to) {
  for (int64_t r = 0; r < kGroupRows; ++r)
    for (int64_t k = 0; k < in; ++k) to[k * kGroupRows + r] = from[r * in + k];
}

}  // namespace headroom::engine::cpu
