// SPDX-License-Identifier: Apache-2.0
#include "core/launch/evaluator.h"

#include <algorithm>
#include <numeric>

namespace headroom {
namespace {

// Less than this share of the GPU left is tight.
constexpr double kTightShare = 0.05;

std::string gibText(Bytes bytes) { return fmt::format("{:.2f}", bytes.gib()); }

}  // namespace

int64_t tokensPerRequest(const ResolvedOptions& options) {
  const int64_t asked = options.inputLen + options.outputLen;
  return asked > 0 ? asked : options.maxModelLen;
}

int64_t requestsPerReplica(const ResolvedOptions& options, int dp) {
  return ceilDiv(std::max<int64_t>(1, options.concurrency), dp);
}

std::vector<int> gpuOrder(const Machine& machine) {
  std::vector<int> order(machine.gpus.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return machine.gpus[a].totalMemory > machine.gpus[b].totalMemory; });
  return order;
}

void decideVerdict(LayoutPlan& plan, const Machine& machine, const std::vector<FitArithmetic>& arithmetic, double utilization,
                   const std::string& kvText) {
  size_t worst = 0;
  for (size_t i = 1; i < plan.ranks.size(); ++i) {
    if (*plan.ranks[i].headroom < *plan.ranks[worst].headroom) worst = i;
  }
  const RankPlan& rank = plan.ranks[worst];
  const MachineGpu& gpu = machine.gpus[rank.slice.gpu];
  plan.headroom = rank.headroom;
  plan.limitingGpu = gpu.index;
  const Bytes headroom = *rank.headroom;
  const FitArithmetic& sums = arithmetic[worst];
  const std::string budgetText = fmt::format("{:.2f} GiB x {:g}", gpu.totalMemory.gib(), utilization);
  auto parts = [&] {
    std::string text = fmt::format("weights {} + activations {}", gibText(*rank.weights), gibText(*rank.activations));
    if (rank.graphs && rank.graphs->count() > 0) text += fmt::format(" + graphs {}", gibText(*rank.graphs));
    if (rank.runtime && rank.runtime->count() > 0) text += fmt::format(" + runtime {}", gibText(*rank.runtime));
    return text + fmt::format(" + KV cache {} for {}", gibText(sums.kvNeeded), kvText);
  };
  if (headroom.count() < 0) {
    plan.verdict = Verdict::DoesNotFit;
    plan.reasons.push_back(
        {"memory.does_not_fit",
         fmt::format("GPU {} ({}): {} = {} GiB, budget {} = {} GiB: {} GiB too much", gpu.index, gpu.spec.name, parts(),
                     gibText(sums.budget - headroom), budgetText, gibText(sums.budget), gibText(-headroom)),
         ""});
    return;
  }
  if (static_cast<double>(headroom.count()) < kTightShare * utilization * static_cast<double>(gpu.totalMemory.count())) {
    plan.verdict = Verdict::Tight;
    plan.reasons.push_back(
        {"memory.tight",
         fmt::format("GPU {} ({}): {} = {} GiB, budget {} = {} GiB: only {} GiB left", gpu.index, gpu.spec.name, parts(),
                     gibText(sums.budget - headroom), budgetText, gibText(sums.budget), gibText(headroom)),
         ""});
    return;
  }
  plan.verdict = Verdict::Fits;
}

MatrixFormat matrixFormatOf(const ModelConfig& config, const ResolvedOptions& options) {
  const std::string& method = options.quantization;
  if (method == "fp8" || method == "fbgemm_fp8") {
    return config.quantization && config.quantization->weightBlock.size() == 2 ? MatrixFormat::Fp8Blocks : MatrixFormat::Fp8;
  }
  if (config.quantization && config.quantization->bits == 8 && (method == "compressed-tensors" || method == "modelopt"))
    return MatrixFormat::Fp8;
  if (!method.empty()) return MatrixFormat::PackedWeights;
  return options.dtype == DType::F32 ? MatrixFormat::ThirtyTwoBit : MatrixFormat::SixteenBit;
}

