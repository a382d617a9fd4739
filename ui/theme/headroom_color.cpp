// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/headroom_color.h"

#include "ui/theme/format.h"

#include <QCoreApplication>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

namespace headroom::ui {
namespace {

struct Scale {
  QColor missing, middle, room;
};

Scale scaleOf(ColorScheme scheme) {
  if (scheme == ColorScheme::Dark) return {QColor(0xb8, 0x5c, 0x0c), QColor(0x38, 0x3d, 0x45), QColor(0x1f, 0x6a, 0xb8)};
  return {QColor(0xf0, 0x97, 0x3a), QColor(0xf4, 0xf6, 0xf8), QColor(0x6f, 0xae, 0xe6)};
}

QColor between(const QColor& a, const QColor& b, double share) {
  const auto part = [share](float from, float to) { return static_cast<float>(from + (to - from) * share); };
  return QColor::fromRgbF(part(a.redF(), b.redF()), part(a.greenF(), b.greenF()), part(a.blueF(), b.blueF()));
}

constexpr double kPi = 3.14159265358979323846;

QPainterPath starPath(const QRectF& rect) {
  QPainterPath path;
  for (int i = 0; i < 10; ++i) {
    const double radius = (i % 2 == 0 ? 0.5 : 0.22) * rect.width();
    const double angle = -kPi / 2 + i * kPi / 5;
    const QPointF point = rect.center() + QPointF(std::cos(angle), std::sin(angle)) * radius;
    i == 0 ? path.moveTo(point) : path.lineTo(point);
  }
  path.closeSubpath();
  return path;
}

}  // namespace

HeadroomShade headroomShade(std::optional<Bytes> headroom, Bytes deviceMemory, ColorScheme scheme) {
  const Scale scale = scaleOf(scheme);
  double share = 0;
  if (headroom && deviceMemory.count() > 0) {
    const double fraction = static_cast<double>(headroom->count()) / static_cast<double>(deviceMemory.count());
    share = std::clamp(fraction / 0.5, -1.0, 1.0);
  }
  HeadroomShade shade;
  // The root spreads the small values, where the decision lies.
  shade.fill = between(scale.middle, share < 0 ? scale.missing : scale.room, std::sqrt(std::abs(share)));
  shade.text = readableText(shade.fill);
  return shade;
}

QString headroomLabel(std::optional<Bytes> headroom) {
  if (!headroom) return QCoreApplication::translate("Headroom", "unknown");
  if (headroom->count() < 0) return QCoreApplication::translate("Headroom", "%1 missing").arg(formatGib(-*headroom));
  return QCoreApplication::translate("Headroom", "%1 free").arg(formatGib(*headroom));
}

void paintSymbol(QPainter& painter, const QRectF& rect, Symbol symbol, const QColor& color) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const double size = std::min(rect.width(), rect.height());
  const QRectF box(rect.center().x() - size / 2, rect.center().y() - size / 2, size, size);
  const auto at = [&](double x, double y) { return QPointF(box.left() + x * size, box.top() + y * size); };
  QPen pen(color, std::max(1.4, size * 0.13), Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin);
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  switch (symbol) {
    case Symbol::Fits:
      painter.drawPolyline(QPolygonF{at(0.14, 0.55), at(0.4, 0.8), at(0.88, 0.22)});
      break;
    case Symbol::Tight:
      painter.drawPolygon(QPolygonF{at(0.5, 0.1), at(0.94, 0.88), at(0.06, 0.88)});
      painter.drawLine(at(0.5, 0.4), at(0.5, 0.6));
      painter.drawPoint(at(0.5, 0.75));
      break;
    case Symbol::DoesNotFit:
      painter.drawLine(at(0.18, 0.18), at(0.82, 0.82));
      painter.drawLine(at(0.82, 0.18), at(0.18, 0.82));
      break;
    case Symbol::Invalid:
      painter.drawEllipse(box.adjusted(size * 0.1, size * 0.1, -size * 0.1, -size * 0.1));
      painter.drawLine(at(0.24, 0.76), at(0.76, 0.24));
      break;
    case Symbol::Recommended:
      painter.setPen(Qt::NoPen);
      painter.setBrush(color);
      painter.drawPath(starPath(box));
      break;
  }
  painter.restore();
}

}  // namespace headroom::ui
