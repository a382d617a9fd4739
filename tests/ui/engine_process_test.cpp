// SPDX-License-Identifier: GPL-3.0-or-later
// Every way in which the child process can end, told apart. The test binary is its own fake engine.
#include "ui/client/engine_process.h"
#include "tests/ui/support/fake_engine.h"

#include <QRegularExpression>
#include <QSignalSpy>
#include <QtTest>

using namespace headroom::ui;
using Kind = ProcessEnd::Kind;

Q_DECLARE_METATYPE(headroom::ui::ProcessEnd)

class EngineProcessTest : public QObject {
  Q_OBJECT

  static QStringList arguments(const QString& mode) {
    return {QStringLiteral("serve"), mode, QStringLiteral("--port"), QStringLiteral("0")};
  }
  static QString self() { return QCoreApplication::applicationFilePath(); }

 private slots:
  void init() { QTest::failOnWarning(QRegularExpression(QStringLiteral(".*"))); }

  void endsByItself_data() {
    QTest::addColumn<QString>("mode");
    QTest::addColumn<int>("kind");
    QTest::addColumn<int>("status");
    QTest::addColumn<int>("signal");
    QTest::addColumn<QString>("said");
    QTest::newRow("refused") << "refuse" << int(Kind::Refused) << 2 << 0
                             << "layout: found TP=5, expected a divisor of 9 query heads; use --tp 3";
    QTest::newRow("failed") << "fail" << int(Kind::Failed) << 3 << 0 << "rank 1: out of memory on cpu:1";
    QTest::newRow("crashed") << "crash" << int(Kind::Killed) << 0 << int(SIGABRT) << "SIGABRT";
    QTest::newRow("quit") << "quit" << int(Kind::Quit) << 0 << 0 << "by itself";
    QTest::newRow("failed, saying little") << "mute" << int(Kind::Failed) << 3 << 0 << "status 3";
  }

  void endsByItself() {
    QFETCH(QString, mode);
    QFETCH(int, kind);
    QFETCH(int, status);
    QFETCH(int, signal);
    QFETCH(QString, said);
    EngineProcess process;
    QSignalSpy ended(&process, &EngineProcess::ended);
    process.start(self(), arguments(mode));
    QTRY_COMPARE(ended.size(), 1);
    const auto end = ended[0][0].value<ProcessEnd>();
    QCOMPARE(int(end.kind), kind);
    QCOMPARE(end.exitStatus, status);
    QCOMPARE(end.signal, signal);
    QVERIFY2(end.message().contains(said), qPrintable(end.message()));
    QVERIFY(!process.isRunning());
  }

  void saysWhenTheProgramIsMissing() {
    EngineProcess process;
    QSignalSpy ended(&process, &EngineProcess::ended);
    process.start(QStringLiteral("/nonexistent/headroom-engine"), {});
    QTRY_COMPARE(ended.size(), 1);
    const auto end = ended[0][0].value<ProcessEnd>();
    QCOMPARE(int(end.kind), int(Kind::CouldNotStart));
    QVERIFY2(end.message().contains(QLatin1String("/nonexistent/headroom-engine")), qPrintable(end.message()));
    process.start(QString(), {});
    QTRY_COMPARE(ended.size(), 2);
    QVERIFY(ended[1][0].value<ProcessEnd>().message().contains(QLatin1String("PATH")));
  }

  void readsTheReadyLineAndTheLogAndStops() {
    EngineProcess process;
    QSignalSpy ready(&process, &EngineProcess::ready), ended(&process, &EngineProcess::ended);
    QStringList log;
    connect(&process, &EngineProcess::logLine, &process, [&](const QString& line) { log.append(line); });
    process.start(self(), arguments(QStringLiteral("ok")));
    QTRY_COMPARE_WITH_TIMEOUT(ready.size(), 1, 15000);
    QCOMPARE(ready[0][0].toUrl().host(), QStringLiteral("127.0.0.1"));
    QTRY_COMPARE(log, (QStringList{QStringLiteral("fake engine: mode ok"), QStringLiteral("loading 100%")}));
    QVERIFY(process.processId() > 0);
    process.stop();
    QTRY_COMPARE(ended.size(), 1);
    const auto end = ended[0][0].value<ProcessEnd>();
    QCOMPARE(int(end.kind), int(Kind::Stopped));
    QVERIFY(!end.hadToKill);
  }

