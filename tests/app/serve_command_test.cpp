// SPDX-License-Identifier: GPL-3.0-or-later
// headroom-engine serve as a process: its ready line, exit states, signals, and the one line that says what is wrong.
#include "tests/support/raw_http_client.h"

#include <QTemporaryDir>
#include <QtTest>

#include <signal.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace headroom::test;
using nlohmann::json;

namespace {

const QString kModel = QStringLiteral(HEADROOM_TEST_DATA "/models/llama");

class Serve {
 public:
  explicit Serve(QStringList arguments, const char* fault = nullptr)
      : Serve(std::move(arguments),
              fault ? std::map<QString, QString>{{"HEADROOM_FAULT", fault}} : std::map<QString, QString>{}) {}
  Serve(QStringList arguments, const std::map<QString, QString>& variables) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const auto& [name, value] : variables) environment.insert(name, value);
    m_process.setProcessEnvironment(environment);
    m_process.setProgram(QStringLiteral(HEADROOM_BIN_DIR "/headroom-engine"));
    m_process.setArguments(QStringList{QStringLiteral("serve")} + arguments);
    m_process.start();
  }
  ~Serve() {
    if (m_process.state() == QProcess::NotRunning) return;
    m_process.kill();
    m_process.waitForFinished();
  }
  // The ready line; null when the process ended without one.
  json ready(int milliseconds = kPatience) {
    QElapsedTimer timer;
    timer.start();
    while (!m_process.canReadLine() && timer.elapsed() < milliseconds && m_process.state() != QProcess::NotRunning)
      m_process.waitForReadyRead(100);
    const json line = json::parse(m_process.readLine().toStdString(), nullptr, false);
    if (line.is_object()) m_port = std::stoi(line["url"].get<std::string>().substr(std::string("http://127.0.0.1:").size()));
    return line;
  }
  void signal(int number) { ::kill(static_cast<pid_t>(m_process.processId()), number); }
  int exitStatus(int milliseconds = kPatience) {
    if (m_process.state() != QProcess::NotRunning && !m_process.waitForFinished(milliseconds)) return -1;
    return m_process.exitStatus() == QProcess::NormalExit ? m_process.exitCode() : 1000;
  }
  bool waitErrors(const QString& text, int milliseconds = kPatience) {
    QElapsedTimer timer;
    timer.start();
    while (!errors().contains(text) && timer.elapsed() < milliseconds && m_process.state() != QProcess::NotRunning)
      m_process.waitForReadyRead(50);
    return errors().contains(text);
  }
  QString errors() { return QString::fromUtf8(m_errors += m_process.readAllStandardError()); }
  int port() const { return m_port; }

 private:
  QProcess m_process;
  QByteArray m_errors;
  int m_port = 0;
};

QStringList small(const QString& model = kModel, const QStringList& more = {}) {
  return QStringList{model, "--device",       "cpu", "--port",  "0",      "--device-memory", "64MiB", "--max-model-len",
                     "64",  "--max-num-seqs", "4",   "--dtype", "float32"} +
         more;
}

// The same with another value of one option.
QStringList with(const QString& option, const QString& value) {
  QStringList arguments = small();
  arguments[arguments.indexOf(option) + 1] = value;
  return arguments;
}

}  // namespace

class ServeCommandTest : public QObject {
  Q_OBJECT

 private slots:
  void servesUntilItIsToldToStop_data() {
    QTest::addColumn<int>("signal");
    QTest::newRow("SIGTERM") << SIGTERM;
    QTest::newRow("SIGINT") << SIGINT;
  }
  void servesUntilItIsToldToStop() {
    QFETCH(int, signal);
    Serve serve(small(kModel, {"--tp", "2", "--served-model-name", "tiny"}));
    const json ready = serve.ready();
    QVERIFY2(ready.is_object(), qPrintable(serve.errors()));
    QCOMPARE(ready["ready"].get<bool>(), true);
    QCOMPARE(ready["model"].get<std::string>(), std::string("tiny"));
    QCOMPARE(ready["layout"].dump(), std::string(R"({"dp":1,"pp":1,"tp":2})"));
    QCOMPARE(request(serve.port(), "GET", "/health").status, 200);
    const json state = json::parse(request(serve.port(), "GET", "/engine/state").body);
    QCOMPARE(state["phase"].get<std::string>(), std::string("ready"));
    QCOMPARE(state["ranks"].size(), 2u);
    const RawResponse answer = request(serve.port(), "POST", "/v1/completions",
                                       R"({"prompt": [1, 2, 3], "max_tokens": 4, "ignore_eos": true, "return_token_ids": true})");
    QCOMPARE(answer.status, 200);
    QCOMPARE(json::parse(answer.body)["choices"][0]["token_ids"].size(), 4u);
    serve.signal(signal);
    QCOMPARE(serve.exitStatus(), 0);
  }

