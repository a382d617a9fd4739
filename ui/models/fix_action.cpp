// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/fix_action.h"

#include "ui/models/layout_text.h"
#include "ui/theme/format.h"

#include <QCoreApplication>
#include <QLocale>
#include <QRegularExpression>
#include <algorithm>
#include <map>

namespace headroom::ui {
namespace {

using Match = QRegularExpressionMatch;

const LayoutPlan* accepted(const PlanReport& report, const FixAction::Sizes& sizes) {
  const LayoutPlan* plan = report.find(sizes.tp, sizes.pp, sizes.dp);
  return plan && plan->verdict != Verdict::Invalid ? plan : nullptr;
}

// Reads a fix from left to right; what is found later stands behind.
class Reader {
 public:
  Reader(QString fix, const PlanReport& report, const LayoutPlan& layout)
      : m_fix(std::move(fix)), m_report(report), m_layout(layout) {}

  std::vector<FixAction> actions() {
    readLayouts();
    readOptions();
    readEngines();
    std::vector<FixAction> actions;
    for (auto& [place, action] : m_found) actions.push_back(std::move(action));
    return actions;
  }

 private:
  template <class Handle>
  void each(const char* pattern, Handle handle) {
    auto matches = QRegularExpression(QString::fromLatin1(pattern)).globalMatch(m_fix);
    while (matches.hasNext()) {
      const Match match = matches.next();
      handle(match);
    }
  }
  bool taken(qsizetype begin) const {
    return std::any_of(m_used.begin(), m_used.end(),
                       [&](const auto& range) { return begin >= range.first && begin < range.second; });
  }
  void use(const Match& match) { m_used.emplace_back(match.capturedStart(), match.capturedEnd()); }
  void offer(qsizetype place, const FixAction::Sizes& sizes) {
    if (sizes == FixAction::Sizes{m_layout.tp, m_layout.pp, m_layout.dp} || !accepted(m_report, sizes)) return;
    FixAction action;
    action.layout = sizes;
    m_found.emplace(place, action);
  }

  void readLayouts() {
    const int dp = m_layout.dp;
    each(R"((?:(\d+) replicas of )?TP=(\d+)(?: x | with )PP=(\d+))", [&](const Match& match) {
      use(match);
      offer(match.capturedStart(),
            {match.captured(2).toInt(), match.captured(3).toInt(), match.captured(1).isEmpty() ? dp : match.captured(1).toInt()});
    });
    each(R"(TP=(\d+) with (?:pipeline )?stages)", [&](const Match& match) {
      use(match);
      // As many stages as there are GPUs for.
      for (int pp = m_report.machine.size() / std::max(1, match.captured(1).toInt() * dp); pp > 1; --pp) {
        if (!accepted(m_report, {match.captured(1).toInt(), pp, dp})) continue;
        return offer(match.capturedStart(), {match.captured(1).toInt(), pp, dp});
      }
    });
    each(R"(TP sizes that work: ([\d, ]+))", [&](const Match& match) {
      use(match);
      // The next smaller one keeps most GPUs at work.
      int best = 0;
      for (const QString& size : match.captured(1).split(QLatin1Char(',')))
        if (const int tp = size.trimmed().toInt(); tp < m_layout.tp && accepted(m_report, {tp, m_layout.pp, dp}))
          best = std::max(best, tp);
      if (best > 0) offer(match.capturedStart(), {best, m_layout.pp, dp});
    });
    each(R"((?:(\d+) replicas of )?TP=(\d+))", [&](const Match& match) {
      if (taken(match.capturedStart())) return;
      const int replicas = match.captured(1).isEmpty() ? dp : match.captured(1).toInt();
      const int tp = match.captured(2).toInt();
      // "TP=4 (4 GPUs) fits" means one stage; "use TP=9 or fewer" keeps the stages.
      const bool alone = m_fix.indexOf(QLatin1String("fits"), match.capturedEnd()) >= 0;
      offer(match.capturedStart(), {tp, alone ? 1 : m_layout.pp, replicas});
    });
    each(R"(PP=(\d+))", [&](const Match& match) {
      if (taken(match.capturedStart())) return;
      const bool alone = m_fix.indexOf(QLatin1String("fits"), match.capturedEnd()) >= 0;
      const bool layersOnly = m_fix.indexOf(QLatin1String("--split-mode layer"), match.capturedEnd()) >= 0;
      offer(match.capturedStart(), {alone || layersOnly ? 1 : m_layout.tp, match.captured(1).toInt(), dp});
    });
  }

