// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/rank_list_model.h"

#include "ui/theme/format.h"

#include <algorithm>

namespace headroom::ui {

namespace {

// Weights, KV cache, activations and graphs; empty when one that matters is unknown (graphs exist on CUDA only).
std::optional<Bytes> total(const RankBytes& bytes) {
  if (!bytes.weights || !bytes.kvCache || !bytes.activations) return std::nullopt;
  return Bytes(*bytes.weights + *bytes.kvCache + *bytes.activations + bytes.graphs.value_or(0));
}

std::optional<double> fraction(int64_t done, int64_t total) {
  if (total <= 0) return std::nullopt;
  return std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
}

}  // namespace

void RankListModel::setState(const std::optional<EngineState>& state) {
  const EngineState next = state.value_or(EngineState{});
  if (next.ranks.size() != m_state.ranks.size()) {
    beginResetModel();
    m_state = next;
    endResetModel();
    return;
  }
  m_state = next;
  if (!m_state.ranks.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

std::optional<double> RankListModel::loadFraction() const {
  int64_t done = 0, total = 0;
  for (const RankState& rank : m_state.ranks) {
    done += rank.loadBytesDone;
    total += rank.loadBytesTotal;
  }
  return fraction(done, total);
}

void RankListModel::retranslate() {
  emit headerDataChanged(Qt::Horizontal, 0, ColumnCount - 1);
  if (!m_state.ranks.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int RankListModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_state.ranks.size());
}

int RankListModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant RankListModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const RankState& rank = m_state.ranks[static_cast<std::size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole:
      return text(rank, index.column());
    case Qt::AccessibleTextRole:
      return QStringLiteral("%1: %2").arg(headerData(index.column(), Qt::Horizontal).toString(), text(rank, index.column()));
    case Qt::TextAlignmentRole:
      if (index.column() == PlannedColumn || index.column() == AllocatedColumn)
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
      return QVariant(Qt::AlignLeft | Qt::AlignVCenter);
    case Qt::ToolTipRole:
      if (index.column() == LoadColumn && rank.loadBytesTotal > 0)
        return tr("%1 of %2 read").arg(formatGib(Bytes(rank.loadBytesDone)), formatGib(Bytes(rank.loadBytesTotal)));
      return {};
    case LoadFractionRole:
      if (const auto loaded = fraction(rank.loadBytesDone, rank.loadBytesTotal)) return *loaded;
      return {};
    default:
      return {};
  }
}

QString RankListModel::text(const RankState& rank, int column) const {
  switch (column) {
    case RankColumn:
      return QString::number(rank.rank);
    case DeviceColumn:
      return rank.device.empty() ? kUnknown : QString::fromStdString(rank.device);
    case PlaceColumn:
      return m_state.dp > 1 ? tr("replica %1, stage %2, TP %3")
                                  .arg(QString::number(rank.replica), QString::number(rank.stage), QString::number(rank.tpRank))
                            : tr("stage %1, TP %2").arg(QString::number(rank.stage), QString::number(rank.tpRank));
    case LayersColumn:
      return rank.layers.empty()
                 ? kUnknown
                 : QStringLiteral("%1–%2").arg(QString::number(rank.layers.begin), QString::number(rank.layers.end - 1));
    case PlannedColumn:
      return formatGib(total(rank.planned));
    case AllocatedColumn:
      return formatGib(total(rank.allocated));
    case LoadColumn: {
      const auto loaded = fraction(rank.loadBytesDone, rank.loadBytesTotal);
      return loaded ? tr("%1 %").arg(static_cast<int>(*loaded * 100.0)) : kUnknown;
    }
    default:
      return {};
  }
}

QVariant RankListModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant((section == PlannedColumn || section == AllocatedColumn ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case RankColumn:
      return tr("Rank");
    case DeviceColumn:
      return tr("Device");
    case PlaceColumn:
      return tr("Place");
    case LayersColumn:
      return tr("Layers");
    case PlannedColumn:
      return tr("Planned");
    case AllocatedColumn:
      return tr("Allocated");
    case LoadColumn:
      return tr("Loaded");
    default:
      return {};
  }
}

}  // namespace headroom::ui
