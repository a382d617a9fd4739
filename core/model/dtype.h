// SPDX-License-Identifier: Apache-2.0
// Element types of stored tensors: plain numbers and GGUF's block formats.
#pragma once

#include "core/units.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom {

enum class DType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  F8E4M3,
  F8E5M2,
  F8E8M0,
  F4E2M1,
  I64,
  I32,
  I16,
  I8,
  U8,
  Bool,
  // GGUF blocks: https://github.com/ggml-org/ggml (block_* structures of ggml-common.h)
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q8_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Q8_K,
  IQ2_XXS,
  IQ2_XS,
  IQ3_XXS,
  IQ1_S,
  IQ4_NL,
  IQ3_S,
  IQ2_S,
  IQ4_XS,
  IQ1_M,
  TQ1_0,
  TQ2_0,
  MXFP4,
};

struct DTypeInfo {
  std::string_view name;  // as users write it: "bfloat16", "Q4_1"
  int64_t blockElements;  // elements that are stored together along a row: 1, 32 or 256 (2 for F4E2M1)
  int64_t blockBytes;     // bytes of one such block
};

const DTypeInfo& dtypeInfo(DType dtype);
inline std::string_view dtypeName(DType dtype) { return dtypeInfo(dtype).name; }
// Quantized GGUF blocks; false for plain numbers.
bool isBlockQuantized(DType dtype);
// Plain floating types of 16 bits or more.
bool isFloating(DType dtype);
// Bytes of `elements` of one row; elements must be a multiple of the block.
Bytes storageBytes(DType dtype, int64_t elements);
// "float32", "bf16", "half", "Q4_1", "fp8", "F16" (the safetensors spelling) …
std::optional<DType> parseDType(std::string_view name);
// The number in GGUF tensor infos; empty for a type newer than this reader.
std::optional<DType> dtypeOfGgufType(uint32_t ggmlType);

}  // namespace headroom