  void readOptions() {
    each(R"(--max-model-len (\d+))", [&](const Match& match) {
      FixAction action;
      action.maxModelLen = match.captured(1).toLongLong();
      m_found.emplace(match.capturedStart(), action);
    });
    each(R"((\d+) requests? at once instead of)", [&](const Match& match) {
      FixAction action;
      action.concurrency = std::max<qint64>(1, match.captured(1).toLongLong());
      m_found.emplace(match.capturedStart(), action);
    });
    each(R"(--dtype (\w+))", [&](const Match& match) {
      const QString name = match.captured(1);
      FixAction action;
      for (const DType type : {DType::F16, DType::BF16, DType::F32})
        if (name == QLatin1String(dtypeName(type).data(), static_cast<qsizetype>(dtypeName(type).size()))) action.dtype = type;
      if (action.dtype) m_found.emplace(match.capturedStart(), action);
    });
    each(R"(--gpu-memory-utilization (0\.\d+))", [&](const Match& match) {
      FixAction action;
      action.utilization = match.captured(1).toDouble();
      m_found.emplace(match.capturedStart(), action);
    });
    each(R"(--kv-cache-dtype fp8\b)", [&](const Match& match) {
      if (m_report.options.kvCacheDType == DType::F8E4M3) return;
      FixAction action;
      action.kvCacheDType = DType::F8E4M3;
      m_found.emplace(match.capturedStart(), action);
    });
    each(R"(--enable-expert-parallel|--ep[-_]size \d+)", [&](const Match& match) {
      if (m_report.options.expertParallel) return;
      FixAction action;
      action.expertParallel = true;
      m_found.emplace(match.capturedStart(), action);
    });
  }

  void offerEngine(qsizetype place, const QString& text) {
    const auto engine = parseEngine(text.toStdString());
    if (!engine || (engine->kind == m_report.options.engine.kind && engine->version == m_report.options.engine.version)) return;
    FixAction action;
    action.engine = *engine;
    m_found.emplace(place, action);
  }

  void readEngines() {
    each(R"(\b(vllm|sglang|lmdeploy)@([\d.]*\d))", [&](const Match& match) {
      use(match);
      offerEngine(match.capturedStart(), match.captured());
    });
    static const std::pair<const char*, const char*> kNames[] = {{"llama.cpp", "llama.cpp"}, {"Headroom", "headroom"},
                                                                 {"SGLang", "sglang"},       {"vLLM", "vllm"},
                                                                 {"LMDeploy", "lmdeploy"},   {"TensorRT-LLM", "tensorrt-llm"}};
    // Only where the fix says to use it: the words before may be about something else.
    for (const auto& [word, name] : kNames)
      each(qPrintable(
               QStringLiteral("(?:\\buse |\\bor |, )(?:an? )?%1(?![\\w@])").arg(QRegularExpression::escape(QLatin1String(word)))),
           [&](const Match& match) { offerEngine(match.capturedStart(), QLatin1String(name)); });
    each(R"(another (?:--)?engine)", [&](const Match& match) {
      if (m_report.options.engine.kind == EngineKind::Headroom) offerEngine(match.capturedStart(), QStringLiteral("vllm"));
    });
  }

  QString m_fix;
  const PlanReport& m_report;
  const LayoutPlan& m_layout;
  std::vector<std::pair<qsizetype, qsizetype>> m_used;
  std::multimap<qsizetype, FixAction> m_found;  // by where it stands
};

bool same(const FixAction& a, const FixAction& b) {
  const auto engine = [](const FixAction& action) {
    return action.engine ? std::optional(std::pair(action.engine->kind, action.engine->version)) : std::nullopt;
  };
  return a.layout == b.layout && engine(a) == engine(b) && a.maxModelLen == b.maxModelLen && a.concurrency == b.concurrency &&
         a.dtype == b.dtype && a.kvCacheDType == b.kvCacheDType && a.utilization == b.utilization &&
         a.expertParallel == b.expertParallel;
}

}  // namespace

QString FixAction::label() const {
  if (layout) return QCoreApplication::translate("Headroom", "Show %1").arg(layoutName(layout->tp, layout->pp, layout->dp));
  if (maxModelLen) return QCoreApplication::translate("Headroom", "Context of %1 tokens").arg(formatCount(maxModelLen));
  if (const int requests = static_cast<int>(concurrency.value_or(0)); requests > 0)
    return QCoreApplication::translate("Headroom", "%n request(s) at once", nullptr, requests);
  if (dtype) return QCoreApplication::translate("Headroom", "Use %1").arg(QString::fromUtf8(dtypeName(*dtype).data()));
  if (kvCacheDType)
    return QCoreApplication::translate("Headroom", "KV cache as %1").arg(QString::fromUtf8(dtypeName(*kvCacheDType).data()));
  if (utilization)
    return QCoreApplication::translate("Headroom", "Use %1 % of the memory").arg(QLocale().toString(*utilization * 100, 'f', 0));
  if (expertParallel) return QCoreApplication::translate("Headroom", "Whole experts on each GPU");
  if (engine) {
    const QString name = engineTitle(engine->kind);
    return QCoreApplication::translate("Headroom", "Plan for %1")
        .arg(engine->version.empty() ? name : name + QLatin1Char(' ') + fromCore(engine->version));
  }
  return {};
}

std::vector<FixAction> fixActions(const std::string& fix, const PlanReport& report, const LayoutPlan& layout) {
  return Reader(fromCore(fix), report, layout).actions();
}

std::vector<FixAction> fixActions(const PlanReport& report, const LayoutPlan& layout) {
  std::vector<FixAction> all;
  const auto take = [&](const Reason& reason) {
    for (FixAction& action : fixActions(reason.fix, report, layout))
      if (std::none_of(all.begin(), all.end(), [&](const FixAction& known) { return same(known, action); }))
        all.push_back(std::move(action));
  };
  for (const Reason& reason : layout.reasons) take(reason);
  for (const Reason& reason : layout.warnings) take(reason);
  return all;
}

}  // namespace headroom::ui
