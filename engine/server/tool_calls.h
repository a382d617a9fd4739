// SPDX-License-Identifier: Apache-2.0
// Takes an answer's text apart as it comes: reasoning, text, and calls of tools, in the forms of answer_form.h.
#pragma once

#include "engine/server/answer_form.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine {

// How a request uses its tools.
struct ToolUse {
  bool reads = false;     // calls are looked for in the answer
  bool isForced = false;  // the answer is calls and nothing else, by a grammar
  bool parallel = true;   // more than one call
  ToolCallForm form;
  std::vector<std::string> names;
  std::vector<nlohmann::ordered_json>
      schemas;  // of the arguments, in the order of the names; where missing, values are read as they look
};

// What is no call stays text.
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
  std::string takeReasoning();  // of Harmony's channels only
  bool isReasoning() const { return m_state == State::Message && m_channel == "analysis"; }
  std::vector<Part> takeParts();
  size_t calls() const { return m_calls; }
  // The arguments of the last call go on; in Harmony, whose calls end with the text, up to finish() and beyond.
  bool isInCall() const {
    return m_state == State::Key || m_state == State::Arguments || (m_state == State::Message && m_inCall);
  }

 private:
  enum class State { Seek, Name, Key, Arguments, Text, Call, Whole, Header, Message };
  bool step();  // false: more text is needed
  bool seekHead();
  bool readName();
  bool readArguments();
  bool seekMark();
  bool readMarked();
  bool readHeader();
  bool readMessage();
  bool maybeCall() const;
  bool addCalls(std::string_view block);
  void addText(std::string_view text);
  bool isForcedJson() const;

  ToolUse m_use;
  State m_state = State::Seek;
  bool m_begun = false;
  bool m_isText = false;  // the answer is no call
  std::string m_held, m_text, m_reasoning;
  std::vector<Part> m_parts;
  size_t m_calls = 0;
  int m_depth = 0;  // of the arguments' brackets
  bool m_inString = false, m_escaped = false;
  std::string m_channel;
  bool m_inCall = false;  // of Harmony
};

// Parts the reasoning that stands before an answer from it.
class ReasoningReader {
 public:
  // `begins`: the prompt ends within the reasoning.
  ReasoningReader(ReasoningForm form, bool begins)
      : m_form(std::move(form)),
        m_state(!m_form.exists() ? State::Answer
                : begins         ? State::Inside
                                 : State::Start) {}
  // The part of the text that belongs to the answer.
  std::string push(std::string_view text);
  std::string finish();
  std::string takeReasoning();
  bool isInside() const { return m_state == State::Inside; }

 private:
  enum class State { Start, Inside, After, Answer };
  ReasoningForm m_form;
  State m_state;
  bool m_begun = false;  // some reasoning was given out
  std::string m_held, m_reasoning;
};

}  // namespace headroom::engine
