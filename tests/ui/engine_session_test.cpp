// SPDX-License-Identifier: GPL-3.0-or-later
// A session from Start to every kind of end, over a real child process and real HTTP. The test binary is its own fake engine.
#include "ui/client/engine_session.h"
#include "tests/ui/support/fake_engine.h"
#include "ui/client/engine_client.h"

#include <QRegularExpression>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

using namespace headroom;
using namespace headroom::ui;

class EngineSessionTest : public QObject {
  Q_OBJECT

  static LaunchRequest request(const QString& mode) {
    LaunchRequest request;
    request.program = QCoreApplication::applicationFilePath();
    request.arguments = {QStringLiteral("serve"), mode};
    request.modelName = QStringLiteral("fake-model");
    request.pp = 2;
    request.plannedRanks = test::fakeState(EnginePhase::Loading, 0).ranks;
    return request;
  }

 private slots:
  void init() { QTest::failOnWarning(QRegularExpression(QStringLiteral(".*"))); }

  void startsServesAndStops() {
    EngineSession session;
    QList<SessionPhase> phases;
    connect(&session, &EngineSession::phaseChanged, &session, [&](SessionPhase phase) { phases.append(phase); });
    QSignalSpy metrics(&session, &EngineSession::metricsUpdated), stopped(&session, &EngineSession::stopped);
    QSignalSpy failed(&session, &EngineSession::failed);
    QCOMPARE(session.phase(), SessionPhase::Idle);
    session.start(request(QStringLiteral("slow-load")));
    QCOMPARE(session.phase(), SessionPhase::Starting);
    QCOMPARE(session.state()->ranks.size(), std::size_t(2));  // the plan, before the engine answers
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
    QTRY_VERIFY(metrics.size() >= 3);
    QCOMPARE(session.state()->ranks[0].allocated.weights, std::optional<int64_t>(300 * test::kMiB));
    QVERIFY(session.elapsedMs() >= 500);
    session.stop();
    QCOMPARE(session.phase(), SessionPhase::Stopping);
    QTRY_COMPARE(stopped.size(), 1);
    QCOMPARE(session.phase(), SessionPhase::Idle);
    QVERIFY(!session.isRunning());
    QCOMPARE(failed.size(), 0);
    QCOMPARE(phases, (QList<SessionPhase>{SessionPhase::Starting, SessionPhase::Loading, SessionPhase::Ready,
                                          SessionPhase::Stopping, SessionPhase::Idle}));
  }

  void explainsAnEndAndRestarts() {
    EngineSession session;
    QSignalSpy failed(&session, &EngineSession::failed);
    session.start(request(QStringLiteral("ok")));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
    ::kill(static_cast<pid_t>(session.processId()), SIGKILL);
    QTRY_COMPARE(failed.size(), 1);
    QCOMPARE(session.phase(), SessionPhase::Failed);
    QVERIFY2(session.failureReason().contains(QLatin1String("SIGKILL")), qPrintable(session.failureReason()));
    QCOMPARE(failed[0][1].toBool(), true);
    session.restart();
    QCOMPARE(session.failureReason(), QString());
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
    QCOMPARE(failed.size(), 1);
  }

  void aLayoutGoesInAFile() {
    EngineSession session;
    QSignalSpy failed(&session, &EngineSession::failed);
    QStringList lines;
    connect(&session, &EngineSession::logLine, &session, [&](const QString& line) { lines << line; });
    LaunchRequest launch = request(QStringLiteral("show-layout"));
    session.start(launch);
    QTRY_COMPARE(failed.size(), 1);
    QCOMPARE(lines, QStringList{QStringLiteral("fake engine: mode show-layout")});
    lines.clear();
    launch.layoutFile = R"({"tp":1,"pp":2})";
    session.start(launch);
    QTRY_COMPARE(failed.size(), 2);
    QCOMPARE(lines.last(), QStringLiteral("layout: {\"tp\":1,\"pp\":2}"));
  }

  void explainsARefusal() {
    EngineSession session;
    QSignalSpy failed(&session, &EngineSession::failed);
    session.start(request(QStringLiteral("refuse")));
    QTRY_COMPARE(failed.size(), 1);
    QVERIFY2(session.failureReason().contains(QLatin1String("use --tp 3")), qPrintable(session.failureReason()));
    session.start(request(QStringLiteral("ok")));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
  }

  void takesAnotherPortWhenOneWasTaken() {
    QTemporaryDir folder;
    EngineSession session;
    QSignalSpy failed(&session, &EngineSession::failed);
    session.start(request(QStringLiteral("port-once:%1").arg(folder.filePath(QStringLiteral("seen")))));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
    QCOMPARE(failed.size(), 0);
  }

  void stopsWhileItLoads() {
    EngineSession session;
    QSignalSpy stopped(&session, &EngineSession::stopped);
    session.start(request(QStringLiteral("slow-load")));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Loading, 15000);
    session.stop();
    QTRY_COMPARE(stopped.size(), 1);
    QCOMPARE(session.phase(), SessionPhase::Idle);
  }

  void secondStopKills() {
    EngineSession session;
    QSignalSpy stopped(&session, &EngineSession::stopped);
    session.start(request(QStringLiteral("stubborn")));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
    session.stop();
    QTest::qWait(200);
    QCOMPARE(session.phase(), SessionPhase::Stopping);
    session.stop();
    QTRY_COMPARE(stopped.size(), 1);
  }

  void aServingEngineThatHangsIsTold() {
    EngineSession session;
    session.setSilenceMs(1000);
    session.start(request(QStringLiteral("ok")));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
    QVERIFY(session.connectionProblem().isEmpty());
    const auto pid = static_cast<pid_t>(session.processId());
    ::kill(pid, SIGSTOP);
    QTRY_VERIFY_WITH_TIMEOUT(!session.connectionProblem().isEmpty(), 15000);
    QVERIFY(session.isReady());
    ::kill(pid, SIGCONT);
    QTRY_VERIFY_WITH_TIMEOUT(session.connectionProblem().isEmpty(), 15000);
    session.stop();
    QTRY_COMPARE(session.phase(), SessionPhase::Idle);
  }

  void destroyingEndsTheChild() {
    auto session = std::make_unique<EngineSession>();
    session->start(request(QStringLiteral("ok")));
    QTRY_COMPARE_WITH_TIMEOUT(session->phase(), SessionPhase::Ready, 15000);
    const auto pid = static_cast<pid_t>(session->processId());
    session.reset();
    QCOMPARE(::kill(pid, 0), -1);
  }
};

int main(int argc, char** argv) {
  if (const auto status = headroom::test::runFakeEngineIfAsked(argc, argv)) return *status;
  QCoreApplication application(argc, argv);
  EngineSessionTest test;
  return QTest::qExec(&test, argc, argv);
}
#include "engine_session_test.moc"
