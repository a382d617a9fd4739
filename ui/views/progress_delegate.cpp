// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/progress_delegate.h"

#include "ui/theme/theme.h"

#include <QApplication>
#include <QPainter>

namespace headroom::ui {

void ProgressDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const QVariant fraction = index.data(m_fractionRole);
  if (!fraction.isValid()) {
    QStyledItemDelegate::paint(painter, option, index);
    return;
  }
  QStyleOptionViewItem item = option;
  initStyleOption(&item, index);
  const QString text = item.text;
  item.text.clear();
  const QStyle* style = option.widget ? option.widget->style() : QApplication::style();
  style->drawControl(QStyle::CE_ItemViewItem, &item, painter, option.widget);

  const int textWidth = option.fontMetrics.horizontalAdvance(QStringLiteral("100 %")) + 8;
  const QRect cell = option.rect.adjusted(6, 0, -6, 0);
  const int thickness = std::max(4, option.fontMetrics.height() / 3);
  QRectF track(cell.left(), cell.center().y() - thickness / 2.0, std::max(0, cell.width() - textWidth), thickness);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(Qt::NoPen);
  painter->setBrush(separatorColor(option.palette));
  painter->drawRoundedRect(track, thickness / 2.0, thickness / 2.0);
  QRectF done = track;
  done.setWidth(track.width() * fraction.toDouble());
  painter->setBrush(memoryPartColor(MemoryPart::Weights, schemeOf(option.palette)));
  if (done.width() > 0.5) painter->drawRoundedRect(done, thickness / 2.0, thickness / 2.0);
  painter->setPen(option.palette.color(option.state & QStyle::State_Selected ? QPalette::HighlightedText : QPalette::Text));
  painter->drawText(cell, Qt::AlignRight | Qt::AlignVCenter, text);
  painter->restore();
}

QSize ProgressDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QSize size = QStyledItemDelegate::sizeHint(option, index);
  size.setWidth(std::max(size.width(), option.fontMetrics.averageCharWidth() * 24));
  return size;
}

}  // namespace headroom::ui
