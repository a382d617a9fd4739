// SPDX-License-Identifier: GPL-3.0-or-later
// The chat page and its model: sending, streaming, stopping, failing, and what is sent next.
#include "ui/views/chat_page.h"
#include "tests/ui/support/accessible_names.h"
#include "tests/ui/support/grab.h"
#include "tests/ui/support/self_engine.h"
#include "ui/models/chat_model.h"
#include "ui/views/message_bar.h"

#include <QAbstractItemModelTester>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalSpy>

using namespace headroom;
using namespace headroom::ui;

class ChatPageTest : public QObject {
  Q_OBJECT

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support propagateSizeHints)")));
  }

  void splitsCode_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QList<ChatPart>>("parts");
    QTest::newRow("none") << "Hello\nyou" << QList<ChatPart>{{false, QStringLiteral("Hello\nyou")}};
    QTest::newRow("in the middle") << "See:\n```cpp\nint a;\n\nint b;\n```\nDone"
                                   << QList<ChatPart>{{false, QStringLiteral("See:")},
                                                      {true, QStringLiteral("int a;\n\nint b;")},
                                                      {false, QStringLiteral("Done")}};
    QTest::newRow("still open") << "See:\n```\n  x"
                                << QList<ChatPart>{{false, QStringLiteral("See:")}, {true, QStringLiteral("  x")}};
    QTest::newRow("empty") << "" << QList<ChatPart>{};
    QTest::newRow("ticks inside a line") << "use ``` here" << QList<ChatPart>{{false, QStringLiteral("use ``` here")}};
  }

  void splitsCode() {
    QFETCH(QString, text);
    QFETCH(QList<ChatPart>, parts);
    QCOMPARE(splitCodeBlocks(text), parts);
  }

  void modelKeepsTheConversation() {
    ChatModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.addQuestion(QStringLiteral("one"));
    model.beginAnswer();
    model.appendToAnswer(QStringLiteral("first "));
    model.appendToAnswer(QStringLiteral("answer"));
    QVERIFY(model.isAnswering());
    ChatStats stats;
    stats.completionTokens = 38;
    stats.tokensPerSecond = 41.23;
    stats.ttftMs = 310;
    model.finishAnswer(stats);
    QCOMPARE(model.index(1).data().toString(), QStringLiteral("first answer"));
    QCOMPARE(ChatModel::statsText(model.entry(1)), QStringLiteral("38 token(s) · 41.2 tok/s · first token after 310 ms"));
    model.addQuestion(QStringLiteral("two"));
    model.beginAnswer();
    model.failAnswer(QStringLiteral("boom"), {});
    QCOMPARE(model.index(3).data(ChatModel::ErrorRole).toString(), QStringLiteral("boom"));
    QCOMPARE(ChatModel::statsText(model.entry(3)), QString());  // unknown is not 0
    model.addQuestion(QStringLiteral("three"));
    using M = ChatMessage;
    const auto user = QStringLiteral("user"), assistant = QStringLiteral("assistant"), system = QStringLiteral("system");
    QCOMPARE(
        model.messages({}),
        (QList<M>{{user, QStringLiteral("one")}, {assistant, QStringLiteral("first answer")}, {user, QStringLiteral("three")}}));
    QCOMPARE(model.messages(QStringLiteral("Be brief")).front(), (M{system, QStringLiteral("Be brief")}));
    model.clear();
    QCOMPARE(model.rowCount(), 0);
  }

  void isDisabledWithTheReason() {
    EngineSession session;
    ChatPage page(session);
    page.resize(900, 600);
    page.show();
    QVERIFY(!page.findChild<QPlainTextEdit*>(QStringLiteral("chatInput"))->isEnabled());
    QVERIFY(page.findChild<MessageBar*>(QStringLiteral("chatNotice"))->text().contains(QLatin1String("No engine is running")));
    page.sendMessage(QStringLiteral("Hi"));
    QCOMPARE(page.model().rowCount(), 0);
    test::grabIfAsked(page, QStringLiteral("chat-idle"));
  }

  void talks() {
    EngineSession session;
    ChatPage page(session);
    page.resize(900, 600);
    page.show();
    page.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&page));
    session.start(test::selfRequest(QStringLiteral("ok")));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
    auto* input = page.findChild<QPlainTextEdit*>(QStringLiteral("chatInput"));
    auto* stop = page.findChild<QPushButton*>(QStringLiteral("stopAnswerButton"));
    QSignalSpy finished(&page, &ChatPage::answerFinished);
    QVERIFY(input->isEnabled());
    input->setFocus();
    QTest::keyClicks(input, QStringLiteral("Hello"));
    QTest::keyClick(input, Qt::Key_Return, Qt::ShiftModifier);
    QTest::keyClicks(input, QStringLiteral("there"));
    QCOMPARE(input->toPlainText(), QStringLiteral("Hello\nthere"));
    QTest::keyClick(input, Qt::Key_Return);
    QCOMPARE(input->toPlainText(), QString());
    QCOMPARE(page.model().entry(0).text, QStringLiteral("Hello\nthere"));
    QVERIFY(page.isAnswering() && stop->isEnabled());
    QTRY_COMPARE(finished.size(), 1);
    QCOMPARE(page.model().entry(1).text, QStringLiteral("word0 word1 word2 word3 "));
    QCOMPARE(page.model().entry(1).stats.completionTokens, std::optional<int64_t>(4));
    QVERIFY(page.model().entry(1).stats.tokensPerSecond.has_value());

    // Stop keeps what was said.
    page.sendMessage(QStringLiteral("slow"));
    QTRY_VERIFY(page.model().entry(3).text.contains(QLatin1String("word3")));
    QTest::mouseClick(stop, Qt::LeftButton);
    QCOMPARE(finished.size(), 2);
    QCOMPARE(page.model().entry(3).state, ChatEntry::State::Stopped);
    QVERIFY(!page.isAnswering());

    // An error stands where the answer would.
    page.sendMessage(QStringLiteral("error"));
    QTRY_COMPARE(finished.size(), 3);
    QCOMPARE(page.model().entry(5).error, QStringLiteral("max_tokens: found 0, expected 1 or more"));
    page.model().addQuestion(QStringLiteral("Show me a loop"));
    page.model().beginAnswer();
    page.model().appendToAnswer(
        QStringLiteral("A loop over layers:\n```cpp\nfor (const Layer& layer : model.layers) {\n  hidden = "
                       "layer.forward(hidden);\n}\n```\nEach pass feeds the next."));
    page.model().finishAnswer({});
    QCOMPARE(test::namelessWidgets(page), QStringList());
    QTest::qWait(100);
    test::grabIfAsked(page, QStringLiteral("chat"));

    // The engine dies in the middle: the answer so far stays, with the reason.
    page.sendMessage(QStringLiteral("die"));
    QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 4, 15000);
    QCOMPARE(page.model().entry(9).state, ChatEntry::State::Failed);
    QCOMPARE(page.model().entry(9).text, QStringLiteral("word0 word1 "));
    QTRY_VERIFY(!input->isEnabled());
    QTRY_VERIFY(page.findChild<MessageBar*>(QStringLiteral("chatNotice"))->text().contains(QLatin1String("SIGKILL")));
    page.clearConversation();
    QCOMPARE(page.model().rowCount(), 0);
  }

  void goesAwayWhileAnswering() {
    EngineSession session;
    auto page = std::make_unique<ChatPage>(session);
    session.start(test::selfRequest(QStringLiteral("ok")));
    QTRY_COMPARE_WITH_TIMEOUT(session.phase(), SessionPhase::Ready, 15000);
    page->sendMessage(QStringLiteral("slow"));
    QTRY_VERIFY(!page->model().entry(1).text.isEmpty());
    page.reset();
    QTest::qWait(100);
    QCOMPARE(session.phase(), SessionPhase::Ready);
  }
};

int main(int argc, char** argv) { return headroom::test::pageTestMain<ChatPageTest>(argc, argv); }
#include "chat_page_test.moc"
