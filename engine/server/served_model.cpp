// SPDX-License-Identifier: Apache-2.0
#include "engine/server/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace headroom::engine {
namespace {

using Json = nlohmann::ordered_json;

// Stands in where a model has no tokenizer: token ids go in and out, text stays empty.
class NoTokenizer final : public Tokenizer {
 public:
  std::vector<int32_t> encode(std::string_view, bool) const override { return {}; }
  std::string decode(std::span<const int32_t>, bool) const override { return {}; }
  std::string tokenBytes(int32_t) const override { return {}; }
  std::string tokenText(int32_t) const override { return {}; }
  std::optional<int32_t> tokenId(std::string_view) const override { return std::nullopt; }
  bool isSpecial(int32_t) const override { return false; }
  int64_t vocabSize() const override { return 0; }
  std::vector<int32_t> eosTokenIds() const override { return {}; }
};
const NoTokenizer kNoTokenizer;

bool isOfDeveloper(const Json& message) { return message["role"] == "developer"; }

// Takes out the oldest turn: from the first message that is no instruction to the next one of the user. False: only one is left.
bool dropOldestTurn(Json& messages) {
  auto isRole = [](const Json& message, const char* role) { return message["role"] == role; };
  size_t first = 0;
  while (first < messages.size() && (isRole(messages[first], "system") || isRole(messages[first], "developer"))) ++first;
  size_t next = first + 1;
  while (next < messages.size() && !isRole(messages[next], "user")) ++next;
  if (next >= messages.size()) return false;
  messages.erase(messages.begin() + static_cast<ptrdiff_t>(first), messages.begin() + static_cast<ptrdiff_t>(next));
  return true;
}

}  // namespace

ServedModel::ServedModel(std::string name, GenerationService& service, ModelText text)
    : m_name(std::move(name)),
      m_created(std::time(nullptr)),
      m_service(service),
      m_text(std::move(text)),
      m_toolCalls(m_text.chatTemplate ? toolCallFormOf(m_text.chatTemplate->source()) : ToolCallForm()),
      m_reasoning(m_text.chatTemplate ? reasoningFormOf(m_text.chatTemplate->source()) : ReasoningForm()),
      m_knowsDevelopers(m_text.chatTemplate && m_text.chatTemplate->source().find("developer") != std::string::npos) {}

const Tokenizer& ServedModel::tokenizer() const {
  return m_text.tokenizer ? *m_text.tokenizer : static_cast<const Tokenizer&>(kNoTokenizer);
}

RequestBounds ServedModel::bounds() const {
  return {m_name, m_service.maxModelLen(), m_service.vocabSize(), m_toolCalls, m_reasoning};
}

std::optional<ApiError> ServedModel::whyNotReady() const {
  if (m_leaves)
    return ApiError{503, fmt::format("The model {} is being unloaded and takes no new requests.", jsonString(m_name)), "model",
                    "service_unavailable", "model_unloading"};
  const EngineState state = m_service.state();
  if (state.phase == EnginePhase::Ready) return std::nullopt;
  if (state.phase == EnginePhase::Failed)
    return ApiError{503, "The engine failed: " + state.error, {}, "internal_error", "engine_failed"};
  if (state.phase == EnginePhase::Draining)
    return ApiError{503, "The engine is stopping and takes no new requests.", {}, "service_unavailable", "engine_stopping"};
  return ApiError{503, "The engine is loading the model.", {}, "service_unavailable", "engine_loading"};
}

std::optional<ApiError> ServedModel::whyNoText() const {
  if (m_text.tokenizer) return std::nullopt;
  return ApiError{400, m_text.noTokenizerReason, {}, "invalid_request_error", "no_tokenizer"};
}

std::optional<ApiError> ServedModel::whyNoGeneration() const {
  if (m_text.noGenerationReason.empty()) return std::nullopt;
  return ApiError{400, m_text.noGenerationReason, "model", "invalid_request_error", "no_generation"};
}

ApiResult<EmbeddingRequest> ServedModel::readEmbedding(const Json& body) const {
  if (!m_text.embedding)
    return tl::unexpected(ApiError{400, m_text.noEmbeddingReason, "model", "invalid_request_error", "no_embeddings"});
  return readEmbeddingRequest(body, bounds(), *m_text.embedding, m_text.embeddingSize);
}

ApiResult<std::string> ServedModel::render(const Json& conversation, const std::string& param) const {
  if (!m_text.chatTemplate)
    return tl::unexpected(
        ApiError{400, fmt::format("{}: {}", param, m_text.noTemplateReason), param, "invalid_request_error", "no_chat_template"});
  auto refused = [&](const Error& error) {
    return tl::unexpected(ApiError{
        400, fmt::format("{}: the chat template refused them: {}", param, error.message()), param, "invalid_request_error", {}});
  };
  const Json* rendered = &conversation;
  // Developers speak as the system does where a template was written before that role.
  Json renamed;
  if (const auto messages = conversation.find("messages");
      !m_knowsDevelopers && messages != conversation.end() && std::any_of(messages->begin(), messages->end(), isOfDeveloper)) {
    renamed = conversation;
    for (Json& message : renamed["messages"])
      if (isOfDeveloper(message)) message["role"] = "system";
    rendered = &renamed;
  }
  auto text = m_text.chatTemplate->render(*rendered);
  if (!text) return refused(text.error());
  return std::move(*text);
}

