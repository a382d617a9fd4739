// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding. Short words are joined by looking for the best pair again and again; long ones through a queue, so that the
// time grows as n log n. Where no rule joins across a "▁" that follows another character, the word is cut there first: same ids,
// and the parts are short enough for the cache.
#include "engine/text/byte_level.h"
#include "engine/text/model_scratch.h"
#include "engine/text/pair_table.h"
#include "engine/text/token_model.h"
#include "engine/text/unicode.h"

#include <algorithm>
#include <array>
#include <limits>

namespace headroom::engine::text {
namespace {

constexpr std::string_view kSpace = "▁";
constexpr size_t kShort = 24;  // symbols up to which scanning beats the queue
constexpr int32_t kNone = -1;
constexpr size_t kLongestPiece = 1024;  // bytes; SentencePiece makes none of this length, and cutting grows as its square
constexpr float kNeverJoined = -std::numeric_limits<float>::infinity();

class Bpe : public TokenModel {
 public:
  Bpe(Vocabulary vocabulary, PairTable pairs, BpeOptions options, bool cutsAtSpace)
      : TokenModel(std::move(vocabulary)), m_pairs(std::move(pairs)), m_options(std::move(options)), m_cutsAtSpace(cutsAtSpace) {
    for (int byte = 0; byte < 256; ++byte) {
      m_spelled[byte] = m_vocabulary.id(byteCharacters()[byte]).value_or(kNone);
      m_fallback[byte] = m_vocabulary.id(byteToken(static_cast<unsigned char>(byte))).value_or(kNone);
      m_ascii[byte] = byte < 128 ? m_vocabulary.id(std::string(1, static_cast<char>(byte))).value_or(kNone) : kNone;
    }
    if (m_options.unknown) m_unknown = m_vocabulary.id(*m_options.unknown).value_or(kNone);
    m_everyByteSpelled = std::none_of(m_spelled.begin(), m_spelled.end(), [](int32_t id) { return id == kNone; });
    m_plain = m_options.continuingPrefix.empty() && m_options.endSuffix.empty();
  }

  bool takesRawBytes() const override { return m_plain && m_everyByteSpelled; }

  void tokenize(std::string_view word, bool rawBytes, ModelScratch& scratch, std::vector<int32_t>& ids) const override {
    if (m_cutsAtSpace && !rawBytes && !m_options.ignoreMerges) {
      size_t begin = 0;
      for (size_t at = word.find(kSpace, 1); at != std::string_view::npos; at = word.find(kSpace, at + kSpace.size())) {
        if (at == begin || word.substr(begin, at - begin).ends_with(kSpace)) continue;
        part(word.substr(begin, at - begin), rawBytes, scratch, ids);
        begin = at;
      }
      word = word.substr(begin);
    }
    part(word, rawBytes, scratch, ids);
  }

 private:
  void part(std::string_view word, bool rawBytes, ModelScratch& scratch, std::vector<int32_t>& ids) const {
    if (rawBytes && word.size() == 1) {
      ids.push_back(m_spelled[static_cast<unsigned char>(word[0])]);
      return;
    }
    const bool cached = word.size() <= WordCache::kLongestWord;
    const uint64_t hash = cached ? hashBytes(word) : 0;
    if (cached && scratch.cache.find(word, hash, ids)) return;
    const size_t before = ids.size();
    compute(word, rawBytes, scratch, ids);
    if (cached) scratch.cache.keep(word, hash, ids.data() + before, ids.size() - before);
  }

  void compute(std::string_view word, bool rawBytes, ModelScratch& scratch, std::vector<int32_t>& ids) const {
    if (m_options.ignoreMerges) {
      const auto whole = rawBytes ? m_vocabulary.id(spellBytes(word)) : m_vocabulary.id(word);
      if (whole) {
        ids.push_back(*whole);
        return;
      }
    }
    auto& symbols = scratch.symbols;
    symbols.clear();
    if (rawBytes)
      for (char byte : word) symbols.push_back({m_spelled[static_cast<unsigned char>(byte)], 0, 0, 1});
    else
      spell(word, symbols);
    if (symbols.size() <= kShort)
      joinByScanning(symbols);
    else
      joinByQueue(symbols, scratch.queue);
    for (const Symbol& symbol : symbols)
      if (symbol.bytes) ids.push_back(symbol.id);
  }

