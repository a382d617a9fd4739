// SPDX-License-Identifier: Apache-2.0
// Grammars over tokens: a trie of the vocabulary's bytes, walked once for each place in a grammar, tells which tokens may come
// there.
#pragma once

#include "engine/sample/grammar.h"
#include "engine/sample/token_constraint.h"

#include <array>
#include <functional>
#include <memory>
#include <mutex>

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
    uint32_t lastToken = 0;  // behind the tokens of all that is below: they stand together
    uint16_t height = 0;     // levels below, as far as 65535 counts
    uint8_t byte = 0;
  };
  using Bytes = std::array<uint64_t, 4>;
  const Bytes& bytesBelow(uint32_t node) const { return m_bytesBelow[node]; }  // of all edges below
  const std::vector<Node>& nodes() const { return m_nodes; }                   // the root first
  const std::vector<int32_t>& tokens() const { return m_tokens; }              // in order of their text

 private:
  std::vector<std::string> m_bytes;  // by token
  std::vector<Node> m_nodes;
  std::vector<int32_t> m_tokens;
  std::vector<Bytes> m_bytesBelow;
};

// A sequence's text follows a grammar. Special tokens never come, those that end the sequence exactly where the grammar may end.
//
// A mask is made ahead by a thread of its own while the model computes the logits: prepare(), and accept() where the constraint
// is shared. mask() finds it done, waits for it, or makes it itself.
class GrammarConstraint final : public TokenConstraint, public std::enable_shared_from_this<GrammarConstraint> {
 public:
  // `begin`: bytes that the grammar reads before the text.
  GrammarConstraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie, std::string_view begin = {});
  void mask(std::span<float> logits, std::span<const int32_t> endTokens) override;
  void accept(int32_t token) override;
  bool isComplete() const override { return m_complete; }
  bool isOver() const override { return m_over; }
  void prepare();
  void prepareSoon();  // the same on the thread of its own

 private:
  using Mask = std::vector<uint64_t>;  // a bit a token
  const Mask& allowed();               // m_mutex held
  bool isWhole(uint32_t node, GrammarMatcher::Set set);

  std::shared_ptr<const TokenTrie> m_trie;
  std::mutex m_mutex;  // the matcher and the masks
  GrammarMatcher m_matcher;
  GrammarMatcher::Set m_at;
  std::unordered_map<GrammarMatcher::Set, Mask> m_masks;
  std::vector<std::pair<uint32_t, GrammarMatcher::Set>> m_open;  // scratch
  bool m_complete = false, m_over = false;                       // of m_at; the thread that samples
};

}  // namespace headroom::engine
