// SPDX-License-Identifier: GPL-3.0-or-later
// EngineHistory: the last hour of a served engine as the charts need it: memory by device, tokens per second, times to first
// token. Fed with states and samples; knows no widget and no network. GUI thread only.
#pragma once

#include "core/protocol/engine_api.h"
#include "ui/models/metric_series.h"

#include <optional>
#include <string>
#include <vector>

namespace headroom::ui {

// Bytes of one device. Unknown parts stay empty.
struct MemoryPoint {
  double time = 0;
  std::optional<double> weights, kvCache, activations;  // activations count the graphs
  std::optional<double> other;                          // used on the device, but not by the engine's parts
};

struct ThroughputPoint {
  double time = 0;
  std::optional<double> generated, prompt;  // tokens per second
};

struct TtftPoint {
  double time = 0;
  double milliseconds = 0;
};

// One device and the ranks on it (one, unless several ranks share a GPU).
struct DeviceHistory {
  std::string device;
  std::vector<RankState> ranks;        // as last told
  std::optional<double> plannedBytes;  // of all its ranks; empty when a part of the plan is unknown
  std::optional<double> totalBytes;
  std::optional<double> allocatedBytes() const;
  TimeRing<MemoryPoint> memory;
};

class EngineHistory {
 public:
  static constexpr double kSpanSeconds = 3600;
  static constexpr double kSamplesPerSecond = 2;
  static constexpr std::size_t kMaxTtftPoints = 20000;

  EngineHistory();

  void clear();
  // Nothing is known from here on until the next sample: a start, an end, a lost connection.
  void addGap(double time);
  void applyState(const EngineState& state);
  void addSample(const MetricsSample& sample);

  const std::vector<DeviceHistory>& devices() const { return m_devices; }
  const TimeRing<ThroughputPoint>& throughput() const { return m_throughput; }
  const TimeRing<TtftPoint>& ttft() const { return m_ttft; }
  const std::optional<MetricsSample>& lastSample() const { return m_lastSample; }
  // The engine's clock at the last sample; empty when there was none.
  std::optional<double> lastTime() const;

 private:
  std::vector<DeviceHistory> m_devices;
  TimeRing<ThroughputPoint> m_throughput;
  TimeRing<TtftPoint> m_ttft;
  std::optional<MetricsSample> m_lastSample;
};

}  // namespace headroom::ui
