// SPDX-License-Identifier: Apache-2.0
// One completion or chat request on its way through the engine: submits a sequence a choice, turns their tokens into text, and
// renders the answer, whole or as a stream. Lives on its connection's strand; engine threads only drop updates into its inbox.
#pragma once

#include "engine/sample/grammar_constraint.h"
#include "engine/server/generation_service.h"
#include "engine/server/http_server.h"
#include "engine/server/openai_requests.h"
#include "engine/server/stop_strings.h"
#include "engine/server/tool_calls.h"
#include "engine/text/tokenizer.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace headroom::engine {

// A prompt as the engine takes it.
struct PreparedPrompt {
  TokenIds tokens;
  std::string text;  // for echo
  int64_t maxTokens = 0;
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // `trie` of the tokenizer's vocabulary where the request has a grammar.
  Generation(std::shared_ptr<HttpExchange> exchange, GenerationService& service, const Tokenizer& tokenizer,
             std::string modelName, OpenAiRequest request, std::vector<PreparedPrompt> prompts,
             std::shared_ptr<const TokenTrie> trie = nullptr);
  void start();  // on the strand
  // Holds on to `what` for as long as it lives.
  void keep(std::shared_ptr<void> what) { m_kept = std::move(what); }
  // On the strand: an answer that is not whole by now ends with an error.
  void expire(std::chrono::milliseconds limit);

 private:
  struct Logprob {
    std::optional<TokenLogprob> own;
    int32_t token = 0;
    std::vector<TokenLogprob> top;
  };
  struct Choice {
    Choice(int index, int prompt, const Tokenizer& tokenizer, const OpenAiRequest& request)
        : index(index),
          prompt(prompt),
          decoder(tokenizer, request.skipSpecialTokens),
          stops(request.stop, request.includeStop),
          reasoningReader(request.frame.reasoning, request.reasoningBegins),
          reader(request.tools) {}
    int index, prompt;
    RequestId id = 0;
    StreamDecoder decoder;
    StopMatcher stops;
    ReasoningReader reasoningReader;
    ToolCallReader reader;
    std::vector<ToolCallReader::Part> calls;  // not yet sent (stream), or all of them, whole
    // Not yet sent (stream), or all of it.
    std::string text, reasoning;
    TokenIds tokens;
    std::vector<Logprob> logprobs;
    std::vector<std::vector<TokenLogprob>> promptLogprobs;
    bool begun = false, begunSent = false, finished = false, finishSent = false;
    std::string finishReason;
    std::string stopReason = "null";  // JSON: the stop string, the stop token or null
    int64_t completionTokens = 0, cachedTokens = 0;
    int64_t textOffset = 0;  // characters before the next logprobs entry
    double sumLogprobs = 0;
  };

  void take(size_t choice, GenerationUpdate&& update);  // any thread
  void drain();
  void apply(Choice& choice, GenerationUpdate&& update);
  void applyToken(Choice& choice, TokenOutput&& output, bool isStopToken);
  void addText(Choice& choice, std::string text);
  void addAnswer(Choice& choice, const std::string& text);
  bool readsForm() const { return m_request.tools.reads || m_request.frame.isHarmony; }
  void endChoice(Choice& choice, std::string reason);
  void cancelAll();
  void failed(const ApiError& error);

  // ---- rendering
  void sendChoice(Choice& choice);
  void sendEnd();
  void respondWhole();
  std::string usage() const;
  void keepBest();
  std::string chunk(std::string_view choices, std::string_view more = {}) const;
  std::string callsJson(const std::vector<ToolCallReader::Part>& calls, bool asDelta) const;
  std::string chatLogprobs(const std::vector<Logprob>& entries) const;
  std::string completionLogprobs(Choice& choice, bool withPrompt) const;
  std::string promptLogprobsJson(const Choice& choice) const;
  std::string echoText(const Choice& choice) const;

  std::shared_ptr<HttpExchange> m_exchange;
  GenerationService& m_service;
  const Tokenizer& m_tokenizer;
  OpenAiRequest m_request;
  std::vector<PreparedPrompt> m_prompts;
  std::shared_ptr<const TokenTrie> m_trie;
  std::string m_id, m_prefix;  // "id" … "model" of every chunk
  std::string m_modelName;
  int64_t m_created = 0;
  std::vector<Choice> m_choices;
  size_t m_unfinished = 0;
  bool m_over = false;
  std::shared_ptr<void> m_kept;

  std::mutex m_inboxMutex;
  std::vector<std::pair<size_t, GenerationUpdate>> m_inbox;
  bool m_drainScheduled = false;
};

}  // namespace headroom::engine
