// SPDX-License-Identifier: GPL-3.0-or-later
// A scripted stand-in for headroom-engine: an HTTP server whose answers a test chooses, and a whole fake program around it that
// a test binary becomes when it is started with "serve" (see runFakeEngineIfAsked). It shows states and counts, it computes
// nothing.
#pragma once

#include "core/protocol/engine_api.h"

#include <unistd.h>
#include <QByteArray>
#include <QCoreApplication>
#include <QDateTime>
#include <QFile>
#include <QHash>
#include <QHostAddress>
#include <QPointer>
#include <QTcpServer>
#include <QTcpSocket>
#include <QTimer>
#include <QUrl>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>

namespace headroom::test {

struct HttpRequest {
  QByteArray method, path, body;
  QHash<QByteArray, QByteArray> headers;  // lower-case names
};

// Hands every request to `handler`, which writes whatever it likes to the socket.
class FakeHttpServer {
 public:
  using Handler = std::function<void(const HttpRequest&, QTcpSocket*)>;

  explicit FakeHttpServer(Handler handler) : m_handler(std::move(handler)) {
    QObject::connect(&m_server, &QTcpServer::newConnection, &m_server, [this] {
      while (QTcpSocket* socket = m_server.nextPendingConnection()) accept(socket);
    });
  }
  bool listen(quint16 port = 0) { return m_server.listen(QHostAddress::LocalHost, port); }
  QUrl url() const { return QUrl(QStringLiteral("http://127.0.0.1:%1").arg(m_server.serverPort())); }
  void close() { m_server.close(); }

 private:
  void accept(QTcpSocket* socket) {
    auto buffer = std::make_shared<QByteArray>();
    QObject::connect(socket, &QTcpSocket::disconnected, socket, &QObject::deleteLater);
    QObject::connect(socket, &QTcpSocket::readyRead, socket, [this, socket, buffer] {
      *buffer += socket->readAll();
      const qsizetype end = buffer->indexOf("\r\n\r\n");
      if (end < 0) return;
      HttpRequest request;
      const QList<QByteArray> lines = buffer->left(end).split('\n');
      const QList<QByteArray> first = lines.front().trimmed().split(' ');
      request.method = first.value(0);
      request.path = first.value(1);
      for (qsizetype line = 1; line < lines.size(); ++line) {
        const qsizetype colon = lines[line].indexOf(':');
        request.headers.insert(lines[line].left(colon).trimmed().toLower(), lines[line].mid(colon + 1).trimmed());
      }
      const qsizetype length = request.headers.value("content-length").toLongLong();
      if (buffer->size() - end - 4 < length) return;
      request.body = buffer->mid(end + 4, length);
      buffer->remove(0, end + 4 + length);
      m_handler(request, socket);
    });
  }

