// SPDX-License-Identifier: GPL-3.0-or-later
// EngineClient against a scripted server: good, slow, broken and vanishing.
#include "ui/client/engine_client.h"
#include "tests/ui/support/fake_engine.h"

#include <QRegularExpression>
#include <QSignalSpy>
#include <QtTest>
#include <utility>

using namespace headroom;
using namespace headroom::ui;
using namespace headroom::test;

class EngineClientTest : public QObject {
  Q_OBJECT

  // What one chat ends with.
  struct ChatEnd {
    QString text, failure;
    ChatStats stats;
    bool finished = false, cancelled = false;
  };

  static ChatEnd chat(EngineClient& client, bool cancelAfterFirst = false) {
    ChatEnd end;
    ChatStream* stream = client.startChat({QStringLiteral("m"), {{QStringLiteral("user"), QStringLiteral("Hi")}}, 0.5, 7});
    bool done = false;
    connect(stream, &ChatStream::textReceived, stream, [&](const QString& text) {
      end.text += text;
      if (cancelAfterFirst) stream->cancel();
    });
    connect(stream, &ChatStream::finished, stream,
            [&](const ChatStats& stats) { end.stats = stats, end.finished = done = true; });
    connect(stream, &ChatStream::cancelled, stream,
            [&](const ChatStats& stats) { end.stats = stats, end.cancelled = done = true; });
    connect(stream, &ChatStream::failed, stream, [&](const QString& reason, const ChatStats& stats) {
      end.stats = stats;
      end.failure = reason;
      done = true;
    });
    if (!QTest::qWaitFor([&] { return done; }, 10000)) end.failure = QStringLiteral("never ended");
    return end;
  }

 private slots:
  void init() { QTest::failOnWarning(QRegularExpression(QStringLiteral(".*"))); }

  void readsStateAndModels() {
    FakeEngineServer engine(0);
    QVERIFY(engine.listen(0));
    EngineClient client;
    client.setBaseUrl(engine.url());
    QSignalSpy states(&client, &EngineClient::stateReceived), models(&client, &EngineClient::modelsReceived);
    client.fetchState();
    client.fetchModels();
    QTRY_COMPARE(states.size(), 1);
    QTRY_COMPARE(models.size(), 1);
    const auto state = states[0][0].value<EngineState>();
    QCOMPARE(state.phase, EnginePhase::Ready);
    QCOMPARE(state.ranks.size(), std::size_t(2));
    QCOMPARE(state.ranks[1].device, std::string("cpu:1"));
    QCOMPARE(models[0][0].toStringList(), QStringList{QStringLiteral("fake-model")});
  }

  // What was asked before an event came may be answered with what was before it.
  void anEventIsNewerThanALateAnswer() {
    QPointer<QTcpSocket> asked;
    FakeHttpServer server([&](const HttpRequest& request, QTcpSocket* socket) {
      if (request.path == "/engine/state") {
        asked = socket;
        return;
      }
      beginStream(socket);
      socket->write(sseEvent("state", toJson(fakeState(EnginePhase::Ready, 1))));
    });
    QVERIFY(server.listen());
    EngineClient client;
    client.setBaseUrl(server.url());
    QSignalSpy states(&client, &EngineClient::stateReceived);
    client.fetchState();
    QTRY_VERIFY(asked);
    client.openEvents();
    QTRY_COMPARE(states.size(), 1);
    QSignalSpy gone(asked, &QTcpSocket::disconnected);
    answer(asked, QByteArray::fromStdString(toJson(fakeState(EnginePhase::Loading, 0)).dump()));
    QTRY_COMPARE(gone.size(), 1);
    QTRY_VERIFY((client.fetchState(), asked && asked->state() == QTcpSocket::ConnectedState));  // the next question counts again
    QCOMPARE(states.size(), 1);
    QCOMPARE(states[0][0].value<EngineState>().phase, EnginePhase::Ready);
    answer(asked, QByteArray::fromStdString(toJson(fakeState(EnginePhase::Draining, 1)).dump()));
    QTRY_COMPARE(states.size(), 2);
    QCOMPARE(states[1][0].value<EngineState>().phase, EnginePhase::Draining);
  }

