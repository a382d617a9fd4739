// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of pages for people to look at: written only when HEADROOM_GRAB names a folder.
#pragma once

#include "ui/theme/theme.h"

#include <QApplication>
#include <QDir>
#include <QTest>
#include <QWidget>

namespace headroom::test {

// NAME-light.png and NAME-dark.png.
inline void grabIfAsked(QWidget& widget, const QString& name) {
  const QString folder = qEnvironmentVariable("HEADROOM_GRAB");
  if (folder.isEmpty()) return;
  for (auto [scheme, suffix] : {std::pair(ui::ColorScheme::Dark, "dark"), std::pair(ui::ColorScheme::Light, "light")}) {
    ui::applyTheme(*qApp, scheme);
    QTest::qWait(300);
    widget.grab().save(QDir(folder).filePath(QStringLiteral("%1-%2.png").arg(name, QString::fromLatin1(suffix))));
  }
}

}  // namespace headroom::test
