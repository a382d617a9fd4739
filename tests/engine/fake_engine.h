// SPDX-License-Identifier: Apache-2.0
// An engine that plays a script, with a tokenizer of bytes and a template of lines: what the server does shows without a model.
#pragma once

#include "engine/server/server.h"
#include "tests/support/raw_http_client.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace headroom::test {

using namespace headroom::engine;

inline constexpr int32_t kEos = 256, kBos = 257, kVocabulary = 260;

// Token = byte; 256 is the end, 257 the begin.
class ByteTokenizer final : public Tokenizer {
 public:
  std::vector<int32_t> encode(std::string_view text, bool addSpecial) const override {
    std::vector<int32_t> ids;
    if (addSpecial) ids.push_back(kBos);
    while (!text.empty()) {
      const bool begin = text.starts_with("<s>");
      ids.push_back(begin ? kBos : static_cast<unsigned char>(text[0]));
      text.remove_prefix(begin ? 3 : 1);
    }
    return ids;
  }
  std::string decode(std::span<const int32_t> ids, bool skipSpecial) const override {
    std::string bytes;
    for (int32_t id : ids)
      if (!skipSpecial || !isSpecial(id)) bytes += tokenBytes(id);
    return validUtf8Text(bytes);
  }
  std::string tokenBytes(int32_t id) const override {
    return id == kEos ? "</s>" : id == kBos ? "<s>" : std::string(1, static_cast<char>(id));
  }
  std::string tokenText(int32_t id) const override { return validUtf8Text(tokenBytes(id)); }
  std::optional<int32_t> tokenId(std::string_view) const override { return std::nullopt; }
  bool isSpecial(int32_t id) const override { return id >= 256; }
  int64_t vocabSize() const override { return kVocabulary; }
  std::vector<int32_t> eosTokenIds() const override { return {kEos}; }

 private:
  static std::string validUtf8Text(const std::string& bytes);
};

// "<s>role: content\n" a message; raises for a message that says so.
class LineTemplate final : public ChatTemplate {
 public:
  Result<std::string> render(const nlohmann::ordered_json& request) const override {
    std::string text = "<s>";
    for (const auto& message : request["messages"]) {
      const std::string content = message["content"].is_string() ? message["content"].get<std::string>() : std::string();
      if (content == "raise") return failure("chat template", "messages must alternate");
      text += message["role"].get<std::string>() + ": " + content + "\n";
    }
    return request.value("add_generation_prompt", true) ? text + "assistant: " : text;
  }
  const std::string& source() const override { return m_source; }
  explicit LineTemplate(std::string source = "lines") : m_source(std::move(source)) {}

 private:
  std::string m_source;
};

// Answers every request with `reply`, a token a tick, then the end token; ignore_eos begins anew.
class FakeService final : public GenerationService {
 public:
  explicit FakeService(std::string reply = "Hello, world", std::chrono::microseconds tick = std::chrono::microseconds(200))
      : m_reply(std::move(reply)), m_tick(tick), m_thread([this] { run(); }) {}
  ~FakeService() override { close(); }
  // As a real engine's end: open requests get Abort, and no thread of it holds a sink when this returns. One caller at a time.
  void close() {
    {
      std::lock_guard lock(m_mutex);
      m_stop = true;
    }
    m_changed.notify_all();
    if (m_thread.joinable()) m_thread.join();
  }

  RequestId submit(GenerationRequest request, UpdateSink sink) override {
    std::unique_lock lock(m_mutex);
    if (m_stop) {
      lock.unlock();
      GenerationUpdate update;
      update.finish = FinishReason::Abort;
      sink(std::move(update));
      return 0;
    }
    const RequestId id = ++m_lastId;
    m_submitted.push_back(request);
    m_active.emplace(id, Active{std::move(request), std::move(sink), 0, false});
    m_changed.notify_all();
    return id;
  }
  void cancel(RequestId id) override {
    std::lock_guard lock(m_mutex);
    ++m_cancelled;
    if (const auto found = m_active.find(id); found != m_active.end()) found->second.cancelled = true;
  }
  EngineState state() const override {
    const EngineState state = stateNow();
    if (afterState) afterState();
    return state;
  }
  std::function<void()> afterState;  // called with each state read, before it is handed out; set while nobody asks

