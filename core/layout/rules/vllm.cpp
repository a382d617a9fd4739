// SPDX-License-Identifier: Apache-2.0
// vLLM's checks in its own order: configuration (before any worker starts), then model construction (in the workers: embedding,
// attention, MLP of the first layer). Words as vLLM prints them; version ranges where it changed.
#include "core/layout/rules/even_checks.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace headroom {
namespace {

constexpr EngineVersion kNewest{0, 32, 0};
constexpr EngineVersion kOldest{0, 6, 0};   // rules and memory of earlier ones are not known here
constexpr int64_t kVocabularyPadding = 64;  // of the embedding, not multiplied by TP

// Architectures that were removed, with the last version that had them.
struct RemovedArchitecture {
  std::string_view architecture;
  EngineVersion last;
};
constexpr std::array<RemovedArchitecture, 6> kRemoved{{{"QWenLMHeadModel", {0, 23, 0}},
                                                       {"BaichuanForCausalLM", {0, 23, 0}},
                                                       {"BaiChuanForCausalLM", {0, 23, 0}},
                                                       {"Phi3SmallForCausalLM", {0, 9, 2}},
                                                       {"RWForCausalLM", {0, 28, 0}},
                                                       {"MPTForCausalLM", {0, 28, 0}}}};

// Architectures that no class of 0.32 takes, without a word on an earlier version (registry of 0.32.0).
constexpr std::array<std::string_view, 5> kUnsupported{"Step3p7FlashForCausalLM", "XverseForCausalLM", "MiniMaxText01ForCausalLM",
                                                       "MiniMaxM1ForCausalLM", "BambaForCausalLM"};

// Classes without pipeline parallelism.
constexpr std::array<std::string_view, 9> kNoPipeline{"Gemma3nForConditionalGeneration",
                                                      "WhisperForConditionalGeneration",
                                                      "Zamba2ForCausalLM",
                                                      "Mamba2ForCausalLM",
                                                      "AriaForConditionalGeneration",
                                                      "Idefics3ForConditionalGeneration",
                                                      "SmolVLMForConditionalGeneration",
                                                      "Phi4MMForCausalLM",
                                                      "PaddleOCRVLForConditionalGeneration"};

std::optional<RuleFinding> checkQuantizationMethod(const RuleContext& context) {
  const std::string& method = context.quantization;
  if (context.version >= EngineVersion{0, 32, 0} && (method == "bitsandbytes" || method == "gguf")) {
    return RuleFinding{
        "vllm.quantization_method",
        fmt::format(
            "Unknown quantization method: {}. vLLM 0.32 removed it; AWQ, GPTQ, FP8, compressed-tensors, MXFP4 and NVFP4 remain",
            method),
        method == "gguf" ? "use llama.cpp or Headroom, or an earlier vLLM"
                         : "vllm@0.31 or earlier, or an AWQ, GPTQ or FP8 checkpoint"};
  }
  return std::nullopt;
}

std::optional<RuleFinding> checkGptqBits(const RuleContext& context) {
  const std::string& method = context.quantization;
  const auto& quantization = context.model.config.quantization;
  if (method == "gptq" && quantization && context.version >= EngineVersion{0, 32, 0} &&
      ((quantization->bits != 4 && quantization->bits != 8) || !quantization->symmetric)) {
    return RuleFinding{
        "vllm.gptq_bits",
        fmt::format("Unsupported quantization config: bits={}, sym={}. vLLM 0.32 takes GPTQ with 4 or 8 symmetric bits",
                    quantization->bits, quantization->symmetric ? "True" : "False"),
        "another quantization of the same model"};
  }
  return std::nullopt;
}

// Families whose activations leave the range of float16.
constexpr std::array<std::string_view, 5> kNoFloat16{"gemma2", "gemma3", "gemma3_text", "plamo2", "glm4"};
constexpr EngineVersion kRefusesFloat16{0, 9, 0};

std::optional<RuleFinding> checkDType(const RuleContext& context) {
  const ModelConfig& config = context.model.config;
  const bool unstable =
      context.version >= kRefusesFloat16 && std::find(kNoFloat16.begin(), kNoFloat16.end(), config.modelType) != kNoFloat16.end();
  if (unstable && context.dtype == DType::F16) {
    return RuleFinding{"vllm.float16",
                       fmt::format("\"The model type '{}' does not support float16. Reason: Numerical instability. Please use "
                                   "bfloat16 or float32 instead.\"",
                                   config.modelType),
                       "--dtype bfloat16 (compute capability 8.0 or more), or --dtype float32 at twice the bytes"};
  }
  const DType dtype = context.dtype.value_or(config.dtype);
  if (dtype != DType::BF16 || (!context.dtype && !unstable)) return std::nullopt;
  for (const MachineGpu& gpu : context.machine.gpus) {
    const auto capability = gpu.spec.computeCapability;
    if (!capability || *capability >= 8.0) continue;
    return RuleFinding{"vllm.bfloat16",
                       fmt::format("Bfloat16 is only supported on GPUs with compute capability of at least 8.0; {} has {:.1f}{}",
                                   gpu.spec.name, *capability, unstable ? ", and this family is not run in float16" : ""),
                       unstable ? "--dtype float32" : "--dtype float16"};
  }
  return std::nullopt;
}

// Expert parallelism as an option: since when, and for which models.
std::optional<RuleFinding> checkExpertParallel(const RuleContext& context, LayoutSizes sizes) {
  if (!sizes.expertParallel) return std::nullopt;
  constexpr EngineVersion kFirst{0, 8, 0};
  if (context.version < kFirst) {
    return RuleFinding{"vllm.expert_parallel", "unrecognized arguments: --enable-expert-parallel; it came with vLLM 0.8",
                       "a newer vLLM, or no expert parallelism"};
  }
  if (!firstExpertLayer(context.model.config)) {
    return RuleFinding{"vllm.expert_parallel",
                       "\"Number of experts in the model must be greater than 0 when expert parallelism is enabled.\"",
                       "no expert parallelism: the model is dense"};
  }
  return std::nullopt;
}

std::optional<RuleFinding> checkConfiguration(const RuleContext& context, LayoutSizes sizes) {
  const ModelConfig& config = context.model.config;
  for (const RemovedArchitecture& removed : kRemoved) {
    if (config.architecture == removed.architecture && context.version > removed.last) {
      return RuleFinding{"vllm.architecture",
                         fmt::format("Model architecture {} was supported in vLLM until v{}.{}.{}, and is not supported anymore",
                                     removed.architecture, removed.last.major, removed.last.minor, removed.last.patch),
                         fmt::format("vllm@{}.{}.{}", removed.last.major, removed.last.minor, removed.last.patch)};
    }
  }
  if (context.version >= EngineVersion{0, 32, 0} &&
      std::find(kUnsupported.begin(), kUnsupported.end(), config.architecture) != kUnsupported.end()) {
    return RuleFinding{"vllm.architecture",
                       fmt::format("Model architectures ['{}'] are not supported for now", config.architecture),
                       "another engine, or another version of vLLM"};
  }
  if (auto finding = checkQuantizationMethod(context)) return finding;
  if (auto finding = checkDType(context)) return finding;
  if (config.qHeads > 0 && config.qHeads % sizes.tp != 0) {
    return RuleFinding{
        "vllm.attention_heads",
        fmt::format(
            "{} query heads do not divide by {} ({}); vLLM stops before loading: \"Total number of attention heads ({}) must be "
            "divisible by tensor parallel size ({}).\"",
            config.qHeads, sizes.tp, divisionText(config.qHeads, sizes.tp), config.qHeads, sizes.tp),
        ""};
  }
  if (auto finding = checkExpertParallel(context, sizes)) return finding;
  if (auto finding = checkGptqBits(context)) return finding;
  if (sizes.pp > config.layerCount()) {
    return RuleFinding{"vllm.layers", fmt::format("{} stages for {} layers", sizes.pp, config.layerCount()),
                       fmt::format("PP={} or fewer", config.layerCount())};
  }
  if (sizes.pp > 1 && std::find(kNoPipeline.begin(), kNoPipeline.end(), config.architecture) != kNoPipeline.end()) {
    return RuleFinding{
        "vllm.pipeline",
        fmt::format("NotImplementedError: pipeline parallelism is not supported for this model ({} has no SupportsPP interface)",
                    config.architecture),
        "PP=1"};
  }
  return std::nullopt;
}

bool belowHopper(const Machine& machine) {
  return std::any_of(machine.gpus.begin(), machine.gpus.end(),
                     [](const MachineGpu& gpu) { return gpu.spec.computeCapability && *gpu.spec.computeCapability < 9.0; });
}

// Where a row-parallel input of `width` would be cut inside a group or block.
std::optional<RuleFinding> checkAlignment(const RuleContext& context, LayoutSizes sizes, const std::string& what, int64_t width) {
  const auto& quantization = context.model.config.quantization;
  if (!quantization || context.quantization.empty()) return std::nullopt;
  const int64_t share = width / sizes.tp, group = quantization->groupSize;
  const std::string& method = context.quantization;
  if (method == "fp8" && quantization->weightBlock.size() == 2) {
    const int64_t block = quantization->weightBlock[1];
    if (share % block != 0) {
      return RuleFinding{"vllm.fp8_block",
                         fmt::format("{} {} / {} = {}, and {}; vLLM: \"Weight input_size_per_partition = {} is not divisible by "
                                     "weight quantization block_k = {}.\"",
                                     what, width, sizes.tp, share, divisionText(share, block), share, block),
                         ""};
    }
  }
  if (group > 0 && share % group != 0) {
    if (method == "gptq" && context.version < EngineVersion{0, 32, 0} && belowHopper(context.machine) &&
        context.dtype.value_or(context.model.config.dtype) == DType::BF16) {
      return RuleFinding{"vllm.gptq_groups",
                         fmt::format("{} {} / {} = {} is no multiple of the GPTQ group of {} ({}); without a kernel for bfloat16 "
                                     "vLLM stops with: \"Failed to find a kernel that can implement the WNA16 linear layer.\"",
                                     what, width, sizes.tp, share, group, divisionText(share, group)),
                         "a TP that keeps groups whole; float16 would start, and may answer wrongly"};
    }
    if (method == "awq") {
      return RuleFinding{"vllm.awq_groups",
                         fmt::format("{} {} / {} = {} is no multiple of the AWQ group of {} ({}); vLLM: \"The input size is not "
                                     "aligned with the quantized "
                                     "weight shape. This can be caused by too large tensor parallel size.\"",
                                     what, width, sizes.tp, share, group, divisionText(share, group)),
                         ""};
    }
    if (method == "compressed-tensors") {
      return RuleFinding{"vllm.group_alignment",
                         fmt::format("{} {} / {} = {} is no multiple of the group of {} ({}); vLLM refuses the partition", what,
                                     width, sizes.tp, share, group, divisionText(share, group)),
                         ""};
    }
  }
  return std::nullopt;
}

std::optional<RuleFinding> checkExperts(const RuleContext& context, LayoutSizes sizes, const MoeParameters& moe) {
  const int shards = sizes.tp * sizes.dp;  // experts are sharded over replicas too
  // The release that came with expert parallelism still checked blocks as if experts were cut.
  const bool whole = sizes.expertParallel && context.version >= EngineVersion{0, 9, 0};
  if (sizes.expertParallel && !whole && context.quantization != "fp8") return std::nullopt;
  if (whole) return std::nullopt;
  if (moe.expertIntermediate % shards != 0) {
    return RuleFinding{"vllm.expert_width",
                       fmt::format("{} columns of an expert do not divide by TP x DP = {} ({})", moe.expertIntermediate, shards,
                                   divisionText(moe.expertIntermediate, shards)),
                       "--enable-expert-parallel keeps experts whole"};
  }
  const auto& quantization = context.model.config.quantization;
  if (quantization && context.quantization == "fp8" && quantization->weightBlock.size() == 2) {
    const int64_t share = moe.expertIntermediate / shards, block = quantization->weightBlock[0];
    bool hopper = !context.machine.gpus.empty();
    for (const MachineGpu& gpu : context.machine.gpus) hopper = hopper && gpu.spec.computeCapability.value_or(9.0) >= 9.0;
    const bool accepted = context.version >= EngineVersion{0, 32, 0} && hopper &&
                          std::gcd(std::gcd(block, share), context.model.config.hiddenSize) >= 32;
    // Undivided, gate and up are one matrix whose rows together fill blocks.
    const bool filled = shards == 1 && 2 * share % block == 0;
    if (share % block != 0 && !accepted && !filled) {
      return RuleFinding{"vllm.fp8_block",
                         fmt::format("{} columns of an expert / {} = {}, and {}; vLLM: \"The output_size of gate's and up's "
                                     "weight = {} is not divisible by weight "
                                     "quantization block_n = {}.\"",
                                     moe.expertIntermediate, shards, share, divisionText(share, block), share, block),
                         context.version >= EngineVersion{0, 9, 0} ? "--enable-expert-parallel keeps experts whole" : ""};
    }
  }
  return std::nullopt;
}

// The vision tower's heads, where the configuration names them.
int64_t visionHeads(const ModelConfig& config) {
  if (!config.raw.is_object()) return 0;
  const auto vision = config.raw.find("vision_config");
  if (vision == config.raw.end() || !vision->is_object()) return 0;
  for (const char* key : {"num_heads", "num_attention_heads"}) {
    const auto heads = vision->find(key);
    if (heads != vision->end() && heads->is_number_integer()) return heads->get<int64_t>();
  }
  return 0;
}

// Families whose vision tower is built before the language model, divided over the ranks like it.
std::optional<RuleFinding> checkVision(const RuleContext& context, int tp) {
  constexpr std::array<std::string_view, 6> kDivided{"qwen2_vl",     "qwen2_5_vl", "qwen3_vl",
                                                     "qwen3_vl_moe", "qwen3_5",    "qwen3_5_moe"};
  const ModelConfig& config = context.model.config;
  const bool divided = std::find(kDivided.begin(), kDivided.end(), config.modelType) != kDivided.end();
  int64_t width = divided ? visionHeads(config) : 0;
  const char* what = "vision heads";
  if (config.modelType == "llama4" && config.raw.is_object() && config.raw.contains("vision_config")) {
    const nlohmann::json& vision = config.raw["vision_config"];
    if (vision.is_object() && vision.contains("hidden_size") && vision["hidden_size"].is_number_integer())
      width = vision["hidden_size"].get<int64_t>();
    what = "vision columns";
  }
  if (width <= 0 || width % tp == 0) return std::nullopt;
  return RuleFinding{"vllm.vision_heads",
                     fmt::format("{} {} do not divide by {} ({}); the workers stop with: \"{} is not divisible by {}\"", width,
                                 what, tp, divisionText(width, tp), width, tp),
                     "--mm-encoder-tp-mode data holds the vision tower whole on each rank"};
}

std::optional<RuleFinding> checkModel(const RuleContext& context, LayoutSizes sizes) {
  const ModelConfig& config = context.model.config;
  const int tp = sizes.tp;
  if (auto finding = checkVision(context, tp)) return finding;
  const int64_t vocabulary = roundUp(config.vocabSize, kVocabularyPadding);
  if (vocabulary % tp != 0) {
    return RuleFinding{
        "vllm.vocabulary",
        fmt::format("the vocabulary of {}{} does not divide by {} ({}); the workers stop with: \"{} is not divisible by {}\"",
                    config.vocabSize, vocabulary == config.vocabSize ? "" : fmt::format(", padded to {},", vocabulary), tp,
                    divisionText(vocabulary, tp), vocabulary, tp),
        ""};
  }
  if (const LayerSpec* attention = firstAttentionLayer(config); attention && attention->indexer && belowHopper(context.machine)) {
    return RuleFinding{
        "vllm.sparse_attention",
        "sparse latent attention has no backend below compute capability 9.0: \"No valid attention backend found\"",
        "Hopper or newer GPUs"};
  }
  if (const LayerSpec* attention = firstAttentionLayer(config);
      attention && attention->attention != AttentionKind::Latent && attention->kvHeads > 0) {
    const int64_t kv = attention->kvHeads;
    if (kv >= tp ? kv % tp != 0 : tp % kv != 0) {
      return RuleFinding{"vllm.kv_heads",
                         kv >= tp ? fmt::format("{} KV heads do not divide by {} ({}); the workers stop at \"assert "
                                                "self.total_num_kv_heads % tp_size == 0\", without "
                                                "a message",
                                                kv, tp, divisionText(kv, tp))
                                  : fmt::format("TP={} is no multiple of {} KV heads ({}); the workers stop at \"assert tp_size "
                                                "% self.total_num_kv_heads == 0\", "
                                                "without a message",
                                                tp, kv, divisionText(tp, kv)),
                         ""};
    }
    if (config.modelType == "gpt_oss" && kv < tp) {
      return RuleFinding{
          "vllm.kv_heads",
          fmt::format(
              "{} KV heads on {} ranks: this model class does not copy KV heads; the workers stop with: \"ZeroDivisionError: "
              "integer modulo by zero\"",
              kv, tp),
          ""};
    }
    const int64_t width = attention->qHeads * (attention->vHeadDim > 0 ? attention->vHeadDim : attention->headDim);
    if (auto finding = checkAlignment(context, sizes, "o_proj input", width)) return finding;
  }
  const bool hasMamba = std::any_of(config.layers.begin(), config.layers.end(),
                                    [](const LayerSpec& layer) { return layer.attention == AttentionKind::Mamba; });
  if (hasMamba && config.raw.is_object()) {
    const auto groups = config.raw.contains("n_groups") ? config.raw.find("n_groups") : config.raw.find("mamba_n_groups");
    if (groups != config.raw.end() && groups->is_number_integer() && groups->get<int64_t>() != 1 &&
        groups->get<int64_t>() % tp != 0) {
      return RuleFinding{
          "vllm.mamba_groups",
          fmt::format(
              "{} state groups do not divide by {} ({}); vLLM: \"If tensor parallel world size does not divide num_groups, then "
              "num_groups must equal 1.\"",
              groups->get<int64_t>(), tp, divisionText(groups->get<int64_t>(), tp)),
          ""};
    }
  }
  for (const LayerSpec& layer : config.layers) {
    if (layer.ffn != FfnKind::Dense) continue;
    if (layer.intermediateSize % tp != 0) {
      return RuleFinding{
          "vllm.mlp_columns",
          fmt::format("{} MLP columns do not divide by {} ({}); the workers stop at an assertion: output size % tp_size == 0",
                      layer.intermediateSize, tp, divisionText(layer.intermediateSize, tp)),
          ""};
    }
    if (auto finding = checkAlignment(context, sizes, "MLP columns", layer.intermediateSize)) return finding;
    break;
  }
  for (const LayerSpec& layer : config.layers) {
    if (layer.ffn != FfnKind::MixtureOfExperts) continue;
    if (layer.moe.sharedIntermediate % tp != 0) {
      return RuleFinding{"vllm.shared_experts",
                         fmt::format("{} columns of the shared experts do not divide by {} ({})", layer.moe.sharedIntermediate,
                                     tp, divisionText(layer.moe.sharedIntermediate, tp)),
                         ""};
    }
    if (auto finding = checkExperts(context, sizes, layer.moe)) return finding;
    break;
  }
  return std::nullopt;
}

void addWarnings(const RuleContext& context, LayoutSizes sizes, std::vector<RuleFinding>& warnings) {
  const ModelConfig& config = context.model.config;
  if (const int64_t heads = visionHeads(config); heads > 0 && heads % sizes.tp != 0) {
    warnings.push_back({"vllm.vision_heads",
                        fmt::format("{} vision heads do not divide by {} ({}): the vision tower is held whole on each rank, or "
                                    "stops where its class has no copy of it",
                                    heads, sizes.tp, divisionText(heads, sizes.tp)),
                        "--mm-encoder-tp-mode data"});
  }
  if (const LayerSpec* experts = firstExpertLayer(config); experts && sizes.expertParallel) {
    const int ranks = sizes.tp * sizes.dp;
    if (experts->moe.experts % ranks != 0) {
      warnings.push_back({"vllm.uneven_experts",
                          fmt::format("{} experts on {} ranks: the first {} hold one more", experts->moe.experts, ranks,
                                      experts->moe.experts % ranks),
                          ""});
    }
  }
  if (context.quantization == "fp8" || context.quantization == "fbgemm_fp8") {
    for (const MachineGpu& gpu : context.machine.gpus) {
      if (!gpu.spec.computeCapability || *gpu.spec.computeCapability >= 8.9) continue;
      warnings.push_back(
          {"vllm.fp8_weights_only",
           fmt::format("{} (compute capability {:.1f}) has no FP8 arithmetic: weights stay FP8, products run in 16 "
                       "bits, prompts slower",
                       gpu.spec.name, *gpu.spec.computeCapability),
           ""});
      break;
    }
  }
  bool onlyPcie = true;
  for (const MachineGpu& gpu : context.machine.gpus) {
    onlyPcie = onlyPcie && gpu.spec.link == LinkKind::Pcie;
    const auto capability = gpu.spec.computeCapability;
    if (!context.dtype && config.dtype == DType::BF16 && capability && *capability < 8.0 && warnings.empty()) {
      warnings.push_back({"vllm.bfloat16",
                          fmt::format("{} (compute capability {:.1f}) has no bfloat16", gpu.spec.name, *capability),
                          "--dtype float16"});
    }
  }
  if (context.version < kOldest) {
    warnings.push_back({"vllm.version",
                        fmt::format("vLLM {}.{} is older than what is known here: planned as {}.{}", context.version.major,
                                    context.version.minor, kOldest.major, kOldest.minor),
                        "vllm@0.6 or newer"});
  }
  constexpr std::array<int, 5> kCustomAllReduce{2, 4, 6, 8, 16};
  if (sizes.tp > 1 && std::find(kCustomAllReduce.begin(), kCustomAllReduce.end(), sizes.tp) == kCustomAllReduce.end()) {
    warnings.push_back(
        {"vllm.all_reduce",
         fmt::format("custom all-reduce takes 2, 4, 6, 8 or 16 ranks, not {}: NCCL is used, slower at small batches", sizes.tp),
         ""});
  } else if (sizes.tp > 2 && onlyPcie) {
    warnings.push_back(
        {"vllm.all_reduce",
         fmt::format("custom all-reduce is off for {} GPUs on PCIe: NCCL is used, slower at small batches", sizes.tp),
         "TP=2 with pipeline stages"});
  }
  const auto& quantization = config.quantization;
  if (quantization && context.quantization == "gptq" && quantization->groupSize > 0) {
    for (const LayerSpec& layer : config.layers) {
      if (layer.ffn != FfnKind::Dense || layer.intermediateSize / sizes.tp % quantization->groupSize == 0) continue;
      warnings.push_back(
          {"vllm.gptq_groups",
           fmt::format("MLP columns {} / {} = {} cut a GPTQ group of {}: kernels accept it, but may fail at the first product "
                       "(Hopper) or answer wrongly "
                       "(ExLlama)",
                       layer.intermediateSize, sizes.tp, layer.intermediateSize / sizes.tp, quantization->groupSize),
           "a TP that keeps groups whole"});
      break;
    }
  }
  if (config.kvHeads > 0 && sizes.tp > config.kvHeads) {
    warnings.push_back(
        {"vllm.kv_copies",
         fmt::format("{} KV heads on {} ranks: each is held {} times", config.kvHeads, sizes.tp, sizes.tp / config.kvHeads), ""});
  }
}

class VllmRules : public EngineRules {
 public:
  EngineVersion newestKnown() const override { return kNewest; }

  RuleVerdict check(const RuleContext& context, LayoutSizes sizes) const override {
    RuleVerdict verdict;
    verdict.refusal = checkConfiguration(context, sizes);
    if (!verdict.refusal) verdict.refusal = checkModel(context, sizes);
    if (!verdict.refusal) addWarnings(context, sizes, verdict.warnings);
    return verdict;
  }

  // Experts are sharded over replicas too.
  LayoutSizes sameVerdict(const RuleContext& context, LayoutSizes sizes) const override {
    LayoutSizes same = EngineRules::sameVerdict(context, sizes);
    if (firstExpertLayer(context.model.config)) same.dp = sizes.dp;
    return same;
  }

  // get_pp_indices: spare layers go one each to the stages before the last, from the back.
  std::vector<Range> stages(const ModelConfig& config, int pp) const override {
    return countedStages(config.layerCount(), pp,
                         [pp](int stage, int64_t spare) { return stage <= pp - 2 && stage >= pp - 1 - spare; });
  }
};

}  // namespace

const EngineRules& vllmRules() {
  static const VllmRules rules;
  return rules;
}

}  // namespace headroom
