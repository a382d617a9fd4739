// SPDX-License-Identifier: GPL-3.0-or-later
// Any bytes as an event stream that the window reads: how they are cut changes nothing, and no more is kept than allowed.
#include "ui/client/sse_parser.h"

#include <cstdint>

using namespace headroom::ui;

namespace {

struct Read {
  QList<SseEvent> events;
  std::optional<int> retryMs;
  bool overflowed = false;
  friend bool operator==(const Read&, const Read&) = default;
};

Read read(QByteArrayView bytes, qsizetype most, qsizetype piece) {
  SseParser parser(most);
  Read found;
  for (qsizetype at = 0; at < bytes.size(); at += piece)
    found.events += parser.feed(bytes.sliced(at, std::min(piece, bytes.size() - at)));
  found.retryMs = parser.retryMs();
  found.overflowed = parser.overflowed();
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 4096) return 0;
  const QByteArrayView bytes(reinterpret_cast<const char*>(data) + 1, static_cast<qsizetype>(size) - 1);
  const qsizetype most = 1 + data[0];
  const Read whole = read(bytes, most, bytes.size());
  if (read(bytes, most, 1) != whole || read(bytes, most, 3) != whole) __builtin_trap();
  for (const SseEvent& event : whole.events)
    if (event.data.size() > most) __builtin_trap();
  return 0;
}
