// SPDX-License-Identifier: Apache-2.0
// Buckets are vLLM's (vllm/v1/metrics/loggers.py): seconds for latencies, 1-2-5 steps up to the context for token counts.
#include "engine/engine_metrics.h"

#include <algorithm>

namespace headroom::engine {
namespace {

const std::vector<double> kFirstToken{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                      1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
const std::vector<double> kInterToken{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                      0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
const std::vector<double> kLatency{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
const std::vector<double> kIterationTokens{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
const std::vector<double> kChoices{1, 2, 5, 10, 20};

// 1, 2, 5, 10, 20, 50, … up to `most`.
std::vector<double> steps125(int64_t most) {
  std::vector<double> bounds;
  for (int64_t power = 1;; power *= 10)
    for (int64_t digit : {1, 2, 5}) {
      if (digit * power > most) return bounds;
      bounds.push_back(static_cast<double>(digit * power));
    }
}

}  // namespace

void Histogram::observe(double value, uint64_t times) {
  // Buckets hold values up to and including their bound.
  const auto bucket = std::lower_bound(m_bounds.begin(), m_bounds.end(), value) - m_bounds.begin();
  m_counts[static_cast<size_t>(bucket)] += times;
  m_sum += value * static_cast<double>(times);
  m_count += times;
}

EngineMetrics::EngineMetrics(int64_t maxModelLen) {
  MetricsSnapshot& values = m_values;
  for (const char* reason : {"stop", "length", "abort", "error"}) values.requestSuccess[reason] = 0;
  values.timeToFirstToken = Histogram(kFirstToken);
  values.interTokenLatency = Histogram(kInterToken);
  values.endToEndLatency = values.queueTime = values.prefillTime = values.decodeTime = values.inferenceTime = Histogram(kLatency);
  values.promptLength = values.generationLength = values.maxTokensParameter =
      Histogram(steps125(std::max<int64_t>(maxModelLen, 1)));
  values.iterationTokens = Histogram(kIterationTokens);
  values.nParameter = Histogram(kChoices);
}

MetricsSnapshot EngineMetrics::snapshot() const {
  std::lock_guard lock(m_mutex);
  return m_values;
}

}  // namespace headroom::engine