  // bfloat16 on a device without it is served, as float32 products, with a warning that names the choices; they have none.
  void warnsOfBfloat16_data() {
    QTest::addColumn<QString>("capability");
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<bool>("warns");
    QTest::newRow("bfloat16 on 7.5") << "75"
                                     << "bfloat16" << true;
    QTest::newRow("float16 on 7.5") << "75"
                                    << "float16" << false;
    QTest::newRow("float32 on 7.5") << "75"
                                    << "float32" << false;
    QTest::newRow("bfloat16 on 8.0") << "80"
                                     << "bfloat16" << false;
  }
  void warnsOfBfloat16() {
#ifndef CUDA_EMULATED
    QSKIP("emulated CUDA devices are not built here (a sanitizer is on, or libboost-context is missing)");
#else
    QFETCH(QString, capability);
    QFETCH(QString, dtype);
    QFETCH(bool, warns);
    Serve serve({kModel, "--device", "cuda", "--port", "0", "--max-model-len", "64", "--max-num-seqs", "4", "--dtype", dtype,
                 "--gpu-memory-utilization", "1"},
                {{"HEADROOM_CUDA_MODULE", CUDA_EMULATED},
                 {"HEADROOM_EMULATED_MEMORY", "256"},
                 {"HEADROOM_EMULATED_CAPABILITY", capability}});
    QVERIFY2(serve.ready().is_object(), qPrintable(serve.errors()));
    const RawResponse answer = request(serve.port(), "POST", "/v1/completions",
                                       R"({"prompt": [1, 2, 3], "max_tokens": 4, "ignore_eos": true, "return_token_ids": true})");
    QCOMPARE(answer.status, 200);
    QCOMPARE(json::parse(answer.body)["choices"][0]["token_ids"].size(), 4u);
    const QString said = serve.errors();
    QVERIFY2(said.contains("compute capability 7.5) has no bfloat16") == warns, qPrintable(said));
    QVERIFY2((said.contains("--dtype float16") && said.contains("--dtype float32")) == warns, qPrintable(said));
    serve.signal(SIGTERM);
    QCOMPARE(serve.exitStatus(), 0);
#endif
  }

  // Devices older than the kernels are refused by name.
  void refusesDevicesTooOld() {
#ifndef CUDA_EMULATED
    QSKIP("emulated CUDA devices are not built here (a sanitizer is on, or libboost-context is missing)");
#else
    Serve serve(
        {kModel, "--device", "cuda", "--port", "0", "--max-model-len", "64", "--max-num-seqs", "4"},
        {{"HEADROOM_CUDA_MODULE", CUDA_EMULATED}, {"HEADROOM_EMULATED_MEMORY", "256"}, {"HEADROOM_EMULATED_CAPABILITY", "61"}});
    QVERIFY(!serve.ready().is_object());
    QCOMPARE(serve.exitStatus(), 3);
    QVERIFY2(serve.errors().contains("compute capability 6.1") && serve.errors().contains("--device cpu"),
             qPrintable(serve.errors()));
#endif
  }

  void endsOpenStreamsSoonAfterASignal() {
    Serve serve(small());
    QVERIFY2(serve.ready().is_object(), qPrintable(serve.errors()));
    RawClient events(serve.port());
    events.send(requestText("GET", "/engine/events"));
    QVERIFY(events.readUntilText("event: state"));
    serve.signal(SIGTERM);
    QVERIFY(events.readToEnd());
    events.closeNow();
    QCOMPARE(serve.exitStatus(), 0);
  }

