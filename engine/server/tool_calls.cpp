// SPDX-License-Identifier: Apache-2.0
#include "engine/server/tool_calls.h"

#include "core/json_text.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace headroom::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHead = "{\"name\": \"", kBlank = " \t\r\n";

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

struct Call {
  std::string name, arguments;
};
using Calls = std::optional<std::vector<Call>>;

// Arguments as JSON text; empty: they are none.
std::string argumentsText(const Json& arguments) {
  if (arguments.is_object()) return dumpJson(arguments);
  // Some models write the arguments as a text of JSON already.
  if (arguments.is_string() && readJsonText<Json>(arguments.get<std::string>()).is_object())
    return arguments.get<std::string>();
  return {};
}

// An object with name and arguments, or a list of them.
Calls jsonCalls(std::string_view text) {
  const Json value = readJsonText<Json>(trimmed(text));
  const Json list = value.is_array() ? value : Json::array({value});
  if (value.is_discarded() || list.empty()) return std::nullopt;
  std::vector<Call> calls;
  for (const Json& call : list) {
    if (!call.is_object()) return std::nullopt;
    const Json* name = nullptr;
    for (const char* key : {"name", "tool_name"})
      if (!name && call.contains(key) && call[key].is_string()) name = &call[key];
    const char* key = call.contains("arguments") ? "arguments" : "parameters";
    if (!name || !call.contains(key)) return std::nullopt;
    const std::string arguments = argumentsText(call[key]);
    if (arguments.empty()) return std::nullopt;
    calls.push_back({name->get<std::string>(), arguments});
  }
  return calls;
}

// Length of the JSON object at the beginning of `text`; 0: none that is whole.
size_t objectLength(std::string_view text) {
  if (!text.starts_with('{')) return 0;
  int depth = 0;
  bool inString = false, escaped = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      if (escaped)
        escaped = false;
      else if (c == '\\')
        escaped = true;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return 0;
}

// name MIDDLE {…}
Calls namedCall(std::string_view text, std::string_view middle) {
  text = trimmed(text);
  const size_t at = text.find(middle);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view name = trimmed(text.substr(0, at)), rest = trimmed(text.substr(at + middle.size()));
  if (const size_t id = name.find("[CALL_ID]"); id != std::string_view::npos) name = name.substr(0, id);
  const size_t length = objectLength(rest);
  if (name.empty() || length == 0 || length != rest.size() || !Json::accept(rest)) return std::nullopt;
  return std::vector<Call>{{std::string(name), std::string(rest)}};
}

// All parts between `open` and `close`, each read by `one`; anything else but blanks makes it something else. The last close may
// lack.
template <class One>
Calls everyPart(std::string_view text, std::string_view open, std::string_view close, One one) {
  std::vector<Call> calls;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    if (!text.starts_with(open)) return std::nullopt;
    text.remove_prefix(open.size());
    const size_t end = close.empty() ? text.find(open) : text.find(close);
    const auto found = one(text.substr(0, end));
    if (!found) return std::nullopt;
    calls.insert(calls.end(), found->begin(), found->end());
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + close.size());
  }
  if (calls.empty()) return std::nullopt;
  return calls;
}

// A value that XML forms write without its type: text where the schema says so, else what it looks like.
Json typedValue(std::string_view text, const Json& schemas, const std::string& key) {
  const Json* schema = nullptr;
  if (schemas.is_object() && schemas.contains("properties") && schemas["properties"].is_object() &&
      schemas["properties"].contains(key))
    schema = &schemas["properties"][key];
  const Json type = schema && schema->is_object() && schema->contains("type") ? (*schema)["type"] : Json();
  const bool isText = type == "string" || (type.is_array() && std::find(type.begin(), type.end(), Json("string")) != type.end());
  if (isText) return std::string(text);
  const std::string_view plain = trimmed(text);
  Json value = readJsonText<Json>(plain);
  if (!value.is_discarded()) return value;
  if (plain == "True" || plain == "False") return plain == "True";
  if (plain == "None") return nullptr;
  return std::string(text);
}

