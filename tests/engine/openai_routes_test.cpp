// SPDX-License-Identifier: Apache-2.0
// The routes over a scripted engine: shapes of answers and streams, stop strings, logprobs, errors, vanished clients.
#include "engine/server/openai_routes.h"
#include "tests/engine/fake_engine.h"

#include <QtTest>

#include <fmt/format.h>

#include <set>

using namespace headroom;
using namespace headroom::test;
using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;

namespace {

const char* kChatPath = "/v1/chat/completions";
const char* kTextPath = "/v1/completions";

Json chatBody(Json more = Json::object()) {
  Json body{{"model", "fake"}, {"messages", Json::array({{{"role", "user"}, {"content", "hi"}}})}};
  body.update(more);
  return body;
}
Json textBody(Json more = Json::object()) {
  Json body{{"model", "fake"}, {"prompt", "say"}};
  body.update(more);
  return body;
}

std::string textOf(const Json& choice) {
  const Json& text = choice.contains("text") ? choice["text"] : choice["delta"].value("content", Json(""));
  return text.is_string() ? text.get<std::string>() : std::string();
}

std::string joined(const std::vector<Json>& events, int index = 0) {
  std::string text;
  for (const Json& event : events)
    for (const Json& choice : event["choices"])
      if (choice["index"] == index) text += textOf(choice);
  return text;
}

std::vector<std::string> finishReasons(const std::vector<Json>& events) {
  std::vector<std::string> reasons;
  for (const Json& event : events)
    for (const Json& choice : event["choices"])
      if (choice["finish_reason"].is_string()) reasons.push_back(choice["finish_reason"].get<std::string>());
  return reasons;
}

}  // namespace

class OpenAiRoutesTest : public QObject {
  Q_OBJECT

 private slots:
  void answersAChat() {
    FakeServer server;
    const RawResponse response = server.post(kChatPath, chatBody());
    QCOMPARE(response.status, 200);
    QCOMPARE(response.header("content-type"), std::string("application/json"));
    const Json answer = parsed(response);
    QCOMPARE(answer["object"].get<std::string>(), std::string("chat.completion"));
    QCOMPARE(answer["model"].get<std::string>(), std::string("fake"));
    QVERIFY(answer["id"].get<std::string>().starts_with("chatcmpl-"));
    QCOMPARE(answer["choices"][0]["message"]["role"].get<std::string>(), std::string("assistant"));
    QCOMPARE(answer["choices"][0]["message"]["content"].get<std::string>(), std::string("Hello, world"));
    QCOMPARE(answer["choices"][0]["finish_reason"].get<std::string>(), std::string("stop"));
    // "<s>user: hi\nassistant: " is one begin token and 20 characters; the answer's end token counts.
    QCOMPARE(answer["usage"]["prompt_tokens"].get<int>(), 21);
    QCOMPARE(answer["usage"]["completion_tokens"].get<int>(), 13);
    QCOMPARE(answer["usage"]["total_tokens"].get<int>(), 34);
    const auto request = server.service.submittedAt(0);
    QCOMPARE(std::count(request.prompt.begin(), request.prompt.end(), kBos), 1);
    QCOMPARE(request.sampling.maxTokens, 512 - 21);
  }

  void answersACompletion() {
    FakeServer server;
    const Json answer = parsed(server.post(kTextPath, textBody({{"max_tokens", 5}, {"return_token_ids", true}})));
    QCOMPARE(answer["object"].get<std::string>(), std::string("text_completion"));
    QCOMPARE(answer["choices"][0]["text"].get<std::string>(), std::string("Hello"));
    QCOMPARE(answer["choices"][0]["finish_reason"].get<std::string>(), std::string("length"));
    QCOMPARE(answer["choices"][0]["token_ids"].dump(), std::string("[72,101,108,108,111]"));
    QCOMPARE(answer["choices"][0]["prompt_token_ids"].dump(), std::string("[257,115,97,121]"));
    QCOMPARE(parsed(server.post(kTextPath, textBody({{"ignore_eos", true}})))["usage"]["completion_tokens"].get<int>(), 16);
  }

