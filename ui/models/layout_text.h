// SPDX-License-Identifier: GPL-3.0-or-later
// Layouts and verdicts in words: the same words in the grid, the details, the accessible text and the run panel.
#pragma once

#include "core/launch/planner.h"

#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

namespace headroom::ui {

// "TP2 × PP3", "TP2 × PP3 × DP2".
QString layoutName(int tp, int pp, int dp);
QString layoutName(const LayoutPlan& layout);  // with "× EP16" where whole experts are dealt to ranks

// "Fits", "Tight", "Does not fit", "Not possible".
QString verdictText(Verdict verdict);

// Why an invalid layout is refused, in the few letters of a cell: "64 heads / 6".
QString shortReason(const LayoutPlan& layout, const ModelConfig& model);

// One sentence with everything the cell shows by colour, number and symbol.
QString cellDescription(const LayoutPlan& layout, const PlanReport& report);

// "exact", "modelled", "measured here".
QString provenanceText(Provenance provenance);

// "± 18 %": the share within which nine of ten timed cases of a prediction's kind lie; empty when it is not known.
QString bandText(const std::optional<double>& share);

// "vLLM", "Headroom" …
QString engineTitle(EngineKind kind);
// The engines that can be planned for, in the order they are offered.
std::vector<EngineKind> plannedEngines();
// Versions worth offering, newest first: where rules or memory change, or the one whose rules are known. Empty: there are none.
QStringList engineVersions(EngineKind kind);

// "Qwen2ForCausalLM · 80 layers · 64 heads, 8 KV heads · …"
QString modelFacts(const ModelSource& source);

inline QString fromCore(const std::string& text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

}  // namespace headroom::ui
