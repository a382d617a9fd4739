// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/serve_arguments.h"

#include "core/layout/parallel_layout.h"
#include "ui/models/core_text.h"
#include "ui/models/layout_text.h"

#include <QCoreApplication>

namespace headroom::ui {
namespace {

void add(QStringList& arguments, const char* option, const QString& value) { arguments << QString::fromLatin1(option) << value; }
void add(QStringList& arguments, const char* option, int64_t value) { add(arguments, option, QString::number(value)); }

QString nameOf(DType dtype) {
  const std::string_view name = dtypeName(dtype);
  return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

RankState plannedRank(const RankPlan& plan, const Machine& machine) {
  RankState state;
  state.rank = plan.slice.rank;
  state.replica = plan.slice.replica;
  state.stage = plan.slice.stage;
  state.tpRank = plan.slice.tpRank;
  state.layers = plan.slice.layers;
  const auto& gpu = machine.gpus.at(static_cast<size_t>(plan.slice.gpu));
  state.device = (gpu.spec.hostDevice ? "cpu:" : "cuda:") + std::to_string(gpu.index);
  const auto count = [](const std::optional<Bytes>& bytes) {
    return bytes ? std::optional<int64_t>(bytes->count()) : std::nullopt;
  };
  state.planned = {count(plan.weights), count(plan.kvCache), count(plan.activations), count(plan.graphs)};
  state.deviceTotalBytes = gpu.totalMemory.count();
  return state;
}

QByteArray layoutFileOf(const PlanReport& report, const LayoutPlan& plan) {
  ParallelLayout layout;
  layout.tp = plan.tp;
  layout.pp = plan.pp;
  layout.dp = plan.dp;
  layout.even = plan.even;
  for (const RankPlan& rank : plan.ranks) {
    layout.ranks.push_back(rank.slice);
    layout.ranks.back().gpu = report.machine.gpus.at(static_cast<size_t>(rank.slice.gpu)).index;
  }
  return QByteArray::fromStdString(layoutToJson(layout).dump());
}

}  // namespace

QString startObstacle(const PlanReport* report, const LayoutPlan* layout, const ModelSource* model) {
  if (!model) return QCoreApplication::translate("Headroom", "Open a model to plan and start it.");
  if (!report) return QCoreApplication::translate("Headroom", "The plan is not ready yet.");
  if (!layout) return QCoreApplication::translate("Headroom", "Select a layout in the grid.");
  if (!report->machine.isLocal)
    return QCoreApplication::translate("Headroom", "These GPUs are a what-if; choose this machine to start the layout here.");
  if (report->options.engine.kind != EngineKind::Headroom)
    return QCoreApplication::translate("Headroom", "This plan is for %1; choose the Headroom engine, or copy the command.")
        .arg(engineTitle(report->options.engine.kind));
  if (!model->canBeLoaded())
    return QCoreApplication::translate(
        "Headroom", "This model has no weights here, only its configuration; open a folder or file with weights.");
  if (!model->config.missingInEngine.empty())
    return QCoreApplication::translate("Headroom", "The engine cannot run this model yet: it lacks %1.")
        .arg(coreText(model->config.missingInEngine.front()));
  if (layout->verdict == Verdict::Invalid || layout->verdict == Verdict::DoesNotFit)
    return layout->reasons.empty() ? verdictText(layout->verdict) : coreText(layout->reasons.front().message);
  return {};
}

LaunchRequest launchRequest(const PlanReport& report, const LayoutPlan& layout, const ModelSource& model,
                            const QString& modelArgument, const HostDeviceSettings& hostDevices) {
  LaunchRequest request;
  QStringList& arguments = request.arguments;
  arguments << QStringLiteral("serve") << (model.path.empty() ? modelArgument : fromCore(model.path.string()));
  add(arguments, "--tp", layout.tp);
  add(arguments, "--pp", layout.pp);
  add(arguments, "--dp", layout.dp);
  const ResolvedOptions& options = report.options;
  if (options.maxModelLen > 0) add(arguments, "--max-model-len", options.maxModelLen);
  if (options.maxNumSeqs > 0) add(arguments, "--max-num-seqs", options.maxNumSeqs);
  if (options.maxNumBatchedTokens > 0) add(arguments, "--max-num-batched-tokens", options.maxNumBatchedTokens);
  add(arguments, "--gpu-memory-utilization", QString::number(options.gpuMemoryUtilization));
  add(arguments, "--dtype", nameOf(options.dtype));
  add(arguments, "--kv-cache-dtype", nameOf(options.kvCacheDType));
  const bool onHost = report.machine.isHostOnly();
  if (onHost) {
    add(arguments, "--device", QStringLiteral("cpu"));
    const Bytes each = hostDevices.memoryEach.value_or(report.machine.gpus.front().totalMemory);
    // Seventeen digits carry the bytes exactly.
    add(arguments, "--device-memory",
        QString::number(static_cast<double>(each.count()) / (1024.0 * 1024.0), 'g', 17) + QStringLiteral("MiB"));
  } else {
    QStringList gpus;
    for (const RankPlan& rank : layout.ranks)
      gpus << QString::number(report.machine.gpus.at(static_cast<size_t>(rank.slice.gpu)).index);
    add(arguments, "--device", QStringLiteral("cuda"));
    add(arguments, "--gpus", gpus.join(QLatin1Char(',')));
    if (options.enforceEager) arguments << QStringLiteral("--enforce-eager");
    if (needsLayoutFile(report, layout)) request.layoutFile = layoutFileOf(report, layout);
  }
  request.modelName = fromCore(report.model.name);
  request.layoutName = layoutName(layout);
  request.tp = layout.tp;
  request.pp = layout.pp;
  request.dp = layout.dp;
  for (const RankPlan& rank : layout.ranks) request.plannedRanks.push_back(plannedRank(rank, report.machine));
  const auto predicted = [](const std::optional<double>& value, const std::optional<double>& error) {
    return value ? std::optional(PredictedFigure(*value, error)) : std::nullopt;
  };
  request.predictedTokensPerSecond = predicted(layout.predicted.throughputTokensPerSecond, layout.predicted.itlError);
  request.predictedPromptTokensPerSecond = predicted(layout.predicted.prefillTokensPerSecond, layout.predicted.ttftError);
  request.predictedTtftMs = predicted(layout.predicted.ttftMs, layout.predicted.ttftError);
  return request;
}

}  // namespace headroom::ui
