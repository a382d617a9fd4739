// SPDX-License-Identifier: Apache-2.0
// The models that one server has, by name: each an engine of its own. They may be loaded and unloaded while the others serve.
#pragma once

#include "engine/server/served_model.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace headroom::engine {

// A model that stands, with its engine loading or ready.
struct LoadedModel {
  std::shared_ptr<ServedModel> served;
  // Ends its engine: open requests get their end, memory is given back, and no thread of the engine holds a request when it
  // returns (the last one to let go of a request may end the model, which no thread of its engine can). Called once, by the set;
  // null: nothing to end.
  std::function<void()> close;
};

// Thread-safe.
class ModelSet {
 public:
  // Opens and plans the model that a request's body describes and starts its engine; an error says why it cannot be, with numbers
  // where memory is short. One call at a time.
  using Loader = std::function<ApiResult<LoadedModel>(const nlohmann::ordered_json& request)>;

  ModelSet();
  ~ModelSet();  // closes all
  // Without a loader nothing can be loaded or unloaded; the reason says so.
  void allowLoading(Loader loader) { m_loader = std::move(loader); }
  void add(LoadedModel model);
  // Called from any thread when the list or a model's phase changed by a call here.
  void onChange(std::function<void()> changed) { m_changed = std::move(changed); }

  ApiResult<std::shared_ptr<ServedModel>> load(const nlohmann::ordered_json& request);
  // It takes no new requests; those that run may end within `limit`, then its engine ends.
  std::optional<ApiError> unload(const std::string& name, std::chrono::milliseconds limit);
  void closeAll();  // for good; one caller at a time

  // By name; null where there is none or it is leaving.
  std::shared_ptr<ServedModel> find(const std::string& name) const;
  // The one that requests without a name mean: the oldest. Null where all are gone.
  std::shared_ptr<ServedModel> first() const;
  // The newest of that name, also where it is leaving; null where there is none.
  std::shared_ptr<ServedModel> findKnown(const std::string& name) const;
  // All, oldest first, those that leave too.
  std::vector<std::shared_ptr<ServedModel>> all() const;
  // "a, b": of those that serve.
  std::string names() const;

 private:
  struct Entry {
    LoadedModel model;
    bool leaves = false;
    std::chrono::steady_clock::time_point until = {};
  };
  void seeOut();  // the thread that ends models
  std::shared_ptr<ServedModel> findLocked(const std::string& name) const;

  Loader m_loader;
  std::function<void()> m_changed;
  std::mutex m_loading;  // held while a model is opened and planned, so that two do not take the same memory
  mutable std::mutex m_mutex;
  std::condition_variable m_wake;
  std::list<Entry> m_entries;
  bool m_ends = false;
  std::thread m_thread;
};

// A model's state and its sample since the last one, in which what is used of a device is what all models of the set hold there.
EngineState stateIn(const ModelSet& models, const ServedModel& model);
MetricsSample sampleIn(const ModelSet& models, const ServedModel& model);  // one caller at a time
// What /engine/state shows: the state of `model`, or of the first one; and in "models" how each of them is.
nlohmann::json stateJson(const ModelSet& models, const std::shared_ptr<ServedModel>& model = nullptr);
// One model as /engine/models lists it: name, phase, error, progress, memory of its ranks, KV blocks, requests.
nlohmann::json summaryJson(const ServedModel& model);

}  // namespace headroom::engine
