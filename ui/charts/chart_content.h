// SPDX-License-Identifier: GPL-3.0-or-later
// ChartContent: what a chart over time shows, as plain values: stacked bands, lines, dots and levels. Charts draw it, tables
// and CSV list it, tests read it. Knows no chart library.
#pragma once

#include "ui/models/metric_series.h"

#include <QColor>
#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

namespace headroom::ui {

enum class ValueUnit { Bytes, TokensPerSecond, Milliseconds };

// One layer of a stack, bottom first. All bands of a chart have points at the same times.
struct ChartBand {
  QString name;
  QColor color;
  std::vector<MetricPoint> points;
};

struct ChartLine {
  QString name;
  QColor color;
  std::vector<MetricPoint> points;
  bool dashed = false;
  bool rightAxis = false;           // its own scale, at the right
  std::optional<double> told = {};  // what the legend says of it; empty: the latest value
};

struct ChartDots {
  QString name;
  QColor color;
  std::vector<MetricPoint> points;
};

// A value that does not change over the window: a plan, a limit, a prediction.
struct ChartLevel {
  QString name;
  QColor color;
  double value = 0;
  bool dashed = true;
  bool rightAxis = false;
  bool scales = true;  // the axis must reach it; otherwise it is drawn only where it fits
  std::optional<double> error = {};  // share of the value; a band so far below and above it is shaded
  double least() const { return value * (1 - error.value_or(0)); }
  double most() const { return value * (1 + error.value_or(0)); }
};

struct ChartContent {
  ValueUnit unit = ValueUnit::Bytes;
  double from = 0, to = 0;  // seconds since the epoch
  std::vector<ChartBand> bands;
  std::vector<ChartLine> lines;
  std::vector<ChartDots> dots;
  std::vector<ChartLevel> levels;
};

// Known values of bands, lines and dots inside the window.
int pointCount(const ChartContent& content);

// The content as a table: a row for each time, a column for each band, line and set of dots. Unknown cells are empty.
struct ChartTable {
  QStringList headers;  // the first is the time
  std::vector<double> times;
  std::vector<std::vector<std::optional<double>>> rows;
};
ChartTable tableOf(const ChartContent& content);
// RFC 4180 with ISO 8601 times in UTC and a dot for decimals whatever the language, so that every program reads it.
QString toCsv(const ChartTable& table);

// "1.2 GiB", "38.2 tok/s", "310 ms", "—".
QString formatValue(std::optional<double> value, ValueUnit unit);

}  // namespace headroom::ui
