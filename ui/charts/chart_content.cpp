// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_content.h"

#include "ui/theme/format.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>
#include <cmath>
#include <map>

namespace headroom::ui {

namespace {

QString quoted(QString cell) {
  if (!cell.contains(QLatin1Char(',')) && !cell.contains(QLatin1Char('"')) && !cell.contains(QLatin1Char('\n'))) return cell;
  cell.replace(QLatin1Char('"'), QStringLiteral("\"\""));
  return QLatin1Char('"') + cell + QLatin1Char('"');
}

QString unitSuffix(ValueUnit unit) {
  switch (unit) {
    case ValueUnit::Bytes:
      return QCoreApplication::translate("headroom::ui::ChartContent", "bytes");
    case ValueUnit::TokensPerSecond:
      return QCoreApplication::translate("headroom::ui::ChartContent", "tok/s");
    case ValueUnit::Milliseconds:
      return QCoreApplication::translate("headroom::ui::ChartContent", "ms");
  }
  return {};
}

}  // namespace

int pointCount(const ChartContent& content) {
  int count = 0;
  const auto add = [&](const std::vector<MetricPoint>& points) {
    for (const MetricPoint& point : points) count += point.value && point.time >= content.from && point.time <= content.to;
  };
  for (const auto& band : content.bands) add(band.points);
  for (const auto& line : content.lines) add(line.points);
  for (const auto& dots : content.dots) add(dots.points);
  return count;
}

ChartTable tableOf(const ChartContent& content) {
  ChartTable table;
  table.headers.append(QCoreApplication::translate("headroom::ui::ChartContent", "Time"));
  // Several dots may share a time: each further one gets a row of its own.
  std::multimap<double, std::vector<std::optional<double>>> rows;
  const std::size_t columns = content.bands.size() + content.lines.size() + content.dots.size();
  std::size_t column = 0;
  const auto add = [&](const QString& name, const std::vector<MetricPoint>& points) {
    table.headers.append(QStringLiteral("%1 (%2)").arg(name, unitSuffix(content.unit)));
    for (const MetricPoint& point : points) {
      if (!point.value || point.time < content.from || point.time > content.to) continue;
      auto [row, end] = rows.equal_range(point.time);
      while (row != end && row->second[column]) ++row;
      if (row == end) row = rows.emplace(point.time, std::vector<std::optional<double>>(columns));
      row->second[column] = point.value;
    }
    ++column;
  };
  for (const auto& band : content.bands) add(band.name, band.points);
  for (const auto& line : content.lines) add(line.name, line.points);
  for (const auto& dots : content.dots) add(dots.name, dots.points);
  for (const auto& [time, row] : rows) {
    table.times.push_back(time);
    table.rows.push_back(row);
  }
  return table;
}

QString toCsv(const ChartTable& table) {
  QString csv;
  QStringList cells;
  for (const QString& header : table.headers) cells.append(quoted(header));
  csv += cells.join(QLatin1Char(',')) + QStringLiteral("\r\n");
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    cells = {QDateTime::fromMSecsSinceEpoch(std::llround(table.times[row] * 1000.0), Qt::UTC).toString(Qt::ISODateWithMs)};
    for (const auto& value : table.rows[row]) cells.append(value ? QString::number(*value, 'g', 12) : QString());
    csv += cells.join(QLatin1Char(',')) + QStringLiteral("\r\n");
  }
  return csv;
}

QString formatValue(std::optional<double> value, ValueUnit unit) {
  if (!value || !std::isfinite(*value)) return kUnknown;
  switch (unit) {
    case ValueUnit::Bytes:
      return formatGib(Bytes(std::llround(*value)));
    case ValueUnit::TokensPerSecond:
      return QCoreApplication::translate("headroom::ui::ChartContent", "%1 tok/s").arg(formatDecimal(value));
    case ValueUnit::Milliseconds:
      return *value < 10000
                 ? QCoreApplication::translate("headroom::ui::ChartContent", "%1 ms").arg(formatDecimal(value))
                 : QCoreApplication::translate("headroom::ui::ChartContent", "%1 s").arg(formatDecimal(*value / 1000.0));
  }
  return {};
}

}  // namespace headroom::ui
