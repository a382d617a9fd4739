// SPDX-License-Identifier: Apache-2.0
#include "core/model/engine_support.h"

#include "core/model/held_weights.h"

#include <algorithm>

namespace headroom {
namespace {

void add(ModelConfig& config, std::string what) {
  auto& list = config.missingInEngine;
  if (std::find(list.begin(), list.end(), what) == list.end()) list.push_back(std::move(what));
}

std::string_view attentionWords(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::Full:
    case AttentionKind::SlidingWindow:
    case AttentionKind::ChunkedWindow:
    case AttentionKind::Latent:
    case AttentionKind::LinearAttention:
      return {};
    case AttentionKind::Mamba:
      return "Mamba layers";
    case AttentionKind::ShortConvolution:
      return "short convolutions";
    case AttentionKind::CrossAttention:
      return "cross attention";
    case AttentionKind::Compressed:
      return "compressed attention";
    case AttentionKind::None:
      return "layers without attention";
  }
  return {};
}

// GGUF's Q8_1 and Q8_K are forms of activations: no file holds weights of them.
bool loadable(DType dtype) {
  if (dtype == DType::Q8_1 || dtype == DType::Q8_K) return false;
  return isBlockQuantized(dtype) || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

}  // namespace

void noteMissingInEngine(ModelConfig& config) {
  for (const auto& layer : config.layers) {
    if (const auto words = attentionWords(layer.attention); !words.empty()) add(config, std::string(words));
    if (layer.ffn == FfnKind::MixtureOfExperts && layer.moe.expertsPerToken == 0)
      add(config, "experts of unknown number for a token");
    if (layer.attention == AttentionKind::LinearAttention && layer.linear.keyHeads == 0)
      add(config, "this family's linear attention");
    if (layer.attention == AttentionKind::Latent && config.checkpoint.qkvBias) add(config, "biases of latent attention");
    if (layer.ffn == FfnKind::None) add(config, "layers without an MLP");
  }
  const DecoderTraits& decoder = config.decoder;
  if (config.checkpoint.queryGate && config.checkpoint.qkvBias) add(config, "biases of gated queries");
  if (!decoder.gatedMlp) add(config, "MLP without a gate");
  if (config.checkpoint.headBias) add(config, "a bias of the output head");
  if (!canHoldQuantization(config)) {
    const QuantizationConfig& quantization = *config.quantization;
    add(config, quantization.bits > 0 ? fmt::format("{} quantization of {} bits", quantization.method, quantization.bits)
                                      : quantization.method + " quantization");
  }
}

void noteMissingFormats(ModelSource& source) {
  const bool quantized = source.config.quantization && source.config.quantization->method != "gguf";
  const TensorInventory held = quantized ? heldByEngine(source).inventory : TensorInventory{};
  const TensorInventory& inventory = quantized ? held : source.inventory;
  for (const auto& tensor : inventory.tensors)
    if (tensor.loaded && tensor.role == TensorRole::KvUp && !isFloating(tensor.dtype))
      add(source.config, fmt::format("{} weights that must be transposed ({})", dtypeName(tensor.dtype), tensor.name));
  for (const auto& tensor : inventory.tensors)
    if (tensor.loaded && !loadable(tensor.dtype)) add(source.config, fmt::format("{} weights", dtypeName(tensor.dtype)));
}

}  // namespace headroom
