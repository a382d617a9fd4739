// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/scheduler.h"

#include <QtTest>
#include <deque>
#include <random>
#undef slots  // StepPlan has a member of this name

using namespace headroom::engine;

namespace {

std::shared_ptr<Sequence> sequenceOf(uint64_t id, int64_t promptTokens, int priority = 0, int32_t firstToken = 0) {
  auto sequence = std::make_shared<Sequence>();
  sequence->id = SequenceId{id};
  sequence->arrival = id;
  sequence->priority = priority;
  sequence->promptTokens = promptTokens;
  for (int64_t i = 0; i < promptTokens; ++i) sequence->tokens.push_back(firstToken + static_cast<int32_t>(i));
  return sequence;
}

std::vector<int64_t> tokensPerSequence(const StepPlan& plan) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < plan.sequences.size(); ++i) counts.push_back(plan.sequenceStart[i + 1] - plan.sequenceStart[i]);
  return counts;
}

// What the ranks would do: keep the token of every slot, and check that a step finds in its blocks what was written for each sequence.
using WrittenSlots = std::map<int32_t, std::pair<int32_t, int32_t>>;  // slot -> (token, position)

bool runStep(WrittenSlots& written, const StepPlan& plan, int64_t blockTokens) {
  for (int64_t row = 0; row < plan.tokens(); ++row) written[plan.slots[row]] = {plan.tokenIds[row], plan.positions[row]};
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    for (int32_t position = 0; position < plan.contextLength[i]; ++position) {
      const int32_t block = plan.blockTable[static_cast<int64_t>(i) * plan.blocksPerSequence + position / blockTokens];
      const auto found = written.find(static_cast<int32_t>(block * blockTokens + position % blockTokens));
      if (found == written.end() || found->second.second != position) return false;
    }
  }
  return true;
}

}  // namespace

class SchedulerTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void cutsALongPromptIntoChunks() {
    BlockPool pool(64, 16, false);
    Scheduler scheduler({4, 32, 1}, pool);
    scheduler.add(sequenceOf(1, 70));
    const SharedStepPlan first = scheduler.schedule();
    QCOMPARE(first->tokens(), 32);
    QVERIFY(first->logits.empty());
    scheduler.finishStep(*first);
    const SharedStepPlan second = scheduler.schedule();
    QCOMPARE(second->positions.front(), 32);
    scheduler.finishStep(*second);
    const SharedStepPlan last = scheduler.schedule();
    QCOMPARE(last->tokens(), 6);
    QCOMPARE(last->logits.size(), 1u);
    QVERIFY(last->logits[0].sample);
    QCOMPARE(last->logits[0].row, 5);
    QCOMPARE(last->contextLength[0], 70);
  }

  void waitsForTheSampledTokenBeforeTheNextStep() {
    BlockPool pool(64, 16, false);
    Scheduler scheduler({4, 512, 1}, pool);
    scheduler.add(sequenceOf(1, 5));
    const SharedStepPlan plan = scheduler.schedule();
    QVERIFY(!scheduler.schedule());
    scheduler.appendToken(*scheduler.find(SequenceId{1}), 99);
    scheduler.finishStep(*plan);
    const SharedStepPlan next = scheduler.schedule();
    QCOMPARE(next->tokenIds, (std::vector<int32_t>{99}));
    QCOMPARE(next->positions, (std::vector<int32_t>{5}));
  }

  void takesThoseThatGenerateBeforePrompts() {
    BlockPool pool(256, 16, false);
    Scheduler scheduler({4, 512, 1}, pool);
    scheduler.add(sequenceOf(1, 5));
    SharedStepPlan plan = scheduler.schedule();
    scheduler.appendToken(*scheduler.find(SequenceId{1}), 99);
    scheduler.finishStep(*plan);
    scheduler.add(sequenceOf(2, 1000));
    plan = scheduler.schedule();
    QCOMPARE(plan->sequences, (std::vector<SequenceId>{SequenceId{1}, SequenceId{2}}));
    QCOMPARE(tokensPerSequence(*plan), (std::vector<int64_t>{1, 128}));
  }

  void admitsByPriorityThenArrival() {
    BlockPool pool(64, 16, false);
    Scheduler scheduler({1, 512, 1}, pool);
    scheduler.add(sequenceOf(1, 4, 5));
    scheduler.add(sequenceOf(2, 4, 0));
    scheduler.add(sequenceOf(3, 4, 0));
    QCOMPARE(scheduler.schedule()->sequences, (std::vector<SequenceId>{SequenceId{2}}));
  }

  void dividesTheWorkOverTheStages() {
    BlockPool pool(64, 16, false);
    Scheduler scheduler({16, 512, 2}, pool);
    for (uint64_t id = 1; id <= 6; ++id) scheduler.add(sequenceOf(id, 4));
    QCOMPARE(scheduler.schedule()->sequences.size(), 3u);
    QCOMPARE(scheduler.schedule()->sequences.size(), 3u);
    QVERIFY(!scheduler.schedule());
  }

  void letsChunksOfOnePromptFollowEachOtherThroughTheStages() {
    BlockPool pool(64, 16, false);
    Scheduler scheduler({4, 256, 2}, pool);
    scheduler.add(sequenceOf(1, 300));
    const SharedStepPlan first = scheduler.schedule(), second = scheduler.schedule();
    QCOMPARE(first->tokens(), 128);
    QCOMPARE(second->positions.front(), 128);
  }

  void findsAPromptsBeginningAgainButAlwaysComputesAToken() {
    BlockPool pool(64, 16, true);
    Scheduler scheduler({4, 512, 1}, pool);
    scheduler.add(sequenceOf(1, 32));
    const SharedStepPlan first = scheduler.schedule();
    scheduler.finishStep(*first);
    scheduler.remove(SequenceId{1});
    QCOMPARE(pool.free(), 64);
    scheduler.add(sequenceOf(2, 32));
    const SharedStepPlan again = scheduler.schedule();
    QCOMPARE(again->tokens(), 16);
    QCOMPARE(again->positions.front(), 16);
    QCOMPARE(again->contextLength[0], 32);
    QCOMPARE(scheduler.prefixHits(), 16u);
    QCOMPARE(again->blockTable[0], first->blockTable[0]);
  }

  void doesNotUseTheCacheWherePromptLogprobsAreWanted() {
    BlockPool pool(64, 16, true);
    Scheduler scheduler({4, 512, 1}, pool);
    scheduler.add(sequenceOf(1, 40));
    scheduler.finishStep(*scheduler.schedule());
    auto second = sequenceOf(2, 40);
    second->promptLogprobs = true;
    scheduler.add(second);
    const SharedStepPlan plan = scheduler.schedule();
    QCOMPARE(plan->tokens(), 40);
    QCOMPARE(plan->logits.size(), 40u);
    QCOMPARE(plan->logits[7].promptPosition, 7);
    QCOMPARE(plan->logits[39].promptPosition, -1);
  }

  void preemptsTheLastWhenNoBlockIsFree() {
    BlockPool pool(4, 16, false);
    Scheduler scheduler({4, 512, 1}, pool);
    scheduler.add(sequenceOf(1, 31));
    scheduler.add(sequenceOf(2, 31));
    SharedStepPlan plan = scheduler.schedule();
    QCOMPARE(pool.free(), 0);
    for (int i = 0; i < 2; ++i) {
      for (const SequenceId id : plan->sequences) scheduler.appendToken(*scheduler.find(id), 7);
      scheduler.finishStep(*plan);
      plan = scheduler.schedule();
    }
    QCOMPARE(plan->sequences, (std::vector<SequenceId>{SequenceId{1}}));
    QCOMPARE(scheduler.preemptions(), 1u);
    QCOMPARE(scheduler.waiting(), 1);
    scheduler.remove(SequenceId{1});
    plan = scheduler.schedule();  // the second computes its prompt and what it had generated anew
    QCOMPARE(plan->tokens(), 33);
  }

  // A random load on few blocks: every sequence gets all its tokens, every step reads what was written for it, all blocks come back.
  void survivesAnyLoad_data() {
    QTest::addColumn<int>("stages");
    QTest::addColumn<bool>("prefixCaching");
    QTest::newRow("one stage") << 1 << false;
    QTest::newRow("one stage, prefix cache") << 1 << true;
    QTest::newRow("three stages, prefix cache") << 3 << true;
  }
  void survivesAnyLoad() {
    QFETCH(int, stages);
    QFETCH(bool, prefixCaching);
    std::mt19937 random(7);
    auto draw = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
    BlockPool pool(24, 8, prefixCaching);
    Scheduler scheduler({6, 48, stages}, pool);
    WrittenSlots written;
    std::map<SequenceId, int> wanted;
    std::deque<SharedStepPlan> inFlight;
    uint64_t next = 1;
    int finished = 0, removed = 0;
    for (int round = 0; round < 20000 && finished + removed < 300; ++round) {
      if (next <= 300 && draw(0, 3) == 0) {
        scheduler.add(sequenceOf(next, draw(1, 120), draw(0, 1), draw(0, 3) * 1000));
        wanted[SequenceId{next++}] = draw(1, 60);
      }
      if (!wanted.empty() && draw(0, 60) == 0) {  // a client goes away
        const SequenceId id = std::next(wanted.begin(), draw(0, static_cast<int>(wanted.size()) - 1))->first;
        scheduler.remove(id);
        wanted.erase(id);
        ++removed;
      }
      while (static_cast<int>(inFlight.size()) < stages) {
        SharedStepPlan plan = scheduler.schedule();
        if (!plan) break;
        QVERIFY(plan->tokens() <= 48);
        QVERIFY(runStep(written, *plan, 8));
        inFlight.push_back(plan);
      }
      if (inFlight.empty()) continue;
      const SharedStepPlan done = inFlight.front();
      inFlight.pop_front();
      std::vector<SequenceId> ended;
      for (const StepPlan::LogitsRow& row : done->logits) {
        Sequence* sequence = scheduler.find(done->sequences[row.sequence]);
        if (!sequence || !row.sample) continue;
        scheduler.appendToken(*sequence, draw(0, 9));
        if (--wanted[sequence->id] == 0) ended.push_back(sequence->id);
      }
      scheduler.finishStep(*done);
      for (const SequenceId id : ended) {
        scheduler.remove(id);
        wanted.erase(id);
        ++finished;
      }
    }
    QCOMPARE(finished + removed, 300);
    QCOMPARE(pool.free(), pool.total());
    QVERIFY(scheduler.preemptions() > 0);
    QCOMPARE(scheduler.prefixHits() > 0, prefixCaching);
  }
};

QTEST_GUILESS_MAIN(SchedulerTest)
#include "scheduler_test.moc"
