// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/log_reading.h"

#include "ui/models/layout_text.h"

#include <QCoreApplication>
#include <QFile>
#include <QFileInfo>
#include <algorithm>

namespace headroom::ui {
namespace {

constexpr qint64 kMostBytes = 32 << 20, kPiece = 1 << 20;

}  // namespace

bool LogReading::failed() const {
  const bool served = diagnosis.reached == LogPhase::Serving;
  if (diagnosis.findings.empty()) return diagnosis.unknown && !served && !calibration;
  return !served || std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                                [](const LogFinding& finding) { return finding.phase == LogPhase::Serving; });
}

Result<LogReading> readLog(QFile& file, const ModelSource* model, const Machine& machine, const PlanOptions& options) {
  const std::string name = file.fileName().toStdString();
  if (!QFileInfo(file).isFile() || !file.open(QIODevice::ReadOnly))
    return failure(name, "no file that can be read", "an engine's log");
  LogReading reading;
  reading.name = QFileInfo(file).fileName();
  const std::string beginning = file.read(kMostBytes).toStdString();
  // A failure stands at the end: what lies between is only counted.
  int skipped = 0;
  std::string end = beginning;
  if (!file.atEnd()) {
    const qint64 from = std::max(kMostBytes, file.size() - kMostBytes);
    skipped = static_cast<int>(std::count(beginning.begin(), beginning.end(), '\n'));
    while (file.pos() < from && !file.atEnd()) {
      const QByteArray piece = file.read(std::min(kPiece, from - file.pos()));
      if (piece.isEmpty()) break;
      skipped += static_cast<int>(piece.count('\n'));
    }
    end = file.read(kMostBytes).toStdString();
  }
  reading.diagnosis = diagnoseLog(end);
  reading.diagnosis.lines += skipped;
  for (LogFinding& finding : reading.diagnosis.findings) finding.line += skipped;
  if (reading.diagnosis.unknown) reading.diagnosis.unknown->line += skipped;
  if (!model) {
    reading.notCalibrated = {name, "no model that is open", "the model that the log is about", "open it first"};
    return reading;
  }
  Result<Calibration> calibration = calibrate(beginning, name, *model, machine, options);
  if (calibration)
    reading.calibration = std::move(*calibration);
  else
    reading.notCalibrated = calibration.error();
  return reading;
}

QString diagnosedEngine(const LogDiagnosis& diagnosis) {
  const auto engine = diagnosis.engine.empty() ? Result<EngineSelection>(failure("", "", "")) : parseEngine(diagnosis.engine);
  return engine ? engineTitle(engine->kind) : QString();
}

QString phaseText(LogPhase phase) {
  switch (phase) {
    case LogPhase::Unknown:
      return {};
    case LogPhase::Start:
      return QCoreApplication::translate("Headroom", "at the start");
    case LogPhase::Loading:
      return QCoreApplication::translate("Headroom", "while it read weights");
    case LogPhase::CacheSizing:
      return QCoreApplication::translate("Headroom", "while it sized the KV cache");
    case LogPhase::GraphCapture:
      return QCoreApplication::translate("Headroom", "while it captured CUDA graphs");
    case LogPhase::Serving:
      return QCoreApplication::translate("Headroom", "while it served");
  }
  return {};
}

std::vector<FixAction> diagnosisActions(const LogDiagnosis& diagnosis, const PlanReport& report, const LayoutPlan& layout) {
  std::vector<FixAction> actions;
  if (diagnosis.findings.empty()) return actions;
  const auto engine = parseEngine(diagnosis.engine);
  for (const std::string& fix : diagnosis.findings.front().fixes)
    for (FixAction& action : fixActions(fix, report, layout)) {
      // The advice is for the engine that wrote the log.
      if (engine && !diagnosis.engine.empty() && engine->kind != report.options.engine.kind && !action.engine)
        action.engine = *engine;
      const bool known =
          std::any_of(actions.begin(), actions.end(), [&](const FixAction& other) { return other.label() == action.label(); });
      if (!known) actions.push_back(std::move(action));
    }
  return actions;
}

}  // namespace headroom::ui
