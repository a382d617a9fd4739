// SPDX-License-Identifier: GPL-3.0-or-later
// GpuListModel: this machine's GPUs as NVML tells them, a row each. Unknown figures say so to those who do not see the dash.
// GUI thread only.
#pragma once

#include "ui/client/gpu_watch.h"

#include <QAbstractTableModel>

namespace headroom::ui {

class GpuListModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { Index, Name, Memory, Busy, Power, Temperature, Clock, Processes, Slowed, ColumnCount };

  explicit GpuListModel(QObject* parent = nullptr);
  void setReadings(const std::vector<GpuReading>& readings);
  void retranslate();

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QString cell(const GpuReading& gpu, int column) const;

  std::vector<GpuReading> m_gpus;
};

}  // namespace headroom::ui
