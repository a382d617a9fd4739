// SPDX-License-Identifier: Apache-2.0
// JSON of the engine's wire types. Reading never throws: whatever a peer sends becomes a value or one Error that names the field.
#include "core/protocol/engine_api.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace headroom {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kPhaseNames{"loading", "ready", "draining", "failed"};

json orNull(const std::optional<int64_t>& value) { return value ? json(*value) : json(nullptr); }

json rangeJson(const Range& range) { return json::array({range.begin, range.end}); }

json rankBytesJson(const RankBytes& bytes) {
  return {{"weights_bytes", orNull(bytes.weights)},
          {"kv_cache_bytes", orNull(bytes.kvCache)},
          {"activation_bytes", orNull(bytes.activations)},
          {"graph_bytes", orNull(bytes.graphs)}};
}

// Reads fields of one object; keeps the first problem. A missing field or null is unknown where the target may be unknown.
class FieldReader {
 public:
  FieldReader(const json& object, std::string path, std::optional<Error>& error)
      : m_object(object), m_path(std::move(path)), m_error(error) {
    if (!object.is_object()) fail(m_path, object, "an object");
  }

  const json* find(const char* name) const {
    if (!m_object.is_object()) return nullptr;
    const auto found = m_object.find(name);
    return found == m_object.end() || found->is_null() ? nullptr : &*found;
  }

  const json& child(const char* name) {
    static const json kMissing = nullptr;
    const json* value = find(name);
    if (!value) fail(pathOf(name), kMissing, "a value");
    return value ? *value : kMissing;
  }

  void read(const char* name, int64_t& target) {
    if (const json* value = integer(name, true)) target = value->get<int64_t>();
  }
  void read(const char* name, std::optional<int64_t>& target) {
    if (const json* value = integer(name, false)) target = value->get<int64_t>();
  }
  void read(const char* name, int& target) {
    int64_t wide = target;
    read(name, wide);
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
      return fail(pathOf(name), json(wide), "a smaller number");
    target = static_cast<int>(wide);
  }
  void read(const char* name, double& target) {
    const json* value = find(name);
    if (!value || !value->is_number()) return fail(pathOf(name), value ? *value : json(nullptr), "a number");
    target = value->get<double>();
  }
  void read(const char* name, std::string& target, bool required = true) {
    const json* value = find(name);
    if (!value && !required) return;
    if (!value || !value->is_string()) return fail(pathOf(name), value ? *value : json(nullptr), "a string");
    target = value->get<std::string>();
  }
  void read(const char* name, Range& target) {
    const json* value = find(name);
    const bool good =
        value && value->is_array() && value->size() == 2 && (*value)[0].is_number_integer() && (*value)[1].is_number_integer();
    if (!good) return fail(pathOf(name), value ? *value : json(nullptr), "[begin, end)");
    target = {(*value)[0].get<int64_t>(), (*value)[1].get<int64_t>()};
  }
  void read(const char* name, std::vector<double>& target) {
    const json* value = find(name);
    if (!value || !value->is_array()) return fail(pathOf(name), value ? *value : json(nullptr), "an array of numbers");
    for (const json& item : *value) {
      if (!item.is_number()) return fail(pathOf(name), item, "a number");
      target.push_back(item.get<double>());
    }
  }

  std::string pathOf(const char* name) const { return m_path + "/" + name; }

  void fail(const std::string& path, const json& found, const char* expected) {
    if (m_error) return;
    std::string text = found.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    m_error = Error{path, text, expected, "does the engine speak " + std::string(kEngineSchema) + "?"};
  }

 private:
  const json* integer(const char* name, bool required) {
    const json* value = find(name);
    if (!value && !required) return nullptr;
    if (value && value->is_number_integer()) return value;
    fail(pathOf(name), value ? *value : json(nullptr), "an integer");
    return nullptr;
  }

  const json& m_object;
  std::string m_path;
  std::optional<Error>& m_error;
};

