// SPDX-License-Identifier: Apache-2.0
// Continuous batching for one replica: which sequences compute which tokens in the next step. Host only; one thread at a time.
//
// Every step takes the running sequences first (one token each while they generate, a chunk of their prompt before that), then
// admits waiting ones by priority and arrival. When no block is free, the running sequence that is last in that order gives up
// its blocks and waits again; its tokens are computed anew later. Several steps may be in flight through the pipeline stages: a
// sequence whose next token is not yet sampled sits out, while further chunks of a prompt may follow each other.
//
// A sequence that generates may get guessed tokens beside its known one (PromptLookup). The step computes all of them; the owner
// samples after each token that turned out right, so the answer is the same as without guesses, and what was guessed wrong is
// forgotten with the step.
//
// A layer of linear attention keeps one state of a sequence, so known blocks alone do not let a prompt go on behind them: a copy
// of the state is needed too. Copies are made where a prompt leaves a known prefix, behind its last full block, and block by
// block while it generates; the steps of a prompt end there.
#pragma once

#include "engine/schedule/block_pool.h"
#include "engine/schedule/prompt_lookup.h"
#include "engine/schedule/state_cache.h"
#include "engine/schedule/step_plan.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace headroom::engine {

struct SchedulerLimits {
  int64_t maxNumSeqs = 16;            // sequences that hold blocks at the same time, and in one step
  int64_t maxNumBatchedTokens = 512;  // tokens of one step
  int64_t stages = 1;                 // pipeline stages: steps that are in flight together
  int64_t draftTokens = 0;            // guessed at most for one sequence in a step; 0: none
  int64_t cachedStates =
      0;  // copies of states that the prefix cache keeps, in the slots behind maxNumSeqs; 0: the model has no states
};

// What the scheduler knows of a request.
struct Sequence {
  SequenceId id{};
  int priority = 0;  // lower first
  uint64_t arrival = 0;
  std::vector<int32_t> tokens;  // prompt and what was generated
  int64_t promptTokens = 0;
  int64_t mostTokens = 0;       // of prompt and answer; 0: not known, and nothing is guessed
  bool promptLogprobs = false;  // the logits of every prompt row are wanted
  enum class Hidden : uint8_t { None, Last, All };
  Hidden hidden = Hidden::None;  // rows of the prompt whose hidden states are wanted, in place of logits and tokens
  // They went out with the first token; a prompt that is computed anew behind it has them no more.
  bool wantsPromptRows() const { return promptLogprobs && static_cast<int64_t>(tokens.size()) <= promptTokens; }
  // Rows that are wanted must be computed: the prefix cache is of no use.
  bool skipsCache() const { return wantsPromptRows() || hidden == Hidden::All; }
  // ---- the scheduler's own
  std::vector<BlockId> blocks;
  std::vector<BlockHash> hashes;   // of the full blocks that are published
  int64_t scheduled = 0;           // tokens given to steps
  int64_t computed = 0;            // tokens of finished steps
  int64_t cachedPromptTokens = 0;  // found in the prefix cache when it was last admitted
  int inFlight = 0;                // steps
  bool running = false;
  int32_t stateSlot = -1;          // one of maxNumSeqs, while it runs
  int32_t loadFrom = -1;           // the slot with the state that its next step begins with
  int64_t knownTokens = 0;         // in known blocks when it was admitted, with a state behind them or not
  struct StateCopy {
    StateCache::Taken taken;
    int64_t tokens = 0;  // before the state
  };
  std::vector<StateCopy> stateCopies;            // that steps in flight make
  std::optional<StateCache::Taken> latestState;  // the last copy while it generates, which the next one replaces
  PromptLookup lookup;
  std::vector<int32_t> draft;  // guessed tokens behind `tokens` that the step in flight computes
  bool awaitingToken = false;  // its last known token is in flight: nothing to compute until the sample is back
};

// Guesses of all sequences so far, as vLLM counts them.
struct DraftFigures {
  uint64_t drafts = 0, draftTokens = 0, acceptedTokens = 0;
  std::vector<uint64_t> acceptedAt;  // by place in the draft
};

class Scheduler {
 public:
  // Tokens that a copy of a state must save.
  static constexpr int64_t kLeastCachedState = 64;
  // Rows of a step beyond which nothing more is guessed: a row costs little only while the weights' way from memory takes
  // longest.
  static constexpr int64_t kRowsWithDrafts = 16;

  Scheduler(SchedulerLimits limits, BlockPool& pool);

  void add(std::shared_ptr<Sequence> sequence);
  // Takes it out and frees its blocks at once: steps run in order on every rank, so later owners of the blocks write after it.
  void remove(SequenceId id);

  // The next step, or null when nothing can be computed now.
  SharedStepPlan schedule();
  // The step is done on the last stage. Sequences that were removed meanwhile are passed over. `appendToken` is called by the
  // owner before this for sequences that got a token.
  void finishStep(const StepPlan& plan);
  // A sampled token of a live sequence.
  void appendToken(Sequence& sequence, int32_t token);

  Sequence* find(SequenceId id);
  int64_t running() const { return static_cast<int64_t>(m_running.size()); }
  int64_t waiting() const { return static_cast<int64_t>(m_waiting.size()); }
  const DraftFigures& draftFigures() const { return m_drafts; }
  uint64_t preemptions() const { return m_preemptions; }
  uint64_t prefixQueries() const { return m_prefixQueries; }  // tokens asked for
  uint64_t prefixHits() const { return m_prefixHits; }        // tokens found
  // Leading tokens of a prompt that the cache holds now.
  int64_t cachedPrefix(std::span<const int32_t> prompt) const;

 private:
  struct Order {  // by priority, then arrival
    bool operator()(const std::shared_ptr<Sequence>& a, const std::shared_ptr<Sequence>& b) const {
      return a->priority != b->priority ? a->priority < b->priority : a->arrival < b->arrival;
    }
  };
  using Queue = std::set<std::shared_ptr<Sequence>, Order>;

  bool reserve(Sequence& sequence, int64_t tokens, const StepPlan& plan);
  bool preemptFor(const Sequence& sequence, const StepPlan& plan);
  void giveUpBlocks(Sequence& sequence);
  void setRunning(Sequence& sequence, bool running);
  void admitFromCache(Sequence& sequence);
  std::vector<BlockHash> knownBlocks(std::span<const int32_t> tokens) const;
  size_t withState(std::span<const BlockHash> blocks) const;
  int64_t nextStateCopy(const Sequence& sequence) const;
  void keepState(StepPlan& plan, Sequence& sequence);
  void guess(Sequence& sequence, int64_t rowsLeft);
  void append(StepPlan& plan, Sequence& sequence, int64_t count);

  SchedulerLimits m_limits;
  BlockPool* m_pool;
  StateCache m_states;
  std::map<SequenceId, std::shared_ptr<Sequence>> m_sequences;
  Queue m_running, m_waiting;
  std::vector<int32_t> m_freeSlots;  // the next to be given last
  DraftFigures m_drafts;
  uint64_t m_step = 0, m_preemptions = 0, m_prefixQueries = 0, m_prefixHits = 0;
};

}  // namespace headroom::engine
