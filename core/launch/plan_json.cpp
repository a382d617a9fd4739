// SPDX-License-Identifier: Apache-2.0
// "headroom.plan/1": the plan for scripts and for the window.
#include "core/launch/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace headroom {
namespace {

using nlohmann::json;

template <class T>
json valueJson(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json reasonsJson(const std::vector<Reason>& reasons) {
  json list = json::array();
  for (const Reason& reason : reasons) list.push_back({{"rule", reason.rule}, {"message", reason.message}, {"fix", reason.fix}});
  return list;
}

// Text as nlohmann's dump(2) has it, keys in the order of their names; written as it comes, because a grid of 128 GPUs has
// hundreds of thousands of ranks and a tree of them takes more memory than their text.
class JsonText {
 public:
  explicit JsonText(const std::function<void(std::string_view)>& write) : m_write(write) {}
  void object() { open('{'); }
  void array() { open('['); }
  void endObject() { close('}'); }
  void endArray() { close(']'); }
  void key(std::string_view name) {
    line();
    m_text += '"';
    m_text += name;
    m_text += "\": ";
    m_isValue = true;
  }
  void value(int64_t number) {
    place();
    m_text += fmt::format_int(number).str();
  }
  void value(bool is) {
    place();
    m_text += is ? "true" : "false";
  }
  void value(const std::optional<Bytes>& bytes) {
    place();
    m_text += bytes ? fmt::format_int(bytes->count()).str() : "null";
  }
  void value(Range range) {
    array();
    value(range.begin);
    value(range.end);
    endArray();
  }
  void value(const json& tree) {
    place();
    const std::string text = tree.dump(kIndent, ' ', false, json::error_handler_t::replace);
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      m_text.append(text, at, end - at);
      if (end < text.size()) indent();
      at = end + 1;
    }
  }
  template <class T>
  void member(std::string_view name, const T& of) {
    key(name);
    value(of);
  }
  // On its way; at the end, and from time to time before.
  void flush() {
    m_write(m_text);
    m_text.clear();
  }

 private:
  static constexpr int kIndent = 2;
  void open(char bracket) {
    place();
    m_text += bracket;
    m_isEmpty.push_back(true);
  }
  void close(char bracket) {
    const bool wasEmpty = m_isEmpty.back();
    m_isEmpty.pop_back();
    if (!wasEmpty) indent();
    m_text += bracket;
  }
  void place() {
    if (!m_isValue && !m_isEmpty.empty()) line();
    m_isValue = false;
  }
  void line() {
    if (!m_isEmpty.back()) m_text += ',';
    m_isEmpty.back() = false;
    indent();
  }
  void indent() {
    m_text += '\n';
    m_text.append(m_isEmpty.size() * kIndent, ' ');
  }

  const std::function<void(std::string_view)>& m_write;
  std::string m_text;
  std::vector<bool> m_isEmpty;  // the objects and arrays that are open
  bool m_isValue = false;       // of the key that was written
};

void writeRank(JsonText& text, const RankPlan& rank) {
  const RankSlice& slice = rank.slice;
  text.object();
  text.member("activation_bytes", rank.activations);
  text.member("column_granule", slice.columnGranule);
  text.member("experts", slice.experts);
  text.member("gpu", int64_t{slice.gpu});
  text.member("graph_bytes", rank.graphs);
  text.member("headroom_bytes", rank.headroom);
  text.member("kv_cache_bytes", rank.kvCache);
  text.member("kv_heads", slice.kvHeads);
  text.member("layers", slice.layers);
  text.member("mlp_columns", slice.mlpColumns);
  text.member("q_heads", slice.qHeads);
  text.member("replica", int64_t{slice.replica});
  text.member("runtime_bytes", rank.runtime);
  text.member("stage", int64_t{slice.stage});
  text.member("tp_rank", int64_t{slice.tpRank});
  text.member("vocabulary", slice.vocabulary);
  text.member("weights_bytes", rank.weights);
  text.endObject();
}

void writeLayout(JsonText& text, const LayoutPlan& plan, const json& launch) {
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
  text.object();
  text.member("answers", answers);
  text.member("dp", int64_t{plan.dp});
  text.member("ep", int64_t{plan.ep});
  text.member("headroom_bytes", plan.headroom);
  text.member("kv_cache_bytes", plan.kvCache);
  text.member("kv_tokens", valueJson(plan.kvTokens));
  text.member("launch", launch);
  text.member("limiting_gpu", valueJson(plan.limitingGpu));
  text.member("max_concurrency", valueJson(plan.maxConcurrency));
  text.member("memory_provenance", json(provenanceName(plan.memoryProvenance)));
  text.member("partition", partition);
  text.member("pp", int64_t{plan.pp});
  text.member("predicted", predicted);
  text.key("ranks");
  text.array();
  for (const RankPlan& rank : plan.ranks) writeRank(text, rank);
  text.endArray();
  text.member("reasons", reasonsJson(plan.reasons));
  text.member("shared_experts", plan.sharedExperts);
  text.member("split", json(plan.even ? "even" : "uneven"));
  text.member("tp", int64_t{plan.tp});
  text.member("verdict", json(verdictName(plan.verdict)));
  text.member("warnings", reasonsJson(plan.warnings));
  text.member("waste", waste);
  text.member("weights_provenance", json(provenanceName(plan.weightsProvenance)));
  text.endObject();
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

void writePlanJson(const PlanReport& report, const std::string& modelArgument, const json& comparison,
                   const std::function<void(std::string_view)>& write) {
  const ModelConfig& model = report.model;
  const ResolvedOptions& options = report.options;
  json gpus = json::array();
  for (const MachineGpu& gpu : report.machine.gpus) {
    gpus.push_back({{"index", gpu.index}, {"name", gpu.spec.name}, {"node", gpu.node}, {"total_bytes", gpu.totalMemory.count()}});
  }
  // Commands for every layout of a small grid, else for the recommended one.
  constexpr size_t kMostCommands = 256;
  const std::string name = modelArgument.empty() ? model.name : modelArgument;
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
  JsonText text(write);
  text.object();
  if (!comparison.is_null()) text.member("comparison", comparison);
  text.member("context_series", contextSeriesJson(report));
  text.member("gpus", gpus);
  text.key("layouts");
  text.array();
  for (const LayoutPlan& plan : report.layouts) {
    writeLayout(text, plan, report.layouts.size() <= kMostCommands ? launchJson(report, plan, name) : json());
    text.flush();
  }
  text.endArray();
  text.member("model", json{{"name", model.name},
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
                            {"warnings", model.warnings}});
  text.member("options", json{{"engine", engineName(options.engine.kind)},
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
                              {"output_len", lengthJson(options.outputLen)}});
  text.member("recommended", recommended);
  text.member("schema", json("headroom.plan/1"));
  text.endObject();
  text.flush();
}

json planToJson(const PlanReport& report, const std::string& modelArgument) {
  std::string text;
  writePlanJson(report, modelArgument, {}, [&text](std::string_view part) { text += part; });
  return json::parse(text);
}

}  // namespace headroom
