// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/log_buffer.h"

#include <QRegularExpression>

namespace headroom::ui {

LogSeverity severityOf(const QString& line) {
  static const QRegularExpression error(
      QStringLiteral(R"(\b(error|fatal|critical|panic|failed|failure|aborted|terminate called|exception)\b)"),
      QRegularExpression::CaseInsensitiveOption);
  static const QRegularExpression warning(QStringLiteral(R"(\b(warn|warning|deprecated)\b)"),
                                          QRegularExpression::CaseInsensitiveOption);
  const auto errorAt = error.match(line), warningAt = warning.match(line);
  if (errorAt.hasMatch() && (!warningAt.hasMatch() || errorAt.capturedStart() < warningAt.capturedStart()))
    return LogSeverity::Error;
  return warningAt.hasMatch() ? LogSeverity::Warning : LogSeverity::Information;
}

bool LogFilter::accepts(const LogEntry& entry) const {
  if (entry.severity < atLeast) return false;
  for (const QString& word : text.split(QLatin1Char(' '), Qt::SkipEmptyParts))
    if (!entry.line.contains(word, Qt::CaseInsensitive)) return false;
  return true;
}

const LogEntry& LogBuffer::add(const QString& line) {
  m_entries.push_back({line, severityOf(line)});
  while (m_entries.size() > m_capacity) {
    m_entries.pop_front();
    ++m_dropped;
  }
  return m_entries.back();
}

void LogBuffer::clear() {
  m_entries.clear();
  m_dropped = 0;
}

}  // namespace headroom::ui
