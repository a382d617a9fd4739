// SPDX-License-Identifier: Apache-2.0
// What each engine accepts. One file an engine: it turns (model, machine, sizes, version) into the first check that the engine
// would fail, with the words its user would see, the arithmetic and the cheapest way out.
#pragma once

#include "core/hardware/machine.h"
#include "core/layout/parallel_layout.h"

#include <optional>
#include <string>
#include <vector>

namespace headroom {

enum class EngineKind : uint8_t { Headroom, Vllm, SgLang, TensorRtLlm, LlamaCpp, LmDeploy };
std::string_view engineName(EngineKind kind);

struct EngineVersion {
  int major = 0, minor = 0, patch = 0;
  friend auto operator<=>(const EngineVersion&, const EngineVersion&) = default;
};
// The first "1.2" or "1.2.3" in the text ("0.26.1rc1.dev608" is 0.26.1); empty when there is none.
std::optional<EngineVersion> parseVersion(std::string_view text);

struct LayoutSizes {
  int tp = 1, pp = 1, dp = 1;
  bool expertParallel = false;         // whole experts a rank
  bool attentionDataParallel = false;  // tp divides attention, tp x dp everything else
};

struct RuleContext {
  const ModelSource& model;
  const Machine& machine;
  EngineVersion version;
  std::optional<DType> dtype;  // as asked; empty: the engine chooses
  std::string quantization;    // in force; empty: none
};

struct RuleFinding {
  std::string rule;     // stable id: "vllm.attention_heads"
  std::string message;  // the arithmetic and the engine's own words
  std::string fix;
};

struct RuleVerdict {
  std::optional<RuleFinding> refusal;  // the first check that fails
  std::vector<RuleFinding> warnings;   // accepted, but worth knowing
};

class EngineRules {
 public:
  virtual ~EngineRules() = default;
  virtual EngineVersion newestKnown() const = 0;
  // Without fixes: quick enough to ask for every size.
  virtual RuleVerdict check(const RuleContext& context, LayoutSizes sizes) const = 0;
  // The smallest sizes with the same verdict, so that a grid asks once. Unless an engine says otherwise, stages matter as one or
  // several, and replicas not at all.
  virtual LayoutSizes sameVerdict(const RuleContext& context, LayoutSizes sizes) const;
  // Layers of each stage by the engine's own rule. pp <= layers.
  virtual std::vector<Range> stages(const ModelConfig& config, int pp) const = 0;
};

const EngineRules& rulesOf(EngineKind kind);
const EngineRules& headroomRules();
const EngineRules& vllmRules();
const EngineRules& sgLangRules();
const EngineRules& tensorRtRules();
const EngineRules& llamaCppRules();
const EngineRules& lmDeployRules();  // TurboMind

// TP sizes up to `gpus` that the engine's rules accept with one stage and one replica.
std::vector<int> acceptedTpSizes(const EngineRules& rules, const RuleContext& context, int gpus);

// "64 / 6 = 10 remainder 4"
std::string divisionText(int64_t numerator, int64_t divisor);

}  // namespace headroom
