// SPDX-License-Identifier: GPL-3.0-or-later
// EngineClient: an engine over HTTP: its state, its event stream (kept open by reconnecting), its models, and streamed
// chat answers. Broken answers become sentences, never a crash. GUI thread only; nothing blocks.
#pragma once

#include "core/protocol/engine_api.h"
#include "ui/client/sse_parser.h"

#include <QElapsedTimer>
#include <QList>
#include <QNetworkAccessManager>
#include <QObject>
#include <QPointer>
#include <QString>
#include <QTimer>
#include <QUrl>
#include <optional>

class QNetworkReply;

namespace headroom::ui {

struct ChatMessage {
  QString role;  // "system", "user" or "assistant"
  QString content;
  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

struct ChatRequest {
  QString model;  // empty: the engine's only model
  QList<ChatMessage> messages;
  std::optional<double> temperature;
  std::optional<int> maxTokens;
};

// What one answer cost, measured on this side of the connection. Token counts are the engine's own; unknown until it reports
// them.
struct ChatStats {
  std::optional<int64_t> promptTokens, completionTokens;
  std::optional<double> ttftMs;           // request sent to first text received
  std::optional<double> tokensPerSecond;  // after the first token: (tokens - 1) / (last text - first text)
  QString finishReason;                   // "stop", "length", …; empty when it was cut off
};

// One streamed answer. Ends with exactly one of finished, failed and cancelled, then deletes itself.
class ChatStream : public QObject {
  Q_OBJECT

 public:
  ChatStream(QNetworkReply* reply, QObject* parent);
  void cancel();

 signals:
  void textReceived(const QString& text);
  void finished(const headroom::ui::ChatStats& stats);
  void failed(const QString& reason, const headroom::ui::ChatStats& stats);
  void cancelled(const headroom::ui::ChatStats& stats);

 private:
  void readMore();
  void takeEvent(const QByteArray& data);
  void end();
  ChatStats stats() const;
  void fail(const QString& reason);
  void close();

  QPointer<QNetworkReply> m_reply;
  SseParser m_parser;
  QElapsedTimer m_clock;
  QByteArray m_errorBody;
  ChatStats m_stats;
  std::optional<qint64> m_firstNs, m_lastNs;
  bool m_done = false;  // [DONE] was received
  bool m_closed = false;
};

class EngineClient : public QObject {
  Q_OBJECT

 public:
  explicit EngineClient(QObject* parent = nullptr);
  ~EngineClient() override;

  void setBaseUrl(const QUrl& url);
  QUrl baseUrl() const { return m_baseUrl; }
  void setApiKey(const QString& key) { m_apiKey = key; }

  void fetchState();   // → stateReceived or stateFailed
  void fetchModels();  // → modelsReceived or modelsFailed

  // Opens /engine/events and keeps it open: after a loss it connects again with growing pauses until closeEvents().
  void openEvents();
  void closeEvents();
  bool eventsConnected() const { return m_eventsConnected; }
  // Pauses before the second, third, … attempt grow from first to last. Default 250 ms to 4 s.
  void setReconnectMs(int first, int last);
  // Without any byte for this long an open event stream counts as lost (metrics come twice a second). Default 15 s.
  void setSilenceMs(int milliseconds) { m_silence.setInterval(milliseconds); }

  // Sends the conversation; the answer streams through the returned object, a child of this client.
  ChatStream* startChat(const ChatRequest& request);

 signals:
  void stateReceived(const headroom::EngineState& state);
  void stateFailed(const QString& reason);
  void metricsReceived(const headroom::MetricsSample& sample);
  void modelsReceived(const QStringList& ids);
  void modelsFailed(const QString& reason);
  void eventsOpened();
  void eventsLost(const QString& reason);
  void eventIgnored(const QString& reason);  // an event that could not be read; the stream goes on

 private:
  QNetworkRequest request(const QString& path) const;
  QNetworkReply* get(const QString& path);
  void connectEvents();
  void readEvents();
  void takeEvent(const SseEvent& event);
  void loseEvents(const QString& reason);

  QNetworkAccessManager m_network;
  QUrl m_baseUrl;
  QString m_apiKey;
  QPointer<QNetworkReply> m_state, m_events;
  SseParser m_parser;
  QTimer m_reconnect, m_silence;
  int m_firstReconnectMs = 250, m_lastReconnectMs = 4000, m_nextReconnectMs = 250;
  bool m_eventsWanted = false;
  bool m_eventsConnected = false;
  uint64_t m_stateEvents = 0;  // that came, of all streams
};

}  // namespace headroom::ui
