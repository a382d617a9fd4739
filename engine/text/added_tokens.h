// SPDX-License-Identifier: Apache-2.0
// Tokens beside the model's own (special ones and others): found in the text before anything else, longest first, with the
// `tokenizers` library's rules for spaces around them and for whole words.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace headroom::engine::text {

struct AddedToken {
  int32_t id;
  std::string content;
  bool special = false;
  bool singleWord = false, stripLeft = false, stripRight = false;
  bool normalized = false;  // looked for in the normalized text
};

// Finds the longest of several strings at the first place where one stands.
class StringFinder {
 public:
  void add(std::string_view text, int32_t value);  // the first of two equal texts stays
  bool empty() const { return m_nodes.size() <= 1; }
  bool find(std::string_view text, size_t from, size_t& begin, size_t& end, int32_t& value) const;

 private:
  struct Node {
    std::unordered_map<unsigned char, int32_t> children;
    int32_t value = -1;
  };
  std::vector<Node> m_nodes = std::vector<Node>(1);
  bool m_starts[256] = {};
};

class AddedTokens {
 public:
  // `normalize` spells a content as the normalizer would.
  AddedTokens(std::vector<AddedToken> tokens, const std::function<std::string(std::string)>& normalize);

  struct Piece {
    std::string_view text;
    int32_t id;  // -1: plain text
  };
  // Cuts a raw text at the tokens that are looked for before normalization, or a normalized text at the others.
  void split(std::string_view text, bool normalized, std::vector<Piece>& pieces) const;
  bool anyNormalized() const { return !m_normalized.empty(); }

  const std::vector<AddedToken>& tokens() const { return m_tokens; }
  const AddedToken* withId(int32_t id) const;
  const AddedToken* withContent(std::string_view content) const;
  bool isSpecial(std::string_view content) const { return m_special.count(std::string(content)) > 0; }

 private:
  std::vector<AddedToken> m_tokens;
  StringFinder m_raw, m_normalized;  // values are places in m_tokens
  std::unordered_map<int32_t, size_t> m_byId;
  std::unordered_map<std::string_view, size_t> m_byContent;
  std::unordered_set<std::string> m_special;
};

}  // namespace headroom::engine::text
