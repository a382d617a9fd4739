// SPDX-License-Identifier: Apache-2.0
#include "engine/sample/sampler.h"

#include <QtTest>
#include <cmath>
#include <limits>

using namespace headroom::engine;

namespace {

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

int32_t choose(Sampler& sampler, std::vector<float> logits) { return sampler.sample(logits)->token; }

std::vector<double> shares(const SamplingParams& params, const std::vector<float>& logits, int draws) {
  Sampler sampler(params, {}, {});
  std::vector<double> counts(logits.size());
  for (int i = 0; i < draws; ++i) counts[choose(sampler, logits)] += 1.0 / draws;
  return counts;
}

}  // namespace

class SamplerTest : public QObject {
  Q_OBJECT
 private slots:
  void greedyTakesTheLikeliestAndTheLowestAmongEquals() {
    Sampler sampler(greedy(), {}, {});
    QCOMPARE(choose(sampler, {1, 3, 3, 2}), 1);
    std::vector<float> many(1000, -5.0f);
    many[777] = 2.0f;
    QCOMPARE(choose(sampler, many), 777);
  }

  void drawsInProportionToTheProbabilities() {
    SamplingParams params;
    params.seed = 1;
    // softmax(log 1, log 2, log 5) = 1/8, 2/8, 5/8
    const std::vector<double> found = shares(params, {0.0f, std::log(2.0f), std::log(5.0f)}, 40000);
    QVERIFY(std::abs(found[0] - 0.125) < 0.01);
    QVERIFY(std::abs(found[1] - 0.25) < 0.01);
    params.temperature = 0.5;  // squares the weights: 1, 4, 25
    QVERIFY(std::abs(shares(params, {0.0f, std::log(2.0f), std::log(5.0f)}, 40000)[2] - 25.0 / 30.0) < 0.01);
  }

  void topKTopPAndMinPKeepTheLikeliestOnly_data() {
    QTest::addColumn<int>("topK");
    QTest::addColumn<double>("topP");
    QTest::addColumn<double>("minP");
    QTest::addColumn<QList<bool>>("possible");
    // probabilities 0.1, 0.4, 0.2, 0.3
    QTest::newRow("top_k 1") << 1 << 1.0 << 0.0 << QList<bool>{false, true, false, false};
    QTest::newRow("top_k 3") << 3 << 1.0 << 0.0 << QList<bool>{false, true, true, true};
    QTest::newRow("top_p 0.5") << 0 << 0.5 << 0.0 << QList<bool>{false, true, false, true};
    QTest::newRow("top_p 0.3") << 0 << 0.3 << 0.0 << QList<bool>{false, true, false, false};
    QTest::newRow("top_p 0") << 0 << 0.0 << 0.0 << QList<bool>{false, true, false, false};
    QTest::newRow("min_p 0.6") << 0 << 1.0 << 0.6 << QList<bool>{false, true, false, true};
    QTest::newRow("top_k 2, top_p 0.5") << 2 << 0.5 << 0.0 << QList<bool>{false, true, false, false};  // 0.4 of 0.7 is more than half
  }
  void topKTopPAndMinPKeepTheLikeliestOnly() {
    QFETCH(int, topK);
    QFETCH(double, topP);
    QFETCH(double, minP);
    QFETCH(QList<bool>, possible);
    SamplingParams params;
    params.seed = 5;
    params.topK = topK;
    params.topP = topP;
    params.minP = minP;
    const std::vector<double> found = shares(params, {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)}, 2000);
    for (int i = 0; i < 4; ++i) QCOMPARE(found[i] > 0, possible[i]);
  }

  void theSameSeedGivesTheSameTokens() {
    SamplingParams params;
    params.seed = 42;
    Sampler a(params, {}, {}), b(params, {}, {});
    for (int i = 0; i < 50; ++i) QCOMPARE(choose(a, {1, 1, 1, 1, 1, 1}), choose(b, {1, 1, 1, 1, 1, 1}));
  }

  void penaltiesFollowTheirFormulas() {
    SamplingParams params = greedy();
    params.repetitionPenalty = 2.0;
    const std::vector<int32_t> prompt{0};
    Sampler repetition(params, prompt, {});
    QCOMPARE(choose(repetition, {3, 2, -9}), 1);    // 3 / 2 < 2
    QCOMPARE(choose(repetition, {3, 2, 1.2f}), 0);  // 1.5 against 1 and 1.2

    params = greedy();
    params.presencePenalty = 1.0;
    params.frequencyPenalty = 0.5;
    Sampler counted(params, prompt, {});
    QCOMPARE(choose(counted, {2, 0}), 0);        // the prompt does not count
    QCOMPARE(choose(counted, {2, 0}), 0);        // 2 - 1 - 0.5
    QCOMPARE(choose(counted, {2, 0.5f}), 1);     // 2 - 1 - 2 * 0.5 = 0
  }

  void biasForcesAndBans() {
    SamplingParams params = greedy();
    params.logitBias = {{2, 100.0f}, {0, -100.0f}, {1000, 5.0f}};
    Sampler sampler(params, {}, {});
    QCOMPARE(choose(sampler, {9, 1, 1}), 2);
  }

  void doesNotEndBeforeTheMinimum() {
    SamplingParams params = greedy();
    params.minTokens = 2;
    Sampler sampler(params, {}, {1});
    QCOMPARE(choose(sampler, {1, 5, 2}), 2);
    QCOMPARE(choose(sampler, {1, 5, 2}), 2);
    QCOMPARE(choose(sampler, {1, 5, 2}), 1);
  }

  void logprobsAreOfTheUntouchedLogits() {
    SamplingParams params = greedy();
    params.logprobs = 2;
    params.logitBias = {{0, 100.0f}};
    Sampler sampler(params, {}, {});
    std::vector<float> logits{std::log(0.1f), std::log(0.6f), std::log(0.3f)};
    const Sampler::Choice choice = *sampler.sample(logits);
    QCOMPARE(choice.token, 0);
    QVERIFY(std::abs(choice.logprobs->chosen.logprob - std::log(0.1)) < 1e-6);
    QCOMPARE(choice.logprobs->chosen.rank, 3);
    QCOMPARE(choice.logprobs->top.size(), 2u);
    QCOMPARE(choice.logprobs->top[0].token, 1);
    QVERIFY(std::abs(choice.logprobs->top[1].logprob - std::log(0.3)) < 1e-6);
  }

  void refusesLogitsWithoutANumber() {
    Sampler sampler(greedy(), {}, {});
    std::vector<float> broken(4, std::numeric_limits<float>::quiet_NaN());
    QVERIFY(!sampler.sample(broken).has_value());
  }
};

QTEST_GUILESS_MAIN(SamplerTest)
#include "sampler_test.moc"
