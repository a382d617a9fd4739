// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/layout_cell_delegate.h"

#include "ui/models/layout_grid_model.h"
#include "ui/theme/headroom_color.h"

#include <QPainter>
#include <QPainterPath>

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

LayoutCellDelegate::LayoutCellDelegate(QObject* parent) : QStyledItemDelegate(parent) {}

QSize LayoutCellDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const {
  QFont bold = option.font;
  bold.setWeight(QFont::DemiBold);
  return {QFontMetrics(bold).horizontalAdvance(QStringLiteral("-00.0 GiB")) + 10, option.fontMetrics.height() * 3};
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
  const double height = QFontMetricsF(option.font).height(), symbolSize = height * 0.66;
  paintSymbol(*painter, QRectF(box.left() + 5, box.top() + 5, symbolSize, symbolSize), symbolOf(verdict), text);
  QFont font = option.font;
  const QRectF content = box.adjusted(3, 0, -3, 0);
  painter->setPen(text);
  if (verdict == Verdict::Invalid) {
    font.setPointSizeF(font.pointSizeF() * 0.95);
    painter->setFont(font);
    painter->drawText(content.adjusted(0, symbolSize * 0.5, 0, 0), Qt::AlignCenter | Qt::TextWordWrap,
                      index.data(Qt::DisplayRole).toString());
  } else {
    const double top = box.center().y() - height * (second.isEmpty() ? 0.5 : 0.85);
    font.setWeight(QFont::DemiBold);
    painter->setFont(font);
    const QRectF first(content.left(), top, content.width(), height);
    painter->drawText(first, Qt::AlignCenter,
                      QFontMetricsF(font).elidedText(index.data(Qt::DisplayRole).toString(), Qt::ElideRight, first.width()));
    font.setWeight(QFont::Normal);
    font.setPointSizeF(font.pointSizeF() * 0.8);
    painter->setFont(font);
    const QRectF line(content.left(), top + height * 1.08, content.width(), height);
    painter->drawText(line, Qt::AlignCenter, QFontMetricsF(font).elidedText(second, Qt::ElideRight, line.width()));
  }
  if (recommended) {
    const double size = height * 0.72;
    paintSymbol(*painter, QRectF(box.right() - size - 4, box.top() + 4, size, size), Symbol::Recommended, text);
  }
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