  void streamsTheRoleThenTheTextThenTheReason() {
    FakeServer server;
    const RawResponse response = server.post(kChatPath, chatBody({{"stream", true}}));
    QVERIFY(response.header("content-type").starts_with("text/event-stream"));
    QVERIFY(response.body.ends_with("data: [DONE]\n\n"));
    const auto events = eventsOf(response.body);
    QCOMPARE(events[0]["choices"][0]["delta"].dump(), std::string(R"({"role":"assistant","content":""})"));
    for (size_t i = 0; i < events.size(); ++i) {
      QCOMPARE(events[i]["object"].get<std::string>(), std::string("chat.completion.chunk"));
      QCOMPARE(events[i]["id"], events[0]["id"]);
      QCOMPARE(events[i]["choices"].size(), 1u);
      QVERIFY(!events[i].contains("usage"));
      if (i) QVERIFY(!events[i]["choices"][0]["delta"].contains("role"));
    }
    QCOMPARE(joined(events), std::string("Hello, world"));
    QCOMPARE(finishReasons(events), std::vector<std::string>{"stop"});
    QVERIFY(events.back()["choices"][0]["finish_reason"].is_string());
  }

  void streamsUsageLast() {
    FakeServer server;
    const auto events =
        eventsOf(server.post(kTextPath, textBody({{"stream", true}, {"stream_options", {{"include_usage", true}}}})).body);
    QVERIFY(events.back()["choices"].empty());
    QCOMPARE(events.back()["usage"]["completion_tokens"].get<int>(), 13);
    for (size_t i = 0; i + 1 < events.size(); ++i) QVERIFY(events[i]["usage"].is_null());
  }

  void streamIsTheWholeAnswer_data() {
    QTest::addColumn<QByteArray>("options");
    QTest::newRow("plain") << QByteArray("{}");
    QTest::newRow("stop") << QByteArray(R"({"stop": ["lo, w"]})");
    QTest::newRow("false start") << QByteArray(R"({"stop": ["world!", "Hellx"]})");
    QTest::newRow("stop kept") << QByteArray(R"({"stop": ", ", "include_stop_str_in_output": true})");
    QTest::newRow("max_tokens") << QByteArray(R"({"max_tokens": 4})");
    QTest::newRow("logprobs") << QByteArray(R"({"logprobs": 2})");
    QTest::newRow("token ids") << QByteArray(R"({"return_token_ids": true})");
    QTest::newRow("two choices") << QByteArray(R"({"n": 2, "seed": 6})");
    QTest::newRow("two prompts") << QByteArray(R"({"prompt": ["a", "b"], "echo": true})");
  }
  void streamIsTheWholeAnswer() {
    QFETCH(QByteArray, options);
    FakeServer server("Grüße, wörld 你好 🙂 lo, world.");
    Json body = textBody({{"max_tokens", 100}});
    body.update(Json::parse(options.toStdString()));
    const Json whole = parsed(server.post(kTextPath, body));
    QVERIFY2(whole.contains("choices"), whole.dump().c_str());
    body["stream"] = true;
    const auto events = eventsOf(server.post(kTextPath, body).body);
    for (const Json& choice : whole["choices"]) {
      const int index = choice["index"].get<int>();
      QCOMPARE(joined(events, index), choice["text"].get<std::string>());
      Json ids = Json::array(), logprobs = Json::array(), offsets = Json::array();
      for (const Json& event : events)
        for (const Json& part : event["choices"]) {
          if (part["index"] != index) continue;
          QVERIFY(textOf(part).find("\xEF\xBF\xBD") == std::string::npos);
          for (const Json& id : part.value("token_ids", Json::array())) ids.push_back(id);
          if (part["logprobs"].is_object()) {
            for (const Json& value : part["logprobs"]["token_logprobs"]) logprobs.push_back(value);
            for (const Json& value : part["logprobs"]["text_offset"]) offsets.push_back(value);
          }
        }
      if (choice.contains("token_ids")) QCOMPARE(ids, choice["token_ids"]);
      if (choice["logprobs"].is_object()) QCOMPARE(logprobs, choice["logprobs"]["token_logprobs"]);
      if (choice["logprobs"].is_object()) QCOMPARE(offsets, choice["logprobs"]["text_offset"]);
    }
    QCOMPARE(finishReasons(events).size(), whole["choices"].size());
  }

