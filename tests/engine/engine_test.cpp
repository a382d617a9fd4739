// SPDX-License-Identifier: Apache-2.0
// The engine on tiny reference models: the greedy tokens of Transformers come out of every layout, alone, together, in chunks,
// after preemption, with and without the prefix cache; clients that leave and ranks that die end as they should.
#include "engine/engine.h"
#include "engine/sample/token_constraint.h"

#include <QtTest>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <numeric>

using namespace headroom;
using namespace headroom::engine;

namespace {

constexpr std::chrono::seconds kPatience{60};

struct Case {
  std::vector<int32_t> prompt, greedy;
};

std::vector<Case> casesOf(const std::string& model) {
  std::ifstream file(std::string(HEADROOM_TEST_DATA "/models/") + model + "/expected.json");
  std::vector<Case> cases;
  const nlohmann::json expected = nlohmann::json::parse(file);
  for (const auto& entry : expected.at("cases")) {
    cases.push_back({entry.at("prompt").get<std::vector<int32_t>>(), entry.at("greedy").get<std::vector<int32_t>>()});
  }
  return cases;
}

// Collects a request's updates from the engine's threads.
class Answer {
 public:
  UpdateSink sink() {
    return [this](GenerationUpdate&& update) {
      std::lock_guard lock(m_mutex);
      for (const TokenOutput& output : update.tokens) {
        tokens.push_back(output.token);
        if (output.logprob) logprobs.push_back(output.logprob->logprob);
      }
      if (!update.promptLogprobs.empty()) promptLogprobs = update.promptLogprobs;
      cached = std::max(cached, update.cachedPromptTokens);
      if (update.finish) {
        finish = update.finish;
        error = update.error;
      }
      ++updates;
      m_changed.notify_all();
    };
  }
  bool waitFinished() {
    std::unique_lock lock(m_mutex);
    return m_changed.wait_for(lock, kPatience, [&] { return finish.has_value(); });
  }
  bool waitUpdates(int count) {
    std::unique_lock lock(m_mutex);
    return m_changed.wait_for(lock, kPatience, [&] { return updates >= count; });
  }
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::vector<TokenLogprob>> promptLogprobs;
  std::optional<FinishReason> finish;
  std::string error;
  int64_t cached = 0;
  int updates = 0;

 private:
  std::mutex m_mutex;
  std::condition_variable m_changed;
};

struct Setup {
  std::string model = "llama";
  int tp = 1, pp = 1, dp = 1;
  int64_t maxNumSeqs = 8, maxNumBatchedTokens = 64, maxModelLen = 96;
  bool prefixCaching = true;
  int64_t cachedStates = 0;
  int64_t draftTokens = 0;
  int64_t memoryKiB = 8 << 10;
  std::vector<int> devices = {};  // of each rank; empty: one each
};

Result<std::unique_ptr<Engine>> startEngine(const Setup& setup) {
  auto model = openModel(HEADROOM_TEST_DATA "/models/" + setup.model);
  if (!model) return tl::unexpected(model.error());
  auto layout = makeHeadroomLayout(*model, setup.tp, setup.pp, setup.dp, setup.devices);
  if (!layout) return tl::unexpected(layout.error());
  HostDeviceSettings host{setup.tp * setup.pp * setup.dp, Bytes(setup.memoryKiB << 10)};
  EngineLimits limits;
  limits.maxModelLen = setup.maxModelLen;
  limits.maxNumSeqs = setup.maxNumSeqs;
  limits.maxNumBatchedTokens = setup.maxNumBatchedTokens;
  limits.cachedStates = setup.cachedStates;
  EngineSettings settings;
  settings.prefixCaching = setup.prefixCaching;
  settings.draftTokens = setup.draftTokens;
  settings.modelName = setup.model;
  return Engine::start(std::move(*model), std::move(*layout), hostMachine(host), limits, 1.0, settings, [] {});
}

bool waitPhase(Engine& engine, EnginePhase phase) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    if (engine.state().phase == phase) return true;
    QTest::qWait(2);
  }
  return false;
}

GenerationRequest requestOf(const Case& wanted, int64_t tokens = -1) {
  GenerationRequest request;
  request.prompt = wanted.prompt;
  request.sampling.temperature = 0;
  request.sampling.ignoreEos = true;
  request.sampling.maxTokens = tokens < 0 ? static_cast<int64_t>(wanted.greedy.size()) : tokens;
  return request;
}

}  // namespace

