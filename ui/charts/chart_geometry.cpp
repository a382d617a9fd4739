// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_geometry.h"

#include <QCoreApplication>
#include <QLocale>
#include <algorithm>
#include <array>
#include <cmath>

namespace headroom::ui {

namespace {

constexpr double kKib = 1024.0, kMib = kKib * 1024.0, kGib = kMib * 1024.0;

double niceDecimalStep(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  return 10.0 * power;
}

// Powers of two below a GiB, whole 1, 2, 5 × 10^n GiB above.
double niceByteStep(double rough) {
  if (rough > 0.5 * kGib) return niceDecimalStep(std::max(rough / kGib, 1.0)) * kGib;
  return std::max(std::exp2(std::ceil(std::log2(rough) - 1e-9)), 1.0);
}

// The fewest decimals that tell steps apart.
QString number(double value, double step) {
  int decimals = 0;
  while (decimals < 3 && std::abs(step * std::pow(10.0, decimals) - std::round(step * std::pow(10.0, decimals))) > 1e-6)
    ++decimals;
  return QLocale().toString(value, 'f', decimals);
}

int64_t bucketOf(double time, double width) { return static_cast<int64_t>(std::floor(time / width)); }

}  // namespace

AxisTicks axisTicks(double max, int maxSteps, ValueUnit unit) {
  maxSteps = std::max(maxSteps, 1);
  if (!std::isfinite(max) || max <= 0) max = unit == ValueUnit::Bytes ? kGib : unit == ValueUnit::Milliseconds ? 100.0 : 10.0;
  const double rough = max / maxSteps;
  AxisTicks ticks;
  ticks.step = unit == ValueUnit::Bytes ? niceByteStep(rough) : niceDecimalStep(rough);
  ticks.steps = std::max(1, static_cast<int>(std::ceil(max / ticks.step - 1e-9)));
  return ticks;
}

QString tickLabel(double value, const AxisTicks& ticks, ValueUnit unit) {
  switch (unit) {
    case ValueUnit::Bytes: {
      if (ticks.top() >= kGib)
        return QCoreApplication::translate("headroom::ui::ChartAxis", "%1 GiB").arg(number(value / kGib, ticks.step / kGib));
      if (ticks.top() >= kMib)
        return QCoreApplication::translate("headroom::ui::ChartAxis", "%1 MiB").arg(number(value / kMib, ticks.step / kMib));
      return QCoreApplication::translate("headroom::ui::ChartAxis", "%1 KiB").arg(number(value / kKib, ticks.step / kKib));
    }
    case ValueUnit::Milliseconds:
      if (ticks.top() >= 5000.0)
        return QCoreApplication::translate("headroom::ui::ChartAxis", "%1 s").arg(number(value / 1000.0, ticks.step / 1000.0));
      return QCoreApplication::translate("headroom::ui::ChartAxis", "%1 ms").arg(number(value, ticks.step));
    case ValueUnit::TokensPerSecond:
      return number(value, ticks.step);
  }
  return {};
}

std::vector<int> timeTicks(int windowSeconds, int maxSteps) {
  static constexpr std::array kSteps{1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600, 7200};
  windowSeconds = std::max(windowSeconds, 1);
  int step = windowSeconds;
  for (int candidate : kSteps) {
    if (windowSeconds % candidate != 0 || windowSeconds / candidate > std::max(maxSteps, 1)) continue;
    step = candidate;
    break;
  }
  std::vector<int> ticks;
  for (int ago = windowSeconds; ago >= 0; ago -= step) ticks.push_back(ago);
  return ticks;
}

QString timeTickLabel(int secondsAgo, int windowSeconds) {
  if (secondsAgo == 0) return QCoreApplication::translate("headroom::ui::ChartAxis", "now");
  if (secondsAgo % 60 == 0 && windowSeconds > 60)
    return QCoreApplication::translate("headroom::ui::ChartAxis", "−%1 min").arg(QLocale().toString(secondsAgo / 60));
  return QCoreApplication::translate("headroom::ui::ChartAxis", "−%1 s").arg(QLocale().toString(secondsAgo));
}

std::vector<std::vector<QPointF>> segments(const std::vector<MetricPoint>& points, double origin, double maxGapSeconds) {
  std::vector<std::vector<QPointF>> result;
  bool open = false;
  double last = 0;
  for (const MetricPoint& point : points) {
    if (!point.value || !std::isfinite(*point.value)) {
      open = false;
      continue;
    }
    if (!open || point.time - last > maxGapSeconds) result.emplace_back();
    result.back().emplace_back(point.time - origin, *point.value);
    open = true;
    last = point.time;
  }
  return result;
}

std::vector<MetricPoint> downSample(const std::vector<MetricPoint>& points, double from, double to, int buckets) {
  if (buckets < 1 || to <= from || points.size() <= static_cast<std::size_t>(buckets) * 2) return points;
  const double width = (to - from) / buckets;
  std::vector<MetricPoint> kept;
  std::size_t index = 0;
  while (index < points.size()) {
    const int64_t bucket = bucketOf(points[index].time, width);
    std::optional<std::size_t> lowest, highest, gap;
    for (; index < points.size() && bucketOf(points[index].time, width) == bucket; ++index) {
      if (!points[index].value) {
        gap = index;
        continue;
      }
      if (!lowest || *points[index].value < *points[*lowest].value) lowest = index;
      if (!highest || *points[index].value >= *points[*highest].value) highest = index;
    }
    std::vector<std::size_t> chosen;
    for (const auto& candidate : {lowest, highest, gap})
      if (candidate) chosen.push_back(*candidate);
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    for (std::size_t each : chosen) kept.push_back(points[each]);
  }
  return kept;
}

std::vector<std::size_t> downSampleRows(const std::vector<double>& times, const std::vector<std::optional<double>>& sums,
                                        double from, double to, int buckets) {
  std::vector<std::size_t> kept;
  const std::size_t size = std::min(times.size(), sums.size());
  if (buckets < 1 || to <= from || size <= static_cast<std::size_t>(buckets)) {
    for (std::size_t index = 0; index < size; ++index) kept.push_back(index);
    return kept;
  }
  const double width = (to - from) / buckets;
  std::size_t index = 0;
  while (index < size) {
    const int64_t bucket = bucketOf(times[index], width);
    std::optional<std::size_t> highest, gap;
    for (; index < size && bucketOf(times[index], width) == bucket; ++index) {
      if (!sums[index])
        gap = index;
      else if (!highest || *sums[index] >= *sums[*highest])
        highest = index;
    }
    if (gap && highest && *gap < *highest) kept.push_back(*gap);
    if (highest) kept.push_back(*highest);
    if (gap && (!highest || *gap > *highest)) kept.push_back(*gap);
  }
  return kept;
}

std::optional<double> percentile(std::vector<double> values, double share) {
  if (values.empty()) return std::nullopt;
  const double position = std::clamp(share, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(position));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(low);
  std::nth_element(values.begin(), at, values.end());
  const double lower = *at;
  if (low + 1 >= values.size()) return lower;
  const double upper = *std::min_element(at + 1, values.end());
  return lower + (upper - lower) * (position - static_cast<double>(low));
}

std::vector<MetricPoint> rollingPercentile(const std::vector<MetricPoint>& points, double from, double to, int steps,
                                           double trailing, double share) {
  std::vector<MetricPoint> result;
  if (steps < 1 || to <= from) return result;
  const double width = (to - from) / steps;
  std::size_t first = 0, end = 0;
  // Steps stand at fixed times of the clock: a moving window shows the same curve.
  for (int64_t step = bucketOf(from, width) + 1; static_cast<double>(step) * width <= to + width; ++step) {
    const double time = std::min(static_cast<double>(step) * width, to);
    while (end < points.size() && points[end].time <= time) ++end;
    while (first < end && points[first].time <= time - trailing) ++first;
    std::vector<double> values;
    for (std::size_t index = first; index < end; ++index)
      if (points[index].value) values.push_back(*points[index].value);
    result.push_back({time, percentile(std::move(values), share)});
  }
  return result;
}

}  // namespace headroom::ui
