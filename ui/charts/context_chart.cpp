// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/context_chart.h"

#include "ui/charts/chart_geometry.h"
#include "ui/theme/format.h"
#include "ui/theme/theme.h"

#include <QEvent>
#include <QHelpEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <bit>
#include <cmath>

namespace headroom::ui {
namespace {

// Lengths that a scale names: a power of two, or one and a quarter of it as engines' block counts give.
bool isRound(int64_t tokens) {
  const auto low = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(tokens)));
  return tokens == low || tokens * 4 == low * 5;
}

}  // namespace

double contextPosition(int64_t tokens, const ContextCurve& curve) {
  if (curve.points.size() < 2) return 0;
  const double first = std::log2(static_cast<double>(std::max<int64_t>(1, curve.points.front().tokens)));
  const double last = std::log2(static_cast<double>(std::max<int64_t>(2, curve.points.back().tokens)));
  const double at = std::log2(static_cast<double>(std::max<int64_t>(1, tokens)));
  return last > first ? std::clamp((at - first) / (last - first), 0.0, 1.0) : 0.0;
}

// Where the plot stands, and how values become places in it.
struct ContextChart::Frame {
  QRectF plot;
  AxisTicks ticks;
  double top = 1;
  double y(Bytes bytes) const { return plot.bottom() - static_cast<double>(bytes.count()) / top * plot.height(); }
};

ContextChart::ContextChart(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("contextChart"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  describe();
}

void ContextChart::setCurve(ContextCurve curve) {
  m_curve = std::move(curve);
  describe();
  update();
}

QSize ContextChart::sizeHint() const { return {fontMetrics().averageCharWidth() * 60, fontMetrics().height() * 18}; }
QSize ContextChart::minimumSizeHint() const { return {fontMetrics().averageCharWidth() * 30, fontMetrics().height() * 9}; }

ContextChart::Frame ContextChart::frame() const {
  Frame frame;
  const QFontMetrics metrics = fontMetrics();
  double most = 1;
  for (const ContextPoint& point : m_curve.points)
    most =
        std::max({most, static_cast<double>((point.fixed + point.kvCache).count()), static_cast<double>(point.budget.count())});
  // A cache far beyond the budget says no more than one twice over it.
  if (!m_curve.points.empty()) most = std::min(most, static_cast<double>(m_curve.points.front().budget.count()) * 2);
  frame.ticks = axisTicks(most * 1.03, std::max(2, height() / (metrics.height() * 5)), ValueUnit::Bytes);
  frame.top = frame.ticks.top();
  const double left = metrics.horizontalAdvance(tickLabel(frame.top, frame.ticks, ValueUnit::Bytes)) + 12;
  frame.plot = QRectF(left, metrics.height() * 1.8, std::max(10.0, width() - left - metrics.averageCharWidth() * 4.0),
                      std::max(10.0, height() - metrics.height() * 4.6));
  return frame;
}

void ContextChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  if (m_curve.points.size() < 2) {
    painter.setPen(mutedText(palette()));
    painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, tr("Select a layout that the engine accepts."));
    return;
  }
  const Frame f = frame();
  const QFontMetrics metrics = fontMetrics();
  const ColorScheme scheme = schemeOf(palette());
  const auto x = [&](int64_t tokens) { return f.plot.left() + contextPosition(tokens, m_curve) * f.plot.width(); };
  // Scales.
  for (int step = 0; step <= f.ticks.steps; ++step) {
    const double y = f.plot.bottom() - f.plot.height() * step / f.ticks.steps;
    painter.setPen(separatorColor(palette()));
    painter.drawLine(QPointF(f.plot.left(), y), QPointF(f.plot.right(), y));
    painter.setPen(mutedText(palette()));
    painter.drawText(QRectF(0, y - metrics.height() / 2.0, f.plot.left() - 6, metrics.height()),
                     Qt::AlignRight | Qt::AlignVCenter, tickLabel(f.ticks.step * step, f.ticks, ValueUnit::Bytes));
  }
  double lastLabel = -1e9;
  for (const ContextPoint& point : m_curve.points) {
    const double at = x(point.tokens);
    const QString text = formatCompact(point.tokens);
    if (!isRound(point.tokens)) continue;
    const double half = metrics.horizontalAdvance(text) / 2.0;
    painter.setPen(separatorColor(palette()));
    painter.drawLine(QPointF(at, f.plot.bottom()), QPointF(at, f.plot.bottom() + 4));
    if (at - half < lastLabel + metrics.averageCharWidth()) continue;
    lastLabel = at + half;
    painter.setPen(mutedText(palette()));
    painter.drawText(QPointF(at - half, f.plot.bottom() + 4 + metrics.ascent()), text);
  }
  painter.setPen(mutedText(palette()));
  painter.drawText(QRectF(f.plot.left(), f.plot.bottom() + metrics.height() * 1.4, f.plot.width(), metrics.height()),
                   Qt::AlignCenter, tr("tokens of each request"));
  // Two bands.
  const auto band = [&](const QColor& color, auto lower, auto upper) {
    QPainterPath path;
    for (size_t i = 0; i < m_curve.points.size(); ++i) {
      const QPointF at(x(m_curve.points[i].tokens), f.y(upper(m_curve.points[i])));
      i == 0 ? path.moveTo(at) : path.lineTo(at);
    }
    for (size_t i = m_curve.points.size(); i-- > 0;) path.lineTo(x(m_curve.points[i].tokens), f.y(lower(m_curve.points[i])));
    path.closeSubpath();
    painter.fillPath(path, color);
  };
  painter.save();
  painter.setClipRect(f.plot);
  painter.setOpacity(0.85);
  band(
      memoryPartColor(MemoryPart::Weights, scheme), [](const ContextPoint&) { return Bytes(0); },
      [](const ContextPoint& point) { return point.fixed; });
  band(
      memoryPartColor(MemoryPart::KvCache, scheme), [](const ContextPoint& point) { return point.fixed; },
      [](const ContextPoint& point) { return point.fixed + point.kvCache; });
  painter.restore();
  // Budget, and the lengths that are asked for and that fit.
  const QColor ink = palette().color(QPalette::WindowText);
  painter.setPen(QPen(ink, 1.4, Qt::DashLine));
  const double budget = f.y(m_curve.points.front().budget);
  painter.drawLine(QPointF(f.plot.left(), budget), QPointF(f.plot.right(), budget));
  const auto mark = [&](int64_t tokens, const QString& text, Qt::PenStyle style, double row) {
    const double at = x(tokens);
    painter.setPen(QPen(ink, 1.4, style));
    painter.drawLine(QPointF(at, f.plot.top()), QPointF(at, f.plot.bottom()));
    const double wide = metrics.horizontalAdvance(text) + 8;
    const double left = at + 4 + wide > f.plot.right() ? at - wide : at + 4;
    const QRectF box(left, f.plot.top() + row * metrics.height() * 1.2 + 2, wide, metrics.height());
    painter.fillRect(box, cardColor(palette()));
    painter.drawText(box, Qt::AlignCenter, text);
  };
  if (m_curve.asked) mark(*m_curve.asked, tr("planned: %1").arg(formatCount(m_curve.asked)), Qt::SolidLine, 1.2);
  if (m_curve.longest.value_or(0) > 0) mark(*m_curve.longest, tr("fits: %1").arg(formatCount(m_curve.longest)), Qt::DotLine, 0);
  // Legend.
  double at = f.plot.left();
  const auto entry = [&](const QColor& color, const QString& text, bool line) {
    const double side = metrics.ascent() * 0.8, y = metrics.height() * 0.35;
    if (line) {
      painter.setPen(QPen(ink, 1.4, Qt::DashLine));
      painter.drawLine(QPointF(at, y + side / 2), QPointF(at + side * 1.8, y + side / 2));
    } else {
      painter.fillRect(QRectF(at, y, side, side), color);
    }
    at += (line ? side * 1.8 : side) + 6;
    painter.setPen(ink);
    painter.drawText(QPointF(at, y + side), text);
    at += metrics.horizontalAdvance(text) + metrics.averageCharWidth() * 3;
  };
  entry(memoryPartColor(MemoryPart::Weights, scheme), tr("weights and other fixed memory"), false);
  entry(memoryPartColor(MemoryPart::KvCache, scheme), tr("KV cache"), false);
  entry({}, tr("budget %1").arg(formatGib(m_curve.points.front().budget)), true);
}