RankBytes rankBytesFrom(const json& value, const std::string& path, std::optional<Error>& error) {
  RankBytes bytes;
  FieldReader reader(value, path, error);
  reader.read("weights_bytes", bytes.weights);
  reader.read("kv_cache_bytes", bytes.kvCache);
  reader.read("activation_bytes", bytes.activations);
  reader.read("graph_bytes", bytes.graphs);
  return bytes;
}

RankState rankStateFrom(const json& value, const std::string& path, std::optional<Error>& error) {
  RankState rank;
  FieldReader reader(value, path, error);
  reader.read("rank", rank.rank);
  reader.read("replica", rank.replica);
  reader.read("stage", rank.stage);
  reader.read("tp_rank", rank.tpRank);
  reader.read("device", rank.device);
  reader.read("layers", rank.layers);
  rank.planned = rankBytesFrom(reader.child("planned"), reader.pathOf("planned"), error);
  rank.allocated = rankBytesFrom(reader.child("allocated"), reader.pathOf("allocated"), error);
  FieldReader memory(reader.child("device_memory"), reader.pathOf("device_memory"), error);
  memory.read("used_bytes", rank.deviceUsedBytes);
  memory.read("total_bytes", rank.deviceTotalBytes);
  FieldReader load(reader.child("load"), reader.pathOf("load"), error);
  load.read("bytes_done", rank.loadBytesDone);
  load.read("bytes_total", rank.loadBytesTotal);
  return rank;
}

// Not a number has no spelling in JSON; a chart shows a gap.
json finiteOrNull(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json finiteArray(const std::vector<double>& values) {
  json array = json::array();
  for (double value : values)
    if (std::isfinite(value)) array.push_back(value);
  return array;
}

}  // namespace

std::string_view phaseName(EnginePhase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }

json toJson(const EngineState& state) {
  json ranks = json::array();
  for (const RankState& rank : state.ranks) {
    ranks.push_back(
        {{"rank", rank.rank},
         {"replica", rank.replica},
         {"stage", rank.stage},
         {"tp_rank", rank.tpRank},
         {"device", rank.device},
         {"layers", rangeJson(rank.layers)},
         {"planned", rankBytesJson(rank.planned)},
         {"allocated", rankBytesJson(rank.allocated)},
         {"device_memory", {{"used_bytes", orNull(rank.deviceUsedBytes)}, {"total_bytes", orNull(rank.deviceTotalBytes)}}},
         {"load", {{"bytes_done", rank.loadBytesDone}, {"bytes_total", rank.loadBytesTotal}}}});
  }
  return {{"schema", kEngineSchema},
          {"phase", phaseName(state.phase)},
          {"error", state.error.empty() ? json(nullptr) : json(state.error)},
          {"model", state.model},
          {"layout", {{"tp", state.tp}, {"pp", state.pp}, {"dp", state.dp}}},
          {"ranks", std::move(ranks)},
          {"kv_blocks", {{"total", state.kvBlocksTotal}, {"free", state.kvBlocksFree}, {"block_tokens", state.blockTokens}}},
          {"requests",
           {{"running", state.requestsRunning}, {"waiting", state.requestsWaiting}, {"finished", state.requestsFinished}}}};
}

json toJson(const MetricsSample& sample) {
  json used = json::array();
  for (const auto& bytes : sample.deviceUsedBytes) used.push_back(orNull(bytes));
  return {{"schema", kEngineSchema},
          {"time", sample.time},
          {"interval_seconds", sample.intervalSeconds},
          {"generated_tokens_per_s", finiteOrNull(sample.generatedTokensPerSecond)},
          {"prompt_tokens_per_s", finiteOrNull(sample.promptTokensPerSecond)},
          {"ttft_ms", finiteArray(sample.ttftMs)},
          {"itl_ms", finiteArray(sample.itlMs)},
          {"kv_blocks", {{"total", sample.kvBlocksTotal}, {"free", sample.kvBlocksFree}}},
          {"requests",
           {{"running", sample.requestsRunning}, {"waiting", sample.requestsWaiting}, {"finished", sample.requestsFinished}}},
          {"device_used_bytes", std::move(used)}};
}

