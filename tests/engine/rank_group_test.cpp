// SPDX-License-Identifier: Apache-2.0
// Ranks of a replica: pipelined steps, and an end with a reason in bounded time whatever fails and whenever the group is
// destroyed.
#include "tests/engine/step_driver.h"

#include <QElapsedTimer>
#include <QtTest>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::test;

namespace {

const std::string kLlama = std::string(HEADROOM_TEST_DATA) + "/models/llama";
constexpr std::chrono::milliseconds kSoon{20000};  // generous, for machines under load and sanitizers

std::unique_ptr<StepDriver> makeDriver(int tp, int pp) {
  auto driver = StepDriver::make(kLlama, tp, pp);
  if (!driver) qFatal("%s", driver.error().message().c_str());
  return std::move(*driver);
}

}  // namespace

class RankGroupTest : public QObject {
  Q_OBJECT
 private slots:
  void cleanup() { qunsetenv("HEADROOM_FAULT"); }

  // Two microbatches are in flight; each stage takes the next as soon as it is free.
  void pipelinesMicrobatches() {
    auto d = makeDriver(2, 3);
    d->start();
    QVERIFY(d->waitLoaded());
    const std::vector<ReferenceCase> cases = readReference(kLlama + "/expected.json");
    QCOMPARE(cases.size(), size_t{4});
    for (const ReferenceCase& reference : cases) d->add(reference.prompt, 12);
    uint64_t submitted = 0;
    for (int round = 0; round < 12; ++round) {
      for (const std::vector<int>& half : {std::vector<int>{0, 1}, std::vector<int>{2, 3}}) {
        // The half's previous step is done; the other half's is in flight.
        if (round > 0) QVERIFY(d->waitSteps(submitted - 1));
        d->group().submit(d->plan(half, 48));
        ++submitted;
      }
    }
    QVERIFY(d->waitSteps(submitted));
    for (size_t i = 0; i < cases.size(); ++i) QCOMPARE(compareWith(cases[i], d->sequences[i], 1e-3), std::string());
  }

  void takesManyStepsAtOnce() {
    auto d = makeDriver(2, 2);
    d->start();
    QVERIFY(d->waitLoaded());
    d->add({5, 6, 7, 8, 9, 10, 11, 12}, 0);
    for (int step = 0; step < 300; ++step) {
      d->sequences[0].computed = 0;
      d->group().submit(d->plan({0}, 2));
    }
    QVERIFY(d->waitSteps(300));
  }

  void failingRankEndsTheGroup_data() {
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    QTest::addColumn<QByteArray>("fault");
    QTest::addColumn<QByteArray>("reason");
    QTest::newRow("exception while loading") << 3 << 2 << QByteArray("rank=4,step=load,kind=throw")
                                             << QByteArray("rank 4 (stage 1, TP rank 1) on cpu:4: found an exception: a fault");
    QTest::newRow("no memory while loading") << 2 << 2 << QByteArray("rank=0,step=load,kind=memory")
                                             << QByteArray("rank 0 (stage 0, TP rank 0) on cpu:0: found no host memory left");
    QTest::newRow("first step, one rank") << 1 << 1 << QByteArray("rank=0,step=0,kind=throw")
                                          << QByteArray("rank 0 (stage 0, TP rank 0) on cpu:0: found an exception");
    QTest::newRow("TP peer in a step") << 4 << 1 << QByteArray("rank=2,step=3,kind=throw")
                                       << QByteArray("rank 2 (stage 0, TP rank 2) on cpu:2: found an exception");
    QTest::newRow("first stage in a step") << 2 << 3 << QByteArray("rank=1,step=2,kind=error")
                                           << QByteArray("rank 1 (stage 0, TP rank 1) on cpu:1: an operation: found a fault");
    QTest::newRow("last stage in a step") << 2 << 3 << QByteArray("rank=5,step=2,kind=memory")
                                          << QByteArray("rank 5 (stage 2, TP rank 1) on cpu:5: found no host memory left");
  }