  void saysInOneLineWhatIsWrong_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("says");
    QTest::newRow("no model") << QStringList{} << "MODEL";
    QTest::newRow("no such file") << small("/no/such/model") << "/no/such/model";
    QTest::newRow("unknown option") << small(kModel, {"--fast"}) << "--fast";
    QTest::newRow("wrong device") << with("--device", "tpu") << "tpu";
    QTest::newRow("wrong memory") << with("--device-memory", "much") << "--device-memory: found much";
    QTest::newRow("wrong dtype") << with("--dtype", "int3") << "--dtype: found int3";
    QTest::newRow("too little memory") << QStringList{kModel, "--device", "cpu", "--device-memory", "1MiB", "--port", "0"}
                                       << "budget";
    QTest::newRow("more memory than the machine's") << with("--device-memory", "900TiB") << "all the memory of this machine";
    QTest::newRow("too many ranks") << small(kModel, {"--tp", "1000"}) << "head";
    QTest::newRow("a thousand million ranks")
        << small(kModel, {"--tp", "1024", "--pp", "1024", "--dp", "1024"}) << "1073741824 ranks";
    QTest::newRow("an empty key") << small(kModel, {"--api-key", ""}) << "--api-key: found an empty text";
    QTest::newRow("an empty name") << small(kModel, {"--served-model-name", ""}) << "--served-model-name: found an empty text";
    QTest::newRow("no number of seconds") << small(kModel, {"--request-timeout", "nan"}) << "--request-timeout: found \"nan\"";
    QTest::newRow("an unknown cache type") << small(kModel, {"--kv-cache-dtype", "q8_0"}) << "fp8_e4m3, fp8_e5m2 or int8";
    QTest::newRow("no layout file") << small(kModel, {"--layout", "/no/such/layout.json"}) << "/no/such/layout.json";
    QTest::newRow("GPUs of the CPU") << small(kModel, {"--gpus", "0,1"}) << "--gpus";
    QTest::newRow("no such host") << small(kModel, {"--host", "no.such.host.invalid"}) << "--host";
  }
  void saysInOneLineWhatIsWrong() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, says);
    Serve serve(arguments);
    QCOMPARE(serve.exitStatus(), 2);
    const QString last = serve.errors().trimmed().section('\n', -1);
    QVERIFY2(last.startsWith("headroom-engine: ") && last.contains(says), qPrintable(last));
  }

  // A rank that dies while it serves: whoever waits hears why, and the process ends with the reason as its last line.
  // A full disk is told, whatever was to be printed.
  // A log whose model's name is no UTF-8, as JSON.
  void reportsAnyBytes() {
    QTemporaryDir folder;
    QFile log(folder.filePath("start.log"));
    QVERIFY(log.open(QIODevice::WriteOnly));
    log.write("INFO vllm engine v0.8.1 model='\xFF\xFE'\nINFO GPU KV cache size: 1,000 tokens\n");
    log.close();
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("HEADROOM_CALIBRATION", folder.filePath("calibration.json"));
    process.setProcessEnvironment(environment);
    process.start(QStringLiteral(HEADROOM_BIN_DIR "/headroom-engine"),
                  {"plan", kModel, "--gpus", "2x24GiB", "--calibrate", log.fileName(), "--format", "json"});
    QVERIFY(process.waitForFinished());
    QVERIFY2(process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0, process.readAllStandardError().constData());
    const json report = json::parse(process.readAllStandardOutput().toStdString());
    QCOMPARE(report["model"].get<std::string>(), std::string("\xEF\xBF\xBD\xEF\xBF\xBD"));
  }

  void saysThatOutputCannotBeWritten_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::newRow("plan") << QStringList{"plan", "Qwen/Qwen2.5-72B-Instruct", "--gpus", "6xA800-80GB"};
    QTest::newRow("plan, JSON") << QStringList{"plan", "Qwen/Qwen2.5-72B-Instruct", "--gpus", "6xA800-80GB", "--format", "json"};
    QTest::newRow("devices") << QStringList{"devices"};
    QTest::newRow("help") << QStringList{"--help"};
  }
  void saysThatOutputCannotBeWritten() {
    QFETCH(QStringList, arguments);
    QProcess process;
    process.setStandardOutputFile("/dev/full");
    process.start(QStringLiteral(HEADROOM_BIN_DIR "/headroom-engine"), arguments);
    QVERIFY(process.waitForFinished());
    QCOMPARE(process.exitCode(), 3);
    const QString errors = QString::fromUtf8(process.readAllStandardError());
    QVERIFY2(errors.contains("standard output"), qPrintable(errors));
    QCOMPARE(errors.count('\n'), 1);
  }

  void endsWhenARankDies_data() {
    QTest::addColumn<QByteArray>("fault");
    QTest::addColumn<bool>("stream");
    QTest::addColumn<QString>("reason");
    QTest::newRow("whole answer") << QByteArray("rank=1,step=6,kind=throw") << false << "rank 1 (stage 0, TP rank 1) on cpu:1";
    QTest::newRow("stream") << QByteArray("rank=3,step=6,kind=error") << true << "rank 3 (stage 1, TP rank 1) on cpu:3";
    QTest::newRow("prompt") << QByteArray("rank=2,step=0,kind=memory") << true << "rank 2 (stage 1, TP rank 0) on cpu:2";
  }
  void endsWhenARankDies() {
    QFETCH(QByteArray, fault);
    QFETCH(bool, stream);
    QFETCH(QString, reason);
    Serve serve(small(kModel, {"--tp", "2", "--pp", "2"}), fault.constData());
    QVERIFY2(serve.ready().is_object(), qPrintable(serve.errors()));
    RawClient events(serve.port());
    events.send(requestText("GET", "/engine/events"));
    QVERIFY(events.readUntilText("event: state"));
    RawClient client(serve.port());
    client.send(requestText("POST", "/v1/completions",
                            json{{"prompt", {1, 2, 3}}, {"max_tokens", 40}, {"ignore_eos", true}, {"stream", stream}}.dump()));
    const RawResponse answer = client.readResponse();
    const std::string why = reason.toStdString();
    QVERIFY2(answer.body.find(why) != std::string::npos, answer.body.c_str());
    if (answer.status == 200) {  // the stream had begun: an error event, and the end
      QVERIFY(stream);
      QVERIFY(answer.body.find("data: {\"error\":{\"message\":") != std::string::npos);
      QVERIFY(answer.body.ends_with("data: [DONE]\n\n"));
    } else {
      QCOMPARE(answer.status, 500);
      QCOMPARE(json::parse(answer.body)["error"]["type"].get<std::string>(), std::string("internal_error"));
    }
    QVERIFY(events.readToEnd());
    QVERIFY2(events.input().find("\"failed\"") != std::string::npos && events.input().find(why) != std::string::npos,
             events.input().c_str());
    QCOMPARE(serve.exitStatus(), 3);
    const QString last = serve.errors().trimmed().section('\n', -1);
    QVERIFY2(last.startsWith("headroom-engine: " + reason), qPrintable(last));
  }

  void endsWhenARankDiesWhileItLoads() {
    Serve serve(small(kModel, {"--tp", "2"}), "rank=1,step=load,kind=throw");
    QCOMPARE(serve.exitStatus(), 3);
    const QString last = serve.errors().trimmed().section('\n', -1);
    QVERIFY2(last.startsWith("headroom-engine: rank 1 (stage 0, TP rank 1) on cpu:1"), qPrintable(last));
  }

  void endsAtASignalBeforeItIsReady_data() {
    QTest::addColumn<int>("signal");
    QTest::addColumn<int>("status");
    QTest::newRow("SIGINT") << SIGINT << 130;
    QTest::newRow("SIGTERM") << SIGTERM << 0;
  }
  void endsAtASignalBeforeItIsReady() {
    QFETCH(int, signal);
    QFETCH(int, status);
    Serve serve(small(kModel, {"--tp", "2"}), "rank=1,step=load,kind=stall");  // never ready
    QVERIFY2(serve.waitErrors(" as TP2 PP1 DP1 on "), qPrintable(serve.errors()));
    serve.signal(signal);
    QCOMPARE(serve.exitStatus(), status);
  }

  void servesSeveralModels() {
    const QString embedding = QStringLiteral(HEADROOM_TEST_DATA "/models/embedding");
    Serve serve(small(kModel, {"--served-model-name", "one", "--manage-models", "--also",
                               embedding + " --tp 2 --max-model-len 48 --served-model-name two"}));
    const json ready = serve.ready();
    QVERIFY2(ready.is_object(), qPrintable(serve.errors()));
    QCOMPARE(ready["model"].get<std::string>(), std::string("one"));
    QCOMPARE(ready["models"].dump(), std::string(R"(["one","two"])"));
    auto ask = [&](const char* method, const std::string& path, const std::string& body = {}) {
      return request(serve.port(), method, path, body);
    };
    QCOMPARE(
        ask("POST", "/v1/completions", R"({"model": "one", "prompt": [1, 2, 3], "max_tokens": 4, "ignore_eos": true})").status,
        200);
    const RawResponse vector = ask("POST", "/v1/embeddings", R"({"model": "two", "input": [5, 6, 7]})");
    QCOMPARE(vector.status, 200);
    QCOMPARE(json::parse(vector.body)["data"][0]["embedding"].size(), 40u);
    const RawResponse text = ask("POST", "/v1/completions", R"({"model": "two", "prompt": [5, 6, 7]})");
    QCOMPARE(text.status, 400);
    QVERIFY(json::parse(text.body)["error"]["code"] == "no_generation");
    QVERIFY(json::parse(ask("POST", "/v1/embeddings", R"({"model": "one", "input": [5, 6, 7]})").body)["error"]["code"] ==
            "no_embeddings");
    // Both stand on the same device and stay below nine tenths of it together.
    int64_t planned = 0;
    const json state = json::parse(ask("GET", "/engine/state").body);
    for (const char* name : {"one", "two"}) {
      const json own = json::parse(ask("GET", std::string("/engine/state?model=") + name).body);
      for (const json& rank : own["ranks"])
        if (rank["device"] == "cpu:0")
          for (const auto& [part, bytes] : rank["planned"].items()) planned += bytes.is_null() ? 0 : bytes.get<int64_t>();
    }
    QVERIFY2(planned > 0 && planned <= (int64_t{64} << 20) * 9 / 10, qPrintable(QString::number(planned)));
    QCOMPARE(state["models"].size(), 2u);
    // The devices are full: a third is refused with numbers, and fits once one is gone.
    const std::string third =
        json{{"model", kModel.toStdString()}, {"name", "three"}, {"max_model_len", 64}, {"max_num_seqs", 4}, {"dtype", "float32"}}
            .dump();
    const RawResponse refused = ask("POST", "/engine/models", third);
    QCOMPARE(refused.status, 400);
    QVERIFY2(refused.body.find("other models take") != std::string::npos, refused.body.c_str());
    QCOMPARE(ask("DELETE", "/engine/models/two").status, 202);
    QTRY_COMPARE_WITH_TIMEOUT(ask("GET", "/engine/models/two").status, 404, kPatience);
    const RawResponse loaded = ask("POST", "/engine/models", third);
    QVERIFY2(loaded.status == 202, loaded.body.c_str());
    QTRY_COMPARE_WITH_TIMEOUT(
        ask("POST", "/v1/completions", R"({"model": "three", "prompt": [1, 2, 3], "max_tokens": 4, "ignore_eos": true})").status,
        200, kPatience);
    const RawResponse wrong = ask("POST", "/engine/models", R"({"model": "x", "max_model_length": 3})");
    QCOMPARE(wrong.status, 400);
    QVERIFY2(wrong.body.find("--max-model-length") != std::string::npos, wrong.body.c_str());
    serve.signal(SIGTERM);
    QCOMPARE(serve.exitStatus(), 0);
  }

  void refusesAlsoByName_data() {
    QTest::addColumn<QString>("also");
    QTest::addColumn<QString>("says");
    QTest::newRow("no model") << ""
                              << "MODEL";
    QTest::newRow("no such file") << "/nowhere/model"
                                  << "/nowhere/model";
    QTest::newRow("an option of the server") << kModel + " --port 3"
                                             << "--port";
    QTest::newRow("the same name") << kModel << "twice";
  }
  void refusesAlsoByName() {
    QFETCH(QString, also);
    QFETCH(QString, says);
    Serve serve(small(kModel, {"--also", also}));
    QCOMPARE(serve.exitStatus(), 2);
    const QString last = serve.errors().trimmed().section('\n', -1);
    QVERIFY2(last.startsWith("headroom-engine: ") && last.contains(says), qPrintable(last));
  }

  void namesAPortInUse() {
    Serve first(small());
    QVERIFY2(first.ready().is_object(), qPrintable(first.errors()));
    QStringList arguments = small();
    arguments[4] = QString::number(first.port());
    Serve second(arguments);
    QCOMPARE(second.exitStatus(), 2);
    const QString errors = second.errors();
    QVERIFY2(errors.contains(QString::number(first.port())) && errors.contains("--port 0"), qPrintable(errors));
    QCOMPARE(request(first.port(), "GET", "/health").status, 200);
  }
};

QTEST_GUILESS_MAIN(ServeCommandTest)
#include "serve_command_test.moc"
