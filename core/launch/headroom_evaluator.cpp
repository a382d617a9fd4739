// SPDX-License-Identifier: Apache-2.0
// Layouts of Headroom's own engine. The same layouts, weights, cache blocks and activation buffers that the engine makes; what
// ranks or stages have in common is computed once.
#include "core/launch/evaluator.h"
#include "core/layout/stage_balance.h"
#include "core/memory/cuda_memory.h"
#include "core/memory/cuda_types.h"
#include "core/memory/workspace.h"

#include <algorithm>
#include <map>

namespace headroom {
namespace {

constexpr int64_t kLeastModelLen = 256;  // a length that was not asked for is not lowered beyond this

class HeadroomEvaluator : public LayoutEvaluator {
 public:
  HeadroomEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                    const ResolvedOptions& options)
      : LayoutEvaluator(model, condensed, machine, options),
        m_limits(engineLimits(options)),
        m_splitter(condensed),
        m_table(weightTable([this](const TensorEntry& tensor) { return loadedBytes(tensor, m_limits.computeDType).count(); })) {
    meanBytes([this](const TensorEntry& tensor) { return loadedBytes(tensor, m_limits.computeDType).count(); });
    m_blockTable = Bytes(blockTableBytes());
    m_memoryProvenance = machine.isLocal ? Provenance::Exact : Provenance::Modelled;
    if (!model.config.missingInEngine.empty()) {
      std::string missing;
      for (const std::string& part : model.config.missingInEngine) missing += (missing.empty() ? "" : ", ") + part;
      m_missing = LazyList<Reason>{
          {"headroom.missing", "the engine cannot run this model yet: " + missing, "plan with another --engine"}};
    }
    const bool onHost = machine.isHostOnly();
    if (const TensorEntry* other = onHost ? nullptr : heldByNoCudaDevice(condensed.model(), m_limits.computeDType);
        other && m_missing.empty()) {
      const DType type = loadedDType(*other, m_limits.computeDType);
      m_missing = LazyList<Reason>{
          {"headroom.cuda_types",
           fmt::format("{} has element type {}, expected on CUDA devices {}", other->name, dtypeName(type), kCudaTypes),
           "open the model in another quantization, or serve it with --device cpu"}};
    }
  }

  // Lowers the length to what fits on the best of the layouts that take the whole machine; the new length.
  int64_t lowerLength() {
    const int64_t positions = m_limits.maxModelLen, least = std::min<int64_t>(positions, kLeastModelLen);
    const int gpus = m_machine.size();
    setLength(least);
    int64_t fits = -1;
    for (int stages = 1; stages <= std::min<int64_t>(gpus, m_model.config.layerCount()) && fits < positions; ++stages) {
      const int tp = static_cast<int>(std::min<int64_t>(gpus / stages, std::max<int64_t>(1, m_model.config.qHeads)));
      if (!accept(tp, stages, 1).refusal) fits = std::max(fits, tokensThatFit(tp, stages, positions));
    }
    setLength(fits > 0 ? std::min(positions, std::max(fits, least)) : positions);
    m_context->lengthIsLowered = m_limits.maxModelLen < positions;
    return m_limits.maxModelLen;
  }

 protected:
  Acceptance accept(int tp, int pp, int) override {
    Acceptance acceptance;
    if (!m_missing.empty()) {
      acceptance.refusal = m_missing;
      return acceptance;
    }
    const ModelConfig& config = m_model.config;
    if (pp > config.layerCount() || !ranksOf(tp).slices) {
      const Error error = m_splitter.layout(tp, pp, 1).error();
      acceptance.even = config.qHeads % tp == 0;
      acceptance.refusal =
          LazyList<Reason>{{pp > config.layerCount() ? "headroom.layers" : "headroom.heads",
                            fmt::format("{}: {}, expected {}", error.where, error.found, error.expected), error.next}};
      return acceptance;
    }
    return acceptance;
  }

