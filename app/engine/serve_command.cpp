// SPDX-License-Identifier: Apache-2.0
#include "app/engine/command.h"

#include <CLI/CLI.hpp>

namespace headroom::app {
void addServeCommand(CLI::App& app, Run& run) {
  app.add_subcommand("serve")->callback([&run] { run = [] { return fail(kFailed, "serve is not built yet"); }; });
}
}  // namespace headroom::app
