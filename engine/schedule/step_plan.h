// SPDX-License-Identifier: Apache-2.0
// What all ranks of a replica do in one step. Made by the scheduler, shared const by the ranks.
#pragma once

#include "engine/device/row_sampling.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace headroom::engine {

enum class SequenceId : uint64_t {};

struct StepPlan {
  uint64_t step = 0;
  // One entry a token of the batch.
  std::vector<int32_t> tokenIds, positions, slots;  // slot = block * blockTokens + offset
  // One entry a sequence (sequenceStart one more).
  std::vector<SequenceId> sequences;
  std::vector<int32_t> sequenceStart, contextLength;
  std::vector<int32_t> stateSlots;                  // where each sequence's state of linear attention lies
  struct StateCopy {
    int32_t from = 0, to = 0;  // slots
  };
  std::vector<StateCopy> stateLoads, stateSaves;    // of whole slots, before the layers and behind them
  std::vector<int32_t> blockTable;                  // (sequences, blocksPerSequence), row-major
  int64_t blocksPerSequence = 0;
  // Rows of the batch whose logits are wanted, ascending, and what for. Of rows with `hidden` the states behind the last norm are
  // wanted, and no logits.
  struct LogitsRow {
    int32_t row = 0;
    int32_t sequence = 0;   // index into sequences
    bool sample = false;    // the sequence's last token: sample the next one
    int32_t promptPosition = -1;  // >= 0: prompt logprobs of the token after this position
    bool hidden = false;
  };
  std::vector<LogitsRow> logits;
  int64_t tokens() const { return static_cast<int64_t>(tokenIds.size()); }
};

using SharedStepPlan = std::shared_ptr<const StepPlan>;

// Takes the logits of a step. Called on the thread of the last stage's rank 0, chunk by chunk in order, then stepDone on that thread.
class LogitsConsumer {
 public:
  virtual ~LogitsConsumer() = default;
  // logits: (rows, vocab) F32 on the host, for plan.logits[firstRow … firstRow + rows). May be modified in place.
  virtual void takeLogits(const StepPlan& plan, int64_t firstRow, int64_t rows, float* logits, int64_t vocab) = 0;
  // hidden: (rows, hiddenSize) F32 on the host, for rows that want these.
  virtual void takeHidden([[maybe_unused]] const StepPlan& plan, [[maybe_unused]] int64_t firstRow, [[maybe_unused]] int64_t rows,
                          [[maybe_unused]] const float* hidden, [[maybe_unused]] int64_t hiddenSize) {}
  virtual void stepDone(const SharedStepPlan& plan) = 0;

  // Where the device samples: how, one entry for each of these rows, so that tokens come in place of logits. Empty: takeLogits for all of them.
  virtual std::vector<RowSampling> deviceSampling([[maybe_unused]] const StepPlan& plan, [[maybe_unused]] int64_t firstRow, [[maybe_unused]] int64_t rows,
                                                  [[maybe_unused]] int64_t vocab) {
    return {};
  }
  // What the device chose for these rows, before the takeLogits of those that wanted logits, whose tokens here say nothing. -1: no token was left.
  virtual void takeTokens([[maybe_unused]] const StepPlan& plan, [[maybe_unused]] int64_t firstRow, [[maybe_unused]] std::span<const int32_t> tokens) {}
};

}  // namespace headroom::engine
