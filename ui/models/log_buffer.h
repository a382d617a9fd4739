// SPDX-License-Identifier: GPL-3.0-or-later
// LogBuffer: the last lines of a log, raw, each with a severity read from its words. Plain data; any one thread.
#pragma once

#include <QString>
#include <cstddef>
#include <deque>

namespace headroom::ui {

enum class LogSeverity { Information, Warning, Error };

struct LogEntry {
  QString line;
  LogSeverity severity = LogSeverity::Information;
};

// By the first word that says so: "error", "fatal", "failed", "panic" … before "warning".
LogSeverity severityOf(const QString& line);

struct LogFilter {
  QString text;  // case-insensitive; every word must occur. Empty: all lines
  LogSeverity atLeast = LogSeverity::Information;
  bool accepts(const LogEntry& entry) const;
};

class LogBuffer {
 public:
  explicit LogBuffer(std::size_t capacity = 20000) : m_capacity(capacity) {}

  const LogEntry& add(const QString& line);
  void clear();
  const std::deque<LogEntry>& entries() const { return m_entries; }
  std::size_t capacity() const { return m_capacity; }
  std::size_t droppedLines() const { return m_dropped; }  // older than what is kept

 private:
  std::size_t m_capacity;
  std::size_t m_dropped = 0;
  std::deque<LogEntry> m_entries;
};

}  // namespace headroom::ui
