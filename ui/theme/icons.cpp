// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/icons.h"

#include "core/result.h"

#include <QFile>
#include <QGuiApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPalette>
#include <QPixmap>
#include <QSvgRenderer>

static void initIconResources() { Q_INIT_RESOURCE(icons); }

namespace headroom::ui {
namespace {

QByteArray svgOf(const QString& name) {
  static const bool ready = [] {
    initIconResources();
    return true;
  }();
  Q_UNUSED(ready);
  QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
  expects(file.open(QIODevice::ReadOnly), "an icon of that name is compiled in");
  return file.readAll();
}

class ThemedIconEngine : public QIconEngine {
 public:
  explicit ThemedIconEngine(QByteArray svg) : m_svg(std::move(svg)) {}

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
    const QPalette palette = QGuiApplication::palette();
    const QColor color = mode == QIcon::Disabled   ? palette.color(QPalette::Disabled, QPalette::ButtonText)
                         : mode == QIcon::Selected ? palette.color(QPalette::HighlightedText)
                                                   : palette.color(QPalette::Active, QPalette::ButtonText);
    QByteArray svg = m_svg;
    svg.replace("currentColor", color.name().toLatin1());
    QSvgRenderer(svg).render(painter, rect);
  }

  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    QPixmap pixmap(size);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    paint(&painter, QRect(QPoint(), size), mode, state);
    return pixmap;
  }

  QIconEngine* clone() const override { return new ThemedIconEngine(m_svg); }

 private:
  QByteArray m_svg;
};

}  // namespace

QIcon themedIcon(const QString& name) { return QIcon(new ThemedIconEngine(svgOf(name))); }

QIcon applicationIcon() {
  QSvgRenderer renderer(svgOf(QStringLiteral("headroom")));
  QIcon icon;
  for (const int size : {16, 24, 32, 48, 64, 128, 256}) {
    QPixmap pixmap(size, size);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    renderer.render(&painter);
    painter.end();
    icon.addPixmap(pixmap);
  }
  return icon;
}

}  // namespace headroom::ui
