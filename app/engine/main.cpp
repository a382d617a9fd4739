// SPDX-License-Identifier: Apache-2.0
#include "app/engine/command.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <system_error>

namespace headroom::app {
int fail(int status, const std::string& message) {
  std::fprintf(stderr, "headroom-engine: %s\n", message.c_str());
  return status;
}

// "plan, serve, devices, tokenize or render", as registered.
std::string commandNames(const CLI::App& app) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string names;
  for (size_t i = 0; i < commands.size(); ++i)
    names += (i == 0 ? "" : i + 1 == commands.size() ? " or " : ", ") + commands[i]->get_name();
  return names;
}

// What was printed is on its way only once it is flushed: a full disk shows here. Status of the command, or kFailed.
int withOutputWritten(int status) {
  std::cout.flush();
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout.good()) return status;
  return fail(kFailed, std::string("standard output: found ") + (errno ? std::strerror(errno) : "a failed write") +
                           ", expected room for the whole output; what was printed is cut");
}
}  // namespace headroom::app

int main(int argc, char** argv) {
  using namespace headroom::app;
  CLI::App app{"Plans and runs language models on the devices of this machine.", "headroom-engine"};
  app.require_subcommand(1);
  Run run;
  addPlanCommand(app, run);
  addServeCommand(app, run);
  addBenchCommand(app, run);
  addDevicesCommand(app, run);
  addSelftestCommand(app, run);
  addCheckCommand(app, run);
  addDiagnoseCommand(app, run);
  addTokenizeCommand(app, run);
  addRenderCommand(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return withOutputWritten(app.exit(help));
  } catch (const CLI::CallForAllHelp& help) {
    return withOutputWritten(app.exit(help));
  } catch (const CLI::RequiredError& error) {
    if (!app.get_subcommands().empty()) return fail(kBadInput, error.what());
    return fail(kBadInput, argc > 1 ? "command: found \"" + std::string(argv[1]) + "\", expected " + commandNames(app) +
                                          "; see headroom-engine --help"
                                    : "command: found none, expected " + commandNames(app) + "; see headroom-engine --help");
  } catch (const CLI::ParseError& error) {
    return fail(kBadInput, error.what());
  }
  if (!run) return kBadInput;
  try {
    return withOutputWritten(run());
  } catch (const std::system_error& error) {  // how {fmt} tells of a stream that takes no more
    return fail(kFailed, std::string("standard output: found ") + error.what() + ", expected room for the whole output");
  }
}
