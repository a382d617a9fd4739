// SPDX-License-Identifier: Apache-2.0
#include "engine/server/structured_output.h"

#include "engine/sample/grammar_ebnf.h"
#include "engine/sample/grammar_json_schema.h"
#include "engine/sample/grammar_regex.h"

#include <fmt/format.h>

namespace headroom::engine {
namespace {

using Json = nlohmann::ordered_json;
using GrammarResult = ApiResult<std::shared_ptr<const Grammar>>;

constexpr size_t kMostChoices = 100'000, kMostChoiceBytes = 1 << 20;

tl::unexpected<ApiError> refuse(const std::string& param, const std::string& message) {
  return tl::unexpected(ApiError{400, fmt::format("{}: {}", param, message), param, "invalid_request_error", {}});
}

tl::unexpected<ApiError> wrong(const std::string& param, const Json& found, const std::string& expected) {
  std::string text = dumpJson(found);
  if (text.size() > 80) text = validUtf8(text.substr(0, 77)) + "...";
  return refuse(param, fmt::format("found {}, expected {}.", text, expected));
}

GrammarResult built(GrammarBuilder& builder, const Result<GrammarBuilder::Node>& node, const std::string& param,
                    const AnswerFrame& frame) {
  if (!node) return tl::unexpected(grammarError(node.error(), param));
  auto grammar = builder.build(framed(builder, *node, frame), param);
  if (!grammar) return tl::unexpected(grammarError(grammar.error(), param));
  return std::move(*grammar);
}

GrammarResult schemaGrammar(const Json& schema, const std::string& param, const AnswerFrame& frame) {
  GrammarBuilder builder;
  return built(builder, addJsonSchema(builder, schema, param), param, frame);
}

GrammarResult objectGrammar(const std::string& param, const AnswerFrame& frame) {
  GrammarBuilder builder;
  return built(builder, addJsonObject(builder), param, frame);
}

GrammarResult choiceGrammar(const Json& choices, const std::string& param, const AnswerFrame& frame) {
  const char* expected = "a list of at least one text";
  if (!choices.is_array() || choices.empty()) return wrong(param, choices, expected);
  if (choices.size() > kMostChoices)
    return refuse(param, fmt::format("found {} texts, expected at most {}.", choices.size(), kMostChoices));
  std::vector<std::string> texts;
  size_t bytes = 0;
  for (const Json& choice : choices) {
    if (!choice.is_string() || choice.get_ref<const std::string&>().empty())
      return wrong(param, choice, "texts that are not empty");
    texts.push_back(choice.get<std::string>());
    bytes += texts.back().size();
  }
  if (bytes > kMostChoiceBytes)
    return refuse(param, fmt::format("found texts of {} bytes, expected at most {}.", bytes, kMostChoiceBytes));
  GrammarBuilder builder;
  return built(builder, builder.literals(std::move(texts)), param, frame);
}

GrammarResult regexGrammar(const Json& pattern, const std::string& param, const AnswerFrame& frame) {
  if (!pattern.is_string()) return wrong(param, pattern, "a regular expression");
  GrammarBuilder builder;
  return built(builder, addRegex(builder, pattern.get_ref<const std::string&>(), RegexText::Plain, param), param, frame);
}

// A schema, or the text of one.
GrammarResult jsonGrammar(const Json& schema, const std::string& param, const AnswerFrame& frame) {
  if (!schema.is_string()) return schemaGrammar(schema, param, frame);
  const auto parsed = parseJsonObject(schema.get_ref<const std::string&>());
  if (!parsed) return refuse(param, "its text is no JSON object. " + parsed.error().message);
  return schemaGrammar(*parsed, param, frame);
}

GrammarResult responseFormat(const Json& format, const AnswerFrame& frame) {
  if (!format.is_object()) return wrong("response_format", format, "an object");
  const auto type = format.find("type");
  const std::string name = type != format.end() && type->is_string() ? type->get<std::string>() : std::string();
  if (name == "text") return nullptr;
  if (name == "json_object") return objectGrammar("response_format", frame);
  if (name != "json_schema")
    return wrong("response_format.type", type == format.end() ? Json() : *type, "text, json_object or json_schema");
  const auto holder = format.find("json_schema");
  if (holder == format.end() || !holder->is_object())
    return wrong("response_format.json_schema", holder == format.end() ? Json() : *holder, "an object with name and schema");
  // As OpenAI has it the schema may be left out: any object then.
  const auto schema = holder->find("schema");
  if (schema == holder->end() || schema->is_null()) return objectGrammar("response_format.json_schema", frame);
  return schemaGrammar(*schema, "response_format.json_schema.schema", frame);
}

using Reader = GrammarResult (*)(const Json&, const std::string&, const AnswerFrame&);

GrammarResult ebnfGrammar(const Json& text, const std::string& param, const AnswerFrame& frame) {
  if (!text.is_string()) return wrong(param, text, "a grammar, as a text of rules");
  if (text.get_ref<const std::string&>().size() > kMostChoiceBytes)
    return refuse(param, fmt::format("found a grammar of more than {} bytes.", kMostChoiceBytes));
  GrammarBuilder builder;
  return built(builder, addEbnf(builder, text.get_ref<const std::string&>(), param), param, frame);
}

Reader readerOf(std::string_view name) {
  if (name == "json") return &jsonGrammar;
  if (name == "regex") return &regexGrammar;
  if (name == "choice") return &choiceGrammar;
  if (name == "grammar") return &ebnfGrammar;
  return nullptr;
}

GrammarResult structuredOutputs(const Json& outputs, const AnswerFrame& frame) {
  const std::string param = "structured_outputs";
  if (!outputs.is_object()) return wrong(param, outputs, "an object with one of json, regex, choice, grammar and json_object");
  GrammarResult found = nullptr;
  std::string asked;
  for (const auto& [key, value] : outputs.items()) {
    if (value.is_null() || value == false) continue;
    const std::string name = param + "." + key;
    // Hints to other engines' compilers; what they ask for holds here, or does not matter to the form.
    if (key == "disable_fallback" || key == "disable_any_whitespace" || key == "disable_additional_properties") continue;
    const Reader reader = readerOf(key);
    if (!reader && key != "json_object")
      return refuse(name, "is not supported by this server; json, regex, choice, grammar and json_object are.");
    if (!asked.empty()) return refuse(name, fmt::format("found beside {}, expected one of the two.", asked));
    asked = key;
    if (reader)
      found = reader(value, name, frame);
    else if (value == true)
      found = objectGrammar(name, frame);
    else
      return wrong(name, value, "true or false");
    if (!found) return found;
  }
  if (asked.empty()) return wrong(param, outputs, "one of json, regex, choice, grammar and json_object");
  return found;
}

}  // namespace

ApiError grammarError(const Error& error, const std::string& param) {
  return {400, error.message() + ".", param, "invalid_request_error", {}};
}

GrammarResult readStructuredOutput(const Json& body, const AnswerFrame& frame) {
  GrammarResult found = nullptr;
  std::string asked;
  auto read = [&](const char* name, auto reader) {
    const auto value = body.find(name);
    if (!found || value == body.end() || value->is_null()) return;
    GrammarResult grammar = reader(*value, frame);
    if (grammar && !*grammar) return;
    if (grammar && !asked.empty())
      found = refuse(name, fmt::format("found beside {}, expected one of the two.", asked));
    else
      found = std::move(grammar);
    asked = name;
  };
  read("response_format", &responseFormat);
  read("structured_outputs", &structuredOutputs);
  for (const char* name : {"json", "regex", "choice", "grammar"}) {
    const std::string param = fmt::format("guided_{}", name);
    read(param.c_str(), [&](const Json& value, const AnswerFrame&) { return readerOf(name)(value, param, frame); });
  }
  for (const char* name : {"guided_whitespace_pattern", "structural_tag"})
    read(name, [&](const Json&, const AnswerFrame&) { return GrammarResult(refuse(name, "is not supported by this server.")); });
  return found;
}

}  // namespace headroom::engine
