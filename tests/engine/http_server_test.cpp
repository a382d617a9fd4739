// SPDX-License-Identifier: Apache-2.0
// The HTTP server against a client that sends bytes as it likes: framing, limits, slow and vanishing clients, the stop.
#include "engine/server/http_server.h"
#include "tests/support/raw_http_client.h"

#include <QtTest>

#include <atomic>
#include <thread>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::test;
using namespace std::chrono_literals;

namespace {

// /echo answers with the body; /stream sends a chunk each millisecond until told to stop; /hold never answers; /flood streams as
// much as is taken.
class TestServer {
 public:
  explicit TestServer(HttpLimits limits = {}, int threads = 2) {
    http = std::move(*HttpServer::bind("127.0.0.1", 0, limits));
    http->serve([this](const std::shared_ptr<HttpExchange>& exchange) { handle(exchange); }, threads);
    port = http->port();
  }
  ~TestServer() { http->stop(0); }

  void handle(const std::shared_ptr<HttpExchange>& exchange) {
    const std::string& path = exchange->request().path;
    if (path == "/echo") {
      HttpResponse response;
      response.body = exchange->request().method + ":" + exchange->request().body;
      exchange->respond(std::move(response));
    } else if (path == "/query") {
      HttpResponse response;
      response.body = exchange->request().query + "|" + std::string(exchange->request().header("x-thing"));
      exchange->respond(std::move(response));
    } else if (path == "/stream" || path == "/flood") {
      exchange->whenGone([this] { ++gone; });
      exchange->beginStream(200, "text/event-stream");
      path == "/flood" ? flood(exchange, 4096) : pump(exchange, std::atoi(exchange->request().query.c_str()));
    } else if (path == "/hold") {
      exchange->whenGone([this] { ++gone; });
      ++held;
    } else if (path == "/late") {
      http->schedule(100ms, [exchange] { exchange->post([exchange] { exchange->respond({}); }); });
    } else {
      HttpResponse response;
      response.status = 404;
      exchange->respond(std::move(response));
    }
  }
  void pump(const std::shared_ptr<HttpExchange>& exchange, int left) {
    if (!exchange->isOpen()) return;
    if (left == 0) return exchange->endStream();
    exchange->send("data: " + std::to_string(left) + "\n\n");
    http->schedule(1ms, [this, exchange, left] { exchange->post([this, exchange, left] { pump(exchange, left - 1); }); });
  }
  // 4096 pieces of 16 KiB, as fast as the client takes them.
  void flood(const std::shared_ptr<HttpExchange>& exchange, int left) {
    for (; left > 0 && exchange->isOpen(); --left) {
      exchange->send(std::string(16 << 10, 'x'));
      mostPending = std::max(mostPending.load(), exchange->pendingBytes());
      if (exchange->pendingBytes() > (256 << 10))
        return exchange->whenDrained([this, exchange, left] { flood(exchange, left - 1); });
    }
    exchange->endStream();
  }

  std::unique_ptr<HttpServer> http;
  int port = 0;
  std::atomic<int> gone{0}, held{0};
  std::atomic<size_t> mostPending{0};
};

template <class Condition>
bool soon(Condition holds, int milliseconds = kPatience) {
  for (int waited = 0; waited < milliseconds; waited += 2) {
    if (holds()) return true;
    std::this_thread::sleep_for(2ms);
  }
  return holds();
}

}  // namespace

class HttpServerTest : public QObject {
  Q_OBJECT

 private slots:
  void answers() {
    TestServer server;
    const RawResponse response = request(server.port, "POST", "/echo", "hello");
    QCOMPARE(response.status, 200);
    QCOMPARE(response.body, std::string("POST:hello"));
    QCOMPARE(response.header("access-control-allow-origin"), std::string("*"));
    QVERIFY(!response.header("date").empty());
  }

  void decodesTheTarget() {
    TestServer server;
    QCOMPARE(request(server.port, "GET", "/qu%65ry?a=%20b", {}, "X-Thing: yes\r\n").body, std::string("a=%20b|yes"));
  }