  // One symbol a character; unknown ones become bytes, the unknown token, or nothing.
  void spell(std::string_view word, std::vector<Symbol>& symbols) const {
    bool pending = false;  // an unknown token not yet written
    for (size_t at = 0; at < word.size();) {
      const size_t start = at;
      nextCharacter(word, at);
      const std::string_view character = word.substr(start, at - start);
      int32_t id;
      std::string_view written = character;
      std::string affixed;
      if (m_plain) {
        id = character.size() == 1 ? m_ascii[static_cast<unsigned char>(character[0])]
                                   : m_vocabulary.id(character).value_or(kNone);
      } else {
        affixed =
            (start ? m_options.continuingPrefix : "") + std::string(character) + (at == word.size() ? m_options.endSuffix : "");
        written = affixed;
        id = m_vocabulary.id(affixed).value_or(kNone);
      }
      if (id != kNone) {
        if (pending) symbols.push_back({m_unknown, 0, 0, 1});
        pending = false;
        symbols.push_back({id, 0, 0, 1});
        continue;
      }
      const auto fallback = [&](char byte) { return m_fallback[static_cast<unsigned char>(byte)]; };
      if (m_options.byteFallback &&
          std::all_of(written.begin(), written.end(), [&](char byte) { return fallback(byte) != kNone; })) {
        for (char byte : written) symbols.push_back({fallback(byte), 0, 0, 1});
        continue;
      }
      if (m_unknown == kNone) continue;
      if (pending && !m_options.fuseUnknown) symbols.push_back({m_unknown, 0, 0, 1});
      pending = true;
    }
    if (pending) symbols.push_back({m_unknown, 0, 0, 1});
  }

  void joinByScanning(std::vector<Symbol>& symbols) const {
    std::array<const PairTable::Join*, kShort> joins;
    size_t count = symbols.size();
    for (size_t i = 0; i + 1 < count; ++i) joins[i] = m_pairs.find(symbols[i].id, symbols[i + 1].id);
    while (true) {
      size_t best = count;
      uint32_t rank = ~0u;
      for (size_t i = 0; i + 1 < count; ++i)
        if (joins[i] && joins[i]->rank < rank) {
          rank = joins[i]->rank;
          best = i;
        }
      if (best == count) break;
      symbols[best].id = joins[best]->id;
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      --count;
      for (size_t i = best + 1; i + 1 < count; ++i) joins[i] = joins[i + 1];
      if (best + 1 < count) joins[best] = m_pairs.find(symbols[best].id, symbols[best + 1].id);
      if (best > 0) joins[best - 1] = m_pairs.find(symbols[best - 1].id, symbols[best].id);
    }
  }

  void joinByQueue(std::vector<Symbol>& symbols, std::vector<Candidate>& queue) const {
    const auto later = [](const Candidate& a, const Candidate& b) { return a.key > b.key; };
    const auto count = static_cast<int32_t>(symbols.size());
    queue.clear();
    for (int32_t i = 0; i < count; ++i) {
      symbols[i].previous = i - 1;
      symbols[i].next = i + 1 < count ? i + 1 : kNone;
      if (i + 1 < count)
        if (const auto* join = m_pairs.find(symbols[i].id, symbols[i + 1].id))
          queue.push_back({uint64_t{join->rank} << 32 | static_cast<uint32_t>(i), join->id});
    }
    std::make_heap(queue.begin(), queue.end(), later);
    const auto offer = [&](int32_t left) {
      const int32_t right = symbols[left].next;
      if (const auto* join = m_pairs.find(symbols[left].id, symbols[right].id)) {
        queue.push_back({uint64_t{join->rank} << 32 | static_cast<uint32_t>(left), join->id});
        std::push_heap(queue.begin(), queue.end(), later);
      }
    };
    while (!queue.empty()) {
      std::pop_heap(queue.begin(), queue.end(), later);
      const Candidate top = queue.back();
      queue.pop_back();
      const auto at = static_cast<int32_t>(top.key & 0xFFFFFFFFu);
      Symbol& left = symbols[at];
      if (!left.bytes || left.next == kNone) continue;
      Symbol& right = symbols[left.next];
      const auto* join = m_pairs.find(left.id, right.id);
      if (!join || join->id != top.joined) continue;  // one of the two was joined with another since
      left.id = top.joined;
      left.next = right.next;
      right.bytes = 0;
      if (left.next != kNone) symbols[left.next].previous = at;
      if (left.previous != kNone) offer(left.previous);
      if (left.next != kNone) offer(at);
    }
  }

