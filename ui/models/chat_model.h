// SPDX-License-Identifier: GPL-3.0-or-later
// ChatModel: a conversation: what was said by whom, what each answer cost, and the messages to send next. GUI thread only.
#pragma once

#include "ui/client/engine_client.h"

#include <QAbstractListModel>
#include <QList>
#include <QString>

namespace headroom::ui {

struct ChatEntry {
  enum class State { Complete, Streaming, Stopped, Failed };
  bool fromUser = false;
  QString text;
  State state = State::Complete;
  ChatStats stats;  // of an answer
  QString error;    // why it failed
};

class ChatModel : public QAbstractListModel {
  Q_OBJECT

 public:
  enum Role { FromUserRole = Qt::UserRole + 1, StateRole, StatsTextRole, ErrorRole };

  explicit ChatModel(QObject* parent = nullptr) : QAbstractListModel(parent) {}

  const ChatEntry& entry(int row) const { return m_entries[row]; }
  bool isAnswering() const;
  // The conversation as the engine gets it: an optional system prompt, then the messages; answers that failed without any
  // text are left out together with their question.
  QList<ChatMessage> messages(const QString& systemPrompt) const;

  void addQuestion(const QString& text);
  void beginAnswer();
  void appendToAnswer(const QString& text);
  void finishAnswer(const ChatStats& stats);
  void stopAnswer(const ChatStats& stats);
  void failAnswer(const QString& reason, const ChatStats& stats);
  void clear();
  void retranslate();

  // "38 tokens · 41.2 tok/s · first token after 310 ms"; unknown parts are left out.
  static QString statsText(const ChatEntry& entry);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;

 private:
  void endAnswer(ChatEntry::State state, const ChatStats& stats, const QString& reason);
  void append(const ChatEntry& entry);

  QList<ChatEntry> m_entries;
};

// An answer cut into running text and code: what stands between lines that start with three backticks is code.
struct ChatPart {
  bool code = false;
  QString text;
  friend bool operator==(const ChatPart&, const ChatPart&) = default;
};
QList<ChatPart> splitCodeBlocks(const QString& text);

}  // namespace headroom::ui
