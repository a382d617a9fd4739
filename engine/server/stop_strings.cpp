// SPDX-License-Identifier: Apache-2.0
#include "engine/server/stop_strings.h"

#include <algorithm>
#include <utility>

namespace headroom::engine {
namespace {

// Length of the longest end of `text` that is a proper beginning of `stop`.
size_t overlap(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length)
    if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
  return 0;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include) : m_stops(std::move(stops)), m_include(include) {
  std::erase_if(m_stops, [](const std::string& stop) { return stop.empty(); });
}

std::string StopMatcher::push(std::string_view piece, bool active) {
  if (m_found) return {};
  m_held += piece;
  if (m_stops.empty() || !active) return flush();
  size_t first = std::string::npos;
  const std::string* match = nullptr;
  size_t hold = 0;
  for (const std::string& stop : m_stops) {
    const size_t at = m_held.find(stop);
    // The first to be complete, so that the cut does not depend on how the text was divided into pieces.
    const size_t end = at + stop.size();
    if (at != std::string::npos && (!match || end < first + match->size() || (end == first + match->size() && at < first)))
      first = at, match = &stop;
    hold = std::max(hold, overlap(m_held, stop));
  }
  std::string out;
  if (match) {
    m_found = *match;
    out = m_held.substr(0, first + (m_include ? match->size() : 0));
    m_held.clear();
    return out;
  }
  out = m_held.substr(0, m_held.size() - hold);
  m_held.erase(0, m_held.size() - hold);
  return out;
}

std::string StopMatcher::flush() { return std::exchange(m_held, {}); }

}  // namespace headroom::engine