  std::shared_ptr<const ReplicaPlan> replica(int tp, int pp, int dp, int64_t requests) override {
    auto& known = m_replicas[{tp, pp, m_context->alike ? 1 : dp, requests}];
    if (known) return known;
    const Ranks& ranks = ranksOf(tp);
    auto made = std::make_shared<ReplicaPlan>();
    made->tp = tp;
    made->pp = pp;
    made->even = ranks.even;
    made->utilization = m_options.gpuMemoryUtilization;
    made->tpSlices = ranks.slices;
    made->rankClasses = ranks.rankClasses;
    made->classes = static_cast<int>(ranks.classes.size());
    made->stages = m_context->alike ? stagesOf(pp) : stagesByMemory(tp, pp, dp);
    made->unitTokens = m_limits.blockTokens;
    made->unitsPerRequest = ceilDiv(m_limits.maxModelLen, m_limits.blockTokens);
    const int64_t needed = std::max(made->unitsPerRequest, ceilDiv(tokensPerRequest(m_options), m_limits.blockTokens) * requests);
    made->parts.reserve(static_cast<size_t>(pp) * ranks.classes.size());
    std::vector<int64_t> count;
    SameStages alike(*this, *made);
    for (int stage = 0; stage < pp; ++stage) {
      const Range layers = made->stages[stage];
      if (const int earlier = alike.find(stage); earlier != stage) {
        for (size_t at = 0; at < ranks.classes.size(); ++at) {
          PartBytes part = made->parts[earlier * ranks.classes.size() + at];
          part.weights = m_table.stageBytes(ranks.classes[at].shares, layers, false, false);
          made->parts.push_back(part);
        }
        continue;
      }
      countByKind(layers, count);
      for (const Class& same : ranks.classes) {
        PartBytes part;
        part.unitsNeeded = needed;
        part.lengthUnit = m_blockTable;
        part.weights = m_table.stageBytes(same.shares, layers, stage == 0, stage == pp - 1);
        for (size_t kind = 0; kind < count.size(); ++kind) part.cacheUnit += same.cacheOfKind[kind] * count[kind];
        part.activations = activations(tp, pp, stage, layers, same, count);
        Bytes graphs = same.graphs, runtime = same.runtime;
        for (size_t kind = 0; kind < count.size(); ++kind) {
          graphs += same.graphsOfKind[kind] * count[kind];
          runtime += same.runtimeOfKind[kind] * count[kind];
        }
        part.graphs = graphs;
        part.runtime = runtime;
        made->parts.push_back(part);
      }
    }
    known = std::move(made);
    return known;
  }

 private:
  // TP ranks that take the same bytes in every stage.
  struct Class {
    RankSlice slice;  // of its first rank
    int id = 0;
    std::vector<int64_t> held;    // units of the weights
    std::vector<int64_t> widths;  // what buffers and cache are sized by
    WeightTable::Shares shares;
    std::vector<Bytes> cacheOfKind;
    Bytes graphs, runtime;                           // of a stage without layers
    std::vector<Bytes> graphsOfKind, runtimeOfKind;  // what a layer adds
  };
  struct Ranks {
    bool even = true;
    std::shared_ptr<const std::vector<RankSlice>> slices;  // null: refused
    std::shared_ptr<const RankClasses> rankClasses;
    std::vector<Class> classes;
  };

  void setLength(int64_t length) {
    m_options.maxModelLen = m_limits.maxModelLen = length;
    m_context->maxModelLen = length;
    m_context->tokensPerRequest = headroom::tokensPerRequest(m_options);
    m_activations.clear();
    m_replicas.clear();
  }

  // Tokens of one sequence beside weights and buffers, at most `most`; -1 when these alone do not fit. The limits hold the least
  // length; longer ones take the same more of every rank, for the table of blocks.
  int64_t tokensThatFit(int tp, int pp, int64_t most) {
    const std::shared_ptr<const ReplicaPlan> plan = replica(tp, pp, 1, 1);
    const int64_t tableOfBlock = m_blockTable.count(), listed = plan->unitsPerRequest;
    int64_t blocks = ceilDiv(most, m_limits.blockTokens);
    for (int rank = 0; rank < tp * pp; ++rank) {
      const PartBytes& part = plan->part(rank / tp, rank % tp);
      const MachineGpu& gpu = m_context->gpus[m_context->order[rank]];
      const int64_t room = (budgetOf(*m_context, gpu, *plan, part) - part.taken()).count();
      if (room < 0 || room < part.cacheUnit.count() * listed) return -1;
      blocks = std::min(blocks, (room + tableOfBlock * listed) / (part.cacheUnit.count() + tableOfBlock));
    }
    return std::min(most, blocks * m_limits.blockTokens);
  }

