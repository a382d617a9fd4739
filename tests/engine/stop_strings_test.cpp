// SPDX-License-Identifier: Apache-2.0
// Stop strings are found wherever the text is cut into pieces, and no part of them is given out.
#include "engine/server/stop_strings.h"

#include <QtTest>

using headroom::engine::StopMatcher;
using Strings = std::vector<std::string>;
Q_DECLARE_METATYPE(Strings)

class StopStringsTest : public QObject {
  Q_OBJECT

 private slots:
  void cutsTheText_data() {
    QTest::addColumn<Strings>("stops");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("expected");
    QTest::addColumn<QString>("found");  // null: none
    QTest::newRow("none") << Strings{} << "abc"
                          << "abc" << QString();
    QTest::newRow("in the middle") << Strings{"lo w"} << "hello world"
                                   << "hel"
                                   << "lo w";
    QTest::newRow("at the front") << Strings{"he"} << "hello"
                                  << ""
                                  << "he";
    QTest::newRow("at the end") << Strings{"ld"} << "hello world"
                                << "hello wor"
                                << "ld";
    QTest::newRow("one character") << Strings{"o"} << "hello world"
                                   << "hell"
                                   << "o";
    QTest::newRow("false start is given back") << Strings{"world!"} << "hello world"
                                               << "hello world" << QString();
    QTest::newRow("false start, then the stop") << Strings{"aab"} << "aaaab"
                                                << "aa"
                                                << "aab";
    QTest::newRow("overlapping itself") << Strings{"abab"} << "xabacabab"
                                        << "xabac"
                                        << "abab";
    QTest::newRow("the first to be complete") << Strings{"never", "world", "lo"} << "hello world"
                                              << "hel"
                                              << "lo";
    QTest::newRow("ends at the same place: the longest") << Strings{"cd", "bcd"} << "abcde"
                                                         << "a"
                                                         << "bcd";
    QTest::newRow("several bytes a character") << Strings{"好"} << "你好吗"
                                               << "你"
                                               << "好";
  }
  void cutsTheText() {
    QFETCH(Strings, stops);
    QFETCH(QString, text);
    QFETCH(QString, expected);
    QFETCH(QString, found);
    const std::string bytes = text.toStdString();
    // Every way to cut the text in three.
    for (size_t a = 0; a <= bytes.size(); ++a)
      for (size_t b = a; b <= bytes.size(); ++b) {
        StopMatcher matcher(stops);
        std::string out;
        for (const std::string& piece : {bytes.substr(0, a), bytes.substr(a, b - a), bytes.substr(b)}) {
          out += matcher.push(piece);
          QVERIFY2(QString::fromStdString(bytes).startsWith(QString::fromStdString(out)) || !found.isNull() || stops.empty(),
                   out.c_str());
          QVERIFY(out.size() <= expected.toStdString().size());
        }
        out += matcher.flush();
        QCOMPARE(QString::fromStdString(out), expected);
        QCOMPARE(matcher.found().has_value(), !found.isNull());
        if (!found.isNull()) QCOMPARE(QString::fromStdString(*matcher.found()), found);
      }
  }

  void includesTheStopWhereAsked() {
    StopMatcher matcher({"lo"}, true);
    QCOMPARE(matcher.push("hel"), std::string("he"));
    QCOMPARE(matcher.push("lo world"), std::string("llo"));
  }

  void passesTextWhileInactive() {
    StopMatcher matcher({"lo"});
    QCOMPARE(matcher.push("hello ", false), std::string("hello "));
    QVERIFY(!matcher.found());
    QCOMPARE(matcher.push("lower"), std::string());
    QVERIFY(matcher.found());
  }

  void holdsBackNoMoreThanItMust() {
    StopMatcher matcher({"world"});
    QCOMPARE(matcher.push("hello wo"), std::string("hello "));
    QCOMPARE(matcher.push("n"), std::string("won"));
  }

  void saysNothingAfterAMatch() {
    StopMatcher matcher({"x"});
    QCOMPARE(matcher.push("axb"), std::string("a"));
    QCOMPARE(matcher.push("more"), std::string());
    QCOMPARE(matcher.flush(), std::string());
  }
};

QTEST_APPLESS_MAIN(StopStringsTest)
#include "stop_strings_test.moc"
