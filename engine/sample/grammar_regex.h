// SPDX-License-Identifier: Apache-2.0
// Regular expressions as grammars: what Python's re, Rust's regex and ECMAScript share. Refused by name: lookaround, back
// references, word borders, flags inside, anchors elsewhere than at the ends.
//
// \d, \w and \s stand for their ASCII characters; negated classes that hold one of them leave out characters about which the
// dialects differ.
#pragma once

#include "engine/sample/grammar.h"

namespace headroom::engine {

enum class RegexText : uint8_t {
  Plain,       // the whole text matches, in UTF-8
  JsonString,  // the same inside the quotes of a JSON string: quotes, backslashes and control characters are escaped
  JsonSearch,  // inside the quotes of a JSON string, matching anywhere unless anchored, as JSON Schema's "pattern" asks
};

// `where` names the request's field in errors.
Result<GrammarBuilder::Node> addRegex(GrammarBuilder& builder, std::string_view pattern, RegexText text,
                                      const std::string& where);

// One character of a JSON string, escaped or not; surrogates only in pairs.
GrammarBuilder::Node addJsonCharacter(GrammarBuilder& builder);
// One of the characters from `first` to `last` as a JSON string spells it: escaped where it must be.
GrammarBuilder::Node addJsonCharacters(GrammarBuilder& builder, char32_t first, char32_t last);

}  // namespace headroom::engine
