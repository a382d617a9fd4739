// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/client/engine_client.h"

#include "core/json_text.h"

#include <QNetworkProxy>
#include <QNetworkReply>
#include <QNetworkRequest>
#include <algorithm>
#include <nlohmann/json.hpp>

namespace headroom::ui {

using nlohmann::json;

namespace {

constexpr int kShortAnswerTimeoutMs = 5000;
constexpr qsizetype kMaxErrorBytes = 64 << 10;

json parse(const QByteArray& bytes) { return readJsonText({bytes.data(), static_cast<size_t>(bytes.size())}); }

QString text(const json& value) {
  return value.is_string() ? QString::fromStdString(value.get_ref<const std::string&>()) : QString();
}

const json& member(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

// The sentence in OpenAI's error object, or empty.
QString errorText(const json& body) {
  const json& error = member(body, "error");
  return error.is_string() ? text(error) : text(member(error, "message"));
}

std::optional<int64_t> count(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<int64_t>();
}

QString excerpt(const QByteArray& bytes) {
  constexpr qsizetype kShown = 80;
  QString shown = QString::fromUtf8(bytes.left(kShown)).simplified();
  return bytes.size() > kShown ? shown + QChar(0x2026) : shown;
}

}  // namespace

ChatStream::ChatStream(QNetworkReply* reply, QObject* parent) : QObject(parent), m_reply(reply) {
  m_clock.start();
  reply->setParent(this);
  connect(reply, &QNetworkReply::readyRead, this, &ChatStream::readMore);
  connect(reply, &QNetworkReply::finished, this, &ChatStream::end);
}

void ChatStream::cancel() {
  if (m_closed) return;
  const ChatStats now = stats();
  close();
  emit cancelled(now);
}

void ChatStream::readMore() {
  if (m_closed || !m_reply) return;
  const int status = m_reply->attribute(QNetworkRequest::HttpStatusCodeAttribute).toInt();
  if (status != 200) {
    m_errorBody += m_reply->read(kMaxErrorBytes - m_errorBody.size());
    m_reply->skip(m_reply->bytesAvailable());
    return;
  }
  const QByteArray bytes = m_reply->readAll();
  if (m_errorBody.size() < kMaxErrorBytes) m_errorBody += bytes.left(kMaxErrorBytes - m_errorBody.size());
  for (const SseEvent& event : m_parser.feed(bytes)) {
    takeEvent(event.data);
    if (m_closed) return;
  }
  if (m_parser.overflowed()) fail(tr("The engine sent an event without end."));
}

void ChatStream::takeEvent(const QByteArray& data) {
  if (m_done) return;
  if (data == "[DONE]") {
    m_done = true;
    return;
  }
  const json chunk = parse(data);
  if (!chunk.is_object()) {
    fail(tr("The engine sent something that is not JSON: %1").arg(excerpt(data)));
    return;
  }
  if (const QString error = errorText(chunk); !error.isEmpty()) {
    fail(error);
    return;
  }
  const json& usage = member(chunk, "usage");
  if (const auto tokens = count(member(usage, "prompt_tokens"))) m_stats.promptTokens = tokens;
  if (const auto tokens = count(member(usage, "completion_tokens"))) m_stats.completionTokens = tokens;
  const json& choices = member(chunk, "choices");
  if (!choices.is_array() || choices.empty()) return;
  const json& choice = choices.front();
  const json& delta = member(choice, "delta");
  if (const QString reason = text(member(choice, "finish_reason")); !reason.isEmpty()) m_stats.finishReason = reason;
  const QString piece = text(member(delta, "reasoning_content")) + text(member(delta, "content"));
  if (piece.isEmpty()) return;
  m_lastNs = m_clock.nsecsElapsed();
  if (!m_firstNs) m_firstNs = m_lastNs;
  emit textReceived(piece);
}

void ChatStream::end() {
  if (m_closed || !m_reply) return;
  readMore();
  if (m_closed) return;
  const int status = m_reply->attribute(QNetworkRequest::HttpStatusCodeAttribute).toInt();
  if (status != 0 && status != 200) {
    const QString reason = errorText(parse(m_errorBody));
    fail(reason.isEmpty() ? tr("The engine answered with HTTP status %1.").arg(status) : reason);
  } else if (m_reply->error() != QNetworkReply::NoError && !m_done) {
    fail(m_firstNs ? tr("The connection was lost before the answer was complete.")
                   : tr("The engine cannot be reached: %1").arg(m_reply->errorString()));
  } else if (!m_done && m_stats.finishReason.isEmpty()) {
    const QString reason = errorText(parse(m_errorBody));
    fail(reason.isEmpty() ? tr("The engine closed the connection before the answer was complete.") : reason);
  } else {
    const ChatStats now = stats();
    close();
    emit finished(now);
  }
}

ChatStats ChatStream::stats() const {
  ChatStats stats = m_stats;
  if (m_firstNs) stats.ttftMs = static_cast<double>(*m_firstNs) / 1e6;
  if (m_firstNs && m_lastNs && *m_lastNs > *m_firstNs && stats.completionTokens.value_or(0) > 1)
    stats.tokensPerSecond =
        static_cast<double>(*stats.completionTokens - 1) / (static_cast<double>(*m_lastNs - *m_firstNs) / 1e9);
  return stats;
}

void ChatStream::fail(const QString& reason) {
  if (m_closed) return;
  const ChatStats now = stats();
  close();
  emit failed(reason, now);
}

void ChatStream::close() {
  m_closed = true;
  if (m_reply) {
    m_reply->disconnect(this);
    m_reply->abort();
  }
  deleteLater();
}

EngineClient::EngineClient(QObject* parent) : QObject(parent) {
  m_network.setProxy(QNetworkProxy::NoProxy);  // an engine is on this machine or named by its address
  m_reconnect.setSingleShot(true);
  connect(&m_reconnect, &QTimer::timeout, this, &EngineClient::connectEvents);
  m_silence.setSingleShot(true);
  m_silence.setInterval(15000);
  connect(&m_silence, &QTimer::timeout, this, [this] { loseEvents(tr("The engine has been silent for too long.")); });
}

EngineClient::~EngineClient() { closeEvents(); }

void EngineClient::setBaseUrl(const QUrl& url) {
  if (url == m_baseUrl) return;
  closeEvents();
  if (m_state) {
    m_state->disconnect(this);
    m_state->abort();
    m_state->deleteLater();
    m_state.clear();
  }
  m_baseUrl = url;
}

QNetworkRequest EngineClient::request(const QString& path) const {
  QUrl url = m_baseUrl;
  QString base = url.path();
  if (base.endsWith(QLatin1Char('/'))) base.chop(1);
  url.setPath(base + path);
  QNetworkRequest request(url);
  request.setAttribute(QNetworkRequest::Http2AllowedAttribute, false);
  if (!m_apiKey.isEmpty()) request.setRawHeader("Authorization", "Bearer " + m_apiKey.toUtf8());
  return request;
}

QNetworkReply* EngineClient::get(const QString& path) {
  QNetworkRequest query = request(path);
  query.setTransferTimeout(kShortAnswerTimeoutMs);
  return m_network.get(query);
}

void EngineClient::fetchState() {
  if (m_state) return;  // one question at a time: the answer is on its way
  QNetworkReply* reply = get(QStringLiteral("/engine/state"));
  m_state = reply;
  connect(reply, &QNetworkReply::finished, this, [this, reply, events = m_stateEvents] {
    reply->deleteLater();
    m_state.clear();
    // Every change is an event: one that came meanwhile is no older than this answer, or is followed by another.
    if (events != m_stateEvents) return;
    const QByteArray bytes = reply->readAll();
    const json body = parse(bytes);
    if (reply->error() != QNetworkReply::NoError) {
      const QString reason = errorText(body);
      emit stateFailed(reason.isEmpty() ? reply->errorString() : reason);
      return;
    }
    if (body.is_discarded()) {
      emit stateFailed(tr("The engine's state is not JSON: %1").arg(excerpt(bytes)));
      return;
    }
    if (const auto state = engineStateFromJson(body))
      emit stateReceived(*state);
    else
      emit stateFailed(QString::fromStdString(state.error().message()));
  });
}

void EngineClient::fetchModels() {
  QNetworkReply* reply = get(QStringLiteral("/v1/models"));
  connect(reply, &QNetworkReply::finished, this, [this, reply] {
    reply->deleteLater();
    const json body = parse(reply->readAll());
    if (reply->error() != QNetworkReply::NoError) {
      const QString reason = errorText(body);
      emit modelsFailed(reason.isEmpty() ? reply->errorString() : reason);
      return;
    }
    const json& data = member(body, "data");
    if (!data.is_array()) {
      emit modelsFailed(tr("The engine's list of models cannot be read."));
      return;
    }
    QStringList ids;
    for (const json& model : data)
      if (const QString id = text(member(model, "id")); !id.isEmpty()) ids.append(id);
    emit modelsReceived(ids);
  });
}

void EngineClient::setReconnectMs(int first, int last) {
  m_firstReconnectMs = m_nextReconnectMs = first;
  m_lastReconnectMs = last;
}

void EngineClient::openEvents() {
  if (m_eventsWanted) {
    if (!m_reconnect.isActive()) return;  // open, or on its way
    m_reconnect.stop();
  }
  m_eventsWanted = true;
  m_nextReconnectMs = m_firstReconnectMs;
  connectEvents();
}

void EngineClient::closeEvents() {
  m_eventsWanted = false;
  m_eventsConnected = false;
  m_reconnect.stop();
  m_silence.stop();
  if (m_events) {
    m_events->disconnect(this);
    m_events->abort();
    m_events->deleteLater();
    m_events.clear();
  }
}

void EngineClient::connectEvents() {
  if (!m_eventsWanted || m_events) return;
  m_parser.reset();
  QNetworkRequest query = request(QStringLiteral("/engine/events"));
  query.setRawHeader("Accept", "text/event-stream");
  query.setRawHeader("Cache-Control", "no-store");
  QNetworkReply* reply = m_network.get(query);
  m_events = reply;
  m_silence.start();
  connect(reply, &QNetworkReply::readyRead, this, &EngineClient::readEvents);
  connect(reply, &QNetworkReply::finished, this, [this, reply] {
    readEvents();
    if (reply != m_events) return;
    const int status = reply->attribute(QNetworkRequest::HttpStatusCodeAttribute).toInt();
    loseEvents(status != 0 && status != 200               ? tr("The engine answered with HTTP status %1.").arg(status)
               : reply->error() != QNetworkReply::NoError ? reply->errorString()
                                                          : tr("The engine closed its event stream."));
  });
}

void EngineClient::readEvents() {
  if (!m_events) return;
  if (m_events->attribute(QNetworkRequest::HttpStatusCodeAttribute).toInt() != 200) {
    m_events->skip(m_events->bytesAvailable());
    return;
  }
  const QByteArray bytes = m_events->readAll();
  if (!bytes.isEmpty()) m_silence.start();
  if (!m_eventsConnected) {
    m_eventsConnected = true;
    emit eventsOpened();
  }
  const QPointer<QNetworkReply> current = m_events;
  for (const SseEvent& event : m_parser.feed(bytes)) {
    takeEvent(event);
    if (!current || current != m_events) return;  // a receiver closed the stream
    m_nextReconnectMs = m_firstReconnectMs;       // it talks: the next loss starts with a short pause again
  }
  if (m_parser.overflowed()) loseEvents(tr("The engine sent an event without end."));
}

void EngineClient::takeEvent(const SseEvent& event) {
  const bool isState = event.name == QLatin1String("state");
  if (!isState && event.name != QLatin1String("metrics")) return;  // a newer engine may tell more
  const json body = parse(event.data);
  if (body.is_discarded()) {
    emit eventIgnored(tr("An event of the engine is not JSON: %1").arg(excerpt(event.data)));
    return;
  }
  if (isState) {
    ++m_stateEvents;
    if (const auto state = engineStateFromJson(body))
      emit stateReceived(*state);
    else
      emit eventIgnored(QString::fromStdString(state.error().message()));
  } else {
    if (const auto sample = metricsSampleFromJson(body))
      emit metricsReceived(*sample);
    else
      emit eventIgnored(QString::fromStdString(sample.error().message()));
  }
}

void EngineClient::loseEvents(const QString& reason) {
  m_eventsConnected = false;
  m_silence.stop();
  if (m_events) {
    m_events->disconnect(this);
    m_events->abort();
    m_events->deleteLater();
    m_events.clear();
  }
  if (!m_eventsWanted) return;
  m_reconnect.start(m_parser.retryMs().value_or(m_nextReconnectMs));
  m_nextReconnectMs = std::min(m_nextReconnectMs * 2, m_lastReconnectMs);
  emit eventsLost(reason);
}

ChatStream* EngineClient::startChat(const ChatRequest& chat) {
  json body;
  if (!chat.model.isEmpty()) body["model"] = chat.model.toStdString();
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  body["messages"] = json::array();
  for (const ChatMessage& message : chat.messages)
    body["messages"].push_back({{"role", message.role.toStdString()}, {"content", message.content.toStdString()}});
  if (chat.temperature) body["temperature"] = *chat.temperature;
  if (chat.maxTokens) body["max_tokens"] = *chat.maxTokens;
  QNetworkRequest query = request(QStringLiteral("/v1/chat/completions"));
  query.setHeader(QNetworkRequest::ContentTypeHeader, QByteArrayLiteral("application/json"));
  query.setRawHeader("Accept", "text/event-stream");
  return new ChatStream(m_network.post(query, QByteArray::fromStdString(body.dump())), this);
}

}  // namespace headroom::ui
