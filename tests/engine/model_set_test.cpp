// SPDX-License-Identifier: Apache-2.0
// Several models behind one port: requests go by name, models come and go while others serve.
#include "tests/engine/fake_engine.h"

#include <QtTest>

#include <fmt/format.h>

using namespace headroom;
using namespace headroom::test;
using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;

namespace {

// A scripted model that a set may own.
struct Script {
  Script(std::string reply, std::chrono::microseconds tick) : service(std::move(reply), tick) {}
  ByteTokenizer tokenizer;
  LineTemplate chatTemplate;
  FakeService service;
  std::atomic<int> closed{0};
};

LoadedModel modelOf(const std::shared_ptr<Script>& script, const std::string& name) {
  ModelText text;
  text.tokenizer = &script->tokenizer;
  text.chatTemplate = &script->chatTemplate;
  auto served = std::make_shared<ServedModel>(name, script->service, std::move(text));
  return {std::shared_ptr<ServedModel>(served.get(), [served, script](ServedModel*) {}), [script] {
            script->service.close();
            ++script->closed;
          }};
}

// A server of the models "a" and "b".
struct TwoModels {
  explicit TwoModels(bool manages = false, ServerOptions options = {}) {
    options.port = 0;
    server = std::move(*Server::bind(std::move(options)));
    server->models().add(modelOf(a, "a"));
    server->models().add(modelOf(b, "b"));
    if (manages)
      server->models().allowLoading([this](const Json& request) -> ApiResult<LoadedModel> {
        if (request.value("model", "") == "too large")
          return tl::unexpected(
              ApiError{400, "rank 0: found a budget of 1 GiB, expected 2 GiB.", "model", "invalid_request_error", {}});
        loaded.push_back(std::make_shared<Script>("From " + request.value("name", ""), 200us));
        return modelOf(loaded.back(), request.value("name", ""));
      });
    server->serve();
  }
  ~TwoModels() { server->stop(0); }
  RawResponse ask(const std::string& method, const std::string& path, const Json& body = nullptr) const {
    return request(server->port(), method, path, body.is_null() ? std::string() : body.dump());
  }
  std::string textFrom(const Json& model) const {
    Json body{{"prompt", "x"}, {"max_tokens", 50}};
    if (!model.is_null()) body["model"] = model;
    const Json answer = parsed(ask("POST", "/v1/completions", body));
    return answer.contains("choices") ? answer["choices"][0]["text"].get<std::string>()
                                      : answer["error"]["message"].get<std::string>();
  }

  std::shared_ptr<Script> a = std::make_shared<Script>("From a", 200us), b = std::make_shared<Script>("From b", 200us);
  std::vector<std::shared_ptr<Script>> loaded;
  std::unique_ptr<Server> server;
};

}  // namespace

class ModelSetTest : public QObject {
  Q_OBJECT

 private slots:
  void requestsGoByName() {
    TwoModels models;
    QCOMPARE(models.textFrom("a"), std::string("From a"));
    QCOMPARE(models.textFrom("b"), std::string("From b"));
    QCOMPARE(models.textFrom(nullptr), std::string("From a"));
    QCOMPARE(models.textFrom("c"), std::string("The model \"c\" does not exist; this server has \"a\", \"b\"."));
    const Json list = parsed(models.ask("GET", "/v1/models"));
    QCOMPARE(list["data"].size(), 2u);
    QVERIFY(list["data"][1]["id"] == "b");
    QVERIFY(parsed(models.ask("GET", "/v1/models/b"))["id"] == "b");
    QCOMPARE(models.ask("GET", "/v1/models/c").status, 404);
    for (const char* path : {"/v1/chat/completions", "/v1/responses"}) {
      const Json body{{"model", "b"}, {"input", "x"}, {"messages", Json::array({{{"role", "user"}, {"content", "x"}}})}};
      Json own = body;
      own.erase(std::string(path) == "/v1/responses" ? "messages" : "input");
      QVERIFY(parsed(models.ask("POST", path, own)).dump().find("From b") != std::string::npos);
    }
    QCOMPARE(models.ask("POST", "/tokenize", {{"model", "b"}, {"prompt", "x"}}).status, 200);
  }

  void stateAndMetricsAreOfEachModel() {
    TwoModels models;
    const Json state = parsed(models.ask("GET", "/engine/state"));
    QCOMPARE(state["models"].size(), 2u);
    QVERIFY(state["models"][0]["name"] == "a" && state["models"][1]["name"] == "b" && state["models"][1]["phase"] == "ready");
    models.b->service.setPhase(EnginePhase::Failed, "rank 0 died");
    QVERIFY(parsed(models.ask("GET", "/engine/state"))["phase"] == "ready");
    QVERIFY(parsed(models.ask("GET", "/engine/state?model=b"))["phase"] == "failed");
    QCOMPARE(models.ask("GET", "/engine/state?model=c").status, 404);
    // The others go on.
    QCOMPARE(models.ask("GET", "/health").status, 200);
    QCOMPARE(models.textFrom("a"), std::string("From a"));
    QCOMPARE(models.ask("POST", "/v1/completions", {{"model", "b"}, {"prompt", "x"}}).status, 503);
    QCOMPARE(parsed(models.ask("GET", "/v1/models"))["data"].size(), 1u);
    const std::string metrics = models.ask("GET", "/metrics").body;
    const std::string family = "# TYPE headroom:num_requests_running gauge\n";
    const size_t at = metrics.find(family);
    QVERIFY(at != std::string::npos && metrics.find(family, at + 1) == std::string::npos);
    QCOMPARE(
        metrics.substr(at + family.size(), 150).substr(0, 103),
        std::string(
            "headroom:num_requests_running{model_name=\"a\"} 0\nheadroom:num_requests_running{model_name=\"b\"} 0\n# HELP "));
  }

