// SPDX-License-Identifier: Apache-2.0
#include "engine/server/generation_service.h"

#include <mutex>
#include <utility>

namespace headroom::engine {

EngineService::EngineService(std::unique_ptr<Engine> engine)
    : m_maxModelLen(engine->limits().maxModelLen), m_vocabSize(engine->model().config.vocabSize), m_engine(std::move(engine)) {}

void EngineService::close() {
  std::unique_ptr<Engine> engine;
  {
    std::unique_lock lock(m_mutex);
    if (!m_engine) return;
    m_lastState = m_engine->state();
    if (m_lastState.phase != EnginePhase::Failed) m_lastState.phase = EnginePhase::Draining;
    m_lastState.requestsRunning = m_lastState.requestsWaiting = 0;
    engine = std::move(m_engine);
  }
  // Here it gives open requests their end; their sinks may call back.
}

RequestId EngineService::submit(GenerationRequest request, UpdateSink sink) {
  {
    std::shared_lock lock(m_mutex);
    if (m_engine) return m_engine->submit(std::move(request), std::move(sink));
  }
  GenerationUpdate update;
  update.finish = FinishReason::Abort;
  sink(std::move(update));
  return 0;
}

void EngineService::cancel(RequestId id) {
  std::shared_lock lock(m_mutex);
  if (m_engine) m_engine->cancel(id);
}

EngineState EngineService::state() const {
  std::shared_lock lock(m_mutex);
  return m_engine ? m_engine->state() : m_lastState;
}

MetricsSample EngineService::sampleMetrics() {
  std::shared_lock lock(m_mutex);
  return m_engine ? m_engine->sampleMetrics() : MetricsSample();
}

MetricsSnapshot EngineService::metrics() const {
  std::shared_lock lock(m_mutex);
  return m_engine ? m_engine->metrics().snapshot() : MetricsSnapshot();
}

void EngineService::drain() {
  std::shared_lock lock(m_mutex);
  if (m_engine) m_engine->drain();
}

}  // namespace headroom::engine
