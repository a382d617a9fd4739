// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/client/local_gpu_probe.h"

#include "core/json_text.h"
#include "ui/client/engine_process.h"

#include <QByteArray>
#include <QStringList>

namespace headroom::ui {
namespace {

constexpr int kDefaultTimeoutMs = 20'000;
constexpr int kEndMs = 500;

}  // namespace

LocalGpuProbe::LocalGpuProbe(QObject* parent) : QObject(parent) {
  m_timeout.setSingleShot(true);
  m_timeout.setInterval(kDefaultTimeoutMs);
  connect(&m_timeout, &QTimer::timeout, this, [this] {
    m_gaveUp = true;
    m_process.kill();
  });
  connect(&m_process, &QProcess::finished, this, &LocalGpuProbe::finish);
  connect(&m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) finish();  // finished() does not come then
  });
}

LocalGpuProbe::~LocalGpuProbe() {
  m_process.disconnect(this);
  if (m_process.state() == QProcess::NotRunning) return;
  // It holds nothing that a signal could spoil.
  m_process.kill();
  m_process.waitForFinished(kEndMs);
}

void LocalGpuProbe::start() {
  if (m_process.state() != QProcess::NotRunning) return;
  m_gaveUp = false;
  m_timeout.start();
  m_process.start(m_program.isEmpty() ? findEngineProgram() : m_program,
                  {QStringLiteral("devices"), QStringLiteral("--format"), QStringLiteral("json")});
}

void LocalGpuProbe::finish() {
  m_timeout.stop();
  LocalGpus gpus;
  if (m_gaveUp) {
    gpus.offReason = "CUDA is off: the driver gave no answer in time.";
  } else if (m_process.error() == QProcess::FailedToStart) {
    gpus.offReason = "CUDA is off: headroom-engine could not be started.";
  } else {
    const QByteArray text = m_process.readAllStandardOutput();
    auto read = localGpusFromJson(readJsonText({text.data(), static_cast<size_t>(text.size())}), "headroom-engine devices");
    gpus = read ? std::move(*read) : LocalGpus{{}, read.error().message()};
  }
  emit found(gpus);
}

}  // namespace headroom::ui
