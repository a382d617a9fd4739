// SPDX-License-Identifier: Apache-2.0
// What a device needs to choose a row's next token in the sampler's place (engine/sample/sampler.h), in the order in which it is
// applied.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace headroom::engine {

struct RowSampling {
  bool wantsLogits = false;    // the host needs the row's logits: nothing is changed, and what is chosen says nothing
  std::vector<uint32_t> mask;  // token i may come where bit i % 32 of word i / 32 is set; empty: all may
  std::vector<std::pair<int32_t, float>> biases;  // distinct tokens; added, minus infinity forbids
  std::vector<std::pair<int32_t, int32_t>> seen;  // distinct tokens of prompt and output, how often the output has them
  float repetition = 1.0f, frequency = 0.0f, presence = 0.0f;
  double temperature = 0.0;  // 0: the likeliest token, the lowest id among equals
  double minP = 0.0, topP = 1.0;
  int64_t topK = 0;      // 0: all
  double uniform = 0.0;  // in [0, 1): the row's own random number
};

}  // namespace headroom::engine
