// SPDX-License-Identifier: Apache-2.0
// TensorRT-LLM's checks (PyTorch backend 1.x), read from its source. The vocabulary is split with padding and never refuses a
// size.
#include "core/layout/rules/even_checks.h"

namespace headroom {
namespace {

constexpr EngineVersion kNewest{1, 0, 0};

std::optional<RuleFinding> checkSizes(const RuleContext& context, LayoutSizes sizes) {
  const ModelConfig& config = context.model.config;
  // enable_attention_dp: attention is whole on each rank, everything else is divided by all of them.
  const int attentionTp = sizes.tp, tp = sizes.attentionDataParallel ? sizes.tp * sizes.dp : sizes.tp;
  if (sizes.attentionDataParallel && sizes.tp > 1) {
    return RuleFinding{"tensorrt.attention_data_parallel",
                       fmt::format("attention on {} ranks and {} replicas: attention data parallelism keeps it whole on each rank",
                                   sizes.tp, sizes.dp),
                       fmt::format("TP=1 with DP={}", sizes.tp * sizes.dp)};
  }
  if (sizes.expertParallel && !firstExpertLayer(config))
    return RuleFinding{"tensorrt.expert_parallel", "--ep_size is for models with experts; this one is dense", "no expert parallelism"};
  if (context.quantization == "gguf") {
    return RuleFinding{"tensorrt.format", "TensorRT-LLM reads no GGUF", "a safetensors checkpoint, or llama.cpp or Headroom"};
  }
  if (sizes.pp > config.layerCount()) {
    return RuleFinding{"tensorrt.layers", fmt::format("{} stages for {} layers", sizes.pp, config.layerCount()),
                       fmt::format("PP={} or fewer", config.layerCount())};
  }
  if (const LayerSpec* layer = firstAttentionLayer(config)) {
    if (layer->qHeads % attentionTp != 0) {
      return RuleFinding{"tensorrt.attention_heads",
                         fmt::format("{} query heads do not divide by {} ({}); the workers stop at \"assert self.num_heads % "
                                     "tp_size == 0\"",
                                     layer->qHeads, attentionTp, divisionText(layer->qHeads, attentionTp)),
                         ""};
    }
    if (!kvHeadsDivide(*layer, attentionTp)) {
      const int64_t kv = layer->kvHeads;
      return RuleFinding{"tensorrt.kv_heads",
                         fmt::format("{} KV heads on {} ranks ({}): weights of KV heads are dealt or copied evenly only", kv, attentionTp,
                                     kv >= attentionTp ? divisionText(kv, attentionTp) : divisionText(attentionTp, kv)),
                         ""};
    }
  }
  if (const LayerSpec* layer = firstDenseLayer(config); layer && layer->intermediateSize % tp != 0) {
    return RuleFinding{"tensorrt.mlp_columns",
                       fmt::format("{} MLP columns do not divide by {} ({}); the workers stop at an assertion in Linear",
                                   layer->intermediateSize, tp, divisionText(layer->intermediateSize, tp)),
                       ""};
  }
  if (const LayerSpec* layer = firstExpertLayer(config); layer && !sizes.expertParallel && layer->moe.expertIntermediate % tp != 0) {
    return RuleFinding{"tensorrt.expert_width",
                       fmt::format("{} columns of an expert do not divide by {} ({})", layer->moe.expertIntermediate, tp,
                                   divisionText(layer->moe.expertIntermediate, tp)),
                       fmt::format("--ep_size {} keeps experts whole", tp)};
  }
  if (const auto cut = firstCutGroup(context, tp, !sizes.expertParallel))
    return RuleFinding{"tensorrt.group_alignment", cut->text(tp) + "; TensorRT-LLM refuses the partition (ValueError)", ""};
  return std::nullopt;
}

class TensorRtRules : public EngineRules {
 public:
  EngineVersion newestKnown() const override { return kNewest; }

  RuleVerdict check(const RuleContext& context, LayoutSizes sizes) const override {
    RuleVerdict verdict;
    verdict.refusal = checkSizes(context, sizes);
    if (verdict.refusal) return verdict;
    const ModelConfig& config = context.model.config;
    if (sizes.dp > 1 && !sizes.attentionDataParallel) {
      verdict.warnings.push_back(
          {"tensorrt.replicas", "each replica is a server of its own on its own GPUs, behind a router", ""});
    }
    if (context.quantization == "awq" || context.quantization == "gptq" || context.quantization == "compressed-tensors") {
      verdict.warnings.push_back(
          {"tensorrt.checkpoint",
           fmt::format("a {} checkpoint does not load as it is: TensorRT-LLM has its own INT4-AWQ form", context.quantization),
           "quantize the original with NVIDIA's Model Optimizer"});
    }
    if (config.kvHeads > 0 && sizes.tp > config.kvHeads) {
      verdict.warnings.push_back(
          {"tensorrt.kv_copies",
           fmt::format("{} KV heads on {} ranks: each is held {} times", config.kvHeads, sizes.tp, sizes.tp / config.kvHeads),
           ""});
    }
    return verdict;
  }

  LayoutSizes sameVerdict(const RuleContext& context, LayoutSizes sizes) const override {
    LayoutSizes same = EngineRules::sameVerdict(context, sizes);
    same.dp = sizes.attentionDataParallel ? sizes.dp : std::min(sizes.dp, 2);
    return same;
  }

  // Spare layers go to the first stages.
  std::vector<Range> stages(const ModelConfig& config, int pp) const override {
    return countedStages(config.layerCount(), pp, [](int stage, int64_t spare) { return stage < spare; });
  }
};

}  // namespace

const EngineRules& tensorRtRules() {
  static const TensorRtRules rules;
  return rules;
}

}  // namespace headroom
