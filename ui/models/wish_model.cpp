// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/wish_model.h"

#include "ui/models/core_text.h"
#include "ui/models/layout_text.h"
#include "ui/theme/format.h"

#include <QStringList>
#include <algorithm>

namespace headroom::ui {
namespace {

// "2xH100-80GB-SXM" is two of "H100-80GB-SXM".
std::string cardName(const WishAnswer& answer) { return answer.gpus.substr(answer.gpus.find('x') + 1); }

std::optional<double> tokensOfEach(const Prediction& predicted) {
  return predicted.itlMs && *predicted.itlMs > 0 ? std::optional(1000.0 / *predicted.itlMs) : std::nullopt;
}

}  // namespace

WishModel::WishModel(QObject* parent) : QAbstractTableModel(parent) {}

void WishModel::clear() {
  beginResetModel();
  m_answers.clear();
  m_refused.clear();
  endResetModel();
}

void WishModel::add(const WishReport& ofOneCard) {
  for (WishAnswer answer : ofOneCard.answers) {
    if (const auto price = m_prices.find(cardName(answer)); price != m_prices.end()) answer.price = price->second * answer.count;
    std::vector<WishAnswer> sorted = m_answers;
    sorted.push_back(answer);
    sortAnswers(sorted);
    const auto at = std::find_if(sorted.begin(), sorted.end(), [&](const WishAnswer& each) { return each.gpus == answer.gpus; });
    const int row = static_cast<int>(at - sorted.begin());
    beginInsertRows({}, row, row);
    m_answers = std::move(sorted);
    endInsertRows();
  }
  for (const WishReport::Refused& refused : ofOneCard.refused) {
    beginInsertRows({}, rowCount(), rowCount());
    m_refused.push_back(refused);
    endInsertRows();
  }
}

void WishModel::setPrice(const QString& card, double price) {
  if (price > 0)
    m_prices[card.toStdString()] = price;
  else
    m_prices.erase(card.toStdString());
  beginResetModel();
  for (WishAnswer& answer : m_answers) {
    const auto known = m_prices.find(cardName(answer));
    answer.price = known == m_prices.end() ? std::nullopt : std::optional(known->second * answer.count);
  }
  sortAnswers(m_answers);
  endResetModel();
}

double WishModel::priceOf(const QString& card) const {
  const auto known = m_prices.find(card.toStdString());
  return known == m_prices.end() ? 0 : known->second;
}

const WishAnswer* WishModel::answerAt(int row) const {
  return row >= 0 && row < answers() ? &m_answers[static_cast<size_t>(row)] : nullptr;
}

QString WishModel::cardOf(int row) const {
  if (const WishAnswer* answer = answerAt(row)) return fromCore(cardName(*answer));
  const int refused = row - answers();
  return refused >= 0 && refused < static_cast<int>(m_refused.size()) ? fromCore(m_refused[static_cast<size_t>(refused)].gpu)
                                                                      : QString();
}

QString WishModel::sentence(int row) const {
  const WishAnswer* answer = answerAt(row);
  if (!answer) {
    const int refused = row - answers();
    if (refused < 0 || refused >= static_cast<int>(m_refused.size())) return {};
    return tr("%1 does not grant it: %2").arg(cardOf(row), coreText(m_refused[static_cast<size_t>(refused)].why));
  }
  const Prediction& predicted = answer->predicted;
  QString text = tr("%1 as %2: %3 are left on the fullest GPU.")
                     .arg(fromCore(answer->gpus), layoutName(answer->tp, answer->pp, answer->dp), formatGib(answer->headroom));
  if (!predicted.itlMs)
    text += QLatin1Char(' ') + (predicted.source.empty() ? tr("Speed: unknown") : coreText(predicted.source));
  else
    text += QLatin1Char(' ') + tr("Modelled: %1 tokens/s of each request %2, first token after %3 ms %4; nine of ten timed cases "
                                  "of this kind lie within ±.")
                                   .arg(formatDecimal(tokensOfEach(predicted)), bandText(predicted.itlError),
                                        formatDecimal(predicted.ttftMs), bandText(predicted.ttftError));
  return text;
}

void WishModel::retranslate() {
  emit headerDataChanged(Qt::Horizontal, 0, ColumnCount - 1);
  if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int WishModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_answers.size() + m_refused.size());
}
int WishModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QString WishModel::cell(int row, int column) const {
  const WishAnswer* answer = answerAt(row);
  if (column == CardPrice) {
    const double price = priceOf(cardOf(row));
    return price > 0 ? formatDecimal(price) : kUnknown;
  }
  if (!answer) {
    if (column == Gpus) return cardOf(row);
    return column == Layout ? tr("does not grant it") : QString();
  }
  switch (column) {
    case Gpus:
      return QStringLiteral("%1 × %2").arg(QString::number(answer->count), cardOf(row));
    case Layout:
      return layoutName(answer->tp, answer->pp, answer->dp);
    case Headroom:
      return formatGib(answer->headroom);
    case Each:
      return formatDecimal(tokensOfEach(answer->predicted));
    case Throughput:
      return formatDecimal(answer->predicted.throughputTokensPerSecond);
    case Ttft:
      return formatDecimal(answer->predicted.ttftMs);
    case Memory:
      return formatGib(answer->memory);
    case Price:
      return formatDecimal(answer->price);
    default:
      return {};
  }
}

QVariant WishModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  switch (role) {
    case Qt::DisplayRole:
      return cell(index.row(), index.column());
    case Qt::EditRole:
      return index.column() == CardPrice ? QVariant(priceOf(cardOf(index.row()))) : QVariant(cell(index.row(), index.column()));
    case Qt::TextAlignmentRole:
      return static_cast<int>((index.column() <= Layout ? Qt::AlignLeading : Qt::AlignTrailing) | Qt::AlignVCenter);
    case Qt::ToolTipRole:
      return sentence(index.row());
    case Qt::AccessibleTextRole: {
      const QString text = cell(index.row(), index.column());
      return QStringLiteral("%1: %2").arg(headerData(index.column(), Qt::Horizontal, Qt::DisplayRole).toString(),
                                          text.isEmpty() || text == kUnknown ? tr("unknown") : text);
    }
    default:
      return {};
  }
}

bool WishModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  bool isNumber = false;
  const double price = value.toDouble(&isNumber);
  if (!index.isValid() || role != Qt::EditRole || index.column() != CardPrice || !isNumber || price < 0) return false;
  const QString card = cardOf(index.row());
  // The view still has its editor open; rows move when it is gone.
  QMetaObject::invokeMethod(
      this,
      [this, card, price] {
        setPrice(card, price);
        emit priceChanged(card, price);
      },
      Qt::QueuedConnection);
  return true;
}

QVariant WishModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || orientation == Qt::Vertical) return {};
  switch (section) {
    case Gpus:
      return tr("GPUs");
    case Layout:
      return tr("Layout");
    case Headroom:
      return tr("Headroom");
    case Each:
      return tr("Tokens/s of each");
    case Throughput:
      return tr("Tokens/s of all");
    case Ttft:
      return tr("First token, ms");
    case Memory:
      return tr("Memory");
    case CardPrice:
      return tr("Price of a card");
    case Price:
      return tr("Price");
    default:
      return {};
  }
}

Qt::ItemFlags WishModel::flags(const QModelIndex& index) const {
  Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  if (index.isValid() && index.column() == CardPrice) flags |= Qt::ItemIsEditable;
  return flags;
}

}  // namespace headroom::ui
