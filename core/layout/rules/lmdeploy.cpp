// SPDX-License-Identifier: Apache-2.0
// LMDeploy's TurboMind (0.16): heads and the hidden size divide, MLP and vocabulary are padded to whole quantization groups, there
// are no pipeline stages. Read from its source.
#include "core/layout/rules/even_checks.h"

namespace headroom {
namespace {

constexpr EngineVersion kNewest{0, 16, 0};

std::optional<RuleFinding> checkSizes(const RuleContext& context, LayoutSizes sizes) {
  const ModelConfig& config = context.model.config;
  const std::string& method = context.quantization;
  const int tp = sizes.tp;
  if (method == "gguf") {
    return RuleFinding{"lmdeploy.format", "LMDeploy reads no GGUF", "a safetensors checkpoint, or llama.cpp or Headroom"};
  }
  if (sizes.pp > 1) {
    return RuleFinding{"lmdeploy.pipeline", "LMDeploy has no pipeline stages",
                       fmt::format("TP, or {} replicas of TP={}", sizes.pp, tp)};
  }
  if (sizes.expertParallel) {
    return RuleFinding{"lmdeploy.expert_parallel", "TurboMind deals columns of experts, not whole ones",
                       "no expert parallelism, or LMDeploy's PyTorch engine"};
  }
  if (const LayerSpec* layer = firstAttentionLayer(config)) {
    if (layer->qHeads % tp != 0) {
      return RuleFinding{"lmdeploy.attention_heads",
                         fmt::format("{} query heads do not divide by {} ({}); TurboMind stops at its check of the attention layer",
                                     layer->qHeads, tp, divisionText(layer->qHeads, tp)),
                         ""};
    }
    const int64_t kv = layer->kvHeads, padded = ceilDiv(std::max<int64_t>(1, kv), tp) * tp;
    if (layer->attention != AttentionKind::Latent && kv > 0 && padded % kv != 0) {
      return RuleFinding{"lmdeploy.kv_heads",
                         fmt::format("{} KV heads are repeated up to {} for {} ranks, and {}", kv, padded, tp,
                                     divisionText(padded, kv)),
                         ""};
    }
  }
  if (config.hiddenSize % tp != 0) {
    return RuleFinding{"lmdeploy.hidden_size",
                       fmt::format("the embedding is divided along {} hidden columns ({})", config.hiddenSize,
                                   divisionText(config.hiddenSize, tp)),
                       ""};
  }
  return std::nullopt;
}

class LmDeployRules : public EngineRules {
 public:
  EngineVersion newestKnown() const override { return kNewest; }

  RuleVerdict check(const RuleContext& context, LayoutSizes sizes) const override {
    RuleVerdict verdict;
    verdict.refusal = checkSizes(context, sizes);
    if (verdict.refusal) return verdict;
    const ModelConfig& config = context.model.config;
    const auto& quantization = config.quantization;
    const LayerSpec* dense = firstDenseLayer(config);
    if (dense && quantization && quantization->groupSize > 0 && !context.quantization.empty()) {
      const int64_t whole = quantization->groupSize * sizes.tp, padded = roundUp(dense->intermediateSize, whole);
      if (padded != dense->intermediateSize) {
        verdict.warnings.push_back(
            {"lmdeploy.padding",
             fmt::format("MLP columns {} are filled up with zeros to {} ({} groups of {} on each of {} ranks)",
                         dense->intermediateSize, padded, padded / whole, quantization->groupSize, sizes.tp),
             ""});
      }
    }
    if (config.kvHeads > 0 && sizes.tp > config.kvHeads) {
      verdict.warnings.push_back(
          {"lmdeploy.kv_copies",
           fmt::format("{} KV heads on {} ranks: each is held {} times", config.kvHeads, sizes.tp, sizes.tp / config.kvHeads), ""});
    }
    return verdict;
  }

  // One stage; asked for only to describe a layout that is refused.
  std::vector<Range> stages(const ModelConfig& config, int pp) const override { return splitRange(config.layerCount(), pp); }
};

}  // namespace

const EngineRules& lmDeployRules() {
  static const LmDeployRules rules;
  return rules;
}

}  // namespace headroom
