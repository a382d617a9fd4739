// SPDX-License-Identifier: Apache-2.0
// The engine behind the server: takes token requests, schedules them over the replicas' ranks, returns tokens. Knows no text and no HTTP.
#pragma once

#include "core/launch/planner.h"
#include "core/model/embedding_config.h"
#include "core/protocol/engine_api.h"
#include "engine/engine_metrics.h"
#include "engine/model/rank_group.h"
#include "engine/sample/sampling_params.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace headroom::engine {

enum class FinishReason : uint8_t { Stop, Length, Abort, Error };

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
  int32_t rank = 0;  // 1: the likeliest
};

struct TokenOutput {
  int32_t token = 0;
  std::optional<TokenLogprob> logprob;  // where asked for: of the model's own distribution, before temperature and penalties
  std::vector<TokenLogprob> top;        // likeliest first
};

// What a request's sink gets: new tokens, and with the last one the reason.
struct GenerationUpdate {
  std::vector<TokenOutput> tokens;
  // With the first update where asked for: entry i is about prompt token i (entry 0 is empty): the token itself, then the likeliest.
  std::vector<std::vector<TokenLogprob>> promptLogprobs;
  std::vector<float> embedding;      // (hiddenSize), with the final update of a request that has a pooling; not normalized
  std::optional<FinishReason> finish;
  std::optional<int32_t> stopToken;  // the stop or end token that ended it (it is also the last of `tokens`)
  std::string error;                 // with FinishReason::Error
  int64_t cachedPromptTokens = 0;    // found in the prefix cache
};

struct GenerationRequest {
  std::vector<int32_t> prompt;  // at least one token, all inside the vocabulary
  SamplingParams sampling;
  int priority = 0;             // lower first, as vLLM has it
  std::optional<Pooling> pooling = {};  // the prompt's vector is wanted, and no tokens
};

using RequestId = uint64_t;
using UpdateSink = std::function<void(GenerationUpdate&&)>;  // called on the engine's own threads, one call at a time a request; must not block

struct EngineSettings {
  RankGroupOptions ranks;
  bool prefixCaching = true;
  int64_t draftTokens = 0;  // guessed at most for a request in a step, from what its text repeats; never changes what comes out
  std::string modelName;
  std::vector<int32_t> eosTokenIds;
};

class Engine {
 public:
  // Plans memory (error: does not fit) and starts to load in the background; state().phase tells when it is ready.
  // `stateChanged` is called from any thread whenever state() changed in phase, load progress or error.
  static Result<std::unique_ptr<Engine>> start(ModelSource model, ParallelLayout layout, Machine machine, EngineLimits limits, double utilization,
                                               EngineSettings settings, std::function<void()> stateChanged);
  ~Engine();

  // All of these are thread-safe.
  // The sink always gets a final update with `finish`, whatever happens. Requests longer than the context must be refused before.
  RequestId submit(GenerationRequest request, UpdateSink sink);
  void cancel(RequestId id);               // the sink gets Abort; its blocks are free soon after
  EngineState state() const;
  MetricsSample sampleMetrics();           // since the last call; for one caller at a time
  const EngineMetrics& metrics() const;    // for /metrics; the gauges are brought up to date by this call
  const EngineLimits& limits() const;
  const ModelSource& model() const;
  void drain();                            // no new work is expected: finish what runs; state().phase is Draining

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> m_impl;
};

}  // namespace headroom::engine
