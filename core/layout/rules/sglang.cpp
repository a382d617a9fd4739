// SPDX-License-Identifier: Apache-2.0
// SGLang's checks in its own order: the machine (before loading), then model construction (embedding, attention, MLP). Read from
// its source, 0.5.9.
#include "core/layout/rules/even_checks.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr EngineVersion kNewest{0, 5, 9};
constexpr int64_t kVocabularyPadding = 64;
// TP ranks whose free memory is less than this share of another's are refused.
constexpr double kMemoryBalance = 0.9;

std::optional<RuleFinding> checkMachine(const RuleContext& context, LayoutSizes sizes) {
  const Machine& machine = context.machine;
  const int64_t layers = context.model.config.layerCount();
  if (sizes.pp > layers) {
    return RuleFinding{"sglang.layers", fmt::format("{} stages for {} layers", sizes.pp, layers),
                       fmt::format("PP={} or fewer", layers)};
  }
  if (machine.nodes > 1 && sizes.dp > 1 && !sizes.attentionDataParallel) {
    return RuleFinding{"sglang.data_parallel",
                       fmt::format("DP={} on {} nodes: plain data parallelism stays on one node", sizes.dp, machine.nodes),
                       "one server a node, behind a router"};
  }
  if (sizes.tp > 1) {
    // The largest GPUs, as ranks take them. What other processes hold is not free.
    std::vector<const MachineGpu*> gpus;
    for (const MachineGpu& gpu : machine.gpus) gpus.push_back(&gpu);
    std::stable_sort(gpus.begin(), gpus.end(),
                     [](const MachineGpu* a, const MachineGpu* b) { return a->totalMemory > b->totalMemory; });
    gpus.resize(std::min(gpus.size(), static_cast<size_t>(sizes.tp) * sizes.pp * sizes.dp));
    Bytes most, least;
    for (const MachineGpu* gpu : gpus) {
      most = gpu == gpus.front() ? gpu->leftByOthers() : std::max(most, gpu->leftByOthers());
      least = gpu == gpus.front() ? gpu->leftByOthers() : std::min(least, gpu->leftByOthers());
    }
    if (static_cast<double>(least.count()) < kMemoryBalance * static_cast<double>(most.count())) {
      return RuleFinding{
          "sglang.memory_balance",
          fmt::format("GPUs with {:.2f} and {:.2f} GiB free: with TP>1, free memory may differ by a tenth at most; "
                      "SGLang stops with: \"The memory capacity is unbalanced.\"",
                      most.gib(), least.gib()),
          "equal GPUs, TP=1 with stages, or SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0"};
    }
  }
  return std::nullopt;
}

std::optional<RuleFinding> checkModel(const RuleContext& context, LayoutSizes sizes) {
  const ModelConfig& config = context.model.config;
  const int attentionTp = sizes.tp;
  // "tp_size" is the world of one engine: with attention data parallelism, attention has a share of it.
  const int tp = sizes.attentionDataParallel ? sizes.tp * sizes.dp : sizes.tp;
  if (sizes.expertParallel && !firstExpertLayer(config))
    return RuleFinding{"sglang.expert_parallel", "--ep-size is for models with experts; this one is dense",
                       "no expert parallelism"};
  const int64_t vocabulary = roundUp(config.vocabSize, kVocabularyPadding);
  if (vocabulary % tp != 0) {
    return RuleFinding{
        "sglang.vocabulary",
        fmt::format("the vocabulary of {}{} does not divide by {} ({}); the workers stop with: \"{} is not "
                    "divisible by {}\"",
                    config.vocabSize, vocabulary == config.vocabSize ? "" : fmt::format(", padded to {},", vocabulary), tp,
                    divisionText(vocabulary, tp), vocabulary, tp),
        ""};
  }
  if (const LayerSpec* layer = firstAttentionLayer(config)) {
    if (layer->qHeads % attentionTp != 0) {
      return RuleFinding{"sglang.attention_heads",
                         fmt::format("{} query heads do not divide by {} ({}); the workers stop at \"assert "
                                     "self.total_num_heads % tp_size == 0\", without a message",
                                     layer->qHeads, attentionTp, divisionText(layer->qHeads, attentionTp)),
                         ""};
    }
    if (!kvHeadsDivide(*layer, attentionTp)) {
      const int64_t kv = layer->kvHeads;
      return RuleFinding{
          "sglang.kv_heads",
          fmt::format("{} KV heads {} by {} ({}); the workers stop at \"assert {}\", without a message", kv,
                      kv >= attentionTp ? "do not divide" : "cannot be copied evenly", attentionTp,
                      kv >= attentionTp ? divisionText(kv, attentionTp) : divisionText(attentionTp, kv),
                      kv >= attentionTp ? "self.total_num_kv_heads % tp_size == 0" : "tp_size % self.total_num_kv_heads == 0"),
          ""};
    }
  }
  if (const LayerSpec* layer = firstDenseLayer(config); layer && layer->intermediateSize % tp != 0) {
    return RuleFinding{
        "sglang.mlp_columns",
        fmt::format("{} MLP columns do not divide by {} ({}); the workers stop with: \"{} is not divisible by {}\"",
                    layer->intermediateSize, tp, divisionText(layer->intermediateSize, tp), layer->intermediateSize, tp),
        ""};
  }
  if (const LayerSpec* layer = firstExpertLayer(config)) {
    if (sizes.expertParallel && layer->moe.experts % tp != 0) {
      return RuleFinding{"sglang.experts",
                         fmt::format("{} experts do not divide by --ep-size {} ({}): whole experts are dealt evenly only; the "
                                     "workers stop at \"assert num_experts % self.moe_ep_size == 0\"",
                                     layer->moe.experts, tp, divisionText(layer->moe.experts, tp)),
                         ""};
    }
    if (!sizes.expertParallel && layer->moe.expertIntermediate % tp != 0) {
      return RuleFinding{"sglang.expert_width",
                         fmt::format("{} columns of an expert do not divide by {} ({}); the workers stop at \"assert "
                                     "intermediate_size % self.moe_tp_size == 0\"",
                                     layer->moe.expertIntermediate, tp, divisionText(layer->moe.expertIntermediate, tp)),
                         layer->moe.experts % tp == 0 ? fmt::format("--ep-size {} keeps experts whole", tp) : ""};
    }
    if (layer->moe.sharedIntermediate % tp != 0) {
      return RuleFinding{"sglang.shared_experts",
                         fmt::format("{} columns of the shared experts do not divide by {} ({})", layer->moe.sharedIntermediate,
                                     tp, divisionText(layer->moe.sharedIntermediate, tp)),
                         ""};
    }
  }
  if (context.quantization != "gptq") {
    if (const auto cut = firstCutGroup(context, tp, !sizes.expertParallel))
      return RuleFinding{"sglang.group_alignment", cut->text(tp) + "; SGLang refuses the partition", ""};
  }
  return std::nullopt;
}