  void stopsAtAStringAndCancelsAtOnce() {
    FakeServer server("Hello, world", {}, 20ms);
    const Json answer = parsed(server.post(kTextPath, textBody({{"stop", "lo, w"}, {"ignore_eos", true}, {"max_tokens", 400}})));
    QCOMPARE(answer["choices"][0]["text"].get<std::string>(), std::string("Hel"));
    QCOMPARE(answer["choices"][0]["finish_reason"].get<std::string>(), std::string("stop"));
    QCOMPARE(answer["choices"][0]["stop_reason"].get<std::string>(), std::string("lo, w"));
    QCOMPARE(answer["usage"]["completion_tokens"].get<int>(), 8);
    QVERIFY(eventually([&] { return server.service.active() == 0; }));
    QCOMPARE(server.service.cancelled(), 1u);
  }

  void doesNotStopBeforeMinTokens() {
    FakeServer server;
    const Json answer = parsed(server.post(kTextPath, textBody({{"stop", "l"}, {"min_tokens", 6}})));
    QCOMPARE(answer["choices"][0]["text"].get<std::string>(), std::string("Hello, wor"));
  }

  void leavesOutStopTokens() {
    FakeServer server;
    const Json answer = parsed(server.post(kTextPath, textBody({{"stop_token_ids", Json::array({int('o')})}})));
    QCOMPARE(answer["choices"][0]["text"].get<std::string>(), std::string("Hell"));
    QCOMPARE(answer["choices"][0]["finish_reason"].get<std::string>(), std::string("stop"));
    QCOMPARE(answer["choices"][0]["stop_reason"].get<int>(), int('o'));
    QCOMPARE(answer["usage"]["completion_tokens"].get<int>(), 5);
    QVERIFY(parsed(server.post(kTextPath, textBody()))["choices"][0]["stop_reason"].is_null());
  }

  void echoesThePrompt() {
    FakeServer server;
    QCOMPARE(parsed(server.post(kTextPath, textBody({{"echo", true}})))["choices"][0]["text"].get<std::string>(),
             std::string("sayHello, world"));
    QCOMPARE(parsed(server.post(kTextPath,
                                textBody({{"prompt", {257, 104, 105}}, {"echo", true}, {"max_tokens", 1}})))["choices"][0]["text"]
                 .get<std::string>(),
             std::string("hiH"));
  }

  void scoresAPromptAlone() {
    FakeServer server;
    const Json answer = parsed(server.post(kTextPath, textBody({{"echo", true}, {"max_tokens", 0}, {"logprobs", 1}})));
    QCOMPARE(answer["choices"][0]["text"].get<std::string>(), std::string("say"));
    QCOMPARE(answer["choices"][0]["logprobs"]["token_logprobs"].dump(), std::string("[null,-2,-2,-2]"));
    QCOMPARE(answer["usage"]["completion_tokens"].get<int>(), 0);
  }

  void ordersChoicesByPrompt() {
    FakeServer server;
    const Json answer = parsed(
        server.post(kTextPath, textBody({{"prompt", {"a", "b"}}, {"n", 2}, {"seed", 1}, {"echo", true}, {"max_tokens", 2}})));
    std::vector<std::string> texts;
    for (size_t i = 0; i < answer["choices"].size(); ++i) {
      QCOMPARE(answer["choices"][i]["index"].get<size_t>(), i);
      texts.push_back(answer["choices"][i]["text"].get<std::string>());
    }
    QCOMPARE(texts, (std::vector<std::string>{"ael", "all", "bel", "bll"}));
    QCOMPARE(answer["usage"]["completion_tokens"].get<int>(), 8);
    QCOMPARE(answer["usage"]["prompt_tokens"].get<int>(), 4);
  }

  void keepsTheBestOf() {
    FakeServer server;
    const Json answer = parsed(server.post(kTextPath, textBody({{"best_of", 3}, {"n", 1}, {"max_tokens", 4}})));
    QCOMPARE(answer["choices"].size(), 1u);
    QCOMPARE(answer["choices"][0]["index"].get<int>(), 0);
    QVERIFY(answer["choices"][0]["logprobs"].is_null());
    QCOMPARE(answer["usage"]["completion_tokens"].get<int>(), 12);
  }

