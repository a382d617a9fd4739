// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/card.h"

#include "ui/theme/theme.h"

#include <QPainter>

namespace headroom::ui {

Card::Card(QWidget* parent) : QFrame(parent) { setFrameShape(QFrame::NoFrame); }

void Card::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(separatorColor(palette()), 1));
  painter.setBrush(cardColor(palette()));
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8);
}

QLabel* makeTitle(QWidget* parent, double scale) {
  auto* label = new QLabel(parent);
  QFont font = label->font();
  font.setPointSizeF(font.pointSizeF() * scale);
  font.setWeight(QFont::DemiBold);
  label->setFont(font);
  label->setTextFormat(Qt::PlainText);
  return label;
}

QLabel* makeQuietLabel(QWidget* parent) {
  QLabel* label = makeTextLabel(parent);
  label->setForegroundRole(QPalette::PlaceholderText);
  return label;
}

QLabel* makeTextLabel(QWidget* parent) {
  auto* label = new QLabel(parent);
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

}  // namespace headroom::ui