Result<EngineState> engineStateFromJson(const json& value) {
  std::optional<Error> error;
  EngineState state;
  FieldReader reader(value, "engine state", error);
  std::string schema, phase;
  reader.read("schema", schema);
  if (!error && schema != kEngineSchema) reader.fail(reader.pathOf("schema"), json(schema), kEngineSchema);
  reader.read("phase", phase);
  const auto* found = std::find(kPhaseNames.begin(), kPhaseNames.end(), phase);
  if (found == kPhaseNames.end())
    reader.fail(reader.pathOf("phase"), json(phase), "loading, ready, draining or failed");
  else
    state.phase = static_cast<EnginePhase>(found - kPhaseNames.begin());
  reader.read("error", state.error, false);
  reader.read("model", state.model, false);
  FieldReader layout(reader.child("layout"), reader.pathOf("layout"), error);
  layout.read("tp", state.tp);
  layout.read("pp", state.pp);
  layout.read("dp", state.dp);
  const json& ranks = reader.child("ranks");
  if (!ranks.is_array())
    reader.fail(reader.pathOf("ranks"), ranks, "an array");
  else
    for (size_t i = 0; i < ranks.size() && !error; ++i)
      state.ranks.push_back(rankStateFrom(ranks[i], reader.pathOf("ranks") + "/" + std::to_string(i), error));
  FieldReader blocks(reader.child("kv_blocks"), reader.pathOf("kv_blocks"), error);
  blocks.read("total", state.kvBlocksTotal);
  blocks.read("free", state.kvBlocksFree);
  blocks.read("block_tokens", state.blockTokens);
  FieldReader requests(reader.child("requests"), reader.pathOf("requests"), error);
  requests.read("running", state.requestsRunning);
  requests.read("waiting", state.requestsWaiting);
  requests.read("finished", state.requestsFinished);
  if (error) return tl::unexpected(*error);
  return state;
}

Result<MetricsSample> metricsSampleFromJson(const json& value) {
  std::optional<Error> error;
  MetricsSample sample;
  FieldReader reader(value, "metrics sample", error);
  std::string schema;
  reader.read("schema", schema);
  if (!error && schema != kEngineSchema) reader.fail(reader.pathOf("schema"), json(schema), kEngineSchema);
  reader.read("time", sample.time);
  reader.read("interval_seconds", sample.intervalSeconds);
  if (reader.find("generated_tokens_per_s")) reader.read("generated_tokens_per_s", sample.generatedTokensPerSecond);
  if (reader.find("prompt_tokens_per_s")) reader.read("prompt_tokens_per_s", sample.promptTokensPerSecond);
  reader.read("ttft_ms", sample.ttftMs);
  reader.read("itl_ms", sample.itlMs);
  FieldReader blocks(reader.child("kv_blocks"), reader.pathOf("kv_blocks"), error);
  blocks.read("total", sample.kvBlocksTotal);
  blocks.read("free", sample.kvBlocksFree);
  FieldReader requests(reader.child("requests"), reader.pathOf("requests"), error);
  requests.read("running", sample.requestsRunning);
  requests.read("waiting", sample.requestsWaiting);
  requests.read("finished", sample.requestsFinished);
  const json& used = reader.child("device_used_bytes");
  if (!used.is_array())
    reader.fail(reader.pathOf("device_used_bytes"), used, "an array");
  else
    for (const json& bytes : used) {
      if (!bytes.is_null() && !bytes.is_number_integer())
        reader.fail(reader.pathOf("device_used_bytes"), bytes, "an integer or null");
      sample.deviceUsedBytes.push_back(bytes.is_number_integer() ? std::optional<int64_t>(bytes.get<int64_t>()) : std::nullopt);
    }
  if (error) return tl::unexpected(*error);
  return sample;
}

}  // namespace headroom
