// SPDX-License-Identifier: GPL-3.0-or-later
// EngineComparisonModel: what each engine would do with the model on the machine: its recommended layout, what is left, what it
// has room for, how fast it is predicted to be. A row an engine; unknown figures say so. GUI thread only.
#pragma once

#include "ui/models/plan_session.h"

#include <QAbstractTableModel>

namespace headroom::ui {

class EngineComparisonModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { Engine, Layout, Headroom, Decode, Throughput, Ttft, Context, Requests, ColumnCount };

  explicit EngineComparisonModel(QObject* parent = nullptr);
  void setAnswers(const EngineAnswers& answers);
  const EngineAnswer* answerAt(int row) const;
  // Everything about a row in sentences: why its layout is recommended, where the figures come from, or what stands in the way.
  QString sentence(int row) const;
  void retranslate();

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QString cell(const EngineAnswer& answer, int column) const;

  EngineAnswers m_answers;
};

}  // namespace headroom::ui
