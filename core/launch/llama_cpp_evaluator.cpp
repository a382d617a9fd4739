// SPDX-License-Identifier: Apache-2.0
// Layouts of llama.cpp: PP is its layer split by free memory, TP its tensor split. The embedding stays in main memory.
#include "core/launch/evaluator.h"
#include "core/layout/rules/llama_cpp.h"
#include "core/memory/tensorrt_memory.h"

#include <algorithm>

namespace headroom {
namespace {

class LlamaCppEvaluator : public LayoutEvaluator {
 public:
  LlamaCppEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine, const ResolvedOptions& options, const PlanOptions& asked)
      : LayoutEvaluator(model, condensed, machine, options),
        m_ruleContext{model, machine, versionOf(options.engine), asked.dtype, options.quantization},
        m_table(weightTable([this](const TensorEntry& tensor) { return heldBytes(tensor); })) {
    meanBytes([this](const TensorEntry& tensor) { return heldBytes(tensor); });
    for (const LayerSpec& layer : model.config.layers) m_experts = std::max(m_experts, layer.moe.experts);
    for (size_t layer : m_kindLayer) m_granules.push_back(llamaCppGranules(model, model.config.layers[layer]));
  }

 protected:
  Acceptance accept(int tp, int pp, int dp) override {
    const LayoutSizes same = llamaCppRules().sameVerdict(m_ruleContext, {tp, pp, dp});
    auto [found, isNew] = m_accepted.try_emplace({same.tp, same.pp, same.dp});
    if (!isNew) return found->second;
    const RuleVerdict verdict = llamaCppRules().check(m_ruleContext, {tp, pp, dp});
    if (verdict.refusal) {
      found->second.refusal = LazyList<Reason>{{verdict.refusal->rule, verdict.refusal->message, verdict.refusal->fix}};
    } else {
      std::vector<Reason> warnings;
      for (const RuleFinding& finding : verdict.warnings) warnings.push_back({finding.rule, finding.message, finding.fix});
      found->second.warnings = LazyList<Reason>(std::move(warnings));
    }
    return found->second;
  }

  std::shared_ptr<const ReplicaPlan> replica(int tp, int pp, int, int64_t requests) override {
    auto& known = m_replicas[{tp, pp, requests}];
    if (known) return known;
    auto made = std::make_shared<ReplicaPlan>();
    made->tp = tp;
    made->pp = pp;
    made->utilization = 1;
    made->unitTokens = 1;
    made->unitsPerRequest = m_options.maxModelLen;
    const int64_t tokens = std::max(m_options.maxModelLen, requests * tokensPerRequest(m_options));
    // --tensor-split unset: layers by free memory of the first replica's devices.
    std::vector<double> shares;
    for (int device = 0; device < pp; ++device)
      shares.push_back(static_cast<double>(m_context->gpus[m_context->order[device]].totalMemory.count()));
    made->stages = llamaCppLayers(m_model.config.layerCount(), shares);
    made->parts.resize(static_cast<size_t>(tp) * pp);
    if (tp > 1) {
      made->classes = tp;
      auto classes = std::make_shared<RankClasses>();
      for (int device = 0; device < tp; ++device) classes->add(device);
      made->rankClasses = std::move(classes);
      fillTensorSplit(*made, tokens, requests);
    } else {
      fillLayerSplit(*made, tokens, requests);
    }
    known = std::move(made);
    return known;
  }

 private:
  int64_t heldBytes(const TensorEntry& tensor) const {
    // Converted files keep vectors in 32 bits.
    if (isFloating(tensor.dtype) && tensor.shape.size() < 2) return tensor.elements() * 4;
    if (isFloating(tensor.dtype) && m_model.origin != ModelSource::Origin::GgufHeader)
      return tensor.elements() * dtypeInfo(m_options.dtype).blockBytes;
    return tensor.storedBytes().count();
  }

  std::vector<int64_t> allUnits() const {
    std::vector<int64_t> held;
    for (const WeightTable::SplitClass& split : m_table.classes()) held.push_back(split.units);
    return held;
  }

  // Widest columns that one token passes, for the compute buffer.
  int64_t columns() const {
    int64_t most = 0;
    for (const LayerSpec& layer : m_model.config.layers) {
      most = std::max(most, layer.ffn == FfnKind::Dense
                                ? layer.intermediateSize
                                : layer.moe.expertIntermediate * layer.moe.expertsPerToken + layer.moe.sharedIntermediate);
    }
    return most;
  }

  void addCache(PartBytes& part, Range layers, int64_t tokens, int64_t requests, int tp, int device) const {
    for (int64_t i = layers.begin; i < layers.end; ++i) {
      const LayerSpec& layer = m_model.config.layers[i];
      int64_t heads = layer.kvHeads;
      if (tp > 1) {
        const LlamaCppGranules& granules = m_granules[m_kindOf[i]];
        heads = std::min(layer.kvHeads, llamaCppPiece(granules.kvUnits, tp, device, i).size() * granules.kvHeadsEach);
      }
      const LlamaCppCache cache = llamaCppCache(layer, heads, m_options.kvCacheDType, tokens, std::max<int64_t>(1, requests),
                                                m_options.maxNumBatchedTokens);
      part.cacheUnit += cache.perToken;
      part.cacheFixed += cache.windows;
      part.cacheFixedOfRequest += llamaCppCache(layer, heads, m_options.kvCacheDType, tokens, std::max<int64_t>(1, requests) + 1,
                                                m_options.maxNumBatchedTokens)
                                      .windows -
                                  cache.windows;
    }
    part.unitsNeeded = tokens;
  }

