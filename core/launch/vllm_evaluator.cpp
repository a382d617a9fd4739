// SPDX-License-Identifier: Apache-2.0
// Layouts of vLLM: its rules, its even splits, its memory by version.
#include "core/launch/evaluator.h"
#include "core/memory/vllm_memory.h"

#include <algorithm>

namespace headroom {
namespace {

class VllmEvaluator : public EvenEvaluator {
 public:
  VllmEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine, const ResolvedOptions& options,
                const PlanOptions& asked)
      : EvenEvaluator(model, condensed, machine, options, vllmRules(), asked.dtype, true, true) {
    m_limits.version = versionOf(options.engine);
    m_limits.dtype = options.dtype;
    m_limits.kvDType = options.kvCacheDType;
    m_limits.maxModelLen = options.maxModelLen;
    m_limits.maxNumSeqs = options.maxNumSeqs;
    m_limits.maxNumBatchedTokens = options.maxNumBatchedTokens;
    m_limits.utilization = options.gpuMemoryUtilization;
    m_limits.enforceEager = options.enforceEager;
    m_config = std::make_shared<const ModelConfig>(model.config);
  }

 protected:
  void fillReplica(ReplicaPlan& replica, int64_t requests) override {
    const ModelConfig& config = m_model.config;
    const GpuSpec& gpu = m_machine.gpus.front().spec;
    const int64_t perRequest = tokensPerRequest(m_options);
    replica.unitsPerRequest = 1;
    SameStages same(*this, replica);
    std::vector<VllmStage> kinds;
    for (int stage = 0; stage < replica.pp; ++stage) {
      if (const int earlier = same.find(stage); earlier != stage) {
        const Bytes weights = replica.parts[stage].weights;
        replica.parts[stage] = replica.parts[earlier];
        replica.parts[stage].weights = weights;
        continue;
      }
      const VllmStage place{replica.tp, replica.pp, replica.stages[stage], stage == replica.pp - 1};
      kinds.push_back(place);
      PartBytes& part = replica.parts[stage];
      const VllmKvShape kv = vllmKvShape(config, m_limits, place);
      part.unitsNeeded = kv.blocksPerRequest;
      if (requests > 1 || perRequest > m_limits.maxModelLen)
        part.unitsNeeded = std::max(part.unitsNeeded, requests * vllmBlocksFor(config, m_limits, place, perRequest));
      part.cacheUnit = kv.blockBytes;
      part.activations = vllmActivationPeak(config, m_limits, place);
      part.runtime = vllmRuntimeGrowth(config, m_limits, place, gpu);
      if (vllmChargesGraphs(m_limits.version)) part.graphs = vllmGraphs(m_limits, place, gpu);
      replica.unitTokens = kv.blockTokens;
      replica.unitGroups = kv.groups;
      replica.unitsPerRequest = std::max(replica.unitsPerRequest, kv.blocksPerRequest);
      replica.tokensByUnits = replica.tokensByUnits && kv.uniform;
    }
    replica.unitsFor = [config = m_config, limits = m_limits, kinds = std::move(kinds)](int64_t tokens, int64_t requests) {
      int64_t most = 0;
      for (const VllmStage& stage : kinds) most = std::max(most, vllmBlocksFor(*config, limits, stage, tokens));
      return most * requests;
    };
  }

 private:
  VllmLimits m_limits;
  std::shared_ptr<const ModelConfig> m_config;  // for what is asked of a plan when the evaluator is gone
};

}  // namespace

std::unique_ptr<LayoutEvaluator> makeVllmEvaluator(const ModelSource& model, const CondensedModel& condensed,
                                                   const Machine& machine, const ResolvedOptions& options,
                                                   const PlanOptions& asked) {
  return std::make_unique<VllmEvaluator>(model, condensed, machine, options, asked);
}

}  // namespace headroom
