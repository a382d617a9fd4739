// SPDX-License-Identifier: Apache-2.0
// The form of an answer as requests ask for it: what each parameter means, and that every wrong one is named.
#include "engine/server/structured_output.h"
#include "engine/server/openai_requests.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::engine;
using Json = nlohmann::ordered_json;

namespace {

const RequestBounds kBounds{"m", 512, 260, {}};

Json chat(const char* more) {
  Json body = Json::parse("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}");
  body.update(Json::parse(more));
  return body;
}

}  // namespace

class StructuredOutputTest : public QObject {
  Q_OBJECT
 private slots:
  void forms_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<bool>("expected");
    int number = 0;
    auto row = [&](const char* body, const char* text, bool expected) {
      QTest::addRow("%d %s", ++number, text) << QByteArray(body) << QByteArray(text) << expected;
    };
    row("{\"response_format\":{\"type\":\"json_object\"}}", "{\"a\": [1]}", true);
    row("{\"response_format\":{\"type\":\"json_object\"}}", "[1]", false);
    const char* schema =
        "{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"a\",\"strict\":true,\"schema\":{\"type\":"
        "\"boolean\"}}}}";
    row(schema, "true", true);
    row(schema, "1", false);
    row("{\"structured_outputs\":{\"json\":{\"type\":\"null\"}}}", "null", true);
    row("{\"structured_outputs\":{\"json\":\"{\\\"type\\\":\\\"null\\\"}\"}}", "null", true);
    row("{\"structured_outputs\":{\"json_object\":true}}", "{}", true);
    row("{\"structured_outputs\":{\"regex\":\"a+\",\"choice\":null}}", "aa", true);
    row("{\"structured_outputs\":{\"choice\":[\"green apple\",\"pear\"]}}", "pear", true);
    row("{\"structured_outputs\":{\"choice\":[\"green apple\",\"pear\"]}}", "green", false);
    row("{\"guided_regex\":\"a+\"}", "b", false);
    row("{\"guided_choice\":[\"x\"]}", "x", true);
    row("{\"guided_json\":{\"type\":\"null\"}}", "null", true);
  }
  void forms() {
    QFETCH(QByteArray, body);
    QFETCH(QByteArray, text);
    QFETCH(bool, expected);
    const auto grammar = readStructuredOutput(Json::parse(body.toStdString()));
    QVERIFY2(grammar.has_value(), grammar ? "" : grammar.error().message.c_str());
    QVERIFY(*grammar);
    QCOMPARE(matches(*grammar, text.toStdString()), expected);
  }

  void noFormIsNoGrammar() {
    for (const char* body : {"{}", "{\"response_format\":null}", "{\"response_format\":{\"type\":\"text\"}}"}) {
      const auto grammar = readStructuredOutput(Json::parse(body));
      QVERIFY(grammar.has_value());
      QVERIFY(!*grammar);
    }
  }

  void refusesByName_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::addColumn<QByteArray>("param");
    auto row = [](const char* body, const char* param) { QTest::addRow("%s", body) << QByteArray(body) << QByteArray(param); };
    row("{\"response_format\":\"json\"}", "response_format");
    row("{\"response_format\":{\"type\":\"xml\"}}", "response_format.type");
    row("{\"response_format\":{\"type\":\"json_schema\"}}", "response_format.json_schema");
    row("{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"a\",\"schema\":{\"type\":\"nonsense\"}}}}",
        "response_format.json_schema.schema");
    row("{\"structured_outputs\":{}}", "structured_outputs");
    row("{\"structured_outputs\":{\"regex\":\"([\"}}", "structured_outputs.regex");
    row("{\"structured_outputs\":{\"regex\":5}}", "structured_outputs.regex");
    row("{\"structured_outputs\":{\"choice\":[]}}", "structured_outputs.choice");
    row("{\"structured_outputs\":{\"choice\":[\"\"]}}", "structured_outputs.choice");
    row("{\"structured_outputs\":{\"json\":\"nonsense\"}}", "structured_outputs.json");
    row("{\"structured_outputs\":{\"grammar\":\"root ::= a\"}}", "structured_outputs.grammar");
    row("{\"structured_outputs\":{\"regex\":\"a\",\"choice\":[\"b\"]}}", "structured_outputs.choice");
    row("{\"response_format\":{\"type\":\"json_object\"},\"guided_regex\":\"a\"}", "guided_regex");
    row("{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],\"tool_choice\":\"required\",\"response_format\":{"
        "\"type\":\"json_object\"}}",
        "tool_choice");
    row("{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],\"tool_choice\":{\"type\":\"function\",\"function\":{"
        "\"name\":\"g\"}}}",
        "tool_choice");
    row("{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\\\"g\"}}]}", "tools[0].function.name");
    row("{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":[]}}]}", "tools[0].function.parameters");
    row("{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"x\"}}}],\"tool_choice\":"
        "\"required\"}",
        "tools[0].function.parameters");
    row("{\"tool_choice\":\"required\"}", "tool_choice");
    row("{\"parallel_tool_calls\":1}", "parallel_tool_calls");
  }
  void refusesByName() {
    QFETCH(QByteArray, body);
    QFETCH(QByteArray, param);
    const auto read = readChatRequest(chat(body.constData()), kBounds);
    QVERIFY(!read.has_value());
    QCOMPARE(read.error().status, 400);
    QCOMPARE(QString::fromStdString(read.error().param), QString::fromUtf8(param));
    QVERIFY2(read.error().message.starts_with(param.toStdString()), read.error().message.c_str());
  }

  void toolsMeanAuto() {
    const auto read = readChatRequest(chat("{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}"), kBounds);
    QVERIFY(read.has_value());
    QVERIFY(read->tools.reads);
    QVERIFY(!read->tools.isForced);
    QVERIFY(!read->grammar);
    QCOMPARE(read->tools.names, (std::vector<std::string>{"f"}));
  }

  void namedToolsAreForced() {
    const auto read = readChatRequest(chat("{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],\"tool_choice\":{"
                                           "\"type\":\"function\",\"function\":{\"name\":\"f\"}}}"),
                                      kBounds);
    QVERIFY(read.has_value());
    QVERIFY(read->tools.isForced);
    QVERIFY(read->grammar);
    QVERIFY(matches(read->grammar, "{\"name\": \"f\", \"arguments\": {}}"));
  }
};

QTEST_GUILESS_MAIN(StructuredOutputTest)
#include "structured_output_test.moc"
