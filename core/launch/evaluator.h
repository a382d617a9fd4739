// SPDX-License-Identifier: Apache-2.0
// Private to core/launch: plans single layouts of one model on one machine for one engine, sharing what does not change between
// them.
#pragma once

#include "core/launch/planner.h"
#include "core/performance/roofline.h"

#include <memory>

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
  Bytes budget;
  std::string budgetText;  // "79.25 GiB x 0.92"
  Bytes kvNeeded;
  std::string kvText;  // "1 request of 32768 tokens"
};
void decideVerdict(LayoutPlan& plan, const Machine& machine, const std::vector<FitArithmetic>& arithmetic, double utilization);

// How the model's matrices are held, for predictions.
MatrixFormat matrixFormatOf(const ModelConfig& config, const ResolvedOptions& options);
void predict(LayoutPlan& plan, const ModelSource& model, const Machine& machine, const ResolvedOptions& options,
             double layerBytesPerElement, double headBytesPerElement);

}  // namespace headroom
