// SPDX-License-Identifier: Apache-2.0
// Grammars as people write them: GBNF (NAME ::= …, as llama.cpp and XGrammar read it) and the part of Lark that has the same
// meaning (name: …). Which of the two it is, the first definition tells. The text is what "root" or "start" matches.
//
// GBNF: "text", 'text', [a-z], [^a-z], ., ( ), |, *, +, ?, {m,n}, # comments. Lark: "text"i, /pattern/, "a".."z", [optional], ~
// m..n,
// -> alias, // comments, %import common.NAME. A rule that begins with itself is read as a repetition. Refused by name: %ignore,
// other directives, templates, rules that begin with each other.
#pragma once

#include "engine/sample/grammar.h"

namespace headroom::engine {

// `where` names the request's field in errors; they name line and rule too.
Result<GrammarBuilder::Node> addEbnf(GrammarBuilder& builder, std::string_view text, const std::string& where);

}  // namespace headroom::engine
