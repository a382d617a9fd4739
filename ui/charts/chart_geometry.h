// SPDX-License-Identifier: GPL-3.0-or-later
// The arithmetic of charts over time: ticks, gaps, down-sampling, percentiles. Pure functions; no chart library.
#pragma once

#include "ui/charts/chart_content.h"

#include <QPointF>
#include <QString>
#include <vector>

namespace headroom::ui {

// Ticks from 0 to at least max: steps of 1, 2, 5 × 10^n (of GiB for bytes; powers of two below half a GiB). At most maxSteps
// steps, at least one.
struct AxisTicks {
  double step = 1;
  int steps = 1;
  double top() const { return step * steps; }
};
AxisTicks axisTicks(double max, int maxSteps, ValueUnit unit);
// "1.5 GiB", "20", "250 ms": enough decimals for the step, one unit for the whole axis.
QString tickLabel(double value, const AxisTicks& ticks, ValueUnit unit);

// Seconds before now, largest first, ending with 0: {60, 50, …, 0}. At most maxSteps steps.
std::vector<int> timeTicks(int windowSeconds, int maxSteps);
// "−50 s", "now"; in windows of more than a minute "−4 min".
QString timeTickLabel(int secondsAgo, int windowSeconds);

// Cuts at unknown values and where two points are more than maxGapSeconds apart. x is seconds relative to `origin`.
std::vector<std::vector<QPointF>> segments(const std::vector<MetricPoint>& points, double origin, double maxGapSeconds);

// At most about 2 * buckets points: of every bucket of equal time the lowest and the highest in their order, and every gap,
// so that no peak and no gap is lost. Buckets are aligned to the clock, so that a moving window does not make the line flicker.
std::vector<MetricPoint> downSample(const std::vector<MetricPoint>& points, double from, double to, int buckets);

// For points with several values at a time: the indices of the rows to keep, of each bucket the one with the highest sum, and
// every gap. `sums` empty at an index: a gap.
std::vector<std::size_t> downSampleRows(const std::vector<double>& times, const std::vector<std::optional<double>>& sums,
                                        double from, double to, int buckets);

// Linear interpolation between closest ranks (as NumPy's default). Empty without values. `share` in 0..1.
std::optional<double> percentile(std::vector<double> values, double share);

// The percentile over the last `trailing` seconds at `steps` times of the window; a gap where no value fell into it.
// `points` in order of time; may begin before `from`.
std::vector<MetricPoint> rollingPercentile(const std::vector<MetricPoint>& points, double from, double to, int steps,
                                           double trailing, double share);

}  // namespace headroom::ui