namespace {

// The question that a layout is to the roofline; `gpu` is its slowest.
RooflineAnswer ask(const LayoutPlan& plan, const ModelConfig& config, const ResolvedOptions& options, const GpuSpec& gpu,
                   double layerBytesPerElement, double headBytesPerElement) {
  RooflineQuestion question;
  question.config = &config;
  question.tp = plan.tp;
  int64_t q = 0, kv = 0, columns = 0, vocabulary = 0;
  for (const RankPlan& rank : plan.ranks) {
    q = std::max(q, rank.slice.qHeads.size());
    kv = std::max(kv, rank.slice.kvHeads.size());
    columns = std::max(columns, rank.slice.mlpColumns.size());
    vocabulary = std::max(vocabulary, rank.slice.vocabulary.size());
    if (rank.slice.replica == 0 && rank.slice.tpRank == 0) question.stages.push_back(rank.slice.layers);
  }
  auto share = [&](int64_t held, int64_t all) {
    return all > 0 && held > 0 ? static_cast<double>(held) / static_cast<double>(all) : 1.0 / plan.tp;
  };
  question.qShare = share(q, config.qHeads);
  question.kvShare = share(kv, config.kvHeads);
  question.columnShare = share(columns, config.intermediateSize);
  question.vocabularyShare = share(vocabulary, config.vocabSize);
  question.format = matrixFormatOf(config, options);
  question.layerBytesPerElement = layerBytesPerElement;
  question.headBytesPerElement = headBytesPerElement;
  const DTypeInfo& kvType = dtypeInfo(options.kvCacheDType);
  question.kvBytesPerElement = static_cast<double>(kvType.blockBytes) / static_cast<double>(kvType.blockElements);
  question.gpu = gpu;
  question.concurrency = requestsPerReplica(options, plan.dp);
  // Without a load that was asked for: a prompt and an answer of everyday length.
  constexpr int64_t kEverydayPrompt = 1024, kEverydayAnswer = 256;
  const bool given = options.inputLen + options.outputLen > 0;
  question.inputLen = given ? std::max<int64_t>(1, options.inputLen) : std::min(kEverydayPrompt, options.maxModelLen / 2);
  question.outputLen =
      given ? std::max<int64_t>(1, options.outputLen) : std::min(kEverydayAnswer, std::max<int64_t>(1, options.maxModelLen / 2));
  return predictSpeed(question);
}

}  // namespace

void SpeedCache::predict(LayoutPlan& plan, double layerBytesPerElement, double headBytesPerElement) {
  const ModelConfig& config = m_model.config;
  const ResolvedOptions& options = m_options;
  int slowest = plan.ranks.front().slice.gpu;
  for (const RankPlan& rank : plan.ranks) {
    auto bandwidth = [&](int gpu) { return m_machine.gpus[gpu].spec.bandwidthGBs.value_or(0); };
    if (bandwidth(rank.slice.gpu) < bandwidth(slowest)) slowest = rank.slice.gpu;
  }
  const auto [found, isNew] = m_answers.try_emplace({plan.tp, plan.pp, requestsPerReplica(options, plan.dp), slowest});
  if (isNew) found->second = ask(plan, config, options, m_machine.gpus[slowest].spec, layerBytesPerElement, headBytesPerElement);
  const RooflineAnswer& answer = found->second;
  plan.predicted = {answer.decodeTokensPerSecond,
                    answer.throughputTokensPerSecond,
                    answer.itlMs,
                    answer.prefillTokensPerSecond,
                    answer.ttftMs,
                    answer.source};
  if (plan.predicted.throughputTokensPerSecond) {
    *plan.predicted.throughputTokensPerSecond *=
        static_cast<double>(std::min<int64_t>(plan.dp, std::max<int64_t>(1, options.concurrency)));
  }
}

}  // namespace headroom