  EngineState stateNow() const {
    std::lock_guard lock(m_mutex);
    EngineState state;
    state.phase = m_phase;
    state.error = m_error;
    state.model = "fake";
    state.ranks = m_ranks;
    state.kvBlocksTotal = 100;
    state.kvBlocksFree = 100 - static_cast<int64_t>(m_active.size());
    state.requestsRunning = static_cast<int64_t>(m_active.size());
    return state;
  }
  MetricsSample sampleMetrics() override {
    MetricsSample sample;
    sample.generatedTokensPerSecond = 12.5;
    for (const RankState& rank : state().ranks) sample.deviceUsedBytes.push_back(rank.deviceUsedBytes);
    return sample;
  }
  MetricsSnapshot metrics() const override { return EngineMetrics(4096).snapshot(); }
  int64_t maxModelLen() const override { return 512; }
  int64_t vocabSize() const override { return kVocabulary; }
  void drain() override { setPhase(EnginePhase::Draining); }

  void setPhase(EnginePhase phase, std::string error = {}) {
    std::lock_guard lock(m_mutex);
    m_phase = phase;
    m_error = std::move(error);
  }
  void setRanks(std::vector<RankState> ranks) {
    std::lock_guard lock(m_mutex);
    m_ranks = std::move(ranks);
  }
  // Requests for vectors after so many are given up, as by an engine that ends.
  void endAfterVectors(int vectors) {
    std::lock_guard lock(m_mutex);
    m_vectorsLeft = vectors;
  }
  // Every running request ends with this error after so many tokens.
  void failAfter(int tokens, std::string error) {
    std::lock_guard lock(m_mutex);
    m_failAfter = tokens;
    m_error = std::move(error);
  }
  size_t active() const {
    std::lock_guard lock(m_mutex);
    return m_active.size();
  }
  size_t submitted() const {
    std::lock_guard lock(m_mutex);
    return m_submitted.size();
  }
  GenerationRequest submittedAt(size_t index) const {
    std::lock_guard lock(m_mutex);
    return m_submitted.at(index);
  }
  size_t cancelled() const {
    std::lock_guard lock(m_mutex);
    return m_cancelled;
  }
  size_t steps() const { return m_steps; }

 private:
  struct Active {
    GenerationRequest request;
    UpdateSink sink;
    int64_t made = 0;
    bool cancelled = false;
  };

  // Logprobs fall with the token's number; the alternatives are the tokens behind it.
  static TokenOutput output(const SamplingParams& sampling, int32_t token, int64_t number) {
    TokenOutput result;
    result.token = token;
    if (!sampling.logprobs) return result;
    const float own = -0.25f * static_cast<float>(number % 4 + 1);
    result.logprob = TokenLogprob{token, own, 1};
    for (int i = 0; i < *sampling.logprobs; ++i)
      result.top.push_back({(token + i) % kVocabulary, own - static_cast<float>(i), i + 1});
    return result;
  }

  GenerationUpdate next(Active& active) {
    const SamplingParams& sampling = active.request.sampling;
    GenerationUpdate update;
    if (active.cancelled) {
      update.finish = FinishReason::Abort;
      return update;
    }
    if (active.request.pooling) {  // the prompt's length in tokens, its last token, 3 and 4
      if (m_vectorsLeft-- == 0) {
        update.finish = FinishReason::Abort;
        return update;
      }
      update.embedding = {static_cast<float>(active.request.prompt.size()), static_cast<float>(active.request.prompt.back()), 3,
                          4};
      update.finish = FinishReason::Stop;
      return update;
    }
    if (m_failAfter >= 0 && active.made >= m_failAfter) {
      update.finish = FinishReason::Error;
      update.error = m_error;
      return update;
    }
    if (active.made == 0 && sampling.promptLogprobs) {
      update.promptLogprobs.resize(active.request.prompt.size());
      for (size_t i = 1; i < active.request.prompt.size(); ++i) {
        update.promptLogprobs[i].push_back({active.request.prompt[i], -2.0f, 3});
        for (int k = 0; k < *sampling.promptLogprobs; ++k)
          update.promptLogprobs[i].push_back({'a' + k, -0.5f * static_cast<float>(k + 1), k + 1});
      }
    }
    // The seed turns the reply, so that choices differ.
    const auto length = static_cast<int64_t>(m_reply.size());
    const int64_t shift = sampling.seed ? *sampling.seed % length : 0;
    const bool end = active.made >= length && !sampling.ignoreEos && active.made >= sampling.minTokens;
    const int32_t token = end ? kEos : static_cast<unsigned char>(m_reply[static_cast<size_t>((active.made + shift) % length)]);
    ++active.made;
    update.tokens.push_back(output(sampling, token, active.made - 1));
    const auto& stops = sampling.stopTokenIds;
    if (end || std::find(stops.begin(), stops.end(), token) != stops.end()) {
      update.finish = FinishReason::Stop;
      update.stopToken = token;
    } else if (active.made >= sampling.maxTokens) {
      update.finish = FinishReason::Length;
    }
    return update;
  }

