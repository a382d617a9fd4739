// SPDX-License-Identifier: Apache-2.0
// One replica: its ranks, its KV blocks, its requests. Steps are scheduled by whoever changes something — the thread that submits a request, or the last
// stage's rank when a step is done — under one lock, so no thread stands between two steps of the ranks.
#pragma once

#include "engine/engine.h"
#include "engine/sample/pooler.h"
#include "engine/sample/sampler.h"
#include "engine/schedule/scheduler.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace headroom::engine {

// Figures since the last reading, for MetricsSample.
struct IntervalFigures {
  uint64_t generatedTokens = 0, promptTokens = 0;
  std::vector<double> ttftMs, itlMs;
  // Nobody may read them for days: the first of them stand for the rest.
  static constexpr size_t kMostLatencies = 16384;
  static void note(std::vector<double>& latencies, double milliseconds) {
    if (latencies.size() < kMostLatencies) latencies.push_back(milliseconds);
  }
};

class Replica final : public LogitsConsumer {
 public:
  struct Load {
    int64_t running = 0, waiting = 0, finished = 0, blocksTotal = 0, blocksFree = 0;
  };
  // `changed` is called from any thread: load progress, ready, failed.
  Replica(const ModelSource& model, const ParallelLayout& layout, int index, const Machine& machine, const EngineLimits& limits,
          const EngineMemoryPlan& memory, const EngineSettings& settings, EngineMetrics& metrics, std::function<void()> changed);
  ~Replica() override;

  void submit(RequestId id, GenerationRequest request, UpdateSink sink);
  void cancel(RequestId id);
  bool isReady() const { return m_ready; }
  std::optional<Error> failure() const;
  std::vector<RankState> rankStates() const { return m_ranks->rankStates(); }
  Load load() const;
  // Tokens of work that wait here, and how many of a prompt's tokens the prefix cache holds: what the router weighs.
  int64_t queuedTokens() const;
  int64_t cachedPrefix(std::span<const int32_t> prompt) const;
  IntervalFigures takeFigures();

  // LogitsConsumer, on the last stage's thread.
  void takeLogits(const StepPlan& plan, int64_t firstRow, int64_t rows, float* logits, int64_t vocab) override;
  void takeHidden(const StepPlan& plan, int64_t firstRow, int64_t rows, const float* hidden, int64_t hiddenSize) override;
  void stepDone(const SharedStepPlan& plan) override;
  std::vector<RowSampling> deviceSampling(const StepPlan& plan, int64_t firstRow, int64_t rows, int64_t vocab) override;
  void takeTokens(const StepPlan& plan, int64_t firstRow, std::span<const int32_t> tokens) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Request {
    std::shared_ptr<Sequence> sequence;
    Sampler sampler;
    UpdateSink sink;
    std::vector<std::vector<TokenLogprob>> promptLogprobs;  // filled while the prompt is computed
    Clock::time_point arrived, firstScheduled, firstToken, lastToken;
    bool wasScheduled = false;
    bool poisoned = false;          // its logits were not finite
    std::vector<TokenOutput> next;  // sampled, not yet taken by stepDone; several where guesses were right
    int64_t generated = 0;
    std::optional<Pooler> pooler = {};  // of a request for a vector
  };
  struct Delivery {
    UpdateSink sink;
    GenerationUpdate update;
  };

  // The request of a row, or null when it ended. One that ends meanwhile is kept in m_retired until the step is done, so the pointer holds.
  Request* requestOf(const StepPlan& plan, const StepPlan::LogitsRow& row);
  void fail(const Error& error);
  void pump();                        // lock held: hands out steps while the pipeline has room
  void deliver();                     // lock not held: sends what stands in m_outbox, in order, one thread at a time
  void finish(Request& request, GenerationUpdate update, FinishReason reason);  // lock held
  // Whether `token`, the `generated`-th of the answer, ends it. `newest`: it is the last one that was sampled, so that what the sampler
  // says of the answer's form is about it.
  std::optional<FinishReason> endOf(const Request& request, int32_t token, int64_t generated, bool newest, GenerationUpdate& update) const;

  const EngineLimits m_limits;
  const int m_stages;
  const std::vector<int32_t> m_eosTokens;
  EngineMetrics& m_metrics;
  std::function<void()> m_changed;
  std::atomic<bool> m_ready{false};

  mutable std::mutex m_mutex;         // all below
  BlockPool m_pool;
  Scheduler m_scheduler;
  std::unordered_map<RequestId, std::unique_ptr<Request>> m_requests;
  struct Retired {
    uint64_t lastStep;  // when this step is done, no rank thread looks at the request any more
    std::unique_ptr<Request> request;
  };
  std::vector<Retired> m_retired;  // finished while steps were in flight
  std::optional<Error> m_failure;
  int m_inFlight = 0;
  uint64_t m_lastSubmitted = 0;
  uint64_t m_arrivals = 0, m_seenPreemptions = 0, m_seenQueries = 0, m_seenHits = 0;
  DraftFigures m_seenDrafts;
  int64_t m_finished = 0;
  IntervalFigures m_figures;
  std::deque<Delivery> m_outbox;
  bool m_delivering = false;

  std::unique_ptr<RankGroup> m_ranks;  // last: its threads call into the rest
};

}  // namespace headroom::engine
