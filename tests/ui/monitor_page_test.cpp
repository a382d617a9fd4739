// SPDX-License-Identifier: GPL-3.0-or-later
// The monitor page over a fake engine: figures, three live charts, the window, the end.
#include "ui/views/monitor_page.h"
#include "tests/ui/support/accessible_names.h"
#include "tests/ui/support/grab.h"
#include "tests/ui/support/self_engine.h"
#include "ui/charts/time_chart.h"
#include "ui/settings/app_settings.h"
#include "ui/views/message_bar.h"

#include <QComboBox>
#include <QLabel>
#include <QRegularExpression>
#include <QTemporaryDir>

using namespace headroom;
using namespace headroom::ui;

class MonitorPageTest : public QObject {
  Q_OBJECT

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support propagateSizeHints)")));
  }

  void hintsWhenNothingRuns() {
    QTemporaryDir folder;
    AppSettings settings(folder.path());
    EngineSession session;
    MonitorPage page(session, settings);
    page.resize(1100, 640);
    page.show();
    QVERIFY(page.findChild<MessageBar*>(QStringLiteral("monitorHint"))->text().contains(QLatin1String("No engine")));
    QCOMPARE(page.memoryPointCount(), 0);
    QCOMPARE(page.throughputPointCount(), 0);
    QCOMPARE(page.ttftPointCount(), 0);
    test::grabIfAsked(page, QStringLiteral("monitor-idle"));
  }

  void showsALiveEngineAndItsEnd() {
    QTemporaryDir folder;
    AppSettings settings(folder.path());
    EngineSession session;
    MonitorPage page(session, settings);
    page.resize(1100, 640);
    page.show();
    page.setWindowSeconds(60);
    session.start(test::selfRequest(QStringLiteral("ok")));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
    QTRY_VERIFY(page.memoryPointCount() >= 40);
    QTRY_VERIFY(page.throughputPointCount() >= 10);
    QTRY_VERIFY(page.ttftPointCount() >= 10);
    QTRY_VERIFY(page.findChild<TimeChart*>(QStringLiteral("throughputChart"))->drawnPointCount() >= 10);
    QTRY_VERIFY(page.findChild<TimeChart*>(QStringLiteral("ttftChart"))->drawnPointCount() >= 10);
    auto* memory = page.findChild<TimeChart*>(QStringLiteral("memoryChart1"));
    QVERIFY(memory);
    QTRY_VERIFY(memory->drawnPointCount() >= 20);
    QCOMPARE(memory->accessibleName(), QStringLiteral("cpu:1 · rank 1 · layers 15–29"));
    QTRY_VERIFY2(memory->legendText().contains(QLatin1String("Plan: 0.70 GiB")), qPrintable(memory->legendText()));
    QVERIFY(page.findChild<TimeChart*>(QStringLiteral("throughputChart"))
                ->legendText()
                .contains(QLatin1String("Predicted, generated: 45.0 tok/s")));
    QStringList words;
    for (const QLabel* label : page.findChildren<QLabel*>()) words.append(label->text());
    for (const char* expected : {"Serving", "TP1 × PP2", "40.0", "300 ms", "25.0 %"})
      QVERIFY2(words.contains(QString::fromUtf8(expected)),
               qPrintable(QString::fromUtf8(expected) + QStringLiteral(" not in ") + words.join(QLatin1Char('|'))));
    QCOMPARE(test::namelessWidgets(page), QStringList());
    if (!qEnvironmentVariable("HEADROOM_GRAB").isEmpty()) QTest::qWait(12000);
    test::grabIfAsked(page, QStringLiteral("monitor"));

    ::kill(static_cast<pid_t>(session.processId()), SIGKILL);
    QTRY_COMPARE(session.phase(), SessionPhase::Failed);
    QTRY_VERIFY(page.findChild<MessageBar*>(QStringLiteral("monitorHint"))->text().contains(QLatin1String("ended unasked")));
    QVERIFY(page.memoryPointCount() > 0);  // what was measured stays to be looked at
  }

  void theWindowIsRemembered() {
    QTemporaryDir folder;
    EngineSession session;
    {
      AppSettings settings(folder.path());
      MonitorPage page(session, settings);
      auto* box = page.findChild<QComboBox*>(QStringLiteral("chartWindow"));
      QCOMPARE(page.windowSeconds(), AppSettings::kDefaultChartWindowSeconds);
      QCOMPARE(box->count(), 4);
      page.show();
      box->setFocus();
      box->setCurrentIndex(2);
      emit box->activated(2);
      QCOMPARE(page.windowSeconds(), 900);
    }
    AppSettings settings(folder.path());
    MonitorPage page(session, settings);
    QCOMPARE(page.windowSeconds(), 900);
  }
};

int main(int argc, char** argv) { return headroom::test::pageTestMain<MonitorPageTest>(argc, argv); }
#include "monitor_page_test.moc"
