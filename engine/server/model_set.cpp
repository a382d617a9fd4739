// SPDX-License-Identifier: Apache-2.0
#include "engine/server/model_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace headroom::engine {
namespace {

constexpr std::chrono::milliseconds kLook{20};  // at models that leave

}  // namespace

ModelSet::ModelSet() : m_thread([this] { seeOut(); }) {}

ModelSet::~ModelSet() { closeAll(); }

void ModelSet::add(LoadedModel model) {
  {
    std::lock_guard lock(m_mutex);
    m_entries.push_back({std::move(model)});
  }
  if (m_changed) m_changed();
}

std::shared_ptr<ServedModel> ModelSet::findLocked(const std::string& name) const {
  for (const Entry& entry : m_entries)
    if (!entry.leaves && entry.model.served->name() == name) return entry.model.served;
  return nullptr;
}

std::shared_ptr<ServedModel> ModelSet::find(const std::string& name) const {
  std::lock_guard lock(m_mutex);
  return findLocked(name);
}

std::shared_ptr<ServedModel> ModelSet::findKnown(const std::string& name) const {
  std::lock_guard lock(m_mutex);
  if (auto model = findLocked(name)) return model;
  for (auto entry = m_entries.rbegin(); entry != m_entries.rend(); ++entry)
    if (entry->model.served->name() == name) return entry->model.served;
  return nullptr;
}

std::shared_ptr<ServedModel> ModelSet::first() const {
  std::lock_guard lock(m_mutex);
  for (const Entry& entry : m_entries)
    if (!entry.leaves) return entry.model.served;
  return nullptr;
}

std::vector<std::shared_ptr<ServedModel>> ModelSet::all() const {
  std::lock_guard lock(m_mutex);
  std::vector<std::shared_ptr<ServedModel>> models;
  for (const Entry& entry : m_entries) models.push_back(entry.model.served);
  return models;
}

std::string ModelSet::names() const {
  std::lock_guard lock(m_mutex);
  std::string names;
  for (const Entry& entry : m_entries)
    if (!entry.leaves) names += (names.empty() ? "" : ", ") + jsonString(entry.model.served->name());
  return names.empty() ? "none" : names;
}

ApiResult<std::shared_ptr<ServedModel>> ModelSet::load(const nlohmann::ordered_json& request) {
  if (!m_loader)
    return tl::unexpected(ApiError{403,
                                   "This server was not started with --manage-models, so its models stay as they are.",
                                   {},
                                   "invalid_request_error",
                                   "models_not_managed"});
  std::lock_guard loading(m_loading);
  auto loaded = m_loader(request);
  if (!loaded) return tl::unexpected(loaded.error());
  const std::shared_ptr<ServedModel> served = loaded->served;
  {
    std::lock_guard lock(m_mutex);
    if (!findLocked(served->name())) {
      m_entries.push_back({std::move(*loaded)});
      loaded = LoadedModel{};
    }
  }
  if (loaded->served) {  // the name is taken
    if (loaded->close) loaded->close();
    return tl::unexpected(ApiError{
        409, fmt::format("name: {} is served already; expected another name, or unload it first.", jsonString(served->name())),
        "name", "invalid_request_error", "model_exists"});
  }
  if (m_changed) m_changed();
  return served;
}

std::optional<ApiError> ModelSet::unload(const std::string& name, std::chrono::milliseconds limit) {
  if (!m_loader) return load({}).error();
  {
    std::lock_guard lock(m_mutex);
    const auto entry = std::find_if(m_entries.begin(), m_entries.end(),
                                    [&](const Entry& one) { return !one.leaves && one.model.served->name() == name; });
    if (entry == m_entries.end())
      return ApiError{404, fmt::format("The model {} is not served here.", jsonString(name)), "name", "invalid_request_error",
                      "model_not_found"};
    entry->leaves = true;
    entry->until = std::chrono::steady_clock::now() + limit;
    entry->model.served->leave();
    entry->model.served->service().drain();
  }
  m_wake.notify_all();
  if (m_changed) m_changed();
  return std::nullopt;
}

