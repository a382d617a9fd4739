// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/layout_text.h"

#include "ui/models/core_text.h"
#include "ui/theme/format.h"
#include "ui/theme/headroom_color.h"

#include <QCoreApplication>
#include <QLocale>
#include <QStringList>
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace headroom::ui {

QString layoutName(const LayoutPlan& layout) {
  QString name = layoutName(layout.tp, layout.pp, layout.dp);
  if (layout.ep > 1) name += QStringLiteral(" × EP%1").arg(layout.ep);
  return name;
}

QString layoutName(int tp, int pp, int dp) {
  QString name = QStringLiteral("TP%1 × PP%2").arg(tp).arg(pp);
  if (dp > 1) name += QStringLiteral(" × DP%1").arg(dp);
  return name;
}

QString verdictText(Verdict verdict) {
  switch (verdict) {
    case Verdict::Fits:
      return QCoreApplication::translate("Headroom", "Fits");
    case Verdict::Tight:
      return QCoreApplication::translate("Headroom", "Tight");
    case Verdict::DoesNotFit:
      return QCoreApplication::translate("Headroom", "Does not fit");
    case Verdict::Invalid:
      return QCoreApplication::translate("Headroom", "Not possible");
  }
  return {};
}

QString shortReason(const LayoutPlan& layout, const ModelConfig& model) {
  if (layout.reasons.empty()) return verdictText(layout.verdict);
  const QString rule = fromCore(layout.reasons.front().rule).section(QLatin1Char('.'), 1);
  const auto has = [&](const char* word) { return rule.contains(QLatin1String(word)); };
  const QString tp = QString::number(layout.tp), pp = QString::number(layout.pp);
  if (has("kv_head")) return QCoreApplication::translate("Headroom", "%1 KV heads / %2").arg(formatCount(model.kvHeads), tp);
  if (has("head")) return QCoreApplication::translate("Headroom", "%1 heads / %2").arg(formatCount(model.qHeads), tp);
  if (has("layer") || has("stage"))
    return QCoreApplication::translate("Headroom", "%1 layers / %2").arg(formatCount(model.layerCount()), pp);
  if (has("intermediate") || has("mlp") || has("columns"))
    return QCoreApplication::translate("Headroom", "%1 columns / %2").arg(formatCount(model.intermediateSize), tp);
  if (has("vocab")) return QCoreApplication::translate("Headroom", "%1 tokens / %2").arg(formatCount(model.vocabSize), tp);
  if (has("expert")) return QCoreApplication::translate("Headroom", "experts / %1").arg(tp);
  if (has("fp8_block")) return QCoreApplication::translate("Headroom", "FP8 blocks / %1").arg(tp);
  if (has("quant") || has("group")) return QCoreApplication::translate("Headroom", "quantization");
  if (has("arch") || has("model")) return QCoreApplication::translate("Headroom", "model unsupported");
  if (has("dtype")) return QCoreApplication::translate("Headroom", "dtype unsupported");
  if (has("pipeline")) return QCoreApplication::translate("Headroom", "no pipeline");
  return QString(rule).replace(QLatin1Char('_'), QLatin1Char(' '));
}

QString cellDescription(const LayoutPlan& layout, const PlanReport& report) {
  QStringList parts{layoutName(layout) + QStringLiteral(": ") + verdictText(layout.verdict)};
  if (layout.verdict == Verdict::Invalid) {
    if (!layout.reasons.empty()) parts << coreText(layout.reasons.front().message);
  } else {
    parts << QCoreApplication::translate("Headroom", "%1 on the fullest GPU").arg(headroomLabel(layout.headroom));
    if (layout.kvTokens) parts << QCoreApplication::translate("Headroom", "room for %1 tokens").arg(formatCount(layout.kvTokens));
    if (layout.verdict != Verdict::Fits && !layout.reasons.empty()) parts << coreText(layout.reasons.front().message);
  }
  if (report.recommended && report.recommended->tp == layout.tp && report.recommended->pp == layout.pp &&
      report.recommended->dp == layout.dp)
    parts << QCoreApplication::translate("Headroom", "recommended");
  return parts.join(QStringLiteral("; "));
}

QString provenanceText(Provenance provenance) {
  switch (provenance) {
    case Provenance::Exact:
      return QCoreApplication::translate("Headroom", "exact");
    case Provenance::Modelled:
      return QCoreApplication::translate("Headroom", "modelled");
    case Provenance::MeasuredHere:
      return QCoreApplication::translate("Headroom", "measured here");
  }
  return {};
}

QString bandText(const std::optional<double>& share) {
  if (!share) return {};
  return QCoreApplication::translate("Headroom", "± %1 %").arg(QLocale().toString(*share * 100, 'f', 0));
}

QString engineTitle(EngineKind kind) {
  static constexpr std::pair<std::string_view, const char*> kTitles[] = {
      {"headroom", "Headroom"},         {"vllm", "vLLM"},           {"sglang", "SGLang"},
      {"tensorrt-llm", "TensorRT-LLM"}, {"llama.cpp", "llama.cpp"}, {"lmdeploy", "LMDeploy"}};
  const std::string_view name = engineName(kind);
  for (const auto& [known, title] : kTitles)
    if (known == name) return QString::fromLatin1(title);
  return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

std::vector<EngineKind> plannedEngines() {
  std::vector<EngineKind> kinds;
  for (const char* name : {"headroom", "vllm", "sglang", "tensorrt-llm", "lmdeploy", "llama.cpp"})
    if (const auto engine = parseEngine(name)) kinds.push_back(engine->kind);
  return kinds;
}

QStringList engineVersions(EngineKind kind) {
  // Ends of the ranges in which an engine's rules or its memory differ.
  if (engineName(kind) == "vllm")
    return {QStringLiteral("0.32"), QStringLiteral("0.31"), QStringLiteral("0.20"), QStringLiteral("0.10"),
            QStringLiteral("0.6")};
  // The others are planned by the rules of one version; llama.cpp counts builds.
  const EngineVersion newest = rulesOf(kind).newestKnown();
  if (kind == EngineKind::Headroom || newest == EngineVersion{}) return {};
  QString version = QStringLiteral("%1.%2").arg(newest.major).arg(newest.minor);
  if (newest.patch > 0) version += QStringLiteral(".%1").arg(newest.patch);
  return {version};
}

namespace {

// The type that most numbers are stored in: files mix several.
QString commonestType(const TensorInventory& inventory) {
  std::map<DType, int64_t> elements;
  for (const TensorEntry& tensor : inventory.tensors)
    elements[tensor.dtype] += std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
  const auto most =
      std::max_element(elements.begin(), elements.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == elements.end()) return kUnknown;
  const std::string_view name = dtypeName(most->first);
  return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

}  // namespace

QString modelFacts(const ModelSource& source) {
  const ModelConfig& config = source.config;
  QStringList facts;
  facts << QCoreApplication::translate("Headroom", "%1 parameters").arg(formatParameters(source.inventory.parameters()));
  const int layers = static_cast<int>(config.layerCount());
  facts << QCoreApplication::translate("Headroom", "%n layer(s)", nullptr, layers);
  if (config.qHeads > 0)
    facts << QCoreApplication::translate("Headroom", "%1 heads, %2 KV heads").arg(config.qHeads).arg(config.kvHeads);
  QString stored = QString::fromUtf8(dtypeName(config.dtype).data(), static_cast<qsizetype>(dtypeName(config.dtype).size()));
  if (config.quantization) stored = fromCore(config.quantization->method);
  if (source.origin == ModelSource::Origin::GgufHeader) stored = commonestType(source.inventory);
  facts << QCoreApplication::translate("Headroom", "%1 in %2").arg(formatGib(source.inventory.checkpointBytes()), stored);
  switch (source.origin) {
    case ModelSource::Origin::SafetensorsHeaders:
      facts << QCoreApplication::translate("Headroom", "counted from the files");
      break;
    case ModelSource::Origin::GgufHeader:
      facts << QCoreApplication::translate("Headroom", "counted from the GGUF file");
      break;
    case ModelSource::Origin::ConfigFormula:
      facts << QCoreApplication::translate("Headroom", "by the configuration, no weights");
      break;
    case ModelSource::Origin::Catalog:
      facts << QCoreApplication::translate("Headroom", "from the catalog, no weights");
      break;
  }
  return facts.join(QStringLiteral("  ·  "));
}

}  // namespace headroom::ui
