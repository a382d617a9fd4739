// SPDX-License-Identifier: Apache-2.0
// Calls of tools: the form in which a model writes them, the grammar that makes it write one, and the reader that finds them in
// its text.
//
// Forms: {"name": …, "arguments": …} between <tool_call> tags, for models whose template shows them; else such an object alone,
// or a list of them.
#pragma once

#include "engine/sample/grammar.h"
#include "engine/server/api_error.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine {

struct ToolCallForm {
  bool isTagged = false;
  std::string argumentsKey = "arguments";
};
// What a chat template shows its model.
ToolCallForm toolCallFormOf(std::string_view chatTemplate);

// How a request uses its tools.
struct ToolUse {
  bool reads = false;     // calls are looked for in the answer
  bool isForced = false;  // the answer is calls and nothing else, by a grammar
  bool parallel = true;   // more than one call
  ToolCallForm form;
  std::vector<std::string> names;
};

// Calls of `tools` (checked before), of the one called `only` where it is not empty: one or, with `parallel` in the
// tagged form, several. Templates without tags show one call an answer.
ApiResult<std::shared_ptr<const Grammar>> toolCallGrammar(const nlohmann::ordered_json& tools, const std::string& only,
                                                          bool parallel, const ToolCallForm& form);

// Takes an answer's text apart as it comes. What is no call stays text.
class ToolCallReader {
 public:
  explicit ToolCallReader(ToolUse use) : m_use(std::move(use)) {}
  // A call's first part has its name, later ones more of its arguments.
  struct Part {
    size_t index = 0;
    std::string name;
    std::string arguments;
  };
  void push(std::string_view text);
  void finish();  // the text is over
  std::string takeText();
  std::vector<Part> takeParts();
  size_t calls() const { return m_calls; }

 private:
  enum class State { Seek, Name, Key, Arguments, Text, Call, Whole };
  bool step();  // false: more text is needed
  bool seekHead();
  bool readName();
  bool readArguments();
  bool seekTag();
  bool readTagged();
  bool addCalls(std::string_view json);
  void addText(std::string_view text);

  ToolUse m_use;
  State m_state = State::Seek;
  bool m_begun = false;
  std::string m_held, m_text;
  std::vector<Part> m_parts;
  size_t m_calls = 0;
  int m_depth = 0;  // of the arguments' brackets
  bool m_inString = false, m_escaped = false;
};

}  // namespace headroom::engine