// OPEN key MIDDLE value CLOSE, again and again.
Calls markedValues(const std::string& name, std::string_view text, std::string_view open, std::string_view middle,
                   std::string_view close, const Json& schema) {
  Json arguments = Json::object();
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    if (!text.starts_with(open)) return std::nullopt;
    text.remove_prefix(open.size());
    const size_t mid = text.find(middle);
    if (mid == std::string_view::npos) return std::nullopt;
    const std::string key(trimmed(text.substr(0, mid)));
    text.remove_prefix(mid + middle.size());
    size_t end = text.find(close);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view value = text.substr(0, end);
    // One line break on each side belongs to the form.
    if (value.starts_with('\n')) value.remove_prefix(1);
    if (value.ends_with('\n')) value.remove_suffix(1);
    arguments[key] = typedValue(value, schema, key);
    text.remove_prefix(end + close.size());
  }
  return std::vector<Call>{{name, dumpJson(arguments)}};
}

// ---- [name(key=value, …), …] with Python's literals

class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : m_text(text) {}
  Calls calls() {
    std::vector<Call> found;
    if (!eat('[')) return std::nullopt;
    do {
      const std::string name = word();
      if (name.empty() || !eat('(')) return std::nullopt;
      Json arguments = Json::object();
      while (!eat(')')) {
        const std::string key = word();
        if (key.empty() || !eat('=')) return std::nullopt;
        arguments[key] = value(0);
        if (m_failed) return std::nullopt;
        if (eat(',')) continue;
        if (!eat(')')) return std::nullopt;
        break;
      }
      found.push_back({name, dumpJson(arguments)});
    } while (eat(','));
    if (!eat(']') || !rest().empty()) return std::nullopt;
    return found;
  }

 private:
  std::string_view rest() {
    while (m_at < m_text.size() && kBlank.find(m_text[m_at]) != std::string_view::npos) ++m_at;
    return m_text.substr(m_at);
  }
  bool eat(char c) {
    if (!rest().starts_with(c)) return false;
    ++m_at;
    return true;
  }
  std::string word() {
    const std::string_view text = rest();
    size_t length = 0;
    while (length < text.size() && (std::isalnum(static_cast<unsigned char>(text[length])) ||
                                    std::string_view("_.-:/").find(text[length]) != std::string_view::npos))
      ++length;
    m_at += length;
    return std::string(text.substr(0, length));
  }
  Json fail() {
    m_failed = true;
    return nullptr;
  }
  Json quoted(char quote) {
    std::string text;
    while (m_at < m_text.size()) {
      const char c = m_text[m_at++];
      if (c == quote) return text;
      if (c != '\\' || m_at == m_text.size()) {
        text += c;
        continue;
      }
      const char escape = m_text[m_at++];
      switch (escape) {
        case 'n':
          text += '\n';
          break;
        case 't':
          text += '\t';
          break;
        case 'r':
          text += '\r';
          break;
        case 'b':
          text += '\b';
          break;
        case 'f':
          text += '\f';
          break;
        case 'u': {
          // JSON reads the escape, and its pair where it is half of one.
          std::string code = "\"\\u" + std::string(m_text.substr(m_at, 4));
          m_at = std::min(m_at + 4, m_text.size());
          if (m_text.substr(m_at).starts_with("\\u") && (code[3] == 'd' || code[3] == 'D')) {
            code += m_text.substr(m_at, 6);
            m_at = std::min(m_at + 6, m_text.size());
          }
          const Json read = readJsonText<Json>(code + "\"");
          if (!read.is_string()) return fail();
          text += read.get<std::string>();
          break;
        }
        default:
          text += escape;
      }
    }
    return fail();
  }
  Json value(int depth) {
    if (depth > 64) return fail();
    if (eat('"')) return quoted('"');
    if (eat('\'')) return quoted('\'');
    if (eat('[')) {
      Json list = Json::array();
      while (!eat(']')) {
        list.push_back(value(depth + 1));
        if (m_failed || (!eat(',') && !rest().starts_with(']'))) return fail();
      }
      return list;
    }
    if (eat('{')) {
      Json object = Json::object();
      while (!eat('}')) {
        const Json key = value(depth + 1);
        if (!key.is_string() || !eat(':')) return fail();
        object[key.get<std::string>()] = value(depth + 1);
        if (m_failed || (!eat(',') && !rest().starts_with('}'))) return fail();
      }
      return object;
    }
    const std::string_view text = rest();
    const std::string_view literal = text.substr(0, text.find_first_of(",)]}: \n"));
    m_at += literal.size();
    if (literal == "True" || literal == "False") return literal == "True";
    if (literal == "None") return nullptr;
    Json number = readJsonText<Json>(literal);
    return number.is_discarded() ? fail() : number;
  }
  std::string_view m_text;
  size_t m_at = 0;
  bool m_failed = false;
};

