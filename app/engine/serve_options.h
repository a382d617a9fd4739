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

struct ServeArguments {
  std::string model;
  std::optional<int> tp, pp, dp;
  std::string device = "auto", gpus, deviceMemory, layoutFile;
  int threads = 0;
  engine::ServerOptions server;
  std::string dtype = "auto", kvCacheDType = "auto";
  std::optional<int64_t> maxModelLen, maxNumSeqs, maxNumBatchedTokens;
  std::optional<double> gpuMemoryUtilization;
  bool noPrefixCaching = false;
  std::optional<int64_t> speculativeTokens;
  bool enforceEager = false;
  double drainSeconds = 30;
};

// Adds all but MODEL; what was added.
std::vector<CLI::Option*> addServeOptions(CLI::App& command, ServeArguments& arguments);

}  // namespace headroom::app
