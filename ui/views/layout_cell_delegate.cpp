// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/layout_cell_delegate.h"

#include "ui/models/layout_grid_model.h"
#include "ui/theme/headroom_color.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>

namespace headroom::ui {
namespace {

constexpr double kRadius = 5.0;

Symbol symbolOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::Fits:
      return Symbol::Fits;
    case Verdict::Tight:
      return Symbol::Tight;
    case Verdict::DoesNotFit:
      return Symbol::DoesNotFit;
    case Verdict::Invalid:
      return Symbol::Invalid;
  }
  return Symbol::Invalid;
}

}  // namespace

CellGeometry cellGeometry(const QRectF& box, double lineHeight, bool twoLines) {
  CellGeometry geometry;
  const bool compact = box.height() < lineHeight * 3.6;
  const double inset = compact ? 3 : 5, symbol = lineHeight * (compact ? 0.58 : 0.66);
  geometry.symbol = {box.left() + inset, box.top() + inset, symbol, symbol};
  geometry.star = {box.right() - inset - symbol, box.top() + inset, symbol, symbol};
  // The number stands in the middle, but never over the symbol.
  const double middle = box.center().y() - lineHeight * (twoLines ? 0.85 : 0.5);
  const QRectF content = box.adjusted(3, 0, -3, 0);
  geometry.first = {content.left(), std::max(middle, geometry.symbol.bottom()), content.width(), lineHeight};
  geometry.second = {content.left(), geometry.first.bottom(), content.width(), lineHeight * 0.9};
  return geometry;
}

LayoutCellDelegate::LayoutCellDelegate(QObject* parent) : QStyledItemDelegate(parent) {}

QSize LayoutCellDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const {
  QFont bold = option.font;
  bold.setWeight(QFont::DemiBold);
  return {QFontMetrics(bold).horizontalAdvance(QStringLiteral("-000.0 GiB")) + 12, option.fontMetrics.height() * 13 / 4};
}

void LayoutCellDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const QVariant verdictData = index.data(LayoutGridModel::VerdictRole);
  if (!verdictData.isValid()) return;
  const auto verdict = static_cast<Verdict>(verdictData.toInt());
  const ColorScheme scheme = schemeOf(option.palette);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  if (m_faded) painter->setOpacity(0.35);
  const QRectF box = QRectF(option.rect).adjusted(2.5, 2.5, -2.5, -2.5);
  QPainterPath shape;
  shape.addRoundedRect(box, kRadius, kRadius);

  QColor text;
  if (verdict == Verdict::Invalid) {
    painter->fillPath(shape, option.palette.color(QPalette::Active, QPalette::Window));
    QColor hatch = option.palette.color(QPalette::Active, QPalette::Mid);
    hatch.setAlphaF(0.4F);
    painter->fillPath(shape, QBrush(hatch, Qt::BDiagPattern));
    text = mutedText(option.palette);
  } else {
    const QVariant bytes = index.data(LayoutGridModel::HeadroomRole);
    const auto headroom = bytes.isValid() ? std::optional(Bytes(bytes.toLongLong())) : std::nullopt;
    const HeadroomShade shade =
        headroomShade(headroom, Bytes(index.data(LayoutGridModel::DeviceMemoryRole).toLongLong()), scheme);
    painter->fillPath(shape, shade.fill);
    text = shade.text;
  }

  const bool recommended = index.data(LayoutGridModel::RecommendedRole).toBool();
  QPen edge(separatorColor(option.palette), 1);
  if (verdict == Verdict::DoesNotFit) edge = QPen(text, 1, Qt::DashLine);
  if (recommended) edge = QPen(option.palette.color(QPalette::Active, QPalette::Highlight), 2);
  painter->setPen(edge);
  painter->setBrush(Qt::NoBrush);
  painter->drawPath(shape);

  // The symbol stands in the leading corner; number and second line share the middle.
  const QString second = index.data(LayoutGridModel::SecondLineRole).toString();
  const double height = QFontMetricsF(option.font).height();
  const CellGeometry geometry = cellGeometry(box, height, !second.isEmpty());
  paintSymbol(*painter, geometry.symbol, symbolOf(verdict), text);
  QFont font = option.font;
  painter->setPen(text);
  if (verdict == Verdict::Invalid) {
    font.setPointSizeF(font.pointSizeF() * 0.95);
    painter->setFont(font);
    QRectF words = box.adjusted(3, 0, -3, 0);
    words.setTop(geometry.symbol.bottom() - (box.height() > height * 4.5 ? height : 0));
    painter->drawText(words, Qt::AlignCenter | Qt::TextWordWrap, index.data(Qt::DisplayRole).toString());
  } else {
    font.setWeight(QFont::DemiBold);
    painter->setFont(font);
    painter->drawText(
        geometry.first, Qt::AlignCenter,
        QFontMetricsF(font).elidedText(index.data(Qt::DisplayRole).toString(), Qt::ElideRight, geometry.first.width()));
    font.setWeight(QFont::Normal);
    font.setPointSizeF(font.pointSizeF() * 0.8);
    painter->setFont(font);
    painter->drawText(geometry.second, Qt::AlignCenter,
                      QFontMetricsF(font).elidedText(second, Qt::ElideRight, geometry.second.width()));
  }
  if (recommended) paintSymbol(*painter, geometry.star, Symbol::Recommended, text);
  if (option.state & QStyle::State_Selected) {
    painter->setOpacity(1);
    painter->setPen(QPen(option.palette.color(QPalette::Active, QPalette::WindowText), 2));
    painter->drawRoundedRect(QRectF(option.rect).adjusted(1, 1, -1, -1), kRadius + 1, kRadius + 1);
  }
  if (option.state & QStyle::State_HasFocus) {
    painter->setPen(QPen(option.palette.color(QPalette::Active, QPalette::Highlight), 2, Qt::DotLine));
    painter->drawRoundedRect(QRectF(option.rect).adjusted(4, 4, -4, -4), kRadius - 1, kRadius - 1);
  }
  painter->restore();
}

}  // namespace headroom::ui
