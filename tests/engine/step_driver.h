// SPDX-License-Identifier: Apache-2.0
// Drives a RankGroup by hand, without scheduler and sampler: gives each sequence its blocks, submits steps, chooses the likeliest
// token, and keeps the log probabilities of every position.
#pragma once

#include "core/model/held_weights.h"
#include "engine/model/rank_group.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

namespace headroom::engine::test {

// expected.json of a reference model.
struct ReferenceCase {
  std::vector<int32_t> prompt, greedy;
  std::vector<std::vector<std::pair<int32_t, double>>> topLogprobs;  // by position
};

inline std::vector<ReferenceCase> readReference(const std::string& path) {
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file);
  std::vector<ReferenceCase> cases;
  for (const nlohmann::json& entry : json.at("cases")) {
    ReferenceCase reference;
    reference.prompt = entry.at("prompt").get<std::vector<int32_t>>();
    reference.greedy = entry.at("greedy").get<std::vector<int32_t>>();
    reference.topLogprobs = entry.at("top_logprobs").get<std::vector<std::vector<std::pair<int32_t, double>>>>();
    cases.push_back(std::move(reference));
  }
  return cases;
}

inline EngineLimits smallLimits() {
  EngineLimits limits;
  limits.maxModelLen = 64;
  limits.maxNumSeqs = 8;
  limits.maxNumBatchedTokens = 96;
  return limits;
}

// What a sequence has come to.
struct DrivenSequence {
  std::vector<int32_t> tokens;  // prompt and answer
  int64_t promptTokens = 0, computed = 0;
  std::vector<int32_t> blocks;
  std::vector<std::vector<float>> logprobs;  // by position
  int64_t generated() const { return static_cast<int64_t>(tokens.size()) - promptTokens; }
};

class StepDriver : public LogitsConsumer {
 public:
  // Opens the model and plans a layout; group() starts the ranks.
  static Result<std::unique_ptr<StepDriver>> make(const std::string& path, int tp, int pp,
                                                  const EngineLimits& limits = smallLimits(), Bytes deviceMemory = 24_MiB,
                                                  double share = 0.9) {
    Result<ModelSource> model = openModel(path);
    if (!model) return tl::unexpected(model.error());
    auto driver = std::make_unique<StepDriver>();
    driver->model = heldByEngine(std::move(*model));
    Result<ParallelLayout> layout = makeHeadroomLayout(driver->model, tp, pp, 1);
    if (!layout) return tl::unexpected(layout.error());
    driver->layout = std::move(*layout);
    driver->limits = limits;
    driver->machine = hostMachine({tp * pp, deviceMemory});
    Result<EngineMemoryPlan> memory = planEngineMemory(driver->model, driver->layout, driver->machine, limits, share);
    if (!memory) return tl::unexpected(memory.error());
    driver->memory = std::move(*memory);
    return driver;
  }
  ~StepDriver() override { m_group.reset(); }

  void start() {
    RankGroupOptions options;
    options.threads = 1;
    options.spin = layout.worldSize() <= 2;
    options.cuda = cuda;
    if (cuda) options.device = DeviceKind::Cuda;
    RankGroup::Callbacks callbacks;
    callbacks.loadProgress = [this] { change([&] { ++progressCalls; }); };
    callbacks.loaded = [this] { change([&] { loaded = true; }); };
    callbacks.failed = [this](const Error& error) {
      change([&] {
        failure = error;
        ++failures;
      });
    };
    m_group = std::make_unique<RankGroup>(model, layout, 0, machine, limits, memory, options, *this, std::move(callbacks));
  }
  void stop() { m_group.reset(); }
  RankGroup& group() { return *m_group; }

  // False on a failure or after a minute.
  bool waitLoaded() {
    std::unique_lock lock(m_mutex);
    m_changed.wait_for(lock, std::chrono::seconds(60), [&] { return loaded || failure; });
    return loaded && !failure;
  }
  bool waitFailed(std::chrono::milliseconds atMost) {
    std::unique_lock lock(m_mutex);
    return m_changed.wait_for(lock, atMost, [&] { return failure.has_value(); });
  }
  bool waitSteps(uint64_t steps) {
    std::unique_lock lock(m_mutex);
    m_changed.wait_for(lock, std::chrono::seconds(60), [&] { return stepsDone >= steps || failure; });
    return stepsDone >= steps && !failure;
  }

  // Adds a sequence with its blocks, scattered over the cache.
  void add(const std::vector<int32_t>& prompt, int64_t newTokens) {
    DrivenSequence sequence;
    sequence.tokens = prompt;
    sequence.promptTokens = static_cast<int64_t>(prompt.size());
    const int64_t blocks = ceilDiv(sequence.promptTokens + newTokens, limits.blockTokens);
    for (int64_t i = 0; i < blocks; ++i, ++m_usedBlocks)
      sequence.blocks.push_back(static_cast<int32_t>(m_usedBlocks % 2 ? m_usedBlocks : memory.kvBlocks - 1 - m_usedBlocks));
    sequences.push_back(std::move(sequence));
  }

