// SPDX-License-Identifier: GPL-3.0-or-later
// FixAction: what a fix of core asks for, as something a button can do: another layout, another engine or version, another
// option. Read from the fix's own words; a fix that nothing in the window can do has no action. Pure functions.
#pragma once

#include "core/launch/planner.h"

#include <QString>
#include <optional>
#include <vector>

namespace headroom::ui {

struct FixAction {
  struct Sizes {
    int tp = 1, pp = 1, dp = 1;
    friend bool operator==(const Sizes&, const Sizes&) = default;
  };
  std::optional<Sizes> layout;
  std::optional<EngineSelection> engine;
  std::optional<int64_t> maxModelLen, concurrency;
  std::optional<DType> dtype, kvCacheDType;
  std::optional<double> utilization;
  bool expertParallel = false;
  QString label() const;  // of the button, in the window's language
};

// Actions of one fix, the first the one that is named first. Layouts are offered only where the report accepts them.
std::vector<FixAction> fixActions(const std::string& fix, const PlanReport& report, const LayoutPlan& layout);
// Of all reasons and warnings of a layout; no action twice.
std::vector<FixAction> fixActions(const PlanReport& report, const LayoutPlan& layout);

}  // namespace headroom::ui