// The first GPU without FP8 arithmetic, where the checkpoint is FP8.
const MachineGpu* withoutFp8(const RuleContext& context) {
  if (context.quantization != "fp8") return nullptr;
  for (const MachineGpu& gpu : context.machine.gpus)
    if (gpu.spec.computeCapability && *gpu.spec.computeCapability < 8.9) return &gpu;
  return nullptr;
}

// Experts in FP8 run in a kernel that needs the arithmetic; plain matrices have one that only reads FP8.
std::optional<RuleFinding> checkFp8(const RuleContext& context) {
  const MachineGpu* gpu = withoutFp8(context);
  if (!gpu || !firstExpertLayer(context.model.config)) return std::nullopt;
  return RuleFinding{
      "sglang.fp8_experts",
      fmt::format("{} (compute capability {:.1f}) has no FP8 arithmetic, which SGLang's expert kernel needs: \"type "
                  "fp8e4nv not supported in this architecture\"",
                  gpu->spec.name, *gpu->spec.computeCapability),
      "vLLM, which keeps FP8 as weights alone here; or an AWQ or GPTQ checkpoint"};
}

class SgLangRules : public EngineRules {
 public:
  EngineVersion newestKnown() const override { return kNewest; }

  RuleVerdict check(const RuleContext& context, LayoutSizes sizes) const override {
    RuleVerdict verdict;
    verdict.refusal = checkMachine(context, sizes);
    if (!verdict.refusal) verdict.refusal = checkModel(context, sizes);
    if (!verdict.refusal) verdict.refusal = checkFp8(context);
    if (verdict.refusal) return verdict;
    const ModelConfig& config = context.model.config;
    if (const MachineGpu* gpu = withoutFp8(context)) {
      verdict.warnings.push_back({"sglang.fp8_weights_only",
                                  fmt::format("{} (compute capability {:.1f}) has no FP8 arithmetic: weights stay FP8, products "
                                              "run in 16 bits, prompts slower",
                                              gpu->spec.name, *gpu->spec.computeCapability),
                                  ""});
    }
    if (sizes.pp > 1) {
      verdict.warnings.push_back(
          {"sglang.pipeline", "with stages, overlapped scheduling is off and speculative decoding is refused", ""});
    }
    if (context.quantization == "gptq") {
      if (const auto cut = firstCutGroup(context, sizes.tp)) {
        verdict.warnings.push_back({"sglang.gptq_groups", cut->text(sizes.tp) + ": kernels may accept it and answer wrongly",
                                    "a TP that keeps groups whole"});
      }
    }
    if (sizes.attentionDataParallel && sizes.dp > 1) {
      verdict.warnings.push_back(
          {"sglang.attention_data_parallel",
           fmt::format("attention in {} replicas of {} GPUs: each holds its own requests' cache, experts are shared", sizes.dp,
                       sizes.tp * sizes.pp),
           ""});
    }
    if (config.kvHeads > 0 && sizes.tp > config.kvHeads) {
      verdict.warnings.push_back(
          {"sglang.kv_copies",
           fmt::format("{} KV heads on {} ranks: each is held {} times", config.kvHeads, sizes.tp, sizes.tp / config.kvHeads),
           ""});
    }
    return verdict;
  }

  LayoutSizes sameVerdict(const RuleContext& context, LayoutSizes sizes) const override {
    const auto& gpus = context.machine.gpus;
    const bool alike =
        std::all_of(gpus.begin(), gpus.end(), [&](const MachineGpu& gpu) { return gpu.totalMemory == gpus.front().totalMemory; });
    LayoutSizes same = EngineRules::sameVerdict(context, sizes);
    if (context.machine.nodes > 1) same.dp = std::min(sizes.dp, 2);
    if (sizes.attentionDataParallel) same.dp = sizes.dp;
    return alike ? same : sizes;
  }

  // Spare layers go to the last stages.
  std::vector<Range> stages(const ModelConfig& config, int pp) const override {
    return countedStages(config.layerCount(), pp, [pp](int stage, int64_t spare) { return stage >= pp - spare; });
  }
};

}  // namespace

const EngineRules& sgLangRules() {
  static const SgLangRules rules;
  return rules;
}

}  // namespace headroom
