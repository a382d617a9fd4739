// SPDX-License-Identifier: GPL-3.0-or-later
// Finds what a screen reader could not name: visible interactive widgets without a name.
#pragma once

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QComboBox>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QStringList>
#include <QWidget>

namespace headroom::test {

inline QStringList namelessWidgets(const QWidget& root) {
  QStringList nameless;
  for (QWidget* widget : root.findChildren<QWidget*>()) {
    const bool interactive = qobject_cast<QAbstractButton*>(widget) || qobject_cast<QComboBox*>(widget) ||
                             qobject_cast<QAbstractSpinBox*>(widget) || qobject_cast<QLineEdit*>(widget) ||
                             qobject_cast<QPlainTextEdit*>(widget) || qobject_cast<QAbstractItemView*>(widget);
    // The line edit of a spin box and the like belong to their owner.
    const bool part =
        widget->parentWidget() &&
        (qobject_cast<QAbstractSpinBox*>(widget->parentWidget()) || qobject_cast<QComboBox*>(widget->parentWidget()) ||
         qobject_cast<QLineEdit*>(widget->parentWidget()) || widget->parentWidget()->inherits("QComboBoxPrivateContainer") ||
         qobject_cast<QAbstractItemView*>(widget->parentWidget()));
    if (!interactive || part || !widget->isVisible()) continue;
    QAccessibleInterface* accessible = QAccessible::queryAccessibleInterface(widget);
    if (!accessible || accessible->text(QAccessible::Name).isEmpty())
      nameless.append(QStringLiteral("%1 %2").arg(QString::fromLatin1(widget->metaObject()->className()), widget->objectName()));
  }
  return nameless;
}

}  // namespace headroom::test