  QTcpServer m_server;
  Handler m_handler;
};

inline void answer(QTcpSocket* socket, const QByteArray& body, int status = 200, const QByteArray& type = "application/json") {
  socket->write("HTTP/1.1 " + QByteArray::number(status) + " X\r\nContent-Type: " + type +
                "\r\nContent-Length: " + QByteArray::number(body.size()) + "\r\nConnection: close\r\n\r\n" + body);
  socket->disconnectFromHost();
}

// The head of a stream that ends when the connection is closed.
inline void beginStream(QTcpSocket* socket) {
  socket->write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
  socket->flush();
}

inline QByteArray sseEvent(const char* name, const nlohmann::json& data) {
  return QByteArray("event: ") + name + "\ndata: " + QByteArray::fromStdString(data.dump()) + "\n\n";
}

inline QByteArray chatChunk(const QByteArray& text) {
  const nlohmann::json chunk{
      {"choices", {{{"index", 0}, {"delta", {{"content", text.toStdString()}}}, {"finish_reason", nullptr}}}}};
  return "data: " + QByteArray::fromStdString(chunk.dump()) + "\n\n";
}

inline QByteArray chatEnd(int promptTokens, int completionTokens, const char* reason = "stop") {
  const nlohmann::json last{{"choices", {{{"index", 0}, {"delta", nlohmann::json::object()}, {"finish_reason", reason}}}}};
  const nlohmann::json usage{{"choices", nlohmann::json::array()},
                             {"usage", {{"prompt_tokens", promptTokens}, {"completion_tokens", completionTokens}}}};
  return "data: " + QByteArray::fromStdString(last.dump()) + "\n\ndata: " + QByteArray::fromStdString(usage.dump()) +
         "\n\ndata: [DONE]\n\n";
}

inline constexpr int64_t kMiB = 1 << 20;

// Two stages of one rank each on host devices of 1 GiB.
inline EngineState fakeState(EnginePhase phase, double loaded) {
  EngineState state;
  state.phase = phase;
  state.model = "fake-model";
  state.tp = 1;
  state.pp = 2;
  state.kvBlocksTotal = 100;
  state.kvBlocksFree = 75;
  for (int rank = 0; rank < 2; ++rank) {
    RankState each;
    each.rank = rank;
    each.stage = rank;
    each.device = "cpu:" + std::to_string(rank);
    each.layers = {rank * 15, rank * 15 + 15};
    each.planned = {300 * kMiB, 400 * kMiB, 20 * kMiB, 0};
    each.loadBytesTotal = 300 * kMiB;
    each.loadBytesDone = static_cast<int64_t>(loaded * 300) * kMiB;
    if (phase == EnginePhase::Ready) each.allocated = each.planned;
    each.deviceTotalBytes = 1024 * kMiB;
    if (phase == EnginePhase::Ready) each.deviceUsedBytes = 730 * kMiB;
    state.ranks.push_back(each);
  }
  return state;
}

inline MetricsSample fakeSample(double time) {
  MetricsSample sample;
  sample.time = time;
  sample.intervalSeconds = 0.5;
  sample.generatedTokensPerSecond = 40;
  sample.promptTokensPerSecond = 12;
  sample.ttftMs = {300};
  sample.itlMs = {25};
  sample.kvBlocksTotal = 100;
  sample.kvBlocksFree = 75;
  sample.requestsRunning = 1;
  sample.requestsFinished = 7;
  sample.deviceUsedBytes = {730 * kMiB, 730 * kMiB};
  return sample;
}

// The engine side of a session that goes well: loads, gets ready, streams state and metrics, answers chats word by word.
class FakeEngineServer {
 public:
  // With `waits` the loading begins at the first request, so that a busy machine cannot make a client miss it.
  explicit FakeEngineServer(int loadMs, bool waits = false)
      : m_server([this](const HttpRequest& request, QTcpSocket* socket) { handle(request, socket); }), m_loadMs(loadMs) {
    if (!waits) m_started = QDateTime::currentMSecsSinceEpoch();
    m_timer.setInterval(50);
    QObject::connect(&m_timer, &QTimer::timeout, &m_timer, [this] { tick(); });
    m_timer.start();
  }
  bool listen(quint16 port) { return m_server.listen(port); }
  QUrl url() const { return m_server.url(); }
  bool ready() const { return m_started > 0 && sinceStart() >= m_loadMs; }
  std::function<void()> onReady;

 private:
  qint64 sinceStart() const { return QDateTime::currentMSecsSinceEpoch() - m_started; }

  EngineState state() const {
    const double loaded = m_started == 0 ? 0.0 : std::min(1.0, static_cast<double>(sinceStart()) / std::max(m_loadMs, 1));
    return fakeState(ready() ? EnginePhase::Ready : EnginePhase::Loading, loaded);
  }

  void tick() {
    if (ready() && onReady) std::exchange(onReady, nullptr)();
    const double now = static_cast<double>(QDateTime::currentMSecsSinceEpoch()) / 1000.0;
    for (const auto& socket : m_streams) {
      if (!socket) continue;
      socket->write(sseEvent("state", toJson(state())));
      if (ready()) socket->write(sseEvent("metrics", toJson(fakeSample(now))));
    }
  }

  void handle(const HttpRequest& request, QTcpSocket* socket) {
    if (m_started == 0) m_started = QDateTime::currentMSecsSinceEpoch();
    if (request.path == "/engine/state") return answer(socket, QByteArray::fromStdString(toJson(state()).dump()));
    if (request.path == "/v1/models") return answer(socket, R"({"object":"list","data":[{"id":"fake-model"}]})");
    if (request.path == "/engine/events") {
      beginStream(socket);
      m_streams.append(socket);
      return;
    }
    if (request.path == "/v1/chat/completions") return chat(request, socket);
    answer(socket, R"({"error":{"message":"no such path"}})", 404);
  }