  void modelsStayUnlessTheServerMayManageThem() {
    TwoModels models;
    for (const auto& [method, path] : {std::pair{"POST", "/engine/models"}, std::pair{"DELETE", "/engine/models/b"}}) {
      const RawResponse refused = models.ask(method, path, {{"model", "x"}});
      QCOMPARE(refused.status, 403);
      QVERIFY(parsed(refused)["error"]["message"].get<std::string>().find("--manage-models") != std::string::npos);
    }
    QCOMPARE(parsed(models.ask("GET", "/engine/models"))["data"].size(), 2u);
    ServerOptions options;
    options.apiKey = "secret";
    TwoModels guarded(true, std::move(options));
    QCOMPARE(guarded.ask("POST", "/engine/models", {{"model", "x"}, {"name", "c"}}).status, 401);
    QCOMPARE(guarded.ask("DELETE", "/engine/models/a").status, 401);
  }

  void loadsAndUnloads() {
    TwoModels models(true);
    const RawResponse loaded = models.ask("POST", "/engine/models", {{"model", "/models/c"}, {"name", "c"}});
    QCOMPARE(loaded.status, 202);
    QVERIFY(parsed(loaded)["name"] == "c");
    QCOMPARE(models.textFrom("c"), std::string("From c"));
    const RawResponse again = models.ask("POST", "/engine/models", {{"model", "/models/c"}, {"name", "c"}});
    QCOMPARE(again.status, 409);
    QCOMPARE(models.loaded[1]->closed.load(), 1);  // what was started for nothing is ended
    const RawResponse large = models.ask("POST", "/engine/models", {{"model", "too large"}, {"name", "d"}});
    QCOMPARE(large.status, 400);
    QVERIFY(parsed(large)["error"]["message"].get<std::string>().find("2 GiB") != std::string::npos);
    QCOMPARE(models.ask("DELETE", "/engine/models/c").status, 202);
    QVERIFY(eventually([&] { return models.ask("GET", "/engine/models/c").status == 404; }));
    QCOMPARE(models.loaded[0]->closed.load(), 1);
    QCOMPARE(models.ask("DELETE", "/engine/models/c").status, 404);
    QCOMPARE(models.ask("DELETE", "/engine/models/a?timeout=soon").status, 400);
    // Without the first one, requests without a name mean the next.
    QCOMPARE(models.ask("DELETE", "/engine/models/a").status, 202);
    QVERIFY(eventually([&] { return models.a->closed == 1; }));
    QCOMPARE(models.textFrom(nullptr), std::string("From b"));
    QCOMPARE(models.ask("DELETE", "/engine/models/b").status, 202);
    QVERIFY(eventually([&] { return models.b->closed == 1; }));
    QCOMPARE(models.ask("GET", "/health").status, 503);
    QCOMPARE(models.ask("GET", "/engine/state").status, 200);
    QCOMPARE(models.ask("POST", "/v1/completions", {{"prompt", "x"}}).status, 503);
    QCOMPARE(models.ask("POST", "/engine/models", {{"model", "/models/e"}, {"name", "e"}}).status, 202);
    QCOMPARE(models.textFrom(nullptr), std::string("From e"));
  }

