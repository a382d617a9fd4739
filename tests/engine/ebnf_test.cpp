// SPDX-License-Identifier: Apache-2.0
// Grammars in GBNF and in the part of Lark that is read: what they match, and what is refused with its line.
#include "engine/sample/grammar_ebnf.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::engine;

namespace {

Result<std::shared_ptr<const Grammar>> read(const QByteArray& text) {
  GrammarBuilder builder;
  const auto node = addEbnf(builder, text.toStdString(), "grammar");
  if (!node) return tl::unexpected(node.error());
  return builder.build(*node, "grammar");
}

}  // namespace

class EbnfTest : public QObject {
  Q_OBJECT

 private slots:
  void matchesWhatItSays_data() {
    QTest::addColumn<QByteArray>("grammar");
    QTest::addColumn<QByteArrayList>("yes");
    QTest::addColumn<QByteArrayList>("no");
    auto row = [](const char* name, const char* grammar, QByteArrayList yes, QByteArrayList no) {
      QTest::newRow(name) << QByteArray(grammar) << yes << no;
    };
    row("choice", "root ::= \"yes\" | 'no'", {"yes", "no"}, {"", "yesno", "YES"});
    row("rules over lines", "# answers\nroot ::= first\n  rest*\nfirst ::= [a-z]\nrest ::= first | [0-9]  # more\n", {"a", "a1b"},
        {"1", ""});
    row("repeats", "root ::= \"a\"{2} \"b\"{1,2} \"c\"{,1} \"d\"{2,}", {"aabdd", "aabbcddd"},
        {"abdd", "aabbbdd", "aabccdd", "aabd"});
    row("groups", "root ::= (\"a\" | \"b\" \"c\")+ \"!\"?", {"a", "abc!", "bcbc"}, {"b", "!"});
    row("classes", "root ::= [^\"\\\\\\x41-C]+ [\\]\\-]", {"xyz]", "\xC3\xA9-"}, {"A-", "x", "\"]"});
    row("any character", "root ::= . .", {"ab", "\xF0\x9F\x98\x80\xC3\xA9"}, {"a", "\xF0\x9F"});
    row("escapes", "root ::= \"\\u00e9\\n\\\"\\x7e\"", {"\xC3\xA9\n\"~"}, {"e"});
    row("empty option", "root ::= \"a\" |", {"a", ""}, {"b"});
    row("recursion", "root ::= \"(\" root \")\" | \"x\"", {"x", "((x))"}, {"((x)", "()"});
    row("a rule that begins with itself", "root ::= root \"+\" term | root \"-\" term | term\nterm ::= [0-9]+", {"1", "1+2-33"},
        {"+1", "1+", ""});
    row("llama.cpp's arithmetic",
        "root  ::= (expr \"=\" term \"\\n\")+\nexpr  ::= term ([-+*/] term)*\nterm  ::= num | \"(\" expr \")\"\nnum   ::= [0-9]+",
        {"1+2=3\n", "(1)*2=3\n4=4\n"}, {"1+=3\n", "1+2=3"});
    row("Lark",
        "?start: expr\nexpr: expr \"+\" term -> add\n    | term\n// numbers\nterm: NUMBER | \"(\" expr \")\"\n%import "
        "common.NUMBER",
        {"1", "1.5+(2+3)"}, {"+", "1+"});
    row("Lark, marks", "start: \"SELECT\"i [\" *\"] /[a-z]+/ \"a\"..\"c\" \"x\" ~ 2..3", {"select *tableaxx", "SELECTtcxxx"},
        {"select t", "SELECT tdxx"});
    row("Lark, terminals", "start: WORD+\nWORD.2: /\\w/ \" \"?\n", {"a b", "ab"}, {" ", ""});
  }
  void matchesWhatItSays() {
    QFETCH(QByteArray, grammar);
    QFETCH(QByteArrayList, yes);
    QFETCH(QByteArrayList, no);
    const auto found = read(grammar);
    QVERIFY2(found.has_value(), found ? "" : found.error().message().c_str());
    for (const QByteArray& text : yes) QVERIFY2(matches(*found, text.toStdString()), text.constData());
    for (const QByteArray& text : no) QVERIFY2(!matches(*found, text.toStdString()), text.constData());
  }

