// SPDX-License-Identifier: GPL-3.0-or-later
// ChatMessageView: one message of a conversation: who, text with code blocks, error, cost. GUI thread only.
#pragma once

#include "ui/models/chat_model.h"

#include <QFrame>
#include <QList>

class QLabel;
class QVBoxLayout;

namespace headroom::ui {

class ChatMessageView : public QFrame {
  Q_OBJECT

 public:
  explicit ChatMessageView(QWidget* parent = nullptr);
  void setEntry(const ChatEntry& entry);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void setParts(const QList<ChatPart>& parts);
  void colorParts();

  ChatEntry m_entry;
  QLabel* m_who = nullptr;
  QVBoxLayout* m_body = nullptr;
  QList<ChatPart> m_parts;
  QList<QLabel*> m_labels;
  QLabel* m_error = nullptr;
  QLabel* m_stats = nullptr;
};

}  // namespace headroom::ui
