// SPDX-License-Identifier: GPL-3.0-or-later
// LocalGpuProbe: which GPUs of this machine can be used, or why none can. The window opens no CUDA itself: it asks
// `headroom-engine devices`. GUI thread only.
#pragma once

#include "core/hardware/local_gpus.h"

#include <QObject>
#include <QProcess>
#include <QString>
#include <QTimer>

namespace headroom::ui {

class LocalGpuProbe : public QObject {
  Q_OBJECT

 public:
  explicit LocalGpuProbe(QObject* parent = nullptr);
  ~LocalGpuProbe() override;  // ends the child

  // Empty: the engine beside this program.
  void setProgram(const QString& program) { m_program = program; }
  // A driver that hangs is given up after this. Default: 20 s.
  void setTimeoutMs(int milliseconds) { m_timeout.setInterval(milliseconds); }
  void start();  // looks anew; ignored while it looks

 signals:
  // Once after each start().
  void found(const headroom::LocalGpus& gpus);

 private:
  void finish();

  QProcess m_process;
  QTimer m_timeout;
  QString m_program;
  bool m_gaveUp = false;
};

}  // namespace headroom::ui