  void refusesByLine_data() {
    QTest::addColumn<QByteArray>("grammar");
    QTest::addColumn<QString>("word");
    auto row = [](const char* name, const char* grammar, const char* word) {
      QTest::newRow(name) << QByteArray(grammar) << QString(word);
    };
    row("nothing", "  ", "nothing");
    row("no root", "answer ::= \"a\"", "root");
    row("undefined", "root ::= \"a\"\n | missing", "line 2");
    row("defined twice", "root ::= \"a\"\nroot ::= \"b\"", "second definition of root");
    row("open text", "root ::= \"a", "without an end");
    row("open class", "root ::= [a-z", "class without an end");
    row("open group", "root ::= (\"a\"", "expected )");
    row("downwards", "root ::= [z-a]", "goes down");
    row("bad escape", "root ::= \"\\q\"", "\\q");
    row("surrogate", "root ::= \"\\uD800\"", "U+D800");
    row("bad range", "root ::= \"a\"{3,2}", "{3,2}");
    row("too many", "root ::= \"a\"{99999}", "10000");
    row("itself only", "root ::= root | \"a\"", "itself");
    row("each other", "root ::= a | \"x\"\na ::= root \"y\"", "itself before any text");
    row("never ends", "root ::= \"a\" root", "no text can satisfy");
    row("ignore", "start: \"a\"\n%ignore \" \"", "%ignore");
    row("library", "start: SQL\n%import common.SQL", "common.SQL");
    row("flags", "start: /a/i", "flags");
    row("token", "root ::= <|end|>", "tokens");
    row("deep", QByteArray("root ::= " + QByteArray(300, '(')).constData(), "deeper");
  }
  void refusesByLine() {
    QFETCH(QByteArray, grammar);
    QFETCH(QString, word);
    const auto found = read(grammar);
    QVERIFY(!found.has_value());
    QVERIFY2(QString::fromStdString(found.error().message()).contains(word), found.error().message().c_str());
    QVERIFY(QString::fromStdString(found.error().message()).startsWith("grammar"));
  }

  // Each would exhaust the stack, or take time that grows with the square of its length.
  void limitsHold_data() {
    QTest::addColumn<QByteArray>("grammar");
    QTest::addColumn<QString>("word");
    auto row = [](const char* name, const QByteArray& grammar, const char* word) { QTest::newRow(name) << grammar << word; };
    row("question marks", "root ::= \"a\"" + QByteArray(200'000, '?'), "more than 16 repetitions of one part");
    row("pluses", "root ::= \"a\"*" + QByteArray(100'000, '+'), "more than 16 repetitions of one part");
    row("Lark, question marks", "start: \"a\"" + QByteArray(500'000, '?'), "more than 16 repetitions of one part");
    QByteArray chain = "r0 ::= \"\"\n";
    for (int i = 1; i < 60'000; ++i) chain += "r" + QByteArray::number(i) + " ::= r" + QByteArray::number(i - 1) + "\n";
    row("rules that call the one before", chain + "root ::= r59999", "");
    row("many names", "root ::= " + QByteArray("a ").repeated(90'000) + "\na ::= \"a\"", "");
    QByteArray distinct;
    for (int i = 0; i < 90'000; ++i) distinct += "n" + QByteArray::number(i) + " ";
    row("many names that are missing", "root ::= " + distinct, "which is not defined");
    row("slashes", "start: /" + QByteArray("\\/").repeated(500'000) + "/", "states");
  }
  void limitsHold() {
    QFETCH(QByteArray, grammar);
    QFETCH(QString, word);
    const auto found = read(grammar);
    QCOMPARE(found.has_value(), word.isEmpty());
    if (!found) QVERIFY2(QString::fromStdString(found.error().message()).contains(word), found.error().message().c_str());
  }
};

QTEST_GUILESS_MAIN(EbnfTest)
#include "ebnf_test.moc"
