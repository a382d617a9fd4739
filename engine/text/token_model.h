// SPDX-License-Identifier: Apache-2.0
// What turns one word into token ids: BPE, Unigram, WordPiece, WordLevel. Immutable: any thread may use one, each with its own
// scratch.
#pragma once

#include "core/result.h"

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headroom::engine::text {

// Spelling and id of every token. Spellings live in one place; ids may have gaps.
class Vocabulary {
 public:
  void add(std::string spelling, int32_t id);
  std::optional<int32_t> id(std::string_view spelling) const {
    const auto found = m_ids.find(spelling);
    return found == m_ids.end() ? std::nullopt : std::optional(found->second);
  }
  bool has(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < m_spellings.size() && m_spellings[id]; }
  const std::string& spelling(int32_t id) const { return *m_spellings[id]; }
  int64_t entries() const { return static_cast<int64_t>(m_ids.size()); }
  int64_t idsEnd() const { return static_cast<int64_t>(m_spellings.size()); }

 private:
  std::unordered_map<std::string_view, int32_t> m_ids;  // views of m_spellings
  std::vector<std::unique_ptr<const std::string>> m_spellings;
};

// Work space of one encode() call, kept for the next one: the ids of short words seen, and arrays.
struct ModelScratch;

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of a word. `rawBytes`: the word is bytes that are to be spelled GPT-2's way.
  virtual void tokenize(std::string_view word, bool rawBytes, ModelScratch& scratch, std::vector<int32_t>& ids) const = 0;
  virtual bool takesRawBytes() const { return false; }
  const Vocabulary& vocabulary() const { return m_vocabulary; }

 protected:
  explicit TokenModel(Vocabulary vocabulary) : m_vocabulary(std::move(vocabulary)) {}
  Vocabulary m_vocabulary;
};

// The "model" member of tokenizer.json.
Result<std::unique_ptr<TokenModel>> makeTokenModel(const nlohmann::json& json);

// Byte pairs: merge rules by rank, as GPT-2 and the `tokenizers` library apply them.
struct BpeOptions {
  std::optional<std::string> unknown;
  std::string continuingPrefix, endSuffix;
  bool fuseUnknown = false, byteFallback = false, ignoreMerges = false;
};
Result<std::unique_ptr<TokenModel>> makeBpeModel(Vocabulary vocabulary,
                                                 const std::vector<std::pair<std::string, std::string>>& merges,
                                                 BpeOptions options);
// SentencePiece's BPE: joins the two neighbours whose joined spelling has the highest score, the leftmost of equals; characters
// that are no pieces become bytes ("<0x0A>"). A token whose score is -infinity takes no part in joins.
Result<std::unique_ptr<TokenModel>> makeScoredPairModel(Vocabulary vocabulary, const std::vector<float>& scores,
                                                        std::optional<int32_t> unknown);
// The likeliest path through the pieces. A piece whose score is not finite is no part of a path.
Result<std::unique_ptr<TokenModel>> makeUnigramModel(Vocabulary vocabulary, std::vector<double> scores,
                                                     std::optional<int32_t> unknown, bool byteFallback);
// Longest match from the left.
Result<std::unique_ptr<TokenModel>> makeWordPieceModel(Vocabulary vocabulary, std::string unknown, std::string prefix,
                                                       int64_t longestWord);
Result<std::unique_ptr<TokenModel>> makeWordLevelModel(Vocabulary vocabulary, std::string unknown);

// "<0x0A>" and its byte.
std::string byteToken(unsigned char byte);
std::optional<unsigned char> byteOfToken(std::string_view spelling);

}  // namespace headroom::engine::text
