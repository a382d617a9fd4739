// SPDX-License-Identifier: Apache-2.0
// Counters and histograms of the engine, for /metrics. Names and buckets are those of vLLM after the prefix, so that a dashboard
// moves over with one replacement (https://docs.vllm.ai/en/latest/usage/metrics.html).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace headroom::engine {

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds = {}) : m_bounds(std::move(bounds)), m_counts(m_bounds.size() + 1) {}
  void observe(double value, uint64_t times = 1);
  const std::vector<double>& bounds() const { return m_bounds; }
  const std::vector<uint64_t>& counts() const { return m_counts; }  // not cumulative; the last is above all bounds
  double sum() const { return m_sum; }
  uint64_t count() const { return m_count; }

 private:
  std::vector<double> m_bounds;
  std::vector<uint64_t> m_counts;
  double m_sum = 0;
  uint64_t m_count = 0;
};

// A copy at one moment.
struct MetricsSnapshot {
  uint64_t promptTokens = 0, generationTokens = 0, preemptions = 0, prefixCacheQueries = 0,
           prefixCacheHits = 0;                    // tokens, as in vLLM
  uint64_t drafts = 0, draftTokens = 0, acceptedTokens = 0;  // guesses (prompt lookup)
  std::vector<uint64_t> acceptedAt;                // by place in the draft
  std::map<std::string, uint64_t> requestSuccess;  // by finished_reason: stop, length, abort, error
  int64_t running = 0, waiting = 0;
  double kvCacheUsage = 0;  // 0 … 1
  Histogram timeToFirstToken, interTokenLatency, endToEndLatency, queueTime, prefillTime, decodeTime, inferenceTime, promptLength,
      generationLength, maxTokensParameter, iterationTokens, nParameter;
};

class EngineMetrics {
 public:
  // Token-count buckets reach up to `maxModelLen`.
  explicit EngineMetrics(int64_t maxModelLen = 131072);
  MetricsSnapshot snapshot() const;
  // Writers hold the lock through this.
  template <class F>
  void update(F&& change) {
    std::lock_guard lock(m_mutex);
    change(m_values);
  }

 private:
  mutable std::mutex m_mutex;
  MetricsSnapshot m_values;
};

}  // namespace headroom::engine
