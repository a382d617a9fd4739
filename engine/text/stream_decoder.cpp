// SPDX-License-Identifier: Apache-2.0
// Streams decode(): the tokens since the last clean border are decoded together with the unit before them, because some decoders
// treat the first token otherwise (a leading space is dropped); what was given out already is cut off. Only bytes that begin a
// character which may still become whole are held back.
#include "engine/text/tokenizer.h"
#include "engine/text/unicode.h"

#include <algorithm>

namespace headroom::engine {
namespace {
constexpr std::string_view kReplacementText = "\xEF\xBF\xBD";
}

std::string StreamDecoder::bytes(int32_t token) const {
  return m_skipSpecial && m_tokenizer->isSpecial(token) ? std::string() : m_tokenizer->tokenBytes(token);
}

// Without what the decoder makes of the last `held` bytes: one or as many U+FFFD.
std::string StreamDecoder::textOfPending(size_t held) const {
  std::string text = m_tokenizer->decode(m_pending, m_skipSpecial);
  for (; held > 0 && text.ends_with(kReplacementText); --held) text.resize(text.size() - kReplacementText.size());
  return text;
}

std::string StreamDecoder::beyondEmitted(const std::string& text) const {
  size_t shared =
      static_cast<size_t>(std::mismatch(m_emitted.begin(), m_emitted.end(), text.begin(), text.end()).second - text.begin());
  while (shared > 0 && shared < text.size() && (static_cast<unsigned char>(text[shared]) & 0xC0) == 0x80) --shared;
  return text.substr(shared);
}

std::string StreamDecoder::push(int32_t token) {
  m_pending.push_back(token);
  // The bytes at the end, as many as a character may have: do they end within one?
  std::string tail;
  for (auto id = m_pending.rbegin(); id != m_pending.rend() && tail.size() < 4; ++id) tail.insert(0, bytes(*id));
  const size_t held = text::unfinishedTail(tail);
  // The tokens before `whole` lie before the held bytes.
  size_t whole = m_pending.size(), behind = 0;
  while (whole > 0 && behind < held) behind += bytes(m_pending[--whole]).size();
  if (held > 0 && whole <= m_context && behind == held) return {};  // nothing new before them
  std::string all = textOfPending(held);
  std::string fresh = beyondEmitted(all);
  if (fresh.empty()) return {};
  m_emitted = std::move(all);
  if (whole <= m_context) return fresh;
  if (m_context > 0) {
    m_pending.erase(m_pending.begin(), m_pending.begin() + static_cast<std::ptrdiff_t>(m_context));
    whole -= m_context;
    m_emitted = textOfPending(held);
  }
  m_context = whole;
  return fresh;
}

std::string StreamDecoder::flush() {
  std::string rest = beyondEmitted(textOfPending(0));
  m_pending.clear();
  m_emitted.clear();
  m_context = 0;
  return rest;
}

}  // namespace headroom::engine
