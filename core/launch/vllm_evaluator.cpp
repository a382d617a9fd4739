// SPDX-License-Identifier: Apache-2.0
// Layouts of vLLM: its rules, its even splits, its memory by version.
#include "core/launch/evaluator.h"
#include "core/memory/vllm_memory.h"

#include <algorithm>
#include <array>

namespace headroom {
namespace {

// Classes that build embedding, final norm and head on every stage (0.32.0, as its own code counted its parameters).
constexpr std::array<std::string_view, 21> kEndsOnEveryStage{"CohereForCausalLM",
                                                             "Lfm2ForCausalLM",
                                                             "Qwen2MoeForCausalLM",
                                                             "Qwen3MoeForCausalLM",
                                                             "Qwen3NextForCausalLM",
                                                             "ChatGLMModel",
                                                             "ChatGLMForConditionalGeneration",
                                                             "JambaForCausalLM",
                                                             "GemmaForCausalLM",
                                                             "Gemma2ForCausalLM",
                                                             "Gemma3ForCausalLM",
                                                             "Gemma3ForConditionalGeneration",
                                                             "GraniteMoeForCausalLM",
                                                             "InternLM2ForCausalLM",
                                                             "PhiMoEForCausalLM",
                                                             "MixtralForCausalLM",
                                                             "NemotronHForCausalLM",
                                                             "GptOssForCausalLM",
                                                             "MiniCPM3ForCausalLM",
                                                             "FalconForCausalLM",
                                                             "Qwen3_5ForConditionalGeneration"};

class VllmEvaluator : public EvenEvaluator {
 public:
  VllmEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine, const ResolvedOptions& options, const PlanOptions& asked)
      : EvenEvaluator(model, condensed, machine, options, vllmRules(), asked.dtype, true, true) {
    m_limits.version = versionOf(options.engine);
    m_limits.dtype = options.dtype;
    m_limits.kvDType = options.kvCacheDType;
    m_limits.maxModelLen = options.maxModelLen;
    m_limits.maxNumSeqs = options.maxNumSeqs;
    m_limits.maxNumBatchedTokens = options.maxNumBatchedTokens;
    m_limits.utilization = options.gpuMemoryUtilization;
    m_limits.enforceEager = options.enforceEager;
  }

 protected:
  void fillReplica(ReplicaPlan& replica, int64_t requests) override {
    const ModelConfig& config = m_model.config;
    const GpuSpec& gpu = m_machine.gpus.front().spec;
    const int64_t perRequest = tokensPerRequest(m_options);
    replica.unitsPerRequest = 1;
    for (int stage = 0; stage < replica.pp; ++stage) {
      const VllmStage place{replica.tp, replica.pp, replica.stages[stage], stage == replica.pp - 1};
      PartBytes& part = replica.parts[stage];
      const VllmKvShape kv = vllmKvShape(config, m_limits, place);
      part.unitsNeeded = std::max(kv.blocksPerRequest, requests * vllmBlocksFor(config, m_limits, place, perRequest));
      part.cacheUnit = kv.blockBytes;
      part.activations = vllmActivationPeak(config, m_limits, place);
      part.runtime = vllmRuntimeGrowth(config, m_limits, place, gpu);
      if (vllmChargesGraphs(m_limits.version)) part.graphs = vllmGraphs(m_limits, place, gpu);
      replica.unitTokens = kv.blockTokens;
      replica.unitsPerRequest = std::max(replica.unitsPerRequest, kv.blocksPerRequest);
      replica.tokensByUnits = replica.tokensByUnits && kv.uniform;
    }
  }

  Everywhere everywhere() const override {
    const ModelConfig& config = m_model.config;
    const std::string& method = m_options.quantization;
    // Two 32-bit scales of the cache in each attention layer.
    const bool cacheScales = config.quantization && (method == "fp8" || method.rfind("modelopt", 0) == 0);
    return {std::find(kEndsOnEveryStage.begin(), kEndsOnEveryStage.end(), config.architecture) != kEndsOnEveryStage.end(), true,
            cacheScales ? 8 : 0};
  }

 private:
  VllmLimits m_limits;
};

}  // namespace

std::unique_ptr<LayoutEvaluator> makeVllmEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                                                   const ResolvedOptions& options, const PlanOptions& asked) {
  return std::make_unique<VllmEvaluator>(model, condensed, machine, options, asked);
}

}  // namespace headroom
