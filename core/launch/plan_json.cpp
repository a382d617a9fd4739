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
                 {"source", p.source}};
  }
  return {{"tp", plan.tp},
          {"pp", plan.pp},
          {"dp", plan.dp},
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

}  // namespace

json planToJson(const PlanReport& report) {
  const ModelConfig& model = report.model;
  const ResolvedOptions& options = report.options;
  json gpus = json::array();
  for (const MachineGpu& gpu : report.machine.gpus) {
    gpus.push_back({{"index", gpu.index}, {"name", gpu.spec.name}, {"node", gpu.node}, {"total_bytes", gpu.totalMemory.count()}});
  }
  json layouts = json::array();
  for (const LayoutPlan& plan : report.layouts) layouts.push_back(layoutPlanJson(plan));
  json recommended;
  if (report.recommended) {
    recommended = {{"tp", report.recommended->tp},
                   {"pp", report.recommended->pp},
                   {"dp", report.recommended->dp},
                   {"why", report.recommended->why}};
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
            {"input_len", lengthJson(options.inputLen)},
            {"output_len", lengthJson(options.outputLen)}}},
          {"layouts", std::move(layouts)},
          {"recommended", std::move(recommended)}};
}

}  // namespace headroom
