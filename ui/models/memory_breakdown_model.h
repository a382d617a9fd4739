// SPDX-License-Identifier: GPL-3.0-or-later
// What each GPU of one layout is filled with: the parts of the painted bars, and the same as a table for those who do not
// see them. The limiting GPU comes first.
#pragma once

#include "core/launch/planner.h"
#include "ui/theme/theme.h"

#include <QAbstractTableModel>
#include <optional>
#include <vector>

namespace headroom::ui {

struct MemorySegment {
  MemoryPart part;
  Bytes bytes;
};

struct MemoryBarData {
  int gpu = 0;
  QString name;   // "GPU 0"
  QString share;  // "stage 1, rank 2: layers 0–26"
  Bytes total;
  Bytes budget;  // what the engine may use of it
  // Known parts in drawing order; what the asked load needs of the KV cache before what is spare. They may exceed the budget.
  std::vector<MemorySegment> segments;
  std::optional<Bytes> headroom;
  bool limiting = false;
};

std::vector<MemoryBarData> memoryBars(const PlanReport& report, const LayoutPlan& layout);
QString memoryPartName(MemoryPart part);

class MemoryBreakdownModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { Gpu, Share, Weights, KvCache, Activations, Graphs, Runtime, Headroom, ColumnCount };

  explicit MemoryBreakdownModel(QObject* parent = nullptr);
  // Copies what it needs. Null clears.
  void setLayout(const PlanReport* report, const LayoutPlan* layout);
  void retranslate();
  QString asCsv() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Row {
    RankPlan plan;
    MemoryBarData bar;
  };
  std::vector<Row> m_rows;
};

}  // namespace headroom::ui