  void keepsConnectionsAlive() {
    TestServer server;
    RawClient client(server.port);
    for (int i = 0; i < 50; ++i) {
      QVERIFY(client.send(requestText("POST", "/echo", std::to_string(i))));
      QCOMPARE(client.readResponse().body, "POST:" + std::to_string(i));
    }
    QCOMPARE(server.http->openConnections(), 1u);
  }

  void answersPipelinedRequestsInOrder() {
    TestServer server;
    RawClient client(server.port);
    std::string requests;
    for (int i = 0; i < 20; ++i)
      requests += i % 3 == 1 ? requestText("GET", "/late") : requestText("POST", "/echo", std::to_string(i));
    QVERIFY(client.send(requests));
    for (int i = 0; i < 20; ++i) QCOMPARE(client.readResponse().body, i % 3 == 1 ? std::string() : "POST:" + std::to_string(i));
  }

  void readsARequestByteByByte() {
    TestServer server;
    RawClient client(server.port);
    for (char c : requestText("POST", "/echo", "slow")) QVERIFY(client.send(std::string_view(&c, 1)));
    QCOMPARE(client.readResponse().body, std::string("POST:slow"));
  }

  void readsChunkedBodies() {
    TestServer server;
    RawClient client(server.port);
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    client.send("5;ext=1\r\ndefgh\r\n0\r\nTrailer: x\r\n\r\n" + requestText("POST", "/echo", "next"));
    QCOMPARE(client.readResponse().body, std::string("POST:abcdefgh"));
    QCOMPARE(client.readResponse().body, std::string("POST:next"));
  }

  void tellsAWaitingClientToContinue() {
    TestServer server;
    RawClient client(server.port);
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    QCOMPARE(client.readResponse().status, 100);
    client.send("hello");
    QCOMPARE(client.readResponse().body, std::string("POST:hello"));
  }

  void closesAfterTheAnswerWhereAsked() {
    TestServer server;
    for (const char* text : {"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET /echo HTTP/1.0\r\n\r\n"}) {
      RawClient client(server.port);
      client.send(text);
      const RawResponse response = client.readResponse();
      QCOMPARE(response.body, std::string("GET:"));
      QCOMPARE(response.header("connection"), std::string("close"));
      QVERIFY(client.readToEnd());
    }
  }

  void answersHeadWithoutABody() {
    TestServer server;
    RawClient client(server.port);
    client.send("HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\n" + requestText("POST", "/echo", "x"));
    QVERIFY(client.readUntilText("POST:x"));
    QVERIFY(client.input().find("Content-Length: 5") != std::string::npos);
    QVERIFY(client.input().find("HEAD:") == std::string::npos);
  }

  void streamsInChunks() {
    TestServer server;
    RawClient client(server.port);
    client.send(requestText("GET", "/stream?3") + requestText("POST", "/echo", "after"));
    const RawResponse response = client.readResponse();
    QCOMPARE(response.header("transfer-encoding"), std::string("chunked"));
    QCOMPARE(response.body, std::string("data: 3\n\ndata: 2\n\ndata: 1\n\n"));
    QCOMPARE(client.readResponse().body, std::string("POST:after"));
    QCOMPARE(server.gone.load(), 0);
  }

  void streamsToOldClientsUntilTheEnd() {
    TestServer server;
    RawClient client(server.port);
    client.send("GET /stream?2 HTTP/1.0\r\n\r\n");
    const RawResponse response = client.readResponse();
    QVERIFY(response.header("transfer-encoding").empty());
    QCOMPARE(response.body, std::string("data: 2\n\ndata: 1\n\n"));
  }

