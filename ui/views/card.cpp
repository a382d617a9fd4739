// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/card.h"

#include "ui/theme/theme.h"
#include "ui/views/wrapped_label.h"

#include <QApplication>
#include <QEvent>
#include <QFontInfo>
#include <QPainter>
#include <QScrollBar>

namespace headroom::ui {

Card::Card(QWidget* parent) : QFrame(parent) { setFrameShape(QFrame::NoFrame); }

void Card::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(separatorColor(palette()), 1));
  painter.setBrush(cardColor(palette()));
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8);
}

namespace {

// A label whose size is a multiple of the program's font, also after that font has changed.
class TitleLabel : public QLabel {
 public:
  TitleLabel(QWidget* parent, double scale) : QLabel(parent), m_scale(scale) {
    setTextFormat(Qt::PlainText);
    scaleFont();
    // A widget with a font of its own hears nothing of a new font of the program; its parent does.
    if (parent) parent->installEventFilter(this);
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::FontChange) scaleFont();
    return QLabel::eventFilter(watched, event);
  }

 private:
  void scaleFont() {
    QFont font = QApplication::font(this);
    font.setPointSizeF(QFontInfo(font).pointSizeF() * m_scale);
    font.setWeight(QFont::DemiBold);
    setFont(font);
  }
  double m_scale;
};

}  // namespace

QLabel* makeTitle(QWidget* parent, double scale) { return new TitleLabel(parent, scale); }

ColumnScroll::ColumnScroll(QWidget* parent) : QScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setWidgetResizable(true);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  viewport()->setAutoFillBackground(false);
}

QSize ColumnScroll::minimumSizeHint() const {
  const QSize own = QScrollArea::minimumSizeHint();
  if (!widget()) return own;
  return {widget()->minimumSizeHint().width() + verticalScrollBar()->sizeHint().width(), own.height()};
}

bool ColumnScroll::eventFilter(QObject* watched, QEvent* event) {
  if (watched == widget() && event->type() == QEvent::LayoutRequest) updateGeometry();
  return QScrollArea::eventFilter(watched, event);
}

QLabel* makeQuietLabel(QWidget* parent) {
  QLabel* label = makeTextLabel(parent);
  label->setForegroundRole(QPalette::PlaceholderText);
  return label;
}

QLabel* makeTextLabel(QWidget* parent) { return new WrappedLabel(parent); }

}  // namespace headroom::ui
