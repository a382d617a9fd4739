// SPDX-License-Identifier: GPL-3.0-or-later
// Calibration: a start-up log beside what the plan says of the same start, and what was measured on this machine before. Kept in
// the file that `headroom-engine plan --calibrate` writes too. Pure but for the store's file.
#pragma once

#include "core/launch/start_log.h"

#include <QString>
#include <optional>
#include <string>
#include <vector>

namespace headroom::ui {

class CalibrationStore {
 public:
  // Empty: HEADROOM_CALIBRATION, else calibration.json beside the settings.
  explicit CalibrationStore(QString file = {});
  const QString& file() const { return m_file; }
  std::vector<MemoryCorrection> corrections(const Machine& machine, const EngineSelection& engine) const;
  // Replaces the one of the same kind of layout.
  Status store(const std::string& key, const MemoryCorrection& correction) const;
  // Forgets what was measured with this machine and engine.
  Status forget(const std::string& key) const;

 private:
  QString m_file;
};

struct Calibration {
  StartLog log;
  int tp = 1, pp = 1, dp = 1;
  std::vector<MeasuredTerm> terms;
  std::optional<MemoryCorrection> correction;  // empty: the log corrects nothing
  std::string key;                             // under which it is kept
};

// Reads the log and plans the start that it is about; options give what the log does not say. Errors: no start-up log, a layout
// that the plan refuses, or weights that are those of another model.
Result<Calibration> calibrate(const std::string& text, const std::string& name, const ModelSource& model, const Machine& machine,
                              PlanOptions options);

}  // namespace headroom::ui
