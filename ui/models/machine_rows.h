// SPDX-License-Identifier: GPL-3.0-or-later
// MachineRows: a what-if machine as rows of alike nodes (nodes, GPUs of each, card), and as the text that core reads. An item
// model for the editor. GUI thread only.
#pragma once

#include "core/hardware/machine.h"

#include <QAbstractTableModel>
#include <QString>
#include <vector>

namespace headroom::ui {

struct MachineRow {
  int nodes = 0;  // 0: the GPUs stand in one node, together with those of other such rows
  int count = 1;  // GPUs of each node
  QString card;   // a name of the catalog, or a size such as 24GiB
  friend bool operator==(const MachineRow&, const MachineRow&) = default;
};

// "2n8xH100-80GB-SXM,1x48GiB"
QString machineText(const std::vector<MachineRow>& rows);
// The rows that a machine was written with; this machine's devices give none.
std::vector<MachineRow> machineRows(const Machine& machine);

class MachineRows : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { Nodes, Count, Card, Memory, ColumnCount };

  explicit MachineRows(QObject* parent = nullptr);
  void setRows(std::vector<MachineRow> rows);
  const std::vector<MachineRow>& rows() const { return m_rows; }
  void addRow(const MachineRow& row);
  void removeRowAt(int row);
  void retranslate();

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 private:
  std::vector<MachineRow> m_rows;
};

}  // namespace headroom::ui
