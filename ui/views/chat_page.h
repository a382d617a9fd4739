// SPDX-License-Identifier: GPL-3.0-or-later
// ChatPage: try the served model in a conversation: streaming answers, Stop, and what each answer cost. GUI thread only.
#pragma once

#include <QWidget>
#include <memory>

namespace headroom::ui {

class ChatModel;
class EngineSession;

class ChatPage : public QWidget {
  Q_OBJECT

 public:
  explicit ChatPage(EngineSession& session, QWidget* parent = nullptr);
  ~ChatPage() override;

  ChatModel& model();
  bool isAnswering() const;

 public slots:
  void sendMessage(const QString& text);  // as if typed and sent; ignored while disabled or answering
  void stopAnswer();
  void clearConversation();

 signals:
  void answerFinished();  // complete, stopped or failed

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  class Private;
  std::unique_ptr<Private> d;
};

}  // namespace headroom::ui
