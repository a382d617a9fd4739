// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/chat_model.h"

#include "ui/theme/format.h"

#include <QStringList>

namespace headroom::ui {

bool ChatModel::isAnswering() const { return !m_entries.isEmpty() && m_entries.last().state == ChatEntry::State::Streaming; }

QList<ChatMessage> ChatModel::messages(const QString& systemPrompt) const {
  QList<ChatMessage> messages;
  if (!systemPrompt.trimmed().isEmpty()) messages.append({QStringLiteral("system"), systemPrompt});
  for (qsizetype row = 0; row < m_entries.size(); ++row) {
    const ChatEntry& entry = m_entries[row];
    if (entry.fromUser) {
      const bool answered = row + 1 >= m_entries.size() || m_entries[row + 1].state == ChatEntry::State::Streaming ||
                            !m_entries[row + 1].text.isEmpty();
      if (answered) messages.append({QStringLiteral("user"), entry.text});
    } else if (!entry.text.isEmpty()) {
      messages.append({QStringLiteral("assistant"), entry.text});
    }
  }
  return messages;
}

void ChatModel::append(const ChatEntry& entry) {
  beginInsertRows({}, rowCount(), rowCount());
  m_entries.append(entry);
  endInsertRows();
}

void ChatModel::addQuestion(const QString& text) {
  ChatEntry entry;
  entry.fromUser = true;
  entry.text = text;
  append(entry);
}

void ChatModel::beginAnswer() {
  ChatEntry entry;
  entry.state = ChatEntry::State::Streaming;
  append(entry);
}

void ChatModel::appendToAnswer(const QString& text) {
  if (!isAnswering()) return;
  m_entries.last().text += text;
  const QModelIndex last = index(rowCount() - 1);
  emit dataChanged(last, last, {Qt::DisplayRole});
}

void ChatModel::finishAnswer(const ChatStats& stats) { endAnswer(ChatEntry::State::Complete, stats, {}); }

void ChatModel::stopAnswer(const ChatStats& stats) { endAnswer(ChatEntry::State::Stopped, stats, {}); }

void ChatModel::failAnswer(const QString& reason, const ChatStats& stats) { endAnswer(ChatEntry::State::Failed, stats, reason); }

void ChatModel::endAnswer(ChatEntry::State state, const ChatStats& stats, const QString& reason) {
  if (!isAnswering()) return;
  ChatEntry& entry = m_entries.last();
  entry.state = state;
  entry.stats = stats;
  entry.error = reason;
  const QModelIndex last = index(rowCount() - 1);
  emit dataChanged(last, last);
}

void ChatModel::clear() {
  beginResetModel();
  m_entries.clear();
  endResetModel();
}

void ChatModel::retranslate() {
  if (!m_entries.isEmpty()) emit dataChanged(index(0), index(rowCount() - 1));
}

QString ChatModel::statsText(const ChatEntry& entry) {
  if (entry.fromUser || entry.state == ChatEntry::State::Streaming) return {};
  QStringList parts;
  if (entry.state == ChatEntry::State::Stopped) parts.append(tr("stopped"));
  if (entry.stats.finishReason == QLatin1String("length")) parts.append(tr("cut at the token limit"));
  if (entry.stats.completionTokens) parts.append(tr("%n token(s)", nullptr, static_cast<int>(*entry.stats.completionTokens)));
  if (entry.stats.tokensPerSecond) parts.append(tr("%1 tok/s").arg(formatDecimal(entry.stats.tokensPerSecond)));
  if (entry.stats.ttftMs) parts.append(tr("first token after %1 ms").arg(formatDecimal(entry.stats.ttftMs)));
  return parts.join(QStringLiteral(" · "));
}

int ChatModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(m_entries.size()); }

QVariant ChatModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const ChatEntry& entry = m_entries[index.row()];
  switch (role) {
    case Qt::DisplayRole:
      return entry.text;
    case Qt::AccessibleTextRole:
      return entry.fromUser ? tr("You: %1").arg(entry.text) : tr("Model: %1").arg(entry.text);
    case FromUserRole:
      return entry.fromUser;
    case StateRole:
      return static_cast<int>(entry.state);
    case StatsTextRole:
      return statsText(entry);
    case ErrorRole:
      return entry.error;
    default:
      return {};
  }
}

QList<ChatPart> splitCodeBlocks(const QString& text) {
  QList<ChatPart> parts;
  bool code = false;
  QStringList lines;
  const auto flush = [&] {
    QString joined = lines.join(QLatin1Char('\n'));
    lines.clear();
    if (!code) {
      while (joined.startsWith(QLatin1Char('\n'))) joined.remove(0, 1);
      while (joined.endsWith(QLatin1Char('\n'))) joined.chop(1);
    }
    if (!joined.isEmpty()) parts.append({code, joined});
  };
  for (const QString& line : text.split(QLatin1Char('\n'))) {
    if (line.trimmed().startsWith(QLatin1String("```"))) {
      flush();
      code = !code;
    } else {
      lines.append(line);
    }
  }
  flush();
  return parts;
}

}  // namespace headroom::ui
