// SPDX-License-Identifier: Apache-2.0
// Streams decode(): the tokens since the last clean border are decoded together with the unit before them, because some decoders
// treat the first token otherwise (a leading space is dropped); what was given out already is cut off.
#include "engine/text/tokenizer.h"
#include "engine/text/unicode.h"

#include <algorithm>

namespace headroom::engine {

std::string StreamDecoder::push(int32_t token) {
  m_pending.push_back(token);
  // The bytes at the end, as many as a character may have: do they end within one?
  std::string tail;
  for (auto id = m_pending.rbegin(); id != m_pending.rend() && tail.size() < 4; ++id)
    if (!m_skipSpecial || !m_tokenizer->isSpecial(*id)) tail.insert(0, m_tokenizer->tokenBytes(*id));
  if (text::unfinishedTail(tail)) return {};
  const std::string all = m_tokenizer->decode(m_pending, m_skipSpecial);
  const auto shared = std::mismatch(m_emitted.begin(), m_emitted.end(), all.begin(), all.end()).second - all.begin();
  std::string fresh = all.substr(static_cast<size_t>(shared));
  if (fresh.empty()) return {};
  m_emitted = all;
  if (m_context > 0) m_pending.erase(m_pending.begin(), m_pending.begin() + static_cast<std::ptrdiff_t>(m_context));
  if (m_context > 0) m_emitted = m_tokenizer->decode(m_pending, m_skipSpecial);
  m_context = m_pending.size();
  return fresh;
}

std::string StreamDecoder::flush() {
  const std::string all = m_tokenizer->decode(m_pending, m_skipSpecial);
  const auto shared = std::mismatch(m_emitted.begin(), m_emitted.end(), all.begin(), all.end()).second - all.begin();
  m_pending.clear();
  m_emitted.clear();
  m_context = 0;
  return all.substr(static_cast<size_t>(shared));
}

}  // namespace headroom::engine
