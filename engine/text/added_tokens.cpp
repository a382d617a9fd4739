// SPDX-License-Identifier: Apache-2.0
#include "engine/text/added_tokens.h"

#include "engine/text/unicode.h"

#include <algorithm>

namespace headroom::engine::text {

void StringFinder::add(std::string_view text, int32_t value) {
  if (text.empty()) return;
  m_starts[static_cast<unsigned char>(text[0])] = true;
  int32_t node = 0;
  for (char c : text) {
    const auto [child, isNew] =
        m_nodes[node].children.try_emplace(static_cast<unsigned char>(c), static_cast<int32_t>(m_nodes.size()));
    node = child->second;
    if (isNew) m_nodes.emplace_back();
  }
  if (m_nodes[node].value < 0) m_nodes[node].value = value;
}

bool StringFinder::find(std::string_view text, size_t from, size_t& begin, size_t& end, int32_t& value) const {
  for (size_t start = from; start < text.size(); ++start) {
    if (!m_starts[static_cast<unsigned char>(text[start])]) continue;
    int32_t node = 0;
    bool found = false;
    for (size_t at = start; at < text.size(); ++at) {
      const auto child = m_nodes[node].children.find(static_cast<unsigned char>(text[at]));
      if (child == m_nodes[node].children.end()) break;
      node = child->second;
      if (m_nodes[node].value < 0) continue;
      found = true;
      begin = start;
      end = at + 1;
      value = m_nodes[node].value;
    }
    if (found) return true;
  }
  return false;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const std::function<std::string(std::string)>& normalize)
    : m_tokens(std::move(tokens)) {
  for (size_t i = 0; i < m_tokens.size(); ++i) {
    const AddedToken& token = m_tokens[i];
    if (token.special) m_special.insert(token.content);
    m_byId[token.id] = i;
    m_byContent.try_emplace(token.content, i);
  }
  // Special tokens come first where two spell the same.
  for (bool special : {true, false})
    for (size_t i = 0; i < m_tokens.size(); ++i) {
      const AddedToken& token = m_tokens[i];
      if (token.special != special) continue;
      if (token.normalized)
        m_normalized.add(normalize(token.content), static_cast<int32_t>(i));
      else
        m_raw.add(token.content, static_cast<int32_t>(i));
    }
}

void AddedTokens::split(std::string_view text, bool normalized, std::vector<Piece>& pieces) const {
  pieces.clear();
  const StringFinder& finder = normalized ? m_normalized : m_raw;
  size_t covered = 0, begin = 0, end = 0;
  int32_t place = 0;
  for (size_t from = 0; finder.find(text, from, begin, end, place);) {
    from = end;
    const AddedToken& token = m_tokens[place];
    if (token.singleWord) {
      size_t before = begin, after = end;
      if ((begin > 0 && isWord(previousCharacter(text, before))) || (end < text.size() && isWord(nextCharacter(text, after))))
        continue;
    }
    if (token.stripLeft) {
      size_t start = begin;
      for (size_t at = begin; at > 0 && isWhitespace(previousCharacter(text, at)); start = at) {
      }
      begin = std::max(start, covered);
    }
    if (token.stripRight)
      for (size_t at = end; at < text.size() && isWhitespace(nextCharacter(text, at)); end = at) {
      }
    if (covered < begin) pieces.push_back({text.substr(covered, begin - covered), -1});
    pieces.push_back({text.substr(begin, end - begin), token.id});
    covered = end;
  }
  if (covered < text.size()) pieces.push_back({text.substr(covered), -1});
}

const AddedToken* AddedTokens::withId(int32_t id) const {
  const auto found = m_byId.find(id);
  return found == m_byId.end() ? nullptr : &m_tokens[found->second];
}

const AddedToken* AddedTokens::withContent(std::string_view content) const {
  const auto found = m_byContent.find(content);
  return found == m_byContent.end() ? nullptr : &m_tokens[found->second];
}

}  // namespace headroom::engine::text
