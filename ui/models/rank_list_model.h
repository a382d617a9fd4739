// SPDX-License-Identifier: GPL-3.0-or-later
// RankListModel: the ranks of an engine as a table: where each runs, what it holds and how far its weights are loaded. GUI thread
// only.
#pragma once

#include "core/protocol/engine_api.h"

#include <QAbstractTableModel>
#include <optional>

namespace headroom::ui {

class RankListModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { RankColumn, DeviceColumn, PlaceColumn, LayersColumn, PlannedColumn, AllocatedColumn, LoadColumn, ColumnCount };
  enum Role { LoadFractionRole = Qt::UserRole + 1 };  // double 0..1 in LoadColumn, invalid while unknown

  explicit RankListModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  void setState(const std::optional<EngineState>& state);
  // All ranks together, 0..1; empty while unknown.
  std::optional<double> loadFraction() const;
  void retranslate();

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  QString text(const RankState& rank, int column) const;

  EngineState m_state;
};

}  // namespace headroom::ui
