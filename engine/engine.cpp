// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include "engine/replica.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

namespace headroom::engine {

struct Engine::Impl {
  ModelSource model;
  ParallelLayout layout;
  Machine machine;
  EngineLimits limits;
  EngineSettings settings;
  EngineMemoryPlan memory;
  EngineMetrics metrics;
  std::function<void()> stateChanged;
  std::atomic<RequestId> nextId{1};
  std::atomic<bool> draining{false};
  std::atomic<bool> started{false};  // all replicas stand: state() may look at them

  mutable std::mutex placesMutex;
  mutable std::unordered_map<RequestId, size_t> places;  // which replica serves it

  std::chrono::steady_clock::time_point lastSample = std::chrono::steady_clock::now();

  std::vector<std::unique_ptr<Replica>> replicas;  // last: destroyed first, while the rest still stands

  // Where a request is served: the least work ahead of it, cached prompt tokens taken off.
  size_t chooseReplica(const std::vector<int32_t>& prompt) const;
};

namespace {

// Tokens to compute before this prompt's first answer.
int64_t costOn(const Replica& replica, const std::vector<int32_t>& prompt) {
  return replica.queuedTokens() + static_cast<int64_t>(prompt.size()) - replica.cachedPrefix(prompt);
}

}  // namespace

size_t Engine::Impl::chooseReplica(const std::vector<int32_t>& prompt) const {
  if (replicas.size() == 1) return 0;
  size_t best = 0;
  int64_t least = costOn(*replicas[0], prompt);
  for (size_t i = 1; i < replicas.size(); ++i) {
    const int64_t cost = costOn(*replicas[i], prompt);
    if (cost < least) {
      least = cost;
      best = i;
    }
  }
  return best;
}

Engine::Engine(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::start(ModelSource model, ParallelLayout layout, Machine machine, EngineLimits limits,
                                              double utilization, EngineSettings settings, std::function<void()> stateChanged) {
  auto impl = std::make_unique<Impl>();
  impl->model = std::move(model);
  impl->layout = std::move(layout);
  impl->machine = std::move(machine);
  impl->limits = limits;
  impl->settings = std::move(settings);
  impl->stateChanged = stateChanged ? std::move(stateChanged) : [] {};
  auto memory = planEngineMemory(impl->model, impl->layout, impl->machine, impl->limits, utilization);
  if (!memory) return tl::unexpected(memory.error());
  impl->memory = std::move(*memory);

  RankGroupOptions& ranks = impl->settings.ranks;
  const int cores = std::max(1u, std::thread::hardware_concurrency());
  if (ranks.threads <= 0) ranks.threads = cores;
  // Ranks that have no core of their own must not spin on another's.
  ranks.spin = ranks.spin && impl->layout.worldSize() <= cores && ranks.threads <= cores;
  ranks.threads = std::max(1, ranks.threads / impl->layout.dp);

  Impl* self = impl.get();
  for (int replica = 0; replica < impl->layout.dp; ++replica) {
    impl->replicas.push_back(std::make_unique<Replica>(impl->model, impl->layout, replica, impl->machine, impl->limits,
                                                       impl->memory, impl->settings, impl->metrics, [self] {
                                                         if (self->started) self->stateChanged();
                                                       }));
  }
  impl->started = true;
  impl->stateChanged();
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

RequestId Engine::submit(GenerationRequest request, UpdateSink sink) {
  const RequestId id = m_impl->nextId++;
  const size_t place = m_impl->chooseReplica(request.prompt);
  {
    std::lock_guard lock(m_impl->placesMutex);
    m_impl->places.emplace(id, place);
  }
  Impl* impl = m_impl.get();
  m_impl->replicas[place]->submit(id, std::move(request), [impl, id, sink = std::move(sink)](GenerationUpdate&& update) {
    const bool last = update.finish.has_value();
    sink(std::move(update));
    if (!last) return;
    std::lock_guard lock(impl->placesMutex);
    impl->places.erase(id);
  });
  return id;
}

void Engine::cancel(RequestId id) {
  size_t place = 0;
  {
    std::lock_guard lock(m_impl->placesMutex);
    const auto found = m_impl->places.find(id);
    if (found == m_impl->places.end()) return;
    place = found->second;
  }
  m_impl->replicas[place]->cancel(id);
}

EngineState Engine::state() const {
  EngineState state;
  state.model = m_impl->settings.modelName;
  state.tp = m_impl->layout.tp;
  state.pp = m_impl->layout.pp;
  state.dp = m_impl->layout.dp;
  state.blockTokens = m_impl->limits.blockTokens;
  bool ready = true;
  for (const auto& replica : m_impl->replicas) {
    // Before the figures: who reads "ready" reads what loading left.
    ready = ready && replica->isReady();
    for (RankState& rank : replica->rankStates()) state.ranks.push_back(std::move(rank));
    const Replica::Load load = replica->load();
    state.kvBlocksTotal += load.blocksTotal;
    state.kvBlocksFree += load.blocksFree;
    state.requestsRunning += load.running;
    state.requestsWaiting += load.waiting;
    state.requestsFinished += load.finished;
    if (const std::optional<Error> failure = replica->failure()) {
      if (state.error.empty()) state.error = failure->message();
    }
  }
  // Ranks that share a device say the same of it.
  std::map<std::string, int64_t> used;
  for (const RankState& rank : state.ranks) used[rank.device] += rank.deviceUsedBytes.value_or(0);
  for (RankState& rank : state.ranks) rank.deviceUsedBytes = used[rank.device];
  state.phase = !state.error.empty() ? EnginePhase::Failed
                : m_impl->draining   ? EnginePhase::Draining
                : ready              ? EnginePhase::Ready
                                     : EnginePhase::Loading;
  return state;
}

MetricsSample Engine::sampleMetrics() {
  MetricsSample sample;
  const auto now = std::chrono::steady_clock::now();
  sample.time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  sample.intervalSeconds = std::chrono::duration<double>(now - std::exchange(m_impl->lastSample, now)).count();
  uint64_t generated = 0, prompt = 0;
  for (const auto& replica : m_impl->replicas) {
    IntervalFigures figures = replica->takeFigures();
    generated += figures.generatedTokens;
    prompt += figures.promptTokens;
    sample.ttftMs.insert(sample.ttftMs.end(), figures.ttftMs.begin(), figures.ttftMs.end());
    sample.itlMs.insert(sample.itlMs.end(), figures.itlMs.begin(), figures.itlMs.end());
  }
  if (sample.intervalSeconds > 0) {
    sample.generatedTokensPerSecond = static_cast<double>(generated) / sample.intervalSeconds;
    sample.promptTokensPerSecond = static_cast<double>(prompt) / sample.intervalSeconds;
  }
  const EngineState current = state();
  sample.kvBlocksTotal = current.kvBlocksTotal;
  sample.kvBlocksFree = current.kvBlocksFree;
  sample.requestsRunning = current.requestsRunning;
  sample.requestsWaiting = current.requestsWaiting;
  sample.requestsFinished = current.requestsFinished;
  for (const RankState& rank : current.ranks) sample.deviceUsedBytes.push_back(rank.deviceUsedBytes);
  return sample;
}

const EngineMetrics& Engine::metrics() const {
  const EngineState current = state();
  m_impl->metrics.update([&](MetricsSnapshot& values) {
    values.running = current.requestsRunning;
    values.waiting = current.requestsWaiting;
    values.kvCacheUsage = current.kvBlocksTotal > 0
                              ? 1.0 - static_cast<double>(current.kvBlocksFree) / static_cast<double>(current.kvBlocksTotal)
                              : 0.0;
  });
  return m_impl->metrics;
}

const EngineLimits& Engine::limits() const { return m_impl->limits; }
const ModelSource& Engine::model() const { return m_impl->model; }
void Engine::drain() {
  m_impl->draining = true;
  m_impl->stateChanged();
}

}  // namespace headroom::engine
