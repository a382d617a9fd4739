// SPDX-License-Identifier: GPL-3.0-or-later
// The program's own icons: SVG shapes drawn in the palette's text colour at the time of painting, so that they follow the theme.
#pragma once

#include <QIcon>
#include <QString>

namespace headroom::ui {

// "plan", "monitor", "chat", "log", "open", "folder", "catalog", "settings", "refresh", "close", "copy" …:
// resources/icons/<name>.svg
QIcon themedIcon(const QString& name);
// The coloured icon of the program.
QIcon applicationIcon();

}  // namespace headroom::ui
