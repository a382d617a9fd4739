// SPDX-License-Identifier: Apache-2.0
// Chat templates give the prompts of Jinja with Transformers' settings (tests/data/text/make_text_data.py wrote them down).
#include "engine/text/chat_template.h"

#include <QTemporaryDir>
#include <QtTest>

#include <fstream>

using headroom::engine::ChatTemplate;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {
const std::filesystem::path kData = std::filesystem::path(HEADROOM_TEST_DATA) / "text";

// A folder with a template and the tokens that templates name.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& source) {
    std::ofstream(path() / "chat_template.jinja") << source;
    std::ofstream(path() / "tokenizer_config.json") << json{{"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}};
  }
  std::filesystem::path path() const { return m_folder.path().toStdString(); }

 private:
  QTemporaryDir m_folder;
};

QByteArray shown(const std::string& text) {
  return QByteArray::fromStdString(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
}
}  // namespace

class ChatTemplateTest : public QObject {
  Q_OBJECT

 private slots:
  void rendersLikeJinja_data() {
    QTest::addColumn<QByteArray>("kase");
    std::ifstream file(kData / "prompts.json");
    for (const ordered_json& kase : ordered_json::parse(file))
      QTest::newRow(kase["name"].get<std::string>().c_str()) << QByteArray::fromStdString(kase.dump());
  }
  void rendersLikeJinja() {
    QFETCH(QByteArray, kase);
    const auto expected = ordered_json::parse(kase.toStdString());
    const ModelFolder folder(expected["template"]);
    const auto chat = ChatTemplate::open(folder.path());
    QVERIFY2(chat, chat ? "" : chat.error().message().c_str());
    QCOMPARE((*chat)->source(), expected["template"].get<std::string>());
    const auto prompt = (*chat)->render(expected["request"]);
    if (!expected.contains("error")) {
      QVERIFY2(prompt, prompt ? "" : prompt.error().message().c_str());
      // A request that was made to fit (content parts joined) may give more than Jinja alone.
      const bool parts = expected["request"]["messages"][0]["content"].is_array();
      if (!parts) QCOMPARE(shown(*prompt), shown(expected["prompt"]));
      return;
    }
    const bool fitted = expected["request"]["messages"][0]["content"].is_array();  // the parts joined, the template may take it
    if (!fitted) QVERIFY2(!prompt, prompt ? prompt->c_str() : "");
  }

  void joinsContentPartsForTemplatesThatTakeText() {
    const ModelFolder folder("{% for m in messages %}{{ '[' + m.content + ']' }}{% endfor %}");
    const auto chat = ChatTemplate::open(folder.path());
    QVERIFY(chat);
    const auto prompt = (*chat)->render(ordered_json::parse(
        R"({"messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]})"));
    QVERIFY(prompt);
    QCOMPARE(*prompt, std::string("[one\ntwo]"));
  }

  void raisedMessagesAreErrors() {
    const ModelFolder folder("{{ raise_exception('Only two roles') }}");
    const auto chat = ChatTemplate::open(folder.path());
    QVERIFY(chat);
    const auto prompt = (*chat)->render(ordered_json::parse(R"({"messages":[{"role":"user","content":"x"}]})"));
    QVERIFY(!prompt);
    QCOMPARE(prompt.error().found, std::string("Only two roles"));
  }

  void parsesToolArgumentsGivenAsText() {
    const ModelFolder folder(
        "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments.place }}{% endfor %}{% endfor %}");
    const auto chat = ChatTemplate::open(folder.path());
    QVERIFY(chat);
    auto request = ordered_json::parse(R"({"messages":[{"role":"assistant","content":"","tool_calls":[{"function":{}}]}]})");
    request["messages"][0]["tool_calls"][0]["function"]["arguments"] = ordered_json{{"place", "here"}}.dump();
    const auto prompt = (*chat)->render(request);
    QVERIFY2(prompt, prompt ? "" : prompt.error().message().c_str());
    QCOMPARE(*prompt, std::string("here"));
  }

  void keywordsReachTheTemplate() {
    const ModelFolder folder("{{ enable_thinking }}{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}");
    const auto chat = ChatTemplate::open(folder.path());
    QVERIFY(chat);
    const auto prompt =
        (*chat)->render(ordered_json::parse(R"({"messages":[],"chat_template_kwargs":{"enable_thinking":false}})"));
    QVERIFY(prompt);
    QCOMPARE(*prompt, std::string("False<s></s>True"));
  }

  void readsTheTemplateOfAGguf() {
    const auto chat = ChatTemplate::open(kData / "byte_level.gguf");
    QVERIFY2(chat, chat ? "" : chat.error().message().c_str());
    const auto prompt = (*chat)->render(ordered_json::parse(R"({"messages":[{"role":"user","content":"Hi"}]})"));
    QVERIFY2(prompt, prompt ? "" : prompt.error().message().c_str());
    QCOMPARE(*prompt, std::string("<|end|>user: Hi\n"));
  }

  void choosesTheToolTemplate() {
    QTemporaryDir folder;
    std::ofstream(folder.filePath("tokenizer_config.json").toStdString())
        << R"({"chat_template":[{"name":"default","template":"plain"},{"name":"tool_use","template":"tools"}]})";
    const auto chat = ChatTemplate::open(folder.path().toStdString());
    QVERIFY(chat);
    QCOMPARE(*(*chat)->render(ordered_json::parse(R"({"messages":[]})")), std::string("plain"));
    QCOMPARE(*(*chat)->render(ordered_json::parse(R"({"messages":[],"tools":[{"type":"function"}]})")), std::string("tools"));
  }

  void refusesModelsWithoutTemplate() {
    QTemporaryDir folder;
    const auto chat = ChatTemplate::open(folder.path().toStdString());
    QVERIFY(!chat);
    QCOMPARE(chat.error().found, std::string("no chat template"));
    QVERIFY(!ChatTemplate::open(kData / "scored.gguf"));
  }

  void refusesRequestsWithoutMessages() {
    const ModelFolder folder("x");
    const auto chat = ChatTemplate::open(folder.path());
    QVERIFY(chat);
    for (const char* request : {"[]", "{}", R"({"messages":"x"})", "null"})
      QVERIFY(!(*chat)->render(ordered_json::parse(request)));
  }
};

QTEST_GUILESS_MAIN(ChatTemplateTest)
#include "chat_template_test.moc"
