// SPDX-License-Identifier: GPL-3.0-or-later
// MachineDialog: an editor of what-if machines: several nodes, mixed cards, cards of any memory. The text beneath is what the
// command line takes; what cannot be read is told there. GUI thread only.
#pragma once

#include "ui/models/machine_rows.h"

#include <QDialog>

class QDialogButtonBox;
class QLabel;
class QPushButton;
class QTableView;

namespace headroom::ui {

class MachineDialog : public QDialog {
  Q_OBJECT

 public:
  explicit MachineDialog(const Machine& machine, QWidget* parent = nullptr);
  QString text() const;

 signals:
  void machineChosen(const QString& text);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void check();
  void retranslate();

  MachineRows* m_rows = nullptr;
  QTableView* m_table = nullptr;
  QPushButton* m_add = nullptr;
  QPushButton* m_remove = nullptr;
  QLabel* m_hint = nullptr;
  QLabel* m_text = nullptr;
  QLabel* m_problem = nullptr;
  QDialogButtonBox* m_buttons = nullptr;
};

}  // namespace headroom::ui
