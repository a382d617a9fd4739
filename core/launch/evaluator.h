// SPDX-License-Identifier: Apache-2.0
// Private to core/launch: plans single layouts of one model on one machine for one engine. An engine says what a rank of one
// replica takes; verdicts, cache sizes, predictions and texts are made here, for all engines alike.
#pragma once

#include "core/launch/planner.h"
#include "core/layout/condensed_model.h"
#include "core/memory/held_weights.h"
#include "core/memory/weight_table.h"
#include "core/performance/roofline.h"

#include <array>
#include <map>
#include <memory>
#include <tuple>

namespace headroom {

// What a rank takes, as far as it differs between the ranks of a replica.
struct PartBytes {
  Bytes weights;
  std::optional<Bytes> activations, graphs, runtime;
  Bytes cacheFixed;           // cache that does not grow with the context (sliding windows that are kept apart)
  Bytes cacheUnit;            // cache of one block
  int64_t unitsNeeded = 0;    // blocks for the asked load
  Bytes cacheFixedOfRequest;  // share of cacheFixed that one request more would add
  Bytes lengthUnit;           // what each block more of the maximum length takes beside the cache, now or not
  Bytes taken() const {
    return weights + activations.value_or(Bytes()) + graphs.value_or(Bytes()) + runtime.value_or(Bytes()) + cacheFixed;
  }
};

// TP ranks that take the same bytes in every stage form a class.
struct RankClasses {
  std::vector<int> of;            // by TP rank
  std::vector<int> first, count;  // by class: its first TP rank, and how many it has
  void add(int kind) {            // of the next TP rank
    if (kind == static_cast<int>(first.size())) {
      first.push_back(static_cast<int>(of.size()));
      count.push_back(0);
    }
    ++count[kind];
    of.push_back(kind);
  }
};

// One replica of tp x pp ranks.
struct ReplicaPlan {
  int tp = 1, pp = 1;
  bool even = true;
  std::vector<Range> stages;
  std::shared_ptr<const std::vector<RankSlice>> tpSlices;  // heads, columns and vocabulary of each TP rank
  int classes = 1;
  std::shared_ptr<const RankClasses> rankClasses;  // null: all alike
  std::vector<PartBytes> parts;                    // stage x classes + class
  double utilization = 0.9;
  int64_t unitTokens = 16;
  int64_t unitGroups = 1;       // groups of layers that take units of their own
  int64_t unitsPerRequest = 1;  // one request of the maximum length
  bool tokensByUnits = true;    // tokens = blocks x unitTokens; else by concurrency
  // Blocks that so many requests of so many tokens take; empty: unitTokens each, rounded up.
  std::function<int64_t(int64_t tokens, int64_t requests)> unitsFor;
  // For other partitions of the layers: bytes of each layer on a rank, and what the ends and every stage hold besides. Only where
  // the engine takes another partition than its own.
  struct StageCosts {
    std::vector<int64_t> layerBytes;
    int64_t first = 0, last = 0, everywhere = 0;
  };
  std::shared_ptr<const StageCosts> costs;
  int64_t kvCopies = 1;  // ranks of a stage that hold the same KV head
  int ep = 1;            // ranks that whole experts are dealt to
  bool sharedExperts = false;
  const PartBytes& part(int stage, int tpRank) const {
    return parts[stage * classes + (rankClasses ? rankClasses->of[tpRank] : 0)];
  }
  int firstRankOf(int kind) const { return rankClasses ? rankClasses->first[kind] : 0; }
  int rankCountOf(int kind) const { return rankClasses ? rankClasses->count[kind] : tp; }
};

// What texts and ranks need after the evaluator is gone.
struct GridContext {
  EngineKind engine = EngineKind::Headroom;
  EngineVersion version;
  std::vector<int> order;  // GPUs in the order that ranks take them: the largest first
  std::vector<MachineGpu> gpus;
  bool alike = true;  // all GPUs have the same memory
  int64_t maxModelLen = 0, tokensPerRequest = 0;
  std::vector<int> acceptedTp;
  int64_t layers = 0;
  bool pipeline = true;          // stages are accepted at all
  int64_t positions = 0;         // that the model was made for; 0: unknown
  int64_t concurrency = 1;       // requests at once, all replicas together
  bool quantized = false;        // the checkpoint is
  bool lengthIsLowered = false;  // to what fits: it follows the other options
  std::string fitting;           // words on the smallest layout that fits; empty: none does
};

// What is asked of one layout after its plan; each list is made when it is first read.
struct LayoutDetails {
  std::shared_ptr<const GridContext> context;
  std::shared_ptr<const ReplicaPlan> replica;
  int dp = 1;
  int64_t requests = 1;  // at once on a replica
  int64_t blocks = 0;    // that each rank has
  // The rank with the least headroom.
  const PartBytes* tightest = nullptr;
  int tightestGpu = 0;
  Bytes left;

