// SPDX-License-Identifier: Apache-2.0
#include "engine/text/pipeline.h"

#include "engine/text/model_scratch.h"
#include "engine/text/unicode.h"

#include <algorithm>

namespace headroom::engine::text {

struct Pipeline::Scratch {
  ModelScratch model;
  Words words;
  std::vector<AddedTokens::Piece> pieces, normalizedPieces;
  std::string normalized;
};

// A scratch of the pool, given back at the end.
class Pipeline::Borrowed {
 public:
  explicit Borrowed(const Pipeline& owner) : m_owner(owner) {
    std::lock_guard lock(owner.m_poolMutex);
    if (!owner.m_pool.empty()) {
      m_scratch = std::move(owner.m_pool.back());
      owner.m_pool.pop_back();
    }
    if (!m_scratch) m_scratch = std::make_unique<Scratch>();
  }
  ~Borrowed() {
    std::lock_guard lock(m_owner.m_poolMutex);
    m_owner.m_pool.push_back(std::move(m_scratch));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Scratch& operator*() { return *m_scratch; }

 private:
  const Pipeline& m_owner;
  std::unique_ptr<Scratch> m_scratch;
};

Pipeline::Pipeline(PipelineParts parts) : m_parts(std::move(parts)) {
  m_added = std::make_unique<AddedTokens>(std::move(m_parts.added), [&](std::string content) {
    if (m_parts.normalizer) m_parts.normalizer->apply(content);
    return content;
  });
  m_vocabSize = m_parts.model->vocabulary().idsEnd();
  for (const AddedToken& token : m_added->tokens()) m_vocabSize = std::max<int64_t>(m_vocabSize, token.id + 1);
}

Pipeline::~Pipeline() = default;

std::vector<int32_t> Pipeline::encode(std::string_view text, bool addSpecial) const {
  std::string repaired;
  if (!isValidUtf8(text)) text = repaired = toValidUtf8(text);
  Borrowed borrowed(*this);
  Scratch& scratch = *borrowed;
  std::vector<int32_t> ids;
  if (addSpecial) ids = m_parts.postProcessor.before;
  m_added->split(text, false, scratch.pieces);
  for (const AddedTokens::Piece& piece : scratch.pieces) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
      continue;
    }
    const bool atStart = piece.text.data() == text.data();
    std::string_view plain = piece.text;
    if (m_parts.normalizer) {
      scratch.normalized = plain;
      m_parts.normalizer->apply(scratch.normalized);
      plain = scratch.normalized;
    }
    if (!m_added->anyNormalized()) {
      encodePlain(plain, atStart, scratch, ids);
      continue;
    }
    m_added->split(plain, true, scratch.normalizedPieces);
    for (const AddedTokens::Piece& inner : scratch.normalizedPieces)
      if (inner.id >= 0)
        ids.push_back(inner.id);
      else
        encodePlain(inner.text, atStart && inner.text.data() == plain.data(), scratch, ids);
  }
  if (addSpecial) ids.insert(ids.end(), m_parts.postProcessor.after.begin(), m_parts.postProcessor.after.end());
  return ids;
}

void Pipeline::encodePlain(std::string_view text, bool atStart, Scratch& scratch, std::vector<int32_t>& ids) const {
  Words& words = scratch.words;
  words.reset(text, atStart);
  if (m_parts.preTokenizer) m_parts.preTokenizer->apply(words);
  for (const Words::Range& range : words.ranges)
    if (range.end > range.begin)
      m_parts.model->tokenize(words.text.substr(range.begin, range.end - range.begin), words.rawBytes, scratch.model, ids);
}

const std::string* Pipeline::spelling(int32_t id) const {
  if (const AddedToken* token = m_added->withId(id)) return &token->content;
  return m_parts.model->vocabulary().has(id) ? &m_parts.model->vocabulary().spelling(id) : nullptr;
}

std::string Pipeline::decode(std::span<const int32_t> ids, bool skipSpecial) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (int32_t id : ids) {
    const std::string* text = spelling(id);
    if (text && !(skipSpecial && m_added->isSpecial(*text))) tokens.push_back(*text);
  }
  std::string text;
  if (m_parts.decoder && !tokens.empty()) m_parts.decoder->apply(tokens);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i && !m_parts.decoder) text += ' ';
    text += tokens[i];
  }
  return text;
}

std::string Pipeline::tokenBytes(int32_t id) const {
  const std::string* text = spelling(id);
  if (!text) return {};
  return m_parts.decoder && !m_added->isSpecial(*text) ? m_parts.decoder->bytes(*text) : *text;
}

std::string Pipeline::tokenText(int32_t id) const {
  const std::string* text = spelling(id);
  return text ? *text : std::string();
}

std::optional<int32_t> Pipeline::tokenId(std::string_view spelling) const {
  if (const AddedToken* token = m_added->withContent(spelling)) return token->id;
  return m_parts.model->vocabulary().id(spelling);
}

bool Pipeline::isSpecial(int32_t id) const {
  const std::string* text = spelling(id);
  return text && m_added->isSpecial(*text);
}

}  // namespace headroom::engine::text
