// SPDX-License-Identifier: Apache-2.0
// Headroom's own rules: at most one rank a query head, at least one layer a stage, no quantization block cut.
#include "core/layout/rules/engine_rules.h"

namespace headroom {
namespace {

class HeadroomRules : public EngineRules {
 public:
  EngineVersion newestKnown() const override { return {0, 1, 0}; }

  RuleVerdict check(const RuleContext& context, LayoutSizes sizes) const override {
    RuleVerdict verdict;
    const ModelConfig& config = context.model.config;
    if (!config.missingInEngine.empty()) {  // first: other sizes would not help
      std::string missing;
      for (const std::string& part : config.missingInEngine) missing += (missing.empty() ? "" : ", ") + part;
      verdict.refusal = {"headroom.missing", "the engine cannot run this model yet: " + missing, "plan with another --engine"};
      return verdict;
    }
    if (sizes.pp > config.layerCount()) {
      verdict.refusal = {"headroom.layers",
                         fmt::format("{} stages for {} layers: every stage needs at least one", sizes.pp, config.layerCount()),
                         fmt::format("PP={} or fewer", config.layerCount())};
      return verdict;
    }
    if (Status split = HeadroomSplitter(context.model).check(sizes.tp); !split) {
      verdict.refusal = {"headroom.heads",
                         fmt::format("{}: {}, {}", split.error().where, split.error().found, split.error().expected),
                         split.error().next};
      return verdict;
    }
    return verdict;
  }

  // By bytes, not by count: makeHeadroomLayout decides.
  std::vector<Range> stages(const ModelConfig& config, int pp) const override { return splitRange(config.layerCount(), pp); }
};

}  // namespace

const EngineRules& headroomRules() {
  static const HeadroomRules rules;
  return rules;
}

}  // namespace headroom
