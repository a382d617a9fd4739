// SPDX-License-Identifier: Apache-2.0
// Bodies of the OpenAI routes as typed requests. Every wrong value of a known parameter is refused by name; what is known and not
// honoured too. Unknown keys are ignored. Names and defaults: OpenAI's API reference and vLLM's extensions of it.
#pragma once

#include "core/model/embedding_config.h"
#include "engine/sample/sampling_params.h"
#include "engine/server/api_error.h"
#include "engine/server/tool_calls.h"

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace headroom::engine {

class Parameters;

using TokenIds = std::vector<int32_t>;
using PromptInput = std::variant<std::string, TokenIds>;

// What a request must stay inside.
struct RequestBounds {
  std::string modelName;
  int64_t maxModelLen = 0, vocabSize = 0;
  ToolCallForm toolCalls = {};  // as the model's template shows them
  ReasoningForm reasoning = {};
  AnswerFrame frame() const { return {reasoning, toolCalls.syntax == ToolCallSyntax::Harmony}; }
};

// A completion or a chat completion.
struct OpenAiRequest {
  bool chat = false;
  std::vector<PromptInput> prompts;                                 // completions
  nlohmann::ordered_json conversation;                              // chat: what ChatTemplate::render takes
  SamplingParams sampling;                                          // maxTokens is set by fitToContext()
  std::optional<int64_t> maxTokens;                                 // as asked
  std::string maxTokensName = "max_tokens", promptName = "prompt";  // as errors call them
  int n = 1, bestOf = 1;
  int priority = 0;
  bool stream = false, includeUsage = false, continuousUsage = false;
  bool echo = false;
  std::vector<std::string> stop;
  bool includeStop = false, skipSpecialTokens = true, addSpecialTokens = true, returnTokenIds = false;
  std::optional<int> logprobs;             // alternatives to show of each token; 0: its own logprob only
  std::shared_ptr<const Grammar> grammar;  // that the answer must match; null: none
  ToolUse tools;                           // chat
  AnswerFrame frame;                       // chat: what may stand around the answer
  bool reasoningBegins = false;            // the prompt ends within the reasoning; known once it is rendered
  bool includeReasoning = true;
  std::optional<int64_t> truncatePromptTokens;  // keep the last so many; -1: what the context holds
  std::optional<Pooling> pooling;               // the prompts' vectors are wanted, and no text
  bool dropsOldest = false;                     // chat: a conversation too long for the context loses its oldest turns
};

struct EmbeddingRequest {
  OpenAiRequest prompts;  // with pooling
  bool normalizes = false;
  std::optional<int64_t> dimensions;  // the first so many of each vector
  bool isBase64 = false;              // of little-endian float32
};

struct TokenizeRequest {
  std::optional<std::string> prompt;
  nlohmann::ordered_json conversation;  // without prompt
  bool addSpecialTokens = true, returnTokenStrings = false;
};

ApiResult<OpenAiRequest> readCompletionRequest(const nlohmann::ordered_json& body, const RequestBounds& bounds);
ApiResult<OpenAiRequest> readChatRequest(const nlohmann::ordered_json& body, const RequestBounds& bounds);
// `config`: how the model pools. hiddenSize: dimensions of its vectors.
ApiResult<EmbeddingRequest> readEmbeddingRequest(const nlohmann::ordered_json& body, const RequestBounds& bounds,
                                                 const EmbeddingConfig& config, int64_t hiddenSize);
ApiResult<TokenizeRequest> readTokenizeRequest(const nlohmann::ordered_json& body, const RequestBounds& bounds);
ApiResult<TokenIds> readDetokenizeRequest(const nlohmann::ordered_json& body, const RequestBounds& bounds);

// Content of a message as templates expect it: a string. Text parts are joined, as vLLM does for templates that take strings.
// `where` names it in errors.
std::optional<nlohmann::ordered_json> readContent(Parameters& parameters, const nlohmann::ordered_json& content,
                                                  const std::string& where);

// The prompt cut as asked, refused when it does not fit, and the tokens that may be generated after it: what was asked for
// (refused when it does not fit, with the arithmetic), else 16 for completions and all that is left for chats. Prompts of
// which only a vector is wanted may fill the context.
ApiResult<int64_t> fitToContext(const OpenAiRequest& request, TokenIds& prompt, const RequestBounds& bounds);

}  // namespace headroom::engine
