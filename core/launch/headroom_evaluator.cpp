// SPDX-License-Identifier: Apache-2.0
// Layouts of Headroom's own engine. The same layouts, weights, cache blocks and activation buffers that the engine makes.
#include "core/launch/evaluator.h"
#include "core/memory/weight_table.h"

#include <algorithm>
#include <map>

namespace headroom {
namespace {

class HeadroomEvaluator : public LayoutEvaluator {
 public:
  HeadroomEvaluator(const ModelSource& model, const Machine& machine, const ResolvedOptions& options)
      : m_model(model),
        m_machine(machine),
        m_options(options),
        m_limits(engineLimits(options)),
        m_splitter(model),
        m_table(model, [this](const TensorEntry& tensor) { return loadedBytes(tensor, m_limits.computeDType).count(); }),
        m_order(gpuOrder(machine)),
        m_speed(model, machine, m_options) {
    int64_t layerBytes = 0, layerElements = 0, headBytes = 0, headElements = 0;
    for (const TensorEntry& tensor : model.inventory.tensors) {
      if (!tensor.loaded || tensor.shape.size() < 2) continue;
      const int64_t bytes = loadedBytes(tensor, m_limits.computeDType).count();
      (tensor.layer >= 0 ? layerBytes : headBytes) += bytes;
      (tensor.layer >= 0 ? layerElements : headElements) += tensor.elements();
    }
    if (layerElements > 0) m_layerBytesPerElement = static_cast<double>(layerBytes) / static_cast<double>(layerElements);
    if (headElements > 0) m_headBytesPerElement = static_cast<double>(headBytes) / static_cast<double>(headElements);
  }

  LayoutPlan evaluate(int tp, int pp, int dp) override {
    LayoutPlan plan;
    plan.tp = tp;
    plan.pp = pp;
    plan.dp = dp;
    const Replica& replica = replicaOf(tp, pp);
    const Result<ParallelLayout>& layout = replica.layout;
    if (!layout) {
      const Error& error = layout.error();
      plan.even = m_model.config.qHeads % tp == 0;
      plan.reasons.push_back({pp > m_model.config.layerCount() ? "headroom.layers" : "headroom.heads",
                              fmt::format("{}: {}, expected {}", error.where, error.found, error.expected), error.next});
      return plan;
    }
    plan.even = layout->even;
    fillMemory(plan, replica);
    if (plan.verdict != Verdict::DoesNotFit || plan.kvTokens.value_or(0) > 0) {
      m_speed.predict(plan, m_layerBytesPerElement, m_headBytesPerElement);
    } else {
      plan.predicted.source = "unknown: the weights do not fit";
    }
    for (const std::string& missing : m_model.config.missingInEngine) {
      plan.warnings.push_back(
          {"headroom.missing", "the engine cannot run this model yet: " + missing, "plan with another --engine"});
    }
    return plan;
  }

 private:
  // One replica's ranks and their bytes; other replicas are alike.
  struct Replica {
    Result<ParallelLayout> layout;
    std::vector<Bytes> weights, activations, perBlock;
  };

  const Replica& replicaOf(int tp, int pp) {
    const auto found = m_replicas.find({tp, pp});
    if (found != m_replicas.end()) return found->second;
    Replica replica{m_splitter.layout(tp, pp, 1), {}, {}, {}};
    if (replica.layout) {
      std::vector<WeightTable::Shares> shares;
      for (int tpRank = 0; tpRank < tp; ++tpRank)
        shares.push_back(m_table.sharesOf(m_model.config, replica.layout->at(0, 0, tpRank), tp));
      for (const RankSlice& slice : replica.layout->ranks) {
        replica.weights.push_back(m_table.stageBytes(shares[slice.tpRank], slice.layers, slice.embeds, slice.projects));
        replica.activations.push_back(activationBytes(m_model.config, slice, tp, pp, m_limits));
        replica.perBlock.push_back(kvBytesPerBlock(m_model.config, slice, m_limits));
      }
    }
    return m_replicas.emplace(std::pair{tp, pp}, std::move(replica)).first->second;
  }

