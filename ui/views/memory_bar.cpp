// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/memory_bar.h"

#include "ui/theme/format.h"
#include "ui/theme/headroom_color.h"

#include <QEvent>
#include <QHelpEvent>
#include <QPaintEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>

namespace headroom::ui {

BarGeometry barGeometry(const MemoryBarData& bar, double width) {
  Bytes sum;
  for (const MemorySegment& segment : bar.segments) sum += segment.bytes;
  const double whole = static_cast<double>(std::max(sum, bar.total).count());
  const Bytes limit = bar.budget.count() > 0 ? bar.budget : bar.total;
  BarGeometry geometry;
  if (whole <= 0) return geometry;
  double end = 0;
  for (const MemorySegment& segment : bar.segments) {
    end += static_cast<double>(segment.bytes.count()) / whole * width;
    geometry.ends.push_back(end);
  }
  geometry.limit = static_cast<double>(limit.count()) / whole * width;
  return geometry;
}

MemoryBars::MemoryBars(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("memoryBars"));
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
  updateAccessible();
}

void MemoryBars::setBars(std::vector<MemoryBarData> bars) {
  m_bars = std::move(bars);
  updateAccessible();
  updateGeometry();
  update();
}

QString MemoryBars::describe(const MemoryBarData& bar) const {
  QStringList parts;
  for (const MemorySegment& segment : bar.segments)
    parts << QStringLiteral("%1 %2").arg(memoryPartName(segment.part), formatGib(segment.bytes));
  QString text = tr("%1 (%2): %3 of %4").arg(bar.name, bar.share, parts.join(QStringLiteral(", ")), formatGib(bar.total));
  return text;
}

void MemoryBars::updateAccessible() {
  setAccessibleName(tr("Memory of each GPU"));
  QStringList lines;
  for (const MemoryBarData& bar : m_bars) lines << describe(bar);
  setAccessibleDescription(lines.join(QStringLiteral("; ")));
}

int MemoryBars::rowHeight() const { return fontMetrics().height() * 5 / 2; }

int MemoryBars::heightForWidth(int width) const {
  return static_cast<int>(m_bars.size()) * rowHeight() + (m_bars.empty() ? 0 : legend(width, 0, nullptr));
}
QSize MemoryBars::sizeHint() const {
  const int width = fontMetrics().averageCharWidth() * 44;
  return {width, heightForWidth(width)};
}
QSize MemoryBars::minimumSizeHint() const {
  const int least = fontMetrics().averageCharWidth() * 26;
  return {least, heightForWidth(std::max(width(), least))};
}

int MemoryBars::legend(int width, int top, QPainter* painter) const {
  const QFontMetrics metrics = fontMetrics();
  const int swatch = metrics.height() * 2 / 3, gap = metrics.height() / 3, line = metrics.height() + 2;
  const ColorScheme scheme = schemeOf(palette());
  int x = 0, y = 0;
  for (const MemoryPart part : {MemoryPart::Weights, MemoryPart::Activations, MemoryPart::Graphs, MemoryPart::Runtime,
                                MemoryPart::KvCache, MemoryPart::KvSpare, MemoryPart::OtherProcesses, MemoryPart::Free}) {
    const bool present = std::any_of(m_bars.begin(), m_bars.end(), [part](const MemoryBarData& bar) {
      return std::any_of(bar.segments.begin(), bar.segments.end(),
                         [part](const MemorySegment& segment) { return segment.part == part; });
    });
    if (!present) continue;
    const QString name = memoryPartName(part);
    const int entry = swatch + gap + metrics.horizontalAdvance(name) + 2 * gap;
    if (x > 0 && x + entry > width) {
      x = 0;
      y += line;
    }
    if (painter) {
      const QRectF box(x + 0.5, top + y + (metrics.height() - swatch) / 2.0 + 0.5, swatch - 1, swatch - 1);
      painter->setPen(QPen(separatorColor(palette()), 1));
      painter->setBrush(memoryPartColor(part, scheme));
      painter->drawRoundedRect(box, 2, 2);
      painter->setPen(mutedText(palette()));
      painter->drawText(QRect(x + swatch + gap, top + y, entry, metrics.height()), Qt::AlignLeading | Qt::AlignVCenter, name);
    }
    x += entry;
  }
  return y + line;
}

