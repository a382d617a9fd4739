// SPDX-License-Identifier: Apache-2.0
// Chooses the next token of one sequence from its logits. One sampler a sequence, with its own random numbers, so that batch mates do not matter.
//
// Order of the steps, as vLLM has it: log probabilities are read from the untouched logits; then the constraint's mask, logit bias, minimum length, penalties, temperature,
// min_p, top_k, top_p, draw.
#pragma once

#include "engine/device/row_sampling.h"
#include "engine/sample/sampling_params.h"

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace headroom::engine {

struct LogprobEntry {
  int32_t token = 0;
  float logprob = 0;
  int32_t rank = 0;  // 1: the likeliest
};

// The log probability of `chosen` under softmax(logits) with its rank, then those of the `top` likeliest tokens, likeliest first (equal ones: lower
// id first). Empty when no logit is finite.
struct Logprobs {
  LogprobEntry chosen;
  std::vector<LogprobEntry> top;
};
Logprobs logprobsOf(std::span<const float> logits, int32_t chosen, int top);

class Sampler {
 public:
  // `endTokens`: what ends the sequence (end-of-sequence tokens unless ignored, and stop tokens), masked until minTokens were generated.
  Sampler(SamplingParams params, std::span<const int32_t> prompt, std::vector<int32_t> endTokens);

  struct Choice {
    int32_t token = 0;
    std::optional<Logprobs> logprobs;
  };
  // Changes `logits` in place. Empty when no logit is finite: the model's arithmetic broke down, or the vocabulary cannot spell what the constraint
  // asks for (isStuck()).
  std::optional<Choice> sample(std::span<float> logits);
  // The same in two parts, for a device that samples: how, drawing the random number; then the token that it chose, -1 for none. False as an empty
  // choice above. Not where log probabilities are asked for.
  bool needsLogits() const { return m_params.logprobs.has_value(); }
  RowSampling prepare(int64_t vocabulary);
  bool accept(int32_t token);
  bool isOver() const;  // the constraint's text is whole and nothing can follow
  bool isStuck() const { return m_stuck; }
  int64_t generated() const { return m_generated; }
  const SamplingParams& params() const { return m_params; }

 private:
  void bias(std::span<float> logits) const;
  void penalize(std::span<float> logits) const;
  int32_t draw(std::span<const float> logits);
  void remember(int32_t token);

  SamplingParams m_params;
  std::vector<int32_t> m_endTokens;
  std::unordered_set<int32_t> m_promptTokens;           // kept only for the repetition penalty
  std::unordered_map<int32_t, int64_t> m_outputCounts;  // kept only for penalties
  std::mt19937_64 m_random;
  int64_t m_generated = 0;
  bool m_stuck = false;
  std::vector<std::pair<float, int32_t>> m_candidates;  // scratch
  std::vector<float> m_allowed;                          // scratch
};

}  // namespace headroom::engine
