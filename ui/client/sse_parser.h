// SPDX-License-Identifier: GPL-3.0-or-later
// SseParser: bytes of a text/event-stream in, events out, however the bytes are cut. Rules of the HTML standard,
// section 9.2.6 "Interpreting an event stream". No I/O.
#pragma once

#include <QByteArray>
#include <QByteArrayView>
#include <QList>
#include <QString>
#include <optional>

namespace headroom::ui {

struct SseEvent {
  QString name;     // "message" when the stream names none
  QByteArray data;  // lines joined by \n, UTF-8 as it came
  QString lastId;
  friend bool operator==(const SseEvent&, const SseEvent&) = default;
};

class SseParser {
 public:
  // A line or an event longer than this ends the stream: a peer must not fill our memory.
  explicit SseParser(qsizetype maxEventBytes = 8 << 20) : m_maxEventBytes(maxEventBytes) {}

  // The events completed by these bytes.
  QList<SseEvent> feed(QByteArrayView bytes);
  // The reconnection time the server asked for, if any.
  std::optional<int> retryMs() const { return m_retryMs; }
  bool overflowed() const { return m_overflowed; }
  void reset();

 private:
  void takeLine(QByteArrayView line, QList<SseEvent>& events);

  qsizetype m_maxEventBytes;
  QByteArray m_line;
  QByteArray m_data;
  QString m_name;
  QString m_lastId;
  std::optional<int> m_retryMs;
  int m_bomBytes = 0;  // how much of a leading byte order mark was seen; -1 once the stream began
  bool m_hasData = false;
  bool m_skipLineFeed = false;
  bool m_overflowed = false;
};

}  // namespace headroom::ui
