// SPDX-License-Identifier: GPL-3.0-or-later
// The models known by name, as a table to search in.
#pragma once

#include "core/model/model_catalog.h"

#include <QAbstractTableModel>
#include <vector>

namespace headroom::ui {

class CatalogTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { Name, Layers, Heads, KvHeads, Context, Licence, ColumnCount };

  explicit CatalogTableModel(QObject* parent = nullptr);
  QString nameAt(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Row {
    QString name, licence;
    std::optional<int64_t> layers, heads, kvHeads, context;
  };
  std::vector<Row> m_rows;
};

}  // namespace headroom::ui