  void aLeavingModelFinishesWhatRuns() {
    TwoModels models(true);
    const auto steady = std::make_shared<Script>("From c", 5ms);
    models.server->models().add(modelOf(steady, "c"));
    const std::string body = Json{{"model", "c"}, {"prompt", "x"}, {"max_tokens", 400}, {"ignore_eos", true}}.dump();
    RawClient client(models.server->port());
    client.send(fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
    QVERIFY(eventually([&] { return steady->service.active() == 1; }));
    QCOMPARE(models.ask("DELETE", "/engine/models/c?timeout=60").status, 202);
    QVERIFY(parsed(models.ask("GET", "/engine/models/c"))["phase"] == "draining");
    const RawResponse late = models.ask("POST", "/v1/completions", {{"model", "c"}, {"prompt", "x"}});
    QCOMPARE(late.status, 503);
    QVERIFY(parsed(late)["error"]["message"] == "The model \"c\" is being unloaded and takes no new requests.");
    QVERIFY(parsed(models.ask("GET", "/engine/state?model=c"))["phase"] == "draining");
    QVERIFY(eventually([&] { return steady->closed == 1; }));
    QCOMPARE(steady->service.active(), size_t{0});
    QCOMPARE(steady->service.cancelled(), size_t{0});
  }

  // The server goes on, so it is not what stops.
  void theLastModelThatLeavesSaysSo() {
    TwoModels models(true);
    const auto slow = std::make_shared<Script>("From slow", 20ms);
    for (const auto& [name, script] : {std::pair{"a", models.a}, std::pair{"b", models.b}}) {
      QCOMPARE(models.ask("DELETE", std::string("/engine/models/") + name).status, 202);
      QVERIFY(eventually([&] { return script->closed == 1; }));
    }
    models.server->models().add(modelOf(slow, "slow"));
    const std::string body = Json{{"prompt", "x"}, {"max_tokens", 500}, {"ignore_eos", true}}.dump();
    RawClient client(models.server->port());
    client.send(fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
    QVERIFY(eventually([&] { return slow->service.active() == 1; }));
    QCOMPARE(models.ask("DELETE", "/engine/models/slow?timeout=60").status, 202);
    const std::string why = "The model \"slow\" is being unloaded and takes no new requests.";
    for (const RawResponse& late : {models.ask("POST", "/v1/completions", {{"model", "slow"}, {"prompt", "x"}}),
                                    models.ask("POST", "/v1/completions", {{"prompt", "x"}}), models.ask("GET", "/health"),
                                    models.ask("GET", "/v1/models"), models.ask("GET", "/v1/models/slow")}) {
      QCOMPARE(late.status, 503);
      QCOMPARE(parsed(late)["error"]["message"].get<std::string>(), why);
      QCOMPARE(parsed(late)["error"]["code"].get<std::string>(), std::string("model_unloading"));
    }
    client.closeNow();
    QVERIFY(eventually([&] { return slow->closed == 1; }));
    QVERIFY(eventually([&] { return parsed(models.ask("GET", "/health"))["error"]["code"] == "no_model"; }));
  }

  // Between the look at its phase and its turn an engine may end: that is no fault of the server's, and no answer.
  void anEngineThatEndsBeforeTheAnswerIsNoAnswer() {
    TwoModels models;
    models.b->service.close();
    for (const bool stream : {false, true})
      for (const auto& [path, name] : {std::pair{"/v1/completions", "prompt"}, std::pair{"/v1/responses", "input"}}) {
        const RawResponse refused = models.ask("POST", path, {{"model", "b"}, {name, "x"}, {"stream", stream}});
        QCOMPARE(refused.status, 503);
        QCOMPARE(parsed(refused)["error"]["code"].get<std::string>(), std::string("engine_stopping"));
      }
  }

  // What a device holds is of all models, in each one's state.
  void usedMemoryIsOfAllModels() {
    TwoModels models;
    auto rank = [](int number, std::string device, std::optional<int64_t> used) {
      RankState state;
      state.rank = number;
      state.device = std::move(device);
      state.deviceUsedBytes = used;
      return state;
    };
    models.a->service.setRanks({rank(0, "cuda:0", 700), rank(1, "cuda:1", 20), rank(2, "cuda:0", 700)});
    models.b->service.setRanks({rank(0, "cuda:0", 50), rank(1, "cuda:2", std::nullopt)});
    const auto usedIn = [](const Json& state) {
      Json used = Json::array();
      for (const Json& each : state["ranks"]) used.push_back(each["device_memory"]["used_bytes"]);
      return used;
    };
    QCOMPARE(usedIn(parsed(models.ask("GET", "/engine/state"))), Json({750, 20, 750}));
    QCOMPARE(usedIn(parsed(models.ask("GET", "/engine/state?model=b"))), Json({750, nullptr}));
    RawClient client(models.server->port());
    client.send("GET /engine/events HTTP/1.1\r\nHost: x\r\n\r\n");
    QVERIFY(client.readUntilText("event: metrics"));
    QVERIFY(client.readUntilText("\"device_used_bytes\":[750,20,750]"));
  }

  void aLeavingModelIsEndedAtItsLimit() {
    TwoModels models(true);
    const auto slow = std::make_shared<Script>("From slow", 20ms);
    models.server->models().add(modelOf(slow, "slow"));
    const std::string body = Json{{"model", "slow"}, {"prompt", "x"}, {"max_tokens", 400}, {"ignore_eos", true}}.dump();
    RawClient client(models.server->port());
    client.send(fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
    QVERIFY(eventually([&] { return slow->service.steps() > 0; }));  // something was made
    QCOMPARE(models.ask("DELETE", "/engine/models/slow?timeout=0").status, 202);
    QVERIFY(eventually([&] { return slow->closed == 1; }));
    QCOMPARE(slow->service.active(), size_t{0});
    // What was made until then is answered.
    const Json answer = parsed(client.readResponse());
    QCOMPARE(answer["choices"][0]["finish_reason"], Json("abort"));
    QVERIFY(std::string("From slow").starts_with(answer["choices"][0]["text"].get<std::string>()));
  }
};

QTEST_APPLESS_MAIN(ModelSetTest)
#include "model_set_test.moc"
