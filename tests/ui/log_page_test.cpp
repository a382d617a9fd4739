// SPDX-License-Identifier: GPL-3.0-or-later
// The log page: raw lines, severities, filter, bounds, report.
#include "ui/views/log_page.h"
#include "tests/ui/support/accessible_names.h"
#include "tests/ui/support/grab.h"
#include "tests/ui/support/self_engine.h"
#include "ui/models/log_buffer.h"

#include <QComboBox>
#include <QDir>
#include <QLineEdit>
#include <QRegularExpression>

using namespace headroom;
using namespace headroom::ui;

class LogPageTest : public QObject {
  Q_OBJECT

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support propagateSizeHints)")));
  }

  void readsSeverity_data() {
    QTest::addColumn<QString>("line");
    QTest::addColumn<int>("severity");
    QTest::newRow("plain") << "loading 3 of 6" << int(LogSeverity::Information);
    QTest::newRow("error") << "error: config.json: found []" << int(LogSeverity::Error);
    QTest::newRow("upper case") << "[ERROR] rank 2" << int(LogSeverity::Error);
    QTest::newRow("failed") << "rank 2 failed: bad file" << int(LogSeverity::Error);
    QTest::newRow("warning") << "Warning: CUDA is off" << int(LogSeverity::Warning);
    QTest::newRow("warning about an error") << "warning: the last error is repeated" << int(LogSeverity::Warning);
    QTest::newRow("only part of a word") << "errorless terrors, forewarned" << int(LogSeverity::Information);
  }

  void readsSeverity() {
    QFETCH(QString, line);
    QFETCH(int, severity);
    QCOMPARE(int(severityOf(line)), severity);
  }

  void filters() {
    const LogEntry entry{QStringLiteral("Rank 2 failed: bad file"), LogSeverity::Error};
    QVERIFY((LogFilter{{}, LogSeverity::Error}.accepts(entry)));
    QVERIFY((LogFilter{QStringLiteral("file RANK"), LogSeverity::Warning}.accepts(entry)));
    QVERIFY((!LogFilter{QStringLiteral("rank 3"), LogSeverity::Information}.accepts(entry)));
    QVERIFY((!LogFilter{{}, LogSeverity::Warning}.accepts({QStringLiteral("fine"), LogSeverity::Information})));
  }

  void isBounded() {
    LogBuffer buffer(3);
    for (int line = 0; line < 5; ++line) buffer.add(QString::number(line));
    QCOMPARE(buffer.entries().size(), std::size_t(3));
    QCOMPARE(buffer.entries().front().line, QStringLiteral("2"));
    QCOMPARE(buffer.droppedLines(), std::size_t(2));
  }

  void showsFiltersAndReports() {
    EngineSession session;
    LogPage page(session);
    page.resize(900, 500);
    page.show();
    LaunchRequest request = test::selfRequest(QStringLiteral("fail"));
    request.arguments += {QStringLiteral("--api-key"), QStringLiteral("hunter2"), QDir::homePath() + QStringLiteral("/models/x")};
    session.start(request);
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Failed, 15000);
    QTRY_VERIFY2(page.visibleText().contains(QLatin1String("rank 1: out of memory on cpu:1")), qPrintable(page.visibleText()));
    QVERIFY(page.visibleText().contains(QLatin1String("fake engine: mode fail")));
    auto* filter = page.findChild<QLineEdit*>(QStringLiteral("logFilter"));
    QTest::keyClicks(filter, QStringLiteral("memory CPU"));
    QVERIFY(!page.visibleText().contains(QLatin1String("fake engine")));
    QVERIFY(page.visibleText().contains(QLatin1String("rank 1")));
    filter->clear();
    page.findChild<QComboBox*>(QStringLiteral("logSeverity"))->setCurrentIndex(2);
    QVERIFY(!page.visibleText().contains(QLatin1String("fake engine")));
    QVERIFY(page.visibleText().contains(QLatin1String("Error: The engine failed (status 3)")));
    page.findChild<QComboBox*>(QStringLiteral("logSeverity"))->setCurrentIndex(0);
    QVERIFY(page.visibleText().contains(QLatin1String("fake engine")));

    const QString report = page.report();
    QVERIFY(report.contains(QLatin1String("rank 1: out of memory on cpu:1")));
    QVERIFY(report.contains(QLatin1String("TP1 × PP2")) || report.contains(QStringLiteral("TP1 × PP2")));
    QVERIFY(report.contains(QLatin1String("--api-key ***")));
    QVERIFY(!report.contains(QLatin1String("hunter2")));
    QVERIFY(!page.visibleText().contains(QLatin1String("hunter2")));
    QVERIFY(!report.contains(QDir::homePath() + QLatin1Char('/')));
    QCOMPARE(test::namelessWidgets(page), QStringList());
    test::grabIfAsked(page, QStringLiteral("log"));
  }

  void keepsUpWithAFlood() {
    EngineSession session;
    LogPage page(session);
    page.show();
    for (int line = 0; line < 30000; ++line) emit session.logLine(QStringLiteral("line %1").arg(line));
    QTRY_VERIFY(page.visibleText().endsWith(QLatin1String("line 29999")));
    QCOMPARE(page.visibleText().count(QLatin1Char('\n')) + 1, 20000);
  }
};

int main(int argc, char** argv) { return headroom::test::pageTestMain<LogPageTest>(argc, argv); }
#include "log_page_test.moc"
