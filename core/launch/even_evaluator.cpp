// SPDX-License-Identifier: Apache-2.0
// What vLLM, SGLang and TensorRT-LLM share: even splits by published rules, weights as their loaders hold them.
#include "core/launch/evaluator.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr int64_t kVocabularyPadding = 64;

// Sizes that work instead, and stages that use the GPUs which a smaller TP leaves.
std::string fixText(const GridContext& context, int tp, int gpus) {
  int best = 0;
  for (int size : context.acceptedTp) {
    if (size < tp) best = size;
  }
  if (best == 0) return "";
  std::string sizes;
  for (int size : context.acceptedTp) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  const std::string fix = fmt::format("TP sizes that work: {}", sizes);
  for (auto size = context.acceptedTp.rbegin(); size != context.acceptedTp.rend(); ++size) {
    const int stages = gpus / *size;
    if (*size >= tp || gpus % *size != 0 || stages > context.layers || (stages > 1 && !context.pipeline)) continue;
    return fmt::format("TP={} with PP={} uses all {} GPUs; {}", *size, stages, gpus, fix);
  }
  return fix;
}

std::vector<Reason> reasonsOf(const std::vector<RuleFinding>& findings) {
  std::vector<Reason> reasons;
  for (const RuleFinding& finding : findings) reasons.push_back({finding.rule, finding.message, finding.fix});
  return reasons;
}

}  // namespace

EvenEvaluator::EvenEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                             const ResolvedOptions& options, const EngineRules& rules, std::optional<DType> askedDType,
                             bool vocabularyPadded, bool replicasShareExperts)
    : LayoutEvaluator(model, condensed, machine, options),
      m_rules(rules),
      m_ruleContext{model, machine, versionOf(options.engine), askedDType, options.quantization},
      m_vocabularyPadded(vocabularyPadded),
      m_replicasShareExperts(replicasShareExperts),
      m_weights(model, condensed.model().inventory,
                {options.engine.kind, versionOf(options.engine), options.dtype, options.quantization,
                 machine.gpus.front().spec.computeCapability},
                [&](const TensorEntry& tensor) { return condensed.count(tensor); }) {
  for (const LayerSpec& layer : model.config.layers) m_hasExperts = m_hasExperts || layer.ffn == FfnKind::MixtureOfExperts;
  meanBytes(m_weights);
  m_context->acceptedTp = acceptedTpSizes(rules, m_ruleContext, machine.size());
  m_context->pipeline = m_context->acceptedTp.empty() || model.config.layerCount() < 2 ||
                        !rules.check(m_ruleContext, {m_context->acceptedTp.front(), 2, 1}).refusal;
}

LayoutEvaluator::Acceptance EvenEvaluator::accept(int tp, int pp, int dp) {
  const LayoutSizes sizes{tp, pp, dp, m_options.expertParallel, m_options.attentionDataParallel};
  const LayoutSizes same = m_rules.sameVerdict(m_ruleContext, sizes);
  auto [found, isNew] = m_accepted.try_emplace({same.tp, same.pp, same.dp});
  Acceptance& acceptance = found->second;
  if (isNew) {
    RuleVerdict verdict = m_rules.check(m_ruleContext, sizes);
    if (verdict.refusal)
      acceptance.refusal = LazyList<Reason>(reasonsOf({*verdict.refusal}));
    else if (!verdict.warnings.empty())
      acceptance.warnings = LazyList<Reason>(reasonsOf(verdict.warnings));
  }
  if (!acceptance.refusal || !acceptance.refusal->front().fix.empty()) return acceptance;
  Acceptance refused;
  refused.refusal = LazyList<Reason>::madeBy(
      [context = std::shared_ptr<const GridContext>(m_context), base = *acceptance.refusal, tp, gpus = tp * pp * dp] {
        std::vector<Reason> reasons = base.all();
        reasons.front().fix = fixText(*context, tp, gpus);
        return reasons;
      });
  return refused;
}

