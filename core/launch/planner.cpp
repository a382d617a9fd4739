// SPDX-License-Identifier: Apache-2.0
// The grid: every TP x PP x DP of a machine with its verdict, what would help where it does not fit, and which one to take.
#include "core/launch/planner.h"

#include "core/launch/evaluator.h"
#include "core/launch/prepared_model.h"
#include "core/memory/kv_cache_size.h"
#include "core/memory/vllm_memory.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>

namespace headroom {
namespace {

constexpr std::array<EngineKind, 6> kPlannedEngines{EngineKind::Headroom,    EngineKind::Vllm,     EngineKind::SgLang,
                                                    EngineKind::TensorRtLlm, EngineKind::LmDeploy, EngineKind::LlamaCpp};

Result<ResolvedOptions> resolveOptions(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                                       const PlanOptions& options) {
  const auto resolve = [&]() -> Result<ResolvedOptions> {
    switch (options.engine.kind) {
      case EngineKind::Vllm:
        return resolveVllmOptions(model, machine, options);
      case EngineKind::SgLang:
        return resolveSgLangOptions(model, machine, options);
      case EngineKind::TensorRtLlm:
        return resolveTensorRtOptions(model, machine, options);
      case EngineKind::LlamaCpp:
        return resolveLlamaCppOptions(model, machine, options);
      case EngineKind::LmDeploy:
        return resolveLmDeployOptions(model, machine, options);
      case EngineKind::Headroom:
        break;
    }
    return resolveHeadroomDefaults(model, condensed, machine, options);
  };
  Result<ResolvedOptions> resolved = resolve();
  if (!resolved) return resolved;
  resolved->asksNumSeqs = options.maxNumSeqs.has_value();
  resolved->asksBatchedTokens = options.maxNumBatchedTokens.has_value();
  resolved->asksUtilization = options.gpuMemoryUtilization.has_value();
  resolved->corrections = options.corrections;
  return resolved;
}

std::unique_ptr<LayoutEvaluator> evaluatorFor(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                                              const PlanOptions& asked, ResolvedOptions& options) {
  switch (options.engine.kind) {
    case EngineKind::Vllm:
      return makeVllmEvaluator(model, condensed, machine, options, asked);
    case EngineKind::SgLang:
      return makeSgLangEvaluator(model, condensed, machine, options, asked);
    case EngineKind::TensorRtLlm:
      return makeTensorRtEvaluator(model, condensed, machine, options, asked);
    case EngineKind::LlamaCpp:
      return makeLlamaCppEvaluator(model, condensed, machine, options, asked);
    case EngineKind::LmDeploy:
      return makeLmDeployEvaluator(model, condensed, machine, options, asked);
    case EngineKind::Headroom:
      break;
  }
  return makeHeadroomEvaluator(model, condensed, machine, options, asked.maxModelLen.has_value());
}

std::string sizesText(const LayoutPlan& plan) {
  std::string text;
  if (plan.dp > 1) text = fmt::format("{} replicas of ", plan.dp);
  if (plan.tp > 1 || plan.pp == 1) text += fmt::format("TP={}", plan.tp);
  if (plan.pp > 1) text += fmt::format("{}PP={}", plan.tp > 1 ? " x " : "", plan.pp);
  return text;
}

bool usable(const LayoutPlan& plan) { return plan.verdict == Verdict::Fits || plan.verdict == Verdict::Tight; }

// K and V of one token in all layers, before any copies.
std::optional<int64_t> kvBytesPerToken(const ModelConfig& config, DType dtype) {
  const auto heads = [&](int64_t count, int64_t key, int64_t value) {  // the servers' types have no scales
    const DTypeInfo& info = dtypeInfo(dtype);
    return info.blockElements == 1 ? kvCacheBytes(dtype, 1, count, key, value).count()
                                   : count * (key + value) * info.blockBytes / info.blockElements;
  };
  int64_t bytes = 0;
  for (const LayerSpec& layer : config.layers) {
    if (layer.sharesKv) continue;
    if (layer.attention == AttentionKind::Latent)
      bytes += heads(1, layer.latent.kvLoraRank + layer.latent.qkRopeHeadDim, 0);
    else if (layer.attention == AttentionKind::Full || layer.attention == AttentionKind::SlidingWindow ||
             layer.attention == AttentionKind::ChunkedWindow)
      bytes += heads(layer.kvHeads, layer.headDim, layer.vHeadDim > 0 ? layer.vHeadDim : layer.headDim);
  }
  if (bytes == 0) return std::nullopt;
  return bytes;
}

// "TP=4 (4 GPUs) fits", of the smallest layout of one replica that does; empty: none does.
std::string smallestThatFits(const std::vector<LayoutPlan>& layouts) {
  const LayoutPlan* smallest = nullptr;
  for (const LayoutPlan& plan : layouts) {
    if (plan.dp == 1 && usable(plan) && (!smallest || plan.tp * plan.pp < smallest->tp * smallest->pp)) smallest = &plan;
  }
  if (!smallest) return {};
  const int gpus = smallest->tp * smallest->pp;
  return fmt::format("{} ({} GPU{}) fits", sizesText(*smallest), gpus, gpus > 1 ? "s" : "");
}

std::string linkText(const PlanReport& report, const LayoutPlan& plan) {
  if (plan.tp == 1) return plan.pp == 1 ? "no traffic between GPUs" : "only hidden states pass between stages";
  const GpuSpec& spec = report.machine.gpus.front().spec;
  // Two all-reduces a layer, of one row of 16-bit hidden values a token, each moving 2 (n-1)/n of it.
  const double bytes = 2.0 * static_cast<double>(report.model.layerCount()) * 2.0 * (plan.tp - 1) / plan.tp *
                       static_cast<double>(report.model.hiddenSize) * 2.0;
  const char* link = spec.link == LinkKind::NvLink ? "NVLink" : spec.link == LinkKind::Pcie ? "PCIe" : "host memory";
  return fmt::format("its all-reduces move {:.1f} MiB a token and GPU over {}", bytes / 1048576.0, link);
}

// One user: lowest latency. Several: most tokens a second. Without predictions: the fewest GPUs. Fewer GPUs where it makes no
// difference.
void recommend(PlanReport& report) {
  constexpr double kSame = 0.03;
  const bool many = report.options.concurrency > 1;
  auto speed = [&](const LayoutPlan& plan) {
    return (many ? plan.predicted.throughputTokensPerSecond : plan.predicted.decodeTokensPerSecond).value_or(0.0);
  };
  const LayoutPlan* best = nullptr;
  for (const LayoutPlan& plan : report.layouts) {
    if (!usable(plan)) continue;
    if (!best) {
      best = &plan;
      continue;
    }
    if ((plan.verdict == Verdict::Fits) != (best->verdict == Verdict::Fits)) {
      if (plan.verdict == Verdict::Fits) best = &plan;
      continue;
    }
    const double mine = speed(plan), other = speed(*best);
    const int gpus = plan.tp * plan.pp * plan.dp, otherGpus = best->tp * best->pp * best->dp;
    const bool faster = mine > other * (1 + kSame), asFast = mine >= other * (1 - kSame);
    if (faster || (asFast && gpus < otherGpus)) best = &plan;
  }
  if (!best) return;
  const int gpus = best->tp * best->pp * best->dp;
  const bool host = report.machine.isHostOnly();
  std::string why = fmt::format("{} on {} {}{}: {} with {:.1f} GiB to spare on the fullest", sizesText(*best), gpus,
                                host ? "host device" : "GPU", gpus > 1 ? "s" : "",
                                best->verdict == Verdict::Fits ? "fits" : "fits tightly", best->headroom->gib());
  if (best->predicted.decodeTokensPerSecond) {
    why += many ? fmt::format(", and is predicted to make the most tokens for {} requests ({:.0f} tokens/s)",
                              report.options.concurrency, *best->predicted.throughputTokensPerSecond)
                : fmt::format(", and is predicted fastest for one request ({:.1f} tokens/s)",
                              *best->predicted.decodeTokensPerSecond);
    why += "; " + linkText(report, *best);
  } else {
    why += host ? ", on the fewest devices: they share one machine's memory, so more of them add room rather than speed"
                : ", on the fewest GPUs";
  }
  report.recommended = PlanReport::Recommendation{best->tp, best->pp, best->dp, why + "."};
}

}  // namespace

std::string_view verdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::Fits:
      return "fits";
    case Verdict::Tight:
      return "tight";
    case Verdict::DoesNotFit:
      return "does_not_fit";
    case Verdict::Invalid:
      return "invalid";
  }
  return "";
}

