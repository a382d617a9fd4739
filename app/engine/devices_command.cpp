// SPDX-License-Identifier: Apache-2.0
#include "app/engine/command.h"

#include <CLI/CLI.hpp>

namespace headroom::app {
void addDevicesCommand(CLI::App& app, Run& run) {
  app.add_subcommand("devices")->callback([&run] { run = [] { return fail(kFailed, "devices is not built yet"); }; });
}
}  // namespace headroom::app