std::shared_ptr<const std::vector<RankSlice>> EvenEvaluator::slicesFor(int tp) {
  auto& slices = m_slices[tp];
  if (slices) return slices;
  const ModelConfig& config = m_model.config;
  int64_t experts = 0;
  for (const LayerSpec& layer : config.layers) experts = std::max(experts, layer.moe.experts);
  auto made = std::make_shared<std::vector<RankSlice>>(tp);
  for (int tpRank = 0; tpRank < tp; ++tpRank) {
    RankSlice& slice = (*made)[tpRank];
    auto part = [&](int64_t units) { return Range{units * tpRank / tp, units * (tpRank + 1) / tp}; };
    slice.tpRank = tpRank;
    slice.qHeads = part(config.qHeads);
    const int64_t kv = config.kvHeads * tpRank / tp;
    slice.kvHeads = config.kvHeads >= tp ? part(config.kvHeads) : Range{kv, std::min(config.kvHeads, kv + 1)};
    slice.mlpColumns = part(config.intermediateSize);
    slice.experts = {0, experts};
    const int64_t rows = m_vocabularyPadded ? roundUp(config.vocabSize, kVocabularyPadding) / tp : ceilDiv(config.vocabSize, tp);
    slice.vocabulary = {std::min(rows * tpRank, config.vocabSize), std::min(rows * (tpRank + 1), config.vocabSize)};
  }
  slices = std::move(made);
  return slices;
}

std::shared_ptr<const ReplicaPlan> EvenEvaluator::replica(int tp, int pp, int dp, int64_t requests) {
  const bool attentionReplicas = m_options.attentionDataParallel && !m_replicasShareExperts;
  const bool shared = attentionReplicas || (m_hasExperts && m_replicasShareExperts);
  const int world = tp * (shared ? dp : 1);  // ranks of a stage that the experts are divided among
  auto& known = m_replicas[{tp, pp, world, requests}];
  if (known) return known;
  auto made = std::make_shared<ReplicaPlan>();
  made->tp = tp;
  made->pp = pp;
  made->utilization = m_options.gpuMemoryUtilization;
  made->stages = m_rules.stages(m_model.config, pp);
  made->tpSlices = slicesFor(tp);
  made->sharedExperts = shared && dp > 1;
  if (m_options.expertParallel) made->ep = world;
  const auto [weights, isNew] = m_shares.try_emplace({tp, world});
  if (isNew) {
    HeldWeights::Shards shards{.tp = attentionReplicas ? world : tp, .experts = world};
    if (m_options.expertParallel) {
      shards.experts = 1;
      shards.expertGroups = world;
    }
    if (attentionReplicas) shards.attention = tp;
    const HeldWeights::Shares shares = m_weights.sharesOf(shards);
    const EngineKind engine = m_context->engine;
    if (engine == EngineKind::Vllm || engine == EngineKind::SgLang) {
      auto costs = std::make_shared<ReplicaPlan::StageCosts>();
      costs->layerBytes = m_weights.layerBytes(shares);
      auto ends = [&](bool first, bool last) { return m_weights.stageBytes(shares, {0, 0}, first, last).count(); };
      costs->everywhere = ends(false, false);
      costs->first = ends(true, false) - costs->everywhere;
      costs->last = ends(false, true) - costs->everywhere;
      weights->second.costs = std::move(costs);
    }
    weights->second.shares = shares;
  }
  if (pp > 1) made->costs = weights->second.costs;
  if (const LayerSpec* layer = m_model.config.layers.empty() ? nullptr : &m_model.config.layers.front(); layer && tp > 1) {
    const int64_t kv = m_model.config.kvHeads;
    if (layer->attention == AttentionKind::Latent)
      made->kvCopies = tp;
    else if (kv > 0 && tp > kv)
      made->kvCopies = tp / kv;
  }
  made->parts.resize(pp);
  for (int stage = 0; stage < pp; ++stage)
    made->parts[stage].weights = m_weights.stageBytes(weights->second.shares, made->stages[stage], stage == 0, stage == pp - 1);
  fillReplica(*made, requests);
  known = std::move(made);
  return known;
}

}  // namespace headroom
