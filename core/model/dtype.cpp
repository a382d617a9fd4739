// SPDX-License-Identifier: Apache-2.0
// The table of element types: names, block sizes, the numbers GGUF gives them, and the spellings people use.
#include "core/model/dtype.h"

#include "core/result.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace headroom {
namespace {

constexpr int kNotInGguf = -1;

struct Row {
  DType dtype;
  DTypeInfo info;
  int ggufType;
};

// In the order of DType. Block layouts: block_* structures of ggml-common.h, type numbers: enum ggml_type of ggml.h.
constexpr std::array kRows = {
    Row{DType::F64, {"float64", 1, 8}, 28},
    Row{DType::F32, {"float32", 1, 4}, 0},
    Row{DType::F16, {"float16", 1, 2}, 1},
    Row{DType::BF16, {"bfloat16", 1, 2}, 30},
    Row{DType::F8E4M3, {"float8_e4m3", 1, 1}, kNotInGguf},
    Row{DType::F8E5M2, {"float8_e5m2", 1, 1}, kNotInGguf},
    Row{DType::F8E8M0, {"float8_e8m0", 1, 1}, kNotInGguf},
    Row{DType::F4E2M1, {"float4_e2m1", 2, 1}, kNotInGguf},
    Row{DType::I64, {"int64", 1, 8}, 27},
    Row{DType::I32, {"int32", 1, 4}, 26},
    Row{DType::I16, {"int16", 1, 2}, 25},
    Row{DType::I8, {"int8", 1, 1}, 24},
    Row{DType::U8, {"uint8", 1, 1}, kNotInGguf},
    Row{DType::Bool, {"bool", 1, 1}, kNotInGguf},
    Row{DType::Q4_0, {"Q4_0", 32, 18}, 2},
    Row{DType::Q4_1, {"Q4_1", 32, 20}, 3},
    Row{DType::Q5_0, {"Q5_0", 32, 22}, 6},
    Row{DType::Q5_1, {"Q5_1", 32, 24}, 7},
    Row{DType::Q8_0, {"Q8_0", 32, 34}, 8},
    Row{DType::Q8_1, {"Q8_1", 32, 36}, 9},
    Row{DType::Q2_K, {"Q2_K", 256, 84}, 10},
    Row{DType::Q3_K, {"Q3_K", 256, 110}, 11},
    Row{DType::Q4_K, {"Q4_K", 256, 144}, 12},
    Row{DType::Q5_K, {"Q5_K", 256, 176}, 13},
    Row{DType::Q6_K, {"Q6_K", 256, 210}, 14},
    Row{DType::Q8_K, {"Q8_K", 256, 292}, 15},
    Row{DType::IQ2_XXS, {"IQ2_XXS", 256, 66}, 16},
    Row{DType::IQ2_XS, {"IQ2_XS", 256, 74}, 17},
    Row{DType::IQ3_XXS, {"IQ3_XXS", 256, 98}, 18},
    Row{DType::IQ1_S, {"IQ1_S", 256, 50}, 19},
    Row{DType::IQ4_NL, {"IQ4_NL", 32, 18}, 20},
    Row{DType::IQ3_S, {"IQ3_S", 256, 110}, 21},
    Row{DType::IQ2_S, {"IQ2_S", 256, 82}, 22},
    Row{DType::IQ4_XS, {"IQ4_XS", 256, 136}, 23},
    Row{DType::IQ1_M, {"IQ1_M", 256, 56}, 29},
    Row{DType::TQ1_0, {"TQ1_0", 256, 54}, 34},
    Row{DType::TQ2_0, {"TQ2_0", 256, 66}, 35},
    Row{DType::MXFP4, {"MXFP4", 32, 17}, 39},
};

constexpr bool inOrderOfEnum() {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<size_t>(kRows[i].dtype) != i) return false;
  return static_cast<size_t>(DType::MXFP4) + 1 == kRows.size();
}
static_assert(inOrderOfEnum(), "kRows must list every DType in order");

// Spellings besides the table's own names, in lower case: torch, safetensors, llama.cpp and the shells of the field.
constexpr auto kSpellings = std::to_array<std::pair<std::string_view, DType>>({
    {"double", DType::F64},
    {"f64", DType::F64},
    {"fp64", DType::F64},
    {"float", DType::F32},
    {"f32", DType::F32},
    {"fp32", DType::F32},
    {"half", DType::F16},
    {"f16", DType::F16},
    {"fp16", DType::F16},
    {"bf16", DType::BF16},
    {"f8_e4m3", DType::F8E4M3},
    {"float8_e4m3fn", DType::F8E4M3},
    {"fp8_e4m3", DType::F8E4M3},
    {"fp8", DType::F8E4M3},
    {"float8", DType::F8E4M3},
    {"e4m3", DType::F8E4M3},
    {"f8_e5m2", DType::F8E5M2},
    {"fp8_e5m2", DType::F8E5M2},
    {"e5m2", DType::F8E5M2},
    {"f8_e8m0", DType::F8E8M0},
    {"float8_e8m0fnu", DType::F8E8M0},
    {"ue8m0", DType::F8E8M0},
    {"f4", DType::F4E2M1},
    {"fp4", DType::F4E2M1},
    {"float4_e2m1fn_x2", DType::F4E2M1},
    {"i64", DType::I64},
    {"long", DType::I64},
    {"i32", DType::I32},
    {"int", DType::I32},
    {"i16", DType::I16},
    {"short", DType::I16},
    {"i8", DType::I8},
    {"u8", DType::U8},
    {"byte", DType::U8},
    {"boolean", DType::Bool},
    {"q8", DType::Q8_0},
    {"q4", DType::Q4_0},
});

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

const DTypeInfo& dtypeInfo(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  expects(index < kRows.size(), "DType outside its enumeration");
  return kRows[index].info;
}

bool isBlockQuantized(DType dtype) { return dtype >= DType::Q4_0; }

bool isFloating(DType dtype) { return dtype <= DType::BF16; }

Bytes storageBytes(DType dtype, int64_t elements) {
  const DTypeInfo& info = dtypeInfo(dtype);
  expects(elements >= 0 && elements % info.blockElements == 0, "a row holds whole blocks");
  return Bytes(elements / info.blockElements * info.blockBytes);
}

std::optional<DType> parseDType(std::string_view name) {
  std::string spelling = lowered(name);
  if (spelling.starts_with("torch.")) spelling.erase(0, 6);
  for (const Row& row : kRows)
    if (lowered(row.info.name) == spelling) return row.dtype;
  for (const auto& [known, dtype] : kSpellings)
    if (known == spelling) return dtype;
  return std::nullopt;
}

std::optional<DType> dtypeOfGgufType(uint32_t ggmlType) {
  for (const Row& row : kRows)
    if (row.ggufType >= 0 && static_cast<uint32_t>(row.ggufType) == ggmlType) return row.dtype;
  return std::nullopt;
}

}  // namespace headroom
