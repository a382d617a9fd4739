// SPDX-License-Identifier: Apache-2.0
#include "core/model/what_if_quantization.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace headroom {
namespace {

struct Method {
  std::string_view name, method;
  int bits;
  int64_t group;
  std::string_view format;  // of compressed-tensors
};
constexpr Method kMethods[] = {
    {"awq", "awq", 4, 128, ""},
    {"gptq", "gptq", 4, 128, ""},
    {"gptq-int8", "gptq", 8, 128, ""},
    {"fp8", "fp8", 8, 0, ""},
    {"fp8-block", "fp8", 8, 0, "block"},
    {"fp8-dynamic", "compressed-tensors", 8, 0, "float-quantized"},
    {"w8a8", "compressed-tensors", 8, 0, "int-quantized"},
    {"w4a16", "compressed-tensors", 4, 128, "pack-quantized"},
    {"nvfp4", "modelopt", 4, 16, ""},
    {"mxfp4", "mxfp4", 4, 32, ""},
    {"bitsandbytes", "bitsandbytes", 4, 0, ""},
    {"nf4", "bitsandbytes", 4, 0, ""},
    {"int8", "bitsandbytes", 8, 0, ""},
};

struct Mix {
  std::string_view name;
  DType main;
};
constexpr Mix kMixes[] = {
    {"Q2_K", DType::Q2_K}, {"Q3_K_S", DType::Q3_K}, {"Q3_K_M", DType::Q3_K},   {"Q3_K_L", DType::Q3_K},
    {"Q4_0", DType::Q4_0}, {"Q4_1", DType::Q4_1},   {"Q4_K_S", DType::Q4_K},   {"Q4_K_M", DType::Q4_K},
    {"Q5_0", DType::Q5_0}, {"Q5_1", DType::Q5_1},   {"Q5_K_S", DType::Q5_K},   {"Q5_K_M", DType::Q5_K},
    {"Q6_K", DType::Q6_K}, {"Q8_0", DType::Q8_0},   {"IQ4_NL", DType::IQ4_NL}, {"IQ4_XS", DType::IQ4_XS},
    {"F16", DType::F16},   {"BF16", DType::BF16},
};

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

const Mix* findMix(std::string_view name) {
  const std::string wanted = upper(name);
  const auto found = std::find_if(std::begin(kMixes), std::end(kMixes), [&](const Mix& mix) { return mix.name == wanted; });
  return found == std::end(kMixes) ? nullptr : found;
}

// Blocks of 256 do not fit rows of another length; these take their place.
DType withoutSuperBlocks(DType type) {
  switch (type) {
    case DType::Q2_K:
    case DType::Q3_K:
    case DType::IQ4_XS:
      return DType::IQ4_NL;
    case DType::Q4_K:
      return DType::Q5_0;
    case DType::Q5_K:
      return DType::Q5_1;
    case DType::Q6_K:
      return DType::Q8_0;
    default:
      return type;
  }
}

bool isDownMatrix(TensorRole role) { return role == TensorRole::Down || role == TensorRole::ExpertDown; }

// A config.json that says so, for everything that reads keys.
QuantizationConfig descriptionOf(const Method& method) {
  QuantizationConfig quantization;
  quantization.method = method.method;
  quantization.bits = method.bits;
  quantization.groupSize = method.group;
  quantization.zeroPoint = method.method == "awq";
  quantization.ignored = {"lm_head"};
  quantization.raw = {{"quant_method", method.method}, {"bits", method.bits}};
  if (method.group > 0) quantization.raw["group_size"] = method.group;
  if (method.format == "block") {
    quantization.weightBlock = {128, 128};
    quantization.raw["weight_block_size"] = {128, 128};
  } else if (!method.format.empty()) {
    quantization.raw["format"] = method.format;
  }
  if (method.method == "bitsandbytes") quantization.raw["bnb_4bit_use_double_quant"] = method.bits == 4;
  return quantization;
}

}  // namespace

std::vector<std::string_view> whatIfQuantizations() {
  std::vector<std::string_view> names;
  for (const Method& method : kMethods) names.push_back(method.name);
  for (const Mix& mix : kMixes) names.push_back(mix.name);
  return names;
}

bool isGgufMix(std::string_view method) { return findMix(method) != nullptr; }

