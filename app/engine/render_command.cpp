// SPDX-License-Identifier: Apache-2.0
#include "app/engine/command.h"

#include <CLI/CLI.hpp>

namespace headroom::app {
void addRenderCommand(CLI::App& app, Run& run) {
  app.add_subcommand("render")->callback([&run] { run = [] { return fail(kFailed, "render is not built yet"); }; });
}
}  // namespace headroom::app
