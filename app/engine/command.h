// SPDX-License-Identifier: Apache-2.0
// The commands of headroom-engine. Each stands in a file of its own and registers itself with the argument parser;
// main.cpp knows their names and nothing else.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace headroom::app {

// Exit states, stable: scripts depend on them.
inline constexpr int kDone = 0, kBadInput = 2, kFailed = 3, kInterrupted = 130;

// Adds the sub-command's options to `app`; the callback that the sub-command stores in `run` is called after parsing and
// returns the exit status.
using Run = std::function<int()>;
void addPlanCommand(CLI::App& app, Run& run);
void addServeCommand(CLI::App& app, Run& run);
void addBenchCommand(CLI::App& app, Run& run);
void addDevicesCommand(CLI::App& app, Run& run);
void addSelftestCommand(CLI::App& app, Run& run);
void addDiagnoseCommand(CLI::App& app, Run& run);
void addCheckCommand(CLI::App& app, Run& run);
void addTokenizeCommand(CLI::App& app, Run& run);
void addRenderCommand(CLI::App& app, Run& run);

// A report's text. Names of files and what logs say may hold bytes that are no UTF-8; JSON holds none.
template <class Json>
std::string reportText(const Json& report) {
  return report.dump(2, ' ', false, Json::error_handler_t::replace);
}

// Prints one line on stderr ("headroom-engine: …") and returns `status`.
int fail(int status, const std::string& message);

}  // namespace headroom::app
