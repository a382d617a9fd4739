// SPDX-License-Identifier: Apache-2.0
#include "app/engine/bench/stream_reader.h"

#include "core/json_text.h"

#include <nlohmann/json.hpp>

namespace headroom::app {
namespace {

using Json = nlohmann::json;

std::string textAt(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<int64_t> countAt(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? std::optional(found->get<int64_t>()) : std::nullopt;
}

// What a choice brings: its text, or that of a delta; calls and reasoning count too.
std::string pieceOf(const Json& choice) {
  const auto delta = choice.find("delta");
  if (delta == choice.end() || !delta->is_object()) return textAt(choice, "text");
  std::string piece = textAt(*delta, "reasoning_content");
  if (piece.empty()) piece = textAt(*delta, "reasoning");
  piece += textAt(*delta, "content");
  if (const auto calls = delta->find("tool_calls"); calls != delta->end() && calls->is_array() && !calls->empty())
    piece += calls->dump();
  return piece;
}

}  // namespace

std::string errorMessage(std::string_view body) {
  const Json json = readJsonText<Json>(body);
  if (json.is_object()) {
    const auto error = json.find("error");
    if (error != json.end() && error->is_object() && !textAt(*error, "message").empty()) return textAt(*error, "message");
    if (error != json.end() && error->is_string()) return error->get<std::string>();
    for (const char* name : {"message", "detail"})
      if (const std::string text = textAt(json, name); !text.empty()) return text;
  }
  return std::string(body.substr(0, 200));
}

void StreamReader::push(std::string_view bytes, double seconds) {
  m_held += bytes;
  size_t begin = 0;
  for (size_t end; (end = m_held.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line(m_held.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data:")) continue;
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    event(line, seconds);
  }
  m_held.erase(0, begin);
}

void StreamReader::event(std::string_view data, double seconds) {
  if (m_over) return;
  if (data == "[DONE]") {
    m_over = true;
    return;
  }
  const Json json = readJsonText<Json>(data);
  if (!json.is_object()) {
    if (m_error.empty()) m_error = "an event of the stream is no JSON object";
    return;
  }
  if (json.contains("error") && !json["error"].is_null()) {
    m_error = errorMessage(data);
    return;
  }
  if (const auto usage = json.find("usage"); usage != json.end() && usage->is_object()) {
    if (const auto count = countAt(*usage, "prompt_tokens")) m_promptTokens = count;
    if (const auto count = countAt(*usage, "completion_tokens")) m_completionTokens = count;
  }
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || choices->empty() || !choices->front().is_object()) return;
  m_last = seconds;
  const Json& choice = choices->front();
  if (const auto reason = choice.find("finish_reason"); reason != choice.end() && reason->is_string()) m_finished = true;
  const std::string piece = pieceOf(choice);
  if (piece.empty()) return;
  if (m_first)
    m_gaps.push_back(seconds - m_lastPiece);
  else
    m_first = seconds;
  m_lastPiece = seconds;
  ++m_pieces;
  m_text += piece;
}

void StreamReader::finish(RequestRecord& record) {
  record.ttft = m_first;
  record.itl = std::move(m_gaps);
  record.latency = m_last;
  record.text = std::move(m_text);
  record.promptTokens = m_promptTokens.value_or(record.promptTokens);
  record.outputTokens = m_completionTokens.value_or(m_pieces);
  record.countedByServer = m_completionTokens.has_value();
  if (!m_error.empty())
    record.error = m_error;
  else if (!m_over && !m_finished)
    record.error = "the stream ended before its last event";
}

}  // namespace headroom::app
