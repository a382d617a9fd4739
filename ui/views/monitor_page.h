// SPDX-License-Identifier: GPL-3.0-or-later
// MonitorPage: the running engine in figures and three live charts (memory per device, tokens per second, time to first
// token), measured beside planned and predicted. GUI thread only.
#pragma once

#include <QWidget>
#include <memory>

namespace headroom::ui {

class AppSettings;
class EngineSession;

class GpuWatch;

class MonitorPage : public QWidget {
  Q_OBJECT

 public:
  MonitorPage(EngineSession& session, AppSettings& settings, QWidget* parent = nullptr);
  ~MonitorPage() override;

  int windowSeconds() const;
  void setWindowSeconds(int seconds);

  // How many points each kind of chart shows now: what tests and screen readers can ask for.
  int memoryPointCount() const;
  int throughputPointCount() const;
  int ttftPointCount() const;
  // This machine's GPUs, with or without an engine; followed while the page is seen.
  GpuWatch& gpuWatch();

 protected:
  void changeEvent(QEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  class Private;
  std::unique_ptr<Private> d;
};

}  // namespace headroom::ui
