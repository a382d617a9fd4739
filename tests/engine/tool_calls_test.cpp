// SPDX-License-Identifier: Apache-2.0
// Calls of tools: the forms, their grammar, and the reader that takes an answer apart however its text is cut.
#include "engine/server/tool_calls.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::engine;
using Json = nlohmann::ordered_json;
using Part = ToolCallReader::Part;

namespace {

const Json kTools = Json::parse(
    "["
    "{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{"
    "\"type\":\"string\"}},\"required\":[\"city\"],"
    "\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"get_time\"}}]");

struct Answer {
  std::string text;
  std::vector<std::pair<std::string, std::string>> calls;
  friend bool operator==(const Answer&, const Answer&) = default;
};

ToolUse use(bool tagged, bool forced, bool parallel = true) {
  ToolUse use;
  use.reads = true;
  use.isForced = forced;
  use.parallel = parallel;
  use.form.isTagged = tagged;
  use.names = {"get_weather", "get_time"};
  return use;
}

Answer read(const ToolUse& use, const std::string& text, size_t piece) {
  ToolCallReader reader(use);
  Answer answer;
  auto take = [&] {
    answer.text += reader.takeText();
    for (const Part& part : reader.takeParts()) {
      if (part.index == answer.calls.size()) answer.calls.emplace_back(part.name, std::string());
      answer.calls.at(part.index).second += part.arguments;
    }
  };
  for (size_t at = 0; at < text.size(); at += piece) {
    reader.push(std::string_view(text).substr(at, piece));
    take();
  }
  reader.finish();
  take();
  return answer;
}

}  // namespace

class ToolCallsTest : public QObject {
  Q_OBJECT
 private slots:
  void formComesFromTheTemplate() {
    const ToolCallForm hermes = toolCallFormOf("... <tool_call>\n{\"name\": ..., \"arguments\": ...}\n</tool_call>");
    QVERIFY(hermes.isTagged);
    QCOMPARE(hermes.argumentsKey, std::string("arguments"));
    const ToolCallForm llama = toolCallFormOf("{\"name\": function name, \"parameters\": dictionary}");
    QVERIFY(!llama.isTagged);
    QCOMPARE(llama.argumentsKey, std::string("parameters"));
    QVERIFY(!toolCallFormOf("{% for message in messages %}").isTagged);
    QVERIFY(!toolCallFormOf("<tool_call><function=name>").isTagged);
  }

