// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/flat_style.h"

#include "ui/theme/theme.h"

#include <QPainter>
#include <QPolygonF>
#include <QStyleOption>
#include <QVariant>
#include <QWidget>
#include <algorithm>

namespace headroom::ui {
namespace {

constexpr double kRadius = 5.0;
constexpr double kFieldRadius = 4.0;

QColor shifted(const QColor& color, bool dark, int percent) {
  return dark ? color.lighter(100 + percent) : color.darker(100 + percent);
}

void drawButtonPanel(const QStyleOption* option, QPainter* painter, bool filled, bool flat) {
  const bool dark = schemeOf(option->palette) == ColorScheme::Dark;
  const bool enabled = option->state & QStyle::State_Enabled;
  const bool down = option->state & (QStyle::State_Sunken | QStyle::State_On);
  const bool hover = enabled && (option->state & QStyle::State_MouseOver);
  QColor fill = option->palette.color(filled && enabled ? QPalette::Highlight : QPalette::Button);
  QColor edge = filled && enabled ? fill : option->palette.color(QPalette::Active, QPalette::Mid);
  if (down)
    fill = shifted(fill, dark, 12);
  else if (hover)
    fill = shifted(fill, dark, filled ? 8 : 5);
  if (flat && !down && !hover) return;
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(QPen(edge, 1));
  painter->setBrush(enabled ? fill : option->palette.color(QPalette::Window));
  painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), kRadius, kRadius);
  painter->restore();
}

// What can be typed into: the base colour inside a rounded edge that takes the accent with the focus.
void drawField(const QStyleOption* option, QPainter* painter) {
  const bool enabled = option->state & QStyle::State_Enabled;
  const bool focus = enabled && (option->state & QStyle::State_HasFocus);
  QColor edge = focus ? option->palette.color(QPalette::Active, QPalette::Highlight) : fieldEdgeColor(option->palette);
  if (!enabled) edge = separatorColor(option->palette);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(QPen(edge, focus ? 1.5 : 1));
  painter->setBrush(option->palette.color(enabled ? QPalette::Base : QPalette::Window));
  painter->drawRoundedRect(QRectF(option->rect).adjusted(0.75, 0.75, -0.75, -0.75), kFieldRadius, kFieldRadius);
  painter->restore();
}

