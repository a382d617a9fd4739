// SPDX-License-Identifier: Apache-2.0
// Finds stop strings in text that comes in pieces. Text that may be the beginning of a stop string is held back until that is
// known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine {

class StopMatcher {
 public:
  // `include`: the text that is given out ends behind the stop string, not before it.
  explicit StopMatcher(std::vector<std::string> stops = {}, bool include = false);

  // The text that can be given out now. After a match nothing more comes. While `active` is false text passes unsearched
  // (min_tokens).
  std::string push(std::string_view piece, bool active = true);
  std::string flush();  // what was held back, at the end without a match
  // The stop string that was found: the one whose end comes first, the longest of those.
  const std::optional<std::string>& found() const { return m_found; }

 private:
  std::vector<std::string> m_stops;
  bool m_include;
  std::string m_held;
  std::optional<std::string> m_found;
};

}  // namespace headroom::engine