  std::vector<Reason> fitReasons() const;
  // What would make it fit, in words: fewer requests or a shorter context, a larger share of the memory, a smaller layout.
  std::string fix() const;
  std::vector<RankPlan> rankPlans() const;
  std::vector<LayoutAnswers> layoutAnswers() const;
  std::vector<ContextPoint> contextPoints() const;
  std::vector<PartitionAdvice> partitionAdvice() const;
  std::vector<WasteItem> wasteItems() const;

  template <class T, std::vector<T> (LayoutDetails::*make)() const>
  static std::vector<T> made(const void* details) {
    return (static_cast<const LayoutDetails*>(details)->*make)();
  }
  LazyList<Reason>::Place reasons{this, &made<Reason, &LayoutDetails::fitReasons>};
  LazyList<RankPlan>::Place ranks{this, &made<RankPlan, &LayoutDetails::rankPlans>};
  LazyList<LayoutAnswers>::Place answers{this, &made<LayoutAnswers, &LayoutDetails::layoutAnswers>};
  LazyList<ContextPoint>::Place series{this, &made<ContextPoint, &LayoutDetails::contextPoints>};
  LazyList<PartitionAdvice>::Place partition{this, &made<PartitionAdvice, &LayoutDetails::partitionAdvice>};
  LazyList<WasteItem>::Place waste{this, &made<WasteItem, &LayoutDetails::wasteItems>};
};

// GPU memory that the parts may fill, by the engine's own rule.
Bytes budgetOf(const GridContext& context, const MachineGpu& gpu, const ReplicaPlan& replica, const PartBytes& part);

// Tokens that one request may grow to: what was asked, else the maximum length.
int64_t tokensPerRequest(const ResolvedOptions& options);
int64_t requestsPerReplica(const ResolvedOptions& options, int dp);
// Blocks that so many requests of so many tokens take.
int64_t blocksFor(const ReplicaPlan& replica, int64_t tokens, int64_t requests);
// The largest number up to `most` for which `good` holds; 0 when not even 1. `good` holds up to some number.
int64_t largestNumber(int64_t most, const std::function<bool(int64_t)>& good);
// GPUs in the order that ranks take them: the largest first.
std::vector<int> gpuOrder(const Machine& machine);
// Whether the engine has the same memory on every GPU.
bool areAlike(const Machine& machine, const ResolvedOptions& options);
// How the model's matrices are held, for predictions.
MatrixFormat matrixFormatOf(const ModelConfig& config, const ResolvedOptions& options);

class LayoutEvaluator {
 public:
  LayoutEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                  const ResolvedOptions& options);
  virtual ~LayoutEvaluator() = default;
  LayoutPlan evaluate(int tp, int pp, int dp);
  // What layouts that do not fit are told of others: "TP=4 (4 GPUs) fits". Before any reason is read.
  void setFitting(std::string words) { m_context->fitting = std::move(words); }

 protected:
  // Why the engine does not take the sizes, or the warnings that go with them.
  struct Acceptance {
    bool even = true;
    std::optional<LazyList<Reason>> refusal;
    LazyList<Reason> warnings;
  };
  virtual Acceptance accept(int tp, int pp, int dp) = 0;
  // Of accepted sizes. unitsNeeded is for `requests` at once on the replica.
  virtual std::shared_ptr<const ReplicaPlan> replica(int tp, int pp, int dp, int64_t requests) = 0;

  // The table of weights as `bytesOf` says the engine holds a tensor.
  WeightTable weightTable(const std::function<int64_t(const TensorEntry&)>& bytesOf) const;
  // Layers of each kind among these. Layers of one kind take the same cache and buffers.
  std::vector<int64_t> layersByKind(Range layers) const {
    std::vector<int64_t> count;
    countByKind(layers, count);
    return count;
  }
  void countByKind(Range layers, std::vector<int64_t>& count) const;
  // Whether two ranges hold as many layers of each kind.
  bool sameKinds(Range a, Range b) const;
  // Whether two stages of a replica take the same, up to what the ends hold: layers of the same kinds, and the same end.
  class SameStages;
  // Mean bytes of an element in the layers' and in the outer matrices, for predictions.
  void meanBytes(const std::function<int64_t(const TensorEntry&)>& bytesOf);
  void meanBytes(const HeldWeights& weights) {
    m_layerBytesPerElement = weights.layerBytesPerElement();
    m_headBytesPerElement = weights.headBytesPerElement();
  }

  const ModelSource& m_model;
  const CondensedModel& m_condensed;
  const Machine& m_machine;
  ResolvedOptions m_options;
  std::shared_ptr<GridContext> m_context;
  std::vector<int> m_kindOf;        // by layer
  std::vector<size_t> m_kindLayer;  // one layer of each kind
  Provenance m_memoryProvenance = Provenance::Modelled;

