// SPDX-License-Identifier: Apache-2.0
// Layouts of vLLM: its rules, its even splits, its memory by version.
#include "core/launch/evaluator.h"
#include "core/memory/vllm_memory.h"
#include "core/memory/weight_table.h"

#include <algorithm>
#include <cmath>

namespace headroom {
namespace {

constexpr int64_t kVocabularyPadding = 64;

bool isLayerMatrix(const TensorEntry& tensor) {
  switch (tensor.role) {
    case TensorRole::Q:
    case TensorRole::K:
    case TensorRole::V:
    case TensorRole::O:
    case TensorRole::Qkv:
    case TensorRole::Gate:
    case TensorRole::Up:
    case TensorRole::Down:
    case TensorRole::GateUp:
    case TensorRole::ExpertGate:
    case TensorRole::ExpertUp:
    case TensorRole::ExpertDown:
    case TensorRole::ExpertGateUp:
    case TensorRole::SharedGate:
    case TensorRole::SharedUp:
    case TensorRole::SharedDown:
      return tensor.shape.size() >= 2;
    default:
      return false;
  }
}

class VllmEvaluator : public LayoutEvaluator {
 public:
  VllmEvaluator(const ModelSource& model, const Machine& machine, const ResolvedOptions& options, std::optional<DType> askedDType)
      : m_model(model),
        m_machine(machine),
        m_options(options),
        m_context{model, machine, versionOf(options.engine), askedDType, options.quantization},
        m_online8Bit((options.quantization == "fp8" || options.quantization == "int8") && !model.config.quantization),
        m_table(model, [this](const TensorEntry& tensor) { return heldBytes(tensor); }),
        m_order(gpuOrder(machine)),
        m_speed(model, machine, m_options) {
    m_limits.version = m_context.version;
    m_limits.dtype = options.dtype;
    m_limits.kvDType = options.kvCacheDType;
    m_limits.maxModelLen = options.maxModelLen;
    m_limits.maxNumSeqs = options.maxNumSeqs;
    m_limits.maxNumBatchedTokens = options.maxNumBatchedTokens;
    m_limits.utilization = options.gpuMemoryUtilization;
    m_limits.enforceEager = options.enforceEager;
    int64_t layerBytes = 0, layerElements = 0, headBytes = 0, headElements = 0;
    for (const TensorEntry& tensor : model.inventory.tensors) {
      if (!tensor.loaded || tensor.shape.size() < 2) continue;
      (tensor.layer >= 0 ? layerBytes : headBytes) += heldBytes(tensor);
      (tensor.layer >= 0 ? layerElements : headElements) += tensor.parameters();
    }
    if (layerElements > 0) m_layerBytesPerElement = static_cast<double>(layerBytes) / static_cast<double>(layerElements);
    if (headElements > 0) m_headBytesPerElement = static_cast<double>(headBytes) / static_cast<double>(headElements);
    m_acceptedTp = acceptedTpSizes(vllmRules(), m_context, machine.size());
  }

  LayoutPlan evaluate(int tp, int pp, int dp) override {
    LayoutPlan plan;
    plan.tp = tp;
    plan.pp = pp;
    plan.dp = dp;
    RuleVerdict verdict = vllmRules().check(m_context, {tp, pp, dp});
    if (verdict.refusal) {
      RuleFinding finding = *verdict.refusal;
      if (finding.fix.empty()) finding.fix = fixFor(tp, pp, dp);
      plan.reasons.push_back({finding.rule, finding.message, finding.fix});
      return plan;
    }
    for (const RuleFinding& warning : verdict.warnings) plan.warnings.push_back({warning.rule, warning.message, warning.fix});
    fillMemory(plan);
    if (plan.kvTokens.value_or(0) > 0 || plan.verdict != Verdict::DoesNotFit) {
      m_speed.predict(plan, m_layerBytesPerElement, m_headBytesPerElement);
    } else {
      plan.predicted.source = "unknown: the weights do not fit";
    }
    return plan;
  }

