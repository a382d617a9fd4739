// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/layout_grid_model.h"

#include "ui/models/layout_text.h"
#include "ui/theme/format.h"

#include <algorithm>

namespace headroom::ui {

LayoutGridModel::LayoutGridModel(QObject* parent) : QAbstractTableModel(parent) {}

void LayoutGridModel::setReport(std::shared_ptr<const PlanReport> report) {
  const bool sameShape = m_report && report && m_report->machine.size() == report->machine.size();
  if (sameShape) {
    // Selection and focus survive a changed option.
    m_report = std::move(report);
    if (sizeOfSide() > 0) emit dataChanged(index(0, 0), index(sizeOfSide() - 1, sizeOfSide() - 1));
    return;
  }
  beginResetModel();
  m_report = std::move(report);
  m_replicas = std::clamp(m_replicas, 1, std::max(1, maxReplicas()));
  endResetModel();
}

void LayoutGridModel::setReplicas(int replicas) {
  replicas = std::clamp(replicas, 1, std::max(1, maxReplicas()));
  if (replicas == m_replicas) return;
  beginResetModel();
  m_replicas = replicas;
  endResetModel();
}

int LayoutGridModel::maxReplicas() const { return m_report ? m_report->machine.size() : 0; }

int LayoutGridModel::sizeOfSide() const { return m_report ? m_report->machine.size() / m_replicas : 0; }

const LayoutPlan* LayoutGridModel::layoutAt(const QModelIndex& index) const {
  if (!index.isValid() || !m_report) return nullptr;
  return m_report->find(index.column() + 1, index.row() + 1, m_replicas);
}

QModelIndex LayoutGridModel::indexOf(int tp, int pp) const {
  if (tp < 1 || pp < 1 || tp > sizeOfSide() || pp > sizeOfSide()) return {};
  return index(pp - 1, tp - 1);
}

QModelIndex LayoutGridModel::recommendedIndex() const {
  if (!m_report || !m_report->recommended || m_report->recommended->dp != m_replicas) return {};
  return indexOf(m_report->recommended->tp, m_report->recommended->pp);
}

void LayoutGridModel::retranslate() {
  const int size = sizeOfSide();
  if (size == 0) return;
  emit dataChanged(index(0, 0), index(size - 1, size - 1));
  emit headerDataChanged(Qt::Horizontal, 0, size - 1);
  emit headerDataChanged(Qt::Vertical, 0, size - 1);
}

int LayoutGridModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : sizeOfSide(); }
int LayoutGridModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : sizeOfSide(); }

QVariant LayoutGridModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !m_report) return {};
  const int tp = index.column() + 1, pp = index.row() + 1;
  const LayoutPlan* layout = layoutAt(index);
  if (!layout) {
    if (role == Qt::AccessibleTextRole || role == Qt::ToolTipRole)
      return tr("%1 needs %n GPU(s); %2 are there", nullptr, tp * pp * m_replicas)
          .arg(layoutName(tp, pp, m_replicas))
          .arg(m_report->machine.size());
    return {};
  }
  switch (role) {
    case Qt::DisplayRole:
      return layout->verdict == Verdict::Invalid ? shortReason(*layout, m_report->model) : formatGib(layout->headroom);
    case Qt::AccessibleTextRole:
    case Qt::ToolTipRole:
      return cellDescription(*layout, *m_report);
    case Qt::TextAlignmentRole:
      return static_cast<int>(Qt::AlignCenter);
    case VerdictRole:
      return static_cast<int>(layout->verdict);
    case HeadroomRole:
      return layout->headroom ? QVariant(static_cast<qint64>(layout->headroom->count())) : QVariant();
    case DeviceMemoryRole: {
      const int gpu = layout->limitingGpu.value_or(0);
      const auto& gpus = m_report->machine.gpus;
      if (gpu < 0 || gpu >= static_cast<int>(gpus.size())) return {};
      return static_cast<qint64>(gpus[static_cast<size_t>(gpu)].totalMemory.count());
    }
    case SecondLineRole:
      return secondLine(*layout);
    case RecommendedRole:
      return recommendedIndex() == index;
    case UnevenRole:
      return !layout->even;
    default:
      return {};
  }
}

QString LayoutGridModel::secondLine(const LayoutPlan& layout) const {
  if (layout.verdict == Verdict::Invalid) return {};
  if (layout.verdict == Verdict::DoesNotFit) return verdictText(layout.verdict);
  if (!layout.kvTokens) return {};
  return tr("%1 tokens").arg(formatCompact(layout.kvTokens));
}

QVariant LayoutGridModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (section < 0 || section >= sizeOfSide()) return {};
  switch (role) {
    case Qt::DisplayRole:
      return orientation == Qt::Horizontal ? QStringLiteral("TP %1").arg(section + 1) : QStringLiteral("PP %1").arg(section + 1);
    case Qt::ToolTipRole:
    case Qt::AccessibleTextRole:
      return orientation == Qt::Horizontal ? tr("Each layer divided over %n GPU(s)", nullptr, section + 1)
                                           : tr("Layers divided into %n stage(s)", nullptr, section + 1);
    default:
      return {};
  }
}

Qt::ItemFlags LayoutGridModel::flags(const QModelIndex& index) const {
  return layoutAt(index) ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren : Qt::NoItemFlags;
}

}  // namespace headroom::ui
