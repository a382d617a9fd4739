// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/memory_breakdown_model.h"

#include "ui/models/layout_text.h"
#include "ui/theme/format.h"

#include <QCoreApplication>
#include <QStringList>
#include <algorithm>

namespace headroom::ui {
namespace {

// Replicas, stages and ranks count from 0, as the engine's states and log do.
// Ranks in the order they are shown: the limiting GPU first, then by rank.
std::vector<const RankPlan*> shownRanks(const LayoutPlan& layout) {
  std::vector<const RankPlan*> ranks;
  for (const RankPlan& rank : layout.ranks) ranks.push_back(&rank);
  std::stable_sort(ranks.begin(), ranks.end(), [&](const RankPlan* a, const RankPlan* b) {
    return (layout.limitingGpu == a->slice.gpu) > (layout.limitingGpu == b->slice.gpu);
  });
  return ranks;
}

QString shareOf(const RankSlice& slice, const LayoutPlan& layout) {
  QStringList parts;
  if (layout.dp > 1) parts << QCoreApplication::translate("Headroom", "replica %1").arg(slice.replica);
  if (layout.pp > 1) parts << QCoreApplication::translate("Headroom", "stage %1").arg(slice.stage);
  if (layout.tp > 1) parts << QCoreApplication::translate("Headroom", "TP rank %1").arg(slice.tpRank);
  if (!slice.layers.empty())
    parts << QCoreApplication::translate("Headroom", "layers %1–%2").arg(slice.layers.begin).arg(slice.layers.end - 1);
  const int heads = static_cast<int>(slice.qHeads.size());
  if (!layout.even && heads > 0) parts << QCoreApplication::translate("Headroom", "%n head(s)", nullptr, heads);
  return parts.join(QStringLiteral(" · "));
}

MemoryBarData barOf(const PlanReport& report, const LayoutPlan& layout, const RankPlan& rank) {
  MemoryBarData bar;
  bar.gpu = rank.slice.gpu;
  bar.name = QCoreApplication::translate("Headroom", "GPU %1").arg(rank.slice.gpu);
  bar.share = shareOf(rank.slice, layout);
  bar.limiting = layout.limitingGpu == rank.slice.gpu;
  bar.headroom = rank.headroom;
  Bytes others;
  const auto& gpus = report.machine.gpus;
  if (rank.slice.gpu >= 0 && rank.slice.gpu < static_cast<int>(gpus.size())) {
    const MachineGpu& gpu = gpus[static_cast<size_t>(rank.slice.gpu)];
    bar.total = gpu.totalMemory;
    others = gpu.usedByOthers.value_or(Bytes(0));
    bar.budget = rank.budget.value_or(bar.total);
  }
  Bytes used;
  const auto add = [&](MemoryPart part, const std::optional<Bytes>& bytes) {
    if (!bytes || bytes->count() <= 0) return;
    bar.segments.push_back({part, *bytes});
    used += *bytes;
  };
  add(MemoryPart::Weights, rank.weights);
  add(MemoryPart::Activations, rank.activations);
  add(MemoryPart::Graphs, rank.graphs);
  add(MemoryPart::Runtime, rank.runtime);
  // Headroom is what the budget leaves after the cache that the asked load needs.
  if (rank.headroom) {
    add(MemoryPart::KvCache, bar.budget - used - *rank.headroom);
    add(MemoryPart::KvSpare, *rank.headroom);
  } else {
    add(MemoryPart::KvCache, rank.kvCache);
  }
  add(MemoryPart::OtherProcesses, others);
  if (used < bar.total) bar.segments.push_back({MemoryPart::Free, bar.total - used});
  return bar;
}

}  // namespace

std::vector<MemoryBarData> memoryBars(const PlanReport& report, const LayoutPlan& layout) {
  std::vector<MemoryBarData> bars;
  for (const RankPlan* rank : shownRanks(layout)) bars.push_back(barOf(report, layout, *rank));
  return bars;
}

QString memoryPartName(MemoryPart part) {
  switch (part) {
    case MemoryPart::Weights:
      return QCoreApplication::translate("Headroom", "Weights");
    case MemoryPart::KvCache:
      return QCoreApplication::translate("Headroom", "KV cache, needed");
    case MemoryPart::KvSpare:
      return QCoreApplication::translate("Headroom", "KV cache, spare");
    case MemoryPart::Activations:
      return QCoreApplication::translate("Headroom", "Activations");
    case MemoryPart::Graphs:
      return QCoreApplication::translate("Headroom", "Graphs");
    case MemoryPart::Runtime:
      return QCoreApplication::translate("Headroom", "Runtime");
    case MemoryPart::OtherProcesses:
      return QCoreApplication::translate("Headroom", "Other processes");
    case MemoryPart::Free:
      return QCoreApplication::translate("Headroom", "Left to others");
  }
  return {};
}

MemoryBreakdownModel::MemoryBreakdownModel(QObject* parent) : QAbstractTableModel(parent) {}

void MemoryBreakdownModel::setLayout(const PlanReport* report, const LayoutPlan* layout) {
  beginResetModel();
  m_rows.clear();
  if (report && layout)
    for (const RankPlan* rank : shownRanks(*layout)) m_rows.push_back({*rank, barOf(*report, *layout, *rank)});
  endResetModel();
}

void MemoryBreakdownModel::retranslate() { emit headerDataChanged(Qt::Horizontal, 0, ColumnCount - 1); }

int MemoryBreakdownModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int MemoryBreakdownModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant MemoryBreakdownModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const Row& row = m_rows[static_cast<size_t>(index.row())];
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((index.column() <= Share ? Qt::AlignLeading : Qt::AlignTrailing) | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case Gpu:
      return row.bar.name;
    case Share:
      return row.bar.share;
    case Weights:
      return formatGib(row.plan.weights);
    case KvCache:
      return formatGib(row.plan.kvCache);
    case Activations:
      return formatGib(row.plan.activations);
    case Graphs:
      return formatGib(row.plan.graphs);
    case Runtime:
      return formatGib(row.plan.runtime);
    case Headroom:
      return formatGib(row.plan.headroom);
    default:
      return {};
  }
}

QVariant MemoryBreakdownModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  switch (section) {
    case Gpu:
      return tr("GPU");
    case Share:
      return tr("Share");
    case Weights:
      return memoryPartName(MemoryPart::Weights);
    case KvCache:
      return tr("KV cache");
    case Activations:
      return memoryPartName(MemoryPart::Activations);
    case Graphs:
      return memoryPartName(MemoryPart::Graphs);
    case Runtime:
      return memoryPartName(MemoryPart::Runtime);
    case Headroom:
      return tr("Headroom");
    default:
      return {};
  }
}

QString MemoryBreakdownModel::asCsv() const {
  QStringList lines;
  lines << QStringLiteral(
      "gpu,replica,stage,tp_rank,weights_bytes,kv_cache_bytes,activation_bytes,graph_bytes,runtime_bytes,headroom_bytes");
  const auto cell = [](const std::optional<Bytes>& bytes) { return bytes ? QString::number(bytes->count()) : QString(); };
  for (const Row& row : m_rows) {
    const RankPlan& plan = row.plan;
    lines << QStringList{QString::number(plan.slice.gpu),
                         QString::number(plan.slice.replica),
                         QString::number(plan.slice.stage),
                         QString::number(plan.slice.tpRank),
                         cell(plan.weights),
                         cell(plan.kvCache),
                         cell(plan.activations),
                         cell(plan.graphs),
                         cell(plan.runtime),
                         cell(plan.headroom)}
                 .join(QLatin1Char(','));
  }
  return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

}  // namespace headroom::ui
