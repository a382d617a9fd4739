// SPDX-License-Identifier: GPL-3.0-or-later
// The layouts of one plan as a table: rows are pipeline stages, columns tensor-parallel ranks, for one number of replicas.
// Cells that need more GPUs than there are stay empty and disabled; every other cell is shown, refused ones with their rule.
#pragma once

#include "core/launch/planner.h"

#include <QAbstractTableModel>
#include <memory>

namespace headroom::ui {

class LayoutGridModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Role {
    VerdictRole = Qt::UserRole + 1,  // int of Verdict; invalid QVariant where there is no layout
    HeadroomRole,                    // qint64 bytes; invalid when unknown
    DeviceMemoryRole,                // qint64 bytes of the limiting GPU
    SecondLineRole,                  // "394k tokens", or what decides
    RecommendedRole,                 // bool
    UnevenRole,                      // bool: ranks differ in heads or columns
  };

  explicit LayoutGridModel(QObject* parent = nullptr);

  // Null clears the grid.
  void setReport(std::shared_ptr<const PlanReport> report);
  const std::shared_ptr<const PlanReport>& report() const { return m_report; }
  void setReplicas(int replicas);
  int replicas() const { return m_replicas; }
  int maxReplicas() const;  // of the report; 0 without one

  const LayoutPlan* layoutAt(const QModelIndex& index) const;
  QModelIndex indexOf(int tp, int pp) const;
  // The recommended layout, when it has this number of replicas.
  QModelIndex recommendedIndex() const;

  // Texts changed language.
  void retranslate();

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 private:
  int sizeOfSide() const;
  QString secondLine(const LayoutPlan& layout) const;

  std::shared_ptr<const PlanReport> m_report;
  int m_replicas = 1;
};

}  // namespace headroom::ui
