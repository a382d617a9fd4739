// SPDX-License-Identifier: Apache-2.0
// How a request wants its tokens chosen; the names and defaults are those of OpenAI's API and vLLM's extensions of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace headroom::engine {

class TokenConstraint;

struct SamplingParams {
  double temperature = 1.0;  // 0: greedy
  double topP = 1.0, minP = 0.0;
  int64_t topK = 0;          // 0: all
  double presencePenalty = 0.0, frequencyPenalty = 0.0, repetitionPenalty = 1.0;
  std::vector<std::pair<int32_t, float>> logitBias;
  std::optional<int64_t> seed;
  int64_t maxTokens = 16, minTokens = 0;
  bool ignoreEos = false;
  std::vector<int32_t> stopTokenIds;     // besides the model's own end-of-sequence tokens
  std::optional<int> logprobs;           // top alternatives of each generated token; 0: the token's own only
  std::optional<int> promptLogprobs;
  std::shared_ptr<TokenConstraint> constraint;  // of this one sequence; null: none
};

}  // namespace headroom::engine