  void fillLayerSplit(ReplicaPlan& replica, int64_t tokens, int64_t requests) const {
    const ModelConfig& config = m_model.config;
    auto slices = std::make_shared<std::vector<RankSlice>>(1);
    RankSlice& slice = slices->front();
    slice.qHeads = {0, config.qHeads};
    slice.kvHeads = {0, config.kvHeads};
    slice.mlpColumns = {0, config.intermediateSize};
    slice.experts = {0, m_experts};
    slice.vocabulary = {0, config.vocabSize};
    replica.tpSlices = std::move(slices);
    const WeightTable::Shares shares = m_table.sharesOf(allUnits());
    for (int device = 0; device < replica.pp; ++device) {
      PartBytes& part = replica.parts[device];
      const bool output = device == replica.pp - 1;
      part.weights = m_table.stageBytes(shares, replica.stages[device], false, output);
      part.activations = llamaCppComputeBuffer(config, m_options.maxNumBatchedTokens, columns(), output ? config.vocabSize : 0);
      addCache(part, replica.stages[device], tokens, requests, 1, 0);
    }
  }

  void fillTensorSplit(ReplicaPlan& replica, int64_t tokens, int64_t requests) const {
    const ModelConfig& config = m_model.config;
    const int tp = replica.tp;
    auto slices = std::make_shared<std::vector<RankSlice>>(tp);
    std::vector<WeightTable::Shares> shares;  // by kind of layer and piece
    for (size_t kind = 0; kind < m_kindLayer.size(); ++kind) {
      for (int piece = 0; piece < tp; ++piece) shares.push_back(tensorShares(tp, piece, kind));
    }
    for (int device = 0; device < tp; ++device) {
      RankSlice& slice = (*slices)[device];
      PartBytes& part = replica.parts[device];
      const LayerSpec& first = config.layers.front();
      const LlamaCppGranules& granules = m_granules[m_kindOf.front()];
      const Range kv = llamaCppPiece(granules.kvUnits, tp, device, 0), cut = llamaCppPiece(granules.columnUnits, tp, device, 0);
      const int64_t group = std::max<int64_t>(1, first.qHeads / std::max<int64_t>(1, first.kvHeads));
      slice.kvHeads = {std::min(first.kvHeads, kv.begin * granules.kvHeadsEach),
                       std::min(first.kvHeads, kv.end * granules.kvHeadsEach)};
      slice.qHeads = {slice.kvHeads.begin * group, slice.kvHeads.end * group};
      slice.mlpColumns = {std::min(config.intermediateSize, cut.begin * granules.columnsEach),
                          std::min(config.intermediateSize, cut.end * granules.columnsEach)};
      slice.experts = {0, m_experts};
      slice.vocabulary = llamaCppPiece(config.vocabSize, tp, device, 0);
      replica.even = replica.even && slice.kvHeads.size() * tp == first.kvHeads;
      // A device's pieces rotate: sum the layers.
      for (int64_t layer = 0; layer < config.layerCount(); ++layer)
        part.weights += m_table.stageBytes(shares[m_kindOf[layer] * tp + (device + layer) % tp], {layer, layer + 1}, false, false);
      part.weights += m_table.stageBytes(shares[m_kindOf.front() * tp + device], {0, 0}, false, true);
      part.activations = llamaCppComputeBuffer(config, m_options.maxNumBatchedTokens, columns(), config.vocabSize / tp);
      addCache(part, {0, config.layerCount()}, tokens, requests, tp, device);
    }
    replica.tpSlices = std::move(slices);
  }

  // Of the device that takes the piece in a layer of the kind.
  WeightTable::Shares tensorShares(int tp, int piece, size_t kind) const {
    const LayerSpec& spec = m_model.config.layers[m_kindLayer[kind]];
    const LlamaCppGranules& granules = m_granules[kind];
    std::vector<int64_t> held;
    for (const WeightTable::SplitClass& split : m_table.classes()) {
      auto columnsHeld = [&](int64_t each) {
        const Range range = llamaCppPiece(ceilDiv(split.units, each), tp, piece, 0);
        return std::max<int64_t>(0, std::min(split.units, range.end * each) - std::min(split.units, range.begin * each));
      };
      switch (split.unit) {
        case SplitUnit::QHeads:
          held.push_back(
              columnsHeld(granules.kvHeadsEach * std::max<int64_t>(1, split.units / std::max<int64_t>(1, spec.kvHeads))));
          break;
        case SplitUnit::KvHeads:
          held.push_back(columnsHeld(granules.kvHeadsEach));
          break;
        case SplitUnit::MlpColumns:
        case SplitUnit::ExpertColumns:
        case SplitUnit::SharedColumns:
          held.push_back(columnsHeld(granules.columnsEach));
          break;
        case SplitUnit::Vocabulary:
          held.push_back(columnsHeld(1));
          break;
        case SplitUnit::Experts:
        case SplitUnit::Replicated:
          held.push_back(split.units);
          break;
      }
    }
    return m_table.sharesOf(held);
  }

  RuleContext m_ruleContext;
  WeightTable m_table;
  int64_t m_experts = 0;
  std::vector<LlamaCppGranules> m_granules;  // by kind of layer
  std::map<std::tuple<int, int, int>, Acceptance> m_accepted;
  std::map<std::tuple<int, int, int64_t>, std::shared_ptr<const ReplicaPlan>> m_replicas;
};

}  // namespace

std::unique_ptr<LayoutEvaluator> makeLlamaCppEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                                                       const ResolvedOptions& options, const PlanOptions& asked) {
  return std::make_unique<LlamaCppEvaluator>(model, condensed, machine, options, asked);
}

}  // namespace headroom
