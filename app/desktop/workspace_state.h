// SPDX-License-Identifier: GPL-3.0-or-later
// WorkspaceState: what the window works on: the planned model and the engine that serves. It decides whether the selected
// layout can be started and starts it. GUI thread only.
#pragma once

#include "ui/client/engine_session.h"
#include "ui/client/local_gpu_probe.h"
#include "ui/models/plan_session.h"

#include <QObject>
#include <QString>

namespace headroom::ui {
class AppSettings;
}

namespace headroom::app {

class WorkspaceState : public QObject {
  Q_OBJECT

 public:
  explicit WorkspaceState(ui::AppSettings& settings, QObject* parent = nullptr);

  ui::PlanSession& plan() { return m_plan; }
  ui::EngineSession& engine() { return m_engine; }

  // Reads the model's files and this machine's GPUs again, and plans again.
  void refresh();
  // Why `layout` of the present plan cannot be started now; empty when it can.
  QString startObstacle(const LayoutPlan* layout) const;
  // "TP3 × PP2 of SmolLM2-135M-Instruct": what Start would start.
  QString offerText(const LayoutPlan* layout) const;
  // Starts a layout of the present plan; false when there is an obstacle.
  bool start(const LayoutPlan* layout);

 private:
  ui::AppSettings& m_settings;
  ui::PlanSession m_plan;
  ui::LocalGpuProbe m_probe;
  ui::EngineSession m_engine;
};

}  // namespace headroom::app
