// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/theme.h"

#include "ui/theme/flat_style.h"

#include <QApplication>
#include <cmath>

namespace headroom::ui {
namespace {

const QColor kInk(0x14, 0x17, 0x1c);
const QColor kPaper(0xff, 0xff, 0xff);

QColor mix(const QColor& a, const QColor& b, double share) {
  const auto part = [share](float from, float to) { return static_cast<float>(from + (to - from) * share); };
  return QColor::fromRgbF(part(a.redF(), b.redF()), part(a.greenF(), b.greenF()), part(a.blueF(), b.blueF()));
}

// Relative luminance, https://www.w3.org/TR/WCAG21/#dfn-relative-luminance
double luminance(const QColor& color) {
  const auto linear = [](double channel) {
    return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

void setDisabled(QPalette& palette, const QColor& text) {
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::HighlightedText})
    palette.setColor(QPalette::Disabled, role, text);
  palette.setColor(QPalette::Disabled, QPalette::Highlight, palette.color(QPalette::Active, QPalette::Mid));
}

}  // namespace

QPalette makePalette(ColorScheme scheme) {
  const bool dark = scheme == ColorScheme::Dark;
  QPalette palette;
  const auto set = [&](QPalette::ColorRole role, QRgb light, QRgb darkColor) {
    palette.setColor(role, QColor(dark ? darkColor : light));
  };
  set(QPalette::Window, 0xf3f5f8, 0x1b1e23);
  set(QPalette::WindowText, 0x1b2129, 0xe4e7eb);
  set(QPalette::Base, 0xffffff, 0x15171b);
  set(QPalette::AlternateBase, 0xf5f7fa, 0x1c1f24);
  set(QPalette::Text, 0x1b2129, 0xe4e7eb);
  set(QPalette::Button, 0xfbfcfd, 0x2a2e35);
  set(QPalette::ButtonText, 0x1b2129, 0xe4e7eb);
  set(QPalette::BrightText, 0xffffff, 0xffffff);
  set(QPalette::Light, 0xffffff, 0x3a3f48);
  set(QPalette::Midlight, 0xe9edf2, 0x30353d);
  set(QPalette::Mid, 0xcdd4dc, 0x434953);
  set(QPalette::Dark, 0xa9b3bf, 0x101216);
  set(QPalette::Shadow, 0x7c8794, 0x08090b);
  set(QPalette::Highlight, 0x1f63c4, 0x2f74d6);
  set(QPalette::HighlightedText, 0xffffff, 0xffffff);
  set(QPalette::Link, 0x1a5ab8, 0x7fb3ff);
  set(QPalette::LinkVisited, 0x6a4fa3, 0xb9a5f0);
  set(QPalette::ToolTipBase, 0x262b33, 0xe4e7eb);
  set(QPalette::ToolTipText, 0xf5f7fa, 0x1b1e23);
  set(QPalette::PlaceholderText, 0x66707d, 0x8f98a5);
  setDisabled(palette, QColor(dark ? 0x7a828e : 0x8b95a1));
  return palette;
}

ColorScheme schemeOf(const QPalette& palette) {
  return palette.color(QPalette::Window).lightnessF() < 0.5 ? ColorScheme::Dark : ColorScheme::Light;
}

ColorScheme systemScheme() {
  // Asked once, before applyTheme replaces the platform's palette.
  static const ColorScheme scheme = schemeOf(QGuiApplication::palette());
  return scheme;
}

void applyTheme(QApplication& application, ColorScheme scheme) {
  systemScheme();
  if (!dynamic_cast<FlatStyle*>(application.style())) QApplication::setStyle(new FlatStyle);
  QApplication::setPalette(makePalette(scheme));
}

QColor memoryPartColor(MemoryPart part, ColorScheme scheme) {
  const bool dark = scheme == ColorScheme::Dark;
  switch (part) {
    case MemoryPart::Weights:
      return QColor(dark ? 0x3d8fd1 : 0x0b6fb5);
    case MemoryPart::KvCache:
      return QColor(dark ? 0xe0a030 : 0xe69f00);
    case MemoryPart::KvSpare:
      return QColor(dark ? 0x6e5526 : 0xf8dfa6);
    case MemoryPart::Activations:
      return QColor(dark ? 0x22a884 : 0x009e73);
    case MemoryPart::Graphs:
      return QColor(dark ? 0xc77dab : 0xcc79a7);
    case MemoryPart::Runtime:
      return QColor(dark ? 0x8a93a0 : 0x78828e);
    case MemoryPart::OtherProcesses:
      return QColor(dark ? 0x5d6570 : 0x4f5863);
    case MemoryPart::Free:
      return QColor(dark ? 0x2b3037 : 0xe6ebf1);
  }
  return {};
}

QColor mutedText(const QPalette& palette) {
  return mix(palette.color(QPalette::Active, QPalette::WindowText), palette.color(QPalette::Active, QPalette::Window), 0.32);
}

QColor separatorColor(const QPalette& palette) {
  return mix(palette.color(QPalette::Active, QPalette::Window), palette.color(QPalette::Active, QPalette::WindowText),
             schemeOf(palette) == ColorScheme::Dark ? 0.16 : 0.13);
}

QColor fieldEdgeColor(const QPalette& palette) {
  return mix(palette.color(QPalette::Active, QPalette::Window), palette.color(QPalette::Active, QPalette::WindowText),
             schemeOf(palette) == ColorScheme::Dark ? 0.40 : 0.46);
}

QColor cardColor(const QPalette& palette) {
  return schemeOf(palette) == ColorScheme::Dark ? mix(palette.color(QPalette::Window), palette.color(QPalette::Light), 0.22)
                                                : palette.color(QPalette::Active, QPalette::Base);
}

QColor noticeColor(NoticeKind kind, ColorScheme scheme) {
  const QColor window = makePalette(scheme).color(QPalette::Window);
  return mix(window, noticeAccent(kind, scheme), scheme == ColorScheme::Dark ? 0.22 : 0.14);
}

QColor noticeAccent(NoticeKind kind, ColorScheme scheme) {
  const bool dark = scheme == ColorScheme::Dark;
  switch (kind) {
    case NoticeKind::Information:
      return QColor(dark ? 0x5aa2f0 : 0x1f63c4);
    case NoticeKind::Warning:
      return QColor(dark ? 0xe0b050 : 0xb98200);
    case NoticeKind::Problem:
      return QColor(dark ? 0xf08a3c : 0xc25a00);
  }
  return {};
}

QColor readableText(const QColor& fill) { return contrastRatio(kInk, fill) >= contrastRatio(kPaper, fill) ? kInk : kPaper; }

double contrastRatio(const QColor& a, const QColor& b) {
  const double first = luminance(a), second = luminance(b);
  return (std::max(first, second) + 0.05) / (std::min(first, second) + 0.05);
}

}  // namespace headroom::ui