  void writesCompletionLogprobs() {
    FakeServer server;
    const Json logprobs =
        parsed(server.post(kTextPath, textBody({{"logprobs", 2}, {"max_tokens", 3}})))["choices"][0]["logprobs"];
    QCOMPARE(logprobs["tokens"].dump(), std::string(R"(["H","e","l"])"));
    QCOMPARE(logprobs["token_logprobs"].dump(), std::string("[-0.25,-0.5,-0.75]"));
    QCOMPARE(logprobs["text_offset"].dump(), std::string("[0,1,2]"));
    QCOMPARE(logprobs["top_logprobs"][0].dump(), std::string(R"({"H":-0.25,"I":-1.25})"));
    const Json own = parsed(server.post(kTextPath, textBody({{"logprobs", 0}, {"max_tokens", 1}})))["choices"][0]["logprobs"];
    QCOMPARE(own["top_logprobs"].dump(), std::string(R"([{"H":-0.25}])"));
  }

  void writesChatLogprobs() {
    FakeServer server;
    const Json content = parsed(server.post(
        kChatPath, chatBody({{"logprobs", true}, {"top_logprobs", 2}, {"max_tokens", 2}})))["choices"][0]["logprobs"]["content"];
    QCOMPARE(content.size(), 2u);
    QCOMPARE(
        content[0].dump(),
        std::string(
            R"({"token":"H","logprob":-0.25,"bytes":[72],"top_logprobs":[{"token":"H","logprob":-0.25,"bytes":[72]},{"token":"I","logprob":-1.25,"bytes":[73]}]})"));
    const Json plain =
        parsed(server.post(kChatPath, chatBody({{"logprobs", true}, {"max_tokens", 1}})))["choices"][0]["logprobs"]["content"];
    QVERIFY(plain[0]["top_logprobs"].empty());
  }

  void writesPromptLogprobs() {
    FakeServer server;
    const Json choice = parsed(server.post(kTextPath, textBody({{"prompt_logprobs", 2}, {"max_tokens", 1}})))["choices"][0];
    QCOMPARE(choice["prompt_logprobs"].size(), 4u);
    QVERIFY(choice["prompt_logprobs"][0].is_null());
    QCOMPARE(
        choice["prompt_logprobs"][1].dump(),
        std::string(
            R"({"115":{"logprob":-2,"rank":3,"decoded_token":"s"},"97":{"logprob":-0.5,"rank":1,"decoded_token":"a"},"98":{"logprob":-1,"rank":2,"decoded_token":"b"}})"));
    // The prompt's own token is not written twice.
    QCOMPARE(choice["prompt_logprobs"][2].size(), 2u);
  }

  void spellsPartsOfCharactersByTheirBytes() {
    FakeServer server("é");
    const Json logprobs = parsed(server.post(kTextPath, textBody({{"logprobs", 0}})))["choices"][0]["logprobs"];
    QCOMPARE(logprobs["tokens"].dump(), std::string(R"(["bytes:\\xc3","bytes:\\xa9","</s>"])"));
    QCOMPARE(logprobs["text_offset"].dump(), std::string("[0,1,1]"));
  }

  void endsInvalidTextWithAReplacement() {
    FakeServer server("ab\xe4\xbd");
    QCOMPARE(parsed(server.post(kTextPath, textBody()))["choices"][0]["text"].get<std::string>(), std::string("ab\xEF\xBF\xBD"));
  }

