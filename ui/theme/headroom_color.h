// SPDX-License-Identifier: GPL-3.0-or-later
// Headroom as colour, symbol and words, so that colour is never the only signal. The scale runs from orange (missing) over
// a neutral middle (nothing left) to blue (room), which red-green blindness does not touch. Pure functions.
#pragma once

#include "core/units.h"
#include "ui/theme/theme.h"

#include <QColor>
#include <QString>
#include <optional>

class QPainter;
class QRectF;

namespace headroom::ui {

struct HeadroomShade {
  QColor fill;
  QColor text;
};

// Fill for what is left (negative: missing) of a device's memory; the scale ends at half of it. Unknown: the neutral middle.
HeadroomShade headroomShade(std::optional<Bytes> headroom, Bytes deviceMemory, ColorScheme scheme);

// "12.3 GiB free", "3.1 GiB missing", "unknown": what the colour says, for screen readers and legends.
QString headroomLabel(std::optional<Bytes> headroom);

enum class Symbol { Fits, Tight, DoesNotFit, Invalid, Recommended };
// Drawn as shapes, so that no font has to know them.
void paintSymbol(QPainter& painter, const QRectF& rect, Symbol symbol, const QColor& color);

}  // namespace headroom::ui
