// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/calibration.h"

#include "core/json_text.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QSaveFile>
#include <QStandardPaths>
#include <cmath>

namespace headroom::ui {
namespace {

// Weights that differ by more are another model's, or another layout's.
constexpr double kSameModel = 0.3;

nlohmann::json readAll(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return nlohmann::json::object();
  const QByteArray bytes = file.readAll();
  nlohmann::json json = readJsonText({bytes.data(), static_cast<size_t>(bytes.size())});
  return json.is_object() ? json : nlohmann::json::object();
}

Status writeAll(const QString& path, const nlohmann::json& all) {
  QDir().mkpath(QFileInfo(path).path());
  QSaveFile file(path);
  const QByteArray bytes = QByteArray::fromStdString(all.dump(2)) + '\n';
  if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size() || !file.commit())
    return failure(path.toStdString(), "a file that cannot be written", "room and permission");
  return {};
}

}  // namespace

CalibrationStore::CalibrationStore(QString file) : m_file(std::move(file)) {
  if (m_file.isEmpty()) m_file = qEnvironmentVariable("HEADROOM_CALIBRATION");
  if (m_file.isEmpty())
    m_file =
        QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation) + QStringLiteral("/headroom/calibration.json");
}

std::vector<MemoryCorrection> CalibrationStore::corrections(const Machine& machine, const EngineSelection& engine) const {
  const nlohmann::json all = readAll(m_file);
  std::vector<MemoryCorrection> corrections;
  const auto found = all.find(correctionKey(machine, engine));
  if (found == all.end() || !found->is_array()) return corrections;
  for (const nlohmann::json& entry : *found)
    if (const auto correction = correctionFromJson(entry)) corrections.push_back(*correction);
  return corrections;
}

Status CalibrationStore::store(const std::string& key, const MemoryCorrection& correction) const {
  nlohmann::json all = readAll(m_file);
  nlohmann::json kept = nlohmann::json::array({correctionToJson(correction)});
  if (const auto old = all.find(key); old != all.end() && old->is_array())
    for (const nlohmann::json& entry : *old) {
      const auto other = correctionFromJson(entry);
      if (other && other->severalRanks != correction.severalRanks) kept.push_back(entry);
    }
  all[key] = kept;
  return writeAll(m_file, all);
}

Status CalibrationStore::forget(const std::string& key) const {
  nlohmann::json all = readAll(m_file);
  if (all.erase(key) == 0) return {};
  return writeAll(m_file, all);
}

Result<Calibration> calibrate(const std::string& text, const std::string& name, const ModelSource& model, const Machine& machine,
                              PlanOptions options) {
  Result<StartLog> log = readStartLog(text, name);
  if (!log) return tl::unexpected(log.error());
  options.engine = log->engine;
  if (log->maxModelLen) options.maxModelLen = log->maxModelLen;
  if (log->utilization && log->engine.kind != EngineKind::LlamaCpp) options.gpuMemoryUtilization = log->utilization;
  if (log->maxNumSeqs) options.maxNumSeqs = log->maxNumSeqs;
  if (log->maxNumBatchedTokens) options.maxNumBatchedTokens = log->maxNumBatchedTokens;
  if (log->enforceEager) options.enforceEager = *log->enforceEager;
  options.corrections.clear();
  Calibration calibration;
  calibration.tp = log->tp.value_or(1);
  calibration.pp = log->pp.value_or(log->engine.kind == EngineKind::LlamaCpp ? machine.size() : 1);
  calibration.dp = log->dp.value_or(1);
  const Result<LayoutPlan> plan = planLayout(model, machine, options, calibration.tp, calibration.pp, calibration.dp);
  if (!plan) return tl::unexpected(plan.error());
  const std::string layout = "TP=" + std::to_string(calibration.tp) + " PP=" + std::to_string(calibration.pp);
  if (plan->verdict == Verdict::Invalid)
    return failure(name, "a start with " + layout, "a layout that the plan accepts",
                   plan->reasons.empty() ? std::string() : plan->reasons.front().message);
  calibration.terms = compareWithLog(*plan, *log);
  for (const MeasuredTerm& term : calibration.terms)
    if (term.name == "weights" && term.predicted && term.measured && *term.predicted > 0 &&
        std::abs(*term.measured / *term.predicted - 1) > kSameModel)
      return failure(name, "weights of another size" + (log->model.empty() ? std::string() : " (" + log->model + ")"),
                     "those of " + model.config.name + " with " + layout, "is it the log of another model or layout?");
  calibration.correction = correctionFrom(*plan, *log);
  calibration.key = correctionKey(machine, log->engine);
  calibration.log = std::move(*log);
  return calibration;
}

}  // namespace headroom::ui