  void tokenizesAndBack() {
    FakeServer server;
    const Json tokens =
        parsed(server.post("/tokenize", {{"prompt", "hé"}, {"add_special_tokens", false}, {"return_token_strs", true}}));
    QCOMPARE(tokens["tokens"].dump(), std::string("[104,195,169]"));
    QCOMPARE(tokens["count"].get<int>(), 3);
    QCOMPARE(tokens["max_model_len"].get<int>(), 512);
    QCOMPARE(tokens["token_strs"][0].get<std::string>(), std::string("h"));
    QCOMPARE(parsed(server.post("/tokenize", {{"prompt", "h"}}))["tokens"].dump(), std::string("[257,104]"));
    QCOMPARE(parsed(server.post("/tokenize", {{"messages", chatBody()["messages"]}}))["count"].get<int>(), 21);
    QCOMPARE(parsed(server.post("/detokenize", {{"tokens", {104, 195, 169, 256}}}))["prompt"].get<std::string>(),
             std::string("hé</s>"));
    for (const char* body : {R"({"tokens": ["a"]})", R"({"tokens": [1000000000]})", R"({"tokens": 5})", "{}"}) {
      const RawResponse response = request(server.port, "POST", "/detokenize", body);
      QCOMPARE(response.status, 400);
      QCOMPARE(parsed(response)["error"]["param"].get<std::string>(), std::string("tokens"));
    }
  }

  void listsItsModel() {
    FakeServer server;
    const Json list = parsed(server.get("/v1/models"));
    QCOMPARE(list["data"][0]["id"].get<std::string>(), std::string("fake"));
    QCOMPARE(list["data"][0]["max_model_len"].get<int>(), 512);
    QCOMPARE(parsed(server.get("/v1/models/fake"))["id"].get<std::string>(), std::string("fake"));
    const RawResponse unknown = server.get("/v1/models/no-such%2Fmodel");
    QCOMPARE(unknown.status, 404);
    QVERIFY(parsed(unknown)["error"]["message"].get<std::string>().find("no-such/model") != std::string::npos);
  }

  void refusesByErrorObject_data() {
    QTest::addColumn<QByteArray>("method");
    QTest::addColumn<QByteArray>("path");
    QTest::addColumn<QByteArray>("body");
    QTest::addColumn<int>("status");
    const QByteArray chat = kChatPath, text = kTextPath;
    QTest::newRow("wrong method") << QByteArray("GET") << chat << QByteArray() << 405;
    QTest::newRow("wrong method of models") << QByteArray("POST") << QByteArray("/v1/models") << QByteArray("{}") << 405;
    QTest::newRow("unknown path") << QByteArray("GET") << QByteArray("/v1/no/such/path") << QByteArray() << 404;
    QTest::newRow("cut JSON") << QByteArray("POST") << chat << QByteArray("{\"messages\": [") << 400;
    QTest::newRow("empty") << QByteArray("POST") << text << QByteArray() << 400;
    QTest::newRow("unknown model") << QByteArray("POST") << text << QByteArray(R"({"model": "other", "prompt": "a"})") << 404;
    QTest::newRow("stream") << QByteArray("POST") << chat << QByteArray(R"({"messages": [], "stream": true})") << 400;
    QTest::newRow("too long") << QByteArray("POST") << text << QByteArray("{\"prompt\": \"" + QByteArray(600, 'a') + "\"}")
                              << 400;
    QTest::newRow("template raises") << QByteArray("POST") << chat
                                     << QByteArray(R"({"messages": [{"role": "user", "content": "raise"}]})") << 400;
  }
  void refusesByErrorObject() {
    QFETCH(QByteArray, method);
    QFETCH(QByteArray, path);
    QFETCH(QByteArray, body);
    QFETCH(int, status);
    FakeServer server;
    const RawResponse response = request(server.port, method.toStdString(), path.toStdString(), body.toStdString());
    QCOMPARE(response.status, status);
    QCOMPARE(response.header("access-control-allow-origin"), std::string("*"));
    const Json error = parsed(response)["error"];
    for (const char* key : {"message", "type", "param", "code"}) QVERIFY2(error.contains(key), key);
    QVERIFY(!error["message"].get<std::string>().empty());
    QCOMPARE(server.service.submitted(), 0u);
  }

  void tellsTheTemplatesMessage() {
    FakeServer server;
    const Json error =
        parsed(server.post(kChatPath, {{"messages", Json::array({{{"role", "user"}, {"content", "raise"}}})}}))["error"];
    QVERIFY(error["message"].get<std::string>().find("messages must alternate") != std::string::npos);
  }