  void run() {
    while (true) {
      std::vector<std::pair<UpdateSink, GenerationUpdate>> updates;
      {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [this] { return m_stop || !m_active.empty(); });
        if (m_stop) {
          for (auto& [id, active] : m_active) {
            GenerationUpdate last;
            last.finish = FinishReason::Abort;
            updates.emplace_back(active.sink, std::move(last));
          }
          m_active.clear();
        }
        for (auto entry = m_active.begin(); entry != m_active.end();) {
          GenerationUpdate update = next(entry->second);
          const bool last = update.finish.has_value();
          updates.emplace_back(entry->second.sink, std::move(update));
          entry = last ? m_active.erase(entry) : std::next(entry);
        }
      }
      for (auto& [sink, update] : updates) sink(std::move(update));
      ++m_steps;
      {
        std::lock_guard lock(m_mutex);
        if (m_stop) return;
      }
      std::this_thread::sleep_for(m_tick);
    }
  }

  const std::string m_reply;
  const std::chrono::microseconds m_tick;
  mutable std::mutex m_mutex;
  std::condition_variable m_changed;
  std::map<RequestId, Active> m_active;
  std::vector<RankState> m_ranks;
  int m_vectorsLeft = -1;  // below 0: all
  std::vector<GenerationRequest> m_submitted;
  RequestId m_lastId = 0;
  size_t m_cancelled = 0;
  std::atomic<size_t> m_steps{0};
  EnginePhase m_phase = EnginePhase::Ready;
  std::string m_error;
  int m_failAfter = -1;
  bool m_stop = false;
  std::thread m_thread;  // last: begins when all else stands
};

// A server on a free port over a fake engine.
struct FakeServer {
  explicit FakeServer(std::string reply = "Hello, world", ServerOptions options = {},
                      std::chrono::microseconds tick = std::chrono::microseconds(200), std::string templateSource = "lines",
                      std::optional<EmbeddingConfig> embedding = {})
      : chatTemplate(std::move(templateSource)), service(std::move(reply), tick) {
    options.port = 0;
    options.servedModelName = "fake";
    server = std::move(*Server::bind(std::move(options)));
    server->serve(service, {.tokenizer = &tokenizer,
                            .noTokenizerReason = {},
                            .chatTemplate = &chatTemplate,
                            .noTemplateReason = {},
                            .embedding = std::move(embedding),
                            .noEmbeddingReason = "This model makes text, no embeddings.",
                            .embeddingSize = 4});
    port = server->port();
  }
  ~FakeServer() { server->stop(0); }
  RawResponse post(std::string_view path, const nlohmann::ordered_json& body, std::string_view headers = {}) const {
    return request(port, "POST", path, body.dump(), headers);
  }
  RawResponse get(std::string_view path, std::string_view headers = {}) const { return request(port, "GET", path, {}, headers); }

  ByteTokenizer tokenizer;
  LineTemplate chatTemplate;
  FakeService service;
  std::unique_ptr<Server> server;
  int port = 0;
};

inline nlohmann::ordered_json parsed(const RawResponse& response) {
  return nlohmann::ordered_json::parse(response.body, nullptr, false);
}

// The JSON of each data line; "[DONE]" is left out.
inline std::vector<nlohmann::ordered_json> eventsOf(const std::string& body) {
  std::vector<nlohmann::ordered_json> events;
  for (size_t at = 0; (at = body.find("data: ", at)) != std::string::npos;) {
    const size_t end = body.find("\n\n", at);
    const std::string data = body.substr(at + 6, end - at - 6);
    if (data != "[DONE]") events.push_back(nlohmann::ordered_json::parse(data, nullptr, false));
    at = end == std::string::npos ? body.size() : end;
  }
  return events;
}

template <class Condition>
bool eventually(Condition holds, int milliseconds = kPatience) {
  for (int waited = 0; waited < milliseconds; waited += 5) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return holds();
}

inline std::string ByteTokenizer::validUtf8Text(const std::string& bytes) {
  // Through JSON, which replaces what is not UTF-8.
  return nlohmann::json::parse(nlohmann::json(bytes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace headroom::test
