// SPDX-License-Identifier: Apache-2.0
// Unigram (SentencePiece): the path through the pieces with the greatest sum of scores. Kudo 2018,
// https://arxiv.org/abs/1804.10959
#include "engine/text/model_scratch.h"
#include "engine/text/token_model.h"
#include "engine/text/unicode.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headroom::engine::text {
namespace {

constexpr double kUnknownPenalty = 10.0;

// The pieces as a byte trie with children side by side.
class PieceTrie {
 public:
  PieceTrie(const Vocabulary& vocabulary, const std::vector<double>& scores) {
    std::vector<std::pair<std::string_view, int32_t>> sorted;
    for (int32_t id = 0; id < vocabulary.idsEnd(); ++id)
      if (vocabulary.has(id) && !vocabulary.spelling(id).empty() && std::isfinite(scores[id]))
        sorted.emplace_back(vocabulary.spelling(id), *vocabulary.id(vocabulary.spelling(id)));
    std::sort(sorted.begin(), sorted.end());
    m_nodes.emplace_back();
    std::vector<Range> level = {{0, 0, sorted.size()}};
    for (size_t depth = 0; !level.empty(); ++depth) {
      std::vector<Range> below;
      for (const Range& range : level) {
        size_t begin = range.begin;
        while (begin < range.end && sorted[begin].first.size() == depth) m_nodes[range.node].id = sorted[begin++].second;
        m_nodes[range.node].first = static_cast<uint32_t>(m_nodes.size());
        while (begin < range.end) {
          const char byte = sorted[begin].first[depth];
          size_t end = begin;
          while (end < range.end && sorted[end].first[depth] == byte) ++end;
          below.push_back({m_nodes.size(), begin, end});
          m_nodes.push_back({static_cast<unsigned char>(byte)});
          begin = end;
        }
        m_nodes[range.node].children = static_cast<uint16_t>(m_nodes.size() - m_nodes[range.node].first);
      }
      level = std::move(below);
    }
  }

  // Calls found(length, id) for every piece that begins `text`, shortest first.
  template <class Found>
  void prefixes(std::string_view text, Found found) const {
    const Node* node = &m_nodes[0];
    for (size_t depth = 0; depth < text.size(); ++depth) {
      const auto byte = static_cast<unsigned char>(text[depth]);
      const Node* begin = m_nodes.data() + node->first;
      const Node* end = begin + node->children;
      node = std::lower_bound(begin, end, byte, [](const Node& a, unsigned char b) { return a.byte < b; });
      if (node == end || node->byte != byte) return;
      if (node->id >= 0) found(depth + 1, node->id);
    }
  }

 private:
  struct Range {
    size_t node, begin, end;
  };
  struct Node {
    unsigned char byte = 0;
    uint16_t children = 0;
    uint32_t first = 0;
    int32_t id = -1;
  };
  std::vector<Node> m_nodes;
};

class Unigram : public TokenModel {
 public:
  Unigram(Vocabulary vocabulary, std::vector<double> scores, std::optional<int32_t> unknown, bool byteFallback)
      : TokenModel(std::move(vocabulary)),
        m_trie(m_vocabulary, scores),
        m_scores(std::move(scores)),
        m_unknown(unknown),
        m_byteFallback(byteFallback) {
    double lowest = std::numeric_limits<double>::infinity();
    for (double score : m_scores)
      if (std::isfinite(score)) lowest = std::min(lowest, score);
    m_unknownScore = (std::isfinite(lowest) ? lowest : 0) - kUnknownPenalty;
    for (int byte = 0; byte < 256; ++byte)
      m_bytes[byte] = m_vocabulary.id(byteToken(static_cast<unsigned char>(byte))).value_or(-1);
  }

  void tokenize(std::string_view word, bool, ModelScratch& scratch, std::vector<int32_t>& ids) const override {
    const bool cached = word.size() <= WordCache::kLongestWord;
    const uint64_t hash = cached ? hashBytes(word) : 0;
    if (cached && scratch.cache.find(word, hash, ids)) return;
    const size_t before = ids.size();
    findPath(word, scratch);
    writePath(word, scratch, ids);
    if (cached) scratch.cache.keep(word, hash, ids.data() + before, ids.size() - before);
  }

 private:
  static constexpr int32_t kUnreached = -1;

  // scratch.starts/pieces: for each end, where its best last piece begins and which it is (-1: unknown).
  void findPath(std::string_view word, ModelScratch& scratch) const {
    scratch.scores.assign(word.size() + 1, 0.0);
    scratch.starts.assign(word.size() + 1, kUnreached);
    scratch.pieces.assign(word.size() + 1, -1);
    const auto offer = [&](size_t begin, size_t end, double score, int32_t piece) {
      if (scratch.starts[end] != kUnreached && score <= scratch.scores[end]) return;
      scratch.scores[end] = score;
      scratch.starts[end] = static_cast<int32_t>(begin);
      scratch.pieces[end] = piece;
    };
    for (size_t at = 0; at < word.size();) {
      const size_t length = std::min<size_t>(utf8Length(static_cast<unsigned char>(word[at])), word.size() - at);
      bool single = false;
      m_trie.prefixes(word.substr(at), [&](size_t bytes, int32_t id) {
        offer(at, at + bytes, m_scores[id] + scratch.scores[at], id);
        single |= bytes == length;
      });
      if (!single) offer(at, at + length, m_unknownScore + scratch.scores[at], -1);
      at += length;
    }
  }

  void writePath(std::string_view word, const ModelScratch& scratch, std::vector<int32_t>& ids) const {
    const size_t before = ids.size();
    const auto isUnknown = [&](int32_t piece) { return piece < 0 || piece == m_unknown; };
    for (size_t end = word.size(); end > 0;) {
      size_t begin = scratch.starts[end];
      if (!isUnknown(scratch.pieces[end])) {
        ids.push_back(scratch.pieces[end]);
      } else {
        while (begin > 0 && isUnknown(scratch.pieces[begin]))
          begin = scratch.starts[begin];  // a run of unknown characters is one
        writeUnknown(word.substr(begin, end - begin), ids);
      }
      end = begin;
    }
    std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
  }

  // Appended in reverse order, as the path is walked from its end.
  void writeUnknown(std::string_view run, std::vector<int32_t>& ids) const {
    if (const auto whole = m_vocabulary.id(run)) {
      ids.push_back(*whole);
      return;
    }
    const bool spelled = m_byteFallback && std::all_of(run.begin(), run.end(),
                                                       [&](char byte) { return m_bytes[static_cast<unsigned char>(byte)] >= 0; });
    if (spelled)
      for (auto byte = run.rbegin(); byte != run.rend(); ++byte) ids.push_back(m_bytes[static_cast<unsigned char>(*byte)]);
    else if (m_unknown)
      ids.push_back(*m_unknown);
  }

  PieceTrie m_trie;
  std::vector<double> m_scores;
  std::optional<int32_t> m_unknown;
  bool m_byteFallback;
  double m_unknownScore = 0;
  int32_t m_bytes[256];
};

}  // namespace

Result<std::unique_ptr<TokenModel>> makeUnigramModel(Vocabulary vocabulary, std::vector<double> scores,
                                                     std::optional<int32_t> unknown, bool byteFallback) {
  if (scores.empty()) return failure("tokenizer model vocab", "no pieces", "at least one");
  return std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), unknown, byteFallback);
}

}  // namespace headroom::engine::text
