// SPDX-License-Identifier: Apache-2.0
// Joins layouts, rules, memory and predictions into the plan that the command line prints and the window draws.
#pragma once

#include "core/launch/lazy_list.h"
#include "core/layout/rules/engine_rules.h"
#include "core/memory/memory_plan.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct EngineSelection {
  EngineKind kind = EngineKind::Headroom;
  std::string version;  // empty: the newest that is known
};
// The version as the rules compare it.
EngineVersion versionOf(const EngineSelection& engine);
Result<EngineSelection> parseEngine(std::string_view text);  // "vllm@0.21"

// What a start on this machine took more (or less) than was predicted, of each rank; start_log.h makes it from a log.
struct MemoryCorrection {
  Bytes weights, activations, graphs, runtime;
  bool severalRanks = false;  // measured with TP > 1; holds for layouts that are alike in this
  std::string source;         // "start-up log of vllm 0.21"
};

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
  // Whole experts on each rank in place of columns of all of them, where the engine can (vLLM, SGLang, TensorRT-LLM).
  bool expertParallel = false;
  // Replicas of the attention share one set of experts (SGLang and TensorRT-LLM; vLLM's replicas of expert models always do).
  bool attentionDataParallel = false;
  std::vector<MemoryCorrection> corrections;  // measured here, with this engine; one for each kind of layout at most
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
  std::optional<Bytes> budget;  // of the GPU's memory that the engine may fill, by its own rule
};

struct Prediction {
  std::optional<double> decodeTokensPerSecond;      // one request
  std::optional<double> throughputTokensPerSecond;  // all of them
  std::optional<double> itlMs, prefillTokensPerSecond, ttftMs;
  std::string source;                         // "modelled: …"
  std::optional<double> itlError, ttftError;  // shares within which nine of ten timed cases of the model's kind lie
};

// What a layout has room for beyond the asked load.
struct LayoutAnswers {
  std::optional<int64_t> longestContext;  // tokens of each of the asked requests; the model's positions at most
  std::optional<int64_t> mostRequests;    // of the asked length, all replicas together
};

// Memory of the fullest GPU when each of the asked requests has grown to `tokens`.
struct ContextPoint {
  int64_t tokens = 0;
  int gpu = 0;
  Bytes fixed;  // weights, activations, graphs, runtime
  Bytes kvCache;
  Bytes budget;
  bool fits() const { return fixed + kvCache <= budget; }
};

// Layers of the stages when room for tokens is balanced in place of the number of layers, and what that gains.
struct PartitionAdvice {
  std::vector<int64_t> layers;
  int64_t kvTokens = 0;  // modelled, with this partition
  double gain = 0;       // share of tokens more than the engine's own split has; 0 where that has none at all
};

// Memory that serves nothing.
struct WasteItem {
  std::string kind;  // stable id: "kv_copies", "stage_surplus", "outside_budget", "vocabulary_padding", "idle_gpus"
  Bytes bytes;       // of the whole layout
  std::string why;
};

struct LayoutPlan {
  int tp = 1, pp = 1, dp = 1;
  int ep = 1;                  // ranks that whole experts are dealt to; 1: each rank has columns of all experts
  bool sharedExperts = false;  // replicas share one set of experts
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
  LazyList<LayoutAnswers> answers;       // one; none when invalid
  LazyList<ContextPoint> contextSeries;  // up to the model's positions; none when invalid
  LazyList<PartitionAdvice> partition;   // one where another partition has room for at least a hundredth more tokens
  LazyList<WasteItem> waste;
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
  bool hostDevices = false;  // Headroom on host devices alone
  int64_t concurrency = 1, inputLen = 0, outputLen = 0;
  bool expertParallel = false, attentionDataParallel = false;
  // Which limits were asked for: a command names these, and leaves others to the engine.
  bool asksNumSeqs = false, asksBatchedTokens = false, asksUtilization = false;
  std::vector<MemoryCorrection> corrections;
};

// What Headroom's engine takes where no option says otherwise, on host devices or on GPUs.
struct HeadroomDefaults {
  int64_t maxNumSeqs = 0, maxNumBatchedTokens = 0;
  double gpuMemoryUtilization = 0.9;
};
HeadroomDefaults headroomDefaults(bool hostDevices);

struct PlanReport {
  ModelConfig model;
  int64_t parameters = 0;
  Bytes checkpointBytes;
  std::optional<int64_t> kvBytesPerToken;
  Machine machine;
  ResolvedOptions options;
  std::string assumedQuantization;  // of a checkpoint that was not opened ("as if it were awq"); empty: none was assumed
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

// "schema": "headroom.plan/1", as text that `write` takes part by part, indented by two. `modelArgument`: the model as its user
// names it, for the commands; empty: the model's name. `comparison`: a member of that name; null: none.
void writePlanJson(const PlanReport& report, const std::string& modelArgument, const nlohmann::json& comparison,
                   const std::function<void(std::string_view)>& write);
// The same as one value.
nlohmann::json planToJson(const PlanReport& report, const std::string& modelArgument = {});

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
  std::vector<Option> dockerExplained;
  struct OnNode {
    int node = 0;
    std::string text;
  };
  std::vector<OnNode> nodes;  // on several machines: what to type on each, in this order; empty on one
};
std::optional<LaunchCommand> launchCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& modelArgument);

// Whether the stages of Headroom's layout follow cards with unequal room: then its sizes alone do not say it, and serve takes the
// layout itself (--layout).
bool needsLayoutFile(const PlanReport& report, const LayoutPlan& layout);

}  // namespace headroom