  void refusesMalformedRequests_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<int>("status");
    QTest::newRow("garbage") << QByteArray("\x16\x03\x01garbage\r\n\r\n") << 400;
    QTest::newRow("no version") << QByteArray("GET /echo\r\n\r\n") << 400;
    QTest::newRow("bad length") << QByteArray("POST /echo HTTP/1.1\r\nContent-Length: -5\r\n\r\n") << 400;
    QTest::newRow("two lengths") << QByteArray("POST /echo HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello")
                                 << 400;
    QTest::newRow("length and chunks")
        << QByteArray("POST /echo HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") << 400;
    QTest::newRow("bad chunk") << QByteArray("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n") << 400;
    QTest::newRow("space in a name") << QByteArray("GET /echo HTTP/1.1\r\nA B: c\r\n\r\n") << 400;
    QTest::newRow("long header") << "GET /echo HTTP/1.1\r\nA: " + QByteArray(100'000, 'a') + "\r\n\r\n" << 431;
    QTest::newRow("endless header") << "GET /echo HTTP/1.1\r\nA: " + QByteArray(200'000, 'a') << 431;
    QTest::newRow("long target") << "GET /" + QByteArray(100'000, 'a') << 431;
    QTest::newRow("large body") << QByteArray("POST /echo HTTP/1.1\r\nContent-Length: 1001\r\n\r\n") << 413;
    QTest::newRow("large chunks") << "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
                                         ("200\r\n" + QByteArray(512, 'a') + "\r\n").repeated(3)
                                  << 413;
  }
  void refusesMalformedRequests() {
    QFETCH(QByteArray, text);
    QFETCH(int, status);
    HttpLimits limits;
    limits.maxBodyBytes = 1000;
    TestServer server(limits);
    RawClient client(server.port);
    client.send(std::string_view(text.constData(), static_cast<size_t>(text.size())));
    const RawResponse response = client.readResponse();
    QCOMPARE(response.status, status);
    QVERIFY2(response.body.starts_with("{\"error\":{"), response.body.c_str());
    client.shutdownSend();
    QVERIFY(client.readToEnd());
    QCOMPARE(request(server.port, "POST", "/echo", "alive").body, std::string("POST:alive"));
  }

  void refusesALargeBodyBeforeReadingIt() {
    HttpLimits limits;
    limits.maxBodyBytes = 1 << 20;
    TestServer server(limits);
    RawClient client(server.port);
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 67108864\r\n\r\n");
    QCOMPARE(client.readResponse().status, 413);
    // A client that sends it all the same still gets the answer.
    RawClient stubborn(server.port);
    stubborn.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8388608\r\n\r\n");
    stubborn.send(std::string(8 << 20, 'a'));
    QCOMPARE(stubborn.readResponse().status, 413);
  }

  void endsSlowRequests() {
    HttpLimits limits;
    limits.headerTimeout = 150ms;
    limits.bodyTimeout = 150ms;
    limits.idleTimeout = 150ms;
    TestServer server(limits);
    RawClient idle(server.port), header(server.port), body(server.port);
    header.send("GET /echo HTTP/1.1\r\nHo");
    body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
    QCOMPARE(header.readResponse().status, 408);
    QCOMPARE(body.readResponse().status, 408);
    QVERIFY(idle.readToEnd());
    QVERIFY(idle.input().empty());
    idle.closeNow(), header.closeNow(), body.closeNow();
    QVERIFY(soon([&] { return server.http->openConnections() == 0; }));
  }

  void headersMayNotTrickle() {
    HttpLimits limits;
    limits.headerTimeout = 200ms;
    TestServer server(limits);
    RawClient client(server.port);
    client.send("GET /echo HTTP/1.1\r\n");
    QElapsedTimer timer;
    timer.start();
    while (timer.elapsed() < kPatience && !client.readUntilText("408", 20)) client.send("A: b\r\n");
    QVERIFY(client.input().find("408") != std::string::npos);
  }

  void noticesAClientThatLeaves_data() {
    QTest::addColumn<QString>("path");
    QTest::addColumn<bool>("reset");
    QTest::newRow("stream, closed") << "/stream?1000000" << false;
    QTest::newRow("stream, reset") << "/stream?1000000" << true;
    QTest::newRow("waiting, closed") << "/hold" << false;
    QTest::newRow("waiting, reset") << "/hold" << true;
  }
  void noticesAClientThatLeaves() {
    QFETCH(QString, path);
    QFETCH(bool, reset);
    TestServer server;
    RawClient client(server.port);
    client.send(requestText("GET", path.toStdString()));
    if (path == "/hold")
      QVERIFY(soon([&] { return server.held == 1; }));
    else
      QVERIFY(client.readUntilText("data: "));
    QCOMPARE(server.gone.load(), 0);
    reset ? client.reset() : client.closeNow();
    QVERIFY(soon([&] { return server.gone == 1; }));
    QVERIFY(soon([&] { return server.http->openExchanges() == 0 && server.http->openConnections() == 0; }));
  }

  void noticesItBehindPipelinedBytes() {
    TestServer server;
    RawClient client(server.port);
    client.send(requestText("GET", "/hold") + requestText("POST", "/echo", "next"));
    QVERIFY(soon([&] { return server.held == 1; }));
    client.closeNow();
    QVERIFY(soon([&] { return server.gone == 1; }));
  }

  void answersAClientThatOnlyStoppedSending() {
    TestServer server;
    RawClient client(server.port);
    client.send(requestText("GET", "/late"));
    client.shutdownSend();
    QCOMPARE(client.readResponse().status, 200);
    QVERIFY(client.readToEnd());
  }

  void slowReadersHoldUpNobody() {
    TestServer server({}, 1);
    std::vector<RawClient> slow;
    for (int i = 0; i < 8; ++i) {
      slow.emplace_back(server.port, 4096);
      slow.back().send(requestText("GET", "/flood"));
    }
    QVERIFY(soon([&] { return server.mostPending > (256 << 10); }));
    for (int i = 0; i < 20; ++i) QCOMPARE(request(server.port, "POST", "/echo", "x").status, 200);
    QVERIFY(server.mostPending < (512 << 10));
    // What was held back comes when they read on.
    const RawResponse response = slow[0].readResponse();
    QCOMPARE(response.body.size(), size_t{4096} * (16 << 10));
  }

  void dropsAClientThatTakesNothing() {
    HttpLimits limits;
    limits.writeTimeout = 200ms;
    TestServer server(limits);
    RawClient client(server.port, 4096);
    client.send(requestText("GET", "/flood"));
    QVERIFY(soon([&] { return server.gone == 1; }));
    QVERIFY(soon([&] { return server.http->openConnections() == 0; }));
  }

  void carriesTwoHundredStreamsOnTwoThreads() {
    TestServer server({}, 2);
    std::vector<RawClient> clients;
    for (int i = 0; i < 200; ++i) {
      clients.emplace_back(server.port);
      QVERIFY(clients.back().send(requestText("GET", "/stream?50")));
    }
    std::string expected;
    for (int i = 50; i > 0; --i) expected += "data: " + std::to_string(i) + "\n\n";
    for (RawClient& client : clients) QCOMPARE(client.readResponse().body, expected);
    QCOMPARE(server.gone.load(), 0);
  }

  void namesAPortInUse() {
    TestServer server;
    const auto second = HttpServer::bind("127.0.0.1", server.port);
    QVERIFY(!second.has_value());
    const std::string message = second.error().message();
    QVERIFY2(message.find(std::to_string(server.port)) != std::string::npos && message.find("--port 0") != std::string::npos,
             message.c_str());
    QVERIFY(!HttpServer::bind("no.such.host.invalid", 0).has_value());
  }

  void letsOpenAnswersEndWhenItStops() {
    TestServer server;
    RawClient idle(server.port), busy(server.port);
    busy.send(requestText("GET", "/stream?100"));
    QVERIFY(busy.readUntilText("data: 100"));
    std::thread stop([&] { server.http->stop(60); });
    const RawResponse response = busy.readResponse();
    QVERIFY(response.body.ends_with("data: 1\n\n"));
    QVERIFY(busy.readToEnd() && idle.readToEnd());
    busy.closeNow();
    stop.join();
    QVERIFY(!RawClient(server.port).isConnected());
  }

  void closesWhatDoesNotEndInTime() {
    TestServer server;
    RawClient client(server.port);
    client.send(requestText("GET", "/hold"));
    QVERIFY(soon([&] { return server.held == 1; }));
    QElapsedTimer timer;
    timer.start();
    server.http->stop(0.2);
    QVERIFY(timer.elapsed() < kPatience / 2);
    QCOMPARE(server.gone.load(), 1);
    QVERIFY(client.readToEnd());
  }
};

QTEST_APPLESS_MAIN(HttpServerTest)
#include "http_server_test.moc"
