// SPDX-License-Identifier: Apache-2.0
// Layouts: AutoAWQ (gemm), AutoGPTQ, compressed-tensors (vllm-project), FP8 as of DeepSeek-V3 and compressed-tensors, MXFP4 as of
// gpt-oss (https://huggingface.co/openai/gpt-oss-20b).
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

// The first group of a compressed-tensors configuration lets g_idx say the group of each column.
bool hasColumnGroups(const QuantizationConfig& q) {
  const nlohmann::json none;
  const auto inside = [&none](const nlohmann::json& object, const char* key) -> const nlohmann::json& {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() ? *found : none;
  };
  const nlohmann::json& groups = inside(q.raw, "config_groups");
  if (!groups.is_object() || groups.empty()) return false;
  const nlohmann::json& order = inside(inside(*groups.begin(), "weights"), "actorder");
  return order == "group" || order == "dynamic";
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

constexpr std::array<std::string_view, 10> kParts = {
    "qzeros",       "scales",      "g_idx",           "weight_scale", "weight_scale_inv", "weight_shape", "weight_zero_point",
    "weight_g_idx", "input_scale", "activation_scale"};

// "…experts.gate_up_proj_blocks", four-dimensional.
std::optional<HeldWeight> mxfp4WeightOf(const TensorEntry& tensor) {
  constexpr std::string_view kBlocks = "_blocks";
  if (tensor.dtype != DType::U8 || tensor.shape.size() != 4 || tensor.shape[3] != kBlock / 2 || !tensor.name.ends_with(kBlocks))
    return {};
  HeldWeight weight;
  weight.codes = HeldWeight::Codes::Mxfp4;
  weight.bits = 4;
  weight.module = tensor.name.substr(0, tensor.name.size() - kBlocks.size());
  weight.experts = tensor.shape[0];
  weight.out = tensor.shape[1];
  weight.in = tensor.shape[2] * kBlock;
  weight.groupColumns = kBlock;
  weight.held = DType::MXFP4;
  return weight;
}

}  // namespace

bool canHoldQuantization(const ModelConfig& config) {
  if (!config.quantization) return true;
  const QuantizationConfig& q = *config.quantization;
  if (q.method == "gguf" || q.method == "mxfp4" || isFp8(q)) return true;
  if (q.method == "awq") return q.bits == 4 || q.bits == 0;
  if (q.method == "gptq") return q.bits == 4 || q.bits == 8;
  if (q.method == "compressed-tensors")
    return (formatOf(q) == "pack-quantized" && (q.bits == 4 || q.bits == 8)) ||
           ((formatOf(q) == "int-quantized" || formatOf(q) == "naive-quantized") && q.bits == 8);
  return false;
}

std::optional<HeldWeight> heldWeightOf(const TensorEntry& tensor, const ModelConfig& config) {
  if (!config.quantization || config.quantization->method == "gguf" || !canHoldQuantization(config)) return {};
  const QuantizationConfig& q = *config.quantization;
  if (q.method == "mxfp4") return mxfp4WeightOf(tensor);
  if (tensor.shape.size() != 2) return {};
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
    weight.columnGroups = hasColumnGroups(q);
    weight.zeroPoints = !q.symmetric;
    // Code less zero: of 4 bits -15 … 15; of 8 bits it fits a byte where the zero is 128.
    const DType symmetric = weight.bits == 4 ? DType::Q4_0 : DType::Q8_0, other = weight.bits == 4 ? DType::Q5_0 : DType::BF16;
    weight.held = blocksOr(weight.zeroPoints ? other : symmetric, weight);
  } else if (q.method == "compressed-tensors" && tensor.dtype == DType::I8 && found("weight")) {
    weight.codes = HeldWeight::Codes::Int8;
    weight.out = rows;
    weight.in = columns;
    grouped();
    weight.zeroPoints = !q.symmetric;
    weight.held = blocksOr(weight.zeroPoints ? DType::BF16 : DType::Q8_0, weight);
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
    entry.dtype = weight->held;
    entry.location = tensor.location;
    entry.logicalParameters = 0;
    if (weight->experts > 0) {
      entry.name = weight->module;
      entry.role = tensor.role;
      entry.layer = tensor.layer;
      entry.shape = {weight->experts, weight->out, weight->in};
    } else {
      entry.name = weight->module + ".weight";
      const TensorName name = readTensorName(entry.name, config);
      entry.role = name.role;
      entry.layer = name.layer;
      entry.expert = name.expert;
      entry.shape = {weight->out, weight->in};
    }
    if (entry.role == TensorRole::Other || !assignSplit(entry, config)) continue;  // told as unknown where it is loaded
    if (entry.role == TensorRole::ExpertGateUp) entry.segments = tensor.segments;  // rows of gate and up may alternate
    tensor.loaded = false;
    modules.emplace(weight->module, true);
    held.push_back(std::move(entry));
  }
  for (TensorEntry& tensor : model.inventory.tensors) {
    for (std::string_view part : kParts) {
      const auto module = moduleOf(tensor.name, part);
      if (module && modules.contains(*module)) tensor.loaded = false;
    }
    if (constexpr std::string_view kScales = "_scales"; tensor.name.ends_with(kScales))
      if (modules.contains(tensor.name.substr(0, tensor.name.size() - kScales.size()))) tensor.loaded = false;
  }
  model.inventory.tensors.insert(model.inventory.tensors.end(), std::make_move_iterator(held.begin()),
                                 std::make_move_iterator(held.end()));
  return model;
}

}  // namespace headroom