  // "slow" in the last message gives a long answer, "die" kills the process while it answers.
  void chat(const HttpRequest& request, QTcpSocket* socket) {
    const nlohmann::json body = nlohmann::json::parse(request.body.begin(), request.body.end());
    const std::string text = body["messages"].back()["content"];
    if (text == "error")
      return answer(socket, R"({"error":{"message":"max_tokens: found 0, expected 1 or more","param":"max_tokens"}})", 400);
    beginStream(socket);
    auto* timer = new QTimer(socket);
    auto sent = std::make_shared<int>(0);
    const int words = text == "slow" ? 100000 : 4;
    QObject::connect(timer, &QTimer::timeout, socket, [=] {
      if (text == "die" && *sent == 2) ::raise(SIGKILL);
      if (*sent < words) {
        socket->write(chatChunk("word" + QByteArray::number((*sent)++) + " "));
        return;
      }
      socket->write(chatEnd(9, words));
      socket->disconnectFromHost();
      timer->stop();
    });
    timer->start(20);
  }

  FakeHttpServer m_server;
  QTimer m_timer;
  QList<QPointer<QTcpSocket>> m_streams;
  qint64 m_started = 0;
  int m_loadMs;
};

// In main(): `if (auto status = headroom::test::runFakeEngineIfAsked(argc, argv)) return *status;`
// What the program does is its MODEL argument: ok, slow-load, refuse, fail, crash, quit, mute, stubborn, port-once:FILE,
// port-taken, show-layout (says what the file of --layout holds, and ends).
inline std::optional<int> runFakeEngineIfAsked(int argc, char** argv) {
  if (argc < 3 || qstrcmp(argv[1], "serve") != 0) return std::nullopt;
  const QByteArray mode = argv[2];
  QByteArray port = "0";
  for (int index = 3; index + 1 < argc; ++index)
    if (qstrcmp(argv[index], "--port") == 0) port = argv[index + 1];
  const auto say = [](const QByteArray& line) {
    std::fprintf(stderr, "%s\n", line.constData());
    std::fflush(stderr);
  };
  say("fake engine: mode " + mode);
  if (mode == "refuse") {
    say("layout: found TP=5, expected a divisor of 9 query heads; use --tp 3");
    return 2;
  }
  if (mode == "fail") {
    say("rank 1: out of memory on cpu:1");
    return 3;
  }
  if (mode == "show-layout") {
    for (int index = 3; index + 1 < argc; ++index)
      if (QFile file(QString::fromLocal8Bit(argv[index + 1])); qstrcmp(argv[index], "--layout") == 0)
        say("layout: " + (file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray("no file")));
    return 3;
  }
  if (mode == "mute") return 3;
  if (mode == "quit") return 0;
  if (mode == "crash") {
    say("the last thing it said");
    std::signal(SIGABRT, SIG_DFL);
    ::kill(::getpid(), SIGABRT);
  }
  if (mode == "port-taken") {
    say("port: found " + port + " in use, expected a free one; choose another");
    return 2;
  }
  if (mode.startsWith("port-once:")) {
    QFile marker(QString::fromUtf8(mode.mid(10)));
    if (!marker.exists()) {
      if (!marker.open(QIODevice::WriteOnly)) return 3;
      say("port: found " + port + " in use, expected a free one; choose another");
      return 2;
    }
  }
  std::signal(
      SIGTERM, mode == "stubborn" ? SIG_IGN : [](int) { ::_exit(0); });
  QCoreApplication application(argc, argv);
  FakeEngineServer server(mode == "slow-load" ? 1000 : 150, mode == "slow-load");
  if (!server.listen(static_cast<quint16>(port.toUInt()))) {
    say("port: found " + port + " in use");
    return 2;
  }
  std::fprintf(stderr, "loading 10%%\rloading 100%%\n");
  server.onReady = [&] {
    std::printf("{\"ready\": true, \"url\": \"%s\", \"model\": \"fake-model\", \"layout\": {\"tp\": 1, \"pp\": 2, \"dp\": 1}}\n",
                qPrintable(server.url().toString()));
    std::fflush(stdout);
  };
  return QCoreApplication::exec();
}

}  // namespace headroom::test