 private:
  // Everything that floats is cast to the engine's type; packed weights stay as they are.
  int64_t heldBytes(const TensorEntry& tensor) const {
    if (m_online8Bit && isLayerMatrix(tensor) && isFloating(tensor.dtype)) return tensor.elements();
    if (isFloating(tensor.dtype) && !m_model.config.quantization)
      return tensor.elements() * dtypeInfo(m_options.dtype).blockBytes;
    if (isFloating(tensor.dtype) && tensor.shape.size() > 1 && tensor.dtype != DType::F32)
      return tensor.elements() * dtypeInfo(m_options.dtype).blockBytes;
    return tensor.storedBytes().count();
  }

  std::string fixFor(int tp, int pp, int dp) const {
    // The largest accepted TP below, with stages that use the GPUs it leaves.
    int best = 0;
    for (int size : m_acceptedTp) {
      if (size < tp) best = size;
    }
    if (best == 0) return "";
    std::string sizes;
    for (int size : m_acceptedTp) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    const int gpus = tp * pp * dp;
    std::string fix = fmt::format("TP sizes that work: {}", sizes);
    for (auto size = m_acceptedTp.rbegin(); size != m_acceptedTp.rend(); ++size) {
      if (*size < tp && gpus % *size == 0 && *size > 0 && gpus / *size <= m_model.config.layerCount()) {
        const bool staged = !vllmRules().check(m_context, {*size, gpus / *size, 1}).refusal;
        if (staged) return fmt::format("TP={} with PP={} uses all {} GPUs; {}", *size, gpus / *size, gpus, fix);
      }
    }
    return fix;
  }

  WeightTable::Shares sharesFor(int tp, int dp) const {
    std::vector<int64_t> held;
    for (const WeightTable::SplitClass& split : m_table.classes()) {
      switch (split.unit) {
        case SplitUnit::QHeads:
        case SplitUnit::MlpColumns:
        case SplitUnit::SharedColumns:
          held.push_back(split.units / tp);
          break;
        case SplitUnit::KvHeads:
          held.push_back(std::max<int64_t>(1, split.units / tp));
          break;
        case SplitUnit::ExpertColumns:
          held.push_back(split.units / (tp * dp));
          break;
        case SplitUnit::Vocabulary:
          held.push_back(roundUp(split.units, kVocabularyPadding) / tp);
          break;
        case SplitUnit::Experts:
        case SplitUnit::Replicated:
          held.push_back(split.units);
          break;
      }
    }
    return m_table.sharesOf(held);
  }