std::string_view provenanceName(Provenance provenance) {
  switch (provenance) {
    case Provenance::Exact:
      return "exact";
    case Provenance::Modelled:
      return "modelled";
    case Provenance::MeasuredHere:
      return "measured here";
  }
  return "";
}

namespace {

// "main at 2025-04-24": the last release before that day. Days of release as vLLM's release page tells them, of later ones as far
// as known here.
std::optional<EngineVersion> vllmReleaseBefore(std::string_view text) {
  struct Release {
    std::string_view day;
    EngineVersion version;
  };
  static constexpr Release kReleases[] = {{"2024-04-24", {0, 4, 1}},  {"2024-06-11", {0, 5, 0}},  {"2024-09-04", {0, 6, 0}},
                                          {"2024-11-15", {0, 6, 4}},  {"2025-01-27", {0, 7, 0}},  {"2025-03-18", {0, 8, 0}},
                                          {"2025-04-06", {0, 8, 3}},  {"2025-05-28", {0, 9, 0}},  {"2025-07-24", {0, 10, 0}},
                                          {"2025-10-02", {0, 11, 0}}, {"2026-04-24", {0, 21, 0}}, {"2026-11-01", {0, 32, 0}}};
  const auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  for (size_t at = 0; at + 10 <= text.size(); ++at) {
    const std::string_view day = text.substr(at, 10);
    if (!day.starts_with("20") || day[4] != '-' || day[7] != '-' || !digit(at + 2) || !digit(at + 3) || !digit(at + 5) ||
        !digit(at + 6) || !digit(at + 8) || !digit(at + 9))
      continue;
    std::optional<EngineVersion> last;
    for (const Release& release : kReleases)
      if (release.day <= day) last = release.version;  // days compare as text
    return last;
  }
  return std::nullopt;
}

}  // namespace

