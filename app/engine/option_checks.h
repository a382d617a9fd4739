// SPDX-License-Identifier: Apache-2.0
// Checks of option values that CLI11's own let through.
#pragma once

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace headroom::app {

// Least to most, and a number: CLI::Range takes "nan".
inline CLI::Validator numberIn(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
        return fmt::format("found \"{}\", expected {:g} to {:g}", text, least, most);
      },
      fmt::format("{:g} to {:g}", least, most));
}

// "": a shell's variable that is not set, as a rule.
inline CLI::Validator notEmpty() {
  return CLI::Validator(
      [](std::string& text) {
        return text.empty() ? std::string("found an empty text; leave the option out, or give it a value") : std::string();
      },
      std::string());
}

// Options that do nothing beside what else was given.
struct IdleOptions {
  bool idle;             // beside what was given
  const char* found;     // "without --wish"
  const char* expected;  // "with it: they are part of a wish"
  std::vector<const char*> options;
};

// An option that was given and would do nothing is an error, since its user expects something of it: the line that says so of the
// first; empty where there is none.
inline std::string idleOption(const CLI::App& command, const std::vector<IdleOptions>& rules) {
  for (const IdleOptions& rule : rules) {
    if (!rule.idle) continue;
    for (const char* name : rule.options) {
      if (command.get_option(name)->count() > 0) return fmt::format("{}: found {}, expected {}", name, rule.found, rule.expected);
    }
  }
  return {};
}

}  // namespace headroom::app
