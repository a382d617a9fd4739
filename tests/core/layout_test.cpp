// SPDX-License-Identifier: Apache-2.0
// Headroom's layouts: every size the engine offers, what is refused and why, and layouts as JSON.
#include "core/layout/parallel_layout.h"
#include "tests/core/sample_model.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::test;

namespace {
std::vector<int64_t> sizes(const std::vector<Range>& ranges) {
  std::vector<int64_t> list;
  for (Range range : ranges) list.push_back(range.size());
  return list;
}
using Sizes = std::vector<int64_t>;
}  // namespace

class LayoutTest : public QObject {
  Q_OBJECT
 private slots:
  void splitsLargerRangesFirst() {
    QCOMPARE(sizes(splitRange(8, 3)), (Sizes{3, 3, 2}));
    QCOMPARE(sizes(splitRange(29568, 6, 32)), (Sizes{4928, 4928, 4928, 4928, 4928, 4928}));
    QCOMPARE(sizes(splitRange(100, 3, 32)), (Sizes{64, 32, 4}));  // a partial piece stands last
    QCOMPARE(sizes(splitRange(2, 3)), (Sizes{1, 1, 0}));
  }

  void everySizeOfASmallModelWorks() {
    const ModelSource model = makeModel(smolShape());
    for (int tp = 1; tp <= 9; ++tp) {
      for (int pp = 1; pp <= 7; ++pp) {
        const auto layout = makeHeadroomLayout(model, tp, pp, 2);
        QVERIFY2(layout.has_value(), layout ? "" : layout.error().message().c_str());
        QCOMPARE(layout->ranks.size(), size_t(tp * pp * 2));
        const Status checked = checkLayout(*layout, model);
        QVERIFY2(checked.has_value(), checked ? "" : checked.error().message().c_str());
        QCOMPARE(layout->even, tp == 1 || tp == 3);  // 9 query heads, 3 KV heads, 1536 columns (512 x 3, but not 9 equal parts)
      }
    }
  }

  void keepsGroupsWholeWhileThereAreKvHeads() {
    ModelShape shape = qwen72Shape();
    shape.layers = 2;
    const auto layout = makeHeadroomLayout(makeModel(shape), 6, 1, 1);
    QVERIFY(layout.has_value());
    QCOMPARE(layout->even, false);
    Sizes q, kv;
    for (const RankSlice& rank : layout->ranks) {
      q.push_back(rank.qHeads.size());
      kv.push_back(rank.kvHeads.size());
    }
    QCOMPARE(q, (Sizes{16, 16, 8, 8, 8, 8}));
    QCOMPARE(kv, (Sizes{2, 2, 1, 1, 1, 1}));
  }

  void cutsQueryHeadsBeyondTheKvHeads() {
    ModelShape shape = qwen72Shape();
    shape.layers = 2;
    const auto layout = makeHeadroomLayout(makeModel(shape), 16, 1, 1);
    QVERIFY(layout.has_value());
    QCOMPARE(layout->even, true);
    for (const RankSlice& rank : layout->ranks) {
      QCOMPARE(rank.qHeads.size(), 4);
      QCOMPARE(rank.kvHeads, (Range{rank.tpRank / 2, rank.tpRank / 2 + 1}));
    }
  }

  void tooManyRanksNameTheHeads() {
    const auto layout = makeHeadroomLayout(makeModel(smolShape()), 10, 1, 1);
    QVERIFY(!layout);
    QCOMPARE(QString::fromStdString(layout.error().message()),
             QStringLiteral("tensor-parallel size 10: found 9 query heads, expected at most one rank a head; use TP=9 or fewer, "
                            "or pipeline stages"));
    const auto stages = makeHeadroomLayout(makeModel(smolShape()), 1, 31, 1);
    QVERIFY(!stages);
    QVERIFY(stages.error().message().find("30 layers") != std::string::npos);
  }

  void quantizationBlocksStayWhole() {
    ModelShape shape;
    shape.matrixType = DType::Q4_K;  // blocks of 256: four heads of 64
    shape.qHeads = 16;
    shape.kvHeads = 4;
    shape.hidden = 1024;
    shape.intermediate = 2816;  // 11 blocks
    const ModelSource model = makeModel(shape);
    QCOMPARE(columnGranule(model.inventory), int64_t(256));
    for (int tp = 1; tp <= 4; ++tp) {
      const auto layout = makeHeadroomLayout(model, tp, 1, 1);
      QVERIFY(layout.has_value());
      for (const RankSlice& rank : layout->ranks) {
        QCOMPARE(rank.qHeads.begin * 64 % 256, 0);
        QCOMPARE(rank.mlpColumns.begin % 256, 0);
      }
    }
    const auto refused = makeHeadroomLayout(model, 5, 1, 1);
    QVERIFY(!refused);
    QVERIFY(refused.error().message().find("blocks of 256") != std::string::npos);
  }