  void saysWhyItHasNoTemplate() {
    FakeService service;
    ByteTokenizer tokenizer;
    ServerOptions options;
    options.port = 0;
    options.servedModelName = "fake";
    auto server = std::move(*Server::bind(options));
    server->serve(service, {&tokenizer, {}, nullptr, "this model has no chat template"});
    const RawResponse response = request(server->port(), "POST", kChatPath, chatBody().dump());
    QCOMPARE(response.status, 400);
    QVERIFY(response.body.find("this model has no chat template") != std::string::npos);
    QCOMPARE(request(server->port(), "POST", kTextPath, textBody().dump()).status, 200);
    server->stop(0);
  }

  void servesTokenIdsWithoutATokenizer() {
    FakeService service;
    ServerOptions options;
    options.port = 0;
    options.servedModelName = "fake";
    auto server = std::move(*Server::bind(options));
    server->serve(service, {nullptr, "this model has no tokenizer", nullptr, {}});
    const Json answer = parsed(request(server->port(), "POST", kTextPath,
                                       textBody({{"prompt", {1, 2}}, {"max_tokens", 2}, {"return_token_ids", true}}).dump()));
    QCOMPARE(answer["choices"][0]["token_ids"].dump(), std::string("[72,101]"));
    const RawResponse text = request(server->port(), "POST", kTextPath, textBody().dump());
    QCOMPARE(text.status, 400);
    QVERIFY(text.body.find("this model has no tokenizer") != std::string::npos);
    server->stop(0);
  }

  void asksForTheKey() {
    ServerOptions options;
    options.apiKey = "secret";
    FakeServer server("Hello", options);
    for (const char* header : {"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer secre\r\n",
                               "Authorization: Bearer secrets\r\n", "Authorization: secret\r\n"}) {
      QCOMPARE(server.get("/v1/models", header).status, 401);
      QCOMPARE(server.post(kChatPath, chatBody(), header).status, 401);
      QCOMPARE(server.post("/tokenize", {{"prompt", "a"}}, header).status, 401);
      QCOMPARE(server.get("/v1/unknown", header).status, 401);
    }
    QCOMPARE(server.get("/v1/models", "authorization: bearer secret\r\n").status, 200);
    QCOMPARE(server.post(kChatPath, chatBody(), "Authorization: Bearer secret\r\n").status, 200);
    QCOMPARE(server.get("/health").status, 200);
    QCOMPARE(request(server.port, "OPTIONS", kChatPath).status, 204);
  }

  void answersPreflights() {
    FakeServer server;
    const RawResponse response =
        request(server.port, "OPTIONS", kChatPath, {},
                "Origin: http://a\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-stainless-os\r\n");
    QCOMPARE(response.status, 204);
    QCOMPARE(response.header("access-control-allow-origin"), std::string("*"));
    QVERIFY(response.header("access-control-allow-methods").find("POST") != std::string::npos);
    QCOMPARE(response.header("access-control-allow-headers"), std::string("authorization, content-type, x-stainless-os"));
  }

  void waitsForTheEngine() {
    FakeServer server;
    server.service.setPhase(EnginePhase::Loading);
    QCOMPARE(server.get("/health").status, 503);
    QCOMPARE(server.post(kChatPath, chatBody()).status, 503);
    QCOMPARE(parsed(server.get("/engine/state"))["phase"].get<std::string>(), std::string("loading"));
    QCOMPARE(server.get("/metrics").status, 200);
    server.service.setPhase(EnginePhase::Failed, "rank 1: out of memory");
    const RawResponse failed = server.post(kChatPath, chatBody());
    QCOMPARE(failed.status, 503);
    QVERIFY(failed.body.find("rank 1: out of memory") != std::string::npos);
    server.service.setPhase(EnginePhase::Ready);
    QCOMPARE(server.get("/health").status, 200);
  }

