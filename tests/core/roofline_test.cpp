// SPDX-License-Identifier: Apache-2.0
// Predicted speed: published runs and estimates of several engines and cards within the band that is shown, and what load, a full
// cache and an older engine's host do to it.
#include "core/performance/roofline.h"
#include "core/launch/planner.h"

#include <QtTest>

#include <cmath>

using namespace headroom;

namespace {

Prediction predictionOf(const char* model, const char* gpus, const char* engine, int tp, int64_t clients, int64_t input,
                        int64_t output) {
  const auto source = openModel(model);
  if (!source) qFatal("%s", source.error().message().c_str());
  PlanOptions options;
  options.engine = *parseEngine(engine);
  options.concurrency = clients;
  options.inputLen = input;
  options.outputLen = output;
  const auto report = planModel(*source, *parseMachine(gpus), options);
  if (!report) qFatal("%s", report.error().message().c_str());
  const LayoutPlan* plan = report->find(tp, 1, 1);
  if (!plan) qFatal("no such layout");
  return plan->predicted;
}

}  // namespace

class RooflineTest : public QObject {
  Q_OBJECT
 private slots:
  // "run": a served load, mean time between tokens (InferenceX and NVIDIA's runs, as aiconfigurator 0.12 lists them). "sum": that
  // program's sum of timed kernels, without host time. Prompt times are of one prompt alone.
  void published_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("gpus");
    QTest::addColumn<QString>("engine");
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("clients");
    QTest::addColumn<int>("input");
    QTest::addColumn<int>("output");
    QTest::addColumn<double>("itlMs");
    QTest::addColumn<double>("promptMs");  // 0: none published
    const auto row = [](const char* kind, const char* model, const char* gpus, const char* engine, int tp, int clients, int input,
                        int output, double itlMs, double promptMs) {
      QTest::addRow("%s, %s on %s, %s, %d at once", kind, model, gpus, engine, clients)
          << QString(model) << QString(gpus) << QString(engine) << tp << clients << input << output << itlMs << promptMs;
    };
    row("run", "Qwen/Qwen3-32B", "2xH100-80GB-SXM", "vllm@0.12.0", 2, 8, 4096, 1024, 17.87, 0);
    row("run", "Qwen/Qwen3-32B", "4xH100-80GB-SXM", "vllm@0.12.0", 4, 64, 1024, 512, 18.52, 0);
    row("run", "Qwen/Qwen3-32B", "8xH100-80GB-SXM", "vllm@0.12.0", 8, 32, 4096, 512, 15.32, 0);
    row("sum", "Qwen/Qwen2.5-72B", "8xA100-80GB-SXM", "vllm@0.14.0", 8, 1, 8192, 500, 18.43, 846.7);
    row("sum", "Qwen/Qwen2.5-7B", "2xL40S-48GB", "vllm@0.24.0", 2, 8, 8192, 500, 21.02, 505.9);
    row("sum", "Qwen/Qwen3-32B", "1xB200-180GB-SXM", "sglang", 1, 1, 512, 500, 13.04, 29.4);
    row("sum", "Qwen/Qwen2.5-14B", "8xRTX-PRO-6000-96GB", "tensorrt-llm", 8, 1, 512, 500, 5.99, 51.5);
    row("sum", "Qwen/Qwen3-30B-A3B", "1xH100-80GB-SXM", "vllm@0.24.0", 1, 8, 8192, 500, 14.90, 153.2);
    row("sum", "mistralai/Mixtral-8x22B-v0.1", "8xH100-80GB-SXM", "vllm@0.24.0", 8, 128, 8192, 500, 81.19, 219.1);
    row("sum", "deepseek-ai/DeepSeek-V3", "8xB200-180GB-SXM", "sglang", 8, 32, 8192, 500, 27.09, 180.2);
    row("sum", "Qwen/Qwen3-8B-FP8", "8xH100-80GB-SXM", "sglang", 8, 128, 8192, 500, 22.19, 52.5);
  }
  void published() {
    QFETCH(QString, model);
    QFETCH(QString, gpus);
    QFETCH(QString, engine);
    QFETCH(int, tp);
    QFETCH(int, clients);
    QFETCH(int, input);
    QFETCH(int, output);
    QFETCH(double, itlMs);
    QFETCH(double, promptMs);
    const QByteArray name = model.toUtf8(), machine = gpus.toUtf8(), server = engine.toUtf8();
    const Prediction loaded = predictionOf(name, machine, server, tp, clients, input, output);
    QVERIFY(loaded.itlMs && loaded.itlError);
    const double off = *loaded.itlMs / itlMs - 1;
    qInfo("time between tokens %.2f ms, published %.2f (%+.1f%%, band %.0f%%)", *loaded.itlMs, itlMs, 100 * off,
          100 * *loaded.itlError);
    QVERIFY(std::abs(off) <= *loaded.itlError);
    if (promptMs == 0) return;
    const Prediction alone = predictionOf(name, machine, server, tp, 1, input, output);
    const double late = *alone.ttftMs / promptMs - 1;
    qInfo("one prompt %.1f ms, published %.1f (%+.1f%%, band %.0f%%)", *alone.ttftMs, promptMs, 100 * late,
          100 * *alone.ttftError);
    QVERIFY(std::abs(late) <= *alone.ttftError);
  }

  // Clients for which the cache has no room wait for a place; the throughput is that of those that run.
  void aFullCacheMakesClientsWait() {
    // 64 GB of weights on two cards of 48 GB: the cache holds seven or eight requests of 8192 tokens.
    const auto at = [](int64_t clients) {
      return predictionOf("Qwen/Qwen2.5-32B", "2xL40S-48GB", "vllm@0.24.0", 2, clients, 8192, 512);
    };
    const Prediction few = at(4), many = at(64), more = at(128);
    QVERIFY(*many.throughputTokensPerSecond > *few.throughputTokensPerSecond);
    QVERIFY(std::abs(*more.throughputTokensPerSecond / *many.throughputTokensPerSecond - 1) < 1e-9);
    QCOMPARE(*more.itlMs, *many.itlMs);
    // Little's law: clients = rate x time, with the wait in it.
    for (const auto& [clients, prediction] : {std::pair{64.0, many}, std::pair{128.0, more}}) {
      const double seconds = (*prediction.ttftMs + *prediction.itlMs * 511) / 1e3,
                   rate = *prediction.throughputTokensPerSecond / 512;
      QVERIFY2(std::abs(rate * seconds / clients - 1) < 1e-6, qPrintable(QString::number(rate * seconds)));
    }
  }

  // Where the cache does not hold one request, there is no speed to tell.
  void aCacheThatHoldsNoRequestHasNoSpeed() {
    const Prediction none = predictionOf("meta-llama/Llama-2-7b-hf", "1xRTX 4080", "vllm@0.24.0", 1, 4, 3000, 512);
    QVERIFY(!none.itlMs && !none.throughputTokensPerSecond && !none.ttftMs);
    QCOMPARE(none.source, std::string("unknown: the KV cache does not hold one request"));
  }

  // Until 0.14 the host of vLLM works between two steps, longer with more requests.
  void anOlderHostStandsBetweenSteps() {
    const auto itl = [](const char* engine, int64_t clients) {
      return *predictionOf("Qwen/Qwen2.5-7B", "1xH100-80GB-SXM", engine, 1, clients, 128, 128).itlMs;
    };
    const double alone = itl("vllm@0.12.0", 1) - itl("vllm@0.14.0", 1), many = itl("vllm@0.12.0", 64) - itl("vllm@0.14.0", 64);
    QVERIFY(alone > 1 && alone < 2);
    QVERIFY(many > 2 * alone && many < 4 * alone);
  }

  // More clients: each token takes longer, all together make more, and a prompt waits longer.
  void loadIsMonotonic() {
    Prediction last;
    for (const int64_t clients : {1, 2, 4, 8, 16, 32, 64}) {
      const Prediction now = predictionOf("Qwen/Qwen2.5-7B", "1xH100-80GB-SXM", "vllm", 1, clients, 1024, 256);
      if (last.itlMs) {
        QVERIFY(*now.itlMs > *last.itlMs && *now.ttftMs > *last.ttftMs);
        QVERIFY(*now.throughputTokensPerSecond > *last.throughputTokensPerSecond);
      }
      last = now;
    }
  }
};

QTEST_GUILESS_MAIN(RooflineTest)
#include "roofline_test.moc"