  // Of one more block a sequence, by the engine's own list of buffers.
  int64_t blockTableBytes() const {
    RankSlice none;
    EngineLimits one = m_limits, two = m_limits;
    one.maxModelLen = m_limits.blockTokens;
    two.maxModelLen = 2 * m_limits.blockTokens;
    return (activationBytes(m_model.config, none, 1, 1, two) - activationBytes(m_model.config, none, 1, 1, one)).count();
  }

  const Ranks& ranksOf(int tp) {
    const auto [found, isNew] = m_ranks.try_emplace(tp);
    Ranks& ranks = found->second;
    if (!isNew) return ranks;
    const Result<ParallelLayout> layout = m_splitter.layout(tp, 1, 1);
    if (!layout) return ranks;
    ranks.even = layout->even;
    ranks.slices = std::make_shared<const std::vector<RankSlice>>(layout->ranks);
    auto rankClasses = std::make_shared<RankClasses>();
    rankClasses->of.reserve(layout->ranks.size());
    for (const RankSlice& slice : layout->ranks) {
      measure(slice, tp);
      const auto same = std::find_if(ranks.classes.begin(), ranks.classes.end(),
                                     [&](const Class& known) { return known.widths == m_widths && known.held == m_held; });
      rankClasses->add(static_cast<int>(same - ranks.classes.begin()));
      if (same == ranks.classes.end()) ranks.classes.push_back(classOf(slice, tp, static_cast<int>(ranks.classes.size())));
    }
    ranks.rankClasses = std::move(rankClasses);
    return ranks;
  }

  // What tells the ranks of a class from others: m_held and m_widths.
  void measure(const RankSlice& slice, int tp) {
    const ModelConfig& config = m_model.config;
    m_table.heldOf(config, slice, tp, m_held);
    m_widths.assign({slice.vocabulary.size(), slice.tpRank == 0 ? 1 : 0});
    for (size_t layer : m_kindLayer) {
      const LayerShare share = layerShare(config, config.layers[layer], slice, tp);
      m_widths.insert(m_widths.end(), {share.qHeads.size(), share.kvHeads.size(), share.linearKeyHeads.size(),
                                       share.mlpColumns.size(), share.expertColumns.size(), share.sharedColumns.size()});
    }
  }

  // The class of a rank that was measured.
  Class classOf(const RankSlice& slice, int tp, int id) const {
    const ModelConfig& config = m_model.config;
    Class one;
    one.slice = slice;
    one.id = id;
    one.held = m_held;
    one.widths = m_widths;
    one.shares = m_table.sharesOf(one.held);
    RankSlice part = slice;
    part.layers = {};
    one.graphs = graphBytes(config, part, m_limits);
    one.runtime = cudaRuntime(config, part, tp, m_limits).total();
    for (size_t layer : m_kindLayer) {
      part.layers = {static_cast<int64_t>(layer), static_cast<int64_t>(layer) + 1};
      one.cacheOfKind.push_back(kvBytesPerBlock(config, part, m_limits));
      one.graphsOfKind.push_back(graphBytes(config, part, m_limits) - one.graphs);
      one.runtimeOfKind.push_back(cudaRuntime(config, part, tp, m_limits).total() - one.runtime);
    }
    return one;
  }

  // On mixed cards: layers by what each stage's smallest card has room for, in every replica.
  std::vector<Range> stagesByMemory(int tp, int pp, int dp) {
    const Class& same = ranksOf(tp).classes.front();
    const int64_t layers = m_model.config.layerCount();
    StageLoad load;
    for (int64_t layer = 0; layer < layers; ++layer) {
      load.layerBytes.push_back(m_table.stageBytes(same.shares, {layer, layer + 1}, false, false).count());
      load.unitBytes.push_back(same.cacheOfKind[m_kindOf[layer]].count());
    }
    const int64_t none = m_table.stageBytes(same.shares, {0, 0}, false, false).count();
    for (int64_t& bytes : load.layerBytes) bytes -= none;
    load.firstExtra = m_table.stageBytes(same.shares, {0, 0}, true, false).count() - none;
    load.lastExtra = m_table.stageBytes(same.shares, {0, 0}, false, true).count() - none;
    std::vector<int64_t> rooms;
    for (int stage = 0; stage < pp; ++stage) {
      const double share = m_options.gpuMemoryUtilization;
      Bytes budget = m_context->gpus[m_context->order.front()].budget(share);
      for (int replica = 0; replica < dp; ++replica) {
        for (int tpRank = 0; tpRank < tp; ++tpRank)
          budget = std::min(budget, m_context->gpus[m_context->order[(replica * pp + stage) * tp + tpRank]].budget(share));
      }
      rooms.push_back((budget - activations(tp, pp, stage, {0, layers}, same, layersByKind({0, layers}))).count() - none);
    }
    return stagesByRoom(load, rooms);
  }