  void tellsOfAnEngineThatFails() {
    FakeServer server("Hello, world", {}, 50ms);  // the stream has begun long before the failure, on slow machines too
    server.service.failAfter(3, "rank 2: device lost");
    const RawResponse whole = server.post(kTextPath, textBody());
    QCOMPARE(whole.status, 500);
    QCOMPARE(parsed(whole)["error"]["message"].get<std::string>(), std::string("rank 2: device lost"));
    const RawResponse stream = server.post(kTextPath, textBody({{"stream", true}}));
    QCOMPARE(stream.status, 200);
    QCOMPARE(eventsOf(stream.body).back()["error"]["message"].get<std::string>(), std::string("rank 2: device lost"));
    QVERIFY(stream.body.ends_with("data: [DONE]\n\n"));
    server.service.failAfter(0, "rank 2: device lost");
    QCOMPARE(server.post(kTextPath, textBody({{"stream", true}})).status, 500);
  }

  void cancelsForClientsThatLeave_data() {
    QTest::addColumn<bool>("stream");
    QTest::newRow("stream") << true;
    QTest::newRow("whole") << false;
  }
  void cancelsForClientsThatLeave() {
    QFETCH(bool, stream);
    FakeServer server("Hello, world", {}, 100ms);  // by themselves they would take most of a minute
    std::vector<RawClient> clients;
    for (int i = 0; i < 40; ++i) {
      clients.emplace_back(server.port);
      clients.back().send(requestText(
          "POST", kTextPath, textBody({{"stream", stream}, {"ignore_eos", true}, {"max_tokens", 500}, {"n", 2}}).dump()));
    }
    QVERIFY(eventually([&] { return server.service.submitted() == 80; }));
    if (stream) QVERIFY(clients[0].readUntilText("data: "));
    clients.clear();
    QVERIFY(eventually([&] { return server.service.active() == 0; }));
    QCOMPARE(server.service.cancelled(), 80u);
    QVERIFY(eventually([&] { return server.server->openConnections() == 0; }));
    QCOMPARE(server.post(kTextPath, textBody()).status, 200);
  }

  void slowReadersHoldUpNeitherEngineNorOthers() {
    FakeServer server("Hello, world", {}, 100us);
    std::vector<RawClient> slow;
    for (int i = 0; i < 20; ++i) {
      slow.emplace_back(server.port, 2048);
      slow.back().send(requestText(
          "POST", kTextPath,
          textBody({{"stream", true}, {"ignore_eos", true}, {"max_tokens", 500}, {"n", 8}, {"logprobs", 20}}).dump()));
    }
    QVERIFY(eventually([&] { return server.service.submitted() == 160; }));
    for (int i = 0; i < 10; ++i) QCOMPARE(server.post(kTextPath, textBody()).status, 200);
    // The engine ends them all though nobody reads.
    QVERIFY(eventually([&] { return server.service.active() == 0; }));
    const auto events = eventsOf(slow[0].readResponse().body);
    size_t tokens = 0;
    for (const Json& event : events)
      for (const Json& choice : event["choices"]) tokens += choice["logprobs"]["tokens"].size();
    QCOMPARE(tokens, size_t{8 * 500});
    QCOMPARE(finishReasons(events).size(), 8u);
  }

  void carriesTwoHundredStreamsOnTwoThreads() {
    FakeServer server("Hello, world");
    std::vector<RawClient> clients;
    for (int i = 0; i < 200; ++i) {
      clients.emplace_back(server.port);
      clients.back().send(
          requestText("POST", kChatPath, chatBody({{"stream", true}, {"ignore_eos", true}, {"max_tokens", 48}}).dump()));
    }
    for (RawClient& client : clients) {
      const RawResponse response = client.readResponse();
      QCOMPARE(joined(eventsOf(response.body)), std::string("Hello, worldHello, worldHello, worldHello, world"));
    }
  }

  void finishesRunningRequestsWhenItStops() {
    FakeServer server("Hello, world", {}, 10ms);
    RawClient client(server.port);
    client.send(requestText("POST", kTextPath, textBody({{"stream", true}}).dump()));
    QVERIFY(client.readUntilText("data: "));
    std::thread stop([&] { server.server->stop(5); });
    const RawResponse response = client.readResponse();
    QCOMPARE(joined(eventsOf(response.body)), std::string("Hello, world"));
    client.closeNow();
    stop.join();
  }

