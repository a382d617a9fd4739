// SPDX-License-Identifier: GPL-3.0-or-later
// OptionPanel: what the plan is for: engine, types, limits and load. Every control has a default that says its value; each
// change is signalled at once. GUI thread only.
#pragma once

#include "core/launch/planner.h"
#include "ui/models/fix_action.h"

#include <QWidget>
#include <optional>
#include <vector>

class QCheckBox;
class QComboBox;
class QLabel;
class QSpinBox;

namespace headroom::ui {

class LogSlider;
class TokenSpinBox;

class OptionPanel : public QWidget {
  Q_OBJECT

 public:
  explicit OptionPanel(QWidget* parent = nullptr);

  PlanOptions options() const;
  // What the defaults came out as, written into the controls that stand at their default.
  void setResolved(const ResolvedOptions& resolved);
  // Offers what makes sense for this model: its longest context, expert parallelism, what-if quantization.
  void setModel(const ModelSource& model);
  // Offers the cache types that the machine's devices take; whether a choice had to go. Signals nothing: the caller plans again.
  bool setMachine(const Machine& machine);
  // Sets the controls that the action is about; whether there was any. Signals nothing: the caller plans again.
  bool apply(const FixAction& action);
  // Writes length, requests, prompt and answer; emits nothing.
  void setLoad(const PlanOptions& options);

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
  void addSlider(LogSlider* slider, const char* name);

  QComboBox* m_engine = nullptr;
  QComboBox* m_version = nullptr;
  QComboBox* m_dtype = nullptr;
  QComboBox* m_kvDType = nullptr;
  QSpinBox* m_utilization = nullptr;
  TokenSpinBox* m_context = nullptr;
  QSpinBox* m_concurrency = nullptr;
  TokenSpinBox* m_input = nullptr;
  TokenSpinBox* m_output = nullptr;
  LogSlider* m_contextSlider = nullptr;
  LogSlider* m_concurrencySlider = nullptr;
  QComboBox* m_quantization = nullptr;
  QSpinBox* m_sequences = nullptr;
  TokenSpinBox* m_batched = nullptr;
  QCheckBox* m_eager = nullptr;
  QCheckBox* m_expertParallel = nullptr;
  QCheckBox* m_attentionReplicas = nullptr;
  bool m_hasExperts = false, m_quantized = false, m_hostDevices = false;
  std::vector<QLabel*> m_labels;
  std::optional<ResolvedOptions> m_resolved;
};

}  // namespace headroom::ui
