// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/machine_rows.h"

#include "ui/models/layout_text.h"
#include "ui/theme/format.h"

#include <QStringList>
#include <algorithm>

namespace headroom::ui {

QString machineText(const std::vector<MachineRow>& rows) {
  QStringList items;
  for (const MachineRow& row : rows) {
    const QString nodes = row.nodes > 0 ? QStringLiteral("%1n").arg(row.nodes) : QString();
    items << QStringLiteral("%1%2x%3").arg(nodes).arg(row.count).arg(row.card);
  }
  return items.join(QLatin1Char(','));
}

std::vector<MachineRow> machineRows(const Machine& machine) {
  std::vector<MachineRow> rows;
  if (machine.isLocal) return rows;
  // Runs of alike cards in each node; alike nodes in a row are one row.
  std::vector<std::vector<MachineRow>> nodes;
  int node = -1;
  for (const MachineGpu& gpu : machine.gpus) {
    if (gpu.node != node) {
      nodes.emplace_back();
      node = gpu.node;
    }
    const QString card = fromCore(gpu.spec.name);
    if (!nodes.back().empty() && nodes.back().back().card == card)
      ++nodes.back().back().count;
    else
      nodes.back().push_back({0, 1, card});
  }
  if (nodes.size() == 1) return nodes.front();
  for (const auto& cards : nodes)
    for (const MachineRow& row : cards) {
      if (!rows.empty() && rows.back().count == row.count && rows.back().card == row.card)
        ++rows.back().nodes;
      else
        rows.push_back({1, row.count, row.card});
    }
  return rows;
}

MachineRows::MachineRows(QObject* parent) : QAbstractTableModel(parent) {}

void MachineRows::setRows(std::vector<MachineRow> rows) {
  beginResetModel();
  m_rows = std::move(rows);
  endResetModel();
}

void MachineRows::addRow(const MachineRow& row) {
  const int at = rowCount();
  beginInsertRows({}, at, at);
  m_rows.push_back(row);
  endInsertRows();
}

void MachineRows::removeRowAt(int row) {
  if (row < 0 || row >= rowCount()) return;
  beginRemoveRows({}, row, row);
  m_rows.erase(m_rows.begin() + row);
  endRemoveRows();
}

void MachineRows::retranslate() { emit headerDataChanged(Qt::Horizontal, 0, ColumnCount - 1); }

int MachineRows::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(m_rows.size()); }
int MachineRows::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant MachineRows::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const MachineRow& row = m_rows[static_cast<size_t>(index.row())];
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((index.column() == Card ? Qt::AlignLeading : Qt::AlignTrailing) | Qt::AlignVCenter);
  if (role != Qt::DisplayRole && role != Qt::EditRole) return {};
  switch (index.column()) {
    case Nodes:
      if (role == Qt::EditRole) return row.nodes;
      return row.nodes > 0 ? QString::number(row.nodes) : tr("in one");
    case Count:
      return row.count;
    case Card:
      return row.card;
    case Memory: {
      const std::string name = row.card.trimmed().toStdString();
      if (const GpuSpec* spec = findGpu(name)) return formatGib(spec->memory);
      return formatGib(parseMemory(name));
    }
    default:
      return {};
  }
}

bool MachineRows::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || index.row() >= rowCount() || role != Qt::EditRole) return false;
  MachineRow& row = m_rows[static_cast<size_t>(index.row())];
  switch (index.column()) {
    case Nodes:
      row.nodes = std::clamp(value.toInt(), 0, 4096);
      break;
    case Count:
      row.count = std::clamp(value.toInt(), 1, 4096);
      break;
    case Card:
      if (value.toString().trimmed().isEmpty()) return false;
      row.card = value.toString().trimmed();
      break;
    default:
      return false;
  }
  emit dataChanged(this->index(index.row(), 0), this->index(index.row(), ColumnCount - 1));
  return true;
}

QVariant MachineRows::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Vertical) return role == Qt::DisplayRole ? QVariant(section + 1) : QVariant();
  if (role == Qt::DisplayRole) {
    switch (section) {
      case Nodes:
        return tr("Nodes");
      case Count:
        return tr("GPUs of each");
      case Card:
        return tr("Card");
      case Memory:
        return tr("Memory");
      default:
        return {};
    }
  }
  return {};
}

Qt::ItemFlags MachineRows::flags(const QModelIndex& index) const {
  Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  if (index.isValid() && index.column() != Memory) flags |= Qt::ItemIsEditable;
  return flags;
}

}  // namespace headroom::ui
