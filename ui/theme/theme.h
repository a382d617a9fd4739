// SPDX-License-Identifier: GPL-3.0-or-later
// The two colour schemes: every colour of the window starts here or in a palette made here. Pure functions except applyTheme.
#pragma once

#include <QColor>
#include <QPalette>

class QApplication;

namespace headroom::ui {

enum class ColorScheme { Light, Dark };

QPalette makePalette(ColorScheme scheme);
// Which scheme a palette belongs to: by the lightness of its window.
ColorScheme schemeOf(const QPalette& palette);
// The scheme of the desktop as the platform reported it when the program started; light when it said nothing.
ColorScheme systemScheme();
// Sets style and palette for the whole program; may be called again at any time.
void applyTheme(QApplication& application, ColorScheme scheme);

// What a GPU's memory is filled with; one colour each, told apart without red and green (after Okabe and Ito).
enum class MemoryPart { Weights, Activations, Graphs, Runtime, OtherProcesses, KvCache, KvSpare, Free };
QColor memoryPartColor(MemoryPart part, ColorScheme scheme);

// Text of less weight than the palette's text.
QColor mutedText(const QPalette& palette);
// Edge of what can be typed into or switched: 3 : 1 against the card it stands on.
QColor fieldEdgeColor(const QPalette& palette);
// Thin lines between areas.
QColor separatorColor(const QPalette& palette);
// Surface of cards on the window.
QColor cardColor(const QPalette& palette);
// Behind notices: attention without alarm.
enum class NoticeKind { Information, Warning, Problem };
QColor noticeColor(NoticeKind kind, ColorScheme scheme);
QColor noticeAccent(NoticeKind kind, ColorScheme scheme);

// Black or white as the scheme draws them: whichever reads better on `fill` (contrast of at least 4.5 : 1).
QColor readableText(const QColor& fill);
// Contrast of two colours as WCAG 2 defines it: 1 to 21.
double contrastRatio(const QColor& a, const QColor& b);

}  // namespace headroom::ui
