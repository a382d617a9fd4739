// SPDX-License-Identifier: GPL-3.0-or-later
// The grid and the memory table of a plan made by hand: every cell shown, words for every colour, unknown never 0.
#include "ui/models/layout_grid_model.h"
#include "ui/models/catalog_model.h"
#include "ui/models/layout_text.h"
#include "ui/models/memory_breakdown_model.h"
#include "ui/theme/format.h"
#include "ui/theme/theme.h"

#include <QAbstractItemModelTester>
#include <QtTest>

using namespace headroom;
using namespace headroom::ui;

namespace {

LayoutPlan layoutOf(int tp, int pp, Verdict verdict) {
  LayoutPlan layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.verdict = verdict;
  return layout;
}

// Two GPUs of 10 GiB: TP1 PP1 does not fit, TP2 is refused, PP2 fits and is recommended, two replicas are unknown.
std::shared_ptr<PlanReport> smallReport() {
  auto report = std::make_shared<PlanReport>();
  report->model.qHeads = 7;
  report->model.kvHeads = 1;
  for (int i = 0; i < 2; ++i) {
    MachineGpu gpu;
    gpu.index = i;
    gpu.totalMemory = 10_GiB;
    report->machine.gpus.push_back(gpu);
  }
  LayoutPlan one = layoutOf(1, 1, Verdict::DoesNotFit);
  one.headroom = -3_GiB;
  one.limitingGpu = 0;
  one.reasons.push_back({"memory", "13 GiB needed, 10 GiB there", "use PP2"});
  report->layouts.push_back(one);
  LayoutPlan refused = layoutOf(2, 1, Verdict::Invalid);
  refused.reasons.push_back({"vllm.attention_heads", "7 heads do not divide by 2", ""});
  report->layouts.push_back(refused);
  LayoutPlan fits = layoutOf(1, 2, Verdict::Fits);
  fits.headroom = 4_GiB;
  fits.limitingGpu = 1;
  fits.kvTokens = 20480;
  for (int stage = 0; stage < 2; ++stage) {
    RankPlan rank;
    rank.slice.rank = rank.slice.stage = rank.slice.gpu = stage;
    rank.slice.layers = {stage * 3, stage * 3 + 3};
    rank.weights = 4_GiB;
    rank.kvCache = 1_GiB;
    rank.activations = 1_GiB;
    rank.headroom = stage == 0 ? 5_GiB : 4_GiB;
    rank.budget = 9_GiB;
    fits.ranks.push_back(rank);
  }
  report->layouts.push_back(fits);
  LayoutPlan replicas = layoutOf(1, 1, Verdict::Tight);
  replicas.dp = 2;
  report->layouts.push_back(replicas);
  report->recommended = PlanReport::Recommendation{1, 2, 1, "it fits"};
  return report;
}

}  // namespace

