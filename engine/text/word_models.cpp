// SPDX-License-Identifier: Apache-2.0
// WordPiece (BERT) and WordLevel.
#include "engine/text/token_model.h"
#include "engine/text/unicode.h"

namespace headroom::engine::text {
namespace {

class WordPiece : public TokenModel {
 public:
  WordPiece(Vocabulary vocabulary, int32_t unknown, std::string prefix, int64_t longestWord)
      : TokenModel(std::move(vocabulary)), m_unknown(unknown), m_prefix(std::move(prefix)), m_longestWord(longestWord) {}

  void tokenize(std::string_view word, bool, ModelScratch&, std::vector<int32_t>& ids) const override {
    const size_t before = ids.size();
    bool known = countCharacters(word) <= m_longestWord;
    std::string spelling;
    for (size_t begin = 0; known && begin < word.size();) {
      size_t end = word.size();
      std::optional<int32_t> piece;
      while (begin < end) {
        spelling = begin ? m_prefix : "";
        spelling += word.substr(begin, end - begin);
        if ((piece = m_vocabulary.id(spelling))) break;
        previousCharacter(word, end);
      }
      known = piece.has_value();
      if (known) ids.push_back(*piece);
      begin = end;
    }
    if (known) return;
    ids.resize(before);
    ids.push_back(m_unknown);
  }

 private:
  int32_t m_unknown;
  std::string m_prefix;
  int64_t m_longestWord;
};

class WordLevel : public TokenModel {
 public:
  WordLevel(Vocabulary vocabulary, std::optional<int32_t> unknown) : TokenModel(std::move(vocabulary)), m_unknown(unknown) {}
  void tokenize(std::string_view word, bool, ModelScratch&, std::vector<int32_t>& ids) const override {
    if (const auto id = m_vocabulary.id(word))
      ids.push_back(*id);
    else if (m_unknown)
      ids.push_back(*m_unknown);
  }

 private:
  std::optional<int32_t> m_unknown;
};

}  // namespace

Result<std::unique_ptr<TokenModel>> makeWordPieceModel(Vocabulary vocabulary, std::string unknown, std::string prefix,
                                                       int64_t longestWord) {
  const auto id = vocabulary.id(unknown);
  if (!id) return failure("tokenizer model unk_token", unknown, "a token of the vocabulary");
  return std::make_unique<WordPiece>(std::move(vocabulary), *id, std::move(prefix), longestWord);
}

Result<std::unique_ptr<TokenModel>> makeWordLevelModel(Vocabulary vocabulary, std::string unknown) {
  const auto id = vocabulary.id(unknown);
  return std::make_unique<WordLevel>(std::move(vocabulary), id);
}

}  // namespace headroom::engine::text
