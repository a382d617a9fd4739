// SPDX-License-Identifier: Apache-2.0
// JSON from outside: files, lines, what a model wrote. Code that walks a value goes one call deeper a level, so text that is nested
// deeper than anything sensible is refused before it is read.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace headroom {

inline constexpr int kMostJsonNesting = 256;
inline constexpr const char* kTooDeepJson = "lists or objects nested more than 256 deep";

// Whether lists and objects are nested deeper than `most`. Brackets inside strings do not count.
inline bool isNestedTooDeep(std::string_view text, int most = kMostJsonNesting) {
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"':
        for (++at; at < text.size() && text[at] != '"'; ++at)
          if (text[at] == '\\') ++at;
        break;
      case '[':
      case '{':
        if (++depth > most) return true;
        break;
      case ']':
      case '}':
        --depth;
        break;
      default:
        break;
    }
  }
  return false;
}

// Discarded where the text is no JSON, or nested too deep.
template <class Json = nlohmann::json>
Json readJsonText(std::string_view text) {
  if (isNestedTooDeep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace headroom
