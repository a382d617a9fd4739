// SPDX-License-Identifier: Apache-2.0
// Vectors of texts: what Transformers computes, in every layout, whole and in chunks, alone and together; and the route.
#include "core/model/held_weights.h"
#include "engine/sample/pooler.h"
#include "engine/server/embedding_generation.h"
#include "tests/engine/fake_engine.h"

#include <QtTest>

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <future>

using namespace headroom;
using namespace headroom::test;
using Json = nlohmann::ordered_json;

namespace {

constexpr double kTolerance = 1e-3;  // as for logits
const std::string kModel = HEADROOM_TEST_DATA "/models/embedding";

struct Case {
  std::vector<int32_t> prompt;
  std::map<std::string, std::vector<double>> vectors;  // by pooling
};

std::vector<Case> readCases() {
  std::ifstream file(kModel + "/expected.json");
  const nlohmann::json expected = nlohmann::json::parse(file);
  std::vector<Case> cases;
  for (const auto& entry : expected.at("cases"))
    cases.push_back(
        {entry.at("prompt").get<std::vector<int32_t>>(), entry.at("vectors").get<std::map<std::string, std::vector<double>>>()});
  return cases;
}

std::string differenceOf(const std::vector<float>& found, const std::vector<double>& expected) {
  if (found.size() != expected.size()) return fmt::format("{} numbers, expected {}", found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    if (!(std::abs(found[i] - expected[i]) < kTolerance)) return fmt::format("[{}]: {}, expected {}", i, found[i], expected[i]);
  return {};
}

Result<std::unique_ptr<Engine>> startEngine(int tp, int pp, int64_t tokensOfStep, int64_t memoryKiB = 8 << 10) {
  auto model = openModel(kModel);
  if (!model) return tl::unexpected(model.error());
  auto layout = makeHeadroomLayout(*model, tp, pp, 1);
  if (!layout) return tl::unexpected(layout.error());
  EngineLimits limits;
  limits.maxModelLen = 96;
  limits.maxNumSeqs = 4;
  limits.maxNumBatchedTokens = tokensOfStep;
  EngineSettings settings;
  settings.modelName = "embedding";
  return Engine::start(heldByEngine(std::move(*model)), std::move(*layout), hostMachine({tp * pp, Bytes(memoryKiB << 10)}),
                       limits, 1.0, settings, [] {});
}

bool waitReady(Engine& engine) {
  return eventually([&] { return engine.state().phase == EnginePhase::Ready; }, 60'000);
}

std::future<GenerationUpdate> ask(Engine& engine, const std::vector<int32_t>& prompt, std::optional<Pooling> pooling) {
  auto promise = std::make_shared<std::promise<GenerationUpdate>>();
  GenerationRequest request;
  request.prompt = prompt;
  request.sampling.maxTokens = pooling ? 0 : 3;
  request.pooling = pooling;
  engine.submit(std::move(request), [promise](GenerationUpdate&& update) {
    if (update.finish) promise->set_value(std::move(update));
  });
  return promise->get_future();
}

}  // namespace

class EmbeddingsTest : public QObject {
  Q_OBJECT

 private slots:
  void areThoseOfTransformers_data() {
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    QTest::addColumn<int>("tokensOfStep");
    for (const auto& [tp, pp] :
         {std::pair{1, 1}, std::pair{2, 1}, std::pair{3, 1}, std::pair{5, 1}, std::pair{1, 3}, std::pair{2, 2}})
      for (const int tokens : {256, 16}) QTest::addRow("TP%d PP%d, %d tokens a step", tp, pp, tokens) << tp << pp << tokens;
  }
  void areThoseOfTransformers() {
    QFETCH(int, tp);
    QFETCH(int, pp);
    QFETCH(int, tokensOfStep);
    const auto engine = startEngine(tp, pp, tokensOfStep);
    QVERIFY2(engine.has_value(), engine ? "" : engine.error().message().c_str());
    QVERIFY2(waitReady(**engine), (*engine)->state().error.c_str());
    const std::vector<Case> cases = readCases();
    QVERIFY(cases.size() >= 4);
    // All poolings of all prompts at once, beside requests that generate.
    std::vector<std::tuple<std::string, const Case*, std::future<GenerationUpdate>>> asked;
    std::vector<std::future<GenerationUpdate>> generating;
    for (const Case& one : cases) {
      generating.push_back(ask(**engine, one.prompt, {}));
      for (const auto& [name, vector] : one.vectors)
        asked.emplace_back(name, &one, ask(**engine, one.prompt, parsePooling(name)));
    }
    for (auto& [name, one, future] : asked) {
      const GenerationUpdate update = future.get();
      QVERIFY2(update.finish == FinishReason::Stop, update.error.c_str());
      QVERIFY(update.tokens.empty());
      const std::string difference = differenceOf(update.embedding, one->vectors.at(name));
      QVERIFY2(difference.empty(), fmt::format("{} of {} tokens: {}", name, one->prompt.size(), difference).c_str());
    }
    for (auto& future : generating) QVERIFY(future.get().embedding.empty());
    QVERIFY(eventually([&] { return (*engine)->state().kvBlocksFree == (*engine)->state().kvBlocksTotal; }));
  }

  void useThePrefixCacheWhereOneStateIsEnough() {
    const auto engine = startEngine(1, 1, 256);
    QVERIFY(engine && waitReady(**engine));
    const std::vector<Case> cases = readCases();
    const Case& longest = cases.back();
    for (int round = 0; round < 2; ++round)
      for (const auto& [name, vector] : longest.vectors) {
        const GenerationUpdate update = ask(**engine, longest.prompt, parsePooling(name)).get();
        QVERIFY2(differenceOf(update.embedding, vector).empty(), name.c_str());
        if (round == 1) QCOMPARE(update.cachedPromptTokens > 0, name == "last");
      }
  }

  void poolsStatesAsTheyCome() {
    const std::vector<std::vector<float>> states{{1, -2}, {3, 5}, {-4, 0}};
    auto pooled = [&](Pooling pooling) {
      Pooler pooler(pooling, 3);
      if (Pooler::needsAll(pooling)) {  // twice: the engine may begin anew
        pooler.add(0, states[2]);
        pooler.add(1, states[1]);
        for (int64_t i = 0; i < 2; ++i) pooler.add(i, states[static_cast<size_t>(i)]);
      }
      if (pooler.isWhole()) return std::vector<float>();
      pooler.add(2, states[2]);
      return pooler.isWhole() ? pooler.take() : std::vector<float>();
    };
    QVERIFY(pooled(Pooling::Last) == (std::vector<float>{-4, 0}));
    QVERIFY(pooled(Pooling::First) == (std::vector<float>{1, -2}));
    QVERIFY(pooled(Pooling::Mean) == (std::vector<float>{0, 1}));
    QVERIFY(pooled(Pooling::Max) == (std::vector<float>{3, 5}));
    QVERIFY(pooled(Pooling::MeanSqrtLength) == (std::vector<float>{0, static_cast<float>(3 / std::sqrt(3.0))}));
    QVERIFY(pooled(Pooling::WeightedMean) == (std::vector<float>{-5.0f / 6, 8.0f / 6}));
    std::vector<float> vector{3, 4}, zero{0, 0};
    normalize(vector);
    normalize(zero);
    QVERIFY(vector == (std::vector<float>{0.6f, 0.8f}) && zero == (std::vector<float>{0, 0}));
  }

  // ---- the route

  void answersAsOpenAiDoes() {
    FakeServer server("x", {}, std::chrono::microseconds(200), "lines", EmbeddingConfig{Pooling::Last, false});
    const RawResponse response = server.post("/v1/embeddings", {{"model", "fake"}, {"input", Json::array({"ab", "c"})}});
    QCOMPARE(response.status, 200);
    const Json answer = parsed(response);
    QVERIFY(answer["object"] == "list" && answer["model"] == "fake");
    // A begin token is put before each text.
    QCOMPARE(
        answer["data"].dump(),
        std::string(
            R"([{"object":"embedding","index":0,"embedding":[3,98,3,4]},{"object":"embedding","index":1,"embedding":[2,99,3,4]}])"));
    QCOMPARE(answer["usage"].dump(),
             std::string(R"({"prompt_tokens":5,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":0}})"));
    QVERIFY(server.service.submittedAt(0).pooling == Pooling::Last);
    const Json ids = parsed(server.post("/v1/embeddings", {{"input", {7, 9}}}));
    QCOMPARE(ids["data"][0]["embedding"].dump(), std::string("[2,9,3,4]"));
    const Json text = parsed(server.post("/v1/embeddings", {{"input", "ab"}, {"add_special_tokens", false}}));
    QCOMPARE(text["data"][0]["embedding"].dump(), std::string("[2,98,3,4]"));
    const Json encoded = parsed(server.post("/v1/embeddings", {{"input", {7, 9}}, {"encoding_format", "base64"}}));
    // 2, 9, 3 and 4 as little-endian float32.
    QCOMPARE(QByteArray::fromBase64(QByteArray::fromStdString(encoded["data"][0]["embedding"].get<std::string>())),
             QByteArray::fromHex("00000040"
                                 "00001041"
                                 "00004040"
                                 "00008040"));
  }

  // An engine that is unloaded in the middle leaves some vectors out: that is no answer.
  void someOfTheVectorsAreNone() {
    FakeServer server("x", {}, std::chrono::microseconds(200), "lines", EmbeddingConfig{Pooling::Last, false});
    server.service.endAfterVectors(1);
    const RawResponse response = server.post("/v1/embeddings", {{"input", {"a", "b", "c"}}});
    QCOMPARE(response.status, 503);
    QVERIFY2(parsed(response)["error"]["code"] == "engine_stopping", response.body.c_str());
  }

  void normalizesAndCuts() {
    FakeServer server("x", {}, std::chrono::microseconds(200), "lines", EmbeddingConfig{Pooling::Mean, true});
    auto vectorOf = [&](const Json& more) {
      Json body{{"input", {4, 3}}};
      body.update(more);
      return parsed(server.post("/v1/embeddings", body))["data"][0]["embedding"].get<std::vector<double>>();
    };
    const auto whole = vectorOf(Json::object());  // of 2, 3, 3, 4
    QVERIFY(std::abs(whole[3] - 4 / std::sqrt(38.0)) < 1e-6);
    const auto cut = vectorOf({{"dimensions", 2}});
    QCOMPARE(cut.size(), 2u);
    QVERIFY(std::abs(cut[0] - 2 / std::sqrt(13.0)) < 1e-6 && std::abs(cut[1] - 3 / std::sqrt(13.0)) < 1e-6);
    QVERIFY(vectorOf({{"normalize", false}}) == (std::vector<double>{2, 3, 3, 4}));
  }

  void refusesByName_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::addColumn<QByteArray>("param");
    for (const auto& [body, param] :
         {std::pair{R"({})", "input"}, std::pair{R"({"input": []})", "input"}, std::pair{R"({"input": [1, 999]})", "input"},
          std::pair{R"({"input": "a", "dimensions": 5})", "dimensions"},
          std::pair{R"({"input": "a", "dimensions": 0})", "dimensions"},
          std::pair{R"({"input": "a", "encoding_format": "int8"})", "encoding_format"},
          std::pair{R"({"input": "a", "model": "other"})", "model"}})
      QTest::newRow(body) << QByteArray(body) << QByteArray(param);
  }
  void refusesByName() {
    QFETCH(QByteArray, body);
    QFETCH(QByteArray, param);
    FakeServer server("x", {}, std::chrono::microseconds(200), "lines", EmbeddingConfig{Pooling::Last, false});
    const RawResponse response = server.post("/v1/embeddings", Json::parse(body.toStdString()));
    QVERIFY(response.status == 400 || response.status == 404);
    QVERIFY2(parsed(response)["error"]["param"] == param.toStdString(), response.body.c_str());
    const std::string full(512, 'x'), beyond(513, 'x');  // the context's length, without the begin token
    QCOMPARE(server.post("/v1/embeddings", {{"input", full}, {"add_special_tokens", false}}).status, 200);
    const RawResponse tooLong = server.post("/v1/embeddings", {{"input", beyond}, {"add_special_tokens", false}});
    QCOMPARE(tooLong.status, 400);
    QVERIFY(parsed(tooLong)["error"]["code"] == "context_length_exceeded");
  }

  void aModelWithoutPoolingSaysSo() {
    FakeServer server;
    const RawResponse response = server.post("/v1/embeddings", {{"input", "a"}});
    QCOMPARE(response.status, 400);
    QVERIFY(parsed(response)["error"]["code"] == "no_embeddings");
  }

  void writesBase64() {
    for (const auto& [bytes, text] : {std::pair{"", ""}, std::pair{"f", "Zg=="}, std::pair{"fo", "Zm8="},
                                      std::pair{"foo", "Zm9v"}, std::pair{"foobar", "Zm9vYmFy"}})
      QCOMPARE(base64(bytes), std::string(text));  // RFC 4648, section 10
  }
};

QTEST_APPLESS_MAIN(EmbeddingsTest)
#include "embeddings_test.moc"