  const std::vector<Range>& stagesOf(int pp) {
    std::vector<Range>& stages = m_stages[pp];
    if (!stages.empty()) return stages;
    stages = m_splitter.stages(pp);  // cut alike for every TP
    return stages;
  }

  // Depends on which kinds of layers a stage has, and whether it is the first, the last or the only one.
  Bytes activations(int tp, int pp, int stage, Range layers, const Class& same, const std::vector<int64_t>& count) {
    uint64_t kinds = 0;
    for (size_t kind = 0; kind < count.size(); ++kind) kinds |= count[kind] > 0 ? uint64_t{1} << (kind % 64) : 0;
    const int place = (stage == 0 ? 1 : 0) | (stage == pp - 1 ? 2 : 0) | (pp > 1 ? 4 : 0);
    const bool exactKey = count.size() <= 64 && !m_keepsStates;  // states add up over the layers
    const auto [found, isNew] = m_activations.try_emplace({tp, same.id, place, kinds});
    if (isNew || !exactKey) {
      RankSlice slice = same.slice;
      slice.stage = stage;
      slice.embeds = stage == 0;
      slice.projects = stage == pp - 1;
      if (exactKey) {  // buffers are sized by the widest layer: one of each kind is enough
        const ModelConfig& few = configOfKinds(kinds);
        slice.layers = {0, few.layerCount()};
        found->second = activationBytes(few, slice, tp, pp, m_limits);
      } else {
        slice.layers = layers;
        found->second = activationBytes(m_model.config, slice, tp, pp, m_limits);
      }
    }
    return found->second;
  }

  const ModelConfig& configOfKinds(uint64_t kinds) {
    const auto [found, isNew] = m_configs.try_emplace(kinds);
    if (isNew) {
      found->second = m_condensed.model().config;
      found->second.rope = m_model.config.rope;
      found->second.localRope = m_model.config.localRope;
      found->second.layers.clear();
      for (size_t kind = 0; kind < m_kindLayer.size(); ++kind) {
        if (kinds >> kind & 1) found->second.layers.push_back(m_model.config.layers[m_kindLayer[kind]]);
      }
    }
    return found->second;
  }

  EngineLimits m_limits;
  HeadroomSplitter m_splitter;
  WeightTable m_table;
  const bool m_keepsStates = keepsStates(m_model.config);
  LazyList<Reason> m_missing;                 // refuses every layout, as serve does
  std::map<uint64_t, ModelConfig> m_configs;  // by kinds: one layer of each
  std::map<int, Ranks> m_ranks;
  std::map<int, std::vector<Range>> m_stages;
  std::map<std::tuple<int, int, int, uint64_t>, Bytes> m_activations;  // by tp, class, place and kinds
  std::map<std::tuple<int, int, int, int64_t>, std::shared_ptr<const ReplicaPlan>> m_replicas;
  Bytes m_blockTable;                     // of one more block a sequence
  std::vector<int64_t> m_held, m_widths;  // of the rank that was measured last
};

}  // namespace

std::unique_ptr<LayoutEvaluator> makeHeadroomEvaluator(const ModelSource& model, const CondensedModel& condensed,
                                                       const Machine& machine, ResolvedOptions& options, bool lengthWasAsked) {
  auto evaluator = std::make_unique<HeadroomEvaluator>(model, condensed, machine, options);
  if (!lengthWasAsked) options.maxModelLen = evaluator->lowerLength();
  return evaluator;
}

}  // namespace headroom
