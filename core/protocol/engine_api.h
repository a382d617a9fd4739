// SPDX-License-Identifier: Apache-2.0
// Wire types of /engine/state and /engine/events, shared by the engine and its clients.
#pragma once

#include "core/result.h"
#include "core/units.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

inline constexpr const char* kEngineSchema = "headroom.engine/1";

enum class EnginePhase : uint8_t { Loading, Ready, Draining, Failed };

struct RankBytes {
  std::optional<int64_t> weights, kvCache, activations, graphs;
};

struct RankState {
  int rank = 0, replica = 0, stage = 0, tpRank = 0;
  std::string device;  // "cpu:0", "cuda:2"
  Range layers;
  RankBytes planned, allocated;
  // Used: what all ranks of all models of the process hold on the device, recorded graphs included; not what other processes
  // hold.
  std::optional<int64_t> deviceUsedBytes, deviceTotalBytes;
  int64_t loadBytesDone = 0, loadBytesTotal = 0;
};

struct EngineState {
  EnginePhase phase = EnginePhase::Loading;
  std::string error;  // set when failed
  std::string model;
  int tp = 1, pp = 1, dp = 1;
  std::vector<RankState> ranks;
  int64_t kvBlocksTotal = 0, kvBlocksFree = 0, blockTokens = 16;
  int64_t requestsRunning = 0, requestsWaiting = 0, requestsFinished = 0;
};

// One point of the live charts. Rates are over the interval since the last sample.
struct MetricsSample {
  double time = 0;  // seconds since the epoch
  double intervalSeconds = 0;
  double generatedTokensPerSecond = 0;
  double promptTokensPerSecond = 0;
  std::vector<double> ttftMs;  // of each request that got its first token in the interval
  std::vector<double> itlMs;   // mean gap of each request that got tokens in the interval
  int64_t kvBlocksTotal = 0, kvBlocksFree = 0;
  int64_t requestsRunning = 0, requestsWaiting = 0, requestsFinished = 0;
  std::vector<std::optional<int64_t>> deviceUsedBytes;  // by rank; for stacked charts with RankState's allocated parts
};

std::string_view phaseName(EnginePhase phase);
nlohmann::json toJson(const EngineState& state);
nlohmann::json toJson(const MetricsSample& sample);
Result<EngineState> engineStateFromJson(const nlohmann::json& json);
Result<MetricsSample> metricsSampleFromJson(const nlohmann::json& json);

// /engine/events sends SSE events named "state" (an EngineState, on each change) and "metrics" (a MetricsSample, twice a second).

}  // namespace headroom
