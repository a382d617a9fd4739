// SPDX-License-Identifier: Apache-2.0
// Arithmetic that engines with even splits share: which number does not divide. Each engine adds its own words and order.
#pragma once

#include "core/layout/rules/engine_rules.h"

#include <optional>
#include <string>

namespace headroom {

// The first layer with attention heads, and the first of each kind of MLP, as engines build them; null when there is none.
const LayerSpec* firstAttentionLayer(const ModelConfig& config);
const LayerSpec* firstDenseLayer(const ModelConfig& config);
const LayerSpec* firstExpertLayer(const ModelConfig& config);

// KV heads are dealt, or each is copied the same number of times. Latent attention has one latent on every rank.
bool kvHeadsDivide(const LayerSpec& layer, int tp);

// A row-parallel input that a rank would hold a piece of a quantization group of.
struct CutGroup {
  std::string what;  // "MLP columns"
  int64_t width = 0, share = 0, group = 0;
  std::string text(int tp) const;  // "MLP columns 29568 / 2 = 14784 cut a group of 128 (14784 / 128 = 115 remainder 64)"
};
// For methods with groups (AWQ, GPTQ, compressed-tensors, FP8 blocks).
// `experts`: whether experts are cut too, or stand whole on a rank.
std::optional<CutGroup> firstCutGroup(const RuleContext& context, int tp, bool experts = true);

// Layers of each stage: `base` each, one more for the stages that `takesSpare` names.
template <class TakesSpare>
std::vector<Range> countedStages(int64_t layers, int pp, TakesSpare takesSpare) {
  const int64_t base = layers / pp, spare = layers % pp;
  std::vector<Range> ranges;
  ranges.reserve(pp);
  int64_t at = 0;
  for (int stage = 0; stage < pp; ++stage) {
    const int64_t end = at + base + (takesSpare(stage, spare) ? 1 : 0);
    ranges.push_back({at, end});
    at = end;
  }
  return ranges;
}

}  // namespace headroom
