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

const ToolCallForm kTagged = toolCallFormOf("<tool_call>");

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
  if (tagged) use.form = kTagged;
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
    QVERIFY(hermes.syntax == ToolCallSyntax::Tagged);
    QCOMPARE(hermes.argumentsKey, std::string("arguments"));
    const ToolCallForm llama = toolCallFormOf("{\"name\": function name, \"parameters\": dictionary}");
    QVERIFY(llama.syntax == ToolCallSyntax::Json);
    QCOMPARE(llama.argumentsKey, std::string("parameters"));
    QVERIFY(toolCallFormOf("{% for message in messages %}").syntax == ToolCallSyntax::Json);
    QVERIFY(toolCallFormOf("<tool_call><function=name><parameter=key>").syntax == ToolCallSyntax::FunctionXml);
  }

  void grammarIsOneOrMoreCalls() {
    const auto several = toolCallGrammar(kTools, "", true, kTagged);
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
    const auto named = toolCallGrammar(kTools, "get_weather", false, kTagged);
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

  // ---- the forms of the families

  void familiesAreTold_data() {
    QTest::addColumn<QByteArray>("chatTemplate");
    QTest::addColumn<int>("syntax");
    QTest::addColumn<QByteArray>("open");
    auto row = [](const char* name, const char* text, ToolCallSyntax syntax, const char* open) {
      QTest::newRow(name) << QByteArray(text) << static_cast<int>(syntax) << QByteArray(open);
    };
    row("Mistral", "'[TOOL_CALLS] ['", ToolCallSyntax::MarkedList, "[TOOL_CALLS]");
    row("Mistral Small 3.2", "'[TOOL_CALLS]' + name + '[ARGS]'", ToolCallSyntax::NamedJson, "[TOOL_CALLS]");
    row("Llama 3.2", "[func_name1(params_name1=params_value1, params_name2=params_value2...)]", ToolCallSyntax::Pythonic, "");
    row("Qwen3-Coder", "<tool_call>\n<function=example>\n<parameter=a>", ToolCallSyntax::FunctionXml, "<tool_call>");
    row("GLM-4.5", "<tool_call>{function-name}\n<arg_key>", ToolCallSyntax::KeyValueXml, "<tool_call>");
    row("GLM-4", "'<|observation|>\n' + message['content']", ToolCallSyntax::NameLine, "");
    row("DeepSeek V3", "'<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + '\n```json\n'",
        ToolCallSyntax::DeepSeekFenced, "<｜tool▁calls▁begin｜>");
    row("DeepSeek V3.1", "'<｜tool▁call▁begin｜>' + name + '<｜tool▁sep｜>'", ToolCallSyntax::DeepSeek, "<｜tool▁calls▁begin｜>");
    row("gpt-oss", "<|start|>assistant<|channel|>analysis<|message|>", ToolCallSyntax::Harmony, "");
    row("MiniMax-M2", "<minimax:tool_call>", ToolCallSyntax::InvokeXml, "<minimax:tool_call>");
    row("Granite 3", "<|tool_call|>", ToolCallSyntax::MarkedList, "<|tool_call|>");
  }
  void familiesAreTold() {
    QFETCH(QByteArray, chatTemplate);
    QFETCH(int, syntax);
    QFETCH(QByteArray, open);
    const ToolCallForm form = toolCallFormOf(chatTemplate.toStdString());
    QCOMPARE(static_cast<int>(form.syntax), syntax);
    QCOMPARE(QByteArray::fromStdString(form.open), open);
  }

  // What the families' own templates write for a call of get_weather(city="São \"x\"", days=3) and one of get_time().
  void familiesAreRead_data() {
    QTest::addColumn<QByteArray>("chatTemplate");
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("expectedText");
    auto row = [](const char* name, const char* chatTemplate, const char* text, const char* expected = "") {
      QTest::newRow(name) << QByteArray(chatTemplate) << QByteArray(text) << QByteArray(expected);
    };
    row("Mistral", "[TOOL_CALLS]",
        "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"São \\\"x\\\"\", \"days\": 3}}, {\"name\": "
        "\"get_time\", \"arguments\": {}}]");
    row("Mistral, newer", "[TOOL_CALLS] [ARGS]",
        "[TOOL_CALLS]get_weather[ARGS]{\"city\":\"São \\\"x\\\"\",\"days\":3}[TOOL_CALLS]get_time[CALL_ID]abc[ARGS]{}");
    row("Granite", "<|tool_call|>",
        "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"São \\\"x\\\"\", \"days\": 3}}, {\"name\": "
        "\"get_time\", \"arguments\": {}}]");
    row("Command", "<|START_ACTION|>",
        "I will look.<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": {\"city\": "
        "\"São \\\"x\\\"\", \"days\": 3}},\n    {\"tool_call_id\": \"1\", \"tool_name\": "
        "\"get_time\", \"parameters\": {}}\n]<|END_ACTION|>",
        "I will look.");
    row("Pythonic", "func_name1(params_name1", "[get_weather(city='São \"x\"', days=3), get_time()]");
    row("Qwen3-Coder", "<function=a><parameter=b>",
        "Let me see.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nSão "
        "\"x\"\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=get_time>\n</"
        "function>\n"
        "</tool_call>",
        "Let me see.");
    row("GLM-4.5", "<arg_key>",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>São "
        "\"x\"</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>get_time\n</tool_call>");
    row("DeepSeek V3", "<｜tool▁call▁begin｜>```json",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"São \\\"x\\\"\", "
        "\"days\": 3}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n"
        "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>");
    row("DeepSeek V3.1", "<｜tool▁call▁begin｜>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"São \\\"x\\\"\", \"days\": "
        "3}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>");
    row("MiniMax-M2", "<minimax:tool_call>",
        "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">São \"x\"</parameter>\n<parameter "
        "name=\"days\">3</parameter>\n</invoke>\n<invoke name=\"get_time\">\n</invoke>\n"
        "</minimax:tool_call>");
    row("gpt-oss", "<|channel|><|message|>",
        "<|channel|>analysis<|message|>Think.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather "
        "<|constrain|>json<|message|>{\"city\": \"São \\\"x\\\"\", \"days\": 3}<|call|>"
        "<|start|>assistant to=functions.get_time<|channel|>commentary json<|message|>{}");
  }
  void familiesAreRead() {
    QFETCH(QByteArray, chatTemplate);
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, expectedText);
    ToolUse tools = use(false, false);
    tools.form = toolCallFormOf(chatTemplate.toStdString());
    tools.schemas = {Json::parse("{\"properties\":{\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"}}}"), Json()};
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{5}, size_t{1000}}) {
      const Answer found = read(tools, text.toStdString(), piece);
      QCOMPARE(QByteArray::fromStdString(found.text), expectedText);
      QCOMPARE(found.calls.size(), size_t(2));
      QCOMPARE(found.calls[0].first, std::string("get_weather"));
      QCOMPARE(Json::parse(found.calls[0].second), Json::parse("{\"city\":\"São \\\"x\\\"\",\"days\":3}"));
      QCOMPARE(found.calls[1].first, std::string("get_time"));
      QCOMPARE(found.calls[1].second, std::string("{}"));
    }
    // A tool that was not offered is text, whatever its form.
    if (tools.form.syntax == ToolCallSyntax::Harmony) return;
    tools.names = {"other"};
    QVERIFY(read(tools, text.toStdString(), 3).calls.empty());
  }

  // What the grammar of a family lets a model write, its reader reads.
  void familiesGrammarsAreRead_data() { familiesAreRead_data(); }
  void familiesGrammarsAreRead() {
    QFETCH(QByteArray, chatTemplate);
    Json tools = kTools;
    tools[0]["function"]["parameters"]["properties"]["days"] = {{"type", "integer"}};
    tools[0]["function"]["strict"] = true;
    const ToolCallForm form = toolCallFormOf(chatTemplate.toStdString());
    AnswerFrame frame;
    frame.isHarmony = form.syntax == ToolCallSyntax::Harmony;
    for (const bool forced : {true, false}) {
      const auto grammar = forced ? toolCallGrammar(tools, "", true, form, frame) : freeCallGrammar(tools, true, form, frame);
      QVERIFY2(grammar.has_value(), grammar ? "" : grammar.error().message.c_str());
      // The shortest text of the grammar that calls get_weather with a city: byte by byte, where letters of the wanted text may
      // come they do.
      GrammarMatcher matcher(*grammar);
      QVERIFY(matcher.canContinue(matcher.start()));
      const std::string wanted = shortCall(form);
      QVERIFY2(matches(*grammar, (frame.isNeeded() ? "\x02" : "") + wanted), wanted.c_str());
      ToolUse reading = use(false, forced);
      reading.form = form;
      reading.schemas = {tools[0]["function"]["parameters"], Json()};
      const Answer found = read(reading, wanted, 4);
      QCOMPARE(found.calls.size(), size_t(1));
      QCOMPARE(found.calls[0].first, std::string("get_weather"));
      QCOMPARE(Json::parse(found.calls[0].second), Json::parse("{\"city\":\"Rome\"}"));
      // Strict: no city, no call.
      std::string lacking = wanted;
      const size_t city = lacking.find("city");
      lacking.replace(city, 4, "town");
      QVERIFY2(!matches(*grammar, (frame.isNeeded() ? "\x02" : "") + lacking), lacking.c_str());
    }
  }
  static std::string shortCall(const ToolCallForm& form) {
    const ToolCallSyntax syntax = form.syntax;
    if (syntax == ToolCallSyntax::MarkedList)
      return form.open + "[{\"" + form.nameKey + "\": \"get_weather\", \"" + form.argumentsKey + "\": {\"city\":\"Rome\"}}]" +
             form.close;
    const std::string json = "{\"city\":\"Rome\"}", object = "{\"name\": \"get_weather\", \"arguments\": " + json + "}";
    switch (syntax) {
      case ToolCallSyntax::Json:
        return object;
      case ToolCallSyntax::Tagged:
        return "<tool_call>\n" + object + "\n</tool_call>";
      case ToolCallSyntax::NamedJson:
        return "[TOOL_CALLS]get_weather[ARGS]" + json;
      case ToolCallSyntax::Pythonic:
        return "[get_weather(city=\"Rome\")]";
      case ToolCallSyntax::FunctionXml:
        return "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>";
      case ToolCallSyntax::InvokeXml:
        return "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter "
               "name=\"city\">Rome</parameter>\n</invoke>\n</minimax:tool_call>";
      case ToolCallSyntax::KeyValueXml:
        return "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>";
      case ToolCallSyntax::DeepSeekFenced:
        return "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n" + json +
               "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
      case ToolCallSyntax::DeepSeek:
        return "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>" + json +
               "<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
      case ToolCallSyntax::NameLine:
        return "get_weather\n" + json;
      case ToolCallSyntax::MarkedList:
        break;
      case ToolCallSyntax::Harmony:
        return "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>" + json;
    }
    return "";
  }

  // Free text with strict tools: any text, but a call is a right one.
  void freeGrammarLeavesText() {
    Json tools = kTools;
    tools[0]["function"]["strict"] = true;
    const auto grammar = freeCallGrammar(tools, true, kTagged);
    QVERIFY(grammar.has_value());
    const std::string weather = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Paris\"}}\n</tool_call>";
    QVERIFY(matches(*grammar, ""));
    QVERIFY(matches(*grammar, "It is <tool_cal <tool <<tool_calls> \xF0\x9F\x98\x80 sunny."));
    QVERIFY(matches(*grammar, "Look: " + weather + "\n" + weather + " done"));
    QVERIFY(!matches(*grammar, "Look: <tool_call> sunny"));
    QVERIFY(!matches(*grammar, "<<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>"));
    QVERIFY(matches(*grammar, "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"any\": 1}}\n</tool_call>"));  // not strict
    const auto plain = freeCallGrammar(tools, true, {});
    QVERIFY(matches(*plain, "It is {sunny}."));
    QVERIFY(matches(*plain, "{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Paris\"}}"));
    QVERIFY(!matches(*plain, "{\"name\": \"get_weather\", \"arguments\": {}}"));
  }

  // ---- reasoning

  void reasoningIsParted_data() {
    QTest::addColumn<bool>("begins");
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("reasoning");
    QTest::addColumn<QByteArray>("answer");
    QTest::newRow("written by the model") << false << QByteArray("<think>\nHm, <b> two.\n</think>\n\nIt is 4.")
                                          << QByteArray("Hm, <b> two.") << QByteArray("It is 4.");
    QTest::newRow("begun by the prompt") << true << QByteArray("\nHm.\n\nYes.\n</think>\n\n 4") << QByteArray("Hm.\n\nYes.")
                                         << QByteArray("4");
    QTest::newRow("none") << false << QByteArray("<thing> 4 </think>") << QByteArray("") << QByteArray("<thing> 4 </think>");
    QTest::newRow("empty") << false << QByteArray("<think>\n\n</think>\n\n4") << QByteArray("") << QByteArray("4");
    QTest::newRow("cut") << true << QByteArray("Hm, and </thi") << QByteArray("Hm, and </thi") << QByteArray("");
    QTest::newRow("only begun") << false << QByteArray("<thi") << QByteArray("") << QByteArray("<thi");
    QTest::newRow("no answer") << true << QByteArray("Hm.</think>\n") << QByteArray("Hm.") << QByteArray("");
  }
  void reasoningIsParted() {
    QFETCH(bool, begins);
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, reasoning);
    QFETCH(QByteArray, answer);
    QVERIFY(!reasoningFormOf("plain").exists());
    for (const int piece : {1, 2, 3, 7, 1000}) {
      ReasoningReader reader(reasoningFormOf("{{ '<think>' }} x.split('</think>')"), begins);
      std::string foundAnswer, foundReasoning;
      for (int at = 0; at < text.size(); at += piece) {
        foundAnswer += reader.push(text.mid(at, piece).toStdString());
        foundReasoning += reader.takeReasoning();
      }
      foundAnswer += reader.finish();
      foundReasoning += reader.takeReasoning();
      QCOMPARE(QByteArray::fromStdString(foundReasoning), reasoning);
      QCOMPARE(QByteArray::fromStdString(foundAnswer), answer);
    }
  }

  void formsStandBehindTheReasoning() {
    const AnswerFrame frame{reasoningFormOf("</think>"), false};
    const auto grammar = toolCallGrammar(kTools, "get_time", false, kTagged, frame);
    QVERIFY(grammar.has_value());
    const std::string call = "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>";
    QVERIFY(matches(*grammar, "\x02" + call));
    QVERIFY(matches(*grammar, "\x02<think>any </thin text</think>\n\n" + call));
    QVERIFY(!matches(*grammar,
                     "\x02"
                     "any text</think>\n\n" +
                         call));
    QVERIFY(matches(*grammar,
                    "\x01"
                    "any text</think>" +
                        call));
    QVERIFY(!matches(*grammar, "\x01" + call));
    QVERIFY(!matches(*grammar, "\x01 a</think> b</think>" + call));
  }
};

QTEST_GUILESS_MAIN(ToolCallsTest)
#include "tool_calls_test.moc"
