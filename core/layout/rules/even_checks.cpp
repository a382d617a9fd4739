// SPDX-License-Identifier: Apache-2.0
#include "core/layout/rules/even_checks.h"

namespace headroom {
namespace {

template <class Wanted>
const LayerSpec* firstLayer(const ModelConfig& config, Wanted wanted) {
  for (const LayerSpec& layer : config.layers) {
    if (wanted(layer)) return &layer;
  }
  return nullptr;
}

}  // namespace

const LayerSpec* firstAttentionLayer(const ModelConfig& config) {
  return firstLayer(config, [](const LayerSpec& l) { return l.qHeads > 0 && l.attention != AttentionKind::None; });
}

const LayerSpec* firstDenseLayer(const ModelConfig& config) {
  return firstLayer(config, [](const LayerSpec& l) { return l.ffn == FfnKind::Dense; });
}

const LayerSpec* firstExpertLayer(const ModelConfig& config) {
  return firstLayer(config, [](const LayerSpec& l) { return l.ffn == FfnKind::MixtureOfExperts; });
}

bool kvHeadsDivide(const LayerSpec& layer, int tp) {
  if (layer.attention == AttentionKind::Latent || layer.kvHeads <= 0) return true;
  return layer.kvHeads >= tp ? layer.kvHeads % tp == 0 : tp % layer.kvHeads == 0;
}

std::string CutGroup::text(int tp) const {
  return fmt::format("{} {} / {} = {} cut a group of {} ({})", what, width, tp, share, group, divisionText(share, group));
}

std::optional<CutGroup> firstCutGroup(const RuleContext& context, int tp, bool experts) {
  const ModelConfig& config = context.model.config;
  const auto& quantization = config.quantization;
  if (!quantization || context.quantization.empty()) return std::nullopt;
  int64_t group = quantization->groupSize;
  if (context.quantization == "fp8") group = quantization->weightBlock.size() == 2 ? quantization->weightBlock[1] : 0;
  if (group <= 0) return std::nullopt;
  auto cut = [&](const char* what, int64_t width) -> std::optional<CutGroup> {
    if (width <= 0 || width % tp != 0 || width / tp % group == 0) return std::nullopt;
    return CutGroup{what, width, width / tp, group};
  };
  if (const LayerSpec* layer = firstAttentionLayer(config); layer && layer->attention != AttentionKind::Latent) {
    if (auto found = cut("o_proj input", layer->qHeads * (layer->vHeadDim > 0 ? layer->vHeadDim : layer->headDim))) return found;
  }
  if (const LayerSpec* layer = firstDenseLayer(config)) {
    if (auto found = cut("MLP columns", layer->intermediateSize)) return found;
  }
  if (const LayerSpec* layer = firstExpertLayer(config); layer && experts) {
    if (auto found = cut("expert columns", layer->moe.expertIntermediate)) return found;
  }
  return std::nullopt;
}

}  // namespace headroom
