// SPDX-License-Identifier: GPL-3.0-or-later
// What the three charts of a running engine show, made from its history. Pure functions.
#pragma once

#include "ui/charts/chart_content.h"
#include "ui/client/predicted_figure.h"
#include "ui/models/engine_history.h"
#include "ui/theme/theme.h"

#include <optional>

namespace headroom::ui {

struct ChartWindow {
  double from = 0, to = 0;  // seconds since the epoch
  int buckets = 240;        // about one for every three pixels
};

// Two samples further apart than this are not joined: the engine sends two a second.
inline constexpr double kMaxSampleGapSeconds = 3.0;

// Weights, activations, KV cache and what else is on the device, stacked; the plan dashed, the device's size thin.
ChartContent memoryContent(const DeviceHistory& device, const ChartWindow& window, ColorScheme scheme);
// Generated tokens at the left scale, prompt tokens at the right one; predictions dashed, with their bands.
ChartContent throughputContent(const EngineHistory& history, const ChartWindow& window, ColorScheme scheme,
                               std::optional<PredictedFigure> predictedGenerated, std::optional<PredictedFigure> predictedPrompt);
// Each request as a dot, p50 and p95 over a trailing part of the window as lines; the prediction dashed, with its
// band.
ChartContent ttftContent(const EngineHistory& history, const ChartWindow& window, ColorScheme scheme,
                         std::optional<PredictedFigure> predictedMs);
// How much of the window the percentile lines look back over: a tenth, at least 15 s.
double trailingSeconds(const ChartWindow& window);
// p50 or p95 of all requests in the window.
std::optional<double> ttftPercentile(const EngineHistory& history, const ChartWindow& window, double share);

}  // namespace headroom::ui
