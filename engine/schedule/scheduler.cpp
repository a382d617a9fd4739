// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/scheduler.h"

#include "core/result.h"
#include "core/units.h"

#include <algorithm>
#include <utility>

namespace headroom::engine {

namespace {

// Prompt tokens of one step while others generate, so that their next tokens do not wait long for a long prompt.
constexpr int64_t kChunkBesideDecodes = 128;

}  // namespace

Scheduler::Scheduler(SchedulerLimits limits, BlockPool& pool)
    : m_limits(limits),
      m_pool(&pool),
      m_states(static_cast<int32_t>(limits.maxNumSeqs), pool.prefixCaching() ? limits.cachedStates : 0) {
  for (int64_t slot = limits.maxNumSeqs; slot-- > 0;) m_freeSlots.push_back(static_cast<int32_t>(slot));
}

// A sequence that runs has a slot for its state; the next owner begins at position 0, behind all steps of the last one.
void Scheduler::setRunning(Sequence& sequence, bool running) {
  if (sequence.running == running) return;
  sequence.running = running;
  if (running) {
    expects(!m_freeSlots.empty(), "more sequences run than there are slots");
    sequence.stateSlot = m_freeSlots.back();
    m_freeSlots.pop_back();
  } else {
    m_freeSlots.push_back(std::exchange(sequence.stateSlot, -1));
  }
}

void Scheduler::add(std::shared_ptr<Sequence> sequence) {
  expects(!sequence->tokens.empty() && sequence->promptTokens > 0, "a sequence begins with at least one token");
  m_sequences.emplace(sequence->id, sequence);
  m_waiting.insert(std::move(sequence));
}

Sequence* Scheduler::find(SequenceId id) {
  const auto found = m_sequences.find(id);
  return found == m_sequences.end() ? nullptr : found->second.get();
}

void Scheduler::remove(SequenceId id) {
  const auto found = m_sequences.find(id);
  if (found == m_sequences.end()) return;
  const std::shared_ptr<Sequence> sequence = found->second;
  (sequence->running ? m_running : m_waiting).erase(sequence);
  setRunning(*sequence, false);
  giveUpBlocks(*sequence);
  m_sequences.erase(found);
}

void Scheduler::giveUpBlocks(Sequence& sequence) {
  sequence.draft.clear();
  // The last block first: a prefix stays useful longest at its beginning.
  for (auto block = sequence.blocks.rbegin(); block != sequence.blocks.rend(); ++block) m_pool->release(*block);
  sequence.blocks.clear();
  sequence.hashes.clear();
  sequence.scheduled = sequence.computed = 0;
  sequence.loadFrom = -1;
  sequence.knownTokens = 0;
  sequence.stateCopies.clear();
  sequence.latestState.reset();
}

// The leading full blocks that the pool knows. At least one token is left to compute, or there would be no logits to sample from.
std::vector<BlockHash> Scheduler::knownBlocks(std::span<const int32_t> tokens) const {
  const int64_t blockTokens = m_pool->blockTokens(), most = (static_cast<int64_t>(tokens.size()) - 1) / blockTokens;
  std::vector<BlockHash> known;
  for (int64_t block = 0; block < most; ++block) {
    const BlockHash hash =
        hashBlock(known.empty() ? BlockHash{} : known.back(), tokens.subspan(block * blockTokens, blockTokens));
    if (!m_pool->contains(hash)) break;
    known.push_back(hash);
  }
  return known;
}

// How many of these blocks a sequence can go on behind.
size_t Scheduler::withState(std::span<const BlockHash> blocks) const {
  size_t count = blocks.size();
  if (m_limits.cachedStates > 0)
    while (count > 0 && !m_states.contains(blocks[count - 1])) --count;
  return count;
}

int64_t Scheduler::cachedPrefix(std::span<const int32_t> prompt) const {
  if (!m_pool->prefixCaching() || prompt.empty()) return 0;
  return static_cast<int64_t>(withState(knownBlocks(prompt))) * m_pool->blockTokens();
}

void Scheduler::admitFromCache(Sequence& sequence) {
  sequence.cachedPromptTokens = 0;
  if (!m_pool->prefixCaching() || sequence.skipsCache()) return;
  sequence.hashes = knownBlocks(sequence.tokens);
  sequence.knownTokens = static_cast<int64_t>(sequence.hashes.size()) * m_pool->blockTokens();
  sequence.hashes.resize(withState(sequence.hashes));
  for (const BlockHash& hash : sequence.hashes) sequence.blocks.push_back(m_pool->acquire(hash).value());
  if (!m_states.empty() && !sequence.hashes.empty()) sequence.loadFrom = m_states.find(sequence.hashes.back()).value();
  sequence.computed = static_cast<int64_t>(sequence.blocks.size()) * m_pool->blockTokens();
  sequence.scheduled = sequence.computed;
  sequence.cachedPromptTokens = std::min(sequence.computed, sequence.promptTokens);
}

// Where the next copy of a state is due while several tokens are left: a step ends there. 0: nowhere.
int64_t Scheduler::nextStateCopy(const Sequence& sequence) const {
  if (m_states.empty()) return 0;
  const int64_t blockTokens = m_pool->blockTokens(),
                last = (static_cast<int64_t>(sequence.tokens.size()) - 1) / blockTokens * blockTokens;
  const int64_t least = std::max(sequence.scheduled, sequence.cachedPromptTokens + kLeastCachedState - 1);
  if (sequence.knownTokens > least) return sequence.knownTokens;
  return last > least ? last : 0;
}

// Its state behind this step, for others that begin like it.
void Scheduler::keepState(StepPlan& plan, Sequence& sequence) {
  const bool generates = sequence.scheduled >= sequence.promptTokens;
  const StateCache::Taken taken = m_states.take(generates ? sequence.latestState : std::nullopt);
  if (generates) sequence.latestState = taken;
  sequence.stateCopies.push_back({taken, sequence.scheduled});
  plan.stateSaves.push_back({sequence.stateSlot, taken.slot});
}

bool Scheduler::preemptFor(const Sequence& sequence, const StepPlan& plan) {
  for (auto candidate = m_running.rbegin(); candidate != m_running.rend(); ++candidate) {
    Sequence& victim = **candidate;
    if (&victim == &sequence) return false;  // nobody behind it can give way
    if (victim.inFlight > 0 || victim.blocks.empty()) continue;
    if (std::find(plan.sequences.begin(), plan.sequences.end(), victim.id) != plan.sequences.end()) continue;
    const std::shared_ptr<Sequence> kept = *candidate;
    m_running.erase(kept);
    giveUpBlocks(victim);
    setRunning(victim, false);
    m_waiting.insert(kept);
    ++m_preemptions;
    return true;
  }
  return false;
}

bool Scheduler::reserve(Sequence& sequence, int64_t tokens, const StepPlan& plan) {
  const int64_t needed = ceilDiv(sequence.scheduled + tokens, m_pool->blockTokens());
  while (static_cast<int64_t>(sequence.blocks.size()) < needed) {
    if (const std::optional<BlockId> block = m_pool->allocate()) {
      sequence.blocks.push_back(*block);
    } else if (!preemptFor(sequence, plan)) {
      return false;
    }
  }
  return true;
}

// Tokens for the positions behind the last known one, where memory has room: nobody gives way to a guess.
void Scheduler::guess(Sequence& sequence, int64_t rowsLeft) {
  const int64_t known = static_cast<int64_t>(sequence.tokens.size()), blockTokens = m_pool->blockTokens();
  if (m_limits.draftTokens <= 0 || sequence.mostTokens <= 0) return;
  int64_t room = static_cast<int64_t>(sequence.blocks.size()) * blockTokens - known;
  if (room < m_limits.draftTokens && m_pool->free() > running()) room += blockTokens;
  // The last of the answer is sampled and never computed.
  const int64_t most = std::min({m_limits.draftTokens, rowsLeft, sequence.mostTokens - known - 1, room});
  sequence.lookup.propose(sequence.tokens, most, sequence.draft);
}

void Scheduler::append(StepPlan& plan, Sequence& sequence, int64_t count) {
  const int64_t blockTokens = m_pool->blockTokens();
  const auto index = static_cast<int32_t>(plan.sequences.size());
  plan.sequences.push_back(sequence.id);
  plan.stateSlots.push_back(sequence.stateSlot);
  if (sequence.loadFrom >= 0) plan.stateLoads.push_back({std::exchange(sequence.loadFrom, -1), sequence.stateSlot});
  const bool keepsState =
      !m_states.empty() && sequence.scheduled + count >= kLeastCachedState && (sequence.scheduled + count) % blockTokens == 0 &&
      (sequence.scheduled + count >= sequence.promptTokens || sequence.scheduled + count == nextStateCopy(sequence));
  for (int64_t position = sequence.scheduled; position < sequence.scheduled + count; ++position) {
    const auto row = static_cast<int32_t>(plan.tokenIds.size());
    const auto known = static_cast<int64_t>(sequence.tokens.size());
    plan.tokenIds.push_back(position < known ? sequence.tokens[position] : sequence.draft[position - known]);
    plan.positions.push_back(static_cast<int32_t>(position));
    plan.slots.push_back(static_cast<int32_t>(sequence.blocks[position / blockTokens] * blockTokens + position % blockTokens));
    const bool last = position + 1 >= known;
    // After a preemption in the middle of the prompt its logprobs are asked for again and replace the first ones.
    const bool promptRow = sequence.wantsPromptRows() && position + 1 < sequence.promptTokens;
    if (sequence.hidden != Sequence::Hidden::None) {
      if (last || sequence.hidden == Sequence::Hidden::All)
        plan.logits.push_back({row, index, false, static_cast<int32_t>(position), true});
    } else if (last || promptRow)
      plan.logits.push_back({row, index, last, promptRow ? static_cast<int32_t>(position) : -1, false});
  }
  sequence.scheduled += count;
  sequence.awaitingToken = sequence.scheduled >= static_cast<int64_t>(sequence.tokens.size());
  if (keepsState) keepState(plan, sequence);
  ++sequence.inFlight;
  plan.sequenceStart.push_back(static_cast<int32_t>(plan.tokenIds.size()));
  plan.contextLength.push_back(static_cast<int32_t>(sequence.scheduled));
}

SharedStepPlan Scheduler::schedule() {
  auto plan = std::make_shared<StepPlan>();
  plan->sequenceStart.push_back(0);
  // With stages, the work is divided so that each has a step of its own.
  int64_t budget = m_limits.maxNumBatchedTokens;
  int64_t seats = m_limits.maxNumSeqs;
  if (m_limits.stages > 1) {
    const int64_t active = std::min(running() + waiting(), m_limits.maxNumSeqs);
    seats = std::max<int64_t>(1, ceilDiv(active, m_limits.stages));
    budget = std::min(budget, std::max<int64_t>(std::max<int64_t>(128, seats), budget / m_limits.stages));
  }

  bool decodes = false;
  for (const auto& sequence : m_running) decodes |= sequence->scheduled + 1 >= static_cast<int64_t>(sequence->tokens.size());
  int64_t promptBudget = decodes ? std::min(budget, kChunkBesideDecodes) : budget;

  // Preemption changes m_running, so its order is taken once; who was preempted meanwhile is passed over.
  const uint64_t preemptionsBefore = m_preemptions;
  std::vector<std::shared_ptr<Sequence>> order(m_running.begin(), m_running.end());
  // Those that generate come before chunks of prompts, so that a long prompt never takes their place in the step.
  std::stable_partition(order.begin(), order.end(),
                        [](const auto& s) { return s->scheduled + 1 >= static_cast<int64_t>(s->tokens.size()); });
  int64_t generating = 0;
  for (const auto& sequence : order)
    generating += !sequence->awaitingToken && sequence->scheduled + 1 >= static_cast<int64_t>(sequence->tokens.size());
  int64_t guesses = std::max<int64_t>(0, std::min(kRowsWithDrafts, budget) - generating);
  auto take = [&](Sequence& sequence) {
    const int64_t left = static_cast<int64_t>(sequence.tokens.size()) - sequence.scheduled;
    const bool decode = left == 1 && sequence.scheduled >= sequence.promptTokens;
    int64_t count = std::min(left, decode ? budget : std::min(budget, promptBudget));
    if (count <= 0 || seats <= 0) return false;
    if (const int64_t due = nextStateCopy(sequence); due > sequence.scheduled) count = std::min(count, due - sequence.scheduled);
    if (!reserve(sequence, count, *plan)) return false;
    if (decode) {
      guess(sequence, guesses);
      if (!reserve(sequence, count + static_cast<int64_t>(sequence.draft.size()), *plan)) sequence.draft.clear();
      guesses -= static_cast<int64_t>(sequence.draft.size());
      count += static_cast<int64_t>(sequence.draft.size());
    }
    append(*plan, sequence, count);
    budget -= count;
    if (!decode) promptBudget -= count;
    --seats;
    return true;
  };
  for (const auto& sequence : order) {
    if (sequence->running && !sequence->awaitingToken) take(*sequence);
  }
  while (m_preemptions == preemptionsBefore && seats > 0 && budget > 0 && promptBudget > 0 && !m_waiting.empty() &&
         running() < m_limits.maxNumSeqs) {
    const std::shared_ptr<Sequence> next = *m_waiting.begin();
    admitFromCache(*next);
    const int64_t found = next->computed;
    m_waiting.erase(next);
    setRunning(*next, true);
    m_running.insert(next);
    // Newcomers do not push others out: they wait until there is room.
    const int64_t left = static_cast<int64_t>(next->tokens.size()) - next->scheduled;
    const int64_t count = std::min({left, budget, promptBudget});
    const int64_t needed = ceilDiv(next->scheduled + count, m_pool->blockTokens()) - static_cast<int64_t>(next->blocks.size());
    if (needed > m_pool->free() || !take(*next)) {
      m_running.erase(next);
      setRunning(*next, false);
      giveUpBlocks(*next);
      m_waiting.insert(next);
      break;
    }
    if (m_pool->prefixCaching() && !next->skipsCache()) {
      m_prefixQueries += next->tokens.size();
      m_prefixHits += static_cast<uint64_t>(found);
    }
  }
  if (plan->sequences.empty()) return nullptr;

  plan->step = ++m_step;
  for (const SequenceId id : plan->sequences) {
    plan->blocksPerSequence = std::max(plan->blocksPerSequence, static_cast<int64_t>(m_sequences.at(id)->blocks.size()));
  }
  plan->blockTable.resize(plan->sequences.size() * plan->blocksPerSequence);
  for (size_t i = 0; i < plan->sequences.size(); ++i) {
    const std::vector<BlockId>& blocks = m_sequences.at(plan->sequences[i])->blocks;
    std::copy(blocks.begin(), blocks.end(), plan->blockTable.begin() + static_cast<int64_t>(i) * plan->blocksPerSequence);
  }
  return plan;
}

void Scheduler::appendToken(Sequence& sequence, int32_t token) {
  sequence.tokens.push_back(token);
  sequence.awaitingToken = false;
}

void Scheduler::finishStep(const StepPlan& plan) {
  const int64_t blockTokens = m_pool->blockTokens();
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    Sequence* sequence = find(plan.sequences[i]);
    if (!sequence) continue;
    --sequence->inFlight;
    if (sequence->draft.empty()) {
      sequence->computed = std::max<int64_t>(sequence->computed, plan.contextLength[i]);
    } else {  // wrong guesses are computed anew where they stand
      const auto drafted = static_cast<int64_t>(sequence->draft.size());
      const int64_t before = plan.contextLength[i] - drafted;  // the known tokens of that step
      const int64_t accepted = std::clamp<int64_t>(static_cast<int64_t>(sequence->tokens.size()) - 1 - before, 0, drafted);
      sequence->computed = sequence->scheduled = before + accepted;
      sequence->lookup.learn(drafted, accepted);
      sequence->draft.clear();
      ++m_drafts.drafts;
      m_drafts.draftTokens += static_cast<uint64_t>(drafted);
      m_drafts.acceptedTokens += static_cast<uint64_t>(accepted);
      m_drafts.acceptedAt.resize(static_cast<size_t>(std::max(m_limits.draftTokens, drafted)));
      for (int64_t place = 0; place < accepted; ++place) ++m_drafts.acceptedAt[static_cast<size_t>(place)];
    }
    if (!m_pool->prefixCaching()) continue;
    while (static_cast<int64_t>(sequence->hashes.size() + 1) * blockTokens <= sequence->computed) {
      const auto index = static_cast<int64_t>(sequence->hashes.size());
      const BlockHash parent = index == 0 ? BlockHash{} : sequence->hashes.back();
      sequence->hashes.push_back(hashBlock(parent, std::span(sequence->tokens).subspan(index * blockTokens, blockTokens)));
      m_pool->publish(sequence->blocks[index], sequence->hashes.back());
    }
    std::erase_if(sequence->stateCopies, [&](const Sequence::StateCopy& copy) {
      if (copy.tokens > sequence->computed) return false;
      m_states.publish(copy.taken, sequence->hashes[static_cast<size_t>(copy.tokens / blockTokens) - 1]);
      return true;
    });
  }
}

}  // namespace headroom::engine
