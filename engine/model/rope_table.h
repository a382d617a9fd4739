// SPDX-License-Identifier: Apache-2.0
// Inverse frequencies of rotary position embeddings for all scalings, in double.
#pragma once

#include "core/model/model_config.h"

#include <vector>

namespace headroom::engine {

struct RopeTable {
  std::vector<double> inverseFrequencies;  // rotaryDim / 2
  double factor = 1.0;                     // multiplies cosines and sines (yarn's and longrope's attention factor)
};

// `maxModelLen` chooses what depends on length: dynamic's base, and longrope's long factors once sequences may pass the original
// context. One choice for an engine, so that cached keys of all sequences agree. `divisors` (a GGUF's rope_freqs) replaces the
// scaling when it is not empty.
RopeTable makeRopeTable(const RopeParameters& rope, int64_t maxPositionEmbeddings, int64_t maxModelLen,
                        const std::vector<double>& divisors);

}  // namespace headroom::engine
