// SPDX-License-Identifier: Apache-2.0
// Search patterns of tokenizer.json: a literal string, or a regular expression in Oniguruma's flavour, run by PCRE2 with its JIT.
// Immutable after creation: any thread may search.
#pragma once

#include "core/result.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine::text {

// A stretch of bytes; `matched` tells a match from what lies between.
struct Span {
  size_t begin, end;
  bool matched;
};

// Oniguruma's syntax in PCRE2's: \s, \w, \h and \b over Oniguruma's classes, nested and intersected brackets, (?m) as dot-all.
Result<std::string> translatePattern(std::string_view oniguruma);

class Pattern {
 public:
  virtual ~Pattern() = default;
  static Result<std::unique_ptr<Pattern>> regex(std::string_view oniguruma);
  static std::unique_ptr<Pattern> literal(std::string_view text);
  // {"String": …} or {"Regex": …}
  static Result<std::unique_ptr<Pattern>> fromJson(const nlohmann::json& json);

  // Cuts valid UTF-8 into matches and what lies between them; the spans cover the text in order.
  void split(std::string_view text, std::vector<Span>& spans) const;
  std::string replaced(std::string_view text, std::string_view by) const;

 private:
  // First match at or after `from`.
  virtual bool find(std::string_view text, size_t from, size_t& begin, size_t& end) const = 0;
};

}  // namespace headroom::engine::text
