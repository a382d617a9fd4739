// SPDX-License-Identifier: Apache-2.0
// Histograms and the text that Prometheus reads. Bucket bounds are those that vLLM documents.
#include "engine/server/metrics.h"

#include "engine/replica.h"

#include <QtTest>

using namespace headroom::engine;

class MetricsTest : public QObject {
  Q_OBJECT

 private slots:
  void countsValuesUpToAndIncludingABound() {
    Histogram histogram({1, 2});
    for (double value : {0.5, 1.0, 1.5, 2.0, 9.0}) histogram.observe(value);
    histogram.observe(3, 2);
    QCOMPARE(histogram.counts(), (std::vector<uint64_t>{2, 2, 3}));
    QCOMPARE(histogram.count(), 7u);
    QCOMPARE(histogram.sum(), 20.0);
  }

  // Without a subscriber nobody takes the figures, and an engine runs for months.
  void latenciesThatNobodyReadsAreBounded() {
    IntervalFigures figures;
    for (int i = 0; i < 1'000'000; ++i) IntervalFigures::note(figures.itlMs, i);
    QCOMPARE(figures.itlMs.size(), IntervalFigures::kMostLatencies);
    QCOMPARE(figures.itlMs.front(), 0.0);
    QVERIFY(figures.itlMs.capacity() < 100'000);
  }

  void hasTheDocumentedBuckets() {
    const MetricsSnapshot values = EngineMetrics(4096).snapshot();
    QCOMPARE(values.timeToFirstToken.bounds(),
             (std::vector<double>{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                  1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560}));
    QCOMPARE(values.interTokenLatency.bounds(), (std::vector<double>{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                                                     0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}));
    QCOMPARE(values.endToEndLatency.bounds(),
             (std::vector<double>{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}));
    QCOMPARE(values.promptLength.bounds(), (std::vector<double>{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000}));
    for (const char* reason : {"stop", "length", "abort", "error"}) QCOMPARE(values.requestSuccess.at(reason), 0u);
  }

  void writesPrometheusText() {
    EngineMetrics metrics(100);
    metrics.update([](MetricsSnapshot& values) {
      values.generationTokens = 12345678901;
      values.running = 3;
      values.kvCacheUsage = 0.25;
      values.drafts = 5, values.draftTokens = 20, values.acceptedTokens = 12;
      values.acceptedAt = {5, 7};
      values.requestSuccess["stop"] = 2;
      values.timeToFirstToken.observe(0.003);
      values.timeToFirstToken.observe(5000);
    });
    const std::string text = prometheusText(metrics.snapshot(), "a \"model\"\\\n");
    const std::string labels = "{model_name=\"a \\\"model\\\"\\\\\\n\"}";
    auto has = [&](const std::string& line) { return ("\n" + text).find("\n" + line + "\n") != std::string::npos; };
    QVERIFY2(has("# TYPE headroom:generation_tokens_total counter"), text.c_str());
    // https://docs.vllm.ai/en/latest/usage/metrics.html
    const std::string inside = labels.substr(0, labels.size() - 1);
    QVERIFY2(has("headroom:spec_decode_num_drafts_total" + labels + " 5"), text.c_str());
    QVERIFY2(has("headroom:spec_decode_num_draft_tokens_total" + labels + " 20"), text.c_str());
    QVERIFY2(has("headroom:spec_decode_num_accepted_tokens_total" + labels + " 12"), text.c_str());
    QVERIFY2(has("headroom:spec_decode_num_accepted_tokens_per_pos_total" + inside + ",position=\"1\"} 7"), text.c_str());
    QVERIFY2(has("headroom:generation_tokens_total" + labels + " 12345678901"), text.c_str());
    QVERIFY(has("headroom:num_requests_running" + labels + " 3"));
    QVERIFY(has("headroom:kv_cache_usage_perc" + labels + " 0.25"));
    QVERIFY(has("headroom:request_success_total{model_name=\"a \\\"model\\\"\\\\\\n\",finished_reason=\"stop\"} 2"));
    QVERIFY(has("headroom:time_to_first_token_seconds_bucket{model_name=\"a \\\"model\\\"\\\\\\n\",le=\"0.001\"} 0"));
    QVERIFY(has("headroom:time_to_first_token_seconds_bucket{model_name=\"a \\\"model\\\"\\\\\\n\",le=\"0.005\"} 1"));
    QVERIFY(has("headroom:time_to_first_token_seconds_bucket{model_name=\"a \\\"model\\\"\\\\\\n\",le=\"2560.0\"} 1"));
    QVERIFY(has("headroom:time_to_first_token_seconds_bucket{model_name=\"a \\\"model\\\"\\\\\\n\",le=\"+Inf\"} 2"));
    QVERIFY(has("headroom:time_to_first_token_seconds_count" + labels + " 2"));
    QVERIFY(text.back() == '\n');
  }
};

QTEST_APPLESS_MAIN(MetricsTest)
#include "metrics_test.moc"
