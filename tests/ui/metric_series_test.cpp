// SPDX-License-Identifier: GPL-3.0-or-later
// The ring of points and the history that feeds the charts.
#include "ui/models/metric_series.h"
#include "tests/ui/support/fake_engine.h"
#include "ui/models/engine_history.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::ui;

class MetricSeriesTest : public QObject {
  Q_OBJECT

 private slots:
  void keepsTheNewest() {
    MetricSeries series(3);
    for (int time = 1; time <= 5; ++time) series.add({double(time), time * 10.0});
    QCOMPARE(series.size(), std::size_t(3));
    QCOMPARE(series[0].time, 3.0);
    QCOMPARE(series.back().value, std::optional(50.0));
  }

  void findsAWindow_data() {
    QTest::addColumn<double>("from");
    QTest::addColumn<double>("to");
    QTest::addColumn<bool>("neighbours");
    QTest::addColumn<QList<double>>("times");
    QTest::newRow("inside") << 4.0 << 5.0 << false << QList<double>{4, 5};
    QTest::newRow("with neighbours") << 4.0 << 5.0 << true << QList<double>{3, 4, 5, 6};
    QTest::newRow("between points") << 4.2 << 4.8 << true << QList<double>{4, 5};
    QTest::newRow("all") << 0.0 << 100.0 << true << QList<double>{3, 4, 5, 6, 7};
    QTest::newRow("before") << 0.0 << 1.0 << false << QList<double>{};
    QTest::newRow("after") << 50.0 << 60.0 << false << QList<double>{};
  }

  void findsAWindow() {
    QFETCH(double, from);
    QFETCH(double, to);
    QFETCH(bool, neighbours);
    MetricSeries series(5);
    for (int time = 1; time <= 7; ++time) series.add({double(time), 0.0});  // wrapped round: 3 … 7 are left
    QList<double> times;
    for (const MetricPoint& point : series.between(from, to, neighbours)) times.append(point.time);
    QTEST(times, "times");
  }

  void survivesAClockThatGoesBack() {
    MetricSeries series(5);
    series.add({100, 1.0});
    series.add({99.5, 2.0});  // a little late: dropped
    QCOMPARE(series.size(), std::size_t(1));
    series.add({50, 3.0});  // set back: starts anew
    QCOMPARE(series.size(), std::size_t(1));
    QCOMPARE(series.back().time, 50.0);
  }

  void splitsMemoryByDevice() {
    EngineHistory history;
    history.applyState(test::fakeState(EnginePhase::Ready, 1));
    history.addSample(test::fakeSample(10));
    QCOMPARE(history.devices().size(), std::size_t(2));
    const DeviceHistory& device = history.devices()[1];
    QCOMPARE(device.plannedBytes, std::optional(720.0 * test::kMiB));
    QCOMPARE(device.totalBytes, std::optional(1024.0 * test::kMiB));
    QCOMPARE(device.allocatedBytes(), std::optional(720.0 * test::kMiB));
    const MemoryPoint point = device.memory.back();
    QCOMPARE(point.weights, std::optional(300.0 * test::kMiB));
    QCOMPARE(point.kvCache, std::optional(400.0 * test::kMiB));
    QCOMPARE(point.activations, std::optional(20.0 * test::kMiB));
    QCOMPARE(point.other, std::optional(10.0 * test::kMiB));  // 730 used, 720 ours
  }

  void unknownStaysUnknown() {
    EngineHistory history;
    EngineState state = test::fakeState(EnginePhase::Loading, 0.5);  // nothing allocated is known yet
    state.ranks[0].planned.kvCache.reset();
    history.applyState(state);
    MetricsSample sample = test::fakeSample(10);
    sample.deviceUsedBytes = {std::nullopt};  // and rank 1 is missing
    history.addSample(sample);
    QVERIFY(!history.devices()[0].plannedBytes);
    QVERIFY(!history.devices()[0].allocatedBytes());
    for (const DeviceHistory& device : history.devices()) {
      QVERIFY(!device.memory.back().weights);
      QVERIFY(!device.memory.back().other);
    }
  }

  void ranksOnOneGpuShareAChart() {
    EngineHistory history;
    EngineState state = test::fakeState(EnginePhase::Ready, 1);
    for (RankState& rank : state.ranks) rank.device = "cuda:0";
    history.applyState(state);
    MetricsSample sample = test::fakeSample(10);
    sample.deviceUsedBytes = {1500 * test::kMiB, 1500 * test::kMiB};
    history.addSample(sample);
    QCOMPARE(history.devices().size(), std::size_t(1));
    QCOMPARE(history.devices()[0].memory.back().weights, std::optional(600.0 * test::kMiB));
    QCOMPARE(history.devices()[0].memory.back().other, std::optional(60.0 * test::kMiB));
  }

  void aNewStateKeepsThePastOfTheSameDevices() {
    EngineHistory history;
    history.applyState(test::fakeState(EnginePhase::Ready, 1));
    history.addSample(test::fakeSample(10));
    history.applyState(test::fakeState(EnginePhase::Ready, 1));
    QCOMPARE(history.devices()[0].memory.size(), std::size_t(1));
    EngineState other = test::fakeState(EnginePhase::Ready, 1);
    other.ranks[0].device = "cuda:3";
    history.applyState(other);
    QCOMPARE(history.devices()[0].memory.size(), std::size_t(0));
    QCOMPARE(history.devices()[1].memory.size(), std::size_t(1));
  }

  void gapsHaveNoValues() {
    EngineHistory history;
    history.applyState(test::fakeState(EnginePhase::Ready, 1));
    history.addSample(test::fakeSample(10));
    history.addGap(11);
    QVERIFY(!history.throughput().back().generated);
    QVERIFY(!history.devices()[0].memory.back().weights);
    QVERIFY(!history.lastTime());
    QCOMPARE(history.ttft().size(), std::size_t(1));
  }
};

QTEST_GUILESS_MAIN(MetricSeriesTest)
#include "metric_series_test.moc"
