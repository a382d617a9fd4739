// SPDX-License-Identifier: GPL-3.0-or-later
// MachineBar: the GPUs that are planned for: this machine's devices, or what-if GPUs picked from the catalog or written as
// text. What cannot be read gets a line beneath the field, and the present machine stays. GUI thread only.
#pragma once

#include "core/hardware/local_gpus.h"

#include <QWidget>

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QRadioButton;
class QSpinBox;
class QTimer;
class QToolButton;

namespace headroom::ui {

class MachineBar : public QWidget {
  Q_OBJECT

 public:
  explicit MachineBar(QWidget* parent = nullptr);

  // Shows the machine in use; emits nothing.
  void setMachine(const QString& text, const Machine& machine);
  // Which GPUs this machine has: with some, its processor is offered beside them; without, the reason is shown.
  void setLocalGpus(const LocalGpus& gpus);
  // Beneath the field; empty removes it.
  void setProblem(const QString& problem);
  QString problem() const;

 signals:
  void machineRequested(const QString& text);
  void wishRequested();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void build();
  void retranslate();
  void requestWhatIf();
  void pick();
  QString summary() const;

  QRadioButton* m_local = nullptr;
  QRadioButton* m_host = nullptr;
  QRadioButton* m_whatIf = nullptr;
  QLineEdit* m_text = nullptr;
  QSpinBox* m_count = nullptr;
  QComboBox* m_card = nullptr;
  QToolButton* m_edit = nullptr;
  QPushButton* m_find = nullptr;
  QLabel* m_problem = nullptr;
  QLabel* m_summary = nullptr;
  QTimer* m_typing = nullptr;
  Machine m_machine;
  LocalGpus m_gpus;
};

}  // namespace headroom::ui
