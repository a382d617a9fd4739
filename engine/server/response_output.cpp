// SPDX-License-Identifier: Apache-2.0
#include "engine/server/response_output.h"

#include "engine/server/api_error.h"
#include "engine/server/generation.h"
#include "engine/server/sse.h"

#include <fmt/format.h>

namespace headroom::engine {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kAtFirstPart = R"(,"content_index":0)";

Json logprobsList(const std::string& entries) { return Json::parse("[" + entries + "]", nullptr, false); }

}  // namespace

void ResponseOutput::addReasoning(std::string_view text) {
  if (!text.empty()) append(itemOf(Kind::Reasoning), text);
}

void ResponseOutput::addText(std::string_view text, std::string_view logprobs) {
  if (text.empty()) return;
  Item& item = itemOf(Kind::Message);
  append(item, text);
  if (logprobs.empty()) return;
  for (std::string* entries : {&item.logprobs, &m_deltaLogprobs}) {
    if (!entries->empty()) *entries += ',';
    *entries += logprobs;
  }
}

void ResponseOutput::addCall(const ToolCallReader::Part& part) { append(itemOf(Kind::Call, &part), part.arguments); }

void ResponseOutput::append(Item& item, std::string_view text) {
  item.text += text;
  if (m_streams) m_delta += text;
}

// The last item where it goes on, else a new one.
ResponseOutput::Item& ResponseOutput::itemOf(Kind kind, const ToolCallReader::Part* call) {
  if (!m_items.empty() && m_items.back().kind == kind && (!call || call->index == m_call)) return m_items.back();
  closeItem("completed");
  Item item{kind, randomId(kind == Kind::Reasoning ? "rs_" : kind == Kind::Message ? "msg_" : "fc_"), {}, {}, {}, {}};
  if (call) {
    item.callId = randomId("call_");
    item.name = call->name;
    m_call = call->index;
  }
  m_items.push_back(std::move(item));
  if (m_streams) {
    event("response.output_item.added",
          fmt::format(R"("output_index":{},"item":{})", m_items.size() - 1, dumpJson(jsonOf(m_items.back()))));
    if (kind != Kind::Call)
      event("response.content_part.added",
            fmt::format(R"({}{},"part":{})", place(), kAtFirstPart, dumpJson(partOf(m_items.back()))));
  }
  return m_items.back();
}

void ResponseOutput::finish(std::string_view status) {
  if (m_items.empty()) itemOf(Kind::Message);
  closeItem(status);
}

void ResponseOutput::closeItem(std::string_view status) {
  if (m_items.empty() || m_items.back().status != "in_progress") return;
  flushDelta();
  Item& item = m_items.back();
  item.status = status;
  if (!m_streams) return;
  switch (item.kind) {
    case Kind::Reasoning:
      event("response.reasoning_text.done", fmt::format(R"({}{},"text":{})", place(), kAtFirstPart, jsonString(item.text)));
      break;
    case Kind::Message:
      event("response.output_text.done",
            fmt::format(R"({}{},"text":{},"logprobs":[{}])", place(), kAtFirstPart, jsonString(item.text), item.logprobs));
      break;
    case Kind::Call:
      event("response.function_call_arguments.done",
            fmt::format(R"({},"name":{},"arguments":{})", place(), jsonString(item.name), jsonString(item.text)));
      break;
  }
  if (item.kind != Kind::Call)
    event("response.content_part.done", fmt::format(R"({}{},"part":{})", place(), kAtFirstPart, dumpJson(partOf(item))));
  event("response.output_item.done", fmt::format(R"("output_index":{},"item":{})", m_items.size() - 1, dumpJson(jsonOf(item))));
}

void ResponseOutput::flushDelta() {
  if (m_delta.empty()) return;
  const std::string delta = jsonString(std::exchange(m_delta, {})), logprobs = std::exchange(m_deltaLogprobs, {});
  switch (m_items.back().kind) {
    case Kind::Reasoning:
      return event("response.reasoning_text.delta", fmt::format(R"({}{},"delta":{})", place(), kAtFirstPart, delta));
    case Kind::Message:
      return event("response.output_text.delta",
                   fmt::format(R"({}{},"delta":{},"logprobs":[{}])", place(), kAtFirstPart, delta, logprobs));
    case Kind::Call:
      return event("response.function_call_arguments.delta", fmt::format(R"({},"delta":{})", place(), delta));
  }
}

void ResponseOutput::tell(std::string_view type, std::string_view responseJson) {
  event(type, fmt::format(R"("response":{})", responseJson));
}

void ResponseOutput::event(std::string_view type, std::string_view members) {
  m_events += sseEvent(fmt::format(R"({{"type":"{}","sequence_number":{},{}}})", type, m_sequence++, members), type);
}

std::string ResponseOutput::takeEvents() {
  flushDelta();
  return std::exchange(m_events, {});
}

std::string ResponseOutput::place() const {
  return fmt::format(R"("item_id":"{}","output_index":{})", m_items.back().id, m_items.size() - 1);
}

Json ResponseOutput::partOf(const Item& item) {
  if (item.kind == Kind::Reasoning) return {{"type", "reasoning_text"}, {"text", validUtf8(item.text)}};
  return {{"type", "output_text"},
          {"text", validUtf8(item.text)},
          {"annotations", Json::array()},
          {"logprobs", logprobsList(item.logprobs)}};
}

Json ResponseOutput::jsonOf(const Item& item) const {
  // An item that has just begun has no parts yet.
  Json content = Json::array();
  if (item.kind != Kind::Call && (item.status != "in_progress" || !item.text.empty())) content.push_back(partOf(item));
  switch (item.kind) {
    case Kind::Reasoning:
      return {{"id", item.id},      {"type", "reasoning"},          {"summary", Json::array()},
              {"content", content}, {"encrypted_content", nullptr}, {"status", item.status}};
    case Kind::Message:
      return {{"id", item.id}, {"type", "message"}, {"role", "assistant"}, {"status", item.status}, {"content", content}};
    case Kind::Call:
      return {{"id", item.id},     {"type", "function_call"},           {"call_id", item.callId},
              {"name", item.name}, {"arguments", validUtf8(item.text)}, {"status", item.status}};
  }
  return {};
}

Json ResponseOutput::items() const {
  Json items = Json::array();
  for (const Item& item : m_items) items.push_back(jsonOf(item));
  return items;
}

std::vector<std::string> ResponseOutput::itemIds() const {
  std::vector<std::string> ids;
  for (const Item& item : m_items) ids.push_back(item.id);
  return ids;
}

}  // namespace headroom::engine
