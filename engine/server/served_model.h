// SPDX-License-Identifier: Apache-2.0
// One model as the routes see it: its engine, its tokenizer, its chat template and the forms that are read off the template.
// Turns requests into prompts of token ids.
#pragma once

#include "engine/sample/grammar_constraint.h"
#include "engine/server/generation_service.h"
#include "engine/server/openai_requests.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace headroom::engine {

// A prompt as the engine takes it.
struct PreparedPrompt {
  TokenIds tokens;
  std::string text;  // for echo
  int64_t maxTokens = 0;
};

// What a model has for text; null where it has none, with the reason.
struct ModelText {
  const Tokenizer* tokenizer = nullptr;
  std::string noTokenizerReason;
  const ChatTemplate* chatTemplate = nullptr;
  std::string noTemplateReason;
  std::optional<EmbeddingConfig> embedding = {};  // how it makes a vector of a text
  std::string noEmbeddingReason = {};
  int64_t embeddingSize = 0;            // numbers of a vector
  std::string noGenerationReason = {};  // where it makes vectors and no text
};

// Thread-safe.
class ServedModel {
 public:
  // Service, tokenizer and template must outlive it.
  ServedModel(std::string name, GenerationService& service, ModelText text);

  const std::string& name() const { return m_name; }
  int64_t created() const { return m_created; }  // seconds since the epoch
  GenerationService& service() const { return m_service; }
  bool hasTokenizer() const { return m_text.tokenizer != nullptr; }
  const Tokenizer& tokenizer() const;  // one that knows no text where the model has none
  RequestBounds bounds() const;

  // It is being unloaded, while the server goes on: it takes no new requests.
  void leave() { m_leaves = true; }
  // Why it cannot answer now, or not in text.
  std::optional<ApiError> whyNotReady() const;
  std::optional<ApiError> whyNoText() const;
  std::optional<ApiError> whyNoGeneration() const;

  ApiResult<EmbeddingRequest> readEmbedding(const nlohmann::ordered_json& body) const;

  // A conversation as its template writes it; errors name `param`.
  ApiResult<std::string> render(const nlohmann::ordered_json& conversation, const std::string& param) const;
  ApiResult<std::vector<PreparedPrompt>> prepare(OpenAiRequest& request) const;
  // Of the vocabulary, for the request's grammar; null without one.
  std::shared_ptr<const TokenTrie> trieFor(const OpenAiRequest& request);

 private:
  ApiResult<PreparedPrompt> prepareChat(OpenAiRequest& request) const;
  ApiResult<PreparedPrompt> fitted(const OpenAiRequest& request, TokenIds tokens, std::string text) const;
  std::vector<std::string> marks() const;
  bool marksAreSpecial() const;
  std::shared_ptr<const TokenTrie> tokenTrie(bool withMarks);

  const std::string m_name;
  const int64_t m_created;
  GenerationService& m_service;
  const ModelText m_text;
  const ToolCallForm m_toolCalls;
  const ReasoningForm m_reasoning;
  std::atomic<bool> m_leaves{false};
  const bool m_knowsDevelopers;  // the template has messages of the role developer
  std::once_flag m_trieOnce[2];
  // Each made by the first request that needs it; the second has the marks of calls and reasoning.
  std::shared_ptr<const TokenTrie> m_tries[2];
};

}  // namespace headroom::engine