bool ContextChart::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && m_curve.points.size() >= 2) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const Frame f = frame();
    const ContextPoint* nearest = nullptr;
    double best = 1e9;
    for (const ContextPoint& point : m_curve.points) {
      const double away = std::abs(f.plot.left() + contextPosition(point.tokens, m_curve) * f.plot.width() - help->pos().x());
      if (away < best) {
        best = away;
        nearest = &point;
      }
    }
    QToolTip::showText(help->globalPos(), tr("%1 tokens: %2 of %3 on GPU %4")
                                              .arg(formatCount(nearest->tokens), formatGib(nearest->fixed + nearest->kvCache),
                                                   formatGib(nearest->budget))
                                              .arg(nearest->gpu));
    return true;
  }
  return QWidget::event(event);
}

void ContextChart::describe() {
  setAccessibleName(tr("Memory against context length"));
  QStringList sentences;
  for (const ContextPoint& point : m_curve.points)
    sentences << tr("%1 tokens: %2 of %3 on GPU %4")
                     .arg(formatCount(point.tokens), formatGib(point.fixed + point.kvCache), formatGib(point.budget))
                     .arg(point.gpu);
  setAccessibleDescription(sentences.join(QStringLiteral("; ")));
}

void ContextChart::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) {
    describe();
    update();
  }
  QWidget::changeEvent(event);
}

}  // namespace headroom::ui
