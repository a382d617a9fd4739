// SPDX-License-Identifier: GPL-3.0-or-later
// MessageBar: one message that stays until its cause is gone, with at most one button that deals with it. GUI thread only.
#pragma once

#include "ui/theme/theme.h"

#include <QFrame>

class QLabel;
class QPushButton;

namespace headroom::ui {

class MessageBar : public QFrame {
  Q_OBJECT

 public:
  explicit MessageBar(NoticeKind kind, QWidget* parent = nullptr);

  void setText(const QString& text);  // empty hides the bar
  QString text() const;
  QPushButton* button() { return m_button; }  // hidden until it is shown by the owner

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  NoticeKind m_kind;
  QLabel* m_label;
  QPushButton* m_button;
};

}  // namespace headroom::ui
