// SPDX-License-Identifier: Apache-2.0
// What holds for any layout of any model: ranges partition, bytes add up, more GPUs never hold less, verdicts are the rules'.
#include "core/layout/stage_balance.h"
#include "core/launch/planner.h"
#include "core/memory/memory_plan.h"
#include "tests/core/sample_model.h"

#include <QtTest>

#include <random>

using namespace headroom;
using namespace headroom::test;

namespace {

ModelShape randomShape(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return static_cast<int64_t>(std::uniform_int_distribution<int>(low, high)(random)); };
  ModelShape shape;
  shape.layers = pick(1, 12);
  shape.kvHeads = pick(1, 8);
  shape.qHeads = shape.kvHeads * pick(1, 6);
  shape.headDim = 32 * pick(1, 4);
  shape.hidden = 64 * pick(1, 12);
  shape.intermediate = pick(0, 3) == 0 ? 100 + pick(0, 900) : 128 * pick(1, 16);
  shape.vocab = 1000 + pick(0, 4000);
  shape.tied = pick(0, 1) == 0;
  shape.fused = pick(0, 2) == 0;
  shape.biases = pick(0, 2) == 0;
  if (pick(0, 3) == 0) {
    shape.experts = pick(2, 9);
    shape.expertWidth = 32 * pick(1, 8);
    shape.sharedWidth = pick(0, 1) * 64;
    shape.fused = false;
  }
  return shape;
}

}  // namespace

class PlanPropertiesTest : public QObject {
  Q_OBJECT
 private slots:
  void rangesPartitionAndBytesAddUp() {
    std::mt19937 random(20260824);
    int layouts = 0;
    for (int round = 0; round < 60; ++round) {
      const ModelSource model = makeModel(randomShape(random));
      for (int tp = 1; tp <= 7; ++tp) {
        for (int pp = 1; pp <= 4; ++pp) {
          const auto layout = makeHeadroomLayout(model, tp, pp, 1);
          if (!layout) continue;
          ++layouts;
          const Status whole = checkLayout(*layout, model);
          QVERIFY2(whole.has_value(), whole ? "" : whole.error().message().c_str());
          for (const TensorEntry& tensor : model.inventory.tensors) {
            int64_t held = 0, holders = 0;
            for (const RankSlice& rank : layout->ranks) {
              const Bytes bytes = loadedBytes(tensor, model.config, rank, tp, DType::BF16);
              held += bytes.count();
              holders += bytes.count() > 0;
            }
            const int64_t all = loadedBytes(tensor, DType::BF16).count();
            bool copied = tensor.splitDim < 0;  // on every rank of its stage
            for (const SplitSegment& segment : tensor.segments) copied = copied || segment.unit == SplitUnit::KvHeads;
            const bool twice = tensor.role == TensorRole::TokenEmbedding && model.config.tieWordEmbeddings && pp > 1;
            if (copied) {
              QVERIFY2(held >= all && held <= all * tp, tensor.name.c_str());
              if (tensor.splitDim < 0) QCOMPARE(held, all * holders);
            } else {
              QCOMPARE(held, twice ? 2 * all : all);
            }
          }
        }
      }
    }
    QVERIFY(layouts > 300);
  }

  void moreGpusNeverHoldFewerTokens_data() {
    QTest::addColumn<QString>("engine");
    for (const char* engine : {"headroom", "vllm", "vllm@0.10", "sglang", "tensorrt-llm", "lmdeploy", "llama.cpp"})
      QTest::addRow("%s", engine) << QString(engine);
  }
  void moreGpusNeverHoldFewerTokens() {
    QFETCH(QString, engine);
    std::mt19937 random(7);
    for (int round = 0; round < 6; ++round) {
      const ModelSource model = round == 0 ? makeModel(smolShape()) : makeModel(randomShape(random));
      PlanOptions options;
      options.engine = *parseEngine(engine.toStdString());
      options.maxModelLen = 512;
      int64_t before = 0;
      for (int gpus = 1; gpus <= 6; ++gpus) {
        const auto report = planModel(model, *parseMachine(std::to_string(gpus) + "xL4-24GB"), options);
        QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
        int64_t most = 0;
        for (const LayoutPlan& plan : report->layouts) {
          if (plan.verdict != Verdict::Invalid) most = std::max(most, plan.kvTokens.value_or(0) * plan.dp);
        }
        QVERIFY2(most >= before, qPrintable(QString("%1 GPUs: %2 tokens after %3").arg(gpus).arg(most).arg(before)));
        before = most;
      }
    }
  }

  void verdictsAreTheRules_data() { moreGpusNeverHoldFewerTokens_data(); }
  void verdictsAreTheRules() {
    QFETCH(QString, engine);
    std::mt19937 random(11);
    const Machine machine = *parseMachine("6xL4-24GB");
    for (int round = 0; round < 12; ++round) {
      const ModelSource model = makeModel(randomShape(random));
      PlanOptions options;
      options.engine = *parseEngine(engine.toStdString());
      options.maxModelLen = 512;
      const auto report = planModel(model, machine, options);
      QVERIFY(report.has_value());
      const EngineRules& rules = rulesOf(options.engine.kind);
      for (const LayoutPlan& plan : report->layouts) {
        const auto refusal =
            rules.check({model, machine, versionOf(report->options.engine), options.dtype, ""}, {plan.tp, plan.pp, plan.dp}).refusal;
        QCOMPARE(plan.verdict == Verdict::Invalid, refusal.has_value());
        if (refusal) {
          QCOMPARE(plan.reasons.front().rule, refusal->rule);
          QVERIFY(plan.ranks.empty() && plan.answers.empty());
          continue;
        }
        // Layers are covered once, by stages of at least one layer (llama.cpp may leave the last device with the output alone).
        int64_t at = 0;
        for (const RankPlan& rank : plan.ranks) {
          if (rank.slice.replica != 0 || rank.slice.tpRank != 0) continue;
          QCOMPARE(rank.slice.layers.begin, at);
          at = rank.slice.layers.end;
        }
        QCOMPARE(at, model.config.layerCount());
        QVERIFY(plan.headroom && plan.limitingGpu);
      }
    }
  }

  // Against every partition there is.
  void stagesByRoomAreTheBest() {
    std::mt19937 random(3);
    const auto pick = [&](int low, int high) { return static_cast<int64_t>(std::uniform_int_distribution<int>(low, high)(random)); };
    for (int round = 0; round < 200; ++round) {
      StageLoad load;
      const int64_t layers = pick(3, 9);
      for (int64_t i = 0; i < layers; ++i) {
        load.layerBytes.push_back(pick(50, 150));
        load.unitBytes.push_back(pick(1, 3));
      }
      load.firstExtra = pick(0, 200);
      load.lastExtra = pick(0, 200);
      std::vector<int64_t> rooms{pick(200, 900), pick(200, 900), pick(200, 900)};
      int64_t best = -1;
      for (int64_t a = 1; a < layers - 1; ++a)
        for (int64_t b = a + 1; b < layers; ++b) best = std::max(best, unitsOfPartition(load, rooms, {{0, a}, {a, b}, {b, layers}}));
      const std::vector<Range> found = stagesByRoom(load, rooms);
      QCOMPARE(found.size(), size_t(3));
      QCOMPARE(found.back().end, layers);
      QCOMPARE(unitsOfPartition(load, rooms, found), best);
    }
  }
};

QTEST_GUILESS_MAIN(PlanPropertiesTest)
#include "plan_properties_test.moc"
