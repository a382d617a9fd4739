// SPDX-License-Identifier: Apache-2.0
// The wire types of /engine/state and /engine/events: their JSON as documented, both ways, whatever a peer sends.
#include "core/protocol/engine_api.h"

#include <QtTest>

using namespace headroom;
using nlohmann::json;

namespace {

EngineState sampleState() {
  EngineState state;
  state.phase = EnginePhase::Ready;
  state.model = "SmolLM2-135M-Instruct";
  state.tp = 3;
  state.pp = 2;
  RankState rank;
  rank.rank = 4;
  rank.stage = 1;
  rank.tpRank = 1;
  rank.device = "cpu:4";
  rank.layers = {15, 30};
  rank.planned = {1000, 2000, 300, 0};
  rank.allocated = {1000, std::nullopt, 300, 0};
  rank.deviceUsedBytes = 3300;
  rank.loadBytesDone = 999;
  rank.loadBytesTotal = 1000;
  state.ranks = {rank};
  state.kvBlocksTotal = 100;
  state.kvBlocksFree = 40;
  state.requestsRunning = 2;
  state.requestsWaiting = 1;
  state.requestsFinished = 7;
  return state;
}

}  // namespace

class EngineApiTest : public QObject {
  Q_OBJECT

 private slots:
  void writesTheDocumentedState() {
    const json expected = json::parse(R"({
      "schema": "headroom.engine/1", "phase": "ready", "error": null, "model": "SmolLM2-135M-Instruct", "layout": {"tp": 3, "pp": 2, "dp": 1},
      "ranks": [{"rank": 4, "replica": 0, "stage": 1, "tp_rank": 1, "device": "cpu:4", "layers": [15, 30],
        "planned": {"weights_bytes": 1000, "kv_cache_bytes": 2000, "activation_bytes": 300, "graph_bytes": 0},
        "allocated": {"weights_bytes": 1000, "kv_cache_bytes": null, "activation_bytes": 300, "graph_bytes": 0},
        "device_memory": {"used_bytes": 3300, "total_bytes": null}, "load": {"bytes_done": 999, "bytes_total": 1000}}],
      "kv_blocks": {"total": 100, "free": 40, "block_tokens": 16}, "requests": {"running": 2, "waiting": 1, "finished": 7}})");
    const json found = toJson(sampleState());
    QVERIFY2(found == expected, json::diff(found, expected).dump().c_str());
  }

  void readsWhatItWrites() {
    const auto read = engineStateFromJson(toJson(sampleState()));
    QVERIFY(read.has_value());
    QCOMPARE(toJson(*read), toJson(sampleState()));
    QVERIFY(!read->ranks[0].allocated.kvCache);
    QVERIFY(!read->ranks[0].deviceTotalBytes);
  }

  void keepsTheReasonOfAFailure() {
    EngineState state = sampleState();
    state.phase = EnginePhase::Failed;
    state.error = "rank 2: out of memory";
    const auto read = engineStateFromJson(toJson(state));
    QVERIFY(read.has_value());
    QCOMPARE(read->phase, EnginePhase::Failed);
    QCOMPARE(read->error, state.error);
  }

  void refusesWrongStates_data() {
    QTest::addColumn<QByteArray>("patch");
    QTest::addColumn<QByteArray>("where");
    QTest::newRow("schema") << QByteArray(R"([{"op": "replace", "path": "/schema", "value": "other/2"}])")
                            << QByteArray("schema");
    QTest::newRow("no schema") << QByteArray(R"([{"op": "remove", "path": "/schema"}])") << QByteArray("schema");
    QTest::newRow("phase") << QByteArray(R"([{"op": "replace", "path": "/phase", "value": "sleeping"}])") << QByteArray("phase");
    QTest::newRow("layout") << QByteArray(R"([{"op": "replace", "path": "/layout", "value": 3}])") << QByteArray("layout");
    QTest::newRow("ranks") << QByteArray(R"([{"op": "replace", "path": "/ranks", "value": {}}])") << QByteArray("ranks");
    QTest::newRow("layers") << QByteArray(R"([{"op": "replace", "path": "/ranks/0/layers", "value": [1]}])")
                            << QByteArray("ranks/0/layers");
    QTest::newRow("bytes") << QByteArray(R"([{"op": "replace", "path": "/ranks/0/planned/weights_bytes", "value": "many"}])")
                           << QByteArray("ranks/0/planned/weights_bytes");
    QTest::newRow("fraction") << QByteArray(R"([{"op": "replace", "path": "/kv_blocks/total", "value": 1.5}])")
                              << QByteArray("kv_blocks/total");
    QTest::newRow("too large") << QByteArray(R"([{"op": "replace", "path": "/layout/tp", "value": 99999999999}])")
                               << QByteArray("layout/tp");
    QTest::newRow("not an object") << QByteArray(R"([{"op": "replace", "path": "", "value": [1, 2]}])")
                                   << QByteArray("engine state");
  }
  void refusesWrongStates() {
    QFETCH(QByteArray, patch);
    QFETCH(QByteArray, where);
    const auto read = engineStateFromJson(toJson(sampleState()).patch(json::parse(patch.toStdString())));
    QVERIFY(!read.has_value());
    QVERIFY2(read.error().message().find(where.toStdString()) != std::string::npos, read.error().message().c_str());
  }

  void metricsSampleBothWays() {
    MetricsSample sample;
    sample.time = 1750000000.25;
    sample.intervalSeconds = 0.5;
    sample.generatedTokensPerSecond = 81.5;
    sample.promptTokensPerSecond = 1200;
    sample.ttftMs = {12.5, 90};
    sample.itlMs = {11};
    sample.kvBlocksTotal = 100;
    sample.kvBlocksFree = 50;
    sample.requestsRunning = 2;
    sample.requestsFinished = 9;
    sample.deviceUsedBytes = {1000, std::nullopt};
    const auto read = metricsSampleFromJson(toJson(sample));
    QVERIFY(read.has_value());
    QCOMPARE(toJson(*read), toJson(sample));
    QCOMPARE(read->ttftMs, sample.ttftMs);
    QCOMPARE(read->time, sample.time);
    QVERIFY(read->deviceUsedBytes[1] == std::nullopt);
  }

  void neverWritesWhatJsonCannotSay() {
    MetricsSample sample;
    sample.generatedTokensPerSecond = std::numeric_limits<double>::infinity();
    sample.ttftMs = {std::numeric_limits<double>::quiet_NaN(), 5};
    const json value = json::parse(toJson(sample).dump());
    QVERIFY(value["generated_tokens_per_s"].is_null());
    QCOMPARE(value["ttft_ms"].dump(), std::string("[5.0]"));
    QVERIFY(metricsSampleFromJson(value).has_value());
  }

  void refusesWrongSamples() {
    for (const char* text : {"null", "[]", "{}", R"({"schema": "headroom.engine/1", "time": "now"})"})
      QVERIFY(!metricsSampleFromJson(json::parse(text)).has_value());
  }
};

QTEST_APPLESS_MAIN(EngineApiTest)
#include "engine_api_test.moc"
