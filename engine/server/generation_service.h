// SPDX-License-Identifier: Apache-2.0
// What the server needs of an engine: EngineService hands it to the real one, tests play it from a script.
#pragma once

#include "core/protocol/engine_api.h"
#include "engine/engine.h"

namespace headroom::engine {

// All members are thread-safe, except sampleMetrics(), which has one caller at a time.
class GenerationService {
 public:
  virtual ~GenerationService() = default;
  // As Engine::submit: the sink may be called before submit() returns, and gets a final update whatever happens.
  virtual RequestId submit(GenerationRequest request, UpdateSink sink) = 0;
  virtual void cancel(RequestId id) = 0;
  virtual EngineState state() const = 0;
  virtual MetricsSample sampleMetrics() = 0;
  virtual MetricsSnapshot metrics() const = 0;
  virtual int64_t maxModelLen() const = 0;
  virtual int64_t vocabSize() const = 0;  // token ids are below it
};

class EngineService final : public GenerationService {
 public:
  explicit EngineService(Engine& engine) : m_engine(engine) {}
  RequestId submit(GenerationRequest request, UpdateSink sink) override;
  void cancel(RequestId id) override;
  EngineState state() const override;
  MetricsSample sampleMetrics() override;
  MetricsSnapshot metrics() const override;
  int64_t maxModelLen() const override;
  int64_t vocabSize() const override;

 private:
  Engine& m_engine;
};

}  // namespace headroom::engine
