// SPDX-License-Identifier: Apache-2.0
// Layouts of TensorRT-LLM: the cache takes a share of what weights and a dry run leave. LMDeploy's TurboMind: of what weights leave.
#include "core/launch/evaluator.h"
#include "core/memory/tensorrt_memory.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr int64_t kBlockTokens = 32;      // tokens_per_block
constexpr int64_t kTurboMindTokens = 64;  // cache_block_seq_len

class TensorRtEvaluator : public EvenEvaluator {
 public:
  TensorRtEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine, const ResolvedOptions& options, const PlanOptions& asked)
      : EvenEvaluator(model, condensed, machine, options, tensorRtRules(), asked.dtype, false, false) {}

 protected:
  void fillReplica(ReplicaPlan& replica, int64_t requests) override {
    const ModelConfig& config = m_model.config;
    replica.unitTokens = kBlockTokens;
    replica.unitsPerRequest = ceilDiv(m_options.maxModelLen, kBlockTokens);
    const int64_t needed =
        std::max(replica.unitsPerRequest, requests * ceilDiv(headroom::tokensPerRequest(m_options), kBlockTokens));
    SameStages same(*this, replica);
    for (int stage = 0; stage < replica.pp; ++stage) {
      if (const int earlier = same.find(stage); earlier != stage) {
        const Bytes weights = replica.parts[stage].weights;
        replica.parts[stage] = replica.parts[earlier];
        replica.parts[stage].weights = weights;
        continue;
      }
      PartBytes& part = replica.parts[stage];
      part.activations =
          tensorRtActivations(config, replica.stages[stage], replica.tp, stage == replica.pp - 1, m_options.maxNumBatchedTokens,
                              std::max<int64_t>(1, requests), dtypeInfo(m_options.dtype).blockBytes);
      part.cacheUnit = tensorRtTokenBytes(config, replica.stages[stage], replica.tp, m_options.kvCacheDType) * kBlockTokens;
      part.unitsNeeded = needed;
    }
  }
};

class LmDeployEvaluator : public EvenEvaluator {
 public:
  LmDeployEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                    const ResolvedOptions& options, const PlanOptions& asked)
      : EvenEvaluator(model, condensed, machine, options, lmDeployRules(), asked.dtype, false, false) {}

 protected:
  void fillReplica(ReplicaPlan& replica, int64_t requests) override {
    replica.unitTokens = kTurboMindTokens;
    replica.unitsPerRequest = ceilDiv(m_options.maxModelLen, kTurboMindTokens);
    PartBytes& part = replica.parts.front();  // TurboMind sizes its cache before it has run: buffers come out of what the share leaves
    part.cacheUnit =
        tensorRtTokenBytes(m_model.config, replica.stages.front(), replica.tp, m_options.kvCacheDType) * kTurboMindTokens;
    part.unitsNeeded =
        std::max(replica.unitsPerRequest, requests * ceilDiv(headroom::tokensPerRequest(m_options), kTurboMindTokens));
  }
};

}  // namespace

std::unique_ptr<LayoutEvaluator> makeLmDeployEvaluator(const ModelSource& model, const CondensedModel& condensed,
                                                       const Machine& machine, const ResolvedOptions& options,
                                                       const PlanOptions& asked) {
  return std::make_unique<LmDeployEvaluator>(model, condensed, machine, options, asked);
}

std::unique_ptr<LayoutEvaluator> makeTensorRtEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                                                       const ResolvedOptions& options, const PlanOptions& asked) {
  return std::make_unique<TensorRtEvaluator>(model, condensed, machine, options, asked);
}

}  // namespace headroom
