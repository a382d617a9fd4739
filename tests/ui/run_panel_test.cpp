// SPDX-License-Identifier: GPL-3.0-or-later
// The run panel and the list of ranks: start, progress, stop, failure that stays, restart.
#include "ui/views/run_panel.h"
#include "tests/ui/support/accessible_names.h"
#include "tests/ui/support/grab.h"
#include "tests/ui/support/self_engine.h"
#include "ui/models/rank_list_model.h"
#include "ui/views/engine_text.h"
#include "ui/views/message_bar.h"

#include <QAbstractItemModelTester>
#include <QLabel>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QTreeView>

using namespace headroom;
using namespace headroom::ui;

class RunPanelTest : public QObject {
  Q_OBJECT

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support propagateSizeHints)")));
  }

  void modelListsRanks() {
    RankListModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QCOMPARE(model.rowCount(), 0);
    QVERIFY(!model.loadFraction());
    model.setState(test::fakeState(EnginePhase::Loading, 0.5));
    QCOMPARE(model.rowCount(), 2);
    const auto text = [&](int row, int column) { return model.index(row, column).data().toString(); };
    QCOMPARE(text(1, RankListModel::DeviceColumn), QStringLiteral("cpu:1"));
    QCOMPARE(text(1, RankListModel::LayersColumn), QStringLiteral("15–29"));
    QCOMPARE(text(1, RankListModel::PlannedColumn), QStringLiteral("0.70 GiB"));
    QCOMPARE(text(1, RankListModel::AllocatedColumn), QStringLiteral("—"));  // not known while loading
    QCOMPARE(text(1, RankListModel::LoadColumn), QStringLiteral("50 %"));
    QCOMPARE(model.index(1, RankListModel::LoadColumn).data(RankListModel::LoadFractionRole).toDouble(), 0.5);
    QCOMPARE(model.loadFraction(), std::optional(0.5));
    model.setState(test::fakeState(EnginePhase::Ready, 1));
    QCOMPARE(text(1, RankListModel::AllocatedColumn), QStringLiteral("0.70 GiB"));
    model.setState(std::nullopt);
    QCOMPARE(model.rowCount(), 0);
  }

  void words_data() {
    QTest::addColumn<qint64>("milliseconds");
    QTest::addColumn<QString>("text");
    QTest::newRow("zero") << qint64(0) << "0:00";
    QTest::newRow("seconds") << qint64(9999) << "0:09";
    QTest::newRow("minutes") << qint64(127000) << "2:07";
    QTest::newRow("hours") << qint64(3727000) << "1:02:07";
  }

  void words() {
    QFETCH(qint64, milliseconds);
    QTEST(durationText(milliseconds), "text");
  }

  void startsStopsFailsAndRestarts() {
    EngineSession session;
    RunPanel panel(session);
    panel.resize(900, 300);
    panel.show();
    auto* start = panel.findChild<QPushButton*>(QStringLiteral("startButton"));
    auto* stop = panel.findChild<QPushButton*>(QStringLiteral("stopButton"));
    auto* restart = panel.findChild<QPushButton*>(QStringLiteral("restartButton"));
    auto* failure = panel.findChild<MessageBar*>(QStringLiteral("failureBar"));
    auto* ranks = panel.findChild<QTreeView*>(QStringLiteral("rankTable"));
    auto* phase = panel.findChild<QLabel*>(QStringLiteral("phaseLabel"));
    QVERIFY(!start->isEnabled() && !stop->isEnabled() && !failure->isVisible() && !ranks->isVisible());

    panel.setOffer(false, QStringLiteral("Choose a layout first"));
    QVERIFY(!start->isEnabled());
    panel.setOffer(true, QStringLiteral("TP1 × PP2 on 2 host devices"));
    QVERIFY(start->isEnabled());
    connect(&panel, &RunPanel::startRequested, &session, [&] { session.start(test::selfRequest(QStringLiteral("slow-load"))); });
    QTest::mouseClick(start, Qt::LeftButton);
    QVERIFY(!start->isEnabled() && stop->isEnabled());
    QVERIFY(ranks->isVisible());  // the planned ranks, before the engine answers
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Loading, 15000);
    QTRY_VERIFY(session.state()->ranks[0].loadBytesDone > 0);
    QCOMPARE(phase->text(), QStringLiteral("Loading weights"));
    QCOMPARE(test::namelessWidgets(panel), QStringList());
    test::grabIfAsked(panel, QStringLiteral("run-loading"));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
    QCOMPARE(phase->text(), QStringLiteral("Serving"));
    test::grabIfAsked(panel, QStringLiteral("run-ready"));

    ::kill(static_cast<pid_t>(session.processId()), SIGKILL);
    QTRY_VERIFY(failure->isVisible());
    QVERIFY(failure->text().contains(QLatin1String("SIGKILL")));
    QVERIFY(restart->isVisible() && restart->isEnabled() && start->isEnabled());
    test::grabIfAsked(panel, QStringLiteral("run-failed"));
    QTest::mouseClick(restart, Qt::LeftButton);
    QVERIFY(!failure->isVisible());
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);

    QTest::mouseClick(stop, Qt::LeftButton);
    QTRY_COMPARE(session.phase(), SessionPhase::Idle);
    QVERIFY(start->isEnabled() && !stop->isEnabled() && !failure->isVisible());
  }

  void aStartThatFailsLeavesOneLineThatStays_data() {
    QTest::addColumn<QString>("mode");
    QTest::addColumn<QString>("words");
    QTest::newRow("layout refused") << QStringLiteral("refuse") << QStringLiteral("use --tp 3");
    QTest::newRow("port in use, twice") << QStringLiteral("port-taken") << QStringLiteral("in use");
    QTest::newRow("a rank out of memory") << QStringLiteral("fail") << QStringLiteral("out of memory on cpu:1");
    QTest::newRow("no word at all") << QStringLiteral("mute") << QStringLiteral("3");
  }

  void aStartThatFailsLeavesOneLineThatStays() {
    QFETCH(QString, mode);
    QFETCH(QString, words);
    EngineSession session;
    RunPanel panel(session);
    panel.setOffer(true, QStringLiteral("TP1 × PP2 on 2 host devices"));
    panel.resize(900, 300);
    panel.show();
    auto* failure = panel.findChild<MessageBar*>(QStringLiteral("failureBar"));
    session.start(test::selfRequest(mode));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Failed, 15000);
    QVERIFY(failure->isVisible());
    QVERIFY2(failure->text().contains(words), qPrintable(failure->text()));
    QVERIFY(panel.findChild<QPushButton*>(QStringLiteral("startButton"))->isEnabled());
    // Nothing but a new start takes it away.
    panel.setOffer(false, QStringLiteral("Choose a layout first"));
    QVERIFY(failure->isVisible());
    session.start(test::selfRequest(QStringLiteral("ok")));
    QVERIFY(!failure->isVisible());
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
  }
};

int main(int argc, char** argv) { return headroom::test::pageTestMain<RunPanelTest>(argc, argv); }
#include "run_panel_test.moc"
