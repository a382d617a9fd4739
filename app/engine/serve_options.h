// SPDX-License-Identifier: Apache-2.0
// The options of serve. bench takes them too, for the engine that it starts itself.
#pragma once

#include "engine/server/server.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headroom::app {

// What a model is served on: the same for all models of a process.
struct DeviceArguments {
  std::string device = "auto", deviceMemory;
  int threads = 0;
};

// One model and its layout.
struct ModelArguments {
  std::string model, servedModelName;
  std::optional<int> tp, pp, dp;
  std::string gpus, layoutFile;
  std::string dtype = "auto", kvCacheDType = "auto";
  std::string pooling;  // empty: as the model's files say
  std::optional<int64_t> maxModelLen, maxNumSeqs, maxNumBatchedTokens;
  std::optional<double> gpuMemoryUtilization;
  bool noPrefixCaching = false;
  std::optional<int64_t> speculativeTokens;
  bool enforceEager = false;
};

struct ServeArguments {
  ModelArguments model;
  DeviceArguments devices;
  engine::ServerOptions server;
  std::vector<std::string> also;  // "MODEL [options]" of more models
  bool managesModels = false;
  double drainSeconds = 30;
};

// Without a share of its own, the models of a process take this much of each device's memory together.
inline constexpr double kShareOfMemory = 0.9;

// The options of a model, without MODEL.
void addModelOptions(CLI::App& command, ModelArguments& arguments);
// Adds all but MODEL; what was added.
std::vector<CLI::Option*> addServeOptions(CLI::App& command, ServeArguments& arguments);

}  // namespace headroom::app
