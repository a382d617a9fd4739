// SPDX-License-Identifier: GPL-3.0-or-later
// Fusion with flat buttons, a clear focus ring and filled default buttons, all drawn from the palette.
#pragma once

#include <QProxyStyle>

namespace headroom::ui {

// A view with this property draws the selection of its cells itself.
inline constexpr const char* kOwnSelection = "headroomOwnSelection";

class FlatStyle : public QProxyStyle {
  Q_OBJECT

 public:
  FlatStyle();
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override;
  void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter, const QWidget* widget) const override;
  int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override;
  QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size, const QWidget* widget) const override;
  QRect subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                       const QWidget* widget) const override;
  int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget, QStyleHintReturn* result) const override;
};

}  // namespace headroom::ui
