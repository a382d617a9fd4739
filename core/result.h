// SPDX-License-Identifier: Apache-2.0
// Failures of what users give us (files, requests, devices) are values: Result<T>. Our own mistakes are expects().
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace headroom {

// An error tells where, what was found, what was expected and what to do next. Empty parts are left out.
// Example: where "layers.3 k_proj", found "shape [512, 2048]", expected "[1024, 2048] (8 KV heads x 128)",
// next "is this checkpoint already sharded?"
struct Error {
  std::string where;
  std::string found;
  std::string expected;
  std::string next;

  // One line: "where: found …, expected …; next".
  std::string message() const {
    std::string text = where;
    auto append = [&](const std::string& separator, const std::string& part) {
      if (part.empty()) return;
      if (!text.empty()) text += separator;
      text += part;
    };
    append(": ", found.empty() ? "" : "found " + found);
    append(found.empty() ? ": " : ", ", expected.empty() ? "" : "expected " + expected);
    append("; ", next);
    return text;
  }
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> failure(std::string where, std::string found, std::string expected = {}, std::string next = {}) {
  return tl::unexpected<Error>(Error{std::move(where), std::move(found), std::move(expected), std::move(next)});
}

// Guards our own invariants, in release builds too.
inline void expects(bool condition, const char* why) {
  if (condition) [[likely]]
    return;
  std::fprintf(stderr, "headroom: internal error: %s\n", why);
  std::abort();
}

}  // namespace headroom
