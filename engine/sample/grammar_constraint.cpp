// SPDX-License-Identifier: Apache-2.0
#include "engine/sample/grammar_constraint.h"

#include <algorithm>
#include <limits>

namespace headroom::engine {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// Steps that one mask may take. Tokens that are not reached then are left out, the longest first; what remains is still right.
constexpr uint64_t kMostWork = 4'000'000;
constexpr size_t kMostMaskBytes = 4 << 20;  // kept for one sequence

}  // namespace

TokenTrie::TokenTrie(int64_t vocabSize, const std::function<std::string(int32_t)>& bytesOf) {
  m_bytes.reserve(static_cast<size_t>(vocabSize));
  std::vector<int32_t> order;
  for (int32_t token = 0; token < vocabSize; ++token) {
    m_bytes.push_back(bytesOf(token));
    if (!m_bytes.back().empty()) order.push_back(token);
  }
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return m_bytes[a] != m_bytes[b] ? m_bytes[a] < m_bytes[b] : a < b; });
  struct Part {
    size_t begin, end, depth;  // tokens of `order` that share their first `depth` bytes
  };
  std::vector<Part> parts{{0, order.size(), 0}};
  m_nodes.emplace_back();
  for (size_t node = 0; node < m_nodes.size(); ++node) {
    const Part part = parts[node];
    size_t at = part.begin;
    m_nodes[node].firstToken = static_cast<uint32_t>(m_tokens.size());
    while (at < part.end && m_bytes[order[at]].size() == part.depth) m_tokens.push_back(order[at++]);
    m_nodes[node].tokens = static_cast<uint32_t>(m_tokens.size()) - m_nodes[node].firstToken;
    m_nodes[node].firstChild = static_cast<uint32_t>(m_nodes.size());
    while (at < part.end) {
      const char byte = m_bytes[order[at]][part.depth];
      size_t stop = at + 1;
      while (stop < part.end && m_bytes[order[stop]][part.depth] == byte) ++stop;
      m_nodes.push_back({0, 0, 0, 0, static_cast<uint8_t>(byte)});
      parts.push_back({at, stop, part.depth + 1});
      ++m_nodes[node].children;
      at = stop;
    }
  }
}

GrammarConstraint::GrammarConstraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie, std::string_view begin)
    : m_trie(std::move(trie)), m_matcher(std::move(grammar)), m_at(m_matcher.next(m_matcher.start(), begin)) {}

const GrammarConstraint::Mask& GrammarConstraint::allowed() {
  const size_t words = (static_cast<size_t>(m_trie->vocabSize()) + 63) / 64;
  if (m_masks.size() >= std::max<size_t>(kMostMaskBytes / (words * 8 + 1), 2)) {
    if (const auto found = m_masks.find(m_at); found != m_masks.end()) return found->second;
    m_masks.clear();
  }
  const auto [entry, isNew] = m_masks.try_emplace(m_at);
  Mask& mask = entry->second;
  if (!isNew) return mask;
  mask.assign(words, 0);
  const auto& nodes = m_trie->nodes();
  const auto& tokens = m_trie->tokens();
  const uint64_t begun = m_matcher.work();
  bool any = false;
  m_open.assign(1, {0, m_at});
  for (size_t i = 0; i < m_open.size(); ++i) {
    if (any && m_matcher.work() - begun > kMostWork) break;
    const auto [at, set] = m_open[i];
    const TokenTrie::Node& node = nodes[at];
    for (uint32_t child = node.firstChild; child < node.firstChild + node.children; ++child) {
      const GrammarMatcher::Set next = m_matcher.next(set, nodes[child].byte);
      if (next == GrammarMatcher::kDead) continue;
      for (uint32_t t = nodes[child].firstToken; t < nodes[child].firstToken + nodes[child].tokens; ++t) {
        mask[static_cast<size_t>(tokens[t]) / 64] |= uint64_t{1} << (tokens[t] % 64);
        any = true;
      }
      if (nodes[child].children) m_open.emplace_back(child, next);
    }
  }
  return mask;
}

void GrammarConstraint::mask(std::span<float> logits, std::span<const int32_t> endTokens) {
  const Mask& mask = allowed();
  std::vector<std::pair<int32_t, float>> ends;
  if (isComplete()) {
    for (const int32_t token : endTokens)
      if (token >= 0 && static_cast<size_t>(token) < logits.size()) ends.emplace_back(token, logits[token]);
  }
  const size_t known = std::min(logits.size(), mask.size() * 64);
  for (size_t base = 0; base < known; base += 64) {
    const uint64_t bits = mask[base / 64];
    if (bits == ~uint64_t{0}) continue;
    const size_t end = std::min(base + 64, known);
    for (size_t i = base; i < end; ++i)
      if (!(bits >> (i - base) & 1)) logits[i] = kNever;
  }
  std::fill(logits.begin() + static_cast<ptrdiff_t>(known), logits.end(), kNever);
  for (const auto& [token, logit] : ends) logits[token] = logit;
}

void GrammarConstraint::accept(int32_t token) {
  if (token < 0 || token >= m_trie->vocabSize() || m_trie->bytes(token).empty()) return;  // it ends the sequence
  m_at = m_matcher.next(m_at, m_trie->bytes(token));
  bool forgot = false;
  m_at = m_matcher.tidy(m_at, forgot);
  if (forgot) m_masks.clear();
}

}  // namespace headroom::engine
