// SPDX-License-Identifier: Apache-2.0
// Request bodies: what is read, and that every wrong value is refused by its name.
#include "engine/server/openai_requests.h"

#include <QtTest>

using namespace headroom::engine;
using Json = nlohmann::ordered_json;

namespace {

const RequestBounds kBounds{"model", 128, 1000};

Json with(const char* base, const QByteArray& change) {
  Json body = Json::parse(base);
  const Json changes = Json::parse(change.toStdString());
  for (const auto& [key, value] : changes.items()) {
    if (value == "<absent>")
      body.erase(key);
    else
      body[key] = value;
  }
  return body;
}

const char* kChat = R"({"model": "model", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4})";
const char* kText = R"({"model": "model", "prompt": "hi", "max_tokens": 4})";

}  // namespace

class OpenAiRequestsTest : public QObject {
  Q_OBJECT

 private slots:
  void refusesWrongValues_data() {
    QTest::addColumn<bool>("chat");
    QTest::addColumn<QByteArray>("change");
    QTest::addColumn<QString>("param");
    auto row = [](bool chat, const char* change, const char* param) {
      QTest::newRow(change) << chat << QByteArray(change) << QString(param);
    };
    row(true, R"({"messages": "<absent>"})", "messages");
    row(true, R"({"messages": []})", "messages");
    row(true, R"({"messages": "hi"})", "messages");
    row(true, R"({"messages": ["hi"]})", "messages[0]");
    row(true, R"({"messages": [{"content": "hi"}]})", "messages[0].role");
    row(true, R"({"messages": [{"role": "wizard", "content": "hi"}]})", "messages[0].role");
    row(true, R"({"messages": [{"role": "user"}]})", "messages[0].content");
    row(true, R"({"messages": [{"role": "user", "content": 5}]})", "messages[0].content");
    row(true, R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]})",
        "messages[0].content");
    row(true, R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})", "messages[0].content.text");
    row(true, R"({"model": 5})", "model");
    row(true, R"({"temperature": -1})", "temperature");
    row(true, R"({"temperature": "hot"})", "temperature");
    row(true, R"({"top_p": 2})", "top_p");
    row(true, R"({"top_p": 0})", "top_p");
    row(true, R"({"top_k": -5})", "top_k");
    row(true, R"({"top_k": 1.5})", "top_k");
    row(true, R"({"min_p": 2})", "min_p");
    row(true, R"({"n": 0})", "n");
    row(true, R"({"n": "two"})", "n");
    row(true, R"({"n": 1000000000})", "n");
    row(true, R"({"n": true})", "n");
    row(true, R"({"max_tokens": 0})", "max_tokens");
    row(true, R"({"max_tokens": 1.5})", "max_tokens");
    row(true, R"({"max_tokens": 1e30})", "max_tokens");
    row(true, R"({"max_tokens": 18446744073709551615})", "max_tokens");
    row(true, R"({"max_completion_tokens": 0})", "max_completion_tokens");
    row(true, R"({"min_tokens": 9})", "min_tokens");
    row(true, R"({"presence_penalty": 3})", "presence_penalty");
    row(true, R"({"frequency_penalty": -3})", "frequency_penalty");
    row(true, R"({"repetition_penalty": 0})", "repetition_penalty");
    row(true, R"({"stop": 5})", "stop");
    row(true, R"({"stop": [""]})", "stop");
    row(true, R"({"stop": [1]})", "stop");
    row(true, R"({"stop_token_ids": ["a"]})", "stop_token_ids");
    row(true, R"({"stop_token_ids": [1000]})", "stop_token_ids");
    row(true, R"({"seed": "x"})", "seed");
    row(true, R"({"stream": "yes"})", "stream");
    row(true, R"({"stream_options": {"include_usage": true}})", "stream_options");
    row(true, R"({"stream": true, "stream_options": {"include_usage": 1}})", "stream_options.include_usage");
    row(true, R"({"logit_bias": [1]})", "logit_bias");
    row(true, R"({"logit_bias": {"abc": 1}})", "logit_bias");
    row(true, R"({"logit_bias": {"5": 101}})", "logit_bias");
    row(true, R"({"logit_bias": {"1000": 1}})", "logit_bias");
    row(true, R"({"logprobs": true, "top_logprobs": 21})", "top_logprobs");
    row(true, R"({"logprobs": true, "top_logprobs": -2})", "top_logprobs");
    row(true, R"({"top_logprobs": 3})", "top_logprobs");
    row(true, R"({"response_format": {"type": "xml"}})", "response_format.type");
    row(true, R"({"response_format": {"type": "json_schema"}})", "response_format.json_schema");
    row(true, "{\"structured_outputs\": {\"regex\": \"([\"}}", "structured_outputs.regex");
    row(true, R"({"tools": "all"})", "tools");
    row(true, R"({"tools": [{"type": "function"}]})", "tools[0].function");
    row(true, R"({"tool_choice": "required"})", "tool_choice");
    row(true, R"({"tool_choice": "perhaps"})", "tool_choice");
    row(true, R"({"continue_final_message": true})", "continue_final_message");
    row(false, R"({"prompt": "<absent>"})", "prompt");
    row(false, R"({"prompt": {}})", "prompt");
    row(false, R"({"prompt": []})", "prompt");
    row(false, R"({"prompt": [1, "a"]})", "prompt");
    row(false, R"({"prompt": ["a", 1]})", "prompt");
    row(false, R"({"prompt": [[]]})", "prompt");
    row(false, R"({"prompt": [1000]})", "prompt");
    row(false, R"({"prompt": [-1]})", "prompt");
    row(false, R"({"best_of": 1, "n": 2})", "best_of");
    row(false, R"({"best_of": 3, "stream": true})", "best_of");
    row(false, R"({"logprobs": -2})", "logprobs");
    row(false, R"({"logprobs": true})", "logprobs");
    row(false, R"({"max_tokens": 0})", "max_tokens");
    row(false, R"({"suffix": "The end."})", "suffix");
    row(false, R"({"echo": "yes"})", "echo");
    row(false, R"({"stream": true, "prompt_logprobs": 1})", "prompt_logprobs");
    row(false, R"({"truncate_prompt_tokens": 0})", "truncate_prompt_tokens");
  }
  void refusesWrongValues() {
    QFETCH(bool, chat);
    QFETCH(QByteArray, change);
    QFETCH(QString, param);
    const auto read = chat ? readChatRequest(with(kChat, change), kBounds) : readCompletionRequest(with(kText, change), kBounds);
    QVERIFY(!read.has_value());
    QCOMPARE(read.error().status, 400);
    QCOMPARE(QString::fromStdString(read.error().param), param);
    QVERIFY2(read.error().message.starts_with(param.toStdString()), read.error().message.c_str());
  }

  void namesAnUnknownModel() {
    const auto read = readChatRequest(with(kChat, R"({"model": "no-such-model"})"), kBounds);
    QVERIFY(!read.has_value());
    QCOMPARE(read.error().status, 404);
    QVERIFY(read.error().message.find("no-such-model") != std::string::npos);
  }

  void nullIsAbsent() {
    const auto read = readChatRequest(
        with(
            kChat,
            R"({"stop": null, "seed": null, "tools": null, "tool_choice": null, "logit_bias": null, "response_format": null, "top_p": null,
      "n": null, "stream": null, "stream_options": null, "logprobs": null, "top_logprobs": null, "max_completion_tokens": null, "model": null})"),
        kBounds);
    QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
    QCOMPARE(read->n, 1);
    QCOMPARE(*read->maxTokens, 4);
    QVERIFY(!read->stream && !read->logprobs && !read->sampling.seed);
  }

  void readsSampling() {
    const auto read = readCompletionRequest(
        with(kText,
             R"({"temperature": 0.5, "top_p": 0.9, "min_p": 0.1, "top_k": 7, "presence_penalty": 1, "frequency_penalty": -1,
      "repetition_penalty": 1.5, "logit_bias": {"5": -100, "6": 2.5}, "seed": -3, "min_tokens": 2, "ignore_eos": true, "stop_token_ids": [8], "stop": "end", "logprobs": 4,
      "prompt_logprobs": 2, "n": 2, "best_of": 3, "priority": -1, "echo": true, "user": 5, "unknown": {"x": []}})"),
        kBounds);
    QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
    const SamplingParams& sampling = read->sampling;
    QCOMPARE(sampling.temperature, 0.5);
    QCOMPARE(sampling.topP, 0.9);
    QCOMPARE(sampling.minP, 0.1);
    QCOMPARE(sampling.topK, 7);
    QCOMPARE(sampling.presencePenalty, 1.0);
    QCOMPARE(sampling.frequencyPenalty, -1.0);
    QCOMPARE(sampling.repetitionPenalty, 1.5);
    QCOMPARE(sampling.logitBias, (std::vector<std::pair<int32_t, float>>{{5, -100.0f}, {6, 2.5f}}));
    QCOMPARE(*sampling.seed, -3);
    QCOMPARE(sampling.minTokens, 2);
    QVERIFY(sampling.ignoreEos);
    QCOMPARE(sampling.stopTokenIds, std::vector<int32_t>{8});
    QCOMPARE(read->stop, std::vector<std::string>{"end"});
    QCOMPARE(*sampling.logprobs, 4);
    QCOMPARE(*sampling.promptLogprobs, 4);  // echo shows as many for the prompt
    QCOMPARE(read->bestOf, 3);
    QCOMPARE(read->priority, -1);
  }

  void readsPromptsOfEveryKind() {
    auto prompts = [](const char* change) { return readCompletionRequest(with(kText, change), kBounds)->prompts; };
    QCOMPARE(prompts(R"({"prompt": "a"})"), (std::vector<PromptInput>{std::string("a")}));
    QCOMPARE(prompts(R"({"prompt": ["a", "b"]})"), (std::vector<PromptInput>{std::string("a"), std::string("b")}));
    QCOMPARE(prompts(R"({"prompt": [1, 2]})"), (std::vector<PromptInput>{TokenIds{1, 2}}));
    QCOMPARE(prompts(R"({"prompt": [[1, 2], [3]]})"), (std::vector<PromptInput>{TokenIds{1, 2}, TokenIds{3}}));
  }

  void joinsTextParts() {
    const auto read = readChatRequest(
        with(
            kChat,
            R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "x"}]})"),
        kBounds);
    QVERIFY(read.has_value());
    QCOMPARE(QString::fromStdString(read->conversation["messages"].dump()),
             QString(R"([{"role":"user","content":"a\nb","name":"x"}])"));
  }

  void takesToolsThatAreNotToBeCalled() {
    const auto read = readChatRequest(
        with(kChat, R"({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "none"})"), kBounds);
    QVERIFY(read.has_value());
    QCOMPARE(read->conversation["tools"].size(), 1u);
  }

  // Clients leave the content of a call out or write null: one message for the template.
  void contentThatIsLeftOutIsNull() {
    const std::string call = R"("tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}])";
    for (const std::string& content : {std::string(), std::string(R"("content": null, )")}) {
      const auto read = readChatRequest(
          with(kChat,
               (R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", )" + content + call + "}]}").c_str()),
          kBounds);
      QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
      const auto& message = read->conversation["messages"][1];
      QVERIFY(message.contains("content") && message["content"].is_null());
      QCOMPARE(message["tool_calls"].size(), 1u);
    }
  }

  void fitsToTheContext() {
    auto fit = [](const char* base, const char* change, int64_t length) {
      const bool chat = base == kChat;
      const auto request =
          chat ? readChatRequest(with(base, change), kBounds) : readCompletionRequest(with(base, change), kBounds);
      TokenIds prompt(static_cast<size_t>(length), 7);
      return fitToContext(*request, prompt, kBounds);
    };
    QCOMPARE(*fit(kText, R"({"max_tokens": "<absent>"})", 10), 16);   // OpenAI's default
    QCOMPARE(*fit(kText, R"({"max_tokens": "<absent>"})", 120), 8);   // what is left
    QCOMPARE(*fit(kChat, R"({"max_tokens": "<absent>"})", 28), 100);  // all that is left
    QCOMPARE(*fit(kText, R"({"max_tokens": 8})", 120), 8);
    const auto nothing = fit(kText, "{}", 0);
    QVERIFY(!nothing.has_value());
    QCOMPARE(nothing.error().code, "");
    const auto tooLong = fit(kText, R"({"max_tokens": 9})", 120);
    QCOMPARE(tooLong.error().code, "context_length_exceeded");
    // OpenAI's words, by which clients know the error.
    QVERIFY(tooLong.error().message.find("this model's maximum context length is 128 tokens") != std::string::npos);
    QVERIFY(!tooLong.has_value());
    QVERIFY2(tooLong.error().message.find("120") != std::string::npos && tooLong.error().message.find("128") != std::string::npos,
             tooLong.error().message.c_str());
    const auto prompt = fit(kText, "{}", 200);
    QVERIFY(!prompt.has_value());
    QVERIFY(prompt.error().message.find("this model's maximum context length is 128 tokens") != std::string::npos);
    QVERIFY2(prompt.error().message.find("200") != std::string::npos && prompt.error().message.find("128") != std::string::npos,
             prompt.error().message.c_str());
    QCOMPARE(*fit(kText, R"({"truncate_prompt_tokens": -1})", 200), 4);
    QVERIFY(!fit(kText, "{}", 0).has_value());
  }

  void truncatesFromTheFront() {
    const auto request = readCompletionRequest(with(kText, R"({"truncate_prompt_tokens": 2})"), kBounds);
    TokenIds prompt{1, 2, 3};
    QVERIFY(fitToContext(*request, prompt, kBounds).has_value());
    QCOMPARE(prompt, (TokenIds{2, 3}));
  }

  void refusesMalformedBodies_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::addColumn<QString>("says");
    QTest::newRow("empty") << QByteArray() << "empty";
    QTest::newRow("cut") << QByteArray(R"({"model": "m", "messages": [)") << "column 29";
    QTest::newRow("not JSON") << QByteArray("hello") << "column 1";
    QTest::newRow("array") << QByteArray("[]") << "expected an object";
    QTest::newRow("null") << QByteArray("null") << "expected an object";
    QTest::newRow("NaN") << QByteArray(R"({"a": NaN})") << "column 7";
    QTest::newRow("Infinity") << QByteArray(R"({"a": Infinity})") << "column 7";
    QTest::newRow("1e999") << QByteArray(R"({"a": 1e999})") << "1e999";
    QTest::newRow("trailing comma") << QByteArray(R"({"a": 1,})") << "column 9";
    QTest::newRow("text behind") << QByteArray(R"({"a": 1} x)") << "column 10";
    QTest::newRow("invalid UTF-8") << QByteArray("{\"a\": \"\xff\xfe\"}") << "UTF-8";
    QTest::newRow("surrogate in UTF-8") << QByteArray("{\"a\": \"\xed\xa0\x80\"}") << "UTF-8";
    QTest::newRow("lone surrogate") << QByteArray("{\"a\": \"\\ud83d b\"}") << "surrogate";
    QTest::newRow("open brackets") << QByteArray(100'000, '[') << "deeper";
    QTest::newRow("nested arrays") << "{\"a\": " + QByteArray(100'000, '[') + QByteArray(100'000, ']') + "}"
                                   << "deeper";
    QTest::newRow("nested objects") << QByteArray(R"({"a":)").repeated(100'000) + "1" + QByteArray(100'000, '}') << "deeper";
  }
  void refusesMalformedBodies() {
    QFETCH(QByteArray, body);
    QFETCH(QString, says);
    const auto parsed = parseJsonObject(std::string_view(body.constData(), static_cast<size_t>(body.size())));
    QVERIFY(!parsed.has_value());
    QVERIFY2(parsed.error().message.find(says.toStdString()) != std::string::npos, parsed.error().message.c_str());
    QVERIFY(isValidUtf8(parsed.error().message));
    QVERIFY(Json::accept(errorJson(parsed.error())));
  }

  void aBodyOfManyKeysTakesNoLongTime() {
    std::string body = "{";
    for (int i = 0; i < 500'000; ++i) body += "\"k" + std::to_string(i) + "\":1,";
    body += "\"z\":1}";
    QElapsedTimer timer;
    timer.start();
    QVERIFY(!parseJsonObject(body).has_value());
    QVERIFY2(timer.elapsed() < 60'000, QByteArray::number(timer.elapsed()));
  }

  void writesStringsAsJson() {
    const std::string text = std::string("a\"\\\n\t\x01 ü 🙂 \xff\xf0\x9f z");
    const std::string json = jsonString(text);
    QVERIFY(Json::accept(json));
    QCOMPARE(Json::parse(json).get<std::string>(), validUtf8(text));
    // One replacement for each maximal bad part, as Python's errors="replace" has it.
    QCOMPARE(validUtf8("\xf0\x9f z\xe4\xbd"), std::string("\xEF\xBF\xBD z\xEF\xBF\xBD"));
    QCOMPARE(validUtf8("\xc0\x80"), std::string("\xEF\xBF\xBD\xEF\xBF\xBD"));
  }
};

QTEST_APPLESS_MAIN(OpenAiRequestsTest)
#include "openai_requests_test.moc"
