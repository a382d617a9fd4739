// SPDX-License-Identifier: Apache-2.0
// Private to core/launch: plans single layouts of one model on one machine for one engine, sharing what does not change between
// them.
#pragma once

#include "core/launch/planner.h"
#include "core/performance/roofline.h"

#include <map>
#include <memory>
#include <tuple>

namespace headroom {

class LayoutEvaluator {
 public:
  virtual ~LayoutEvaluator() = default;
  virtual LayoutPlan evaluate(int tp, int pp, int dp) = 0;
};

std::unique_ptr<LayoutEvaluator> makeHeadroomEvaluator(const ModelSource& model, const Machine& machine,
                                                       const ResolvedOptions& options);
std::unique_ptr<LayoutEvaluator> makeVllmEvaluator(const ModelSource& model, const Machine& machine,
                                                   const ResolvedOptions& options, std::optional<DType> askedDType);

Result<ResolvedOptions> resolveVllmOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options);

// Tokens that one request may grow to: what was asked, else the maximum length.
int64_t tokensPerRequest(const ResolvedOptions& options);
int64_t requestsPerReplica(const ResolvedOptions& options, int dp);

// GPUs in the order that ranks take them: the largest first.
std::vector<int> gpuOrder(const Machine& machine);

// Sets headroom, the limiting GPU and the verdict from the ranks' own headroom; says why when it does not fit or is tight.
struct FitArithmetic {
  Bytes budget, kvNeeded;
};
// `kvText` says what the cache is for: "1 request of 32768 tokens".
void decideVerdict(LayoutPlan& plan, const Machine& machine, const std::vector<FitArithmetic>& arithmetic, double utilization,
                   const std::string& kvText);

// How the model's matrices are held, for predictions.
MatrixFormat matrixFormatOf(const ModelConfig& config, const ResolvedOptions& options);
// Predictions of layouts that differ in nothing that matters for speed are made once.
class SpeedCache {
 public:
  SpeedCache(const ModelSource& model, const Machine& machine, const ResolvedOptions& options)
      : m_model(model), m_machine(machine), m_options(options) {}
  void predict(LayoutPlan& plan, double layerBytesPerElement, double headBytesPerElement);

 private:
  const ModelSource& m_model;
  const Machine& m_machine;
  const ResolvedOptions& m_options;
  std::map<std::tuple<int, int, int64_t, int>, RooflineAnswer> m_answers;  // by tp, pp, requests a replica and the slowest GPU
};

}  // namespace headroom
