// SPDX-License-Identifier: GPL-3.0-or-later
// LogReading: everything that one log of an engine tells: why it failed, and what it measured while it started. Pure functions.
#pragma once

#include "core/diagnosis/log_diagnosis.h"
#include "ui/models/calibration.h"
#include "ui/models/fix_action.h"

#include <QString>
#include <optional>
#include <vector>

class QFile;

namespace headroom::ui {

struct LogReading {
  QString name;  // of the file
  LogDiagnosis diagnosis;
  std::optional<Calibration> calibration;  // empty: `notCalibrated` says why
  Error notCalibrated;
  // Whether the engine stopped at what was found. A start that went on to serve got over it.
  bool failed() const;
};

// Of a file of any length: beginnings are read for what was measured, ends for what failed. Errors: a file that cannot be read.
// `model` may be null: then nothing is measured by the log.
Result<LogReading> readLog(QFile& file, const ModelSource* model, const Machine& machine, const PlanOptions& options);

// "vLLM", "TensorRT-LLM" … for the names that a diagnosis uses; empty for none.
QString diagnosedEngine(const LogDiagnosis& diagnosis);
QString phaseText(LogPhase phase);
// What the fixes of the cause ask for, as buttons can do it in this plan.
std::vector<FixAction> diagnosisActions(const LogDiagnosis& diagnosis, const PlanReport& report, const LayoutPlan& layout);

}  // namespace headroom::ui
