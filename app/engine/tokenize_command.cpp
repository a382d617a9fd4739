// SPDX-License-Identifier: Apache-2.0
#include "app/engine/command.h"

#include <CLI/CLI.hpp>

namespace headroom::app {
void addTokenizeCommand(CLI::App& app, Run& run) {
  app.add_subcommand("tokenize")->callback([&run] { run = [] { return fail(kFailed, "tokenize is not built yet"); }; });
}
}  // namespace headroom::app