  void stagesAreBalancedByBytes() {
    // Equal layers; an embedding worth three layers before, a head worth three after.
    QCOMPARE(sizes(balanceStages(std::vector<int64_t>(18, 10), 30, 30, 3)), (Sizes{5, 8, 5}));
    QCOMPARE(sizes(balanceStages(std::vector<int64_t>(30, 10), 0, 0, 4)), (Sizes{8, 7, 8, 7}));
    QCOMPARE(sizes(balanceStages(std::vector<int64_t>(4, 10), 1000, 0, 3)), (Sizes{1, 2, 1}));
    QCOMPARE(sizes(balanceStages({1, 1, 1, 30, 1, 1, 1}, 0, 0, 3)), (Sizes{3, 1, 3}));
    for (int stages = 1; stages <= 30; ++stages) {
      const auto ranges = balanceStages(std::vector<int64_t>(30, 7), 60, 61, stages);
      QCOMPARE(ranges.size(), size_t(stages));
      QCOMPARE(ranges.back().end, 30);
      for (Range range : ranges) QVERIFY(range.size() >= 1);
    }
  }

  void bestBalanceIsFoundAmongAll() {
    // Against every possible cut of ten irregular layers into four stages.
    const std::vector<int64_t> bytes{5, 9, 3, 14, 1, 7, 7, 20, 2, 6};
    int64_t best = std::numeric_limits<int64_t>::max();
    auto sum = [&](int a, int b) {
      int64_t total = (a == 0 ? 11 : 0) + (b == 10 ? 8 : 0);
      for (int i = a; i < b; ++i) total += bytes[i];
      return total;
    };
    for (int a = 1; a < 8; ++a)
      for (int b = a + 1; b < 9; ++b)
        for (int c = b + 1; c < 10; ++c) best = std::min(best, std::max({sum(0, a), sum(a, b), sum(b, c), sum(c, 10)}));
    int64_t got = 0;
    for (Range range : balanceStages(bytes, 11, 8, 4)) got = std::max(got, sum(range.begin, range.end));
    QCOMPARE(got, best);
  }

  void jsonRoundTripKeepsEveryRange() {
    const ModelSource model = makeModel(smolShape());
    const auto layout = makeHeadroomLayout(model, 5, 2, 2, {});
    const auto again = layoutFromJson(nlohmann::json::parse(layoutToJson(*layout).dump()), "layout.json");
    QVERIFY2(again.has_value(), again ? "" : again.error().message().c_str());
    QCOMPARE(again->even, layout->even);
    for (size_t i = 0; i < layout->ranks.size(); ++i) {
      const RankSlice &a = layout->ranks[i], &b = again->ranks[i];
      QVERIFY(a.layers == b.layers && a.qHeads == b.qHeads && a.kvHeads == b.kvHeads && a.mlpColumns == b.mlpColumns &&
              a.experts == b.experts && a.vocabulary == b.vocabulary && a.gpu == b.gpu && a.rank == b.rank &&
              a.embeds == b.embeds && a.projects == b.projects);
    }
    QVERIFY(checkLayout(*again, model).has_value());
  }

  void damagedJsonIsRefused_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("named");
    QTest::newRow("no sizes") << "/tp"
                              << "null"
                              << "\"tp\"";
    QTest::newRow("too large") << "/tp"
                               << "100000"
                               << "100000";
    QTest::newRow("other count") << "/dp"
                                 << "3"
                                 << "ranks";
    QTest::newRow("stage beyond") << "/ranks/0/stage"
                                  << "7"
                                  << "ranks[0]";
    QTest::newRow("twice") << "/ranks/1/tp_rank"
                           << "0"
                           << "twice";
    QTest::newRow("reversed") << "/ranks/0/q_heads"
                              << "[5,1]"
                              << "q_heads";
    QTest::newRow("negative") << "/ranks/0/layers"
                              << "[-1,1]"
                              << "layers";
    QTest::newRow("text") << "/ranks"
                          << "\"none\""
                          << "ranks";
  }
  void damagedJsonIsRefused() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, named);
    nlohmann::json json = layoutToJson(*makeHeadroomLayout(makeModel(smolShape()), 2, 2, 1));
    json[nlohmann::json::json_pointer(pointer.toStdString())] = nlohmann::json::parse(value.toStdString());
    const auto layout = layoutFromJson(json, "layout.json");
    QVERIFY(!layout);
    QVERIFY2(layout.error().message().find(named.toStdString()) != std::string::npos, layout.error().message().c_str());
  }

  void layoutOfAnotherModelIsRefused() {
    const auto layout = makeHeadroomLayout(makeModel(smolShape()), 2, 1, 1);
    const Status checked = checkLayout(*layout, makeModel(qwen72Shape()));
    QVERIFY(!checked);
    QVERIFY(checked.error().message().find("80") != std::string::npos);
  }
};

QTEST_GUILESS_MAIN(LayoutTest)
#include "layout_test.moc"