  void grammarIsOneOrMoreCalls() {
    const auto several = toolCallGrammar(kTools, "", true, {true, "arguments"});
    QVERIFY2(several.has_value(), several ? "" : several.error().message.c_str());
    const std::string weather = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Paris\"}}\n</tool_call>";
    QVERIFY(matches(*several, weather));
    QVERIFY(matches(*several, weather + "\n" + weather));
    QVERIFY(!matches(*several, ""));
    QVERIFY(!matches(*several, "<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>"));
    QVERIFY(!matches(*several, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>"));
    const auto plain = toolCallGrammar(kTools, "", true, {});
    QVERIFY(plain.has_value());
    QVERIFY(matches(*plain, "{\"name\": \"get_time\", \"arguments\": {}}"));
    QVERIFY(!matches(*plain, "[{\"name\": \"get_time\", \"arguments\": {}}]"));
    const auto single = toolCallGrammar(kTools, "", false, {});
    QVERIFY(single.has_value());
    QVERIFY(matches(*single, "{\"name\": \"get_time\", \"arguments\": {}}"));
    const auto named = toolCallGrammar(kTools, "get_weather", false, {true, "arguments"});
    QVERIFY(named.has_value());
    QVERIFY(matches(*named, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>"));
    QVERIFY(!matches(*named, "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>"));
  }

  void grammarRefusesByTool() {
    Json tools = kTools;
    tools[0]["function"]["parameters"] = Json{{"type", "nonsense"}};
    const auto refused = toolCallGrammar(tools, "", true, {});
    QVERIFY(!refused.has_value());
    QCOMPARE(refused.error().param, std::string("tools[0].function.parameters"));
    QVERIFY(refused.error().message.find("nonsense") != std::string::npos);
    // A tool that cannot be called does not matter.
    QVERIFY(toolCallGrammar(tools, "get_time", false, {}).has_value());
  }

  void answers_data() {
    QTest::addColumn<bool>("tagged");
    QTest::addColumn<bool>("forced");
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("expectedText");
    QTest::addColumn<QByteArrayList>("expectedCalls");  // name, arguments, name, …
    auto row = [](const char* name, bool tagged, bool forced, const char* text, const char* expectedText, QByteArrayList calls) {
      QTest::newRow(name) << tagged << forced << QByteArray(text) << QByteArray(expectedText) << calls;
    };
    row("forced list", false, true,
        "[{\"name\": \"get_weather\", \"arguments\": {\"city\":\"P}]\\\"{\"}}, {\"name\": \"get_time\", \"arguments\": {}}]", "",
        {"get_weather", "{\"city\":\"P}]\\\"{\"}", "get_time", "{}"});
    row("forced tag", true, true, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>",
        "", {"get_weather", "{\"city\": \"Paris\"}"});
    row("forced, cut", false, true, "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Pa", "",
        {"get_weather", "{\"city\": \"Pa"});
    row("text", true, false, "It is <b>sunny</b> <tool", "It is <b>sunny</b> <tool", {});
    row("text, then calls", true, false,
        "Let me look.\n<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"arguments\": "
        "{\"city\": \"Paris\"}, "
        "\"name\": \"get_weather\"}\n</tool_call>\n",
        "Let me look.", {"get_time", "{}", "get_weather", "{\"city\":\"Paris\"}"});
    row("no closing tag", true, false, "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}", "", {"get_time", "{}"});
    row("broken call", true, false, "<tool_call>{\"name\": get}</tool_call>", "<tool_call>{\"name\": get}</tool_call>", {});
    row("unknown tool", true, false, "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>", {});
    row("plain call", false, false, " {\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}", "",
        {"get_weather", "{\"city\":\"Paris\"}"});
    row("plain list", false, false, "[{\"name\": \"get_time\", \"arguments\": \"{}\"}]", "", {"get_time", "{}"});
    row("other JSON", false, false, "{\"answer\": 42}", "{\"answer\": 42}", {});
    row("plain text", false, false, "The {weather} is fine.", "The {weather} is fine.", {});
  }
  void answers() {
    QFETCH(bool, tagged);
    QFETCH(bool, forced);
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, expectedText);
    QFETCH(QByteArrayList, expectedCalls);
    Answer expected{expectedText.toStdString(), {}};
    for (qsizetype i = 0; i + 1 < expectedCalls.size(); i += 2)
      expected.calls.emplace_back(expectedCalls[i].toStdString(), expectedCalls[i + 1].toStdString());
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{1000}}) {
      const Answer found = read(use(tagged, forced), text.toStdString(), piece);
      QCOMPARE(QString::fromStdString(found.text), QString::fromStdString(expected.text));
      QVERIFY(found.calls == expected.calls);
    }
  }

  void oneCallWhereNotParallel() {
    const Answer found = read(use(false, false, false),
                              "[{\"name\": \"get_time\", \"arguments\": {}}, {\"name\": \"get_time\", \"arguments\": {}}]", 5);
    QCOMPARE(found.calls.size(), 1u);
  }

  // A forced call's name comes before its arguments, and those come as they are written.
  void forcedCallsStream() {
    ToolCallReader reader(use(false, true));
    reader.push("{\"name\": \"get_weather\", \"arguments\": {\"ci");
    const auto parts = reader.takeParts();
    QCOMPARE(parts.size(), 2u);
    QCOMPARE(parts[0].name, std::string("get_weather"));
    QCOMPARE(parts[0].arguments, std::string());
    QCOMPARE(parts[1].name, std::string());
    QCOMPARE(parts[1].arguments, std::string("{\"ci"));
  }
};

QTEST_GUILESS_MAIN(ToolCallsTest)
#include "tool_calls_test.moc"
