// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/workspace_state.h"

#include "ui/models/layout_text.h"
#include "ui/models/serve_arguments.h"
#include "ui/settings/app_settings.h"

namespace headroom::app {

WorkspaceState::WorkspaceState(ui::AppSettings& settings, QObject* parent) : QObject(parent), m_settings(settings), m_plan(nullptr, settings.calibrationFile()) {
  m_plan.setHostDevices(m_settings.hostDevices());
  m_plan.awaitLocalGpus();
  connect(&m_probe, &ui::LocalGpuProbe::found, &m_plan, &ui::PlanSession::setLocalGpus);
  m_probe.start();
  // A remembered machine that cannot be read any more gives way to this one.
  if (!m_plan.setMachine(m_settings.machine())) static_cast<void>(m_plan.setMachine(QStringLiteral("local")));
  connect(&m_settings, &ui::AppSettings::hostDevicesChanged, this, [this] { m_plan.setHostDevices(m_settings.hostDevices()); });
}

void WorkspaceState::refresh() {
  m_probe.start();
  m_plan.refresh();
}

QString WorkspaceState::startObstacle(const LayoutPlan* layout) const {
  if (m_engine.isRunning()) return tr("An engine is running; stop it first.");
  return ui::startObstacle(m_plan.report().get(), layout, m_plan.model().get());
}

QString WorkspaceState::offerText(const LayoutPlan* layout) const {
  const QString obstacle = startObstacle(layout);
  if (!obstacle.isEmpty() || !layout) return obstacle;
  return tr("%1 of %2").arg(ui::layoutName(*layout), ui::fromCore(m_plan.report()->model.name));
}

bool WorkspaceState::start(const LayoutPlan* layout) {
  if (!startObstacle(layout).isEmpty()) return false;
  m_engine.start(ui::launchRequest(*m_plan.report(), *layout, *m_plan.model(), m_plan.modelArgument(), m_settings.hostDevices()));
  return true;
}

}  // namespace headroom::app