  void fillMemory(LayoutPlan& plan) {
    const ModelConfig& config = m_model.config;
    const int tp = plan.tp, pp = plan.pp;
    const std::vector<Range> stages = vllmRules().stages(config, pp);
    const bool hasExperts = std::any_of(config.layers.begin(), config.layers.end(),
                                        [](const LayerSpec& layer) { return layer.ffn == FfnKind::MixtureOfExperts; });
    const WeightTable::Shares shares = sharesFor(tp, hasExperts ? plan.dp : 1);
    const int64_t requests = requestsPerReplica(m_options, plan.dp), perRequest = tokensPerRequest(m_options);
    int64_t experts = 0;
    for (const LayerSpec& layer : config.layers) experts = std::max(experts, layer.moe.experts);

    int64_t blocks = std::numeric_limits<int64_t>::max();
    std::vector<FitArithmetic> arithmetic;
    std::vector<VllmKvShape> kvShapes;
    std::string kvText = fmt::format("1 request of {} tokens", m_limits.maxModelLen);
    int64_t fullestRequest = 1;
    bool uniform = true;
    for (int replica = 0; replica < plan.dp; ++replica) {
      for (int stage = 0; stage < pp; ++stage) {
        const VllmStage place{tp, pp, stages[stage], stage == pp - 1};
        const VllmKvShape kv = vllmKvShape(config, m_limits, place);
        const int64_t needed = std::max(kv.blocksPerRequest, requests * vllmBlocksFor(config, m_limits, place, perRequest));
        fullestRequest = std::max(fullestRequest, kv.blocksPerRequest);
        uniform = uniform && kv.uniform;
        for (int tpRank = 0; tpRank < tp; ++tpRank) {
          RankPlan rank;
          RankSlice& slice = rank.slice;
          slice.rank = static_cast<int>(plan.ranks.size());
          slice.replica = replica;
          slice.stage = stage;
          slice.tpRank = tpRank;
          slice.gpu = m_order[slice.rank];
          slice.layers = stages[stage];
          slice.embeds = stage == 0;
          slice.projects = stage == pp - 1;
          auto part = [&](int64_t units) { return Range{units * tpRank / tp, units * (tpRank + 1) / tp}; };
          slice.qHeads = part(config.qHeads);
          slice.kvHeads =
              config.kvHeads >= tp ? part(config.kvHeads) : Range{config.kvHeads * tpRank / tp, config.kvHeads * tpRank / tp + 1};
          slice.mlpColumns = part(config.intermediateSize);
          slice.experts = {0, experts};
          const int64_t rows = roundUp(config.vocabSize, kVocabularyPadding) / tp;
          slice.vocabulary = {std::min(rows * tpRank, config.vocabSize), std::min(rows * (tpRank + 1), config.vocabSize)};
          const MachineGpu& gpu = m_machine.gpus[slice.gpu];
          rank.weights = m_table.stageBytes(shares, slice.layers, slice.embeds, slice.projects);
          rank.activations = vllmActivationPeak(config, m_limits, place);
          rank.runtime = vllmRuntimeGrowth(config, m_limits, place, gpu.spec);
          const Bytes graphs = vllmGraphs(m_limits, place, gpu.spec);
          if (vllmChargesGraphs(m_limits.version)) rank.graphs = graphs;
          FitArithmetic sums;
          sums.budget =
              Bytes(static_cast<int64_t>(std::ceil(static_cast<double>(gpu.totalMemory.count()) * m_limits.utilization)));
          sums.kvNeeded = kv.blockBytes * needed;
          if (needed > kv.blocksPerRequest) kvText = fmt::format("{} requests of {} tokens", requests, perRequest);
          const Bytes room = sums.budget - *rank.weights - *rank.activations - *rank.runtime - rank.graphs.value_or(Bytes());
          rank.headroom = room - sums.kvNeeded;
          rank.kvCache = Bytes(std::max<int64_t>(0, room.count()));
          if (kv.blockBytes.count() > 0) blocks = std::min(blocks, rank.kvCache->count() / kv.blockBytes.count());
          arithmetic.push_back(std::move(sums));
          kvShapes.push_back(kv);
          plan.ranks.push_back(std::move(rank));
        }
      }
    }
    if (blocks == std::numeric_limits<int64_t>::max()) blocks = 0;
    plan.maxConcurrency = static_cast<double>(blocks) / static_cast<double>(fullestRequest);
    plan.kvTokens = uniform ? blocks * kvShapes.front().blockTokens
                            : static_cast<int64_t>(*plan.maxConcurrency * static_cast<double>(m_limits.maxModelLen));
    Bytes replica;
    for (size_t i = 0; i < plan.ranks.size(); ++i) {
      plan.ranks[i].kvCache = kvShapes[i].blockBytes * blocks;
      if (plan.ranks[i].slice.replica == 0) replica += *plan.ranks[i].kvCache;
    }
    plan.kvCache = replica;
    decideVerdict(plan, m_machine, arithmetic, m_limits.utilization, kvText);
  }

  const ModelSource& m_model;
  const Machine& m_machine;
  ResolvedOptions m_options;
  RuleContext m_context;
  VllmLimits m_limits;
  bool m_online8Bit;
  WeightTable m_table;
  std::vector<int> m_order, m_acceptedTp;
  SpeedCache m_speed;
  double m_layerBytesPerElement = 2, m_headBytesPerElement = 2;
};

}  // namespace

std::unique_ptr<LayoutEvaluator> makeVllmEvaluator(const ModelSource& model, const Machine& machine,
                                                   const ResolvedOptions& options, std::optional<DType> askedDType) {
  return std::make_unique<VllmEvaluator>(model, machine, options, askedDType);
}

}  // namespace headroom
