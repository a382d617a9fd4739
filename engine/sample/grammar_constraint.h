// SPDX-License-Identifier: Apache-2.0
// Grammars over tokens: a trie of the vocabulary's bytes, walked once for each place in a grammar, tells which tokens may come
// there.
#pragma once

#include "engine/sample/grammar.h"
#include "engine/sample/token_constraint.h"

#include <functional>

namespace headroom::engine {

// The vocabulary as a trie of bytes, laid out level by level. Immutable: any thread may use it.
class TokenTrie {
 public:
  // `bytesOf` a token's text; empty for tokens that are no text (special ones, unused ids).
  TokenTrie(int64_t vocabSize, const std::function<std::string(int32_t)>& bytesOf);
  int64_t vocabSize() const { return static_cast<int64_t>(m_bytes.size()); }
  const std::string& bytes(int32_t token) const { return m_bytes[token]; }

  struct Node {
    uint32_t firstChild = 0, children = 0, firstToken = 0, tokens = 0;
    uint8_t byte = 0;
  };
  const std::vector<Node>& nodes() const { return m_nodes; }  // the root first
  const std::vector<int32_t>& tokens() const { return m_tokens; }

 private:
  std::vector<std::string> m_bytes;  // by token
  std::vector<Node> m_nodes;
  std::vector<int32_t> m_tokens;  // by node
};

// A sequence's text follows a grammar. Special tokens never come, those that end the sequence exactly where the grammar may end.
class GrammarConstraint final : public TokenConstraint {
 public:
  // `begin`: bytes that the grammar reads before the text.
  GrammarConstraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie, std::string_view begin = {});
  void mask(std::span<float> logits, std::span<const int32_t> endTokens) override;
  void accept(int32_t token) override;
  bool isComplete() const override { return m_matcher.isComplete(m_at); }
  bool isOver() const override { return !m_matcher.canContinue(m_at); }

 private:
  using Mask = std::vector<uint64_t>;  // a bit a token
  const Mask& allowed();

  std::shared_ptr<const TokenTrie> m_trie;
  GrammarMatcher m_matcher;
  GrammarMatcher::Set m_at;
  std::unordered_map<GrammarMatcher::Set, Mask> m_masks;
  std::vector<std::pair<uint32_t, GrammarMatcher::Set>> m_open;  // scratch
};

}  // namespace headroom::engine
