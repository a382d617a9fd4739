// SPDX-License-Identifier: GPL-3.0-or-later
// ChartTableDialog: the numbers of a chart as a table, for those who cannot or do not want to see the plot. GUI thread only.
#pragma once

#include "ui/charts/chart_content.h"

#include <QAbstractTableModel>
#include <QDialog>

namespace headroom::ui {

class ChartTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  ChartTableModel(ChartTable table, ValueUnit unit, QObject* parent = nullptr);
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  ChartTable m_table;
  ValueUnit m_unit;
};

class ChartTableDialog : public QDialog {
  Q_OBJECT

 public:
  ChartTableDialog(const QString& title, const ChartTable& table, ValueUnit unit, QWidget* parent = nullptr);
};

}  // namespace headroom::ui
