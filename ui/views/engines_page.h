// SPDX-License-Identifier: GPL-3.0-or-later
// EnginesPage: the engines side by side for the present model, machine and load. Compared when it is shown and whenever the
// inputs change while it is. GUI thread only.
#pragma once

#include "ui/models/engine_comparison_model.h"

#include <QWidget>

class QLabel;
class QPushButton;
class QTableView;

namespace headroom::ui {

class EnginesPage : public QWidget {
  Q_OBJECT

 public:
  explicit EnginesPage(PlanSession& session, QWidget* parent = nullptr);
  EngineComparisonModel& model() { return *m_model; }

 signals:
  void engineChosen(const headroom::EngineSelection& engine);

 protected:
  void changeEvent(QEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  void refresh();
  void retranslate();
  void choose();

  PlanSession& m_session;
  EngineComparisonModel* m_model = nullptr;
  QTableView* m_table = nullptr;
  QLabel* m_hint = nullptr;
  QLabel* m_detail = nullptr;
  QPushButton* m_use = nullptr;
};

}  // namespace headroom::ui
