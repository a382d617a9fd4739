// SPDX-License-Identifier: Apache-2.0
#include "engine/server/answer_form.h"

#include "engine/sample/grammar_json_schema.h"
#include "engine/server/structured_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

namespace headroom::engine {
namespace {

using Json = nlohmann::ordered_json;
using Node = GrammarBuilder::Node;

constexpr int64_t kMostCalls = 16;  // of one answer, so that it ends
constexpr std::string_view kDeepSeekCall = "<｜tool▁call▁begin｜>", kDeepSeekEnd = "<｜tool▁call▁end｜>",
                           kDeepSeekSep = "<｜tool▁sep｜>";

// For each length of a matched beginning of `mark` and each next byte: the length matched then (Knuth, Morris and Pratt).
std::vector<std::array<size_t, 256>> matchTable(std::string_view mark) {
  std::vector<std::array<size_t, 256>> next(mark.size());
  size_t fallback = 0;
  for (size_t state = 0; state < mark.size(); ++state) {
    for (size_t byte = 0; byte < 256; ++byte) next[state][byte] = state == 0 ? 0 : next[fallback][byte];
    const auto own = static_cast<uint8_t>(mark[state]);
    const size_t before = state == 0 ? 0 : next[fallback][own];
    next[state][own] = state + 1;
    if (state > 0) fallback = before;
  }
  return next;
}

// A rule for each state of the search for `mark`; `found` follows the mark, and where `mayEnd` the text may end anywhere before
// it.
Node search(GrammarBuilder& builder, std::string_view mark, bool mayEnd, std::optional<std::function<Node(Node)>> found) {
  const auto table = matchTable(mark);
  std::vector<GrammarBuilder::RuleId> rules;
  for (size_t state = 0; state < mark.size(); ++state) rules.push_back(builder.addRule());
  for (size_t state = 0; state < mark.size(); ++state) {
    std::vector<Node> options;
    for (size_t first = 0; first < 256;) {
      size_t last = first;
      while (last < 255 && table[state][last + 1] == table[state][first]) ++last;
      const size_t next = table[state][first];
      const Node bytes = builder.bytes(static_cast<uint8_t>(first), static_cast<uint8_t>(last));
      if (next < mark.size())
        options.push_back(builder.sequence({bytes, builder.call(rules[next])}));
      else if (found)
        options.push_back(builder.sequence({bytes, (*found)(builder.call(rules[0]))}));
      first = last + 1;
    }
    if (mayEnd) options.push_back(builder.empty());
    builder.define(rules[state], builder.choice(std::move(options)));
  }
  return builder.call(rules[0]);
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Node blanks(GrammarBuilder& builder) {
  return builder.repeat(builder.choice({builder.literal("\n"), builder.literal(" ")}), 0, 4);
}

// ---- the arguments of one function

struct Function {
  std::string name, where;
  Json parameters;  // null: none
};

Result<Node> objectOf(GrammarBuilder& builder, const Function& function) {
  const Json& schema = function.parameters;
  if (schema.is_null() || schema.empty()) return builder.literal("{}");
  return addJsonSchema(builder, schema, function.where);
}

struct Property {
  std::string name;
  Json schema;
  bool isRequired = false;
  bool isText = false;
};

// The properties of a schema whose arguments are written one by one.
std::vector<Property> propertiesOf(const Json& schema) {
  std::vector<Property> properties;
  if (!schema.is_object() || !schema.contains("properties") || !schema["properties"].is_object()) return properties;
  const Json required = schema.value("required", Json::array());
  for (const auto& [name, property] : schema["properties"].items()) {
    Property entry{name, property, false, false};
    entry.isRequired = required.is_array() && std::find(required.begin(), required.end(), Json(name)) != required.end();
    entry.isText = property.is_object() && property.contains("type") && property["type"] == "string" &&
                   !property.contains("enum") && !property.contains("pattern");
    properties.push_back(std::move(entry));
  }
  return properties;
}

// A schema with the definitions of the whole one, so that references hold.
Json withDefinitions(const Json& property, const Json& schema) {
  Json own = property;
  if (!own.is_object()) return own;
  for (const char* name : {"$defs", "definitions"})
    if (schema.contains(name) && !own.contains(name)) own[name] = schema[name];
  return own;
}

// Each property as `open` name `middle` value `close`; text values are written as they are.
Result<Node> markedArguments(GrammarBuilder& builder, const Function& function,
                             const std::function<std::string(const std::string&)>& open, std::string_view close,
                             bool textIsBare) {
  std::vector<Node> parts;
  for (const Property& property : propertiesOf(function.parameters)) {
    Node value = 0;
    const Json choices = property.schema.is_object() ? property.schema.value("enum", Json()) : Json();
    const bool plainChoices = choices.is_array() && !choices.empty() &&
                              std::all_of(choices.begin(), choices.end(), [](const Json& c) { return c.is_string(); });
    if (textIsBare && property.isText) {
      value = textThrough(builder, close);
    } else if (textIsBare && plainChoices) {
      value = builder.sequence({builder.literals(choices.get<std::vector<std::string>>()), builder.literal(close)});
    } else {
      auto node = addJsonSchema(builder, withDefinitions(property.schema, function.parameters), function.where);
      if (!node) return node;
      value = builder.sequence({*node, builder.literal(close)});
    }
    const Node whole = builder.ruleOf(builder.sequence({builder.literal(open(property.name)), value}));
    parts.push_back(property.isRequired ? whole : builder.optional(whole));
  }
  return builder.sequence(std::move(parts));
}

// One call as the form writes it, without the marks around all.
Result<Node> callOf(GrammarBuilder& builder, const Function& function, const ToolCallForm& form) {
  auto between = [&](const std::string& before, Result<Node> arguments, std::string_view after) -> Result<Node> {
    if (!arguments) return arguments;
    return builder.sequence({builder.literal(before), *arguments, builder.literal(after)});
  };
  const std::string& name = function.name;
  switch (form.syntax) {
    case ToolCallSyntax::Json:
    case ToolCallSyntax::Tagged:
    case ToolCallSyntax::MarkedList:
      return between(fmt::format("{{\"{}\": \"{}\", \"{}\": ", form.nameKey, name, form.argumentsKey),
                     objectOf(builder, function), "}");
    case ToolCallSyntax::NamedJson:
      return between(name + "[ARGS]", objectOf(builder, function), "");
    case ToolCallSyntax::NameLine:
      return between(name + "\n", objectOf(builder, function), "");
    case ToolCallSyntax::DeepSeekFenced:
      return between(fmt::format("{}function{}{}\n```json\n", kDeepSeekCall, kDeepSeekSep, name), objectOf(builder, function),
                     fmt::format("\n```{}", kDeepSeekEnd));
    case ToolCallSyntax::DeepSeek:
      return between(fmt::format("{}{}{}", kDeepSeekCall, name, kDeepSeekSep), objectOf(builder, function), kDeepSeekEnd);
    case ToolCallSyntax::Harmony:
      return between(fmt::format("<|channel|>commentary to=functions.{} <|constrain|>json<|message|>", name),
                     objectOf(builder, function), "");
    case ToolCallSyntax::FunctionXml:
      return between(
          fmt::format("<function={}>\n", name),
          markedArguments(
              builder, function, [](const std::string& key) { return "<parameter=" + key + ">\n"; }, "\n</parameter>\n", true),
          "</function>");
    case ToolCallSyntax::InvokeXml:
      return between(fmt::format("<invoke name=\"{}\">\n", name),
                     markedArguments(
                         builder, function, [](const std::string& key) { return "<parameter name=\"" + key + "\">"; },
                         "</parameter>\n", true),
                     "</invoke>");
    case ToolCallSyntax::KeyValueXml:
      return between(name + "\n",
                     markedArguments(
                         builder, function, [](const std::string& key) { return "<arg_key>" + key + "</arg_key>\n<arg_value>"; },
                         "</arg_value>\n", true),
                     "");
    case ToolCallSyntax::Pythonic: {
      std::vector<GrammarBuilder::Member> members;
      for (const Property& property : propertiesOf(function.parameters)) {
        const auto value = addJsonSchema(builder, withDefinitions(property.schema, function.parameters), function.where);
        if (!value) return value;
        members.push_back({builder.sequence({builder.literal(property.name + "="), *value}), property.isRequired});
      }
      return builder.sequence({builder.literal(name + "("),
                               builder.members(std::move(members), builder.literal(", "), std::nullopt), builder.literal(")")});
    }
  }
  return builder.nothing();
}

// All calls with the marks around them; behind `open` where `isOpen`.
Node callsOf(GrammarBuilder& builder, Node call, bool parallel, const ToolCallForm& form, bool isOpen) {
  auto list = [&](Node one, std::string_view between) {
    if (!parallel) return one;
    return builder.sequence({one, builder.repeat(builder.sequence({builder.literal(between), one}), 0, kMostCalls - 1)});
  };
  const Node open = builder.literal(isOpen ? "" : form.open), close = builder.literal(form.close);
  const Node line = builder.literal("\n");
  switch (form.syntax) {
    case ToolCallSyntax::Json:
    case ToolCallSyntax::Harmony:
    case ToolCallSyntax::NameLine:
      return call;
    case ToolCallSyntax::Tagged:
    case ToolCallSyntax::FunctionXml: {
      const Node rest = builder.sequence({line, call, line, close});
      if (isOpen) return rest;
      return list(builder.ruleOf(builder.sequence({open, rest})), "\n");
    }
    case ToolCallSyntax::KeyValueXml: {
      const Node rest = builder.sequence({call, close});
      if (isOpen) return rest;
      return list(builder.ruleOf(builder.sequence({open, rest})), "\n");
    }
    case ToolCallSyntax::MarkedList:
    case ToolCallSyntax::Pythonic:
      return builder.sequence({open, builder.literal("["), list(call, ", "), builder.literal("]"), close});
    case ToolCallSyntax::NamedJson:
      if (isOpen) return call;
      return list(builder.ruleOf(builder.sequence({open, call})), "");
    case ToolCallSyntax::InvokeXml:
    case ToolCallSyntax::DeepSeekFenced:
      return builder.sequence({open, form.syntax == ToolCallSyntax::InvokeXml ? line : builder.empty(), list(call, "\n"),
                               form.syntax == ToolCallSyntax::InvokeXml ? line : builder.empty(), close});
    case ToolCallSyntax::DeepSeek:
      return builder.sequence({open, list(call, ""), close});
  }
  return call;
}

// One call of any of the tools. Where only strict tools are held to their schema, others take any object.
ApiResult<Node> anyCall(GrammarBuilder& builder, const Json& tools, const std::string& only, const ToolCallForm& form,
                        bool strictOnly) {
  std::vector<Node> calls;
  for (size_t i = 0; i < tools.size(); ++i) {
    const Json& function = tools[i]["function"];
    Function entry{function["name"].get<std::string>(), fmt::format("tools[{}].function.parameters", i), Json()};
    if (!only.empty() && entry.name != only) continue;
    if (const auto parameters = function.find("parameters"); parameters != function.end()) entry.parameters = *parameters;
    const bool isStrict = function.contains("strict") && function["strict"] == true;
    if (strictOnly && !isStrict) entry.parameters = Json{{"type", "object"}, {"additionalProperties", true}};
    const auto call = callOf(builder, entry, form);
    if (!call) return tl::unexpected(grammarError(call.error(), entry.where));
    calls.push_back(*call);
  }
  return builder.ruleOf(builder.choice(std::move(calls)));
}

ApiResult<std::shared_ptr<const Grammar>> built(GrammarBuilder& builder, Node node) {
  auto grammar = builder.build(node, "tools");
  if (!grammar) return tl::unexpected(grammarError(grammar.error(), "tools"));
  return std::move(*grammar);
}

}  // namespace

std::vector<std::string> ToolCallForm::marks() const {
  std::vector<std::string> marks;
  for (const std::string& mark : {open, close})
    if (!mark.empty()) marks.push_back(mark);
  switch (syntax) {
    case ToolCallSyntax::NamedJson:
      for (const char* mark : {"[ARGS]", "[CALL_ID]"}) marks.emplace_back(mark);
      break;
    case ToolCallSyntax::KeyValueXml:
      for (const char* mark : {"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}) marks.emplace_back(mark);
      break;
    case ToolCallSyntax::DeepSeekFenced:
    case ToolCallSyntax::DeepSeek:
      for (const std::string_view mark : {kDeepSeekCall, kDeepSeekEnd, kDeepSeekSep}) marks.emplace_back(mark);
      break;
    case ToolCallSyntax::Harmony:
      for (const char* mark : {"<|channel|>", "<|message|>", "<|constrain|>", "<|start|>", "<|end|>"}) marks.emplace_back(mark);
      break;
    default:
      break;
  }
  return marks;
}

ToolCallForm toolCallFormOf(std::string_view text) {
  ToolCallForm form;
  auto as = [&](ToolCallSyntax syntax, std::string_view open = {}, std::string_view close = {}) {
    form.syntax = syntax;
    form.open = std::string(open);
    form.close = std::string(close);
    return form;
  };
  if (has(text, "<|channel|>") && has(text, "<|message|>")) return as(ToolCallSyntax::Harmony);
  if (has(text, kDeepSeekCall))
    return as(has(text, "```json") ? ToolCallSyntax::DeepSeekFenced : ToolCallSyntax::DeepSeek, "<｜tool▁calls▁begin｜>",
              "<｜tool▁calls▁end｜>");
  if (has(text, "<minimax:tool_call>")) return as(ToolCallSyntax::InvokeXml, "<minimax:tool_call>", "</minimax:tool_call>");
  if (has(text, "<arg_key>")) return as(ToolCallSyntax::KeyValueXml, "<tool_call>", "</tool_call>");
  if (has(text, "<function=") && has(text, "<parameter=")) return as(ToolCallSyntax::FunctionXml, "<tool_call>", "</tool_call>");
  if (has(text, "[TOOL_CALLS]"))
    return as(has(text, "[ARGS]") ? ToolCallSyntax::NamedJson : ToolCallSyntax::MarkedList, "[TOOL_CALLS]");
  if (has(text, "<|START_ACTION|>")) {
    form.nameKey = "tool_name";
    form.argumentsKey = "parameters";
    return as(ToolCallSyntax::MarkedList, "<|START_ACTION|>", "<|END_ACTION|>");
  }
  if (has(text, "<tool_call>")) return as(ToolCallSyntax::Tagged, "<tool_call>", "</tool_call>");
  if (has(text, "<|tool_call|>"))
    return as(ToolCallSyntax::MarkedList, "<|tool_call|>", has(text, "<|/tool_call|>") ? "<|/tool_call|>" : "");
  if (has(text, "func_name1(params_name1")) return as(ToolCallSyntax::Pythonic);
  if (has(text, "<|observation|>")) return as(ToolCallSyntax::NameLine);
  const bool saysParameters = has(text, "\"parameters\": "), saysArguments = has(text, "\"arguments\"");
  if (saysParameters && !saysArguments) form.argumentsKey = "parameters";
  return form;
}

ReasoningForm reasoningFormOf(std::string_view text) {
  for (const auto& [open, close] :
       {std::pair{"<think>", "</think>"}, std::pair{"[THINK]", "[/THINK]"}, std::pair{"<|START_THINKING|>", "<|END_THINKING|>"},
        std::pair{"<seed:think>", "</seed:think>"}})
    if (has(text, close)) return {open, close};
  return {};
}

Node textThrough(GrammarBuilder& builder, std::string_view mark) {
  return search(builder, mark, false, [&builder](Node) { return builder.empty(); });
}

Node textWithout(GrammarBuilder& builder, std::string_view mark) { return search(builder, mark, true, std::nullopt); }

Node framed(GrammarBuilder& builder, Node answer, const AnswerFrame& frame) {
  if (!frame.isNeeded()) return answer;
  if (frame.isHarmony) {
    const Node thinks = builder.sequence({builder.literal("<|channel|>analysis<|message|>"), textThrough(builder, "<|end|>"),
                                          builder.literal("<|start|>assistant")});
    return builder.sequence({builder.bytes(kReasoningBegins, kAnswerBegins), builder.optional(thinks),
                             builder.literal("<|channel|>final<|message|>"), answer});
  }
  auto begin = [&](char byte) { return builder.bytes(static_cast<uint8_t>(byte), static_cast<uint8_t>(byte)); };
  const Node whole = builder.ruleOf(answer);
  const Node rest = builder.ruleOf(builder.sequence({textThrough(builder, frame.reasoning.close), blanks(builder)}));
  return builder.choice(
      {builder.sequence({begin(kReasoningBegins), rest, whole}),
       builder.sequence(
           {begin(kAnswerBegins), builder.optional(builder.sequence({builder.literal(frame.reasoning.open), rest})), whole})});
}

Node framedCalls(GrammarBuilder& builder, Node calls, const AnswerFrame& frame) {
  if (!frame.isHarmony) return framed(builder, calls, frame);
  const Node thinks = builder.sequence({builder.literal("<|channel|>analysis<|message|>"), textThrough(builder, "<|end|>"),
                                        builder.literal("<|start|>assistant")});
  return builder.sequence({builder.bytes(kReasoningBegins, kAnswerBegins), builder.optional(thinks), calls});
}

ApiResult<std::shared_ptr<const Grammar>> toolCallGrammar(const Json& tools, const std::string& only, bool parallel,
                                                          const ToolCallForm& form, const AnswerFrame& frame) {
  GrammarBuilder builder;
  const auto call = anyCall(builder, tools, only, form, false);
  if (!call) return tl::unexpected(call.error());
  return built(builder, framedCalls(builder, callsOf(builder, *call, parallel, form, false), frame));
}

ApiResult<std::shared_ptr<const Grammar>> freeCallGrammar(const Json& tools, bool parallel, const ToolCallForm& form,
                                                          const AnswerFrame& frame) {
  GrammarBuilder builder;
  const auto call = anyCall(builder, tools, {}, form, true);
  if (!call) return tl::unexpected(call.error());
  if (form.syntax == ToolCallSyntax::Harmony) {
    const Node answer = builder.sequence({builder.literal("<|channel|>final<|message|>"), textWithout(builder, "<|end|>")});
    return built(builder, framedCalls(builder, builder.choice({*call, answer}), frame));
  }
  if (!form.open.empty()) {
    // Any text; where the mark comes, calls follow, and text again.
    const Node behind = builder.ruleOf(callsOf(builder, *call, parallel, form, true));
    return built(builder, framed(builder,
                                 search(builder, form.open, true,
                                        [&](Node again) {
                                          return builder.sequence({behind, again});
                                        }),
                                 frame));
  }
  // Calls have no mark: an answer that begins like one is one. Names as the first line cannot be told from text: they may be
  // either.
  const Node calls = callsOf(builder, *call, parallel, form, false);
  const char first = form.syntax == ToolCallSyntax::Pythonic ? '[' : '{';
  std::vector<Node> options{calls};
  std::vector<Node> begins;
  for (const auto& [low, high] : {std::pair<int, int>{1, first - 1}, std::pair<int, int>{first + 1, 255}})
    begins.push_back(builder.bytes(static_cast<uint8_t>(low), static_cast<uint8_t>(high)));
  options.push_back(
      builder.sequence({builder.choice(std::move(begins)), builder.repeat(builder.bytes(0, 255), 0, std::nullopt)}));
  return built(builder, framed(builder, builder.choice(std::move(options)), frame));
}

}  // namespace headroom::engine