void MemoryBars::paintEvent(QPaintEvent* event) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const ColorScheme scheme = schemeOf(palette());
  const QFontMetrics metrics = fontMetrics();
  // Of a machine of a hundred GPUs few bars are in sight.
  const int first = std::max(0, event->rect().top() / rowHeight()), past = event->rect().bottom() / rowHeight() + 1;
  const int count = static_cast<int>(m_bars.size());
  for (int row = first; row < std::min(past, count); ++row) {
    const MemoryBarData& bar = m_bars[static_cast<size_t>(row)];
    const int top = row * rowHeight();
    const int textHeight = metrics.height();
    QFont bold = font();
    bold.setWeight(bar.limiting ? QFont::DemiBold : QFont::Normal);
    painter.setFont(bold);
    painter.setPen(palette().color(QPalette::WindowText));
    const QString free = headroomLabel(bar.headroom);
    const int freeWidth = QFontMetrics(bold).horizontalAdvance(free);
    painter.drawText(QRect(width() - freeWidth, top, freeWidth, textHeight), Qt::AlignTrailing | Qt::AlignVCenter, free);
    const int nameWidth = QFontMetrics(bold).horizontalAdvance(bar.name);
    painter.drawText(QRect(0, top, nameWidth, textHeight), Qt::AlignLeading | Qt::AlignVCenter, bar.name);
    painter.setFont(font());
    painter.setPen(mutedText(palette()));
    const int left = nameWidth + metrics.averageCharWidth() * 2;
    const int room = width() - freeWidth - left - metrics.averageCharWidth() * 2;
    painter.drawText(QRect(left, top, room, textHeight), Qt::AlignLeading | Qt::AlignVCenter,
                     metrics.elidedText(bar.share, Qt::ElideRight, room));

    const QRectF strip(0.5, top + textHeight + 3.5, width() - 1.0, metrics.height() * 0.85);
    QPainterPath clip;
    clip.addRoundedRect(strip, 4, 4);
    painter.save();
    painter.setClipPath(clip);
    const BarGeometry geometry = barGeometry(bar, strip.width());
    double begin = 0;
    for (size_t i = 0; i < geometry.ends.size(); ++i) {
      const QRectF piece(strip.left() + begin, strip.top(), geometry.ends[i] - begin, strip.height());
      painter.fillRect(piece, memoryPartColor(bar.segments[i].part, scheme));
      begin = geometry.ends[i];
    }
    // The end of what the engine may use is marked; what it needs beyond is hatched.
    double needed = 0;
    for (size_t i = 0; i < geometry.ends.size(); ++i)
      if (bar.segments[i].part != MemoryPart::Free) needed = geometry.ends[i];
    const double limit = strip.left() + geometry.limit;
    if (needed > geometry.limit + 1)
      painter.fillRect(QRectF(limit, strip.top(), needed - geometry.limit, strip.height()),
                       QBrush(palette().color(QPalette::WindowText), Qt::BDiagPattern));
    painter.setPen(QPen(palette().color(QPalette::WindowText), needed > geometry.limit + 1 ? 2 : 1));
    if (geometry.limit < strip.width() - 1) painter.drawLine(QPointF(limit, strip.top()), QPointF(limit, strip.bottom()));
    painter.restore();
    painter.setPen(QPen(separatorColor(palette()), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(clip);
  }
  if (count > 0 && past > count) legend(width(), count * rowHeight(), &painter);
}

bool MemoryBars::event(QEvent* event) {
  // The legend wraps with the width, and the height with it.
  if (event->type() == QEvent::Resize) updateGeometry();
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto row = static_cast<size_t>(help->pos().y() / std::max(1, rowHeight()));
    if (row < m_bars.size())
      QToolTip::showText(help->globalPos(), describe(m_bars[row]), this);
    else
      QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

void MemoryBars::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) updateAccessible();
  QWidget::changeEvent(event);
}

}  // namespace headroom::ui
