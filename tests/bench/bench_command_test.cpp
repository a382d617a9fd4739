// SPDX-License-Identifier: Apache-2.0
// headroom-engine bench as a process: against a scripted server, against a model that it serves itself, interrupted, and given
// nonsense.
#include "tests/engine/fake_engine.h"

#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include <signal.h>

using namespace headroom::test;
using Json = nlohmann::ordered_json;

namespace {

struct Ended {
  int status = -1;
  QByteArray output, errors;
  Json json() const { return Json::parse(output.toStdString(), nullptr, false); }
};

Ended bench(QStringList arguments, int milliseconds = 60'000) {
  QProcess process;
  process.start(QStringLiteral(HEADROOM_BIN_DIR "/headroom-engine"), QStringList{"bench"} + arguments);
  if (!process.waitForFinished(milliseconds)) process.kill();
  return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : 1000, process.readAllStandardOutput(),
          process.readAllStandardError()};
}

QString urlOf(const FakeServer& server) { return QString("http://127.0.0.1:%1/v1").arg(server.port); }

}  // namespace

class BenchCommandTest : public QObject {
  Q_OBJECT

 private slots:
  void measuresAServer_data() {
    QTest::addColumn<QString>("backend");
    QTest::newRow("completions") << "openai";
    QTest::newRow("chats") << "openai-chat";
  }
  void measuresAServer() {
    QFETCH(QString, backend);
    FakeServer server;
    const Ended ended = bench({urlOf(server), "--backend", backend, "--num-prompts", "12", "--random-input-len", "9",
                               "--random-output-len", "8", "--ignore-eos", "--max-concurrency", "1,3", "--format", "json",
                               "--save-detailed", "--goodput", "e2el:60000", "--metric-percentiles", "50,95"});
    QVERIFY2(ended.status == 0, ended.errors.constData());
    const Json json = ended.json();
    QCOMPARE(json["model_id"].get<std::string>(), std::string("fake"));
    QCOMPARE(json["runs"].size(), size_t(2));
    for (size_t i = 0; i < 2; ++i) {
      const Json& run = json["runs"][i];
      QCOMPARE(run["completed"].get<int>(), 12);
      QCOMPARE(run["failed"].get<int>(), 0);
      QCOMPARE(run["total_output_tokens"].get<int>(), 96);
      QCOMPARE(run["output_tokens_counted_by"].get<std::string>(), std::string("server"));
      QVERIFY(run["max_concurrent_requests"].get<int>() <= (i ? 3 : 1));
      QCOMPARE(run["request_goodput"].get<double>(), run["request_throughput"].get<double>());
      QVERIFY(run["mean_ttft_ms"].get<double>() > 0 && run["p95_e2el_ms"].get<double>() >= run["median_ttft_ms"].get<double>());
      QCOMPARE(run["requests"].size(), size_t(12));
      QCOMPARE(run["requests"][0]["generated_text"].get<std::string>(), std::string("Hello, w"));
    }
    QCOMPARE(json["runs"][1]["max_concurrent_requests"].get<int>(), 3);
    // Completions: prompts of exactly so many of the server's tokens.
    if (backend == "openai") QCOMPARE(json["runs"][0]["total_input_tokens"].get<int>(), 12 * 9);
    QCOMPARE(server.service.submitted(), size_t(25));  // and one to warm up
  }

  void keepsItsRate() {
    FakeServer server;
    const Ended ended = bench({urlOf(server), "--num-prompts", "20", "--random-input-len", "4", "--random-output-len", "2",
                               "--request-rate", "40", "--format", "csv"});
    QVERIFY2(ended.status == 0, ended.errors.constData());
    const QStringList lines = QString(ended.output).trimmed().split('\n');
    QCOMPARE(lines.size(), 2);
    const double duration = lines[1].split(',')[lines[0].split(',').indexOf("duration")].toDouble();
    QVERIFY2(duration >= 0.5 && duration < 5, qPrintable(lines[1]));  // 20 requests at 40 a second
  }

  void readsDatasets() {
    QTemporaryDir folder;
    const QString path = folder.filePath("a.jsonl");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("{\"messages\":[{\"role\":\"user\",\"content\":\"one\"}],\"max_tokens\":3}\n");
    file.close();
    FakeServer server;
    const QStringList base{urlOf(server), "--dataset-name", "jsonl", "--dataset-path", path,  "--num-prompts",
                           "2",           "--num-warmups",  "0",     "--format",       "json"};
    const Ended ended = bench(base + QStringList{"--backend", "openai-chat"});
    QVERIFY2(ended.status == 0, ended.errors.constData());
    QCOMPARE(ended.json()["runs"][0]["total_output_tokens"].get<int>(), 6);
    QCOMPARE(bench(base).status, 2);  // messages are no prompts
  }

