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

// Symbol and text, centred together.
void drawLine(QPainter& painter, const QRectF& line, Symbol symbol, const QString& text, const QColor& color) {
  const QFontMetricsF metrics(painter.font());
  const double size = metrics.ascent() * 0.82, gap = size * 0.45;
  const QString shown = metrics.elidedText(text, Qt::ElideRight, line.width() - size - gap);
  const double width = size + gap + metrics.horizontalAdvance(shown);
  const double left = line.center().x() - width / 2;
  paintSymbol(painter, QRectF(left, line.center().y() - size / 2, size, size), symbol, color);
  painter.setPen(color);
  painter.drawText(QRectF(left + size + gap, line.top(), width, line.height()), Qt::AlignLeading | Qt::AlignVCenter, shown);
}

}  // namespace

LayoutCellDelegate::LayoutCellDelegate(QObject* parent) : QStyledItemDelegate(parent) {}

QSize LayoutCellDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const {
  const QFontMetrics& metrics = option.fontMetrics;
  return {metrics.horizontalAdvance(QStringLiteral("✓ 000.0 GiB")) + metrics.height(), metrics.height() * 3};
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
    hatch.setAlphaF(0.55F);
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

  const QString second = index.data(LayoutGridModel::SecondLineRole).toString();
  const double height = QFontMetricsF(option.font).height();
  QFont font = option.font;
  QRectF content = box.adjusted(6, 0, -6, 0);
  if (verdict == Verdict::Invalid) {
    // A halo keeps the rule readable on the hatching.
    font.setPointSizeF(font.pointSizeF() * 0.92);
    painter->setFont(font);
    QColor halo = option.palette.color(QPalette::Active, QPalette::Window);
    halo.setAlphaF(0.8F);
    painter->fillRect(QRectF(content.left() - 2, content.center().y() - height * 0.62, content.width() + 4, height * 1.24), halo);
    drawLine(*painter, content, symbolOf(verdict), index.data(Qt::DisplayRole).toString(), text);
  } else {
    const double top = box.center().y() - height * (second.isEmpty() ? 0.5 : 1.02);
    font.setWeight(QFont::DemiBold);
    painter->setFont(font);
    drawLine(*painter, QRectF(content.left(), top, content.width(), height), symbolOf(verdict),
             index.data(Qt::DisplayRole).toString(), text);
    font.setWeight(QFont::Normal);
    font.setPointSizeF(font.pointSizeF() * 0.9);
    painter->setFont(font);
    painter->setPen(text);
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
