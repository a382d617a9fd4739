// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/gpu_list_model.h"

#include "ui/theme/format.h"

namespace headroom::ui {

GpuListModel::GpuListModel(QObject* parent) : QAbstractTableModel(parent) {}

void GpuListModel::setReadings(const std::vector<GpuReading>& readings) {
  if (readings.size() != m_gpus.size()) {
    beginResetModel();
    m_gpus = readings;
    endResetModel();
    return;
  }
  m_gpus = readings;
  if (!m_gpus.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

void GpuListModel::retranslate() {
  emit headerDataChanged(Qt::Horizontal, 0, ColumnCount - 1);
  if (!m_gpus.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int GpuListModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(m_gpus.size()); }
int GpuListModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QString GpuListModel::cell(const GpuReading& gpu, int column) const {
  const auto bytes = [](const std::optional<int64_t>& count) {
    return formatGib(count ? std::optional(Bytes(*count)) : std::nullopt);
  };
  const auto whole = [](const std::optional<double>& value) {
    return value ? formatCount(static_cast<int64_t>(*value + 0.5)) : kUnknown;
  };
  const auto unit = [&](const std::optional<double>& value, const QString& text) {
    return value ? text.arg(whole(value)) : kUnknown;
  };
  switch (column) {
    case Index:
      return QString::number(gpu.index);
    case Name:
      return gpu.name.isEmpty() ? kUnknown : gpu.name;
    case Memory:
      return tr("%1 of %2").arg(bytes(gpu.usedBytes), bytes(gpu.totalBytes));
    case Busy:
      return gpu.utilization ? tr("%1 %").arg(whole(*gpu.utilization * 100)) : kUnknown;
    case Power:
      return gpu.powerWatts && gpu.powerLimitWatts ? tr("%1 of %2 W").arg(whole(gpu.powerWatts), whole(gpu.powerLimitWatts))
                                                   : unit(gpu.powerWatts, tr("%1 W"));
    case Temperature:
      return unit(gpu.temperatureCelsius, tr("%1 °C"));
    case Clock:
      return unit(gpu.smClockMHz, tr("%1 MHz"));
    case Processes:
      return gpu.processes ? QString::number(*gpu.processes) : kUnknown;
    case Slowed:
      return gpu.throttleReasons.isEmpty() ? tr("no") : gpu.throttleReasons.join(QStringLiteral(", "));
    default:
      return {};
  }
}

QVariant GpuListModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const GpuReading& gpu = m_gpus[static_cast<size_t>(index.row())];
  const QString text = cell(gpu, index.column());
  switch (role) {
    case Qt::DisplayRole:
      return text;
    case Qt::AccessibleTextRole:
      return QStringLiteral("%1: %2").arg(headerData(index.column(), Qt::Horizontal, Qt::DisplayRole).toString(),
                                          QString(text).replace(kUnknown, tr("unknown")));
    case Qt::TextAlignmentRole:
      return static_cast<int>((index.column() == Name || index.column() == Slowed ? Qt::AlignLeading : Qt::AlignTrailing) |
                              Qt::AlignVCenter);
    default:
      return {};
  }
}

QVariant GpuListModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || orientation == Qt::Vertical) return {};
  switch (section) {
    case Index:
      return tr("GPU");
    case Name:
      return tr("Name");
    case Memory:
      return tr("Memory");
    case Busy:
      return tr("Busy");
    case Power:
      return tr("Power");
    case Temperature:
      return tr("Temperature");
    case Clock:
      return tr("SM clock");
    case Processes:
      return tr("Processes");
    case Slowed:
      return tr("Slowed by");
    default:
      return {};
  }
}

}  // namespace headroom::ui
