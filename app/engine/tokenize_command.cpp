// SPDX-License-Identifier: Apache-2.0
// tokenize: JSON strings in, arrays of token ids out, a line each.
#include "app/engine/command.h"
#include "core/json_text.h"
#include "engine/text/tokenizer.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdio>
#include <iostream>
#include <memory>

namespace headroom::app {
namespace {

struct TokenizeOptions {
  std::string model;
  bool special = false;
};

int tokenize(const TokenizeOptions& options) {
  const auto tokenizer = engine::Tokenizer::open(options.model);
  if (!tokenizer) return fail(kBadInput, tokenizer.error().message());
  std::ios::sync_with_stdio(false);
  std::string line, out;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    const auto text = readJsonText(line);
    if (!text.is_string()) {
      std::fwrite(out.data(), 1, out.size(), stdout);
      std::fflush(stdout);
      return fail(
          kBadInput,
          Error{"stdin, line " + std::to_string(number), text.is_discarded() ? "no JSON" : text.type_name(), "a JSON string", {}}
              .message());
    }
    out += '[';
    bool first = true;
    for (int32_t id : (*tokenizer)->encode(text.get_ref<const std::string&>(), options.special)) {
      if (!first) out += ',';
      first = false;
      char digits[16];
      out.append(digits, std::to_chars(digits, digits + sizeof digits, id).ptr);
    }
    out += "]\n";
    // Whoever types a line waits for its answer; a pipe gets blocks.
    if (out.size() < 1 << 16 && std::cin.rdbuf()->in_avail() > 0) continue;
    std::fwrite(out.data(), 1, out.size(), stdout);
    if (std::fflush(stdout) != 0) return fail(kFailed, "stdout cannot be written");
    out.clear();
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return std::fflush(stdout) == 0 ? kDone : fail(kFailed, "stdout cannot be written");
}

}  // namespace

void addTokenizeCommand(CLI::App& app, Run& run) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Token ids of texts: a JSON string a line in, a JSON array a line out");
  command->add_option("MODEL", options->model, "Model folder, tokenizer.json, or .gguf")->required();
  command->add_flag("--special", options->special, "Add what the post-processor adds (bos, eos)");
  command->callback([&run, options] { run = [options] { return tokenize(*options); }; });
}

}  // namespace headroom::app
