// SPDX-License-Identifier: Apache-2.0
// Server-sent events: their framing, and /engine/events as a client sees it.
#include "engine/server/sse.h"
#include "tests/engine/fake_engine.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::test;

namespace {

size_t countOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

}  // namespace

class SseTest : public QObject {
  Q_OBJECT

 private slots:
  void framesEvents() {
    QCOMPARE(sseEvent("{}"), std::string("data: {}\n\n"));
    QCOMPARE(sseEvent("{}", "state"), std::string("event: state\ndata: {}\n\n"));
  }

  void sendsTheStateAtOnceAndOnChange() {
    FakeServer server;
    server.service.setPhase(EnginePhase::Loading);
    RawClient client(server.port);
    client.send(requestText("GET", "/engine/events"));
    QVERIFY(client.readUntilText("\"phase\":\"loading\""));
    QVERIFY(client.input().find("Content-Type: text/event-stream") != std::string::npos);
    server.service.setPhase(EnginePhase::Ready);
    for (int i = 0; i < 100; ++i) server.server->notifyStateChanged();
    QVERIFY(client.readUntilText("\"phase\":\"ready\""));
    client.readUntilText("never", 300);
    QVERIFY2(countOf(client.input(), "event: state") <= 50, "many changes at once become few events");
  }

  // A model that gets ready while a client subscribes: its first state says loading, and the change must follow.
  void aChangeDuringASubscriptionIsNotLost() {
    FakeServer server;
    server.service.setPhase(EnginePhase::Loading);
    std::atomic<int> reads{0};
    server.service.afterState = [&] {
      if (reads++ > 0) return;
      server.service.setPhase(EnginePhase::Ready);
      server.server->notifyStateChanged();
      std::this_thread::sleep_for(std::chrono::milliseconds(300));  // longer than changes are gathered for
    };
    RawClient client(server.port);
    client.send(requestText("GET", "/engine/events"));
    QVERIFY(client.readUntil([](const std::string& input) { return countOf(input, "event: state") >= 2; }, 10'000));
    const size_t last = client.input().rfind("event: state");
    QVERIFY(client.input().find("\"phase\":\"loading\"") < last);
    QVERIFY(client.input().find("\"phase\":\"loading\"", last) == std::string::npos);
  }

  // An engine that gets ready just when the server begins to answer.
  void aChangeWhileTheServerBeginsIsNotLost() {
    for (int round = 0; round < 20; ++round) {  // a slow machine loses some of them without the order in serve()
      ByteTokenizer tokenizer;
      LineTemplate chatTemplate;
      FakeService service;
      service.setPhase(EnginePhase::Loading);
      ServerOptions options;
      options.port = 0;
      auto server = std::move(*Server::bind(std::move(options)));
      std::atomic<int> reads{0};
      service.afterState = [&] {
        if (reads++ > 0) return;
        service.setPhase(EnginePhase::Ready);
        server->notifyStateChanged();
      };
      RawClient client(server->port());
      client.send(requestText("GET", "/engine/events"));
      ModelText text;
      text.tokenizer = &tokenizer;
      text.chatTemplate = &chatTemplate;
      server->serve(service, std::move(text));
      const bool told = client.readUntil([](const std::string& input) { return countOf(input, "event: state") >= 2; }, 5'000);
      server->stop(0);
      QVERIFY2(told, QByteArray::number(round));
    }
  }

  void sendsMetricsTwiceASecondToEveryone() {
    FakeServer server;
    RawClient first(server.port), second(server.port);
    first.send(requestText("GET", "/engine/events"));
    second.send(requestText("GET", "/engine/events"));
    auto four = [](const std::string& input) { return countOf(input, "event: metrics") >= 4; };
    QElapsedTimer timer;
    timer.start();
    QVERIFY(first.readUntil(four));
    QVERIFY2(timer.elapsed() > 1500, QByteArray::number(timer.elapsed()));
    QVERIFY(second.readUntil(four));
    const size_t at = first.input().find("event: metrics\ndata: ") + 21;
    const auto sample =
        headroom::metricsSampleFromJson(nlohmann::json::parse(first.input().substr(at, first.input().find("\n\n", at) - at)));
    QVERIFY(sample.has_value());
    QCOMPARE(sample->generatedTokensPerSecond, 12.5);
  }

  void forgetsClientsThatLeave() {
    FakeServer server;
    for (int i = 0; i < 20; ++i) {
      RawClient client(server.port);
      client.send(requestText("GET", "/engine/events"));
      QVERIFY(client.readUntilText("event: state"));
    }
    QVERIFY(eventually([&] { return server.server->openConnections() == 0; }));
    server.server->notifyStateChanged();
    QCOMPARE(server.get("/health").status, 200);
  }

  void endsWhenTheServerStops() {
    FakeServer server;
    RawClient client(server.port);
    client.send(requestText("GET", "/engine/events"));
    QVERIFY(client.readUntilText("event: state"));
    server.service.setPhase(EnginePhase::Failed, "rank 1: device lost");
    QElapsedTimer timer;
    timer.start();
    std::thread stop([&] { server.server->stop(60); });
    QVERIFY(client.readToEnd());
    QVERIFY(client.input().ends_with("0\r\n\r\n"));
    QVERIFY2(client.input().find("rank 1: device lost") != std::string::npos, "the last state comes before the end");
    client.closeNow();
    stop.join();
    QVERIFY2(timer.elapsed() < 50'000, "it does not wait for subscribers");
  }
};

QTEST_APPLESS_MAIN(SseTest)
#include "sse_test.moc"
