// SPDX-License-Identifier: Apache-2.0
// Reads the event stream of a completion or a chat: when its pieces of text came, what it counted, how it ended.
#pragma once

#include "app/engine/bench/bench_statistics.h"

#include <string>
#include <string_view>

namespace headroom::app {

class StreamReader {
 public:
  // Bytes of the stream that came `seconds` after the request was sent.
  void push(std::string_view bytes, double seconds);
  bool isOver() const { return m_over; }
  int64_t pieces() const { return m_pieces; }
  // Fills in what was found. An end without its mark is an error.
  void finish(RequestRecord& record);

 private:
  void event(std::string_view data, double seconds);

  std::string m_held, m_text, m_error;
  std::optional<double> m_first;
  double m_last = 0, m_lastPiece = 0;
  std::vector<double> m_gaps;
  int64_t m_pieces = 0;
  std::optional<int64_t> m_promptTokens, m_completionTokens;
  bool m_over = false, m_finished = false;
};

// The message of an error's body: OpenAI's object, or the beginning of the text.
std::string errorMessage(std::string_view body);

}  // namespace headroom::app
