// SPDX-License-Identifier: Apache-2.0
// Prompt lookup decoding: https://github.com/apoorvumang/prompt-lookup-decoding
#include "engine/schedule/prompt_lookup.h"

#include <algorithm>

namespace headroom::engine {

void PromptLookup::propose(std::span<const int32_t> text, int64_t most, std::vector<int32_t>& draft) {
  draft.clear();
  if (m_pause > 0) {
    --m_pause;
    return;
  }
  const auto size = static_cast<int64_t>(text.size()), count = std::min(m_length, most);
  if (count <= 0) return;
  const int32_t last = text[static_cast<size_t>(size - 1)];
  int64_t longest = kLeastMatch - 1, follows = -1;
  for (int64_t end = size - 2; end >= std::max(kLeastMatch - 1, size - kLookBack) && longest < kLongestMatch; --end) {
    if (text[static_cast<size_t>(end)] != last) continue;
    int64_t match = 1;
    while (match < kLongestMatch && match <= end && text[static_cast<size_t>(end - match)] == text[static_cast<size_t>(size - 1 - match)])
      ++match;
    if (match <= longest) continue;
    longest = match;
    follows = end + 1;
  }
  if (follows < 0) return;
  // Past the end of the text the guess repeats itself, as a text of a short period does.
  for (int64_t i = follows; static_cast<int64_t>(draft.size()) < count; ++i)
    draft.push_back(i < size ? text[static_cast<size_t>(i)] : draft[static_cast<size_t>(i - size)]);
}

void PromptLookup::learn(int64_t drafted, int64_t accepted) {
  m_recent += (static_cast<double>(accepted) / static_cast<double>(drafted) - m_recent) / 4;
  m_misses = accepted > 0 ? 0 : m_misses + 1;
  if (accepted == drafted) {
    m_length = 2 * drafted;
    m_nextPause = kFirstPause;
  } else {
    m_length = accepted + 1;
  }
  if (m_misses < 2 && m_recent >= 0.4) return;
  m_pause = m_nextPause;
  m_nextPause = std::min(kLongestPause, 2 * m_nextPause);
  m_length = 2;
  m_misses = 0;
  m_recent = 1.0;
}

}  // namespace headroom::engine
