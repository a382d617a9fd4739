// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/client/sse_parser.h"

#include <algorithm>

namespace headroom::ui {

QList<SseEvent> SseParser::feed(QByteArrayView bytes) {
  static constexpr QByteArrayView kByteOrderMark("\xEF\xBB\xBF");
  QList<SseEvent> events;
  for (char byte : bytes) {
    if (m_overflowed) break;
    if (m_bomBytes >= 0) {
      if (byte == kByteOrderMark[m_bomBytes]) {
        if (++m_bomBytes == 3) m_bomBytes = -1;
        continue;
      }
      m_line.append(kByteOrderMark.data(), m_bomBytes);
      m_bomBytes = -1;
    }
    if (m_skipLineFeed) {
      m_skipLineFeed = false;
      if (byte == '\n') continue;
    }
    if (byte == '\n' || byte == '\r') {
      m_skipLineFeed = byte == '\r';
      takeLine(m_line, events);
      m_line.clear();
      continue;
    }
    if (m_line.size() + m_data.size() >= m_maxEventBytes) {
      m_overflowed = true;
      break;
    }
    m_line.append(byte);
  }
  return events;
}

void SseParser::takeLine(QByteArrayView line, QList<SseEvent>& events) {
  if (line.isEmpty()) {
    if (m_hasData) events.append({m_name.isEmpty() ? QStringLiteral("message") : m_name, m_data, m_lastId});
    m_data.clear();
    m_name.clear();
    m_hasData = false;
    return;
  }
  const qsizetype colon = line.indexOf(':');
  if (colon == 0) return;  // a comment, used as keep-alive
  const QByteArrayView field = colon < 0 ? line : line.first(colon);
  QByteArrayView value = colon < 0 ? QByteArrayView() : line.sliced(colon + 1);
  if (value.startsWith(' ')) value = value.sliced(1);
  if (field == "data") {
    if (m_hasData) m_data.append('\n');
    m_data.append(value.data(), value.size());
    m_hasData = true;
  } else if (field == "event") {
    m_name = QString::fromUtf8(value);
  } else if (field == "id") {
    if (!value.contains('\0')) m_lastId = QString::fromUtf8(value);
  } else if (field == "retry") {
    const bool digits = !value.isEmpty() && std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
    bool ok = false;
    const int milliseconds = value.toByteArray().toInt(&ok);
    if (digits && ok) m_retryMs = milliseconds;
  }
}

void SseParser::reset() { *this = SseParser(m_maxEventBytes); }

}  // namespace headroom::ui
