// SPDX-License-Identifier: Apache-2.0
// Layouts of SGLang: the static share of what is free at start holds weights and cache; nothing is profiled.
#include "core/launch/evaluator.h"
#include "core/memory/sglang_memory.h"

#include <algorithm>

namespace headroom {
namespace {

class SgLangEvaluator : public EvenEvaluator {
 public:
  SgLangEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine, const ResolvedOptions& options, const PlanOptions& asked)
      : EvenEvaluator(model, condensed, machine, options, sgLangRules(), asked.dtype, true, false),
        m_askedFraction(asked.gpuMemoryUtilization),
        m_askedChunk(asked.maxNumBatchedTokens),
        m_version(versionOf(options.engine)) {}

 protected:
  void fillReplica(ReplicaPlan& replica, int64_t requests) override {
    const ModelConfig& config = m_model.config;
    replica.utilization = m_askedFraction.value_or(sgLangStaticFraction(m_machine, replica.tp, replica.pp, m_version, m_askedChunk));
    replica.unitTokens = 1;
    replica.unitsPerRequest = m_options.maxModelLen;
    const int64_t needed = std::max(m_options.maxModelLen, requests * tokensPerRequest(m_options));
    SameStages same(*this, replica);
    for (int stage = 0; stage < replica.pp; ++stage) {
      if (const int earlier = same.find(stage); earlier != stage) {
        const Bytes weights = replica.parts[stage].weights;
        replica.parts[stage] = replica.parts[earlier];
        replica.parts[stage].weights = weights;
        continue;
      }
      PartBytes& part = replica.parts[stage];
      part.runtime = sgLangRotaryCache(config);
      part.cacheUnit = sgLangTokenBytes(config, replica.stages[stage], replica.tp, m_options.kvCacheDType);
      part.unitsNeeded = needed;
    }
  }

 private:
  std::optional<double> m_askedFraction;
  std::optional<int64_t> m_askedChunk;
  EngineVersion m_version;
};

}  // namespace

std::unique_ptr<LayoutEvaluator> makeSgLangEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                                                     const ResolvedOptions& options, const PlanOptions& asked) {
  return std::make_unique<SgLangEvaluator>(model, condensed, machine, options, asked);
}

}  // namespace headroom
