// SPDX-License-Identifier: GPL-3.0-or-later
// GpuWatch: what NVML tells of this machine's GPUs, whether an engine runs or not: the child `headroom-engine devices --watch`
// and its lines. Without NVML it says why, once. GUI thread only.
#pragma once

#include <QByteArray>
#include <QObject>
#include <QProcess>
#include <QString>
#include <QStringList>
#include <cstdint>
#include <optional>
#include <vector>

namespace headroom::ui {

// One GPU at one moment. What a card or driver does not tell is empty.
struct GpuReading {
  int index = 0;
  QString name;
  std::optional<int64_t> usedBytes, totalBytes;
  std::optional<double> utilization;  // 0 to 1
  std::optional<double> powerWatts, powerLimitWatts, temperatureCelsius, smClockMHz;
  std::optional<int> processes;
  QStringList throttleReasons;
};

// The GPUs of one line; empty when it is no reading.
std::optional<std::vector<GpuReading>> parseGpuReadings(const QByteArray& line);

class GpuWatch : public QObject {
  Q_OBJECT

 public:
  explicit GpuWatch(QObject* parent = nullptr);
  ~GpuWatch() override;  // ends the child

  // Empty: the engine beside this program.
  void setProgram(const QString& program) { m_program = program; }
  void start();  // ignored while it runs
  void stop();

  const std::vector<GpuReading>& readings() const { return m_readings; }
  // Why there are no readings; empty while there are, or before the first try has ended.
  const QString& reason() const { return m_reason; }

 signals:
  void changed();

 private:
  void read();

  QProcess m_process;
  QString m_program;
  QByteArray m_rest;
  std::vector<GpuReading> m_readings;
  QString m_reason;
};

}  // namespace headroom::ui
