// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/engine_charts.h"

#include "ui/charts/chart_geometry.h"

#include <QCoreApplication>
#include <algorithm>

namespace headroom::ui {

namespace {

// A device more than this many times larger than what is on it would press the bands flat: its size is then only told in words.
constexpr double kMostEmptyScale = 5.0;

QString name(const char* text) { return QCoreApplication::translate("headroom::ui::EngineCharts", text); }

QColor levelColor(ColorScheme scheme) { return makePalette(scheme).color(QPalette::WindowText); }

std::vector<MetricPoint> ttftPoints(const EngineHistory& history, double from, double to) {
  std::vector<MetricPoint> points;
  for (const TtftPoint& point : history.ttft().between(from, to)) points.push_back({point.time, point.milliseconds});
  return points;
}

}  // namespace

ChartContent memoryContent(const DeviceHistory& device, const ChartWindow& window, ColorScheme scheme) {
  ChartContent content;
  content.unit = ValueUnit::Bytes;
  content.from = window.from;
  content.to = window.to;
  const std::vector<MemoryPoint> points = device.memory.between(window.from, window.to, true);

  std::vector<double> times;
  std::vector<std::optional<double>> sums;
  for (const MemoryPoint& point : points) {
    std::optional<double> sum;
    for (const auto& part : {point.weights, point.activations, point.kvCache, point.other})
      if (part) sum = sum.value_or(0) + *part;
    times.push_back(point.time);
    sums.push_back(sum);
  }
  const auto kept = downSampleRows(times, sums, window.from, window.to, window.buckets);
  const auto band = [&](const QString& title, MemoryPart color, std::optional<double> MemoryPoint::*part) {
    ChartBand band{title, memoryPartColor(color, scheme), {}};
    for (std::size_t index : kept) band.points.push_back({points[index].time, points[index].*part});
    content.bands.push_back(std::move(band));
  };
  band(name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Weights")), MemoryPart::Weights, &MemoryPoint::weights);
  band(name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Activations")), MemoryPart::Activations, &MemoryPoint::activations);
  band(name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "KV cache")), MemoryPart::KvCache, &MemoryPoint::kvCache);
  // A band that is nothing all the time would only lengthen the legend.
  if (std::any_of(kept.begin(), kept.end(), [&](std::size_t index) { return points[index].other.value_or(0) > 0; }))
    band(name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Other")), MemoryPart::Runtime, &MemoryPoint::other);

  double top = device.plannedBytes.value_or(0);
  for (const auto& sum : sums) top = std::max(top, sum.value_or(0));
  if (device.plannedBytes)
    content.levels.push_back({name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Plan")), levelColor(scheme),
                              *device.plannedBytes, true, false, true});
  if (device.totalBytes)
    content.levels.push_back({name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Device")), levelColor(scheme),
                              *device.totalBytes, false, false, top <= 0 || *device.totalBytes <= kMostEmptyScale * top});
  return content;
}

ChartContent throughputContent(const EngineHistory& history, const ChartWindow& window, ColorScheme scheme,
                               std::optional<PredictedFigure> predictedGenerated,
                               std::optional<PredictedFigure> predictedPrompt) {
  ChartContent content;
  content.unit = ValueUnit::TokensPerSecond;
  content.from = window.from;
  content.to = window.to;
  const std::vector<ThroughputPoint> points = history.throughput().between(window.from, window.to, true);
  const auto line = [&](const QString& title, MemoryPart color, std::optional<double> ThroughputPoint::*part, bool right) {
    std::vector<MetricPoint> values;
    for (const ThroughputPoint& point : points) values.push_back({point.time, point.*part});
    content.lines.push_back(
        {title, memoryPartColor(color, scheme), downSample(values, window.from, window.to, window.buckets / 2), false, right});
  };
  // Prompts go in bursts of hundreds of tokens; on one scale they would flatten what is generated.
  line(name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Prompt, right scale")), MemoryPart::KvCache,
       &ThroughputPoint::prompt, true);
  line(name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Generated")), MemoryPart::Weights, &ThroughputPoint::generated,
       false);
  if (predictedGenerated)
    content.levels.push_back({name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Predicted, generated")),
                              memoryPartColor(MemoryPart::Weights, scheme), predictedGenerated->value, true, false, true,
                              predictedGenerated->error});
  if (predictedPrompt)
    content.levels.push_back({name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Predicted, prompt")),
                              memoryPartColor(MemoryPart::KvCache, scheme), predictedPrompt->value, true, true, true,
                              predictedPrompt->error});
  return content;
}

ChartContent ttftContent(const EngineHistory& history, const ChartWindow& window, ColorScheme scheme,
                         std::optional<PredictedFigure> predictedMs) {
  constexpr int kPercentileSteps = 120;
  ChartContent content;
  content.unit = ValueUnit::Milliseconds;
  content.from = window.from;
  content.to = window.to;
  const double trailing = trailingSeconds(window);
  const std::vector<MetricPoint> points = ttftPoints(history, window.from - trailing, window.to);
  content.dots.push_back({name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Requests")),
                          memoryPartColor(MemoryPart::Activations, scheme),
                          downSample(ttftPoints(history, window.from, window.to), window.from, window.to, window.buckets * 2)});
  if (!points.empty()) {
    content.lines.push_back({name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "p50")),
                             memoryPartColor(MemoryPart::Weights, scheme),
                             rollingPercentile(points, window.from, window.to, kPercentileSteps, trailing, 0.50), false, false,
                             ttftPercentile(history, window, 0.50)});
    content.lines.push_back({name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "p95")),
                             memoryPartColor(MemoryPart::KvCache, scheme),
                             rollingPercentile(points, window.from, window.to, kPercentileSteps, trailing, 0.95), false, false,
                             ttftPercentile(history, window, 0.95)});
  }
  if (predictedMs)
    content.levels.push_back({name(QT_TRANSLATE_NOOP("headroom::ui::EngineCharts", "Predicted")), levelColor(scheme),
                              predictedMs->value, true, false, true, predictedMs->error});
  return content;
}

double trailingSeconds(const ChartWindow& window) { return std::max((window.to - window.from) / 10.0, 15.0); }

std::optional<double> ttftPercentile(const EngineHistory& history, const ChartWindow& window, double share) {
  std::vector<double> values;
  for (const TtftPoint& point : history.ttft().between(window.from, window.to)) values.push_back(point.milliseconds);
  return percentile(std::move(values), share);
}

}  // namespace headroom::ui
