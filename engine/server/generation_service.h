// SPDX-License-Identifier: Apache-2.0
// What the server needs of an engine: EngineService hands it to the real one, tests play it from a script.
#pragma once

#include "core/protocol/engine_api.h"
#include "engine/engine.h"

#include <memory>
#include <shared_mutex>

namespace headroom::engine {

// All members are thread-safe, except sampleMetrics(), which has one caller at a time.
class GenerationService {
 public:
  virtual ~GenerationService() = default;
  // As Engine::submit: the sink may be called before submit() returns, and gets a final update whatever happens: Abort where the
  // engine ended, or ends before the answer.
  virtual RequestId submit(GenerationRequest request, UpdateSink sink) = 0;
  virtual void cancel(RequestId id) = 0;
  virtual EngineState state() const = 0;
  virtual MetricsSample sampleMetrics() = 0;
  virtual MetricsSnapshot metrics() const = 0;
  virtual int64_t maxModelLen() const = 0;
  virtual int64_t vocabSize() const = 0;  // token ids are below it
  virtual void drain() = 0;               // no new work is expected
};

// Outlives its engine: whoever still holds it finds an engine that stops.
class EngineService final : public GenerationService {
 public:
  explicit EngineService(std::unique_ptr<Engine> engine);
  // Ends the engine: open requests and later ones get Abort, its memory is free when this returns. Not on the engine's own
  // threads.
  void close();

  RequestId submit(GenerationRequest request, UpdateSink sink) override;
  void cancel(RequestId id) override;
  EngineState state() const override;
  MetricsSample sampleMetrics() override;
  MetricsSnapshot metrics() const override;
  int64_t maxModelLen() const override { return m_maxModelLen; }
  int64_t vocabSize() const override { return m_vocabSize; }
  void drain() override;

 private:
  const int64_t m_maxModelLen, m_vocabSize;
  mutable std::shared_mutex m_mutex;  // close() waits for calls that are under way
  std::unique_ptr<Engine> m_engine;   // null once it is closed
  EngineState m_lastState;            // then
};

}  // namespace headroom::engine