DType ggufMixType(std::string_view name, const TensorEntry& tensor, const ModelConfig& config) {
  const Mix* mix = findMix(name);
  expects(mix != nullptr, "a known mix");
  if (tensor.shape.size() < 2 || tensor.role == TensorRole::Router || tensor.role == TensorRole::SharedRouter) return DType::F32;
  if (!isBlockQuantized(mix->main)) return mix->main;
  const std::string_view kind = mix->name;
  DType type = mix->main;
  const int64_t layers = config.layerCount(), layer = tensor.layer;
  const bool grouped = config.kvHeads > 0 && config.qHeads / config.kvHeads >= 4, eight = config.layers.front().moe.experts == 8;
  // The first and last eighth of the layers, and every third between.
  const bool more = layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
  const bool head = tensor.role == TensorRole::LmHead || (tensor.role == TensorRole::TokenEmbedding && config.tieWordEmbeddings);
  if (head) {
    type = mix->main == DType::Q8_0 ? DType::Q8_0 : DType::Q6_K;
  } else if (tensor.role == TensorRole::V || tensor.role == TensorRole::Qkv) {
    const bool v = tensor.role == TensorRole::V;
    if (v && kind == "Q2_K") type = grouped ? DType::Q4_K : DType::Q3_K;
    if (v && kind == "Q3_K_M") type = layer < 2 ? DType::Q5_K : DType::Q4_K;
    if (v && kind == "Q3_K_L") type = DType::Q5_K;
    if (v && (kind == "IQ4_NL" || kind == "IQ4_XS") && grouped) type = DType::Q5_K;
    if (v && (kind == "Q4_K_M" || kind == "Q5_K_M") && more) type = DType::Q6_K;
    if (v && kind == "Q4_K_S" && layer < 4) type = DType::Q5_K;
    // 80 layers with eight queries a key head: the values cost little there.
    if (v && layers == 80 && (type == DType::Q3_K || type == DType::Q4_K)) type = DType::Q5_K;
    if (v && eight) type = DType::Q8_0;
    if (!v && (kind == "Q3_K_M" || kind == "Q3_K_L")) type = DType::Q4_K;
    if (!v && kind == "Q4_K_M") type = DType::Q5_K;
    if (!v && kind == "Q5_K_M") type = DType::Q6_K;
  } else if (tensor.role == TensorRole::K && eight) {
    type = DType::Q8_0;
  } else if (isDownMatrix(tensor.role)) {
    if (kind == "Q2_K") type = DType::Q3_K;
    if (kind == "Q3_K_M") type = layer < layers / 16 ? DType::Q5_K : DType::Q4_K;
    if (kind == "Q3_K_L") type = DType::Q5_K;
    if ((kind == "Q4_K_M" || kind == "Q5_K_M") && more) type = DType::Q6_K;
    if (kind == "Q4_K_S" && layer < layers / 8) type = DType::Q5_K;
    if ((kind == "IQ4_NL" || kind == "IQ4_XS") && layer < layers / 8) type = DType::Q5_K;
    if (kind == "Q4_0" && layer < layers / 8) type = DType::Q4_1;
    if (kind == "Q5_0" && layer < layers / 8) type = DType::Q5_1;
  } else if (tensor.role == TensorRole::O) {
    if (eight) {
      if (kind == "Q2_K" || kind.starts_with("Q3_K") || kind == "Q4_K_S" || kind == "Q4_K_M" || kind == "IQ4_NL" ||
          kind == "IQ4_XS")
        type = DType::Q5_K;
    } else if (kind == "Q2_K") {
      type = DType::Q3_K;
    } else if (kind == "Q3_K_M") {
      type = DType::Q4_K;
    } else if (kind == "Q3_K_L") {
      type = DType::Q5_K;
    }
  }
  const int64_t row = tensor.shape.back();
  if (row % dtypeInfo(type).blockElements != 0) type = withoutSuperBlocks(type);
  if (row % dtypeInfo(type).blockElements != 0) type = DType::F16;
  return type;
}

Result<ModelSource> quantizedAs(const ModelSource& model, std::string_view method) {
  const Mix* mix = findMix(method);
  const auto* found =
      std::find_if(std::begin(kMethods), std::end(kMethods), [&](const Method& one) { return one.name == method; });
  if (!mix && found == std::end(kMethods))
    return failure("--quantization", std::string(method), fmt::format("one of {}", fmt::join(whatIfQuantizations(), ", ")));
  if (model.config.quantization)
    return failure("--quantization", std::string(method),
                   fmt::format("none: the model is quantized already ({})", model.config.quantization->method),
                   "open the 16-bit checkpoint");
  ModelSource result;
  result.config = model.config;
  result.path = model.path;
  result.folder = model.folder;
  const std::string warning = fmt::format("planned as if quantized to {}: no such checkpoint was opened", method);
  result.config.warnings.push_back(warning);
  if (!mix) {
    if (!model.config.raw.is_object())
      return failure("--quantization", std::string(method), "a model with a config.json",
                     "a GGUF can be planned as another GGUF type");
    result.config.quantization = descriptionOf(*found);
    result.config.raw["quantization_config"] = result.config.quantization->raw;
    result.inventory = inventoryOfConfig(result.config);
    return result;
  }
  QuantizationConfig quantization;
  quantization.method = "gguf";
  quantization.raw = {{"quant_method", "gguf"}, {"type", mix->name}};
  result.config.quantization = std::move(quantization);
  result.inventory = model.inventory;
  std::erase_if(result.inventory.tensors, [&](const TensorEntry& tensor) { return !tensor.loaded; });
  for (TensorEntry& tensor : result.inventory.tensors) {
    tensor.location.reset();
    tensor.dtype = ggufMixType(mix->name, tensor, model.config);
  }
  return result;
}

}  // namespace headroom