  void fillMemory(LayoutPlan& plan, const Replica& replicaBytes) {
    const int64_t perRequest = ceilDiv(tokensPerRequest(m_options), m_limits.blockTokens);
    const int64_t oneFull = ceilDiv(m_limits.maxModelLen, m_limits.blockTokens);
    const int64_t requests = requestsPerReplica(m_options, plan.dp);
    const int64_t needed = std::max(oneFull, perRequest * requests);
    const std::string kvText = requests > 1 && perRequest * requests >= oneFull
                                   ? fmt::format("{} requests of {} tokens", requests, tokensPerRequest(m_options))
                                   : fmt::format("1 request of {} tokens", m_limits.maxModelLen);
    int64_t blocks = std::numeric_limits<int64_t>::max();
    std::vector<FitArithmetic> arithmetic;
    const size_t ranksEach = replicaBytes.layout->ranks.size();
    plan.ranks.resize(ranksEach * plan.dp);
    for (size_t i = 0; i < plan.ranks.size(); ++i) {
      const size_t twin = i % ranksEach;
      RankPlan& rank = plan.ranks[i];
      rank.slice = replicaBytes.layout->ranks[twin];
      rank.slice.rank = static_cast<int>(i);
      rank.slice.replica = static_cast<int>(i / ranksEach);
      rank.slice.gpu = m_order[i];
      rank.weights = replicaBytes.weights[twin];
      rank.activations = replicaBytes.activations[twin];
      const Bytes perBlock = replicaBytes.perBlock[twin];
      const MachineGpu& gpu = m_machine.gpus[rank.slice.gpu];
      if (gpu.spec.hostDevice) rank.graphs = rank.runtime = Bytes();
      FitArithmetic sums;
      sums.budget = Bytes(static_cast<int64_t>(static_cast<double>(gpu.totalMemory.count()) * m_options.gpuMemoryUtilization));
      sums.kvNeeded = perBlock * needed;
      const Bytes room = sums.budget - *rank.weights - *rank.activations;
      rank.headroom = room - sums.kvNeeded;
      if (perBlock.count() > 0) blocks = std::min(blocks, std::max<int64_t>(0, room.count()) / perBlock.count());
      arithmetic.push_back(sums);
    }
    if (blocks == std::numeric_limits<int64_t>::max()) blocks = needed;
    Bytes replica;
    for (size_t i = 0; i < plan.ranks.size(); ++i) {
      plan.ranks[i].kvCache = replicaBytes.perBlock[i % ranksEach] * blocks;
      if (plan.ranks[i].slice.replica == 0) replica += *plan.ranks[i].kvCache;
    }
    plan.kvCache = replica;
    plan.kvTokens = blocks * m_limits.blockTokens;
    plan.maxConcurrency = static_cast<double>(blocks) / static_cast<double>(std::max<int64_t>(1, oneFull));
    plan.memoryProvenance = m_machine.isLocal ? Provenance::Exact : Provenance::Modelled;
    decideVerdict(plan, m_machine, arithmetic, m_options.gpuMemoryUtilization, kvText);
  }

  const ModelSource& m_model;
  const Machine& m_machine;
  ResolvedOptions m_options;
  EngineLimits m_limits;
  HeadroomSplitter m_splitter;
  WeightTable m_table;
  std::vector<int> m_order;
  SpeedCache m_speed;
  std::map<std::pair<int, int>, Replica> m_replicas;  // by tp and pp
  double m_layerBytesPerElement = 2, m_headBytesPerElement = 2;
};

}  // namespace

std::unique_ptr<LayoutEvaluator> makeHeadroomEvaluator(const ModelSource& model, const Machine& machine,
                                                       const ResolvedOptions& options) {
  return std::make_unique<HeadroomEvaluator>(model, machine, options);
}

}  // namespace headroom