// The box of a check or the ring of a radio button, filled with the accent when it is on.
void drawIndicator(const QStyleOption* option, QPainter* painter, bool round) {
  const bool enabled = option->state & QStyle::State_Enabled;
  const bool on = option->state & (QStyle::State_On | QStyle::State_NoChange);
  const QPalette& palette = option->palette;
  const double side = std::min(option->rect.width(), option->rect.height()) - 1.5;
  QRectF box(0, 0, side, side);
  box.moveCenter(QRectF(option->rect).center());
  const QColor accent =
      enabled ? palette.color(QPalette::Active, QPalette::Highlight) : palette.color(QPalette::Active, QPalette::Mid);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(QPen(on ? accent : enabled ? fieldEdgeColor(palette) : separatorColor(palette), 1));
  painter->setBrush(on ? accent : palette.color(enabled ? QPalette::Base : QPalette::Window));
  const double radius = round ? side / 2 : 3;
  painter->drawRoundedRect(box, radius, radius);
  const QColor mark = palette.color(QPalette::Active, QPalette::HighlightedText);
  if (on && round) {
    painter->setPen(Qt::NoPen);
    painter->setBrush(mark);
    painter->drawEllipse(box.center(), side * 0.2, side * 0.2);
  } else if (on) {
    const auto at = [&](double x, double y) { return QPointF(box.left() + x * side, box.top() + y * side); };
    painter->setPen(QPen(mark, 1.8, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    if (option->state & QStyle::State_NoChange)
      painter->drawLine(at(0.25, 0.5), at(0.75, 0.5));
    else
      painter->drawPolyline(QPolygonF{at(0.24, 0.52), at(0.44, 0.72), at(0.78, 0.3)});
  }
  painter->restore();
}

void drawChevron(QPainter* painter, const QRectF& rect, bool up, const QColor& color) {
  const double width = std::min(rect.width() * 0.42, rect.height() * 0.8), height = width / 2;
  const double direction = up ? -1 : 1;
  const QPointF middle = rect.center();
  painter->setPen(QPen(color, 1.3, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter->drawPolyline(QPolygonF{middle + QPointF(-width / 2, -direction * height / 2),
                                  middle + QPointF(0, direction * height / 2),
                                  middle + QPointF(width / 2, -direction * height / 2)});
}

void drawSpinBox(const QStyleOptionSpinBox* spin, QPainter* painter, const QWidget* widget, const QStyle& style) {
  drawField(spin, painter);
  if (spin->buttonSymbols == QAbstractSpinBox::NoButtons) return;
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  for (const bool up : {true, false}) {
    const auto part = up ? QStyle::SC_SpinBoxUp : QStyle::SC_SpinBoxDown;
    const QRectF rect = style.subControlRect(QStyle::CC_SpinBox, spin, part, widget);
    const bool can = (spin->state & QStyle::State_Enabled) &&
                     (spin->stepEnabled & (up ? QAbstractSpinBox::StepUpEnabled : QAbstractSpinBox::StepDownEnabled));
    if (can && (spin->activeSubControls & part) && (spin->state & (QStyle::State_MouseOver | QStyle::State_Sunken)))
      painter->fillRect(rect.adjusted(0, 1, -1, -1), spin->palette.color(QPalette::Midlight));
    drawChevron(painter, rect, up, can ? mutedText(spin->palette) : spin->palette.color(QPalette::Disabled, QPalette::Text));
  }
  painter->restore();
}

}  // namespace

FlatStyle::FlatStyle() : QProxyStyle(QStringLiteral("Fusion")) {}

void FlatStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                              const QWidget* widget) const {
  switch (element) {
    case PE_PanelButtonCommand: {
      const auto* button = qstyleoption_cast<const QStyleOptionButton*>(option);
      const bool isDefault = button && (button->features & QStyleOptionButton::DefaultButton);
      drawButtonPanel(option, painter, isDefault, button && (button->features & QStyleOptionButton::Flat));
      return;
    }
    case PE_PanelButtonTool:
      drawButtonPanel(option, painter, false, (option->state & State_AutoRaise));
      return;
    case PE_PanelLineEdit:
      // Inside a spin box or combo box the field around it is drawn already.
      if (const auto* frame = qstyleoption_cast<const QStyleOptionFrame*>(option); frame && frame->lineWidth > 0)
        drawField(option, painter);
      return;
    case PE_Frame: {
      const auto* frame = qstyleoption_cast<const QStyleOptionFrame*>(option);
      if (!frame || frame->lineWidth <= 0) return;
      painter->save();
      painter->setPen(QPen(separatorColor(option->palette), 1));
      painter->setBrush(Qt::NoBrush);
      painter->drawRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5));
      painter->restore();
      return;
    }
    case PE_IndicatorCheckBox:
      return drawIndicator(option, painter, false);
    case PE_IndicatorRadioButton:
      return drawIndicator(option, painter, true);
    case PE_PanelItemViewRow:
      // Views whose delegates draw the selection themselves say so.
      if (widget && widget->property(kOwnSelection).toBool()) return;
      return QProxyStyle::drawPrimitive(element, option, painter, widget);
    case PE_FrameDefaultButton:
      return;
    case PE_FrameFocusRect: {
      painter->save();
      painter->setRenderHint(QPainter::Antialiasing);
      painter->setPen(QPen(option->palette.color(QPalette::Active, QPalette::Highlight), 2));
      painter->setBrush(Qt::NoBrush);
      painter->drawRoundedRect(QRectF(option->rect).adjusted(1, 1, -1, -1), kRadius - 1, kRadius - 1);
      painter->restore();
      return;
    }
    default:
      QProxyStyle::drawPrimitive(element, option, painter, widget);
  }
}