EngineVersion versionOf(const EngineSelection& engine) {
  if (const auto version = parseVersion(engine.version)) return *version;
  const auto released = engine.kind == EngineKind::Vllm ? vllmReleaseBefore(engine.version) : std::nullopt;
  return released.value_or(rulesOf(engine.kind).newestKnown());
}

Result<EngineSelection> parseEngine(std::string_view text) {
  const size_t at = text.find('@');
  std::string name(text.substr(0, at));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  EngineSelection selection;
  if (at != std::string_view::npos) {
    selection.version = std::string(text.substr(at + 1));
    const bool moving = selection.version.rfind("main", 0) == 0 || selection.version.rfind("nightly", 0) == 0;
    if (selection.version.empty() || (!moving && !parseVersion(selection.version))) {
      return failure("--engine", fmt::format("\"{}\"", text), "a version such as vllm@0.21");
    }
  }
  std::string known;
  for (EngineKind kind : kPlannedEngines) {
    if (name == engineName(kind)) {
      selection.kind = kind;
      return selection;
    }
    known += (known.empty() ? "" : " or ") + std::string(engineName(kind));
  }
  return failure("--engine", fmt::format("\"{}\"", text), known + ", with @VERSION where needed");
}

const LayoutPlan* PlanReport::find(int tp, int pp, int dp) const {
  const auto sizes = [](const LayoutPlan& plan) { return std::tuple(plan.dp, plan.pp, plan.tp); };
  const std::tuple wanted(dp, pp, tp);
  const auto at = std::lower_bound(layouts.begin(), layouts.end(), wanted,
                                   [&](const LayoutPlan& plan, const auto& other) { return sizes(plan) < other; });
  return at != layouts.end() && sizes(*at) == wanted ? &*at : nullptr;
}

