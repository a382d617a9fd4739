// SPDX-License-Identifier: GPL-3.0-or-later
// SseParser against the rules and the examples of the HTML standard, section 9.2.6, cut at every possible place.
#include "ui/client/sse_parser.h"

#include <QtTest>

using headroom::ui::SseEvent;
using headroom::ui::SseParser;

class SseParserTest : public QObject {
  Q_OBJECT

 private slots:
  void parses_data() {
    QTest::addColumn<QByteArray>("stream");
    QTest::addColumn<QList<SseEvent>>("events");
    const QString message = QStringLiteral("message");
    QTest::newRow("one line") << QByteArray("data: hello\n\n") << QList<SseEvent>{{message, "hello", {}}};
    QTest::newRow("three lines are joined") << QByteArray("data: YHOO\ndata: +2\ndata: 10\n\n")
                                            << QList<SseEvent>{{message, "YHOO\n+2\n10", {}}};
    QTest::newRow("the space after the colon is optional")
        << QByteArray("data:test\n\ndata: test\n\n") << QList<SseEvent>{{message, "test", {}}, {message, "test", {}}};
    QTest::newRow("only one space is eaten")
        << QByteArray("data:  third event\n\n") << QList<SseEvent>{{message, " third event", {}}};
    QTest::newRow("empty data lines count, an unfinished event does not")
        << QByteArray("data\n\ndata\ndata\n\ndata:") << QList<SseEvent>{{message, "", {}}, {message, "\n", {}}};
    QTest::newRow("comments are skipped")
        << QByteArray(": test stream\n\ndata: first event\nid: 1\n\n:keep-alive\n\ndata: second\nid\n\n")
        << QList<SseEvent>{{message, "first event", QStringLiteral("1")}, {message, "second", {}}};
    QTest::newRow("names last for one event") << QByteArray("event: state\ndata: 1\n\ndata: 2\n\n")
                                              << QList<SseEvent>{{QStringLiteral("state"), "1", {}}, {message, "2", {}}};
    QTest::newRow("a name without data is no event")
        << QByteArray("event: state\n\ndata: 2\n\n") << QList<SseEvent>{{message, "2", {}}};
    QTest::newRow("CRLF") << QByteArray("event: a\r\ndata: 1\r\ndata: 2\r\n\r\n")
                          << QList<SseEvent>{{QStringLiteral("a"), "1\n2", {}}};
    QTest::newRow("CR") << QByteArray("data: 1\rdata: 2\r\rdata: 3\r\r")
                        << QList<SseEvent>{{message, "1\n2", {}}, {message, "3", {}}};
    QTest::newRow("byte order mark") << QByteArray(
                                            "\xEF\xBB\xBF"
                                            "data: 1\n\n")
                                     << QList<SseEvent>{{message, "1", {}}};
    QTest::newRow("half a byte order mark is text") << QByteArray(
                                                           "\xEF\xBB"
                                                           "data: 1\n\ndata: 2\n\n")
                                                    << QList<SseEvent>{{message, "2", {}}};
    QTest::newRow("unknown fields are skipped")
        << QByteArray("foo: bar\ndata: x\nbaz\n\n") << QList<SseEvent>{{message, "x", {}}};
    QTest::newRow("UTF-8 is kept") << QByteArray("data: \xE2\x82\xAC\n\n") << QList<SseEvent>{{message, "\xE2\x82\xAC", {}}};
    QTest::newRow("colons in the value") << QByteArray("data: {\"a\":1}\n\n") << QList<SseEvent>{{message, "{\"a\":1}", {}}};
    QTest::newRow("an id with a null byte is ignored")
        << QByteArray("id: 7\ndata: 1\n\nid: \0x\ndata: 2\n\n", 31)
        << QList<SseEvent>{{message, "1", QStringLiteral("7")}, {message, "2", QStringLiteral("7")}};
  }

  void parses() {
    QFETCH(QByteArray, stream);
    QFETCH(QList<SseEvent>, events);
    SseParser whole;
    QCOMPARE(whole.feed(stream), events);
    SseParser bytewise;
    QList<SseEvent> one;
    for (char byte : stream) one += bytewise.feed(QByteArrayView(&byte, 1));
    QCOMPARE(one, events);
    for (qsizetype cut = 0; cut <= stream.size(); ++cut) {
      SseParser halves;
      QList<SseEvent> both = halves.feed(QByteArrayView(stream).first(cut));
      both += halves.feed(QByteArrayView(stream).sliced(cut));
      QCOMPARE(both, events);
    }
  }

  void readsTheRetryTime() {
    SseParser parser;
    parser.feed("retry: soon\n\n");
    QVERIFY(!parser.retryMs());
    parser.feed("retry: 1500\n\n");
    QCOMPARE(parser.retryMs(), std::optional(1500));
    parser.feed("retry: -4\n\n");
    QCOMPARE(parser.retryMs(), std::optional(1500));
  }

  void refusesAnEventWithoutEnd() {
    SseParser parser(1000);
    parser.feed("data: " + QByteArray(900, 'x'));
    QVERIFY(!parser.overflowed());
    parser.feed(QByteArray(200, 'x'));
    QVERIFY(parser.overflowed());
    QVERIFY(parser.feed("\n\ndata: 1\n\n").isEmpty());
    parser.reset();
    QCOMPARE(parser.feed("data: 1\n\n").size(), 1);
  }
};

QTEST_GUILESS_MAIN(SseParserTest)
#include "sse_parser_test.moc"
