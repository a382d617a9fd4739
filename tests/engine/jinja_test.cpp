// SPDX-License-Identifier: Apache-2.0
// The Jinja of chat templates by itself: values of expressions, error messages, and limits that hold on an ordinary stack.
// Expected texts are those of Python's jinja2.
#include "engine/text/jinja_interpreter.h"
#include "engine/text/jinja_parser.h"

#include <QtTest>

using namespace headroom::engine::jinja;

namespace {
std::string render(const std::string& source) {
  const Body body = parse(source);
  Interpreter interpreter({{"text", Value("a b")}, {"numbers", Value::list({Value(3), Value(1), Value(2)})}});
  return interpreter.render(body);
}
// The message of what it raises; empty where it raises nothing.
std::string fault(const std::string& source) {
  try {
    render(source);
  } catch (const Fault& raised) {
    return raised.what();
  }
  return {};
}
std::string repeated(std::string_view part, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += part;
  return all;
}
}  // namespace

class JinjaTest : public QObject {
  Q_OBJECT

 private slots:
  void evaluates_data() {
    QTest::addColumn<QString>("expression");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* expression, const char* expected) { QTest::newRow(expression) << expression << expected; };
    row("1 + 2 * 3 ** 2", "19");
    row("-7 // 2", "-4");
    row("-7 % 3", "2");
    row("7 / 2", "3.5");
    row("1 / 3", "0.3333333333333333");
    row("1e100", "1e+100");
    row("0.1 + 0.2", "0.30000000000000004");
    row("1 < 2 < 3 != 4", "True");
    row("not true or false", "False");
    row("1 if false", "");
    row("none", "None");
    row("[1, 'a', none, 2.0]", "[1, 'a', None, 2.0]");
    row("{'k': (1,)}", "{'k': (1,)}");
    row("'a' ~ 1 ~ none", "a1None");
    row("'abc'[1]", "b");
    row("'abc'[-1:]", "c");
    row("'abcdef'[::-2]", "fdb");
    row("'é人😀'[1]", "人");
    row("numbers | sort", "[1, 2, 3]");
    row("numbers | sort(reverse=true) | join('-')", "3-2-1");
    row("numbers | max", "3");
    row("numbers | sum", "6");
    row("text | replace(' ', '_') | upper", "A_B");
    row("text.split(' ')", "['a', 'b']");
    row("text.split()[0]", "a");
    row("'%s=%03d' % ('x', 7)", "x=007");
    row("'{}-{}'.format(1, 'y')", "1-y");
    row("missing is defined", "False");
    row("missing", "");
    row("missing | default('d')", "d");
    row("'' | default('d', true)", "d");
    row("3 is odd and 4 is even", "True");
    row("'a' in 'abc' and 'x' not in ['y']", "True");
    row("range(5) | list", "[0, 1, 2, 3, 4]");
    row("{'b': 1, 'a': 'ü'} | tojson", "{\"b\": 1, \"a\": \"ü\"}");
    row("'<&>' | e", "&lt;&amp;&gt;");
    row("numbers | map('string') | join", "312");
    row("numbers | select('gt', 1) | list", "[3, 2]");
    row("' x ' | trim", "x");
    row("'hello world' | title", "Hello World");
    row("'one two' | wordcount", "2");
    row("[1, 2, 3, 4, 5] | batch(2) | list", "[[1, 2], [3, 4], [5]]");
    row("[1, 2, 1] | unique | list", "[1, 2]");
    row("dict(a=1)", "{'a': 1}");
    row("'x' * 3", "xxx");
    row("true + 1", "2");
    row("[1] + [2]", "[1, 2]");
    row("(1, 2) == (1, 2)", "True");
    row("1 == 1.0", "True");
    row("\"it's\"", "it's");
    row("['it\\'s']", "[\"it's\"]");
    row("2 ** -1", "0.5");
    row("3.7 | int", "3");
    row("3.5 | round | int", "4");
    row("'abc' | first ~ 'abc' | last", "ac");
    row("cycler('a', 'b').next()", "a");
    row("range(0, 10, 3)", "range(0, 10, 3)");
    row("range(5, 5)", "range(5, 5)");
    row("range(0, 10, 3)[1:]", "range(3, 12, 3)");
    row("range(10)[::-2]", "range(9, -1, -2)");
    row("range(0, 3, 2) == range(0, 4, 2)", "True");
    row("range(0, 9223372036854775807, 9223372036854775806)", "range(0, 9223372036854775807, 9223372036854775806)");
    row("155 | round(-1)", "160");
    row("145 | round(-1)", "140");
    row("5 | round(-400)", "0");
    row("5.0 | round(-400)", "0.0");
    row("5.5 | round(400)", "5.5");
    row("1e-305 | round(310)", "1e-305");
    row("5 | round(-9223372036854775807 - 1)", "0");
    row("'--5' | int", "0");
    row("'--9223372036854775808' | int", "0");
    row("'+-5' | float", "0.0");
    row("(1e300).is_integer()", "True");
    row("'abcdef'[::-9223372036854775807 - 1]", "f");
    row("'abcdef'[::9223372036854775807]", "a");
    row("'abc' | truncate(9223372036854775807)", "abc");
    row("'x'.center(-9223372036854775807 - 1)", "x");
    row("'x'.zfill(-9223372036854775807 - 1)", "x");
    row("'%*d|' % (-4, 1)", "1   |");
    row("'{:{}} {}'.format('a', 3, 'b')", "a   b");
    row("'{:{}{}}'.format('a', '>', 3)", "  a");
    row("'{0:{1}}'.format('a', 3)", "a  ");
    row("'x, y, z'.rsplit(', ', 1)", "['x, y', 'z']");
    row("'abracadabra'.rfind('abra')", "7");
    row("('0123456789' * 3).rfind('01234567890123456789')", "10");
    row("('0123456789' * 3).rpartition('90123456789012345')", "('012345678', '90123456789012345', '6789')");
    row("'aXbXXc'.split('X')", "['a', 'b', '', 'c']");
    row("'hELLO wORLD 2x'.title()", "Hello World 2X");
    row("'hELLO é'.swapcase()", "Hello É");
  }
  void evaluates() {
    QFETCH(QString, expression);
    QFETCH(QString, expected);
    QCOMPARE(QString::fromStdString(render(("{{ " + expression + " }}").toStdString())), expected);
  }

  void saysWhatIsWrong_data() {
    QTest::addColumn<QString>("source");
    QTest::addColumn<QString>("mentions");
    const auto row = [](const char* source, const char* mentions) { QTest::newRow(source) << source << mentions; };
    row("{{ raise_exception('no tools here') }}", "no tools here");
    row("{{ missing.more }}", "'missing' is undefined");
    row("{{ text.nothing.more }}", "has no attribute 'nothing'");
    row("{{ 1 // 0 }}", "integer division or modulo by zero");
    row("{{ 1 + 'a' }}", "unsupported operand type(s) for +: 'int' and 'str'");
    row("{{ text | nothing }}", "No filter named 'nothing'");
    row("{{ text is nothing }}", "No test named 'nothing'");
    row("{% for x in 5 %}{% endfor %}", "'int' object is not iterable");
    row("{% if true %}", "Unexpected end of template");
    row("{% nonsense %}", "nonsense");
    row("{{ 1 + }}", "line 1");
    row("\n\n{{ ( }}", "line 3");
    row("{{ 'open }}", "line 1");
    row("{# never closed", "comment");
    row("{{ text() }}", "not callable");
    row("{{ [1][5].x }}", "no element 5");
    row("{{ '{:{:{}}}'.format(1, 2, 3) }}", "Max string recursion exceeded");
    row("{{ '%d' % 1e300 }}", "integer too large");
    row("{{ 9223372036854775807 | round(-1) }}", "integer too large");
  }
  void saysWhatIsWrong() {
    QFETCH(QString, source);
    QFETCH(QString, mentions);
    const QString message = QString::fromStdString(fault(source.toStdString()));
    QVERIFY2(message.contains(mentions), qPrintable(message));
  }

  // Each would exhaust stack, memory or time; each is a Fault instead.
  void limitsHold_data() {
    QTest::addColumn<QByteArray>("source");
    const auto row = [](const char* name, const std::string& source) {
      QTest::newRow(name) << QByteArray::fromStdString(source);
    };
    row("nested parentheses", "{{ " + repeated("(", 100'000) + "1" + repeated(")", 100'000) + " }}");
    row("nested lists", "{{ " + repeated("[", 100'000) + repeated("]", 100'000) + " }}");
    row("nots", "{{ " + repeated("not ", 100'000) + "1 }}");
    row("minuses", "{{ " + repeated("-", 100'000) + "1 }}");
    row("powers", "{{ " + repeated("1 ** ", 100'000) + "1 }}");
    row("choices", "{{ " + repeated("1 if 0 else ", 100'000) + "1 }}");
    // Each link of a chain is a level of the tree, which must end without the stack that half a million levels need.
    row("attributes", "{{ text" + repeated(".x", 500'000) + " }}");
    row("filters", "{{ text" + repeated("|upper", 500'000) + " }}");
    row("calls", "{{ text" + repeated("()", 500'000) + " }}");
    row("tests", "{{ text" + repeated(" is text", 500'000) + " }}");
    row("sums", "{{ 1" + repeated(" + 1", 500'000) + " }}");
    row("products", "{{ 1" + repeated(" * 1", 500'000) + " }}");
    row("ands", "{{ 1" + repeated(" and 1", 500'000) + " }}");
    row("ors", "{{ 0" + repeated(" or 0", 500'000) + " }}");
    row("choices without else", "{{ 1" + repeated(" if 1", 500'000) + " }}");
    row("nested blocks", repeated("{% if true %}", 100'000) + repeated("{% endif %}", 100'000));
    row("nested loops", repeated("{% for a in [1] %}", 5'000) + repeated("{% endfor %}", 5'000));
    row("endless recursion", "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}");
    row("recursive loop", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}");
    row("huge range", "{{ range(100000000000) | list }}");
    row("long loop", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
    row("huge text", "{{ 'x' * 100000000000 }}");
    row("doubling", "{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}");
    row("doubling lists", "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}");
    row("wide center", "{{ 'x' | center(99999999999) }}");
    std::string chains = "1";
    for (int i = 0; i < 80; ++i)
      chains = "(" + chains + repeated(".x", 900) + repeated("**1", 900) + repeated("*1", 900) + repeated("+1", 900) +
               repeated(" and 1", 900) + repeated(" or 1", 900) + ")";
    row("chains in parentheses", "{{ " + chains + " }}");
    row("long source", repeated("{{ 1 }}", 1'000'000));
    // The work inside one operation counts too.
    const std::string nested = "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}";
    row("maps of maps", nested + "{{ ns.x | map(*(['map'] * 90000)) | list }}");
    row("braces in braces", "{{ ('{:' * 100000 ~ '}' * 100000).format(1) }}");
    const std::string shared =
        "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
        "{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
    row("equality of shared lists", shared + "{{ ns.x == ns.y }}");
    row("order of shared lists", shared + "{{ ns.x < ns.y }}");
    row("text of shared namespaces",
        "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = namespace(a=ns.x, b=ns.x) %}"
        "{% endfor %}{{ ns.x }}");
    row("wrapped words", "{{ ('a ' * 1000000) | wordwrap(1, wrapstring='x' * 1000000) }}");
    row("characters of a long text", "{{ ('a' * 60000000) | list | length }}");
    row("parts of a long text", "{{ (' a' * 30000000).split(' ') | length }}");
    row("words of a long text", "{{ (' a' * 30000000).split() | length }}");
    row("lines of a long text", "{{ ('\\n' * 60000000).splitlines() | length }}");
    row("large dictionary", "{{ dict(range(99999) | batch(2)) | length }}");
    row("sum of lists", "{{ (range(99999) | batch(1) | sum(start=[])) | length }}");
    row("unique", "{{ range(99999) | unique | list | length }}");
    row("copies of a long text", "{% set s = 'x' * 60000000 %}{% for i in range(99999) %}{% set t = s ~ i %}{% endfor %}");
    row("searches in a long text", "{% set s = 'x' * 60000000 %}{% for i in range(99999) %}{% set t = 'y' in s %}{% endfor %}");
    row("kept texts",
        "{% set ns = namespace(l=[]) %}{% for i in range(999) %}{% set ns.l = ns.l + ['x' * 60000000 ~ i] %}{% endfor %}");
  }
  void limitsHold() {
    QFETCH(QByteArray, source);
    QVERIFY(!fault(source.toStdString()).empty());
  }

  void longChainsAreNotDeep() {
    // Evaluated from the left, these may be as long as they like, or are refused; neither ends the program.
    for (const std::string& source : {"{{ 1" + repeated(" + 1", 50'000) + " }}", "{{ text" + repeated(" | upper", 50'000) + " }}",
                                      "{{ text" + repeated(".x", 50'000) + " }}", "{{ text" + repeated("[0]", 50'000) + " }}",
                                      "{{ 1" + repeated(" and 1", 50'000) + " }}", "{{ 1" + repeated(" ~ 1", 50'000) + " }}"}) {
      const std::string message = fault(source);
      Q_UNUSED(message);
    }
    QVERIFY(render("{{ '%999999999999d' % 1 }}").size() <= 1 << 21);
    QCOMPARE(render("{{ 1" + repeated(" + 1", 100) + " }}"), std::string("101"));
  }

  // Needle and text for which a search that begins anew at each place would never end.
  void searchesInLinearTime() {
    const std::string texts = "{% set s = 'a' * 2000000 %}{% set n = 'a' * 1000000 %}";
    QCOMPARE(render(texts + "{{ (n ~ 'b') in s }} {{ s.find('b' ~ n) }} {{ s.rfind('b' ~ n) }} {{ s.count(n ~ 'b') }}"),
             std::string("False -1 -1 0"));
    QCOMPARE(render(texts + "{{ s.split(n ~ 'b') | length }} {{ s.rsplit('b' ~ n) | length }} {{ s.replace(n ~ 'b', '') == s }}"),
             std::string("1 1 True"));
    QCOMPARE(render(texts + "{{ s.rpartition('b' ~ n)[2] == s }} {{ s.strip('b' * 1000000) == s }}"), std::string("True True"));
  }

  void endsOfLongTexts() {
    QCOMPARE(render("{% set s = 'é' ~ 'x' * 20000000 ~ '人' %}{{ s | first }}{{ s | last }}{{ s[0] }}{{ s[-1] }}"),
             std::string("é人é人"));
  }

  // Bytes that are no UTF-8 count as one character each, wherever they are counted.
  void sourcesOfAnyBytes() {
    QCOMPARE(render("{{ '\xFF\xFF'[::-1] }}{{ '\xE4\x80'[-1] }}"), std::string("\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"));
  }

  void functionsThatOutliveTheirObject() {
    QCOMPARE(render("{% set f = cycler('a', 'b').next %}{{ f() }}{{ f() }}{{ f() }}"), std::string("aba"));
    QCOMPARE(render("{% set n = cycler('a', 'b') %}{{ n.next() }}{{ n.current }}{{ n.next() }}{{ n.reset() }}{{ n.current }}"),
             std::string("abbNonea"));
    // The scope around a recursive loop is not used again while the loop can be called.
    QCOMPARE(render("{% set ns = namespace() %}{% with %}{% for x in [1] recursive %}{{ x }}{% set ns.l = loop %}{% endfor %}{% "
                    "endwith %}"
                    "{{ ns.l([2]) }}{% with %}{{ ns.l([3]) }}{% endwith %}"),
             std::string("123"));
  }

  void valuesThatHoldThemselves() {
    // A leak checker sees whether these end.
    QCOMPARE(render("{% for x in [1, 2] %}{{ loop.changed(loop) }}{{ loop.changed([loop]) }}{% endfor %}"),
             std::string("TrueTrueTrueTrue"));
    fault("{% set a = [] %}{{ a.append(a) }}{{ a }}{{ a == a }}");
    fault("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}");
    fault("{% set d = {} %}{{ d.update({'d': d}) }}{{ d }}{{ d | tojson }}");
    // And one that holds another, a million deep.
    for (const char* each : {"[ns.x]", "(ns.x,)", "{'x': ns.x}", "namespace(x=ns.x)", "[ns.x].copy"})
      QCOMPARE(
          render(std::string("{% set ns = namespace(x=1) %}{% for j in range(10) %}{% for i in range(99999) %}{% set ns.x = ") +
                 each + " %}{% endfor %}{% endfor %}done"),
          std::string("done"));
    QCOMPARE(render("still here"), std::string("still here"));
  }
};

QTEST_GUILESS_MAIN(JinjaTest)
#include "jinja_test.moc"
