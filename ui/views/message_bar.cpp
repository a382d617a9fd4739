// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/message_bar.h"

#include "ui/views/card.h"

#include <QAccessible>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>

namespace headroom::ui {

MessageBar::MessageBar(NoticeKind kind, QWidget* parent) : QFrame(parent), m_kind(kind) {
  m_label = makeTextLabel(this);
  m_label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  m_button = new QPushButton(this);
  m_button->hide();
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(kPadding, 8, 8, 8);
  layout->addWidget(m_label, 1);
  layout->addWidget(m_button, 0, Qt::AlignTop);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
  hide();
}

void MessageBar::setText(const QString& text) {
  setVisible(!text.isEmpty());
  if (text == m_label->text()) return;
  m_label->setText(text);
  setAccessibleName(text);
  if (text.isEmpty()) return;
  QAccessibleEvent alert(this, QAccessible::Alert);
  QAccessible::updateAccessibility(&alert);
}

QString MessageBar::text() const { return m_label->text(); }

void MessageBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const ColorScheme scheme = schemeOf(palette());
  painter.setPen(Qt::NoPen);
  painter.setBrush(noticeColor(m_kind, scheme));
  painter.drawRoundedRect(rect(), 6, 6);
  painter.setBrush(noticeAccent(m_kind, scheme));
  painter.drawRoundedRect(QRect(0, 0, 4, height()), 2, 2);
}

}  // namespace headroom::ui
