// SPDX-License-Identifier: GPL-3.0-or-later
// Starts the running test binary as its own fake engine, and a main() for tests of pages that do so.
#pragma once

#include "tests/ui/support/fake_engine.h"
#include "ui/client/engine_session.h"
#include "ui/theme/theme.h"

#include <QApplication>
#include <QtTest>

namespace headroom::test {

inline ui::LaunchRequest selfRequest(const QString& mode) {
  ui::LaunchRequest request;
  request.program = QCoreApplication::applicationFilePath();
  request.arguments = {QStringLiteral("serve"), mode};
  request.modelName = QStringLiteral("fake-model");
  request.layoutName = QStringLiteral("TP1 × PP2");
  request.pp = 2;
  request.plannedRanks = fakeState(EnginePhase::Loading, 0).ranks;
  request.predictedTokensPerSecond = 45;
  request.predictedTtftMs = 250;
  return request;
}

template <class Test>
int pageTestMain(int argc, char** argv) {
  if (const auto status = runFakeEngineIfAsked(argc, argv)) return *status;
  QApplication application(argc, argv);
  QLocale::setDefault(QLocale::c());
  ui::applyTheme(application, ui::ColorScheme::Light);
  Test test;
  return QTest::qExec(&test, argc, argv);
}

}  // namespace headroom::test
