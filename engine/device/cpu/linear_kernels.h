// SPDX-License-Identifier: Apache-2.0
// Inner kernels of linear layers: some groups of 16 rows times a tile of tokens. Every output is summed over `in` in one fixed
// order, whatever the tile, so a token's result does not depend on its batch.
#pragma once

#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/cpu/row_groups.h"

#include <span>

namespace headroom::engine::cpu {

struct LinearTile {
  const std::byte* groups = nullptr;  // of the kernel's element type
  int64_t groupCount = 0, groupBytes = 0;
  int64_t in = 0;
  const void* activations = nullptr;  // one tile in the form of the kernel's family
  int64_t tokens = 0;                 // that are stored; the tile may be wider
  float* out = nullptr;               // first row of the first group, first token
  int64_t outStride = 0;              // floats from token to token
  const float* bias = nullptr;        // of the first row; may be null
};
using LinearKernel = void (*)(const LinearTile&);

// Kernels of one family: the same form of activations, for several tile widths.
struct LinearFamily {
  std::span<const int> tileTokens;                            // widths, ascending
  LinearKernel (*find)(DType dtype, size_t width) = nullptr;  // null where the family does not serve the type
  // Bytes of one token in a tile.
  int64_t (*tokenBytes)(int64_t in) = nullptr;
  // Fills a tile of `width` tokens from rows of floats; missing tokens become zeros.
  void (*fill)(const float* rows, int64_t stride, int64_t tokens, int64_t in, int width, void* tile) = nullptr;
  // What `fill` loses of a row. Null where it is too little to matter.
  void (*lost)(const float* row, int64_t in, float* rest) = nullptr;
};

// Weights as floats, activations as floats (in, width): serves every type that has row groups.
const LinearFamily& floatFamily(CpuLevel level);
// Weights and activations as 8-bit integers: all block types. BF16 weights and activations rounded to BF16. One family per
// instruction set, to be called only where the processor has it; null where the compiler does not target it.
const LinearFamily* int8FamilyAvx2();
const LinearFamily* int8FamilyAvx2Vnni();
const LinearFamily* int8FamilyAvx512Vnni();
const LinearFamily* bf16FamilyAvx512();

// One row group of a block type as floats (in, 16): what exact products use. Null where the instruction set has no such function
// for the type; then rows are read one by one.
using GroupToFloats = void (*)(const std::byte* group, int64_t in, float* to);
GroupToFloats groupToFloatsAvx2(DType dtype);
GroupToFloats groupToFloatsAvx512(DType dtype);  // for AVX-512 VNNI

}  // namespace headroom::engine::cpu
