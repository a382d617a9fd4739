// SPDX-License-Identifier: Apache-2.0
// Checks of option values that CLI11's own let through.
#pragma once

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <string>

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
      [](std::string& text) { return text.empty() ? std::string("found an empty text; leave the option out, or give it a value") : std::string(); },
      std::string());
}

}  // namespace headroom::app