  void explainsABadState_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::addColumn<int>("status");
    QTest::addColumn<QString>("said");
    QTest::newRow("not JSON") << QByteArray("<html>") << 200 << QStringLiteral("<html>");
    QTest::newRow("wrong schema") << QByteArray(R"({"schema":"other/9"})") << 200 << QStringLiteral("headroom.engine/1");
    QTest::newRow("error object") << QByteArray(R"({"error":{"message":"wrong key"}})") << 401 << QStringLiteral("wrong key");
    QTest::newRow("array") << QByteArray("[]") << 200 << QStringLiteral("an object");
    QTest::newRow("empty") << QByteArray() << 200 << QStringLiteral("JSON");
  }

  void explainsABadState() {
    QFETCH(QByteArray, body);
    QFETCH(int, status);
    QFETCH(QString, said);
    FakeHttpServer server([&](const HttpRequest&, QTcpSocket* socket) { answer(socket, body, status); });
    QVERIFY(server.listen());
    EngineClient client;
    client.setBaseUrl(server.url());
    QSignalSpy failures(&client, &EngineClient::stateFailed);
    client.fetchState();
    QTRY_COMPARE(failures.size(), 1);
    QVERIFY2(failures[0][0].toString().contains(said), qPrintable(failures[0][0].toString()));
  }

  void saysWhenNobodyListens() {
    FakeHttpServer server([](const HttpRequest&, QTcpSocket*) {});
    QVERIFY(server.listen());
    const QUrl url = server.url();
    server.close();
    EngineClient client;
    client.setBaseUrl(url);
    QSignalSpy failures(&client, &EngineClient::stateFailed);
    client.fetchState();
    QTRY_COMPARE(failures.size(), 1);
    const ChatEnd end = chat(client);
    QVERIFY2(end.failure.contains(QLatin1String("cannot be reached")), qPrintable(end.failure));
  }

  void sendsTheKeyAndTheConversation() {
    HttpRequest seen;
    FakeHttpServer server([&](const HttpRequest& request, QTcpSocket* socket) {
      seen = request;
      beginStream(socket);
      socket->write(chatChunk("Hel") + chatChunk("lo") + chatEnd(5, 2));
      socket->disconnectFromHost();
    });
    QVERIFY(server.listen());
    EngineClient client;
    client.setBaseUrl(server.url());
    client.setApiKey(QStringLiteral("secret"));
    const ChatEnd end = chat(client);
    QCOMPARE(end.failure, QString());
    QVERIFY(end.finished);
    QCOMPARE(end.text, QStringLiteral("Hello"));
    QCOMPARE(seen.path, QByteArray("/v1/chat/completions"));
    QCOMPARE(seen.headers.value("authorization"), QByteArray("Bearer secret"));
    const auto body = nlohmann::json::parse(seen.body.begin(), seen.body.end());
    QCOMPARE(body["messages"].dump(), std::string(R"([{"content":"Hi","role":"user"}])"));
    QCOMPARE(body["stream"].get<bool>(), true);
    QCOMPARE(body["max_tokens"].get<int>(), 7);
    QCOMPARE(body["temperature"].get<double>(), 0.5);
    QCOMPARE(body["stream_options"]["include_usage"].get<bool>(), true);
    QCOMPARE(end.stats.promptTokens, std::optional<int64_t>(5));
    QCOMPARE(end.stats.completionTokens, std::optional<int64_t>(2));
    QCOMPARE(end.stats.finishReason, QStringLiteral("stop"));
    QVERIFY(end.stats.ttftMs && *end.stats.ttftMs > 0);
  }

  void measuresFirstTokenAndSpeed() {
    FakeHttpServer server([](const HttpRequest&, QTcpSocket* socket) {
      beginStream(socket);
      QTimer::singleShot(200, socket, [=] { socket->write(chatChunk("a")); });
      QTimer::singleShot(700, socket, [=] {
        socket->write(chatChunk("b") + chatEnd(1, 11));
        socket->disconnectFromHost();
      });
    });
    QVERIFY(server.listen());
    EngineClient client;
    client.setBaseUrl(server.url());
    const ChatEnd end = chat(client);
    QVERIFY(end.finished);
    QVERIFY2(*end.stats.ttftMs >= 190 && *end.stats.ttftMs < 690, qPrintable(QString::number(*end.stats.ttftMs)));
    // 10 tokens after the first in about half a second; a busy machine may only be slower.
    QVERIFY2(*end.stats.tokensPerSecond > 2 && *end.stats.tokensPerSecond < 25,
             qPrintable(QString::number(*end.stats.tokensPerSecond)));
  }

  void explainsABrokenAnswer_data() {
    QTest::addColumn<QByteArray>("stream");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("said");
    QTest::newRow("closed in the middle") << chatChunk("Hel") << QStringLiteral("Hel")
                                          << QStringLiteral("before the answer was complete");
    QTest::newRow("closed at once") << QByteArray() << QString() << QStringLiteral("before the answer was complete");
    QTest::newRow("half an event") << chatChunk("Hel").chopped(2) << QString()
                                   << QStringLiteral("before the answer was complete");
    QTest::newRow("garbage") << chatChunk("Hel") + "data: {nonsense\n\n" << QStringLiteral("Hel") << QStringLiteral("{nonsense");
    QTest::newRow("an error in the stream") << chatChunk("Hel") + "data: {\"error\":{\"message\":\"rank 2 failed\"}}\n\n"
                                            << QStringLiteral("Hel") << QStringLiteral("rank 2 failed");
    QTest::newRow("an error instead of a stream")
        << QByteArray(R"({"error":{"message":"model is busy"}})") << QString() << QStringLiteral("model is busy");
    QTest::newRow("wrong types") << QByteArray("data: {\"choices\":[{\"delta\":7,\"finish_reason\":[]}],\"usage\":\"x\"}\n\n")
                                 << QString() << QStringLiteral("before the answer was complete");
  }

  void explainsABrokenAnswer() {
    QFETCH(QByteArray, stream);
    QFETCH(QString, text);
    QFETCH(QString, said);
    FakeHttpServer server([&](const HttpRequest&, QTcpSocket* socket) {
      beginStream(socket);
      socket->write(stream);
      socket->disconnectFromHost();
    });
    QVERIFY(server.listen());
    EngineClient client;
    client.setBaseUrl(server.url());
    const ChatEnd end = chat(client);
    QVERIFY(!end.finished);
    QCOMPARE(end.text, text);
    QVERIFY2(end.failure.contains(said), qPrintable(end.failure));
  }

  void showsTheErrorOfARefusedRequest() {
    FakeHttpServer server([](const HttpRequest&, QTcpSocket* socket) {
      answer(socket, R"({"error":{"message":"max_tokens: found 0","param":"max_tokens"}})", 400);
    });
    QVERIFY(server.listen());
    EngineClient client;
    client.setBaseUrl(server.url());
    QCOMPARE(chat(client).failure, QStringLiteral("max_tokens: found 0"));
  }

  void cancelClosesTheConnection() {
    bool closed = false;
    FakeHttpServer server([&](const HttpRequest&, QTcpSocket* socket) {
      beginStream(socket);
      socket->write(chatChunk("first"));
      connect(socket, &QTcpSocket::disconnected, socket, [&] { closed = true; });
    });
    QVERIFY(server.listen());
    EngineClient client;
    client.setBaseUrl(server.url());
    const ChatEnd end = chat(client, true);
    QVERIFY(end.cancelled);
    QCOMPARE(end.text, QStringLiteral("first"));
    QTRY_VERIFY(closed);
  }

  void followsEventsAndReconnects() {
    int connections = 0;
    FakeHttpServer server([&](const HttpRequest& request, QTcpSocket* socket) {
      if (request.path != "/engine/events") return answer(socket, "{}", 404);
      ++connections;
      beginStream(socket);
      socket->write(sseEvent("state", toJson(fakeState(EnginePhase::Ready, 1))));
      socket->write(sseEvent("metrics", toJson(fakeSample(1000.0 + connections))));
      if (connections < 3) socket->disconnectFromHost();
    });
    QVERIFY(server.listen());
    EngineClient client;
    client.setReconnectMs(10, 20);
    client.setBaseUrl(server.url());
    QSignalSpy states(&client, &EngineClient::stateReceived), samples(&client, &EngineClient::metricsReceived);
    QSignalSpy opened(&client, &EngineClient::eventsOpened), lost(&client, &EngineClient::eventsLost);
    client.openEvents();
    QTRY_COMPARE(samples.size(), 3);
    QCOMPARE(states.size(), 3);
    QCOMPARE(opened.size(), 3);
    QCOMPARE(lost.size(), 2);
    QVERIFY(client.eventsConnected());
    QCOMPARE(samples[2][0].value<MetricsSample>().time, 1003.0);
    client.closeEvents();
    QVERIFY(!client.eventsConnected());
    QTest::qWait(60);
    QCOMPARE(connections, 3);  // closed means closed
  }

  void survivesGarbageAmongEvents() {
    FakeHttpServer server([&](const HttpRequest&, QTcpSocket* socket) {
      beginStream(socket);
      socket->write("event: metrics\ndata: {broken\n\nevent: metrics\ndata: {\"time\":\"soon\"}\n\nevent: news\ndata: 1\n\n");
      socket->write(sseEvent("metrics", toJson(fakeSample(5))));
    });
    QVERIFY(server.listen());
    EngineClient client;
    client.setBaseUrl(server.url());
    QSignalSpy samples(&client, &EngineClient::metricsReceived), ignored(&client, &EngineClient::eventIgnored);
    client.openEvents();
    QTRY_COMPARE(samples.size(), 1);
    QCOMPARE(ignored.size(), 2);
  }

  void noticesASilentEngine() {
    FakeHttpServer server([&](const HttpRequest&, QTcpSocket* socket) { beginStream(socket); });
    QVERIFY(server.listen());
    EngineClient client;
    client.setSilenceMs(50);
    client.setReconnectMs(10000, 10000);
    client.setBaseUrl(server.url());
    QSignalSpy lost(&client, &EngineClient::eventsLost);
    client.openEvents();
    QTRY_COMPARE(lost.size(), 1);
    QVERIFY(lost[0][0].toString().contains(QLatin1String("silent")));
  }

  void diesQuietlyWithOpenConnections() {
    FakeEngineServer engine(0);
    QVERIFY(engine.listen(0));
    auto client = std::make_unique<EngineClient>();
    client->setBaseUrl(engine.url());
    client->openEvents();
    client->fetchState();
    client->startChat({{}, {{QStringLiteral("user"), QStringLiteral("slow")}}, {}, {}});
    QSignalSpy samples(client.get(), &EngineClient::metricsReceived);
    QTRY_VERIFY(!samples.isEmpty());
    client.reset();
    QTest::qWait(50);
  }
};

QTEST_GUILESS_MAIN(EngineClientTest)
#include "engine_client_test.moc"
