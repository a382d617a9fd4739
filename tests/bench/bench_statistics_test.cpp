// SPDX-License-Identifier: Apache-2.0
// Percentiles, summaries, goodput and reports of a load test, against numpy's results for the same numbers.
#include "app/engine/bench/bench_report.h"
#include "app/engine/bench/stream_reader.h"

#include <QtTest>

#include <cmath>

using namespace headroom::app;
using Json = nlohmann::ordered_json;

namespace {

RequestRecord completed(double sentAt, double ttft, std::vector<double> itl, int64_t outputTokens) {
  RequestRecord record;
  record.sentAt = sentAt;
  record.ttft = ttft;
  record.latency = ttft;
  for (const double gap : itl) record.latency += gap;
  record.itl = std::move(itl);
  record.promptTokens = 10;
  record.outputTokens = outputTokens;
  record.countedByServer = true;
  record.status = 200;
  return record;
}

}  // namespace

class BenchStatisticsTest : public QObject {
  Q_OBJECT

 private slots:
  // numpy.percentile(values, percent), numpy 1.26.
  void interpolatesPercentilesAsNumpyDoes_data() {
    QTest::addColumn<std::vector<double>>("values");
    QTest::addColumn<double>("percent");
    QTest::addColumn<double>("expected");
    const std::vector<double> four{1, 2, 3, 4}, seven{12.5, 13.0, 14.25, 20.0, 21.5, 90.0, 300.0};
    QTest::newRow("median of four") << four << 50.0 << 2.5;
    QTest::newRow("P90 of four") << four << 90.0 << 3.7;
    QTest::newRow("P99 of four") << four << 99.0 << 3.97;
    QTest::newRow("P0") << four << 0.0 << 1.0;
    QTest::newRow("P100") << four << 100.0 << 4.0;
    QTest::newRow("P25 of seven") << seven << 25.0 << 13.625;
    QTest::newRow("P90 of seven") << seven << 90.0 << 174.0;
    QTest::newRow("P99.9 of seven") << seven << 99.9 << 298.74;
    QTest::newRow("one value") << std::vector<double>{7} << 99.0 << 7.0;
  }
  void interpolatesPercentilesAsNumpyDoes() {
    QFETCH(std::vector<double>, values);
    QFETCH(double, percent);
    QFETCH(double, expected);
    QVERIFY2(std::abs(percentile(values, percent) - expected) < 1e-9,
             qPrintable(QString::number(percentile(values, percent), 'g', 17)));
  }

  void sumsUp() {
    // numpy: mean 5, std 2 (of the population), median 4.5.
    const auto summary = summarize({9, 2, 4, 4, 5, 7, 4, 5}, {90, 99});
    QVERIFY(summary);
    QCOMPARE(summary->mean, 5.0);
    QCOMPARE(summary->deviation, 2.0);
    QCOMPARE(summary->median, 4.5);
    QCOMPARE(summary->least, 2.0);
    QCOMPARE(summary->most, 9.0);
    QCOMPARE(summary->percentiles.size(), size_t(2));
    QVERIFY(std::abs(summary->percentiles[0].second - 7.6) < 1e-12);
    QVERIFY(std::abs(summary->percentiles[1].second - 8.86) < 1e-12);
    QVERIFY(!summarize({}, {50}));
  }

  void reportsARun() {
    std::vector<RequestRecord> records{completed(0, 0.5, {0.1, 0.1, 0.3}, 4), completed(0.1, 1.0, {0.5}, 2),
                                       completed(2, 0.25, {}, 1)};
    RequestRecord failed;
    failed.error = "HTTP 500: no";
    failed.status = 500;
    failed.latency = 0.1;
    records.push_back(failed);
    RequestRecord unsent;
    unsent.interrupted = true;
    records.push_back(unsent);
    Objectives objectives;
    objectives.ttftMs = 600;
    objectives.tpotMs = 200;
    const RunReport run = report(records, 4, objectives, {50});
    QCOMPARE(run.planned, size_t(5));
    QCOMPARE(run.completed, size_t(3));
    QCOMPARE(run.failed, size_t(1));
    QCOMPARE(run.interrupted, size_t(1));
    QCOMPARE(run.inputTokens, int64_t(30));
    QCOMPARE(run.outputTokens, int64_t(7));
    QCOMPARE(run.requestThroughput, 0.75);
    QCOMPARE(run.outputThroughput, 1.75);
    QCOMPARE(run.totalThroughput, 9.25);
    // The first keeps both limits, the second neither, the third has no time between tokens.
    QCOMPARE(run.goodput.value(), 0.5);
    QCOMPARE(run.peakConcurrency, int64_t(2));  // the failed one ended as the second began
    QCOMPARE(run.ttftMs->count, size_t(3));
    QCOMPARE(run.ttftMs->median, 500.0);
    QCOMPARE(run.tpotMs->count, size_t(2));
    QVERIFY(std::abs(run.tpotMs->mean - (500.0 / 3 + 500) / 2) < 1e-9);
    QCOMPARE(run.itlMs->count, size_t(4));
    QVERIFY(std::abs(run.itlMs->median - 200) < 1e-9);
    QVERIFY(std::abs(run.e2eMs->most - 1500) < 1e-9);
    QCOMPARE(run.errors.at("HTTP 500: no"), size_t(1));
    QCOMPARE(report({unsent}, 0, {}, {50}).outputThroughput, 0.0);
  }

