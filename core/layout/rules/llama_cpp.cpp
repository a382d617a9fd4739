// SPDX-License-Identifier: Apache-2.0
// llama.cpp: PP is its layer split (any count), TP its tensor split (experimental); one of them at a time.
#include "core/layout/rules/llama_cpp.h"

#include "core/layout/rules/even_checks.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace headroom {
namespace {

constexpr EngineVersion kNewest{0, 0, 0};  // numbered by build, not by version
constexpr int kMostTensorDevices = 16;

// Families without a tensor split.
constexpr std::array<std::string_view, 14> kNoTensorSplit{
    "mamba", "mamba2",  "deepseek2",    "deepseek_v2",  "deepseek_v3", "minimax_m2", "minimax-m2",
    "grok",  "gemma3n", "gemma3n_text", "deepseek_v32", "kimi_k2",     "jamba",      "grok-1"};

int64_t blockOf(const ModelSource& model, TensorRole role) {
  for (const TensorEntry& tensor : model.inventory.tensors) {
    if (tensor.role == role) return dtypeInfo(tensor.dtype).blockElements;
  }
  return 1;
}

class LlamaCppRules : public EngineRules {
 public:
  EngineVersion newestKnown() const override { return kNewest; }

  RuleVerdict check(const RuleContext& context, LayoutSizes sizes) const override {
    RuleVerdict verdict;
    const ModelConfig& config = context.model.config;
    const std::string& method = context.quantization;
    if (!method.empty() && method != "gguf" && method != "fp8" && method != "mxfp4") {
      verdict.refusal = {"llamacpp.format",
                         fmt::format("llama.cpp reads GGUF; {} weights cannot be converted as they are", method),
                         "a GGUF of the same model (Q4_K_M is about as large as 4-bit AWQ)"};
      return verdict;
    }
    if (sizes.tp > 1 && sizes.pp > 1) {
      verdict.refusal = {"llamacpp.one_split",
                         fmt::format("TP={} and PP={}: --split-mode is layer or tensor, not both", sizes.tp, sizes.pp),
                         fmt::format("PP={} (--split-mode layer)", sizes.tp * sizes.pp)};
      return verdict;
    }
    if (sizes.pp > config.layerCount() + 1) {
      verdict.refusal = {"llamacpp.layers",
                         fmt::format("{} devices for {} layers and the output layer", sizes.pp, config.layerCount()),
                         fmt::format("PP={} or fewer", config.layerCount() + 1)};
      return verdict;
    }
    if (sizes.tp > 1) checkTensorSplit(context, sizes.tp, verdict);
    if (verdict.refusal) return verdict;
    if (context.model.origin != ModelSource::Origin::GgufHeader) {
      verdict.warnings.push_back(
          {"llamacpp.gguf", "llama.cpp needs a GGUF file: planned as if the weights were converted at their stored precision",
           "convert_hf_to_gguf.py, or open the GGUF itself"});
    }
    if (sizes.dp > 1)
      verdict.warnings.push_back({"llamacpp.replicas", "each replica is a llama-server of its own, behind a router", ""});
    if (sizes.pp > 1) {
      verdict.warnings.push_back(
          {"llamacpp.layer_split", "devices work one after another on a request: room, not speed, grows with them", ""});
    }
    return verdict;
  }

  LayoutSizes sameVerdict(const RuleContext& context, LayoutSizes sizes) const override {
    const int64_t most = context.model.config.layerCount() + 1;
    return {sizes.tp, sizes.tp > 1 || sizes.pp > most ? sizes.pp : std::min(sizes.pp, 2), std::min(sizes.dp, 2)};
  }

  std::vector<Range> stages(const ModelConfig& config, int pp) const override {
    return llamaCppLayers(config.layerCount(), std::vector<double>(pp, 1.0));
  }

 private:
  static void checkTensorSplit(const RuleContext& context, int tp, RuleVerdict& verdict) {
    const ModelConfig& config = context.model.config;
    if (tp > kMostTensorDevices) {
      verdict.refusal = {"llamacpp.devices", fmt::format("{} devices: the tensor split takes {} at most", tp, kMostTensorDevices),
                         fmt::format("PP={} (--split-mode layer)", tp)};
      return;
    }
    if (std::find(kNoTensorSplit.begin(), kNoTensorSplit.end(), config.modelType) != kNoTensorSplit.end()) {
      verdict.refusal = {"llamacpp.architecture", fmt::format("{} has no tensor split", config.modelType),
                         fmt::format("PP={} (--split-mode layer)", tp)};
      return;
    }
    verdict.warnings.push_back({"llamacpp.tensor_split",
                                "the tensor split is experimental: it needs flash attention, and --fit does not size it",
                                fmt::format("PP={} (--split-mode layer) always works", tp)});
    if ((tp & (tp - 1)) != 0) {
      verdict.warnings.push_back({"llamacpp.odd_devices",
                                  fmt::format("{} devices: counts that are no power of two can stop at an assertion in "
                                              "ggml-backend-meta",
                                              tp),
                                  ""});
    }
    const LayerSpec* layer = firstAttentionLayer(config);
    if (!layer || layer->kvHeads <= 0) return;
    const LlamaCppGranules granules = llamaCppGranules(context.model, *layer);
    if (granules.kvUnits < tp) {
      verdict.warnings.push_back(
          {"llamacpp.idle_devices",
           fmt::format("attention of a layer has {} pieces{}: {} of {} devices wait in every layer", granules.kvUnits,
                       granules.kvHeadsEach > 1
                           ? fmt::format(" ({} KV heads each, by the quantization block of attn_output)", granules.kvHeadsEach)
                           : "",
                       tp - granules.kvUnits, tp),
           fmt::format("TP={} or fewer", granules.kvUnits)});
    }
  }
};

}  // namespace

std::vector<Range> llamaCppLayers(int64_t layers, const std::vector<double>& shares) {
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<Range> ranges;
  double sum = 0;
  int64_t at = 0;
  for (size_t device = 0; device < shares.size(); ++device) {
    sum += shares[device];
    int64_t end = at;
    const bool last = device + 1 == shares.size();
    while (end < layers && (last || static_cast<double>(end) / static_cast<double>(layers + 1) < sum / all)) ++end;
    ranges.push_back({at, end});
    at = end;
  }
  return ranges;
}

LlamaCppGranules llamaCppGranules(const ModelSource& model, const LayerSpec& layer) {
  LlamaCppGranules granules;
  if (layer.kvHeads > 0 && layer.qHeads > 0 && layer.headDim > 0) {
    const int64_t group = std::max<int64_t>(1, layer.qHeads / layer.kvHeads) * layer.headDim;
    granules.kvHeadsEach = std::lcm(group, blockOf(model, TensorRole::O)) / group;
    granules.kvUnits = ceilDiv(layer.kvHeads, granules.kvHeadsEach);
  }
  const bool experts = layer.ffn == FfnKind::MixtureOfExperts;
  const int64_t columns = experts ? layer.moe.expertIntermediate : layer.intermediateSize;
  granules.columnsEach = blockOf(model, experts ? TensorRole::ExpertDown : TensorRole::Down);
  granules.columnUnits = ceilDiv(columns, granules.columnsEach);
  return granules;
}

Range llamaCppPiece(int64_t units, int devices, int device, int64_t layer) {
  const int64_t piece = (device + layer) % devices;
  return {units * piece / devices, units * (piece + 1) / devices};
}

const EngineRules& llamaCppRules() {
  static const LlamaCppRules rules;
  return rules;
}

}  // namespace headroom
