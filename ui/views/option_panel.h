// SPDX-License-Identifier: GPL-3.0-or-later
// OptionPanel: what the plan is for: engine, types, limits and load. Every control has a default that says its value; each
// change is signalled at once. GUI thread only.
#pragma once

#include "core/launch/planner.h"

#include <QWidget>
#include <optional>
#include <vector>

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QSpinBox;

namespace headroom::ui {

class TokenSpinBox;

class OptionPanel : public QWidget {
  Q_OBJECT

 public:
  explicit OptionPanel(QWidget* parent = nullptr);

  PlanOptions options() const;
  // What the defaults came out as, written into the controls that stand at their default.
  void setResolved(const ResolvedOptions& resolved);

 signals:
  void optionsChanged();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void build();
  void retranslate();
  void fillTypes();
  void writeDefaults();
  QLabel* addRow(QWidget* field, const char* name);

  QComboBox* m_engine = nullptr;
  QLineEdit* m_version = nullptr;
  QComboBox* m_dtype = nullptr;
  QComboBox* m_kvDType = nullptr;
  QSpinBox* m_utilization = nullptr;
  TokenSpinBox* m_context = nullptr;
  QSpinBox* m_concurrency = nullptr;
  TokenSpinBox* m_input = nullptr;
  TokenSpinBox* m_output = nullptr;
  QCheckBox* m_eager = nullptr;
  std::vector<QLabel*> m_labels;
  std::optional<ResolvedOptions> m_resolved;
};

}  // namespace headroom::ui