namespace {
// Whether a 16-bit model is to be planned as if it were quantized. vLLM and SGLang make 8-bit weights themselves while they load.
bool asksWhatIf(const ModelSource& opened, const PlanOptions& options) {
  if (!options.quantization || opened.config.quantization) return false;
  const EngineKind kind = options.engine.kind;
  const bool quantizes = kind == EngineKind::Vllm || kind == EngineKind::SgLang;
  return !quantizes || (*options.quantization != "fp8" && *options.quantization != "int8");
}

PlanOptions withoutQuantization(PlanOptions options) {
  options.quantization.reset();
  return options;
}
}  // namespace

Result<PlanReport> planModel(const ModelSource& model, const Machine& machine, const PlanOptions& options) {
  return planModel(PreparedModel::borrowed(model), machine, options);
}

Result<PlanReport> planModel(const PreparedModel& prepared, const Machine& machine, const PlanOptions& options) {
  if (asksWhatIf(prepared.opened(), options)) {
    const auto quantized = prepared.quantized(*options.quantization);
    if (!quantized) return tl::unexpected(quantized.error());
    Result<PlanReport> report = planModel(**quantized, machine, withoutQuantization(options));
    if (report) report->assumedQuantization = *options.quantization;
    return report;
  }
  const bool own = options.engine.kind == EngineKind::Headroom;
  const ModelSource& model = own ? prepared.held() : prepared.opened();
  const CondensedModel& stored = prepared.condensed();
  const CondensedModel& condensed = own ? prepared.heldCondensed() : stored;
  Result<ResolvedOptions> resolved = resolveOptions(model, condensed, machine, options);
  if (!resolved) return tl::unexpected(resolved.error());
  PlanReport report;
  report.model = model.config;
  report.parameters = stored.parameters();
  report.checkpointBytes = stored.checkpointBytes();
  report.kvBytesPerToken = kvBytesPerToken(model.config, resolved->kvCacheDType);
  report.machine = machine;
  const auto evaluator = evaluatorFor(model, condensed, machine, options, *resolved);
  report.options = *resolved;
  const int gpus = machine.size();
  size_t layouts = 0;
  for (int dp = 1; dp <= gpus; ++dp) {
    for (int pp = 1; pp * dp <= gpus; ++pp) layouts += static_cast<size_t>(gpus / (pp * dp));
  }
  report.layouts.reserve(layouts);
  for (int dp = 1; dp <= gpus; ++dp) {
    for (int pp = 1; pp * dp <= gpus; ++pp) {
      for (int tp = 1; tp * pp * dp <= gpus; ++tp) report.layouts.push_back(evaluator->evaluate(tp, pp, dp));
    }
  }
  evaluator->setFitting(smallestThatFits(report.layouts));
  recommend(report);
  return report;
}

Result<LayoutPlan> planLayout(const ModelSource& opened, const Machine& machine, const PlanOptions& options, int tp, int pp,
                              int dp) {
  const PreparedModel prepared = PreparedModel::borrowed(opened);
  if (tp < 1 || pp < 1 || dp < 1 || static_cast<int64_t>(tp) * pp * dp > machine.size()) {
    return failure("layout", fmt::format("TP {} x PP {} x DP {}", tp, pp, dp),
                   fmt::format("at most {} GPUs in all", machine.size()));
  }
  if (asksWhatIf(opened, options)) {
    const auto quantized = prepared.quantized(*options.quantization);
    if (!quantized) return tl::unexpected(quantized.error());
    return planLayout((*quantized)->opened(), machine, withoutQuantization(options), tp, pp, dp);
  }
  const bool own = options.engine.kind == EngineKind::Headroom;
  const ModelSource& model = own ? prepared.held() : opened;
  const CondensedModel& condensed = own ? prepared.heldCondensed() : prepared.condensed();
  Result<ResolvedOptions> resolved = resolveOptions(model, condensed, machine, options);
  if (!resolved) return tl::unexpected(resolved.error());
  return evaluatorFor(model, condensed, machine, options, *resolved)->evaluate(tp, pp, dp);
}

}  // namespace headroom
