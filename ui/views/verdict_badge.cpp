// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/verdict_badge.h"

#include "ui/models/layout_text.h"
#include "ui/theme/headroom_color.h"

#include <QPainter>
#include <QPainterPath>

namespace headroom::ui {

VerdictBadge::VerdictBadge(QWidget* parent) : QWidget(parent) { setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed); }

void VerdictBadge::set(Verdict verdict, std::optional<Bytes> headroom, Bytes deviceMemory) {
  m_verdict = verdict;
  m_headroom = headroom;
  m_deviceMemory = deviceMemory;
  setAccessibleName(text());
  updateGeometry();
  update();
}

QString VerdictBadge::text() const {
  if (m_verdict == Verdict::Invalid) return verdictText(m_verdict);
  return QStringLiteral("%1 · %2").arg(verdictText(m_verdict), headroomLabel(m_headroom));
}

QSize VerdictBadge::sizeHint() const {
  const QFontMetrics metrics = fontMetrics();
  return {metrics.horizontalAdvance(text()) + metrics.height() * 5 / 2, metrics.height() * 3 / 2};
}

void VerdictBadge::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF box = QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5);
  QPainterPath shape;
  shape.addRoundedRect(box, box.height() / 2, box.height() / 2);
  QColor ink = palette().color(QPalette::WindowText);
  Symbol symbol = Symbol::Invalid;
  if (m_verdict == Verdict::Invalid) {
    painter.fillPath(shape, palette().color(QPalette::Window));
    painter.setPen(QPen(palette().color(QPalette::Mid), 1));
    painter.drawPath(shape);
  } else {
    const HeadroomShade shade = headroomShade(m_headroom, m_deviceMemory, schemeOf(palette()));
    painter.fillPath(shape, shade.fill);
    painter.setPen(QPen(separatorColor(palette()), 1));
    painter.drawPath(shape);
    ink = shade.text;
    symbol = m_verdict == Verdict::Fits ? Symbol::Fits : m_verdict == Verdict::Tight ? Symbol::Tight : Symbol::DoesNotFit;
  }
  const double size = fontMetrics().ascent() * 0.85, left = fontMetrics().height() * 0.6;
  paintSymbol(painter, QRectF(left, box.center().y() - size / 2, size, size), symbol, ink);
  painter.setPen(ink);
  painter.drawText(QRectF(left + size * 1.5, 0, width(), height()), Qt::AlignLeading | Qt::AlignVCenter, text());
}

}  // namespace headroom::ui
