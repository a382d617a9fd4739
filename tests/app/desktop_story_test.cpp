// SPDX-License-Identifier: GPL-3.0-or-later
// The whole story in the real window on the real engine: open, read the grid, start, chat, see the charts move, lose the engine, read why. The model is
// a tiny reference one, with a tokenizer and a chat template beside its weights.
#include "tests/app/desktop_driver.h"
#include "ui/models/chat_model.h"
#include "ui/models/layout_grid_model.h"
#include "ui/settings/app_settings.h"

#include <QMessageBox>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>
#include <csignal>

using namespace headroom;
using namespace headroom::app;

class DesktopStoryTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() {
    QVERIFY2(QFile::exists(QStringLiteral(HEADROOM_BIN_DIR "/headroom-engine")), "headroom-engine is built beside the desktop");
    qputenv("PATH", QByteArray(HEADROOM_BIN_DIR ":") + qgetenv("PATH"));
  }
  // The offscreen platform cannot hand size hints on and says so; so does a font about the scripts that it cannot shape, and the
  // answer of a random model may hold any.
  void init() {
    QTest::failOnWarning(
        QRegularExpression(QStringLiteral("^(?!\\s*(?:This plugin does not support propagateSizeHints|OpenType support missing for))")));
  }

  void startsChatsMonitorsAndExplainsAKilledEngine() {
    QTemporaryDir folder;
    ui::AppSettings settings(folder.path());
    MainWindow window(settings);
    DesktopDriver person(window);
    window.resize(1280, 800);
    window.show();
    QVERIFY(QTest::qWaitForWindowExposed(&window));

    // The grid shows every layout of this machine's six host devices.
    QVERIFY(person.openModel(QStringLiteral(HEADROOM_TEST_DATA "/models/chat"), QString()));
    QVERIFY(person.useThisMachine());
    QCOMPARE(person.plan().machine().size(), 6);
    QCOMPARE(window.planPage().gridModel().rowCount(), 6);
    QCOMPARE(window.planPage().gridModel().columnCount(), 6);

    window.planPage().selectLayout(3, 2, 1);
    QVERIFY(window.planPage().selectedLayout());
    QCOMPARE(window.planPage().selectedLayout()->tp, 3);
    QVERIFY2(window.workspace().startObstacle(window.planPage().selectedLayout()).isEmpty(),
             qPrintable(window.workspace().startObstacle(window.planPage().selectedLayout())));
    QVERIFY2(person.startSelected(), qPrintable(person.engine().failureReason()));
    QCOMPARE(person.engine().state()->ranks.size(), 6u);
    for (const RankState& rank : person.engine().state()->ranks) {
      QCOMPARE(*rank.allocated.weights, *rank.planned.weights);
      QCOMPARE(*rank.allocated.kvCache, *rank.planned.kvCache);
    }

    // A message is answered, and all three charts have points.
    window.showPage(MainWindow::Chat);
    QVERIFY(person.ask(QStringLiteral("Hello, how are you?")));
    const ui::ChatModel& chat = window.chatPage().model();
    QCOMPARE(chat.rowCount(), 2);
    QVERIFY2(chat.entry(1).state == ui::ChatEntry::State::Complete, qPrintable(chat.entry(1).error));
    QVERIFY(!chat.entry(1).text.isEmpty());
    window.showPage(MainWindow::Monitor);
    QVERIFY(person.waitFor([&] {
      return window.monitorPage().memoryPointCount() > 0 && window.monitorPage().throughputPointCount() > 0 && window.monitorPage().ttftPointCount() > 0;
    }));

    // Closing while it serves asks first.
    window.close();
    QVERIFY(window.closeQuestion());
    window.closeQuestion()->reject();
    QVERIFY(window.isVisible());
    QVERIFY(person.engine().isReady());

    // The engine is killed: the window says why and offers a restart.
    QSignalSpy failed(&person.engine(), &ui::EngineSession::failed);
    ::kill(static_cast<pid_t>(person.engine().processId()), SIGKILL);
    QVERIFY(person.waitFor([&] { return failed.count() == 1; }));
    QVERIFY2(person.engine().failureReason().contains(QStringLiteral("9")) || person.engine().failureReason().contains(QStringLiteral("SIGKILL")),
             qPrintable(person.engine().failureReason()));
    QVERIFY(failed.first().at(1).toBool());
    person.engine().restart();
    QVERIFY(person.waitFor([&] { return person.engine().isReady(); }));
    person.engine().stop();
    QVERIFY(person.waitFor([&] { return person.engine().phase() == ui::SessionPhase::Idle; }));
  }
};

QTEST_MAIN(DesktopStoryTest)
#include "desktop_story_test.moc"
