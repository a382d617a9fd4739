// SPDX-License-Identifier: Apache-2.0
// Joins layouts, rules, memory and predictions into the plan that the command line prints and the window draws.
#pragma once

#include "core/launch/lazy_list.h"
#include "core/layout/rules/engine_rules.h"
#include "core/memory/memory_plan.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct EngineSelection {
  EngineKind kind = EngineKind::Headroom;
  std::string version;  // empty: the newest that is known
};
// The version as the rules compare it.
EngineVersion versionOf(const EngineSelection& engine);
Result<EngineSelection> parseEngine(std::string_view text);  // "vllm@0.21"

// As asked; empty means the engine's default.
struct PlanOptions {
  EngineSelection engine;
  std::optional<DType> dtype;
  std::optional<std::string> quantization;
  std::optional<DType> kvCacheDType;
  std::optional<int64_t> maxModelLen, maxNumSeqs, maxNumBatchedTokens;
  std::optional<double> gpuMemoryUtilization;
  bool enforceEager = false;
  int64_t concurrency = 1;  // requests at once that headroom and predictions are for
  std::optional<int64_t> inputLen, outputLen;
};

enum class Verdict : uint8_t { Fits, Tight, DoesNotFit, Invalid };
std::string_view verdictName(Verdict verdict);

struct Reason {
  std::string rule;     // stable id: "vllm.attention_heads"
  std::string message;  // the arithmetic and the engine's own words
  std::string fix;      // the cheapest way out; may be empty
};

// Where a number comes from; shown beside it.
enum class Provenance : uint8_t { Exact, Modelled, MeasuredHere };
std::string_view provenanceName(Provenance provenance);

struct RankPlan {
  RankSlice slice;
  // Empty: unknown.
  std::optional<Bytes> weights, kvCache, activations, graphs, runtime, headroom;
};

struct Prediction {
  std::optional<double> decodeTokensPerSecond;      // one request
  std::optional<double> throughputTokensPerSecond;  // all of them
  std::optional<double> itlMs, prefillTokensPerSecond, ttftMs;
  std::string source;  // "modelled: …"
};

struct LayoutPlan {
  int tp = 1, pp = 1, dp = 1;
  bool even = true;
  Verdict verdict = Verdict::Invalid;
  LazyList<Reason> reasons;       // first: what decides
  std::optional<Bytes> headroom;  // of the fullest GPU, at the asked context and concurrency
  std::optional<int> limitingGpu;
  std::optional<Bytes> kvCache;  // all ranks of one replica together
  std::optional<int64_t> kvTokens;
  std::optional<double> maxConcurrency;  // sequences of maxModelLen
  LazyList<Reason> warnings;             // accepted by the engine, but worth knowing
  LazyList<RankPlan> ranks;              // empty when invalid
  Prediction predicted;
  Provenance weightsProvenance = Provenance::Exact, memoryProvenance = Provenance::Modelled;
};

// Options after defaults.
struct ResolvedOptions {
  EngineSelection engine;
  DType dtype = DType::BF16, kvCacheDType = DType::BF16;
  std::string quantization;  // empty: none
  int64_t maxModelLen = 0, maxNumSeqs = 0, maxNumBatchedTokens = 0;
  double gpuMemoryUtilization = 0.9;
  bool enforceEager = false;
  int64_t concurrency = 1, inputLen = 0, outputLen = 0;
};

struct PlanReport {
  ModelConfig model;
  int64_t parameters = 0;
  Bytes checkpointBytes;
  std::optional<int64_t> kvBytesPerToken;
  Machine machine;
  ResolvedOptions options;
  std::vector<LayoutPlan> layouts;  // every tp x pp x dp with tp*pp*dp <= GPUs, invalid ones included; ordered by dp, pp, tp
  struct Recommendation {
    int tp = 1, pp = 1, dp = 1;
    std::string why;
  };
  std::optional<Recommendation> recommended;
  const LayoutPlan* find(int tp, int pp, int dp) const;
};

Result<PlanReport> planModel(const ModelSource& model, const Machine& machine, const PlanOptions& options);
// One layout only (all its splits), e.g. before a start. The window calls planModel on a worker thread.
Result<LayoutPlan> planLayout(const ModelSource& model, const Machine& machine, const PlanOptions& options, int tp, int pp,
                              int dp);

// "schema": "headroom.plan/1".
nlohmann::json planToJson(const PlanReport& report);

// Engine limits of Headroom for resolved options; serve uses it too, so that both size the same engine.
EngineLimits engineLimits(const ResolvedOptions& options);
// Defaults of Headroom's engine for a model on a machine.
// A length that was not asked for is lowered to what fits: on `layout` when given, else on the machine's best layout.
Result<ResolvedOptions> resolveHeadroomOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options,
                                               const ParallelLayout* layout = nullptr);

// What to type to start this layout: a shell-quoted command with each option explained in one clause.
struct LaunchCommand {
  std::string text;
  struct Option {
    std::string option, why;
  };
  std::vector<Option> explained;
  std::string docker;  // the same in the engine's container; empty where there is none
};
std::optional<LaunchCommand> launchCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& modelArgument);

}  // namespace headroom