// The calls that a block holds; nothing: it is something else.
Calls callsIn(std::string_view block, const ToolUse& use) {
  auto schemaOf = [&](const std::string& name) {
    for (size_t i = 0; i < use.names.size() && i < use.schemas.size(); ++i)
      if (use.names[i] == name) return use.schemas[i];
    return Json();
  };
  switch (use.form.syntax) {
    case ToolCallSyntax::Json:
    case ToolCallSyntax::Tagged:
    case ToolCallSyntax::MarkedList:
      return jsonCalls(block);
    case ToolCallSyntax::NamedJson:
      // Older models of the family write a list.
      if (trimmed(block).starts_with('[')) return jsonCalls(block);
      return namedCall(block, "[ARGS]");
    case ToolCallSyntax::NameLine:
      return namedCall(block, "\n");
    case ToolCallSyntax::Pythonic:
      return PythonReader(trimmed(block)).calls();
    case ToolCallSyntax::DeepSeekFenced:
      return everyPart(block, "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", [](std::string_view call) -> Calls {
        const size_t sep = call.find("<｜tool▁sep｜>");
        if (sep == std::string_view::npos) return std::nullopt;
        std::string_view rest = trimmed(call.substr(sep + std::string_view("<｜tool▁sep｜>").size()));
        const size_t fence = rest.find("```json");
        if (fence == std::string_view::npos) return std::nullopt;
        std::string_view json = trimmed(rest.substr(fence + 7));
        if (json.ends_with("```")) json = trimmed(json.substr(0, json.size() - 3));
        return namedCall(std::string(trimmed(rest.substr(0, fence))) + "\n" + std::string(json), "\n");
      });
    case ToolCallSyntax::DeepSeek:
      return everyPart(block, "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
                       [](std::string_view call) { return namedCall(call, "<｜tool▁sep｜>"); });
    case ToolCallSyntax::FunctionXml: {
      if (auto calls = jsonCalls(block)) return calls;
      return everyPart(block, "<function=", "</function>", [&](std::string_view function) -> Calls {
        const size_t end = function.find('>');
        if (end == std::string_view::npos) return std::nullopt;
        const std::string name(trimmed(function.substr(0, end)));
        return markedValues(name, function.substr(end + 1), "<parameter=", ">", "</parameter>", schemaOf(name));
      });
    }
    case ToolCallSyntax::InvokeXml:
      return everyPart(block, "<invoke name=\"", "</invoke>", [&](std::string_view function) -> Calls {
        const size_t end = function.find("\">");
        if (end == std::string_view::npos) return std::nullopt;
        const std::string name(trimmed(function.substr(0, end)));
        return markedValues(name, function.substr(end + 2), "<parameter name=\"", "\">", "</parameter>", schemaOf(name));
      });
    case ToolCallSyntax::KeyValueXml: {
      if (auto calls = jsonCalls(block)) return calls;
      const size_t end = block.find("<arg_key>");
      const std::string name(trimmed(block.substr(0, end)));
      if (name.empty()) return std::nullopt;
      std::string_view rest = end == std::string_view::npos ? std::string_view() : block.substr(end);
      // </arg_key> and <arg_value> may stand on two lines.
      std::string joined;
      for (size_t at; (at = rest.find("</arg_key>")) != std::string_view::npos;) {
        joined += rest.substr(0, at);
        rest = rest.substr(at + 10);
        const size_t value = rest.find("<arg_value>");
        if (value == std::string_view::npos || !trimmed(rest.substr(0, value)).empty()) return std::nullopt;
        rest = rest.substr(value + 11);
        joined += "</arg_key><arg_value>";
      }
      joined += rest;
      return markedValues(name, joined, "<arg_key>", "</arg_key><arg_value>", "</arg_value>", schemaOf(name));
    }
    case ToolCallSyntax::Harmony:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

// Forced calls of these forms are known to the byte, so their arguments stream.
bool ToolCallReader::isForcedJson() const {
  const ToolCallSyntax syntax = m_use.form.syntax;
  return m_use.isForced && m_use.form.nameKey == "name" &&
         (syntax == ToolCallSyntax::Json || syntax == ToolCallSyntax::Tagged || syntax == ToolCallSyntax::MarkedList);
}

void ToolCallReader::push(std::string_view text) {
  if (!m_begun) {
    m_begun = true;
    m_state = m_use.form.syntax == ToolCallSyntax::Harmony ? State::Header
              : isForcedJson()                             ? State::Seek
              : !m_use.form.open.empty()                   ? State::Text
                                                           : State::Whole;
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
      return !m_use.form.open.empty() && seekMark();
    case State::Call:
      return readMarked();
    case State::Header:
      return readHeader();
    case State::Message:
      return readMessage();
    case State::Whole:
      // Text that begins like a call may be one; that shows at its end only.
      if (!m_isText && maybeCall()) return false;
      m_isText = true;
      m_text += std::exchange(m_held, {});
      return false;
  }
  return false;
}

bool ToolCallReader::maybeCall() const {
  const size_t first = m_held.find_first_not_of(kBlank);
  if (first == std::string::npos) return true;
  const std::string_view text = std::string_view(m_held).substr(first);
  switch (m_use.form.syntax) {
    case ToolCallSyntax::Pythonic:
      return text.starts_with('[');
    case ToolCallSyntax::NameLine:
      return std::any_of(m_use.names.begin(), m_use.names.end(), [&](const std::string& name) {
        const std::string line = name + "\n";
        return text.starts_with(line) || std::string_view(line).starts_with(text);
      });
    default:
      return text.starts_with('{') || text.starts_with('[');
  }
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

bool ToolCallReader::seekMark() {
  const std::string& open = m_use.form.open;
  const size_t at = m_held.find(open);
  if (at != std::string::npos) {
    // The line break before a call belongs to the call.
    std::string_view before = std::string_view(m_held).substr(0, at);
    before = before.substr(0, before.find_last_not_of(kBlank) + 1);
    addText(before);
    m_held.erase(0, at + open.size());
    m_state = State::Call;
    return true;
  }
  // Blanks at the end wait too.
  size_t kept = m_held.size() - begunAtEnd(m_held, open);
  while (kept > 0 && kBlank.find(m_held[kept - 1]) != std::string_view::npos) --kept;
  addText(std::string_view(m_held).substr(0, kept));
  m_held.erase(0, kept);
  return false;
}

bool ToolCallReader::readMarked() {
  const ToolCallForm& form = m_use.form;
  // Without a mark at the end, the next call's mark or the text's end is it.
  const std::string& mark = form.close.empty() ? form.open : form.close;
  const size_t end = m_held.find(mark);
  if (end == std::string::npos) return false;
  const std::string_view block = std::string_view(m_held).substr(0, end);
  if (!addCalls(block)) m_text += form.open + std::string(block) + form.close;
  m_held.erase(0, end + (form.close.empty() ? 0 : mark.size()));
  m_state = State::Text;
  return true;
}

// The block's calls are taken; false: it is something else.
bool ToolCallReader::addCalls(std::string_view block) {
  const Calls calls = callsIn(block, m_use);
  if (!calls) return false;
  for (const Call& call : *calls)
    if (std::find(m_use.names.begin(), m_use.names.end(), call.name) == m_use.names.end()) return false;
  for (const Call& call : *calls) {
    if (!m_use.parallel && m_calls > 0) break;
    m_parts.push_back({m_calls++, call.name, call.arguments});
  }
  return true;
}

// ---- Harmony: <|channel|>NAME to=RECIPIENT <|constrain|>json<|message|>TEXT<|end|><|start|>assistant…

bool ToolCallReader::readHeader() {
  constexpr std::string_view kMessage = "<|message|>", kChannel = "<|channel|>", kTo = "to=functions.";
  const size_t at = m_held.find(kMessage);
  if (at == std::string::npos) return false;
  const std::string_view header = std::string_view(m_held).substr(0, at);
  auto wordAt = [&](size_t from) { return std::string(header.substr(from, header.find_first_of(" <\n", from) - from)); };
  const size_t channel = header.find(kChannel), to = header.find(kTo);
  m_channel = channel == std::string_view::npos ? "final" : wordAt(channel + kChannel.size());
  m_inCall = false;
  if (to != std::string_view::npos && m_use.reads && (m_use.parallel || m_calls == 0)) {
    m_inCall = true;
    m_parts.push_back({m_calls++, wordAt(to + kTo.size()), {}});
  }
  m_held.erase(0, at + kMessage.size());
  m_state = State::Message;
  return true;
}

bool ToolCallReader::readMessage() {
  // Whatever mark ends it.
  size_t end = std::string::npos, length = 0, hold = 0;
  for (const std::string_view mark : {"<|end|>", "<|call|>", "<|return|>", "<|start|>"}) {
    const size_t at = m_held.find(mark);
    if (at < end) end = at, length = mark == "<|start|>" ? 0 : mark.size();
    hold = std::max(hold, begunAtEnd(m_held, mark));
  }
  const size_t count = end == std::string::npos ? m_held.size() - hold : end;
  const std::string text = m_held.substr(0, count);
  if (m_inCall && !text.empty())
    m_parts.push_back({m_calls - 1, {}, text});
  else if (m_channel == "analysis")
    m_reasoning += text;
  else if (!m_inCall)
    m_text += text;
  m_held.erase(0, end == std::string::npos ? count : end + length);
  if (end == std::string::npos) return false;
  m_state = State::Header;
  return true;
}

void ToolCallReader::finish() {
  if (m_use.form.syntax == ToolCallSyntax::Harmony) {
    if (m_state == State::Message) {
      const std::string held = std::exchange(m_held, {});
      if (m_inCall)
        m_parts.push_back({m_calls - 1, {}, held});
      else
        (m_channel == "analysis" ? m_reasoning : m_text) += held;
    }
    return;
  }
  const std::string held = std::exchange(m_held, {});
  if (isForcedJson() || !m_begun) return;
  if (m_state == State::Call) {
    if (!addCalls(held)) m_text += m_use.form.open + held;
  } else if (m_state == State::Whole && !m_isText && addCalls(held)) {
    return;
  } else {
    addText(held);
  }
}

std::string ToolCallReader::takeReasoning() { return std::exchange(m_reasoning, {}); }
std::string ToolCallReader::takeText() { return std::exchange(m_text, {}); }
std::vector<ToolCallReader::Part> ToolCallReader::takeParts() { return std::exchange(m_parts, {}); }

// ---- reasoning

std::string ReasoningReader::push(std::string_view text) {
  if (m_state == State::Answer) return std::string(text);
  m_held += text;
  if (m_state == State::Start) {
    const size_t first = m_held.find_first_not_of(kBlank);
    if (first == std::string::npos) return {};
    const std::string_view begun = std::string_view(m_held).substr(first);
    if (begun.starts_with(m_form.open)) {
      m_held.erase(0, first + m_form.open.size());
      m_state = State::Inside;
    } else if (std::string_view(m_form.open).starts_with(begun)) {
      return {};
    } else {
      m_state = State::Answer;
      return std::exchange(m_held, {});
    }
  }
  if (m_state == State::Inside) {
    const size_t end = m_held.find(m_form.close);
    size_t count = end;
    if (end == std::string::npos) {
      count = m_held.size() - begunAtEnd(m_held, m_form.close);
      while (count > 0 && kBlank.find(m_held[count - 1]) != std::string_view::npos) --count;
    }
    std::string_view part = std::string_view(m_held).substr(0, count);
    if (end != std::string::npos) part = part.substr(0, part.find_last_not_of(kBlank) + 1);
    if (!m_begun) {
      const size_t first = part.find_first_not_of(kBlank);
      part.remove_prefix(first == std::string_view::npos ? part.size() : first);
    }
    m_begun = m_begun || !part.empty();
    m_reasoning += part;
    if (end == std::string::npos) {
      m_held.erase(0, count);
      return {};
    }
    m_held.erase(0, end + m_form.close.size());
    m_state = State::After;
  }
  // Blanks between the reasoning and the answer belong to neither.
  const size_t first = m_held.find_first_not_of(kBlank);
  if (first == std::string::npos) {
    m_held.clear();
    return {};
  }
  m_state = State::Answer;
  return std::exchange(m_held, {}).substr(first);
}

std::string ReasoningReader::finish() {
  const std::string held = std::exchange(m_held, {});
  if (m_state != State::Inside) return m_state == State::After ? std::string() : held;
  m_reasoning += held;
  return {};
}

std::string ReasoningReader::takeReasoning() { return std::exchange(m_reasoning, {}); }

}  // namespace headroom::engine
