// SPDX-License-Identifier: Apache-2.0
// render: chat requests in, prompts out, a line each.
#include "app/engine/command.h"
#include "core/json_text.h"
#include "engine/text/chat_template.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>
#include <memory>

namespace headroom::app {
namespace {

int render(const std::string& model) {
  const auto chat = engine::ChatTemplate::open(model);
  if (!chat) return fail(kBadInput, chat.error().message());
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = readJsonText<nlohmann::ordered_json>(line);
    nlohmann::json answer;
    if (request.is_discarded()) {
      answer = {{"error", "the line is no JSON"}};
    } else if (auto prompt = (*chat)->render(request)) {
      answer = std::move(*prompt);
    } else {
      answer = {{"error", prompt.error().found.empty() ? prompt.error().message() : prompt.error().found}};
    }
    const std::string out = answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size()) return fail(kFailed, "stdout cannot be written");
    if (std::cin.rdbuf()->in_avail() <= 0) std::fflush(stdout);
  }
  return std::fflush(stdout) == 0 ? kDone : fail(kFailed, "stdout cannot be written");
}

}  // namespace

void addRenderCommand(CLI::App& app, Run& run) {
  auto model = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("render", "Prompts of chat requests: a JSON request a line in, a JSON string a line out");
  command->add_option("MODEL", *model, "Model folder or .gguf")->required();
  command->callback([&run, model] { run = [model] { return render(*model); }; });
}

}  // namespace headroom::app
