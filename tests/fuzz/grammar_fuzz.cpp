// SPDX-License-Identifier: Apache-2.0
// Any bytes as an EBNF grammar, a regular expression or a JSON schema; then some text through what was built.
#include "engine/sample/grammar_ebnf.h"
#include "engine/sample/grammar_json_schema.h"
#include "engine/sample/grammar_regex.h"

#include <cstdint>

using namespace headroom;
using namespace headroom::engine;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 4096) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  GrammarBuilder builder;
  Result<GrammarBuilder::Node> node = 0;
  switch (data[0] % 5) {
    case 0:
      node = addEbnf(builder, text, "input");
      break;
    case 1:
      node = addRegex(builder, text, RegexText::Plain, "input");
      break;
    case 2:
      node = addRegex(builder, text, RegexText::JsonString, "input");
      break;
    case 3:
      node = addRegex(builder, text, RegexText::JsonSearch, "input");
      break;
    default: {
      const auto schema = nlohmann::ordered_json::parse(text, nullptr, false);
      if (schema.is_discarded()) return 0;
      node = addJsonSchema(builder, schema, "input");
    }
  }
  if (!node) return 0;
  const auto grammar = builder.build(*node, "input");
  if (!grammar) return 0;
  GrammarMatcher matcher(*grammar);
  GrammarMatcher::Set at = matcher.start();
  for (size_t i = 0; i < text.size() && i < 200 && at != GrammarMatcher::kDead; ++i) {
    if (!matcher.isComplete(at) && !matcher.canContinue(at)) __builtin_trap();  // whatever was followed can be finished
    const auto uniform = matcher.uniform(at);
    const auto next = matcher.next(at, static_cast<uint8_t>(text[i]));
    if ((uniform.bytes[static_cast<uint8_t>(text[i]) / 64] >> (static_cast<uint8_t>(text[i]) % 64) & 1) && next != uniform.target)
      __builtin_trap();
    bool forgot = false;
    at = matcher.tidy(next, forgot);
  }
  return 0;
}
