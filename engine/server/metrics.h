// SPDX-License-Identifier: Apache-2.0
// The engine's counters in Prometheus' text format 0.0.4.
#pragma once

#include "engine/engine_metrics.h"

#include <span>
#include <string>
#include <string_view>

namespace headroom::engine {

// Families are named "headroom:" and then as vLLM names them.
std::string prometheusText(const MetricsSnapshot& metrics, std::string_view modelName);
struct ModelMetrics {
  std::string name;
  MetricsSnapshot values;
};
std::string prometheusText(std::span<const ModelMetrics> models);

}  // namespace headroom::engine