  void reportsWhatFails() {
    headroom::engine::ServerOptions options;
    options.apiKey = "secret";
    FakeServer server("Hello", std::move(options));
    const Ended refused = bench({urlOf(server), "--num-prompts", "2"});
    QCOMPARE(refused.status, 3);
    QVERIFY2(refused.errors.contains("401") && refused.errors.count('\n') == 1, refused.errors.constData());
    const Ended wrong = bench({urlOf(server), "--api-key", "secret", "--num-prompts", "3", "--num-warmups", "0", "--extra-body",
                               "{\"top_p\":7}", "--format", "json"});
    QCOMPARE(wrong.status, 3);
    QCOMPARE(wrong.json()["runs"][0]["failed"].get<int>(), 3);
    QVERIFY(wrong.json()["runs"][0]["errors"].begin().key().find("top_p") != std::string::npos);
    server.service.failAfter(2, "a rank died");
    const Ended died = bench({urlOf(server), "--api-key", "secret", "--num-prompts", "2", "--num-warmups", "0",
                              "--random-input-len", "8", "--random-output-len", "9"});
    QCOMPARE(died.status, 3);
    QVERIFY2(died.output.contains("failed 2x: a rank died"), died.output.constData());
    const Ended nobody = bench({"http://127.0.0.1:9", "--ready-check-timeout-sec", "0", "--num-prompts", "2"});
    QCOMPARE(nobody.status, 3);
    QVERIFY2(nobody.errors.contains("127.0.0.1:9"), nobody.errors.constData());
  }

  void refusesWhatItCannotDo_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("word");
    const QString url = "http://127.0.0.1:9";
    QTest::newRow("address") << QStringList{"ftp://h"} << "ftp://h";
    QTest::newRow("rate") << QStringList{url, "--request-rate", "1,fast"} << "--request-rate";
    QTest::newRow("rate of 0") << QStringList{url, "--request-rate", "0"} << "--request-rate";
    QTest::newRow("goodput") << QStringList{url, "--goodput", "speed:3"} << "ttft:500";
    QTest::newRow("percentile") << QStringList{url, "--metric-percentiles", "101"} << "--metric-percentiles";
    QTest::newRow("metric") << QStringList{url, "--percentile-metrics", "ttft,abc"} << "abc";
    QTest::newRow("dataset") << QStringList{url, "--dataset-name", "sharegpt"} << "--dataset-path";
    QTest::newRow("body") << QStringList{url, "--extra-body", "[1]"} << "--extra-body";
    QTest::newRow("serving") << QStringList{url, "--tp", "2"} << "--tp";
    QTest::newRow("model") << QStringList{"/nonexistent"} << "/nonexistent";
  }
  void refusesWhatItCannotDo() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, word);
    const Ended ended = bench(arguments);
    QCOMPARE(ended.status, 2);
    QVERIFY2(ended.errors.contains(word.toUtf8()) && ended.errors.count('\n') == 1, ended.errors.constData());
    QVERIFY(ended.output.isEmpty());
  }

  void reportsWhatWasDoneWhenItIsInterrupted() {
    FakeServer server("Hello", {}, std::chrono::milliseconds(10));
    QProcess process;
    process.start(QStringLiteral(HEADROOM_BIN_DIR "/headroom-engine"),
                  {"bench", urlOf(server), "--num-prompts", "1000", "--random-input-len", "4", "--random-output-len", "4",
                   "--max-concurrency", "2", "--format", "json"});
    QVERIFY(process.waitForStarted());
    QVERIFY(eventually([&] { return server.service.submitted() > 8; }));
    ::kill(static_cast<pid_t>(process.processId()), SIGINT);
    QVERIFY(process.waitForFinished(20'000));
    QCOMPARE(process.exitCode(), 130);
    const Json json = Json::parse(process.readAllStandardOutput().toStdString(), nullptr, false);
    QVERIFY(json.is_object());
    QCOMPARE(json["interrupted"].get<bool>(), true);
    const Json& run = json["runs"][0];
    QVERIFY(run["completed"].get<int>() >= 3);
    QCOMPARE(run["completed"].get<int>() + run["interrupted"].get<int>(), 1000);
    QVERIFY(run["mean_ttft_ms"].get<double>() > 0);
    QVERIFY(eventually([&] { return server.service.active() == 0; }));
  }

  void servesAModelForTheTest() {
    const QStringList serving{"--device",       "cpu", "--device-memory", "64MiB",  "--max-model-len", "64",
                              "--max-num-seqs", "4",   "--dtype",         "float32"};
    const Ended ended = bench(QStringList{HEADROOM_TEST_DATA "/models/chat", "--num-prompts", "6", "--random-input-len", "10",
                                          "--random-output-len", "5", "--ignore-eos", "--format", "json"} +
                              serving);
    QVERIFY2(ended.status == 0, ended.errors.constData());
    QCOMPARE(ended.json()["runs"][0]["completed"].get<int>(), 6);
    QCOMPARE(ended.json()["runs"][0]["total_output_tokens"].get<int>(), 30);
    // What serve refuses is refused with its line and state.
    const Ended refused =
        bench(QStringList{HEADROOM_TEST_DATA "/models/chat", "--num-prompts", "6", "--dtype", "int3"} + serving.mid(0, 8));
    QCOMPARE(refused.status, 2);
    QVERIFY2(refused.errors.contains("--dtype"), refused.errors.constData());
  }
};

QTEST_MAIN(BenchCommandTest)
#include "bench_command_test.moc"
