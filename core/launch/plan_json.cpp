// SPDX-License-Identifier: Apache-2.0
// "headroom.plan/1": the plan for scripts and for the window.
#include "core/launch/planner.h"

namespace headroom {
namespace {

using nlohmann::json;

json bytesJson(const std::optional<Bytes>& bytes) { return bytes ? json(bytes->count()) : json(); }

template <class T>
json valueJson(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json rangeJson(Range range) { return json::array({range.begin, range.end}); }

json reasonsJson(const std::vector<Reason>& reasons) {
  json list = json::array();
  for (const Reason& reason : reasons) list.push_back({{"rule", reason.rule}, {"message", reason.message}, {"fix", reason.fix}});
  return list;
}

json layoutPlanJson(const LayoutPlan& plan) {
  json ranks = json::array();
  for (const RankPlan& rank : plan.ranks) {
    const RankSlice& slice = rank.slice;
    ranks.push_back({{"gpu", slice.gpu},
                     {"replica", slice.replica},
                     {"stage", slice.stage},
                     {"tp_rank", slice.tpRank},
                     {"layers", rangeJson(slice.layers)},
                     {"q_heads", rangeJson(slice.qHeads)},
                     {"kv_heads", rangeJson(slice.kvHeads)},
                     {"mlp_columns", rangeJson(slice.mlpColumns)},
                     {"experts", rangeJson(slice.experts)},
                     {"vocabulary", rangeJson(slice.vocabulary)},
                     {"column_granule", slice.columnGranule},
                     {"weights_bytes", bytesJson(rank.weights)},
                     {"kv_cache_bytes", bytesJson(rank.kvCache)},
                     {"activation_bytes", bytesJson(rank.activations)},
                     {"graph_bytes", bytesJson(rank.graphs)},
                     {"runtime_bytes", bytesJson(rank.runtime)},
                     {"headroom_bytes", bytesJson(rank.headroom)}});
  }
  const Prediction& p = plan.predicted;
  json predicted;
  if (!p.source.empty()) {
    predicted = {{"decode_tokens_per_s", valueJson(p.decodeTokensPerSecond)},
                 {"throughput_tokens_per_s", valueJson(p.throughputTokensPerSecond)},
                 {"itl_ms", valueJson(p.itlMs)},
                 {"prefill_tokens_per_s", valueJson(p.prefillTokensPerSecond)},
                 {"ttft_ms", valueJson(p.ttftMs)},
                 {"itl_error", valueJson(p.itlError)},
                 {"ttft_error", valueJson(p.ttftError)},
                 {"source", p.source}};
  }
  json answers, partition, waste = json::array();
  if (!plan.answers.empty()) {
    answers = {{"longest_context", valueJson(plan.answers.front().longestContext)},
               {"most_requests", valueJson(plan.answers.front().mostRequests)}};
  }
  if (!plan.partition.empty()) {
    const PartitionAdvice& advice = plan.partition.front();
    partition = {{"layers", advice.layers}, {"kv_tokens", advice.kvTokens}, {"gain", advice.gain}};
  }
  for (const WasteItem& item : plan.waste)
    waste.push_back({{"kind", item.kind}, {"bytes", item.bytes.count()}, {"why", item.why}});
  return {{"tp", plan.tp},
          {"pp", plan.pp},
          {"dp", plan.dp},
          {"ep", plan.ep},
          {"shared_experts", plan.sharedExperts},
          {"answers", std::move(answers)},
          {"partition", std::move(partition)},
          {"waste", std::move(waste)},
          {"split", plan.even ? "even" : "uneven"},
          {"verdict", verdictName(plan.verdict)},
          {"reasons", reasonsJson(plan.reasons)},
          {"warnings", reasonsJson(plan.warnings)},
          {"headroom_bytes", bytesJson(plan.headroom)},
          {"limiting_gpu", valueJson(plan.limitingGpu)},
          {"kv_cache_bytes", bytesJson(plan.kvCache)},
          {"kv_tokens", valueJson(plan.kvTokens)},
          {"max_concurrency", valueJson(plan.maxConcurrency)},
          {"ranks", std::move(ranks)},
          {"predicted", std::move(predicted)},
          {"weights_provenance", provenanceName(plan.weightsProvenance)},
          {"memory_provenance", provenanceName(plan.memoryProvenance)}};
}

json launchJson(const PlanReport& report, const LayoutPlan& plan, const std::string& model) {
  const std::optional<LaunchCommand> command = launchCommand(report, plan, model);
  if (!command) return {};
  auto explainedJson = [](const std::vector<LaunchCommand::Option>& options) {
    json list = json::array();
    for (const LaunchCommand::Option& option : options) list.push_back({{"option", option.option}, {"why", option.why}});
    return list;
  };
  json nodes = json::array();
  for (const LaunchCommand::OnNode& node : command->nodes) nodes.push_back({{"node", node.node}, {"command", node.text}});
  return {{"command", command->text},
          {"explained", explainedJson(command->explained)},
          {"docker", command->docker.empty() ? json() : json(command->docker)},
          {"docker_explained", explainedJson(command->dockerExplained)},
          {"nodes", std::move(nodes)}};
}

// Memory against context length: of the recommended layout, and of the usable ones of one replica at the sizes people compare.
json contextSeriesJson(const PlanReport& report) {
  constexpr size_t kMostSeries = 12;
  std::vector<const LayoutPlan*> shown;
  if (report.recommended) shown.push_back(report.find(report.recommended->tp, report.recommended->pp, report.recommended->dp));
  const int gpus = report.machine.size();
  for (const LayoutPlan& plan : report.layouts) {
    const int used = plan.tp * plan.pp;
    if (shown.size() >= kMostSeries) break;
    if (plan.dp != 1 || gpus % used != 0 || plan.contextSeries.empty() || (!shown.empty() && &plan == shown.front())) continue;
    shown.push_back(&plan);
  }
  json list = json::array();
  for (const LayoutPlan* plan : shown) {
    json points = json::array();
    for (const ContextPoint& point : plan->contextSeries) {
      points.push_back({{"tokens", point.tokens},
                        {"gpu", point.gpu},
                        {"fixed_bytes", point.fixed.count()},
                        {"kv_cache_bytes", point.kvCache.count()},
                        {"budget_bytes", point.budget.count()},
                        {"fits", point.fits()}});
    }
    list.push_back({{"tp", plan->tp}, {"pp", plan->pp}, {"dp", plan->dp}, {"points", std::move(points)}});
  }
  return list;
}

}  // namespace

json planToJson(const PlanReport& report, const std::string& modelArgument) {
  const ModelConfig& model = report.model;
  const ResolvedOptions& options = report.options;
  json gpus = json::array();
  for (const MachineGpu& gpu : report.machine.gpus) {
    gpus.push_back({{"index", gpu.index}, {"name", gpu.spec.name}, {"node", gpu.node}, {"total_bytes", gpu.totalMemory.count()}});
  }
  // Commands for every layout of a small grid, else for the recommended one.
  constexpr size_t kMostCommands = 256;
  const std::string name = modelArgument.empty() ? model.name : modelArgument;
  json layouts = json::array();
  for (const LayoutPlan& plan : report.layouts) {
    layouts.push_back(layoutPlanJson(plan));
    layouts.back()["launch"] = report.layouts.size() <= kMostCommands ? launchJson(report, plan, name) : json();
  }
  json recommended;
  if (report.recommended) {
    recommended = {{"tp", report.recommended->tp},
                   {"pp", report.recommended->pp},
                   {"dp", report.recommended->dp},
                   {"why", report.recommended->why}};
    const LayoutPlan* best = report.find(report.recommended->tp, report.recommended->pp, report.recommended->dp);
    recommended["launch"] = best ? launchJson(report, *best, name) : json();
  }
  auto lengthJson = [](int64_t length) { return length > 0 ? json(length) : json(); };
  return {{"schema", "headroom.plan/1"},
          {"model",
           {{"name", model.name},
            {"architecture", model.architecture},
            {"layers", model.layerCount()},
            {"hidden_size", model.hiddenSize},
            {"q_heads", model.qHeads},
            {"kv_heads", model.kvHeads},
            {"head_dim", model.headDim},
            {"intermediate_size", model.intermediateSize},
            {"vocab_size", model.vocabSize},
            {"parameters", report.parameters},
            {"checkpoint_bytes", report.checkpointBytes.count()},
            {"dtype", dtypeName(model.dtype)},
            {"quantization", model.quantization ? json(model.quantization->method) : json()},
            {"kv_bytes_per_token", valueJson(report.kvBytesPerToken)},
            {"warnings", model.warnings}}},
          {"gpus", std::move(gpus)},
          {"options",
           {{"engine", engineName(options.engine.kind)},
            {"engine_version", options.engine.version.empty() ? json() : json(options.engine.version)},
            {"dtype", dtypeName(options.dtype)},
            {"quantization", options.quantization.empty() ? json() : json(options.quantization)},
            {"kv_cache_dtype", dtypeName(options.kvCacheDType)},
            {"max_model_len", options.maxModelLen},
            {"max_num_seqs", options.maxNumSeqs},
            {"max_num_batched_tokens", options.maxNumBatchedTokens},
            {"gpu_memory_utilization", options.gpuMemoryUtilization},
            {"enforce_eager", options.enforceEager},
            {"concurrency", options.concurrency},
            {"expert_parallel", options.expertParallel},
            {"attention_data_parallel", options.attentionDataParallel},
            {"input_len", lengthJson(options.inputLen)},
            {"output_len", lengthJson(options.outputLen)}}},
          {"layouts", std::move(layouts)},
          {"context_series", contextSeriesJson(report)},
          {"recommended", std::move(recommended)}};
}

}  // namespace headroom
