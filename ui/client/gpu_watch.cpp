// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/client/gpu_watch.h"

#include "core/json_text.h"
#include "ui/client/engine_process.h"

#include <nlohmann/json.hpp>

namespace headroom::ui {
namespace {

constexpr int kLongestLine = 4 << 20;
constexpr int kEndMs = 500;

template <class T>
std::optional<T> number(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional<T>(found->get<T>()) : std::nullopt;
}

QString text(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? QString::fromStdString(found->get<std::string>()) : QString();
}

}  // namespace

std::optional<std::vector<GpuReading>> parseGpuReadings(const QByteArray& line) {
  const nlohmann::json json = readJsonText({line.data(), static_cast<size_t>(line.size())});
  if (!json.is_object()) return std::nullopt;
  const auto gpus = json.find("gpus");
  if (gpus == json.end() || !gpus->is_array()) return std::nullopt;
  std::vector<GpuReading> readings;
  for (const nlohmann::json& gpu : *gpus) {
    if (!gpu.is_object()) return std::nullopt;
    GpuReading reading;
    reading.index = number<int>(gpu, "index").value_or(static_cast<int>(readings.size()));
    reading.name = text(gpu, "name");
    reading.usedBytes = number<int64_t>(gpu, "used_bytes");
    reading.totalBytes = number<int64_t>(gpu, "total_bytes");
    reading.utilization = number<double>(gpu, "gpu_utilization");
    reading.powerWatts = number<double>(gpu, "power_watts");
    reading.powerLimitWatts = number<double>(gpu, "power_limit_watts");
    reading.temperatureCelsius = number<double>(gpu, "temperature_celsius");
    reading.smClockMHz = number<double>(gpu, "sm_clock_mhz");
    if (const auto processes = gpu.find("processes"); processes != gpu.end() && processes->is_array())
      reading.processes = static_cast<int>(processes->size());
    if (const auto reasons = gpu.find("throttle_reasons"); reasons != gpu.end() && reasons->is_array())
      for (const nlohmann::json& reason : *reasons)
        if (reason.is_string()) reading.throttleReasons << QString::fromStdString(reason.get<std::string>());
    readings.push_back(std::move(reading));
  }
  return readings;
}

GpuWatch::GpuWatch(QObject* parent) : QObject(parent) {
  connect(&m_process, &QProcess::readyReadStandardOutput, this, &GpuWatch::read);
  connect(&m_process, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
    read();
    const QByteArray last = m_process.readAllStandardError().trimmed().split('\n').last();
    m_readings.clear();
    if (status == QProcess::NormalExit && code != 0 && !last.isEmpty()) {
      m_reason = QString::fromUtf8(last);
      if (m_reason.startsWith(QLatin1String("headroom-engine: "))) m_reason = m_reason.mid(17);
    }
    emit changed();
  });
}

GpuWatch::~GpuWatch() {
  m_process.disconnect(this);
  stop();
}

void GpuWatch::start() {
  if (m_process.state() != QProcess::NotRunning) return;
  const QString program = m_program.isEmpty() ? findEngineProgram() : m_program;
  if (program.isEmpty()) return;
  m_rest.clear();
  m_reason.clear();
  m_process.start(program, {QStringLiteral("devices"), QStringLiteral("--watch"), QStringLiteral("2")});
}

void GpuWatch::stop() {
  if (m_process.state() == QProcess::NotRunning) return;
  // It holds nothing that a signal could spoil.
  m_process.kill();
  m_process.waitForFinished(kEndMs);
}

void GpuWatch::read() {
  m_rest += m_process.readAllStandardOutput();
  if (m_rest.size() > kLongestLine) m_rest.clear();
  bool news = false;
  for (qsizetype end = m_rest.indexOf('\n'); end >= 0; end = m_rest.indexOf('\n')) {
    if (auto readings = parseGpuReadings(m_rest.left(end))) {
      m_readings = std::move(*readings);
      news = true;
    }
    m_rest.remove(0, end + 1);
  }
  if (news) emit changed();
}

}  // namespace headroom::ui
