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
        m_order(gpuOrder(machine)) {
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
    const std::vector<int> gpus(m_order.begin(), m_order.begin() + tp * pp * dp);
    Result<ParallelLayout> layout = m_splitter.layout(tp, pp, dp, gpus);
    if (!layout) {
      const Error& error = layout.error();
      plan.even = m_model.config.qHeads % tp == 0;
      plan.reasons.push_back({pp > m_model.config.layerCount() ? "headroom.layers" : "headroom.heads",
                              fmt::format("{}: {}, expected {}", error.where, error.found, error.expected), error.next});
      return plan;
    }
    plan.even = layout->even;
    fillMemory(plan, *layout);
    if (plan.verdict != Verdict::DoesNotFit || plan.kvTokens.value_or(0) > 0) {
      predict(plan, m_model, m_machine, m_options, m_layerBytesPerElement, m_headBytesPerElement);
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
  void fillMemory(LayoutPlan& plan, const ParallelLayout& layout) {
    const int64_t perRequest = ceilDiv(tokensPerRequest(m_options), m_limits.blockTokens);
    const int64_t oneFull = ceilDiv(m_limits.maxModelLen, m_limits.blockTokens);
    const int64_t requests = requestsPerReplica(m_options, plan.dp);
    const int64_t needed = std::max(oneFull, perRequest * requests);
    int64_t blocks = std::numeric_limits<int64_t>::max();
    std::vector<FitArithmetic> arithmetic;
    std::vector<Bytes> perBlock;
    std::vector<WeightTable::Shares> shares;
    for (int tpRank = 0; tpRank < plan.tp; ++tpRank)
      shares.push_back(m_table.sharesOf(m_model.config, layout.at(0, 0, tpRank), plan.tp));
    for (const RankSlice& slice : layout.ranks) {
      RankPlan rank;
      rank.slice = slice;
      const size_t twin = static_cast<size_t>(slice.rank % (plan.tp * plan.pp));  // replicas are alike
      const MachineGpu& gpu = m_machine.gpus[slice.gpu];
      if (twin < plan.ranks.size()) {
        rank.weights = plan.ranks[twin].weights;
        rank.activations = plan.ranks[twin].activations;
        perBlock.push_back(perBlock[twin]);
      } else {
        rank.weights = m_table.stageBytes(shares[slice.tpRank], slice.layers, slice.embeds, slice.projects);
        rank.activations = activationBytes(m_model.config, slice, plan.tp, plan.pp, m_limits);
        perBlock.push_back(kvBytesPerBlock(m_model.config, slice, m_limits));
      }
      if (gpu.spec.hostDevice) rank.graphs = rank.runtime = Bytes();
      FitArithmetic sums;
      sums.budget = Bytes(static_cast<int64_t>(static_cast<double>(gpu.totalMemory.count()) * m_options.gpuMemoryUtilization));
      sums.budgetText = fmt::format("{:.2f} GiB x {:g}", gpu.totalMemory.gib(), m_options.gpuMemoryUtilization);
      sums.kvNeeded = perBlock.back() * needed;
      sums.kvText = requests > 1 && perRequest * requests >= oneFull
                        ? fmt::format("{} requests of {} tokens", requests, tokensPerRequest(m_options))
                        : fmt::format("1 request of {} tokens", m_limits.maxModelLen);
      const Bytes room = sums.budget - *rank.weights - *rank.activations;
      rank.headroom = room - sums.kvNeeded;
      if (perBlock.back().count() > 0) blocks = std::min(blocks, std::max<int64_t>(0, room.count()) / perBlock.back().count());
      arithmetic.push_back(std::move(sums));
      plan.ranks.push_back(std::move(rank));
    }
    if (blocks == std::numeric_limits<int64_t>::max()) blocks = needed;
    Bytes replica;
    for (size_t i = 0; i < plan.ranks.size(); ++i) {
      plan.ranks[i].kvCache = perBlock[i] * blocks;
      if (plan.ranks[i].slice.replica == 0) replica += *plan.ranks[i].kvCache;
    }
    plan.kvCache = replica;
    plan.kvTokens = blocks * m_limits.blockTokens;
    plan.maxConcurrency = static_cast<double>(blocks) / static_cast<double>(std::max<int64_t>(1, oneFull));
    plan.memoryProvenance = m_machine.isLocal ? Provenance::Exact : Provenance::Modelled;
    decideVerdict(plan, m_machine, arithmetic, m_options.gpuMemoryUtilization);
  }

  const ModelSource& m_model;
  const Machine& m_machine;
  ResolvedOptions m_options;
  EngineLimits m_limits;
  HeadroomSplitter m_splitter;
  WeightTable m_table;
  std::vector<int> m_order;
  double m_layerBytesPerElement = 2, m_headBytesPerElement = 2;
};

}  // namespace

std::unique_ptr<LayoutEvaluator> makeHeadroomEvaluator(const ModelSource& model, const Machine& machine,
                                                       const ResolvedOptions& options) {
  return std::make_unique<HeadroomEvaluator>(model, machine, options);
}

}  // namespace headroom
