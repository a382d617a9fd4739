// SPDX-License-Identifier: GPL-3.0-or-later
// Words for the state of an engine, shared by the pages that show it.
#pragma once

#include "ui/client/engine_session.h"

#include <QString>

namespace headroom::ui {

// "Loading", "Serving" …
QString phaseText(SessionPhase phase);
// "2:07", "1:02:07"
QString durationText(qint64 milliseconds);
// "TP3 × PP2", with "× DP2" when there are replicas.
QString layoutText(int tp, int pp, int dp);
// Why the model cannot be asked right now; empty when it can.
QString notReadyText(const EngineSession& session);

}  // namespace headroom::ui
