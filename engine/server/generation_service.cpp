// SPDX-License-Identifier: Apache-2.0
#include "engine/server/generation_service.h"

namespace headroom::engine {

RequestId EngineService::submit(GenerationRequest request, UpdateSink sink) {
  return m_engine.submit(std::move(request), std::move(sink));
}
void EngineService::cancel(RequestId id) { m_engine.cancel(id); }
EngineState EngineService::state() const { return m_engine.state(); }
MetricsSample EngineService::sampleMetrics() { return m_engine.sampleMetrics(); }
MetricsSnapshot EngineService::metrics() const { return m_engine.metrics().snapshot(); }
int64_t EngineService::maxModelLen() const { return m_engine.limits().maxModelLen; }
int64_t EngineService::vocabSize() const { return m_engine.model().config.vocabSize; }

}  // namespace headroom::engine
