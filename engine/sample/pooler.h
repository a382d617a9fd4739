// SPDX-License-Identifier: Apache-2.0
// One vector of a text from the hidden states of its tokens, taken as they are computed: in chunks, in order, and anew from the
// beginning where the engine begins anew.
#pragma once

#include "core/model/embedding_config.h"

#include <cstdint>
#include <span>
#include <vector>

namespace headroom::engine {

class Pooler {
 public:
  Pooler(Pooling pooling, int64_t tokens) : m_pooling(pooling), m_tokens(tokens) {}
  // Whether the states of all tokens are needed, not the last one's alone.
  static bool needsAll(Pooling pooling) { return pooling != Pooling::Last; }

  // hidden: (hiddenSize) of the token at `position`. Position 0 forgets what came before it.
  void add(int64_t position, std::span<const float> hidden);
  bool isWhole() const { return m_next == m_tokens; }
  // The vector, (hiddenSize), once it is whole. Not finite where the states were not.
  std::vector<float> take();

 private:
  const Pooling m_pooling;
  const int64_t m_tokens;
  int64_t m_next = 0;  // position behind the last one taken
  std::vector<double> m_sum;
};

// Divided by its Euclidean length; a vector of zeros stays.
void normalize(std::span<float> vector);

}  // namespace headroom::engine