ApiResult<PreparedPrompt> ServedModel::fitted(const OpenAiRequest& request, TokenIds tokens, std::string text) const {
  const RequestBounds limits = bounds();
  for (int32_t token : tokens)
    if (token < 0 || token >= limits.vocabSize)
      return tl::unexpected(
          ApiError{400,
                   fmt::format("prompt: its text has token {}, which the model's vocabulary of {} does not hold.", token,
                               limits.vocabSize),
                   "prompt",
                   "invalid_request_error",
                   {}});
  const auto maxTokens = fitToContext(request, tokens, limits);
  if (!maxTokens) return tl::unexpected(maxTokens.error());
  return PreparedPrompt{std::move(tokens), std::move(text), *maxTokens};
}

ApiResult<PreparedPrompt> ServedModel::prepareChat(OpenAiRequest& request) const {
  while (true) {
    const auto text = render(request.conversation, request.promptName);
    if (!text) return tl::unexpected(text.error());
    std::string_view begun = *text;
    begun = begun.substr(0, begun.find_last_not_of(" \t\r\n") + 1);
    request.reasoningBegins = m_reasoning.exists() && begun.ends_with(m_reasoning.open);
    auto prompt = fitted(request, m_text.tokenizer->encode(*text, request.addSpecialTokens), {});
    const bool isTooLong = !prompt && prompt.error().code == "context_length_exceeded";
    if (isTooLong && request.dropsOldest && dropOldestTurn(request.conversation["messages"])) continue;
    return prompt;
  }
}

ApiResult<std::vector<PreparedPrompt>> ServedModel::prepare(OpenAiRequest& request) const {
  // Without a tokenizer token ids are still served.
  const bool onlyIds = std::all_of(request.prompts.begin(), request.prompts.end(),
                                   [](const PromptInput& prompt) { return std::holds_alternative<TokenIds>(prompt); });
  if (const auto error = whyNoText();
      error && (request.chat || !onlyIds || request.echo || !request.stop.empty() || request.grammar))
    return tl::unexpected(*error);
  if (request.chat && (request.tools.reads || request.frame.isNeeded()) && marksAreSpecial()) request.skipSpecialTokens = false;
  std::vector<PreparedPrompt> prompts;
  if (request.chat) {
    auto prompt = prepareChat(request);
    if (!prompt) return tl::unexpected(prompt.error());
    prompts.push_back(std::move(*prompt));
    return prompts;
  }
  for (const PromptInput& input : request.prompts) {
    ApiResult<PreparedPrompt> prompt;
    if (const auto* text = std::get_if<std::string>(&input)) {
      prompt = fitted(request, m_text.tokenizer->encode(*text, request.addSpecialTokens), request.echo ? *text : std::string());
    } else {
      const auto& ids = std::get<TokenIds>(input);
      prompt = fitted(request, ids, request.echo ? m_text.tokenizer->decode(ids, request.skipSpecialTokens) : std::string());
    }
    if (!prompt) return tl::unexpected(prompt.error());
    prompts.push_back(std::move(*prompt));
  }
  return prompts;
}

std::vector<std::string> ServedModel::marks() const {
  std::vector<std::string> all = m_toolCalls.marks();
  if (m_reasoning.exists()) all.insert(all.end(), {m_reasoning.open, m_reasoning.close});
  return all;
}

// Models write some marks as special tokens, which must stay in the text then.
bool ServedModel::marksAreSpecial() const {
  const std::vector<std::string> all = marks();
  return m_text.tokenizer && std::any_of(all.begin(), all.end(), [&](const std::string& mark) {
           const auto id = m_text.tokenizer->tokenId(mark);
           return id && m_text.tokenizer->isSpecial(*id);
         });
}

std::shared_ptr<const TokenTrie> ServedModel::trieFor(const OpenAiRequest& request) {
  if (!request.grammar) return nullptr;
  return tokenTrie(request.chat && (request.tools.reads || request.frame.isNeeded()));
}

// The vocabulary without special tokens, which are no text; `withMarks`, except those that models write around calls and
// reasoning.
std::shared_ptr<const TokenTrie> ServedModel::tokenTrie(bool withMarks) {
  std::call_once(m_trieOnce[withMarks], [&] {
    const Tokenizer& vocabulary = *m_text.tokenizer;
    const std::vector<int32_t> ends = vocabulary.eosTokenIds();
    std::vector<int32_t> special;
    if (withMarks)
      for (const std::string& mark : marks())
        if (const auto id = vocabulary.tokenId(mark)) special.push_back(*id);
    auto contains = [](const std::vector<int32_t>& ids, int32_t token) {
      return std::find(ids.begin(), ids.end(), token) != ids.end();
    };
    m_tries[withMarks] = std::make_shared<const TokenTrie>(vocabulary.vocabSize(), [&](int32_t token) {
      const bool isText = !contains(ends, token) && (!vocabulary.isSpecial(token) || contains(special, token));
      return isText ? vocabulary.tokenBytes(token) : std::string();
    });
  });
  return m_tries[withMarks];
}

}  // namespace headroom::engine
