// SPDX-License-Identifier: Apache-2.0
#include "engine/server/tool_calls.h"

#include "engine/sample/grammar_json_schema.h"
#include "engine/server/structured_output.h"

#include <fmt/format.h>

#include <algorithm>

namespace headroom::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>", kHead = "{\"name\": \"", kBlank = " \t\r\n";
constexpr int64_t kMostCalls = 16;  // of one answer, so that it ends

// How many bytes at the end of `text` may begin `word`.
size_t begunAtEnd(std::string_view text, std::string_view word) {
  for (size_t length = std::min(text.size(), word.size() - 1); length > 0; --length)
    if (word.starts_with(text.substr(text.size() - length))) return length;
  return 0;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace

ToolCallForm toolCallFormOf(std::string_view chatTemplate) {
  ToolCallForm form;
  const bool hasXml = chatTemplate.find("<function=") != std::string_view::npos;
  form.isTagged = !hasXml && chatTemplate.find(kOpen) != std::string_view::npos;
  const bool saysParameters = chatTemplate.find("\"parameters\": ") != std::string_view::npos;
  const bool saysArguments = chatTemplate.find("\"arguments\"") != std::string_view::npos;
  if (!form.isTagged && saysParameters && !saysArguments) form.argumentsKey = "parameters";
  return form;
}

ApiResult<std::shared_ptr<const Grammar>> toolCallGrammar(const Json& tools, const std::string& only, bool parallel,
                                                          const ToolCallForm& form) {
  GrammarBuilder builder;
  std::vector<GrammarBuilder::Node> calls;
  for (size_t i = 0; i < tools.size(); ++i) {
    const Json& function = tools[i]["function"];
    const std::string name = function["name"].get<std::string>();
    if (!only.empty() && name != only) continue;
    const std::string where = fmt::format("tools[{}].function.parameters", i);
    const auto parameters = function.find("parameters");
    // A function without parameters is called with none.
    const bool hasNone = parameters == function.end() || parameters->is_null() || parameters->empty();
    const auto arguments =
        hasNone ? Result<GrammarBuilder::Node>(builder.literal("{}")) : addJsonSchema(builder, *parameters, where);
    if (!arguments) return tl::unexpected(grammarError(arguments.error(), where));
    calls.push_back(builder.sequence(
        {builder.literal(fmt::format("{}{}\", \"{}\": ", kHead, name, form.argumentsKey)), *arguments, builder.literal("}")}));
  }
  const auto call = builder.ruleOf(builder.choice(std::move(calls)));
  GrammarBuilder::Node all = call;
  auto several = [&](GrammarBuilder::Node one, std::string_view between) {
    if (!parallel) return one;
    return builder.sequence({one, builder.repeat(builder.sequence({builder.literal(between), one}), 0, kMostCalls - 1)});
  };
  if (form.isTagged)
    all = several(
        builder.sequence({builder.literal(fmt::format("{}\n", kOpen)), call, builder.literal(fmt::format("\n{}", kClose))}),
        "\n");
  auto grammar = builder.build(all, "tools");
  if (!grammar) return tl::unexpected(grammarError(grammar.error(), "tools"));
  return std::move(*grammar);
}

void ToolCallReader::push(std::string_view text) {
  if (!m_begun) {
    m_begun = true;
    m_state = m_use.isForced ? State::Seek : m_use.form.isTagged ? State::Text : State::Whole;
  }
  m_held += text;
  while (step()) {
  }
}

bool ToolCallReader::step() {
  switch (m_state) {
    case State::Seek:
      return seekHead();
    case State::Name:
      return readName();
    case State::Key: {
      const size_t length = m_use.form.argumentsKey.size() + 6;  // , "arguments": and a space
      if (m_held.size() < length) return false;
      m_held.erase(0, length);
      m_state = State::Arguments;
      m_depth = 0;
      m_inString = m_escaped = false;
      return true;
    }
    case State::Arguments:
      return readArguments();
    case State::Text:
      return m_use.form.isTagged && seekTag();
    case State::Call:
      return readTagged();
    case State::Whole: {
      // Text that begins like JSON may be a call; that shows at its end only.
      const size_t first = m_held.find_first_not_of(kBlank);
      if (first == std::string::npos || m_held[first] == '{' || m_held[first] == '[') return false;
      m_text += std::exchange(m_held, {});
      return false;
    }
  }
  return false;
}

// ---- forced calls: their form is known to the byte

bool ToolCallReader::seekHead() {
  const size_t at = m_held.find(kHead);
  if (at == std::string::npos) {
    m_held.erase(0, m_held.size() - begunAtEnd(m_held, kHead));
    return false;
  }
  m_held.erase(0, at + kHead.size());
  m_state = State::Name;
  return true;
}

bool ToolCallReader::readName() {
  const size_t end = m_held.find('"');
  if (end == std::string::npos) return false;
  m_parts.push_back({m_calls++, m_held.substr(0, end), {}});
  m_held.erase(0, end + 1);
  m_state = State::Key;
  return true;
}

bool ToolCallReader::readArguments() {
  if (m_held.empty()) return false;
  size_t at = 0;
  bool over = false;
  while (at < m_held.size() && !over) {
    const char c = m_held[at++];
    if (m_inString) {
      if (m_escaped)
        m_escaped = false;
      else if (c == '\\')
        m_escaped = true;
      else if (c == '"')
        m_inString = false;
    } else if (c == '"') {
      m_inString = true;
    } else if (c == '{' || c == '[') {
      ++m_depth;
    } else if (c == '}' || c == ']') {
      over = --m_depth == 0;
    }
  }
  m_parts.push_back({m_calls - 1, {}, m_held.substr(0, at)});
  m_held.erase(0, at);
  if (over) m_state = State::Seek;
  return over;
}

// ---- calls that may come

void ToolCallReader::addText(std::string_view text) {
  // Line breaks between calls are no text.
  if (m_calls > 0 && m_text.empty() && trimmed(text).empty()) return;
  m_text += text;
}

bool ToolCallReader::seekTag() {
  const size_t at = m_held.find(kOpen);
  if (at != std::string::npos) {
    // The line break before a call belongs to the call.
    std::string_view before = std::string_view(m_held).substr(0, at);
    before = before.substr(0, before.find_last_not_of(kBlank) + 1);
    addText(before);
    m_held.erase(0, at + kOpen.size());
    m_state = State::Call;
    return true;
  }
  // Blanks at the end wait too.
  size_t kept = m_held.size() - begunAtEnd(m_held, kOpen);
  while (kept > 0 && kBlank.find(m_held[kept - 1]) != std::string_view::npos) --kept;
  addText(std::string_view(m_held).substr(0, kept));
  m_held.erase(0, kept);
  return false;
}

bool ToolCallReader::readTagged() {
  const size_t end = m_held.find(kClose);
  if (end == std::string::npos) return false;
  if (!addCalls(std::string_view(m_held).substr(0, end)))
    m_text += fmt::format("{}{}{}", kOpen, std::string_view(m_held).substr(0, end), kClose);
  m_held.erase(0, end + kClose.size());
  m_state = State::Text;
  return true;
}

// The text as one call or a list of them; false: it is something else.
bool ToolCallReader::addCalls(std::string_view json) {
  const Json value = Json::parse(trimmed(json), nullptr, false);
  const Json list = value.is_array() ? value : Json::array({value});
  if (value.is_discarded() || list.empty()) return false;
  std::vector<Part> parts;
  for (const Json& call : list) {
    if (!call.is_object() || !call.contains("name") || !call["name"].is_string()) return false;
    const std::string name = call["name"].get<std::string>();
    if (std::find(m_use.names.begin(), m_use.names.end(), name) == m_use.names.end()) return false;
    const char* key = call.contains("arguments") ? "arguments" : "parameters";
    if (!call.contains(key)) return false;
    const Json& arguments = call[key];
    // Some models write the arguments as a text of JSON already.
    const bool isText = arguments.is_string() && Json::parse(arguments.get<std::string>(), nullptr, false).is_object();
    if (!arguments.is_object() && !isText) return false;
    parts.push_back({0, name, isText ? arguments.get<std::string>() : dumpJson(arguments)});
  }
  for (Part& part : parts) {
    if (!m_use.parallel && m_calls > 0) break;
    part.index = m_calls++;
    m_parts.push_back(std::move(part));
  }
  return true;
}

void ToolCallReader::finish() {
  const std::string held = std::exchange(m_held, {});
  if (m_use.isForced || !m_begun) return;
  if (m_state == State::Call) {
    if (!addCalls(held)) m_text += std::string(kOpen) + held;
  } else if (m_state == State::Whole && addCalls(held)) {
    return;
  } else {
    addText(held);
  }
}

std::string ToolCallReader::takeText() { return std::exchange(m_text, {}); }
std::vector<ToolCallReader::Part> ToolCallReader::takeParts() { return std::exchange(m_parts, {}); }

}  // namespace headroom::engine
