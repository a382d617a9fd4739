// SPDX-License-Identifier: Apache-2.0
// One request on its way through the engine: submits a sequence a choice and turns their tokens into text, reasoning and calls.
// How the answer is written, whole or as a stream, is a matter of its kinds: completions and chats, and responses. Lives on its
// connection's strand; engine threads only drop updates into its inbox.
#pragma once

#include "engine/server/http_server.h"
#include "engine/server/served_model.h"
#include "engine/server/stop_strings.h"
#include "engine/server/tool_calls.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace headroom::engine {

// "prefix" and 32 hexadecimal digits.
std::string randomId(std::string_view prefix);
// JSON has no infinity; -9999 is what vLLM writes for it.
std::string logprobNumber(float logprob);

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  Generation(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<ServedModel> model, OpenAiRequest request,
             std::vector<PreparedPrompt> prompts);
  virtual ~Generation() = default;
  void start();  // on the strand
  // Holds on to `what` for as long as it lives.
  void keep(std::shared_ptr<void> what) { m_kept = std::move(what); }
  // On the strand: an answer that is not whole by now ends with an error.
  void expire(std::chrono::milliseconds limit);

 protected:
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
    bool isCallCut = false;  // a stop string or token came within the arguments of its last call
    bool begun = false, begunSent = false, finished = false, finishSent = false;
    std::string finishReason;
    std::string stopReason = "null";  // JSON: the stop string, the stop token or null
    int64_t completionTokens = 0, cachedTokens = 0, reasoningTokens = 0;
    int64_t textOffset = 0;  // characters before the next logprobs entry
    double sumLogprobs = 0;
    std::vector<float> embedding;
    bool isReasoning() const { return reasoningReader.isInside() || reader.isReasoning(); }
  };

  // ---- how the answer is written; on the strand
  // What the last token, or the end, added to a choice; collected in it unless a kind does otherwise.
  virtual void takeAnswer(Choice& choice, std::string reasoning, std::string text, std::vector<ToolCallReader::Part> calls);
  virtual void sendChoice(Choice& choice) = 0;          // stream: what is new
  virtual void sendEnd() = 0;                           // stream: all choices have ended
  virtual void sendFailure(const ApiError& error) = 0;  // stream: it ends here
  virtual void respondWhole() = 0;

  // A list with an entry a token, as chats and responses have it.
  std::string logprobsJson(const std::vector<Logprob>& entries) const;

  const std::shared_ptr<HttpExchange> m_exchange;
  const std::shared_ptr<ServedModel> m_model;
  GenerationService& m_service;
  const Tokenizer& m_tokenizer;
  OpenAiRequest m_request;
  std::vector<PreparedPrompt> m_prompts;
  const int64_t m_created;  // seconds since the epoch
  std::vector<Choice> m_choices;

 private:
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

  std::shared_ptr<const TokenTrie> m_trie;
  size_t m_unfinished = 0;
  bool m_over = false;
  std::shared_ptr<void> m_kept;

  std::mutex m_inboxMutex;
  std::vector<std::pair<size_t, GenerationUpdate>> m_inbox;
  bool m_drainScheduled = false;
};

}  // namespace headroom::engine
