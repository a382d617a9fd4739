// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/engine_history.h"

#include <algorithm>

namespace headroom::ui {

namespace {

constexpr std::size_t kSamples = static_cast<std::size_t>(EngineHistory::kSpanSeconds * EngineHistory::kSamplesPerSecond);

using Part = std::optional<int64_t> RankBytes::*;

// The sum over ranks; empty as soon as one is unknown.
std::optional<double> sum(const std::vector<RankState>& ranks, RankBytes RankState::*set, std::initializer_list<Part> parts) {
  double bytes = 0;
  for (const RankState& rank : ranks) {
    for (Part part : parts) {
      const auto& value = (rank.*set).*part;
      if (!value) return std::nullopt;
      bytes += static_cast<double>(*value);
    }
  }
  return ranks.empty() ? std::nullopt : std::optional(bytes);
}

// Activations, and graphs where the device has any: an unknown graph size does not hide the rest.
std::optional<double> sumActivations(const std::vector<RankState>& ranks, RankBytes RankState::*set) {
  auto bytes = sum(ranks, set, {&RankBytes::activations});
  if (const auto graphs = sum(ranks, set, {&RankBytes::graphs}); bytes && graphs) *bytes += *graphs;
  return bytes;
}

std::optional<double> total(std::initializer_list<std::optional<double>> parts) {
  double bytes = 0;
  for (const auto& part : parts) {
    if (!part) return std::nullopt;
    bytes += *part;
  }
  return bytes;
}

}  // namespace

std::optional<double> DeviceHistory::allocatedBytes() const {
  return total({sum(ranks, &RankState::allocated, {&RankBytes::weights}),
                sum(ranks, &RankState::allocated, {&RankBytes::kvCache}), sumActivations(ranks, &RankState::allocated)});
}

EngineHistory::EngineHistory() : m_throughput(kSamples), m_ttft(kMaxTtftPoints) {}

void EngineHistory::clear() { *this = EngineHistory(); }

void EngineHistory::addGap(double time) {
  for (DeviceHistory& device : m_devices) device.memory.add({time, {}, {}, {}, {}});
  m_throughput.add({time, {}, {}});
  m_lastSample.reset();
}

void EngineHistory::applyState(const EngineState& state) {
  std::vector<DeviceHistory> devices;
  for (const RankState& rank : state.ranks) {
    auto found =
        std::find_if(devices.begin(), devices.end(), [&](const DeviceHistory& device) { return device.device == rank.device; });
    if (found == devices.end() || rank.device.empty()) {
      devices.push_back({rank.device, {}, {}, {}, TimeRing<MemoryPoint>(kSamples)});
      found = std::prev(devices.end());
    }
    found->ranks.push_back(rank);
    if (rank.deviceTotalBytes) found->totalBytes = static_cast<double>(*rank.deviceTotalBytes);
  }
  for (DeviceHistory& device : devices) {
    device.plannedBytes =
        total({sum(device.ranks, &RankState::planned, {&RankBytes::weights}),
               sum(device.ranks, &RankState::planned, {&RankBytes::kvCache}), sumActivations(device.ranks, &RankState::planned)});
    // The same device with the same ranks keeps its past.
    for (DeviceHistory& old : m_devices) {
      if (old.device == device.device && old.ranks.size() == device.ranks.size() &&
          old.ranks.front().rank == device.ranks.front().rank)
        device.memory = std::move(old.memory);
    }
  }
  m_devices = std::move(devices);
}

void EngineHistory::addSample(const MetricsSample& sample) {
  m_lastSample = sample;
  m_throughput.add({sample.time, sample.generatedTokensPerSecond, sample.promptTokensPerSecond});
  for (double milliseconds : sample.ttftMs) m_ttft.add({sample.time, milliseconds});
  for (DeviceHistory& device : m_devices) {
    MemoryPoint point;
    point.time = sample.time;
    point.weights = sum(device.ranks, &RankState::allocated, {&RankBytes::weights});
    point.kvCache = sum(device.ranks, &RankState::allocated, {&RankBytes::kvCache});
    point.activations = sumActivations(device.ranks, &RankState::allocated);
    const auto own = total({point.weights, point.kvCache, point.activations});
    const auto rank = static_cast<std::size_t>(device.ranks.front().rank);
    if (own && rank < sample.deviceUsedBytes.size() && sample.deviceUsedBytes[rank])
      point.other = std::max(0.0, static_cast<double>(*sample.deviceUsedBytes[rank]) - *own);
    device.memory.add(point);
  }
}

std::optional<double> EngineHistory::lastTime() const { return m_lastSample ? std::optional(m_lastSample->time) : std::nullopt; }

}  // namespace headroom::ui
