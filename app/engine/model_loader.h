// SPDX-License-Identifier: Apache-2.0
// Opens, plans and starts the models of one serve process. They stand on the same devices: each sees what the others take.
#pragma once

#include "app/engine/serve_log.h"
#include "app/engine/serve_options.h"
#include "core/layout/parallel_layout.h"
#include "engine/server/model_set.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace headroom::app {

// A model whose engine is on its way.
struct StartedModel {
  engine::LoadedModel loaded;
  ParallelLayout layout;
};

// Thread-safe; one start at a time sees what the others took.
class ModelLoader {
 public:
  // `changed` is called from any thread when an engine's state changes. Log must outlive the models.
  ModelLoader(DeviceArguments devices, Log& log, std::function<void()> changed)
      : m_devices(std::move(devices)), m_log(log), m_changed(std::move(changed)) {}
  // Without a share of its own a model gets `share` of each device's memory, less where others leave less.
  Result<StartedModel> start(ModelArguments arguments, double share);
  // The same for a body of POST /engine/models.
  engine::ApiResult<engine::LoadedModel> load(const nlohmann::ordered_json& request);

 private:
  const DeviceArguments m_devices;
  Log& m_log;
  const std::function<void()> m_changed;
  std::mutex m_mutex;
  std::map<std::string, Bytes> m_taken;   // by device: "cpu:0"
  std::optional<Bytes> m_hostMemoryEach;  // of the first model's host devices, which later ones share
};

// "MODEL [options]" of --also.
Result<ModelArguments> parseModelArguments(const std::string& text);

}  // namespace headroom::app
