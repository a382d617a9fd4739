// SPDX-License-Identifier: GPL-3.0-or-later
// DiagnosisDialog: what went wrong by an engine's log: the cause first, why, what to do, and buttons for what can be done here.
// GUI thread only.
#pragma once

#include "ui/models/log_reading.h"

#include <QDialog>
#include <vector>

class QDialogButtonBox;
class QLabel;
class QPushButton;
class QTextBrowser;

namespace headroom::ui {

class DiagnosisDialog : public QDialog {
  Q_OBJECT

 public:
  // `actions`: what the fixes of the cause ask for, as far as the present plan can do it.
  DiagnosisDialog(LogReading reading, std::vector<FixAction> actions, QWidget* parent = nullptr);
  QString text() const;  // as it is copied

 signals:
  void fixRequested(const headroom::ui::FixAction& action);
  // What the same log measured.
  void calibrationRequested(const headroom::ui::Calibration& calibration);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void retranslate();
  QString html() const;

  LogReading m_reading;
  std::vector<FixAction> m_actions;
  QLabel* m_title = nullptr;
  QLabel* m_where = nullptr;
  QTextBrowser* m_text = nullptr;
  std::vector<QPushButton*> m_fixes;
  QDialogButtonBox* m_buttons = nullptr;
  QPushButton* m_copy = nullptr;
  QPushButton* m_measured = nullptr;
};

}  // namespace headroom::ui
