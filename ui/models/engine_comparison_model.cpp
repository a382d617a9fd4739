// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/engine_comparison_model.h"

#include "ui/models/core_text.h"
#include "ui/models/layout_text.h"
#include "ui/theme/format.h"

#include <algorithm>

namespace headroom::ui {
namespace {

const LayoutPlan* recommendedOf(const EngineAnswer& answer) {
  if (!answer.report || !answer.report->recommended) return nullptr;
  const auto& sizes = *answer.report->recommended;
  return answer.report->find(sizes.tp, sizes.pp, sizes.dp);
}

}  // namespace

EngineComparisonModel::EngineComparisonModel(QObject* parent) : QAbstractTableModel(parent) {}

void EngineComparisonModel::setAnswers(const EngineAnswers& answers) {
  beginResetModel();
  m_answers = answers;
  endResetModel();
}

const EngineAnswer* EngineComparisonModel::answerAt(int row) const {
  return row >= 0 && row < rowCount() ? &m_answers[static_cast<size_t>(row)] : nullptr;
}

void EngineComparisonModel::retranslate() {
  emit headerDataChanged(Qt::Horizontal, 0, ColumnCount - 1);
  if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int EngineComparisonModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_answers.size());
}
int EngineComparisonModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QString EngineComparisonModel::cell(const EngineAnswer& answer, int column) const {
  if (column == Engine) {
    QString name = engineTitle(answer.engine.kind);
    if (answer.report && !answer.report->options.engine.version.empty() && answer.engine.kind != EngineKind::Headroom)
      name += QLatin1Char(' ') + fromCore(answer.report->options.engine.version);
    return name;
  }
  const LayoutPlan* layout = recommendedOf(answer);
  if (!layout) {
    if (column != Layout) return {};
    if (!answer.report) return errorText(answer.problem);
    // Why nothing fits: what the smallest layout is refused for, else that memory is missing everywhere.
    const auto& layouts = answer.report->layouts;
    const bool allInvalid =
        std::all_of(layouts.begin(), layouts.end(), [](const LayoutPlan& plan) { return plan.verdict == Verdict::Invalid; });
    if (allInvalid && !layouts.empty() && !layouts.front().reasons.empty())
      return coreText(layouts.front().reasons.front().message);
    return tr("no layout fits");
  }
  const LayoutAnswers* answers = layout->answers.empty() ? nullptr : &layout->answers.front();
  switch (column) {
    case Layout:
      return layoutName(*layout);
    case Headroom:
      return formatGib(layout->headroom);
    case Context:
      return answers ? formatCompact(answers->longestContext) : kUnknown;
    case Requests:
      return answers ? formatCompact(answers->mostRequests) : kUnknown;
    case Decode:
      return formatDecimal(layout->predicted.decodeTokensPerSecond);
    case Throughput:
      return formatDecimal(layout->predicted.throughputTokensPerSecond);
    case Ttft:
      return formatDecimal(layout->predicted.ttftMs);
    default:
      return {};
  }
}

QString EngineComparisonModel::sentence(int row) const {
  const EngineAnswer* answer = answerAt(row);
  if (!answer) return {};
  const LayoutPlan* layout = recommendedOf(*answer);
  if (!layout) return cell(*answer, Layout);
  QString text = coreText(answer->report->recommended->why);
  if (layout->kvTokens) text += QLatin1Char(' ') + tr("KV cache of %1 tokens.").arg(formatCount(layout->kvTokens));
  const Prediction& predicted = layout->predicted;
  if (predicted.itlMs)
    text += QLatin1Char('\n') +
            tr("Room: %1. Speed: modelled, %2 for decoding, %3 to the first token; nine of ten timed cases of this "
               "kind lie within ±.")
                .arg(provenanceText(layout->memoryProvenance), bandText(predicted.itlError), bandText(predicted.ttftError));
  else
    text += QLatin1Char('\n') + tr("Room: %1.").arg(provenanceText(layout->memoryProvenance)) + QLatin1Char(' ') +
            (predicted.source.empty() ? tr("Speed: unknown") : coreText(predicted.source));
  return text;
}

QVariant EngineComparisonModel::data(const QModelIndex& index, int role) const {
  const EngineAnswer* answer = index.isValid() ? answerAt(index.row()) : nullptr;
  if (!answer) return {};
  switch (role) {
    case Qt::DisplayRole:
      return cell(*answer, index.column());
    case Qt::TextAlignmentRole:
      return static_cast<int>((index.column() <= Layout ? Qt::AlignLeading : Qt::AlignTrailing) | Qt::AlignVCenter);
    case Qt::ToolTipRole:
      return sentence(index.row());
    case Qt::AccessibleTextRole: {
      const QString text = cell(*answer, index.column());
      return QStringLiteral("%1: %2").arg(headerData(index.column(), Qt::Horizontal, Qt::DisplayRole).toString(),
                                          text.isEmpty() || text == kUnknown ? tr("unknown") : text);
    }
    default:
      return {};
  }
}

QVariant EngineComparisonModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || orientation == Qt::Vertical) return {};
  switch (section) {
    case Engine:
      return tr("Engine");
    case Layout:
      return tr("Layout");
    case Headroom:
      return tr("Headroom");
    case Context:
      return tr("Most context");
    case Requests:
      return tr("Most requests");
    case Decode:
      return tr("Decode tok/s");
    case Throughput:
      return tr("All tok/s");
    case Ttft:
      return tr("TTFT ms");
    default:
      return {};
  }
}

}  // namespace headroom::ui
