// SPDX-License-Identifier: GPL-3.0-or-later
// CalibrationDialog: what an engine printed while it started beside what was predicted, and the offer to plan with what was
// measured from now on. GUI thread only.
#pragma once

#include "ui/models/calibration.h"

#include <QDialog>

class QDialogButtonBox;
class QLabel;
class QPushButton;
class QTableWidget;

namespace headroom::ui {

class CalibrationDialog : public QDialog {
  Q_OBJECT

 public:
  explicit CalibrationDialog(Calibration calibration, QWidget* parent = nullptr);
  // Offers to show what else the log tells; 0: nothing.
  void setProblems(int count);

 signals:
  void kept(const headroom::ui::Calibration& calibration);
  void problemsRequested();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void retranslate();

  Calibration m_calibration;
  QLabel* m_title = nullptr;
  QTableWidget* m_table = nullptr;
  QLabel* m_hint = nullptr;
  QPushButton* m_keep = nullptr;
  QPushButton* m_showProblems = nullptr;
  int m_problems = 0;
  QDialogButtonBox* m_buttons = nullptr;
};

}  // namespace headroom::ui
