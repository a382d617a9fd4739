// SPDX-License-Identifier: Apache-2.0
#include "app/engine/command.h"

#include <CLI/CLI.hpp>

namespace headroom::app {
void addPlanCommand(CLI::App& app, Run& run) {
  app.add_subcommand("plan")->callback([&run] { run = [] { return fail(kFailed, "plan is not built yet"); }; });
}
}  // namespace headroom::app
