// SPDX-License-Identifier: GPL-3.0-or-later
// From a planned layout to what the engine is started with: the arguments and what the plan promised. Pure functions.
#pragma once

#include "core/launch/planner.h"
#include "ui/client/engine_session.h"

#include <QString>

namespace headroom::ui {

// Why this layout cannot be started here; empty when it can.
QString startObstacle(const PlanReport* report, const LayoutPlan* layout, const ModelSource* model);

// `hostDevices` is what the plan of the local machine was made with, so that the engine sizes itself the same way.
LaunchRequest launchRequest(const PlanReport& report, const LayoutPlan& layout, const ModelSource& model,
                            const QString& modelArgument, const HostDeviceSettings& hostDevices);

}  // namespace headroom::ui