void ModelSet::seeOut() {
  std::unique_lock lock(m_mutex);
  while (!m_ends) {
    const bool anyLeaves = std::any_of(m_entries.begin(), m_entries.end(), [](const Entry& entry) { return entry.leaves; });
    if (anyLeaves)
      m_wake.wait_for(lock, kLook);
    else
      m_wake.wait(lock);
    const auto over = std::find_if(m_entries.begin(), m_entries.end(), [](const Entry& entry) {
      if (!entry.leaves) return false;
      const EngineState state = entry.model.served->service().state();
      const bool idle = state.requestsRunning + state.requestsWaiting == 0;
      return idle || state.phase == EnginePhase::Failed || std::chrono::steady_clock::now() >= entry.until;
    });
    if (m_ends || over == m_entries.end()) continue;
    // It stays in the list until its memory is free again.
    const std::function<void()> close = std::exchange(over->model.close, {});
    lock.unlock();
    if (close) close();
    lock.lock();
    m_entries.erase(over);
    lock.unlock();
    if (m_changed) m_changed();
    lock.lock();
  }
}

void ModelSet::closeAll() {
  std::list<Entry> entries;
  {
    std::lock_guard lock(m_mutex);
    m_ends = true;
  }
  m_wake.notify_all();
  if (m_thread.joinable()) m_thread.join();
  {
    std::lock_guard lock(m_mutex);
    entries.swap(m_entries);
  }
  for (Entry& entry : entries)
    if (entry.model.close) entry.model.close();
}

namespace {

// Unknown where a part is.
void add(std::map<std::string, std::optional<int64_t>>& used, const RankState& rank) {
  const auto [device, isNew] = used.emplace(rank.device, rank.deviceUsedBytes);
  if (!isNew)
    device->second =
        device->second && rank.deviceUsedBytes ? std::optional(*device->second + *rank.deviceUsedBytes) : std::nullopt;
}

// What each device holds of all models, `state` being that of `model`. An engine says the same of each of its ranks on a device.
std::map<std::string, std::optional<int64_t>> usedBytes(const ModelSet& models, const ServedModel& model,
                                                        const EngineState& state) {
  std::map<std::string, std::optional<int64_t>> used;
  for (const auto& each : models.all()) {
    std::map<std::string, RankState> devices;
    const EngineState other = each.get() == &model ? state : each->service().state();
    for (const RankState& rank : other.ranks) devices.emplace(rank.device, rank);
    for (const auto& [device, rank] : devices) add(used, rank);
  }
  return used;
}

}  // namespace

EngineState stateIn(const ModelSet& models, const ServedModel& model) {
  EngineState state = model.service().state();
  const auto used = usedBytes(models, model, state);
  for (RankState& rank : state.ranks)
    if (const auto found = used.find(rank.device); found != used.end()) rank.deviceUsedBytes = found->second;
  return state;
}

MetricsSample sampleIn(const ModelSet& models, const ServedModel& model) {
  MetricsSample sample = model.service().sampleMetrics();
  sample.deviceUsedBytes.clear();
  for (const RankState& rank : stateIn(models, model).ranks) sample.deviceUsedBytes.push_back(rank.deviceUsedBytes);
  return sample;
}

nlohmann::json summaryJson(const ServedModel& model) {
  const EngineState state = model.service().state();
  const nlohmann::json whole = toJson(state);
  int64_t done = 0, total = 0;
  std::optional<int64_t> planned = 0;  // unknown when a part is
  for (const RankState& rank : state.ranks) {
    done += rank.loadBytesDone;
    total += rank.loadBytesTotal;
    for (const auto& part : {rank.planned.weights, rank.planned.kvCache, rank.planned.activations, rank.planned.graphs})
      planned = planned && part ? std::optional(*planned + *part) : std::nullopt;
  }
  return {{"name", model.name()},
          {"phase", whole["phase"]},
          {"error", whole["error"]},
          {"load", {{"bytes_done", done}, {"bytes_total", total}}},
          {"planned_bytes", planned ? nlohmann::json(*planned) : nlohmann::json()},
          {"layout", whole["layout"]},
          {"max_model_len", model.service().maxModelLen()},
          {"kv_blocks", whole["kv_blocks"]},
          {"requests", whole["requests"]}};
}

nlohmann::json stateJson(const ModelSet& models, const std::shared_ptr<ServedModel>& model) {
  const std::shared_ptr<ServedModel> shown = model ? model : models.first();
  EngineState none;  // a server that has no model now is ready for one
  none.phase = EnginePhase::Ready;
  nlohmann::json state = toJson(shown ? stateIn(models, *shown) : none);
  state["models"] = nlohmann::json::array();
  for (const auto& each : models.all()) state["models"].push_back(summaryJson(*each));
  return state;
}

}  // namespace headroom::engine