class EngineTest : public QObject {
  Q_OBJECT
 private slots:
  void givesTheExpectedTokens_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    QTest::addColumn<int>("dp");
    QTest::addColumn<int>("batchedTokens");
    QTest::addColumn<bool>("prefixCaching");
    for (const char* model : {"llama", "qwen2", "qwen3", "mistral"}) {
      QTest::addRow("%s, one rank", model) << model << 1 << 1 << 1 << 64 << true;
      QTest::addRow("%s, tp 2 pp 2", model) << model << 2 << 2 << 1 << 64 << true;
    }
    QTest::newRow("uneven heads") << "llama" << 4 << 1 << 1 << 64 << false;
    QTest::newRow("replicas") << "llama" << 1 << 1 << 2 << 64 << true;
    QTest::newRow("replicas of stages") << "llama" << 2 << 2 << 2 << 64 << true;
    QTest::newRow("chunks of 8 tokens") << "llama" << 1 << 1 << 1 << 8 << true;
    QTest::newRow("chunks of 8 tokens through stages") << "llama" << 1 << 2 << 1 << 8 << true;
    QTest::newRow("without prefix cache") << "llama" << 1 << 1 << 1 << 64 << false;
  }
  void givesTheExpectedTokens() {
    QFETCH(QString, model);
    Setup setup;
    setup.model = model.toStdString();
    QFETCH(int, tp);
    setup.tp = tp;
    QFETCH(int, pp);
    setup.pp = pp;
    QFETCH(int, dp);
    setup.dp = dp;
    QFETCH(int, batchedTokens);
    setup.maxNumBatchedTokens = batchedTokens;
    QFETCH(bool, prefixCaching);
    setup.prefixCaching = prefixCaching;
    auto engine = startEngine(setup);
    QVERIFY2(engine, engine ? "" : engine.error().message().c_str());
    const std::vector<Case> cases = casesOf(setup.model);
    QVERIFY(!cases.empty());
    for (int round = 0; round < 2; ++round) {  // the second finds the prompts in the prefix cache
      for (const Case& wanted : cases) {
        Answer answer;
        (*engine)->submit(requestOf(wanted), answer.sink());
        QVERIFY(answer.waitFinished());
        QCOMPARE(answer.tokens, wanted.greedy);
        QCOMPARE(*answer.finish, FinishReason::Length);
      }
    }
    std::vector<std::unique_ptr<Answer>> answers;
    for (int i = 0; i < 16; ++i) {
      answers.push_back(std::make_unique<Answer>());
      (*engine)->submit(requestOf(cases[i % cases.size()]), answers.back()->sink());
    }
    for (int i = 0; i < 16; ++i) {
      QVERIFY(answers[i]->waitFinished());
      QCOMPARE(answers[i]->tokens, cases[i % cases.size()].greedy);
    }
    const EngineState state = (*engine)->state();
    QCOMPARE(state.kvBlocksFree, state.kvBlocksTotal);
    QCOMPARE(state.requestsRunning + state.requestsWaiting, 0);
    const MetricsSnapshot metrics = (*engine)->metrics().snapshot();
    QCOMPARE(metrics.prefixCacheHits > 0, setup.prefixCaching);
    for (const RankState& rank : state.ranks) {
      QVERIFY(rank.planned.weights.has_value());
      QCOMPARE(*rank.allocated.weights, *rank.planned.weights);
      QCOMPARE(*rank.allocated.kvCache, *rank.planned.kvCache);
      QCOMPARE(*rank.allocated.activations, *rank.planned.activations);
    }
  }

  // Linear attention goes on from a copy of its state: behind the same prompt, where two prompts part, and in the next turn of a
  // conversation. The answers are those of an engine that computes every prompt whole.
  void findsStatesOfKnownPrefixes_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    QTest::addColumn<int>("copies");
    for (const char* model : {"architectures/qwen3_next", "architectures/qwen3_5"}) {
      QTest::addRow("%s, one rank", model) << model << 1 << 1 << 8;
      QTest::addRow("%s, tp 2 pp 2", model) << model << 2 << 2 << 8;
      QTest::addRow("%s, one copy", model) << model << 1 << 2 << 1;
    }
  }
  void findsStatesOfKnownPrefixes() {
    QFETCH(QString, model);
    QFETCH(int, tp);
    QFETCH(int, pp);
    QFETCH(int, copies);
    Setup setup;
    setup.model = model.toStdString();
    setup.tp = tp;
    setup.pp = pp;
    setup.maxModelLen = 224;
    std::vector<int32_t> prompt(130), other(130);
    for (size_t i = 0; i < prompt.size(); ++i) {
      prompt[i] = 3 + static_cast<int32_t>(i * i * 7 % 101);
      other[i] = i < 90 ? prompt[i] : 4 + static_cast<int32_t>(i * 5 % 97);
    }
    std::vector<std::vector<int32_t>> asked{prompt, prompt, other, other}, expected, found;
    std::vector<int64_t> cached;
    auto askAll = [&](std::vector<std::vector<int32_t>>& answers) {
      auto engine = startEngine(setup);
      if (!engine) return engine.error().message();
      cached.clear();
      for (size_t i = 0; i < 5; ++i) {
        if (i == asked.size()) {  // the next turn begins with the last prompt and its answer
          asked.push_back(other);
          asked.back().insert(asked.back().end(), answers.back().begin(), answers.back().end());
          asked.back().push_back(5);
        }
        GenerationRequest request;
        request.prompt = asked[i];
        request.sampling.temperature = 0;
        request.sampling.ignoreEos = true;
        request.sampling.maxTokens = 24;
        Answer answer;
        (*engine)->submit(request, answer.sink());
        if (!answer.waitFinished()) return std::string("no answer");
        answers.push_back(answer.tokens);
        cached.push_back(answer.cached);
      }
      for (const RankState& rank : (*engine)->state().ranks)
        if (*rank.allocated.activations != *rank.planned.activations) return std::string("other activations than planned");
      return std::string();
    };
    setup.prefixCaching = false;
    QCOMPARE(askAll(expected), std::string());
    QCOMPARE(cached, std::vector<int64_t>(5));
    setup.prefixCaching = true;
    setup.cachedStates = copies;
    QCOMPARE(askAll(found), std::string());
    QCOMPARE(found, expected);
    // One copy is the last that was made: behind an answer.
    if (copies > 1)
      QCOMPARE(cached, (std::vector<int64_t>{0, 128, 0, 128, 144}));
    else
      QCOMPARE(cached, (std::vector<int64_t>{0, 0, 0, 0, 144}));
  }

  // Who waits for "ready" reads the figures of the same answer.
  void aReadyStateHasAllFigures() {
    Setup setup;
    setup.tp = 2;
    setup.pp = 2;
    for (int round = 0; round < 12; ++round) {
      auto engine = startEngine(setup);
      QVERIFY(engine);
      EngineState state;
      for (const QDeadlineTimer patience(kPatience); state.phase != EnginePhase::Ready;) {
        QVERIFY(!patience.hasExpired());
        state = (*engine)->state();
      }
      for (const RankState& rank : state.ranks) {
        QCOMPARE(*rank.allocated.weights, *rank.planned.weights);
        QCOMPARE(*rank.allocated.kvCache, *rank.planned.kvCache);
        QCOMPARE(*rank.allocated.activations, *rank.planned.activations);
      }
    }
  }

  void ranksThatShareADeviceSayWhatItHolds() {
    Setup setup;
    setup.tp = 2;
    setup.dp = 2;
    setup.devices = {0, 1, 1, 1};
    auto engine = startEngine(setup);
    QVERIFY2(engine, engine ? "" : engine.error().message().c_str());
    QVERIFY(waitPhase(**engine, EnginePhase::Ready));
    const EngineState state = (*engine)->state();
    std::map<std::string, int64_t> held;
    for (const RankState& rank : state.ranks)
      held[rank.device] += *rank.allocated.weights + *rank.allocated.kvCache + *rank.allocated.activations;
    QCOMPARE(held.size(), 2u);
    for (const RankState& rank : state.ranks) QCOMPARE(*rank.deviceUsedBytes, held[rank.device]);
  }

  void recomputesWhatItPreempted_data() {
    QTest::addColumn<bool>("promptLogprobs");
    QTest::newRow("tokens") << false;
    QTest::newRow("with prompt logprobs, which came with the first token") << true;
  }
  void recomputesWhatItPreempted() {
    QFETCH(bool, promptLogprobs);
    // The least memory that holds one whole sequence, but not the eight that run together.
    Setup setup;
    setup.prefixCaching = false;
    setup.maxNumBatchedTokens = 16;
    Result<std::unique_ptr<Engine>> engine = failure("", "not started");
    for (setup.memoryKiB = 64; !engine && setup.memoryKiB < 8192; setup.memoryKiB += 16) engine = startEngine(setup);
    QVERIFY2(engine, engine ? "" : engine.error().message().c_str());
    const std::vector<Case> cases = casesOf(setup.model);
    const Case& longest = cases.back();
    std::vector<std::unique_ptr<Answer>> answers;
    for (int i = 0; i < 8; ++i) {
      answers.push_back(std::make_unique<Answer>());
      GenerationRequest request = requestOf(longest);
      if (promptLogprobs) request.sampling.promptLogprobs = 2;
      (*engine)->submit(std::move(request), answers.back()->sink());
    }
    for (auto& answer : answers) {
      QVERIFY(answer->waitFinished());
      QCOMPARE(answer->tokens, longest.greedy);
      QCOMPARE(answer->promptLogprobs.size(), promptLogprobs ? longest.prompt.size() : 0);
      for (size_t i = 1; i < answer->promptLogprobs.size(); ++i) {
        QCOMPARE(answer->promptLogprobs[i].size(), 3u);
        QCOMPARE(answer->promptLogprobs[i][0].token, longest.prompt[i]);
      }
    }
    QVERIFY((*engine)->metrics().snapshot().preemptions > 0);
  }

  // With guesses every answer is the one without, to the bit of its log probabilities: greedy and drawn, with penalties, to a
  // stop token and to the end of the context, alone and among others, also where blocks are few. What repeats takes fewer steps.
  // A form may be over with a guessed token: the tokens of the step before it belong to the answer too.
  void aFormMayEndWithinAGuess() {
    class Recital final : public TokenConstraint {  // the tokens of a text, one after the other
     public:
      explicit Recital(std::vector<int32_t> text) : m_text(std::move(text)) {}
      void mask(std::span<float> logits, std::span<const int32_t>) override {
        for (size_t token = 0; token < logits.size(); ++token)
          if (isOver() || static_cast<int32_t>(token) != m_text[m_next]) logits[token] = -INFINITY;
      }
      void accept(int32_t) override { ++m_next; }
      bool isComplete() const override { return isOver(); }
      bool isOver() const override { return m_next >= m_text.size(); }

     private:
      std::vector<int32_t> m_text;
      size_t m_next = 0;
    };
    Setup setup;
    setup.draftTokens = 8;
    auto engine = startEngine(setup);
    QVERIFY2(engine, engine ? "" : engine.error().message().c_str());
    const std::vector<int32_t> period{7, 21, 40, 3, 99};
    for (size_t length = 12; length < 28; ++length) {  // so that some end in the middle of a step
      GenerationRequest request;
      for (size_t i = 0; i < 25; ++i) request.prompt.push_back(period[i % 5]);
      std::vector<int32_t> text;
      for (size_t i = 0; i < length; ++i) text.push_back(period[i % 5]);
      request.sampling.temperature = 0;
      request.sampling.maxTokens = 60;
      request.sampling.constraint = std::make_shared<Recital>(text);
      Answer answer;
      (*engine)->submit(std::move(request), answer.sink());
      QVERIFY(answer.waitFinished());
      QVERIFY2(answer.finish == FinishReason::Stop, answer.error.c_str());
      QCOMPARE(answer.tokens, text);
    }
    QVERIFY((*engine)->metrics().snapshot().acceptedTokens > 0);
  }

  void guessesChangeNoAnswer_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<int>("pp");
    for (const char* model : {"llama", "qwen2", "qwen3", "mistral", "gguf/Q8_0.gguf", "architectures/deepseek_v3"})
      for (int pp : {1, 2}) QTest::addRow("%s, %d stages", model, pp) << model << pp;
  }
  void guessesChangeNoAnswer() {
    QFETCH(QString, model);
    QFETCH(int, pp);
    Setup setup;
    setup.model = model.toStdString();
    setup.pp = pp;
    setup.maxModelLen = 160;
    std::vector<GenerationRequest> requests;
    const std::vector<int32_t> period{7, 21, 40, 3, 99};
    for (int kind = 0; kind < 6; ++kind) {
      Case wanted;
      for (int i = 0; i < 20 + kind; ++i) wanted.prompt.push_back(period[static_cast<size_t>(i % 5)]);
      GenerationRequest request = requestOf(wanted, kind == 1 ? 1000 : 90);
      request.sampling.logprobs = 1;
      if (kind == 2) request.sampling.temperature = 0.7f, request.sampling.seed = 5;
      if (kind == 3) request.sampling.frequencyPenalty = 0.02f;
      if (kind == 4) request.sampling.stopTokenIds = {11, 12, 13, 14, 15, 16}, request.sampling.minTokens = 10;
      requests.push_back(std::move(request));
    }
    std::vector<std::vector<int32_t>> tokens;
    std::vector<std::vector<float>> logprobs;
    std::vector<uint64_t> steps;
    for (int64_t draftTokens : {0, 8}) {
      setup.draftTokens = draftTokens;
      auto engine = startEngine(setup);
      QVERIFY2(engine, engine ? "" : engine.error().message().c_str());
      for (bool together : {false, true}) {
        std::vector<std::unique_ptr<Answer>> answers;
        for (const GenerationRequest& request : requests) {
          answers.push_back(std::make_unique<Answer>());
          (*engine)->submit(request, answers.back()->sink());
          if (!together) QVERIFY(answers.back()->waitFinished());
        }
        for (size_t i = 0; i < answers.size(); ++i) {
          QVERIFY(answers[i]->waitFinished());
          QCOMPARE(answers[i]->logprobs.size(), answers[i]->tokens.size());
          if (draftTokens == 0 && !together) {
            tokens.push_back(answers[i]->tokens);
            logprobs.push_back(answers[i]->logprobs);
          } else {
            const auto same =
                std::mismatch(answers[i]->tokens.begin(), answers[i]->tokens.end(), tokens[i].begin(), tokens[i].end());
            QVERIFY2(answers[i]->tokens == tokens[i],
                     fmt::format("request {}, {} guessed tokens, {}: token {} differs", i, draftTokens,
                                 together ? "together" : "alone", same.first - answers[i]->tokens.begin())
                         .c_str());
            QVERIFY2(answers[i]->logprobs == logprobs[i], fmt::format("request {}: log probabilities", i).c_str());
          }
        }
        steps.push_back((*engine)->metrics().snapshot().iterationTokens.count());
      }
      const MetricsSnapshot metrics = (*engine)->metrics().snapshot();
      QCOMPARE(metrics.drafts > 0 && metrics.acceptedTokens > 0, draftTokens > 0);
      QVERIFY(metrics.acceptedTokens <= metrics.draftTokens);
      if (draftTokens > 0) {
        QCOMPARE(metrics.acceptedAt.size(), size_t(8));
        QCOMPARE(std::accumulate(metrics.acceptedAt.begin(), metrics.acceptedAt.end(), uint64_t(0)), metrics.acceptedTokens);
        qInfo("%llu steps alone without guesses, %llu with; %llu of %llu guessed tokens right",
              static_cast<unsigned long long>(steps[0]), static_cast<unsigned long long>(steps[2]),
              static_cast<unsigned long long>(metrics.acceptedTokens), static_cast<unsigned long long>(metrics.draftTokens));
        QVERIFY(steps[2] < steps[0]);
      }
      const EngineState state = (*engine)->state();
      QCOMPARE(state.kvBlocksFree, state.kvBlocksTotal);
    }
  }

  void freesTheBlocksOfAClientThatLeaves() {
    Setup setup;
    setup.pp = 2;
    setup.maxModelLen = 4000;  // long enough to be still at it
    setup.memoryKiB = 64 << 10;
    auto engine = startEngine(setup);
    QVERIFY(engine);
    const Case wanted = casesOf(setup.model).front();
    Answer answer;
    const RequestId id = (*engine)->submit(requestOf(wanted, 3900), answer.sink());
    QVERIFY(answer.waitUpdates(2));
    (*engine)->cancel(id);
    QVERIFY(answer.waitFinished());
    QCOMPARE(*answer.finish, FinishReason::Abort);
    const EngineState state = (*engine)->state();
    QCOMPARE(state.kvBlocksFree, state.kvBlocksTotal);
    (*engine)->cancel(id);  // once more does no harm
  }

  void endsAtTheContextAndAtStopTokens() {
    Setup setup;
    auto engine = startEngine(setup);
    QVERIFY(engine);
    const Case wanted = casesOf(setup.model)[1];
    Answer full;
    (*engine)->submit(requestOf(wanted, 10000), full.sink());
    QVERIFY(full.waitFinished());
    QCOMPARE(full.tokens.size() + wanted.prompt.size(), static_cast<size_t>(setup.maxModelLen));
    GenerationRequest request = requestOf(wanted);
    request.sampling.stopTokenIds = {wanted.greedy[3]};
    const auto first = std::find(wanted.greedy.begin(), wanted.greedy.end(), wanted.greedy[3]) - wanted.greedy.begin();
    Answer stopped;
    (*engine)->submit(std::move(request), stopped.sink());
    QVERIFY(stopped.waitFinished());
    QCOMPARE(*stopped.finish, FinishReason::Stop);
    QCOMPARE(static_cast<std::ptrdiff_t>(stopped.tokens.size()), first + 1);
  }

  void promptLogprobsComeForEveryTokenInChunksToo() {
    Setup setup;
    setup.maxNumBatchedTokens = 8;
    auto engine = startEngine(setup);
    QVERIFY(engine);
    const Case wanted = casesOf(setup.model).back();
    GenerationRequest request = requestOf(wanted, 1);
    request.sampling.promptLogprobs = 3;
    Answer answer;
    (*engine)->submit(std::move(request), answer.sink());
    QVERIFY(answer.waitFinished());
    QCOMPARE(answer.promptLogprobs.size(), wanted.prompt.size());
    QVERIFY(answer.promptLogprobs[0].empty());
    for (size_t i = 1; i < wanted.prompt.size(); ++i) {
      QCOMPARE(answer.promptLogprobs[i].size(), 4u);
      QCOMPARE(answer.promptLogprobs[i][0].token, wanted.prompt[i]);
    }
  }

  void aRankThatDiesEndsEveryRequestWithTheReason() {
    qputenv("HEADROOM_FAULT", "rank=3,step=4,kind=throw");
    Setup setup;
    setup.tp = setup.pp = 2;
    auto engine = startEngine(setup);
    qunsetenv("HEADROOM_FAULT");
    QVERIFY(engine);
    const Case wanted = casesOf(setup.model).back();
    std::vector<std::unique_ptr<Answer>> answers;
    for (int i = 0; i < 4; ++i) {
      answers.push_back(std::make_unique<Answer>());
      (*engine)->submit(requestOf(wanted, 40), answers.back()->sink());
    }
    for (auto& answer : answers) {
      QVERIFY(answer->waitFinished());
      QCOMPARE(*answer->finish, FinishReason::Error);
      QVERIFY2(answer->error.find("rank 3") != std::string::npos, answer->error.c_str());
    }
    QVERIFY(waitPhase(**engine, EnginePhase::Failed));
    Answer late;
    (*engine)->submit(requestOf(wanted), late.sink());
    QVERIFY(late.waitFinished());
    QCOMPARE(*late.finish, FinishReason::Error);
  }

  void stopsWhileRequestsRun() {
    Setup setup;
    setup.pp = 2;
    const Case wanted = casesOf(setup.model).front();
    // Many times: a rank that ended a step just when its group was given up found nothing to hand the next one to, and crashed.
    for (int round = 0; round < 150; ++round) {
      Answer answer;
      {
        auto engine = startEngine(setup);
        QVERIFY(engine);
        (*engine)->submit(requestOf(wanted, 80), answer.sink());
        QVERIFY(answer.waitUpdates(1 + round % 7));
      }
      QCOMPARE(answer.finish.has_value(), true);
    }
  }
};

QTEST_GUILESS_MAIN(EngineTest)
#include "engine_test.moc"
