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

// What the ranks would do: keep the token of every slot, and check that a step finds in its blocks what was written for each
// sequence.
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

// A state knows the tokens that went through it: a step must find in its slot those before its own, or begin anew.
using WrittenStates = std::map<int32_t, std::vector<int32_t>>;  // slot -> tokens

bool runStates(WrittenStates& states, const StepPlan& plan) {
  for (const StepPlan::StateCopy& copy : plan.stateLoads) states[copy.to] = states[copy.from];
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    std::vector<int32_t>& state = states[plan.stateSlots[i]];
    const int32_t begin = plan.sequenceStart[i], end = plan.sequenceStart[i + 1], before = plan.contextLength[i] - (end - begin);
    if (before == 0) state.clear();
    if (static_cast<int32_t>(state.size()) != before) return false;
    state.insert(state.end(), plan.tokenIds.begin() + begin, plan.tokenIds.begin() + end);
  }
  for (const StepPlan::StateCopy& copy : plan.stateSaves) states[copy.to] = states[copy.from];
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

  // A prompt's first step ends behind its last full block, where a copy of the state is kept; the same prompt goes on from there.
  void goesOnBehindAKnownPrefixOnlyWithAStateOfIt() {
    BlockPool pool(64, 16, true);
    Scheduler scheduler({4, 512, 1, 0, 2}, pool);
    scheduler.add(sequenceOf(1, 200));
    const SharedStepPlan first = scheduler.schedule();
    QCOMPARE(first->tokens(), 192);
    QVERIFY(first->logits.empty());
    QCOMPARE(first->stateSaves.size(), 1u);
    QCOMPARE(first->stateSaves[0].from, first->stateSlots[0]);
    QVERIFY(first->stateSaves[0].to >= 4);  // behind those of running sequences
    scheduler.finishStep(*first);
    const SharedStepPlan rest = scheduler.schedule();
    QCOMPARE(rest->tokens(), 8);
    QVERIFY(rest->stateSaves.empty());
    scheduler.finishStep(*rest);
    scheduler.remove(SequenceId{1});

    scheduler.add(sequenceOf(2, 200));
    const SharedStepPlan again = scheduler.schedule();
    QCOMPARE(again->tokens(), 8);
    QCOMPARE(again->stateLoads.size(), 1u);
    QCOMPARE(again->stateLoads[0].from, first->stateSaves[0].to);
    QCOMPARE(again->stateLoads[0].to, again->stateSlots[0]);
    QCOMPARE(scheduler.prefixHits(), 192u);
    QCOMPARE(scheduler.cachedPrefix(scheduler.find(SequenceId{2})->tokens), 192);
  }

  // A prompt that leaves a known prefix has no state of it yet, and keeps one there for those that come.
  void keepsAStateWhereAPromptLeavesAKnownPrefix() {
    BlockPool pool(64, 16, true);
    Scheduler scheduler({4, 512, 1, 0, 4}, pool);
    auto prompt = [](uint64_t id) {
      auto sequence = sequenceOf(id, 200);
      std::fill(sequence->tokens.begin() + 100, sequence->tokens.end(), 1000 + static_cast<int32_t>(id));
      return sequence;
    };
    auto compute = [&](uint64_t id) {
      scheduler.add(prompt(id));
      std::vector<int64_t> steps;
      while (scheduler.find(SequenceId{id})->computed < 200) {
        const SharedStepPlan plan = scheduler.schedule();
        steps.push_back(plan->tokens());
        scheduler.finishStep(*plan);
      }
      scheduler.remove(SequenceId{id});
      return steps;
    };
    QCOMPARE(compute(1), (std::vector<int64_t>{192, 8}));
    QCOMPARE(scheduler.cachedPrefix(prompt(2)->tokens), 0);
    QCOMPARE(compute(2), (std::vector<int64_t>{96, 96, 8}));
    QCOMPARE(scheduler.cachedPrefix(prompt(3)->tokens), 96);
    QCOMPARE(compute(3), (std::vector<int64_t>{96, 8}));
    QCOMPARE(compute(1), (std::vector<int64_t>{8}));
  }

  // The next turn of a conversation begins with this one's prompt and answer.
  void keepsTheStateOfAnAnswerBlockByBlock() {
    BlockPool pool(64, 16, true);
    Scheduler scheduler({4, 512, 1, 0, 2}, pool);
    scheduler.add(sequenceOf(1, 80));
    std::vector<int32_t> tokens, saved;
    while (scheduler.find(SequenceId{1})->tokens.size() < 120) {
      const SharedStepPlan plan = scheduler.schedule();
      for (const StepPlan::StateCopy& copy : plan->stateSaves) saved.push_back(copy.to);
      if (!plan->logits.empty()) scheduler.appendToken(*scheduler.find(SequenceId{1}), 7);
      scheduler.finishStep(*plan);
    }
    tokens = scheduler.find(SequenceId{1})->tokens;
    scheduler.remove(SequenceId{1});
    QCOMPARE(saved.size(), 4u);  // behind 64, 80, 96 and 112 tokens
    QVERIFY(saved[0] != saved[1]);
    QCOMPARE(saved[2], saved[1]);
    QCOMPARE(saved[3], saved[1]);
    QCOMPARE(scheduler.cachedPrefix(tokens), 112);
    tokens.resize(80);
    QCOMPARE(scheduler.cachedPrefix(tokens), 64);
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

  // They went out with the first token: computed anew, the prompt's rows are of no more use, and the cache is.
  void asksNoPromptLogprobsAgainAfterTheFirstToken() {
    BlockPool pool(4, 16, true);
    Scheduler scheduler({4, 512, 1}, pool);
    scheduler.add(sequenceOf(1, 31));
    auto second = sequenceOf(2, 31);
    second->promptLogprobs = true;
    scheduler.add(second);
    SharedStepPlan plan = scheduler.schedule();
    QCOMPARE(plan->logits.size(), 32u);
    for (int i = 0; i < 2; ++i) {
      for (const SequenceId id : plan->sequences) scheduler.appendToken(*scheduler.find(id), 7);
      scheduler.finishStep(*plan);
      plan = scheduler.schedule();
    }
    QCOMPARE(scheduler.preemptions(), 1u);
    scheduler.remove(SequenceId{1});
    plan = scheduler.schedule();
    QCOMPARE(plan->sequences, (std::vector<SequenceId>{SequenceId{2}}));
    QCOMPARE(plan->logits.size(), 1u);
    QVERIFY(plan->logits[0].sample);
    QCOMPARE(plan->logits[0].promptPosition, -1);
    QCOMPARE(plan->tokens(), 1);  // of 33: both full blocks were still in the cache
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

  // The owner takes one token of a draft more than were right; the next step goes on behind them, whatever the wrong ones left.
  void computesGuessesBesideTheKnownToken() {
    BlockPool pool(64, 4, true);
    Scheduler scheduler({4, 512, 1, 8}, pool);
    auto sequence = sequenceOf(1, 0);
    for (int32_t token : {1, 2, 3, 4, 5, 6, 1, 2}) sequence->tokens.push_back(token);
    sequence->promptTokens = 8;
    sequence->mostTokens = 20;
    scheduler.add(sequence);
    SharedStepPlan plan = scheduler.schedule();
    QCOMPARE(plan->tokens(), 8);  // nothing is guessed beside a prompt
    scheduler.appendToken(*sequence, 3);
    scheduler.finishStep(*plan);

    plan = scheduler.schedule();
    QCOMPARE(plan->tokenIds, (std::vector<int32_t>{3, 4, 5}));
    QCOMPARE(plan->positions, (std::vector<int32_t>{8, 9, 10}));
    QCOMPARE(plan->contextLength, (std::vector<int32_t>{11}));
    QCOMPARE(plan->logits.size(), 3u);
    for (int32_t row = 0; row < 3; ++row) QVERIFY(plan->logits[row].sample && plan->logits[row].row == row);
    QVERIFY(!scheduler.schedule());
    scheduler.appendToken(*sequence, 4);  // right
    scheduler.appendToken(*sequence, 9);  // in place of 5
    scheduler.finishStep(*plan);
    QCOMPARE(sequence->computed, 10);

    plan = scheduler.schedule();
    QCOMPARE(plan->tokenIds, (std::vector<int32_t>{9}));  // known nowhere else
    QCOMPARE(plan->positions, (std::vector<int32_t>{10}));
    QCOMPARE(plan->contextLength, (std::vector<int32_t>{11}));
    scheduler.appendToken(*sequence, 7);
    scheduler.finishStep(*plan);
    const DraftFigures& figures = scheduler.draftFigures();
    QCOMPARE(figures.drafts, 1u);
    QCOMPARE(figures.draftTokens, 2u);
    QCOMPARE(figures.acceptedTokens, 1u);
    QCOMPARE(figures.acceptedAt.at(0), 1u);
    QCOMPARE(figures.acceptedAt.at(1), 0u);
  }

  void guessesNoFurtherThanTheAnswerAndTheRowsGo() {
    BlockPool pool(64, 4, false);
    Scheduler scheduler({20, 512, 1, 8}, pool);
    std::vector<std::shared_ptr<Sequence>> all;
    for (uint64_t id = 1; id <= 15; ++id) {
      all.push_back(sequenceOf(id, 0));
      all.back()->tokens = {1, 1, 1, 1, 1, 1};
      all.back()->promptTokens = 6;
      all.back()->mostTokens = id == 1 ? 8 : 100;
      scheduler.add(all.back());
    }
    SharedStepPlan plan = scheduler.schedule();
    for (auto& sequence : all) scheduler.appendToken(*sequence, 1);
    scheduler.finishStep(*plan);
    plan = scheduler.schedule();
    QCOMPARE(plan->tokens(), Scheduler::kRowsWithDrafts);
    QCOMPARE(tokensPerSequence(*plan).front(), 1);  // its last token is sampled, and never computed
  }

  // A random load on few blocks: every sequence gets all its tokens, every step reads what was written for it, all blocks come
  // back.
  void survivesAnyLoad_data() {
    QTest::addColumn<int>("stages");
    QTest::addColumn<bool>("prefixCaching");
    QTest::addColumn<int>("draftTokens");
    QTest::addColumn<int>("cachedStates");
    QTest::newRow("one stage") << 1 << false << 0 << 0;
    QTest::newRow("one stage, prefix cache") << 1 << true << 0 << 0;
    QTest::newRow("three stages, prefix cache") << 3 << true << 0 << 0;
    QTest::newRow("guesses") << 1 << false << 8 << 0;
    QTest::newRow("guesses, three stages, prefix cache") << 3 << true << 8 << 0;
    QTest::newRow("states") << 1 << true << 0 << 6;
    QTest::newRow("states, three stages") << 3 << true << 0 << 6;
    QTest::newRow("states, one copy") << 3 << true << 0 << 1;
  }
  void survivesAnyLoad() {
    QFETCH(int, stages);
    QFETCH(bool, prefixCaching);
    QFETCH(int, draftTokens);
    QFETCH(int, cachedStates);
    std::mt19937 random(7);
    auto draw = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
    BlockPool pool(24, 8, prefixCaching);
    Scheduler scheduler({6, 48, stages, draftTokens, cachedStates}, pool);
    WrittenSlots written;
    WrittenStates states;
    std::map<SequenceId, int> wanted;
    std::deque<SharedStepPlan> inFlight;
    uint64_t next = 1;
    int finished = 0, removed = 0;
    for (int round = 0; round < 20000 && finished + removed < 300; ++round) {
      if (next <= 300 && draw(0, 3) == 0) {
        auto sequence = sequenceOf(next, draw(1, 120), draw(0, 1), draw(0, 3) * 1000);
        const int answer = draw(1, 60);
        sequence->mostTokens = sequence->promptTokens + answer;
        scheduler.add(std::move(sequence));
        wanted[SequenceId{next++}] = answer;
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
        if (cachedStates > 0) {
          QVERIFY(runStates(states, *plan));
          for (size_t i = 0; i < plan->sequences.size(); ++i) {
            const std::vector<int32_t>& state = states.at(plan->stateSlots[i]);
            const std::vector<int32_t>& tokens = scheduler.find(plan->sequences[i])->tokens;
            QVERIFY(state.size() <= tokens.size() && std::equal(state.begin(), state.end(), tokens.begin()));
          }
        }
        inFlight.push_back(plan);
      }
      if (inFlight.empty()) continue;
      const SharedStepPlan done = inFlight.front();
      inFlight.pop_front();
      std::vector<SequenceId> ended;
      for (const StepPlan::LogitsRow& row : done->logits) {
        Sequence* sequence = scheduler.find(done->sequences[row.sequence]);
        if (!sequence || !row.sample) continue;
        // Behind a guess only where it was right.
        const bool guess = row.row > done->sequenceStart[row.sequence] && done->positions[row.row] >= sequence->promptTokens;
        const auto known = static_cast<int64_t>(sequence->tokens.size());
        if (guess && (done->positions[row.row] + 1 != known || sequence->tokens.back() != done->tokenIds[row.row])) continue;
        if (wanted[sequence->id] == 0) continue;
        // Mostly one token after another, so that some guesses are right.
        scheduler.appendToken(*sequence, draw(0, 7) == 0 ? draw(0, 9) : (sequence->tokens.back() + 1) % 10);
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
    const DraftFigures& figures = scheduler.draftFigures();
    QCOMPARE(figures.draftTokens > figures.acceptedTokens && figures.acceptedTokens > 100, draftTokens > 0);
    QCOMPARE(scheduler.prefixHits() > 0, prefixCaching);
  }
};

QTEST_GUILESS_MAIN(SchedulerTest)
#include "scheduler_test.moc"