  void tellsAKillFromOutside() {
    EngineProcess process;
    QSignalSpy ready(&process, &EngineProcess::ready), ended(&process, &EngineProcess::ended);
    process.start(self(), arguments(QStringLiteral("ok")));
    QTRY_COMPARE_WITH_TIMEOUT(ready.size(), 1, 15000);
    ::kill(static_cast<pid_t>(process.processId()), SIGKILL);
    QTRY_COMPARE(ended.size(), 1);
    const auto end = ended[0][0].value<ProcessEnd>();
    QCOMPARE(int(end.kind), int(Kind::Killed));
    QCOMPARE(end.signal, int(SIGKILL));
    QVERIFY2(end.message().contains(QLatin1String("SIGKILL")) && end.message().contains(QLatin1String("out-of-memory")),
             qPrintable(end.message()));
  }

  void killsWhatDoesNotStop() {
    EngineProcess process;
    process.setStopTimeoutMs(150);
    QSignalSpy ready(&process, &EngineProcess::ready), ended(&process, &EngineProcess::ended);
    process.start(self(), arguments(QStringLiteral("stubborn")));
    QTRY_COMPARE_WITH_TIMEOUT(ready.size(), 1, 15000);
    process.stop();
    QCOMPARE(ended.size(), 0);  // stop() does not wait for the end
    QTRY_COMPARE(ended.size(), 1);
    const auto end = ended[0][0].value<ProcessEnd>();
    QCOMPARE(int(end.kind), int(Kind::Stopped));
    QVERIFY(end.hadToKill);
  }

  void destroyingEndsTheChild() {
    qint64 pid = 0;
    {
      EngineProcess process;
      QSignalSpy ready(&process, &EngineProcess::ready);
      process.start(self(), arguments(QStringLiteral("ok")));
      QTRY_COMPARE_WITH_TIMEOUT(ready.size(), 1, 15000);
      pid = process.processId();
      QCOMPARE(::kill(static_cast<pid_t>(pid), 0), 0);
    }
    QCOMPARE(::kill(static_cast<pid_t>(pid), 0), -1);
  }

  void startsAgainAfterAnEnd() {
    EngineProcess process;
    QSignalSpy ended(&process, &EngineProcess::ended), ready(&process, &EngineProcess::ready);
    process.start(self(), arguments(QStringLiteral("fail")));
    QTRY_COMPARE(ended.size(), 1);
    process.start(self(), arguments(QStringLiteral("ok")));
    QTRY_COMPARE_WITH_TIMEOUT(ready.size(), 1, 15000);
    process.stop();
    QTRY_COMPARE(ended.size(), 2);
    QCOMPARE(int(ended[1][0].value<ProcessEnd>().kind), int(Kind::Stopped));
  }

  void blamesTheOutOfMemoryKillerOnlyWithEvidence() {
    ProcessEnd end;
    end.kind = Kind::Killed;
    end.signal = SIGKILL;
    end.outOfMemoryKills = 0;
    const QString guess = end.message();
    end.outOfMemoryKills = 1;
    QVERIFY(end.message() != guess);
    QVERIFY(end.message().contains(QLatin1String("ran out of memory")));
    QVERIFY(!guess.contains(QLatin1String("ran out of memory")));
  }
};

int main(int argc, char** argv) {
  if (const auto status = headroom::test::runFakeEngineIfAsked(argc, argv)) return *status;
  QCoreApplication application(argc, argv);
  EngineProcessTest test;
  return QTest::qExec(&test, argc, argv);
}
#include "engine_process_test.moc"