  PairTable m_pairs;
  BpeOptions m_options;
  bool m_cutsAtSpace, m_everyByteSpelled = false, m_plain = true;
  int32_t m_unknown = kNone;
  std::array<int32_t, 256> m_spelled, m_fallback, m_ascii;
};

}  // namespace

Result<std::unique_ptr<TokenModel>> makeBpeModel(Vocabulary vocabulary,
                                                 const std::vector<std::pair<std::string, std::string>>& merges,
                                                 BpeOptions options) {
  PairTable pairs(merges.size());
  const size_t prefix = options.continuingPrefix.size();
  bool cutsAtSpace = options.continuingPrefix.empty() && options.endSuffix.empty() && vocabulary.id(kSpace);
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto leftId = vocabulary.id(left), rightId = vocabulary.id(right);
    joined = left;
    joined += std::string_view(right).substr(std::min(prefix, right.size()));
    const auto joinedId = vocabulary.id(joined);
    if (!leftId || !rightId || !joinedId)
      return failure(fmt::format("tokenizer merge {}", rank), fmt::format("\"{}\" and \"{}\"", left, right),
                     "spellings of the vocabulary that join to one");
    pairs.set(*leftId, *rightId, {static_cast<uint32_t>(rank), *joinedId});
    if (right.starts_with(kSpace) && !left.ends_with(kSpace)) cutsAtSpace = false;
  }
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(pairs), std::move(options), cutsAtSpace);
}

Result<std::unique_ptr<TokenModel>> makeScoredPairModel(Vocabulary vocabulary, const std::vector<float>& scores,
                                                        std::optional<int32_t> unknown) {
  // Ranks: the pieces by falling score; equal scores share one, so that the leftmost pair comes first.
  std::vector<int32_t> pieces;
  for (int32_t id = 0; id < vocabulary.idsEnd() && static_cast<size_t>(id) < scores.size(); ++id)
    if (vocabulary.has(id) && scores[id] > kNeverJoined && vocabulary.id(vocabulary.spelling(id)) == id) pieces.push_back(id);
  std::stable_sort(pieces.begin(), pieces.end(), [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  const auto isPiece = [&](std::optional<int32_t> id) {
    return id && static_cast<size_t>(*id) < scores.size() && scores[*id] > kNeverJoined;
  };
  // Every cut of a piece into two others.
  struct Cut {
    int32_t left, right;
    PairTable::Join join;
  };
  std::vector<Cut> cuts;
  bool cutsAtSpace = vocabulary.id(kSpace).has_value();
  uint32_t rank = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i && scores[pieces[i]] < scores[pieces[i - 1]]) ++rank;
    const std::string_view piece = vocabulary.spelling(pieces[i]);
    if (piece.size() > kLongestPiece) continue;
    for (size_t at = 0; at < piece.size();) {
      nextCharacter(piece, at);
      const std::string_view left = piece.substr(0, at), right = piece.substr(at);
      const auto leftId = vocabulary.id(left), rightId = vocabulary.id(right);
      if (!isPiece(leftId) || !isPiece(rightId)) continue;
      cuts.push_back({*leftId, *rightId, {rank, pieces[i]}});
      if (right.starts_with(kSpace) && !left.ends_with(kSpace)) cutsAtSpace = false;
    }
  }
  PairTable pairs(cuts.size());
  for (const Cut& cut : cuts) pairs.set(cut.left, cut.right, cut.join);
  BpeOptions options;
  if (unknown && vocabulary.has(*unknown)) options.unknown = vocabulary.spelling(*unknown);
  options.fuseUnknown = true;
  options.byteFallback = true;
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(pairs), std::move(options), cutsAtSpace);
}

}  // namespace headroom::engine::text
