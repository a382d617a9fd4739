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
    if (sizes.tp > 1 && config.decoder.qkNormFullWidth) {
      verdict.refusal = {
          "headroom.full_width_norm",
          "this model's query and key norms run over all heads at once: the engine keeps a layer's heads on one rank",
          "TP=1 with stages"};
      return verdict;
    }
    for (const std::string& missing : config.missingInEngine) {
      verdict.warnings.push_back({"headroom.missing", fmt::format("planned, but the engine cannot run it yet: {}", missing),
                                  "plan with another --engine"});
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