class LayoutGridModelTest : public QObject {
  Q_OBJECT

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral(".*")));
    QLocale::setDefault(QLocale::c());
  }

  void staysAProperModelThroughEveryChange() {
    LayoutGridModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.setReport(smallReport());
    QCOMPARE(model.rowCount(), 2);
    QCOMPARE(model.columnCount(), 2);
    model.setReport(smallReport());
    model.setReplicas(2);
    QCOMPARE(model.rowCount(), 1);
    model.setReplicas(9);
    QCOMPARE(model.replicas(), 2);
    model.setReport(nullptr);
    QCOMPARE(model.rowCount(), 0);
  }

  void showsEveryLayoutAndDisablesOnlyWhatNeedsMoreGpus() {
    LayoutGridModel model;
    model.setReport(smallReport());
    QVERIFY(model.flags(model.indexOf(2, 1)).testFlag(Qt::ItemIsEnabled));
    QVERIFY(!model.flags(model.index(1, 1)).testFlag(Qt::ItemIsEnabled));
    QVERIFY(model.index(1, 1).data(Qt::AccessibleTextRole).toString().contains(QStringLiteral("TP2 × PP2")));
  }

  void saysInWordsWhatColoursSay() {
    LayoutGridModel model;
    model.setReport(smallReport());
    const QModelIndex missing = model.indexOf(1, 1), refused = model.indexOf(2, 1), fits = model.indexOf(1, 2);
    QCOMPARE(missing.data(Qt::DisplayRole).toString(), QStringLiteral("-3.0 GiB"));
    QCOMPARE(refused.data(Qt::DisplayRole).toString(), QStringLiteral("7 heads / 2"));
    QCOMPARE(fits.data(Qt::DisplayRole).toString(), QStringLiteral("4.0 GiB"));
    QCOMPARE(fits.data(LayoutGridModel::SecondLineRole).toString(), QStringLiteral("20.5k tokens"));
    QVERIFY(missing.data(Qt::AccessibleTextRole).toString().contains(QStringLiteral("3.0 GiB missing")));
    QVERIFY(missing.data(Qt::AccessibleTextRole).toString().contains(QStringLiteral("13 GiB needed")));
    QVERIFY(refused.data(Qt::AccessibleTextRole).toString().contains(QStringLiteral("7 heads do not divide by 2")));
    QVERIFY(fits.data(Qt::AccessibleTextRole).toString().contains(QStringLiteral("recommended")));
    QVERIFY(fits.data(LayoutGridModel::RecommendedRole).toBool());
    QVERIFY(!missing.data(LayoutGridModel::RecommendedRole).toBool());
  }

  void unknownIsADashAndNeverZero() {
    LayoutGridModel model;
    model.setReport(smallReport());
    model.setReplicas(2);
    const QModelIndex index = model.indexOf(1, 1);
    QCOMPARE(index.data(Qt::DisplayRole).toString(), kUnknown);
    QVERIFY(!index.data(LayoutGridModel::HeadroomRole).isValid());
    QVERIFY(!model.recommendedIndex().isValid());
  }

  void memoryTableListsTheLimitingGpuFirst() {
    const auto report = smallReport();
    MemoryBreakdownModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.setLayout(report.get(), report->find(1, 2, 1));
    QCOMPARE(model.rowCount(), 2);
    QCOMPARE(model.index(0, MemoryBreakdownModel::Gpu).data().toString(), QStringLiteral("GPU 1"));
    QCOMPARE(model.index(0, MemoryBreakdownModel::Headroom).data().toString(), QStringLiteral("4.0 GiB"));
    QCOMPARE(model.index(0, MemoryBreakdownModel::Graphs).data().toString(), kUnknown);
    QVERIFY(model.asCsv().contains(QStringLiteral("1,0,1,0,4294967296,1073741824,1073741824,,,4294967296")));
    // 9 GiB may be used: 4 weights, 1 activations, 4 headroom; nothing is left for what the load needs, 1 GiB stays with others.
    const std::vector<MemoryBarData> bars = memoryBars(*report, *report->find(1, 2, 1));
    QVERIFY(bars.at(0).limiting && !bars.at(1).limiting);
    QCOMPARE(bars.at(0).segments.back().part, MemoryPart::Free);
    QCOMPARE(bars.at(0).segments.back().bytes.count(), (1_GiB).count());
  }

  // Whatever share an engine leaves alone: the cache that is needed is the load's, not what the budget has beside the weights.
  void barsShowTheCacheThatTheLoadNeeds_data() {
    QTest::addColumn<QString>("engine");
    for (const char* engine : {"headroom", "vllm", "sglang", "tensorrt-llm", "lmdeploy"}) QTest::addRow("%s", engine) << QString(engine);
  }
  void barsShowTheCacheThatTheLoadNeeds() {
    QFETCH(QString, engine);
    PlanOptions options;
    options.engine = *parseEngine(engine.toStdString());
    options.maxModelLen = 32768;
    const auto report = planModel(*openModel("Qwen/Qwen2.5-72B-Instruct"), *parseMachine("4xA100-80GB"), options);
    QVERIFY(report);
    const std::vector<MemoryBarData> bars = memoryBars(*report, *report->find(4, 1, 1));
    QCOMPARE(bars.size(), size_t(4));
    int caches = 0;
    for (const MemorySegment& segment : bars.front().segments) {
      if (segment.part != MemoryPart::KvCache) continue;
      ++caches;
      QCOMPARE(segment.bytes.count(), int64_t{32768} * 80 * 2 * 256 * 2);  // 80 layers, two KV heads of 128 for K and V, 16 bits
    }
    QCOMPARE(caches, 1);
  }

  void catalogIsAProperModelWithTheStorysModel() {
    CatalogTableModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    bool found = false;
    for (int row = 0; row < model.rowCount(); ++row) {
      if (model.nameAt(row) != QStringLiteral("Qwen/Qwen2.5-72B-Instruct")) continue;
      found = true;
      QCOMPARE(model.index(row, CatalogTableModel::Heads).data(Qt::UserRole).toInt(), 64);
      QCOMPARE(model.index(row, CatalogTableModel::KvHeads).data(Qt::UserRole).toInt(), 8);
    }
    QVERIFY(found);
  }
};

QTEST_GUILESS_MAIN(LayoutGridModelTest)
#include "layout_grid_model_test.moc"
