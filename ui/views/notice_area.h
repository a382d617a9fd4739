// SPDX-License-Identifier: GPL-3.0-or-later
// NoticeArea: messages that stay until they are dismissed or solved, one line each, never a dialog. GUI thread only.
#pragma once

#include "ui/theme/theme.h"

#include <QWidget>

class QLabel;
class QToolButton;
class QVBoxLayout;

namespace headroom::ui {

class NoticeArea : public QWidget {
  Q_OBJECT

 public:
  explicit NoticeArea(QWidget* parent = nullptr);

  // A notice with the same topic replaces the earlier one ("open", "plan").
  void show(const QString& topic, NoticeKind kind, const QString& text);
  void clear(const QString& topic);
  // Text of the notice on a topic; empty when there is none.
  QString text(const QString& topic) const;

 protected:
  void changeEvent(QEvent* event) override;

 private:
  class Notice;
  void updateVisibility();
  Notice* find(const QString& topic) const;
  QVBoxLayout* m_layout = nullptr;
};

}  // namespace headroom::ui
