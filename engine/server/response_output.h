// SPDX-License-Identifier: Apache-2.0
// The output of a response as it grows: items of reasoning, text and calls in the order in which they came, and the events that
// tell a stream of them. A whole response and a stream's last one are made by the same steps.
#pragma once

#include "engine/server/tool_calls.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine {

class ResponseOutput {
 public:
  explicit ResponseOutput(bool streams) : m_streams(streams) {}
  void addReasoning(std::string_view text);
  // `logprobs`: entries of a JSON list, without the brackets.
  void addText(std::string_view text, std::string_view logprobs = {});
  void addCall(const ToolCallReader::Part& part);
  // The last item is over, as "completed" or as "incomplete". An output without items gets an empty message.
  void finish(std::string_view status);

  // An event of the response itself, such as response.created.
  void tell(std::string_view type, std::string_view responseJson);
  // Events that were not taken yet, framed for the wire.
  std::string takeEvents();

  nlohmann::ordered_json items() const;
  std::vector<std::string> itemIds() const;
  // Whether text of a message is what came last.
  bool isInMessage() const { return !m_items.empty() && m_items.back().kind == Kind::Message; }

 private:
  enum class Kind { Reasoning, Message, Call };
  struct Item {
    Kind kind;
    std::string id, callId, name;
    std::string text;  // arguments of a call
    std::string logprobs;
    std::string status = "in_progress";
  };
  Item& itemOf(Kind kind, const ToolCallReader::Part* call = nullptr);
  void append(Item& item, std::string_view text);
  void flushDelta();
  void closeItem(std::string_view status);
  nlohmann::ordered_json jsonOf(const Item& item) const;
  static nlohmann::ordered_json partOf(const Item& item);
  void event(std::string_view type, std::string_view members);
  std::string place() const;  // item_id and output_index of the last item

  const bool m_streams;
  std::vector<Item> m_items;
  size_t m_call = 0;                     // number of the call that is the last item
  std::string m_delta, m_deltaLogprobs;  // of the last item, not told yet
  std::string m_events;
  int64_t m_sequence = 0;
};

}  // namespace headroom::engine
