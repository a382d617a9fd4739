// SPDX-License-Identifier: Apache-2.0
// The whole way from text to ids and back: added tokens, normalizer, pre-tokenizer, model, post-processor, decoder.
// Immutable; encode() borrows its work space from a pool, so any number of threads may call it.
#pragma once

#include "engine/text/added_tokens.h"
#include "engine/text/normalizer.h"
#include "engine/text/post_processor.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/token_decoder.h"
#include "engine/text/token_model.h"
#include "engine/text/tokenizer.h"

#include <mutex>

namespace headroom::engine::text {

struct PipelineParts {
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> preTokenizer;
  std::unique_ptr<TokenModel> model;
  std::vector<AddedToken> added;
  PostProcessor postProcessor;
  std::unique_ptr<TokenDecoder> decoder;
  std::vector<int32_t> eosTokenIds;
};

class Pipeline : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts);
  ~Pipeline() override;

  std::vector<int32_t> encode(std::string_view text, bool addSpecial) const override;
  std::string decode(std::span<const int32_t> ids, bool skipSpecial) const override;
  std::string tokenBytes(int32_t id) const override;
  std::string tokenText(int32_t id) const override;
  std::optional<int32_t> tokenId(std::string_view vocabularySpelling) const override;
  bool isSpecial(int32_t id) const override;
  int64_t vocabSize() const override { return m_vocabSize; }
  std::vector<int32_t> eosTokenIds() const override { return m_parts.eosTokenIds; }

  void setEosTokenIds(std::vector<int32_t> ids) { m_parts.eosTokenIds = std::move(ids); }  // while it is opened

 private:
  struct Scratch;
  class Borrowed;
  void encodePlain(std::string_view text, bool atStart, Scratch& scratch, std::vector<int32_t>& ids) const;
  const std::string* spelling(int32_t id) const;

  PipelineParts m_parts;
  std::unique_ptr<AddedTokens> m_added;
  int64_t m_vocabSize = 0;
  mutable std::mutex m_poolMutex;
  mutable std::vector<std::unique_ptr<Scratch>> m_pool;
};

Result<std::unique_ptr<Tokenizer>> openTokenizerJson(const std::filesystem::path& file);
Result<std::unique_ptr<Tokenizer>> openGgufTokenizer(const std::filesystem::path& file);

}  // namespace headroom::engine::text
