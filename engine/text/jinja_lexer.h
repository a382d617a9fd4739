// SPDX-License-Identifier: Apache-2.0
// Cuts a template into data and tokens, with the whitespace control that Transformers sets: trim_blocks, lstrip_blocks, and one
// newline at the very end dropped.
#pragma once

#include "engine/text/jinja_value.h"

namespace headroom::engine::jinja {

struct Token {
  enum Type { data, variableBegin, variableEnd, blockBegin, blockEnd, name, string, integer, real, sign, end } type;
  std::string text;  // data, name, string, or the operator's characters
  Value value;       // of literals
  int line;
};

std::vector<Token> lex(std::string_view source);

}  // namespace headroom::engine::jinja