void FlatStyle::drawControl(ControlElement element, const QStyleOption* option, QPainter* painter, const QWidget* widget) const {
  if (element == CE_PushButtonLabel) {
    if (const auto* button = qstyleoption_cast<const QStyleOptionButton*>(option);
        button && (button->features & QStyleOptionButton::DefaultButton) && (button->state & State_Enabled)) {
      QStyleOptionButton copy = *button;
      copy.palette.setColor(QPalette::ButtonText, button->palette.color(QPalette::HighlightedText));
      // The icon takes the colour of the text it stands beside.
      if (!copy.icon.isNull())
        copy.icon = QIcon(copy.icon.pixmap(copy.iconSize, painter->device()->devicePixelRatioF(), QIcon::Selected));
      QProxyStyle::drawControl(element, &copy, painter, widget);
      return;
    }
  }
  if (element == CE_HeaderSection) {
    // Flat: the surface of the table and one line towards its cells.
    const auto* header = qstyleoption_cast<const QStyleOptionHeader*>(option);
    painter->fillRect(option->rect, cardColor(option->palette));
    painter->setPen(separatorColor(option->palette));
    const QRectF rect = QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5);
    if (!header || header->orientation == Qt::Horizontal) painter->drawLine(rect.bottomLeft(), rect.bottomRight());
    return;
  }
  if (element == CE_ToolBar) {
    // One surface with the window and a line towards the page.
    painter->fillRect(option->rect, option->palette.color(QPalette::Window));
    const QRectF rect = QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5);
    painter->setPen(separatorColor(option->palette));
    option->direction == Qt::RightToLeft ? painter->drawLine(rect.topLeft(), rect.bottomLeft())
                                         : painter->drawLine(rect.topRight(), rect.bottomRight());
    return;
  }
  QProxyStyle::drawControl(element, option, painter, widget);
}

void FlatStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                                   const QWidget* widget) const {
  if (const auto* spin = qstyleoption_cast<const QStyleOptionSpinBox*>(option); control == CC_SpinBox && spin)
    return drawSpinBox(spin, painter, widget, *this);
  QProxyStyle::drawComplexControl(control, option, painter, widget);
}

int FlatStyle::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
  switch (metric) {
    case PM_ButtonShiftHorizontal:
    case PM_ButtonShiftVertical:
      return 0;
    case PM_LayoutHorizontalSpacing:
      return 8;
    case PM_LayoutVerticalSpacing:
      return 6;
    case PM_ButtonDefaultIndicator:
      return 0;
    default:
      return QProxyStyle::pixelMetric(metric, option, widget);
  }
}

QSize FlatStyle::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size, const QWidget* widget) const {
  QSize result = QProxyStyle::sizeFromContents(type, option, size, widget);
  // One height for everything that stands in a row of a form, from the font.
  const int height = option ? option->fontMetrics.height() * 7 / 4 : 0;
  switch (type) {
    case CT_PushButton:
      result.setWidth(result.width() + (option ? option->fontMetrics.averageCharWidth() * 2 : 0));
      [[fallthrough]];
    case CT_ComboBox:
    case CT_LineEdit:
    case CT_SpinBox:
      result.setHeight(std::max(result.height(), height));
      break;
    case CT_ToolButton:
      if (const auto* button = qstyleoption_cast<const QStyleOptionToolButton*>(option);
          button && button->toolButtonStyle != Qt::ToolButtonTextUnderIcon)
        result.setHeight(std::max(result.height(), height));
      break;
    default:
      break;
  }
  return result;
}

QRect FlatStyle::subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                                const QWidget* widget) const {
  QRect rect = QProxyStyle::subControlRect(control, option, part, widget);
  // Scripts with tall letters need the whole height, or they stand too high.
  if (control == CC_SpinBox && part == SC_SpinBoxEditField) {
    rect.setTop(option->rect.top() + 1);
    rect.setBottom(option->rect.bottom() - 1);
  }
  return rect;
}

int FlatStyle::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget, QStyleHintReturn* result) const {
  if (hint == SH_DialogButtonBox_ButtonsHaveIcons) return 0;
  return QProxyStyle::styleHint(hint, option, widget, result);
}

}  // namespace headroom::ui