  void failingRankEndsTheGroup() {
    QFETCH(int, tp);
    QFETCH(int, pp);
    QFETCH(QByteArray, fault);
    QFETCH(QByteArray, reason);
    qputenv("HEADROOM_FAULT", fault);
    auto d = makeDriver(tp, pp);
    d->start();
    d->add({3, 1, 4, 1, 5}, 12);
    const bool loaded = d->waitLoaded();
    QCOMPARE(loaded, !fault.contains("load"));
    if (loaded) QVERIFY(!d->generate({0}, 12, 4));
    QVERIFY(d->waitFailed(kSoon));
    QVERIFY2(d->failure->message().starts_with(reason.constData()), d->failure->message().c_str());
    d->group().submit(std::make_shared<StepPlan>());  // harmless now
    d->stop();
    QCOMPARE(d->failures, 1);
  }

  void stopsWhileARankIsStuck() {
    for (const char* fault : {"rank=1,step=load,kind=stall", "rank=1,step=1,kind=stall"}) {
      qputenv("HEADROOM_FAULT", fault);
      auto d = makeDriver(2, 2);
      d->start();
      d->add({3, 1, 4, 1, 5}, 12);
      for (int i = 0; i < 4; ++i) d->group().submit(d->plan({0}, 1));
      QTest::qWait(50);
      QElapsedTimer timer;
      timer.start();
      d->stop();
      QVERIFY(timer.elapsed() < kSoon.count());
      QCOMPARE(d->failures, 0);  // being stopped is no failure
    }
  }

  void stopsAtAnyMoment() {
    for (int delay : {0, 1, 2, 5, 10, 20, 40}) {
      auto d = makeDriver(3, 2);
      d->start();
      d->add({3, 1, 4, 1, 5, 9, 2, 6}, 40);
      for (int i = 0; i < 8; ++i) d->group().submit(d->plan({0}, 1));
      QTest::qSleep(delay);
      QElapsedTimer timer;
      timer.start();
      d->stop();
      QVERIFY(timer.elapsed() < kSoon.count());
      QCOMPARE(d->failures, 0);
    }
  }

  void tellsWhenADeviceIsTooSmall() {
    auto d = makeDriver(2, 1);
    d->machine.gpus[1].totalMemory = 200_KiB;
    d->start();
    QVERIFY(d->waitFailed(kSoon));
    const std::string message = d->failure->message();
    QVERIFY2(message.starts_with("rank 1 (stage 0, TP rank 1) on cpu:1: "), message.c_str());
  }

  void refusesAStepBeyondItsLimits() {
    auto d = makeDriver(1, 2);
    d->start();
    QVERIFY(d->waitLoaded());
    auto plan = std::make_shared<StepPlan>();
    plan->step = 7;
    plan->tokenIds.resize(static_cast<size_t>(d->limits.maxNumBatchedTokens + 1));
    d->group().submit(std::move(plan));
    QVERIFY(d->waitFailed(kSoon));
    QVERIFY2(d->failure->message().find("step 7: found 97 tokens, expected at most 96") != std::string::npos,
             d->failure->message().c_str());
  }

  void abortGivesItsReason() {
    auto d = makeDriver(2, 2);
    d->start();
    QVERIFY(d->waitLoaded());
    d->group().abort(Error{"engine", "a scheduler that gave up", {}, {}});
    QVERIFY(d->waitFailed(kSoon));
    QCOMPARE(d->failure->message(), std::string("engine: found a scheduler that gave up"));
  }

  void showsLoadProgress() {
    auto d = makeDriver(2, 2);
    d->start();
    while (true) {
      for (const RankState& state : d->group().rankStates())
        QVERIFY(state.loadBytesDone <= state.loadBytesTotal || state.loadBytesTotal == 0);
      if (d->waitFailed(std::chrono::milliseconds(1))) break;
      std::vector<RankState> states = d->group().rankStates();
      if (std::all_of(states.begin(), states.end(),
                      [](const RankState& s) { return s.loadBytesTotal > 0 && s.loadBytesDone == s.loadBytesTotal; }))
        break;
    }
    QVERIFY(d->waitLoaded());
    const std::vector<RankState> states = d->group().rankStates();
    QCOMPARE(states.size(), size_t{4});
    for (size_t i = 0; i < states.size(); ++i) {
      QCOMPARE(states[i].rank, static_cast<int>(i));
      QCOMPARE(states[i].device, fmt::format("cpu:{}", i));
      QCOMPARE(states[i].loadBytesDone, states[i].loadBytesTotal);
      QVERIFY(states[i].loadBytesTotal > 0);
    }
    d->stop();
    QVERIFY(d->progressCalls >= 4);
  }
};

QTEST_GUILESS_MAIN(RankGroupTest)
#include "rank_group_test.moc"