  void readsOnePartAfterTheOther() {
    // A long prompt on a worker does not keep other requests from their answers; both are right.
    FakeServer server;
    Json body = textBody({{"prompt", std::string(8 << 20, 'a')}});
    RawClient large(server.port);
    large.send(requestText("POST", kTextPath, body.dump()));
    QCOMPARE(server.post(kTextPath, textBody()).status, 200);
    const RawResponse refused = large.readResponse();
    QCOMPARE(refused.status, 400);
    QVERIFY(refused.body.find("8388609 tokens") != std::string::npos);
  }

  // ---- reasoning, limits

  void partsReasoningFromAnAnswer() {
    FakeServer server("<think>\nTwo and two.\n</think>\n\nFour.", {}, std::chrono::microseconds(50), "... </think> ...");
    const Json whole = parsed(server.post(kChatPath, chatBody()));
    QVERIFY(whole["choices"][0]["message"]["reasoning_content"] == "Two and two.");
    QVERIFY(whole["choices"][0]["message"]["content"] == "Four.");
    std::string reasoning, content;
    for (const Json& event : eventsOf(server.post(kChatPath, chatBody({{"stream", true}})).body))
      for (const Json& choice : event["choices"]) {
        reasoning += choice["delta"].value("reasoning_content", "");
        content += choice["delta"].value("content", "");
      }
    QVERIFY(reasoning == "Two and two.");
    QVERIFY(content == "Four.");
    const Json without = parsed(server.post(kChatPath, chatBody({{"include_reasoning", false}})));
    QVERIFY(!without["choices"][0]["message"].contains("reasoning_content"));
    QVERIFY(without["choices"][0]["message"]["content"] == "Four.");
    // Completions are text as it is.
    QVERIFY(textOf(parsed(server.post(kTextPath, textBody({{"max_tokens", 8}})))["choices"][0]) == "<think>\n");
  }

  void keepsToItsLimitOfRequests() {
    ServerOptions options;
    options.maxRequests = 2;
    FakeServer server("Hello", std::move(options), std::chrono::milliseconds(5));
    const std::string body = textBody({{"max_tokens", 400}, {"ignore_eos", true}}).dump();
    RawClient first(server.port), second(server.port);
    for (RawClient* client : {&first, &second})
      client->send(fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", kTextPath, body.size(), body));
    QVERIFY(eventually([&] { return server.service.active() == 2; }));
    const RawResponse refused = server.post(kTextPath, textBody());
    QCOMPARE(refused.status, 429);
    QVERIFY(refused.header("retry-after") == "1");
    QVERIFY(parsed(refused)["error"]["code"] == "too_many_requests");
    QCOMPARE(server.get("/v1/models").status, 200);
    first.closeNow();
    QVERIFY(eventually([&] { return server.post(kTextPath, textBody({{"max_tokens", 1}})).status == 200; }));
  }

  void endsAnswersThatTakeTooLong() {
    ServerOptions options;
    options.requestTimeout = 0.1;
    FakeServer server("Hello", std::move(options), std::chrono::milliseconds(5));
    const Json more{{"max_tokens", 400}, {"ignore_eos", true}};
    const RawResponse late = server.post(kTextPath, textBody(more));
    QCOMPARE(late.status, 504);
    QVERIFY(parsed(late)["error"]["code"] == "timeout");
    Json streamed = more;
    streamed["stream"] = true;
    const auto events = eventsOf(server.post(kTextPath, textBody(streamed)).body);
    QVERIFY(events.size() > 1);
    QVERIFY(events.back()["error"]["code"] == "timeout");
    QVERIFY(eventually([&] { return server.service.active() == 0; }));
    QCOMPARE(server.post(kTextPath, textBody({{"max_tokens", 2}})).status, 200);
  }

  void saysWhatItDoesNotOffer() {
    FakeServer server;
    const RawResponse files = server.get("/v1/files");
    QCOMPARE(files.status, 404);
    QVERIFY(parsed(files)["error"]["message"].get<std::string>().find("keeps no files") != std::string::npos);
    QVERIFY(parsed(files)["error"]["code"] == "not_offered");
  }
};

QTEST_APPLESS_MAIN(OpenAiRoutesTest)
#include "openai_routes_test.moc"
