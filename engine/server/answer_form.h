// SPDX-License-Identifier: Apache-2.0
// The forms in which model families write what is not plain text: calls of tools and reasoning. A form is read off the chat
// template, which shows it to the model; the grammar that makes a model write it is here too.
#pragma once

#include "engine/sample/grammar.h"
#include "engine/server/api_error.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine {

enum class ToolCallSyntax : uint8_t {
  Json,            // {"name": …, "parameters": …} and nothing else: Llama 3
  Tagged,          // such an object between tags, one a call: Hermes, Qwen 2.5 and 3, Granite 4, SmolLM3
  MarkedList,      // a list of such objects behind a mark: Mistral, Granite 3, Phi-4-mini, Command R7B
  NamedJson,       // [TOOL_CALLS]name[ARGS]{…}: Mistral since 2025
  Pythonic,        // [name(key=value), …]: Llama 3.2 and 4
  FunctionXml,     // <tool_call><function=name><parameter=key>value…: Qwen3-Coder
  InvokeXml,       // <minimax:tool_call><invoke name="…"><parameter name="…">value…: MiniMax-M2
  KeyValueXml,     // <tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value>…: GLM-4.5
  DeepSeekFenced,  // function<sep>name and a fenced block of JSON: DeepSeek V3, R1
  DeepSeek,        // name<sep>{…}: DeepSeek V3.1
  NameLine,        // the name, then a line of JSON: GLM-4
  Harmony,         // channels: gpt-oss
};

struct ToolCallForm {
  ToolCallSyntax syntax = ToolCallSyntax::Json;
  std::string nameKey = "name", argumentsKey = "arguments";
  std::string open, close;  // marks around calls; empty: none
  // All texts of the form that a vocabulary may have as special tokens.
  std::vector<std::string> marks() const;
};

// Reasoning before the answer, between two marks; none where `close` is empty.
struct ReasoningForm {
  std::string open, close;
  bool exists() const { return !close.empty(); }
};

// What a chat template shows its model.
ToolCallForm toolCallFormOf(std::string_view chatTemplate);
ReasoningForm reasoningFormOf(std::string_view chatTemplate);

// What stands around a form that is asked for: reasoning, channels. A matcher of a framed grammar reads one byte first that tells
// how the prompt ends: kAnswerBegins or kReasoningBegins.
struct AnswerFrame {
  ReasoningForm reasoning;
  bool isHarmony = false;
  bool isNeeded() const { return reasoning.exists() || isHarmony; }
};
inline constexpr char kAnswerBegins = '\x02', kReasoningBegins = '\x01';
GrammarBuilder::Node framed(GrammarBuilder& builder, GrammarBuilder::Node answer, const AnswerFrame& frame);
// The same around forced calls: those of Harmony have a channel of their own.
GrammarBuilder::Node framedCalls(GrammarBuilder& builder, GrammarBuilder::Node calls, const AnswerFrame& frame);

// Calls of `tools` (checked before), of the one called `only` where it is not empty: one or, with `parallel` in forms that have
// several, up to 16.
ApiResult<std::shared_ptr<const Grammar>> toolCallGrammar(const nlohmann::ordered_json& tools, const std::string& only,
                                                          bool parallel, const ToolCallForm& form, const AnswerFrame& frame = {});
// Text in which calls may come: what begins like a call is one of a tool, and the arguments of tools that say "strict" follow
// their schema.
ApiResult<std::shared_ptr<const Grammar>> freeCallGrammar(const nlohmann::ordered_json& tools, bool parallel,
                                                          const ToolCallForm& form, const AnswerFrame& frame = {});

// Any text that ends with the first `mark` in it, and any text without one. Of bytes.
GrammarBuilder::Node textThrough(GrammarBuilder& builder, std::string_view mark);
GrammarBuilder::Node textWithout(GrammarBuilder& builder, std::string_view mark);

}  // namespace headroom::engine
