// SPDX-License-Identifier: Apache-2.0
// Layouts: AutoAWQ (gemm), AutoGPTQ, compressed-tensors (vllm-project), FP8 as of DeepSeek-V3 and compressed-tensors.
#include "core/model/held_weights.h"

#include "core/model/tensor_split.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace headroom {
namespace {

constexpr int64_t kBlock = 32;

std::string_view formatOf(const QuantizationConfig& quantization) {
  const auto found = quantization.raw.is_object() ? quantization.raw.find("format") : quantization.raw.end();
  return quantization.raw.is_object() && found != quantization.raw.end() && found->is_string()
             ? std::string_view(found->get_ref<const std::string&>())
             : std::string_view();
}

bool isFp8(const QuantizationConfig& q) {
  return q.method == "fp8" || q.method == "fbgemm_fp8" ||
         (q.method == "compressed-tensors" &&
          (formatOf(q) == "float-quantized" || (formatOf(q) == "naive-quantized" && q.bits == 8)));
}

// "x.q_proj.qweight" and "qweight" give "x.q_proj".
std::optional<std::string> moduleOf(std::string_view name, std::string_view suffix) {
  if (name.size() <= suffix.size() + 1 || !name.ends_with(suffix) || name[name.size() - suffix.size() - 1] != '.') return {};
  return std::string(name.substr(0, name.size() - suffix.size() - 1));
}

// Blocks where scales reach over whole ones.
DType blocksOr(DType blocks, const HeldWeight& weight) {
  const bool whole = weight.in % kBlock == 0 && weight.groupColumns % kBlock == 0 && !weight.columnGroups;
  return whole ? blocks : DType::BF16;
}

constexpr std::array<std::string_view, 8> kParts = {"qzeros",           "scales",       "g_idx",       "weight_scale",
                                                    "weight_scale_inv", "weight_shape", "input_scale", "activation_scale"};

}  // namespace

bool canHoldQuantization(const ModelConfig& config) {
  if (!config.quantization) return true;
  const QuantizationConfig& q = *config.quantization;
  if (q.method == "gguf" || isFp8(q)) return true;
  if (q.method == "awq") return q.bits == 4 || q.bits == 0;
  if (q.method == "gptq") return q.bits == 4 || q.bits == 8;
  if (q.method == "compressed-tensors")
    return (formatOf(q) == "pack-quantized" && (q.bits == 4 || q.bits == 8) && q.symmetric) ||
           ((formatOf(q) == "int-quantized" || formatOf(q) == "naive-quantized") && q.bits == 8 && q.symmetric);
  return false;
}

std::optional<HeldWeight> heldWeightOf(const TensorEntry& tensor, const ModelConfig& config) {
  if (!config.quantization || config.quantization->method == "gguf" || !canHoldQuantization(config) || tensor.shape.size() != 2)
    return {};
  const QuantizationConfig& q = *config.quantization;
  HeldWeight weight;
  weight.bits = q.bits == 0 ? 4 : q.bits;
  const int64_t packed = 32 / std::max(1, weight.bits), rows = tensor.shape[0], columns = tensor.shape[1];
  const auto found = [&](std::string_view suffix) {
    const auto module = moduleOf(tensor.name, suffix);
    if (module) weight.module = *module;
    return module.has_value();
  };
  const auto grouped = [&] { weight.groupColumns = q.groupSize > 0 ? std::min(q.groupSize, weight.in) : weight.in; };
  if (q.method == "awq" && tensor.dtype == DType::I32 && found("qweight")) {
    weight.codes = HeldWeight::Codes::Awq;
    weight.in = rows;
    weight.out = columns * packed;
    grouped();
    weight.held = blocksOr(DType::Q5_0, weight);  // code less zero: -15 … 15
  } else if (q.method == "gptq" && tensor.dtype == DType::I32 && found("qweight")) {
    weight.codes = HeldWeight::Codes::Gptq;
    weight.in = rows * packed;
    weight.out = columns;
    grouped();
    weight.columnGroups = q.descAct;
    // Code less zero: -16 … 15; of 8 bits it fits a byte where the zero is 128.
    weight.held = blocksOr(weight.bits == 4 ? DType::Q5_0 : q.symmetric ? DType::Q8_0 : DType::BF16, weight);
  } else if (q.method == "compressed-tensors" && tensor.dtype == DType::I32 && found("weight_packed")) {
    weight.codes = HeldWeight::Codes::PackedInt;
    weight.out = rows;
    weight.in = columns * packed;
    grouped();
    weight.held = blocksOr(weight.bits == 4 ? DType::Q4_0 : DType::Q8_0, weight);
  } else if (q.method == "compressed-tensors" && tensor.dtype == DType::I8 && found("weight")) {
    weight.codes = HeldWeight::Codes::Int8;
    weight.out = rows;
    weight.in = columns;
    grouped();
    weight.held = blocksOr(DType::Q8_0, weight);
  } else if (tensor.dtype == DType::F8E4M3 && found("weight")) {
    weight.codes = HeldWeight::Codes::Fp8;
    weight.out = rows;
    weight.in = columns;
    weight.groupColumns = q.weightBlock.size() == 2 ? q.weightBlock[1] : columns;
  } else {
    return {};
  }
  return weight;
}

ModelSource heldByEngine(ModelSource model) {
  const ModelConfig& config = model.config;
  if (!config.quantization || config.quantization->method == "gguf" || !canHoldQuantization(config)) return model;
  std::vector<TensorEntry> held;
  std::unordered_map<std::string, bool> modules;
  for (TensorEntry& tensor : model.inventory.tensors) {
    if (!tensor.loaded) continue;
    const auto weight = heldWeightOf(tensor, config);
    if (!weight) continue;
    TensorEntry entry;
    entry.name = weight->module + ".weight";
    const TensorName name = readTensorName(entry.name, config);
    entry.role = name.role;
    entry.layer = name.layer;
    entry.expert = name.expert;
    entry.dtype = weight->held;
    entry.shape = {weight->out, weight->in};
    entry.location = tensor.location;
    entry.logicalParameters = 0;
    if (entry.role == TensorRole::Other || !assignSplit(entry, config)) continue;  // told as unknown where it is loaded
    tensor.loaded = false;
    modules.emplace(weight->module, true);
    held.push_back(std::move(entry));
  }
  for (TensorEntry& tensor : model.inventory.tensors) {
    for (std::string_view part : kParts) {
      const auto module = moduleOf(tensor.name, part);
      if (module && modules.contains(*module)) tensor.loaded = false;
    }
  }
  model.inventory.tensors.insert(model.inventory.tensors.end(), std::make_move_iterator(held.begin()),
                                 std::make_move_iterator(held.end()));
  return model;
}

}  // namespace headroom