  void writesReports() {
    BenchReport all;
    all.model = "m";
    all.endpoint = "http://h";
    all.backend = "openai";
    all.dataset = "random";
    all.detailed = true;
    for (const double rate : {2.0, double(INFINITY)}) {
      all.runs.push_back(report({completed(0, 0.5, {0.1}, 2)}, 1, {}, {50, 99.9}));
      all.runs.back().requestRate = rate;
    }
    const Json json = reportJson(all);
    QCOMPARE(json["schema"].get<std::string>(), std::string("headroom.bench/1"));
    QCOMPARE(json["runs"][0]["request_rate"].get<double>(), 2.0);
    QCOMPARE(json["runs"][1]["request_rate"].get<std::string>(), std::string("inf"));
    QCOMPARE(json["runs"][0]["mean_ttft_ms"].get<double>(), 500.0);
    QCOMPARE(json["runs"][0]["p99.9_e2el_ms"].get<double>(), 600.0);
    QVERIFY(json["runs"][0]["request_goodput"].is_null());
    QVERIFY(json["runs"][0]["max_concurrency"].is_null());
    QCOMPARE(json["runs"][0]["requests"][0]["itls_ms"].size(), size_t(1));
    const QStringList lines = QString::fromStdString(csvText(all)).trimmed().split('\n');
    QCOMPARE(lines.size(), 3);
    const QStringList columns = lines[0].split(','), values = lines[2].split(',');
    QCOMPARE(columns.size(), values.size());
    QCOMPARE(values[columns.indexOf("request_rate")], QString("inf"));
    QCOMPARE(values[columns.indexOf("median_itl_ms")], QString("100.0"));
    const QString table = QString::fromStdString(tableText(all));
    QVERIFY2(table.contains("mean TTFT (ms)") && table.contains("P99.9 E2E (ms)") && table.contains("All runs"),
             qPrintable(table));
    all.metrics = {"ttft"};
    QVERIFY(!reportJson(all)["runs"][0].contains("mean_itl_ms"));
  }

  void readsStreams() {
    StreamReader reader;
    RequestRecord record;
    record.promptTokens = 3;
    // Cut in the middle of an event, a role without text first, a comment, CRLF.
    reader.push(
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n: ping\n\ndata: "
        "{\"choices\":[{\"delta\":{\"cont",
        0.5);
    reader.push("ent\":\"a\"}}]}\r\n\r\n", 1.0);
    reader.push("data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"b\"}}]}\n\n", 1.25);
    reader.push(
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: "
        "{\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
        2.0);
    QVERIFY(reader.isOver());
    reader.finish(record);
    QCOMPARE(record.ttft.value(), 1.0);
    QCOMPARE(record.itl, std::vector<double>{0.25});
    QCOMPARE(record.latency, 2.0);
    QCOMPARE(record.tpot().value(), 0.5);
    QCOMPARE(record.promptTokens, int64_t(9));
    QCOMPARE(record.outputTokens, int64_t(3));
    QVERIFY(record.countedByServer);
    QCOMPARE(record.text, std::string("ab"));
    QVERIFY(record.completed());
  }
  void tellsBrokenStreams() {
    auto errorOf = [](const char* text) {
      StreamReader reader;
      reader.push(text, 1);
      RequestRecord record;
      reader.finish(record);
      return record.error;
    };
    QCOMPARE(errorOf("data: {\"choices\":[{\"text\":\"a\"}]}\n\n"), std::string("the stream ended before its last event"));
    QCOMPARE(errorOf("data: {\"error\":{\"message\":\"out of blocks\"}}\n\ndata: [DONE]\n\n"), std::string("out of blocks"));
    QCOMPARE(errorOf("data: nonsense\n\ndata: [DONE]\n\n"), std::string("an event of the stream is no JSON object"));
    QCOMPARE(errorMessage("{\"detail\":\"Not Found\"}"), std::string("Not Found"));
    QCOMPARE(errorMessage("<html>"), std::string("<html>"));
  }
};

QTEST_APPLESS_MAIN(BenchStatisticsTest)
#include "bench_statistics_test.moc"