  // One step of the given sequences, each with `chunk` tokens at most. Every row's logits are asked for.
  SharedStepPlan plan(const std::vector<int>& members, int64_t chunk) {
    auto plan = std::make_shared<StepPlan>();
    plan->step = m_steps++;
    for (int member : members)
      plan->blocksPerSequence = std::max<int64_t>(plan->blocksPerSequence, sequences[member].blocks.size());
    plan->sequenceStart.push_back(0);
    for (int member : members) {
      DrivenSequence& sequence = sequences[member];
      const int64_t count = std::min<int64_t>(chunk, static_cast<int64_t>(sequence.tokens.size()) - sequence.computed);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t position = sequence.computed + i;
        const int32_t block = sequence.blocks[position / limits.blockTokens];
        plan->logits.push_back({static_cast<int32_t>(plan->tokenIds.size()), static_cast<int32_t>(plan->sequences.size()),
                                position + 1 == static_cast<int64_t>(sequence.tokens.size()), static_cast<int32_t>(position)});
        plan->tokenIds.push_back(sequence.tokens[position]);
        plan->positions.push_back(static_cast<int32_t>(position));
        plan->slots.push_back(static_cast<int32_t>(block * limits.blockTokens + position % limits.blockTokens));
      }
      sequence.computed += count;
      plan->sequences.push_back(static_cast<SequenceId>(member));
      plan->stateSlots.push_back(member);
      plan->sequenceStart.push_back(static_cast<int32_t>(plan->tokenIds.size()));
      plan->contextLength.push_back(static_cast<int32_t>(sequence.computed));
      for (int64_t i = 0; i < plan->blocksPerSequence; ++i)
        plan->blockTable.push_back(i < static_cast<int64_t>(sequence.blocks.size()) ? sequence.blocks[i] : -1);
    }
    return plan;
  }

  // Runs the members until each has `newTokens` tokens more than its prompt.
  bool generate(const std::vector<int>& members, int64_t newTokens, int64_t chunk) {
    for (;;) {
      std::vector<int> unfinished;
      for (int member : members)
        if (sequences[member].generated() < newTokens) unfinished.push_back(member);
      if (unfinished.empty()) return true;
      group().submit(plan(unfinished, chunk));
      if (!waitSteps(m_steps)) return false;
    }
  }
  std::vector<int> all() const {
    std::vector<int> members(sequences.size());
    std::iota(members.begin(), members.end(), 0);
    return members;
  }
  void clear() {
    sequences.clear();
    m_usedBlocks = 0;
  }

  void takeLogits(const StepPlan& plan, int64_t firstRow, int64_t rows, float* logits, int64_t vocab) override {
    for (int64_t i = 0; i < rows; ++i) {
      const StepPlan::LogitsRow& wanted = plan.logits[firstRow + i];
      DrivenSequence& sequence = sequences[static_cast<size_t>(plan.sequences[wanted.sequence])];
      const float* row = logits + i * vocab;
      const float best = *std::max_element(row, row + vocab);
      double sum = 0;
      for (int64_t token = 0; token < vocab; ++token) sum += std::exp(static_cast<double>(row[token]) - best);
      std::vector<float> logprobs(row, row + vocab);
      for (float& value : logprobs) value -= best + static_cast<float>(std::log(sum));
      sequence.logprobs.push_back(std::move(logprobs));
      if (wanted.sample) sequence.tokens.push_back(static_cast<int32_t>(std::max_element(row, row + vocab) - row));
    }
  }
  void stepDone(const SharedStepPlan&) override {
    change([&] { ++stepsDone; });
  }

  ModelSource model;
  ParallelLayout layout;
  EngineLimits limits;
  Machine machine;
  EngineMemoryPlan memory;
  std::shared_ptr<const CudaModule> cuda;  // its devices in place of host devices
  std::vector<DrivenSequence> sequences;
  // Guarded by the mutex while the group lives.
  bool loaded = false;
  int failures = 0, progressCalls = 0;
  std::optional<Error> failure;
  uint64_t stepsDone = 0;

 private:
  template <class F>
  void change(F&& apply) {
    std::lock_guard lock(m_mutex);
    apply();
    m_changed.notify_all();
  }
  std::mutex m_mutex;
  std::condition_variable m_changed;
  uint64_t m_steps = 0;
  int64_t m_usedBlocks = 0;
  std::unique_ptr<RankGroup> m_group;
};

// Empty when the sequence gave the expected tokens and log probabilities; else what differs first.
inline std::string compareWith(const ReferenceCase& reference, const DrivenSequence& sequence, double tolerance) {
  const std::vector<int32_t> greedy(sequence.tokens.begin() + sequence.promptTokens, sequence.tokens.end());
  if (greedy != reference.greedy)
    return fmt::format("tokens [{}], expected [{}]", fmt::join(greedy, " "), fmt::join(reference.greedy, " "));
  if (sequence.logprobs.size() != reference.topLogprobs.size())
    return fmt::format("{} rows of logits, expected {}", sequence.logprobs.size(), reference.topLogprobs.size());
  for (size_t position = 0; position < reference.topLogprobs.size(); ++position) {
    for (const auto& [token, logprob] : reference.topLogprobs[position]) {
      const double found = sequence.logprobs[position][token];
      if (!(std::abs(found - logprob) <= tolerance))
        return fmt::format("position {}: log probability {} of token {}, expected {}", position, found, token, logprob);
    }
  }
  return {};
}

}  // namespace headroom::engine::test
