// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/flat_style.h"

#include "ui/theme/theme.h"

#include <QPainter>
#include <QStyleOption>

namespace headroom::ui {
namespace {

constexpr double kRadius = 5.0;

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
  QProxyStyle::drawControl(element, option, painter, widget);
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

int FlatStyle::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget, QStyleHintReturn* result) const {
  if (hint == SH_DialogButtonBox_ButtonsHaveIcons) return 0;
  return QProxyStyle::styleHint(hint, option, widget, result);
}

}  // namespace headroom::ui
