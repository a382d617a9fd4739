// SPDX-License-Identifier: GPL-3.0-or-later
// The arithmetic of the charts, what they are made of, and that what they are given is what they draw.
#include "tests/ui/support/fake_engine.h"
#include "ui/charts/chart_geometry.h"
#include "ui/charts/chart_table_dialog.h"
#include "ui/charts/engine_charts.h"
#include "ui/charts/time_chart.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QAreaSeries>
#include <QChart>
#include <QChartView>
#include <QClipboard>
#include <QLineSeries>
#include <QRegularExpression>
#include <QValueAxis>
#include <QtTest>
#include <cmath>
#include <tuple>
#include <vector>

using namespace headroom;
using namespace headroom::ui;

namespace {
constexpr double kMib = 1024.0 * 1024.0, kGib = 1024.0 * kMib;
const std::optional<double> kGap;
}  // namespace

class ChartsTest : public QObject {
  Q_OBJECT

  static EngineHistory history(int samples, double step = 0.5) {
    EngineHistory history;
    history.applyState(test::fakeState(EnginePhase::Ready, 1));
    for (int sample = 0; sample < samples; ++sample) history.addSample(test::fakeSample(1000 + sample * step));
    return history;
  }

 private slots:
  void initTestCase() { QLocale::setDefault(QLocale::c()); }
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support propagateSizeHints)")));
  }

  void ticks_data() {
    QTest::addColumn<double>("max");
    QTest::addColumn<int>("steps");
    QTest::addColumn<int>("unit");
    QTest::addColumn<QStringList>("labels");
    const int bytes = int(ValueUnit::Bytes), tokens = int(ValueUnit::TokensPerSecond), ms = int(ValueUnit::Milliseconds);
    QTest::newRow("40 tok/s") << 40.0 << 5 << tokens << QStringList{"0", "10", "20", "30", "40"};
    QTest::newRow("41 tok/s") << 41.0 << 5 << tokens << QStringList{"0", "10", "20", "30", "40", "50"};
    QTest::newRow("0.7 tok/s") << 0.7 << 4 << tokens << QStringList{"0.0", "0.2", "0.4", "0.6", "0.8"};
    QTest::newRow("4 GiB") << 4 * kGib << 4 << bytes << QStringList{"0 GiB", "1 GiB", "2 GiB", "3 GiB", "4 GiB"};
    QTest::newRow("80 GiB in 4") << 80 * kGib << 4 << bytes << QStringList{"0 GiB", "20 GiB", "40 GiB", "60 GiB", "80 GiB"};
    QTest::newRow("1.5 GiB") << 1.5 * kGib << 4 << bytes << QStringList{"0.0 GiB", "0.5 GiB", "1.0 GiB", "1.5 GiB"};
    QTest::newRow("700 MiB") << 700 * kMib << 4 << bytes << QStringList{"0 MiB", "256 MiB", "512 MiB", "768 MiB"};
    QTest::newRow("300 ms") << 300.0 << 3 << ms << QStringList{"0 ms", "100 ms", "200 ms", "300 ms"};
    QTest::newRow("7 s") << 7000.0 << 4 << ms << QStringList{"0 s", "2 s", "4 s", "6 s", "8 s"};
    QTest::newRow("nothing measured") << 0.0 << 2 << ms << QStringList{"0 ms", "50 ms", "100 ms"};
    QTest::newRow("not a number") << std::nan("") << 2 << tokens << QStringList{"0", "5", "10"};
  }

  void ticks() {
    QFETCH(double, max);
    QFETCH(int, steps);
    QFETCH(int, unit);
    const AxisTicks ticks = axisTicks(max, steps, ValueUnit(unit));
    QStringList labels;
    for (int step = 0; step <= ticks.steps; ++step) labels.append(tickLabel(step * ticks.step, ticks, ValueUnit(unit)));
    QTEST(labels, "labels");
  }

  void timeTicks_data() {
    QTest::addColumn<int>("window");
    QTest::addColumn<int>("steps");
    QTest::addColumn<QStringList>("labels");
    QTest::newRow("a minute") << 60 << 6 << QStringList{"−60 s", "−50 s", "−40 s", "−30 s", "−20 s", "−10 s", "now"};
    QTest::newRow("five minutes") << 300 << 5 << QStringList{"−5 min", "−4 min", "−3 min", "−2 min", "−1 min", "now"};
    QTest::newRow("a quarter") << 900 << 5 << QStringList{"−15 min", "−12 min", "−9 min", "−6 min", "−3 min", "now"};
    QTest::newRow("an hour in a narrow window") << 3600 << 2 << QStringList{"−60 min", "−30 min", "now"};
    QTest::newRow("no room") << 300 << 0 << QStringList{"−5 min", "now"};
  }

  void timeTicks() {
    QFETCH(int, window);
    QFETCH(int, steps);
    QStringList labels;
    for (int ago : headroom::ui::timeTicks(window, steps)) labels.append(timeTickLabel(ago, window));
    QTEST(labels, "labels");
  }

  void cutsAtGaps() {
    const std::vector<MetricPoint> points{{10, 1.0}, {11, 2.0}, {12, kGap}, {13, 3.0}, {20, 4.0}, {21, 5.0}};
    const auto parts = segments(points, 21, 3);
    QCOMPARE(parts.size(), std::size_t(3));
    QCOMPARE(parts[0], (std::vector<QPointF>{{-11, 1}, {-10, 2}}));
    QCOMPARE(parts[1], (std::vector<QPointF>{{-8, 3}}));
    QCOMPARE(parts[2], (std::vector<QPointF>{{-1, 4}, {0, 5}}));
    QVERIFY(segments({{1, kGap}, {2, std::nan("")}}, 0, 3).empty());
  }

  void downSamplingKeepsPeaksAndGaps() {
    std::vector<MetricPoint> points;
    for (int index = 0; index < 10000; ++index) points.push_back({double(index), std::sin(index * 0.01)});
    points[1234].value = 50;
    points[7654].value = -50;
    points[5000].value.reset();
    const auto kept = downSample(points, 0, 10000, 100);
    QVERIFY2(kept.size() <= 310 && kept.size() >= 100, qPrintable(QString::number(kept.size())));
    QVERIFY(std::find(kept.begin(), kept.end(), MetricPoint{1234, 50.0}) != kept.end());
    QVERIFY(std::find(kept.begin(), kept.end(), MetricPoint{7654, -50.0}) != kept.end());
    QVERIFY(std::find(kept.begin(), kept.end(), MetricPoint{5000, kGap}) != kept.end());
    QVERIFY(std::is_sorted(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.time < b.time; }));
    const std::vector<MetricPoint> few(points.begin(), points.begin() + 50);
    QCOMPARE(downSample(few, 0, 50, 100), few);
  }

  void aMovingWindowPicksTheSamePoints() {
    std::vector<MetricPoint> points;
    for (int index = 0; index < 4000; ++index) points.push_back({index * 0.5, std::sin(index * 0.7)});
    const auto first = downSample(points, 0, 1000, 100), second = downSample(points, 3, 1003, 100);
    QCOMPARE(first, second);
  }

  void downSampledRowsKeepTheFullest() {
    std::vector<double> times;
    std::vector<std::optional<double>> sums;
    for (int index = 0; index < 1000; ++index) {
      times.push_back(index);
      sums.push_back(index == 555 ? std::optional(9.0) : index == 700 ? kGap : std::optional(1.0));
    }
    const auto kept = downSampleRows(times, sums, 0, 1000, 50);
    QVERIFY(kept.size() <= 52);
    QVERIFY(std::find(kept.begin(), kept.end(), 555u) != kept.end());
    QVERIFY(std::find(kept.begin(), kept.end(), 700u) != kept.end());
    QVERIFY(std::is_sorted(kept.begin(), kept.end()));
  }

  // Values of numpy.percentile(…, 50) and (…, 95) with its default method.
  void percentiles() {
    QVERIFY(!percentile({}, 0.5));
    QCOMPARE(*percentile({7}, 0.95), 7.0);
    QCOMPARE(*percentile({15, 20, 35, 40, 50}, 0.5), 35.0);
    QCOMPARE(*percentile({50, 15, 40, 20, 35}, 0.95), 48.0);
    QCOMPARE(*percentile({4, 1, 3, 2}, 0.5), 2.5);
    QCOMPARE(*percentile({1, 2, 3}, 1.0), 3.0);
    QCOMPARE(*percentile({1, 2, 3}, 0.0), 1.0);
  }

  void rollingPercentileLooksBackAndHasGaps() {
    const std::vector<MetricPoint> points{{10, 100.0}, {11, 300.0}, {50, 500.0}};
    const auto line = rollingPercentile(points, 0, 60, 60, 5, 0.5);
    const auto at = [&](double time) {
      for (const MetricPoint& point : line)
        if (point.time == time) return point.value;
      return std::optional(-1.0);
    };
    QCOMPARE(at(9), kGap);
    QCOMPARE(at(10), std::optional(100.0));
    QCOMPARE(at(12), std::optional(200.0));
    QCOMPARE(at(15), std::optional(300.0));
    QCOMPARE(at(30), kGap);
    QCOMPARE(at(50), std::optional(500.0));
  }

  void memoryShowsPartsPlanAndDevice() {
    const EngineHistory past = history(20);
    const ChartContent content = memoryContent(past.devices()[0], {1000, 1010, 240}, ColorScheme::Light);
    QCOMPARE(content.bands.size(), std::size_t(4));
    QCOMPARE(content.bands[0].points.back().value, std::optional(300 * kMib));
    QCOMPARE(content.bands[2].points.back().value, std::optional(400 * kMib));
    QCOMPARE(content.bands[3].points.back().value, std::optional(10 * kMib));
    QCOMPARE(content.levels.size(), std::size_t(2));
    QVERIFY(content.levels[0].dashed && !content.levels[1].dashed);
    QCOMPARE(content.levels[0].value, 720 * kMib);
    QCOMPARE(content.levels[1].value, kGib);
    QVERIFY(content.levels[1].scales);
    QCOMPARE(pointCount(content), 80);
    QVERIFY(content.bands[0].color != content.bands[2].color);
    QVERIFY(memoryContent(past.devices()[0], {1000, 1010, 240}, ColorScheme::Dark).bands[0].color != content.bands[0].color);
  }

  void aHugeDeviceDoesNotPressTheBandsFlat() {
    EngineState state = test::fakeState(EnginePhase::Ready, 1);
    state.ranks[0].deviceTotalBytes = 64 * 1024 * test::kMiB;
    EngineHistory past;
    past.applyState(state);
    past.addSample(test::fakeSample(1000));
    QVERIFY(!memoryContent(past.devices()[0], {990, 1000, 240}, ColorScheme::Light).levels[1].scales);
  }

  void throughputAndTtftShowPredictions() {
    const EngineHistory past = history(20);
    const ChartContent rate = throughputContent(past, {1000, 1010, 240}, ColorScheme::Light, 45.0, std::nullopt);
    QCOMPARE(rate.lines.size(), std::size_t(2));
    QCOMPARE(rate.levels.size(), std::size_t(1));
    QCOMPARE(rate.levels[0].value, 45.0);
    QCOMPARE(pointCount(rate), 40);
    const ChartContent first = ttftContent(past, {1000, 1010, 240}, ColorScheme::Light, 250.0);
    QCOMPARE(first.dots[0].points.size(), std::size_t(20));
    QCOMPARE(first.levels[0].value, 250.0);
    QCOMPARE(*ttftPercentile(past, {1000, 1010, 240}, 0.95), 300.0);
    QVERIFY(!ttftPercentile(past, {2000, 2010, 240}, 0.95));
  }

  // The band of a prediction's kind is shaded around its line, on the scale of the line, and told by the legend.
  void predictionsHaveTheirBands() {
    const EngineHistory past = history(20);
    const ChartContent rate =
        throughputContent(past, {1000, 1010, 240}, ColorScheme::Light, PredictedFigure(45.0, 0.2), PredictedFigure(4000.0, 0.5));
    QCOMPARE(rate.levels.size(), std::size_t(2));
    QCOMPARE(rate.levels[0].least(), 36.0);
    QCOMPARE(rate.levels[0].most(), 54.0);
    QVERIFY(rate.levels[1].rightAxis && rate.levels[1].error == 0.5);
    TimeChart chart;
    chart.resize(500, 260);
    chart.setContent(rate);
    chart.show();
    const auto shaded = [&chart] {
      std::vector<std::tuple<double, double, bool>> bands;
      for (QAbstractSeries* series : chart.findChild<QChartView*>()->chart()->series()) {
        auto* area = qobject_cast<QAreaSeries*>(series);
        if (!area || !area->isVisible()) continue;
        const bool right = series->attachedAxes().last()->alignment() == Qt::AlignRight;
        // The axis reaches the whole band.
        const auto* axis = qobject_cast<const QValueAxis*>(series->attachedAxes().last());
        if (axis && axis->max() < area->upperSeries()->at(0).y()) continue;
        bands.emplace_back(area->lowerSeries()->at(0).y(), area->upperSeries()->at(0).y(), right);
      }
      return bands;
    };
    QTRY_COMPARE(shaded(), (std::vector<std::tuple<double, double, bool>>{{36.0, 54.0, false}, {2000.0, 6000.0, true}}));
    QVERIFY2(chart.legendText().contains(QStringLiteral("45.0 tok/s ± 20 %")), qPrintable(chart.legendText()));
    // A prediction of no known band is a line alone.
    chart.setContent(throughputContent(past, {1000, 1010, 240}, ColorScheme::Light, 45.0, std::nullopt));
    QTRY_VERIFY(shaded().empty());
    QVERIFY2(!chart.legendText().contains(QStringLiteral("±")), qPrintable(chart.legendText()));
  }

  void tableAndCsv() {
    ChartContent content;
    content.unit = ValueUnit::TokensPerSecond;
    content.to = 10;
    content.lines = {{QStringLiteral("a, \"b\""), {}, {{1, 2.5}, {2, kGap}, {3, 4.0}, {11, 9.0}}, false, false}};
    content.dots = {{QStringLiteral("c"), {}, {{3, 1.0}, {3, 2.0}}}};
    const ChartTable table = tableOf(content);
    QCOMPARE(table.times, (std::vector<double>{1, 3, 3}));
    QCOMPARE(toCsv(table), QStringLiteral("Time,\"a, \"\"b\"\" (tok/s)\",c (tok/s)\r\n"
                                          "1970-01-01T00:00:01.000Z,2.5,\r\n"
                                          "1970-01-01T00:00:03.000Z,4,1\r\n"
                                          "1970-01-01T00:00:03.000Z,,2\r\n"));
    ChartTableModel model(table, content.unit);
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QCOMPARE(model.index(0, 1).data().toString(), QStringLiteral("2.50 tok/s"));
    QCOMPARE(model.index(0, 2).data().toString(), QStringLiteral("—"));
  }

  void drawsWhatItIsGiven() {
    TimeChart chart;
    chart.setTitle(QStringLiteral("Memory"));
    chart.resize(500, 260);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    EngineHistory past = history(20);
    chart.setContent(memoryContent(past.devices()[0], {1000, 1010, 240}, ColorScheme::Light));
    QTRY_COMPARE(chart.drawnPointCount(), 80);
    QVERIFY2(chart.legendText().contains(QLatin1String("Weights: 0.29 GiB")), qPrintable(chart.legendText()));
    QCOMPARE(chart.accessibleName(), QStringLiteral("Memory"));
    QCOMPARE(chart.accessibleDescription(), chart.legendText());
    // A gap cuts the bands; the values on both sides stay.
    past.addGap(1012);
    for (int sample = 0; sample < 10; ++sample) past.addSample(test::fakeSample(1020 + sample * 0.5));
    chart.setContent(memoryContent(past.devices()[0], {1000, 1030, 240}, ColorScheme::Light));
    QTRY_COMPARE(chart.drawnPointCount(), 120);
    // Another window shows another part.
    chart.setContent(memoryContent(past.devices()[0], {1021, 1030, 240}, ColorScheme::Dark));
    QTRY_VERIFY(chart.drawnPointCount() < 50);
    chart.setContent(ttftContent(past, {1000, 1030, 240}, ColorScheme::Light, 250.0));
    QTRY_VERIFY(chart.legendText().contains(QLatin1String("p95: 300 ms")));
    chart.setContent({});
    QTRY_COMPARE(chart.drawnPointCount(), 0);
  }

  void drawsOnlyWhileVisible() {
    TimeChart chart;
    const EngineHistory past = history(20);
    chart.setContent(throughputContent(past, {1000, 1010, 240}, ColorScheme::Light, {}, {}));
    QTest::qWait(150);
    QCOMPARE(chart.drawnPointCount(), 0);
    chart.show();
    QTRY_COMPARE(chart.drawnPointCount(), 40);
  }

  void copiesCsv() {
    TimeChart chart;
    chart.setContent(throughputContent(history(3), {1000, 1010, 240}, ColorScheme::Light, {}, {}));
    chart.copyCsv();
    const QStringList lines = QApplication::clipboard()->text().split(QStringLiteral("\r\n"), Qt::SkipEmptyParts);
    QCOMPARE(lines.size(), 4);
    QVERIFY2(lines[1].endsWith(QLatin1String("12,40")), qPrintable(lines[1]));
  }
};

QTEST_MAIN(ChartsTest)
#include "charts_test.moc"