 private:
  // Gives the blocks of the KV cache that every rank of the replica has room for.
  int64_t fillMemory(LayoutPlan& plan, const std::shared_ptr<const ReplicaPlan>& replica, int64_t requests);
  // vLLM's own check of the free memory, where what other processes hold is known.
  void checkFreeAtStart(LayoutPlan& plan, const ReplicaPlan& replica) const;
  // The replica with what was measured here, where there is a measurement of its kind.
  std::shared_ptr<const ReplicaPlan> corrected(const std::shared_ptr<const ReplicaPlan>& replica, bool& measured);
  void predict(LayoutPlan& plan, const ReplicaPlan& replica, int64_t requests, int64_t blocks);

  std::map<const ReplicaPlan*, std::shared_ptr<const ReplicaPlan>> m_corrected;
  double m_layerBytesPerElement = 2, m_headBytesPerElement = 2;
  // Layouts that differ in nothing that matters for speed are predicted once: by tp, pp, requests, those of
  // them that run at once, and the slowest GPU.
  std::map<std::tuple<int, int, int64_t, int64_t, int>, Prediction> m_predictions;
};

// What was computed for one stage of a replica serves the others like it.
class LayoutEvaluator::SameStages {
 public:
  SameStages(const LayoutEvaluator& evaluator, const ReplicaPlan& replica) : m_evaluator(evaluator), m_replica(replica) {}
  // An earlier stage like this one; this one itself when there is none.
  int find(int stage);

 private:
  const LayoutEvaluator& m_evaluator;
  const ReplicaPlan& m_replica;
  std::vector<int> m_seen;
};

// Engines that split evenly by published rules: vLLM, SGLang, TensorRT-LLM.
class EvenEvaluator : public LayoutEvaluator {
 public:
  EvenEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine, const ResolvedOptions& options,
                const EngineRules& rules, std::optional<DType> askedDType, bool vocabularyPadded, bool replicasShareExperts);

 protected:
  Acceptance accept(int tp, int pp, int dp) override;
  std::shared_ptr<const ReplicaPlan> replica(int tp, int pp, int dp, int64_t requests) override;
  // Everything of the replica but the weights and the slices: memory by stage, and blocks.
  virtual void fillReplica(ReplicaPlan& replica, int64_t requests) = 0;

 private:
  std::shared_ptr<const std::vector<RankSlice>> slicesFor(int tp);

  const EngineRules& m_rules;
  RuleContext m_ruleContext;
  bool m_vocabularyPadded, m_replicasShareExperts, m_hasExperts = false;
  HeldWeights m_weights;
  struct RankWeights {
    HeldWeights::Shares shares;
    std::shared_ptr<const ReplicaPlan::StageCosts> costs;
  };

  std::map<std::tuple<int, int, int>, Acceptance> m_accepted;
  std::map<int, std::shared_ptr<const std::vector<RankSlice>>> m_slices;
  std::map<std::tuple<int, int, int, int64_t>, std::shared_ptr<const ReplicaPlan>> m_replicas;
  std::map<std::pair<int, int>, RankWeights> m_shares;
};

// `lengthWasAsked` false: lowers options.maxModelLen to what fits on the machine's best layout.
std::unique_ptr<LayoutEvaluator> makeHeadroomEvaluator(const ModelSource& model, const CondensedModel& condensed,
                                                       const Machine& machine, ResolvedOptions& options, bool lengthWasAsked);
std::unique_ptr<LayoutEvaluator> makeVllmEvaluator(const ModelSource& model, const CondensedModel& condensed,
                                                   const Machine& machine, const ResolvedOptions& options,
                                                   const PlanOptions& asked);
std::unique_ptr<LayoutEvaluator> makeSgLangEvaluator(const ModelSource& model, const CondensedModel& condensed,
                                                     const Machine& machine, const ResolvedOptions& options,
                                                     const PlanOptions& asked);
std::unique_ptr<LayoutEvaluator> makeTensorRtEvaluator(const ModelSource& model, const CondensedModel& condensed,
                                                       const Machine& machine, const ResolvedOptions& options,
                                                       const PlanOptions& asked);
std::unique_ptr<LayoutEvaluator> makeLmDeployEvaluator(const ModelSource& model, const CondensedModel& condensed,
                                                       const Machine& machine, const ResolvedOptions& options,
                                                       const PlanOptions& asked);
std::unique_ptr<LayoutEvaluator> makeLlamaCppEvaluator(const ModelSource& model, const CondensedModel& condensed,
                                                       const Machine& machine, const ResolvedOptions& options,
                                                       const PlanOptions& asked);

// Options after defaults; Headroom's length is still the model's own where none was asked.
Result<ResolvedOptions> resolveHeadroomDefaults(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                                                const PlanOptions& options);
Result<ResolvedOptions> resolveVllmOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options);
Result<ResolvedOptions> resolveSgLangOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options);
Result<ResolvedOptions> resolveTensorRtOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options);
Result<ResolvedOptions> resolveLmDeployOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options);
Result<ResolvedOptions> resolveLlamaCppOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options);

}  // namespace headroom
