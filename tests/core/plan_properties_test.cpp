// SPDX-License-Identifier: Apache-2.0
// What holds for any layout of any model: ranges partition, bytes add up, more GPUs never hold less, verdicts are the rules',
// fixes keep their promise.
#include "core/launch/planner.h"
#include "core/launch/prepared_model.h"
#include "core/layout/stage_balance.h"
#include "core/memory/memory_plan.h"
#include "core/model/model_catalog.h"
#include "tests/core/sample_model.h"

#include <QtTest>

#include <map>
#include <random>
#include <tuple>

using namespace headroom;
using namespace headroom::test;

namespace {

ModelShape randomShape(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return static_cast<int64_t>(std::uniform_int_distribution<int>(low, high)(random));
  };
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

using FixAt = std::tuple<int, int, int>;  // tp, pp, dp

// What a part of a fix says, as options or as another layout; whether it changed an option.
bool apply(const QString& part, PlanOptions& options, FixAt& at) {
  const auto read = [&part](const char* pattern) { return QRegularExpression(QLatin1String(pattern)).match(part); };
  if (const auto match = read("^--max-model-len (\\d+)$"); match.hasMatch())
    return options.maxModelLen = match.captured(1).toLongLong(), true;
  if (const auto match = read("^(\\d+) requests? at once instead of \\d+$"); match.hasMatch())
    return options.concurrency = match.captured(1).toLongLong(), true;
  if (const auto match = read("^--gpu-memory-utilization ([0-9.]+)$"); match.hasMatch())
    return options.gpuMemoryUtilization = match.captured(1).toDouble(), true;
  if (const auto match = read("^(?:TP=(\\d+))?(?: x )?(?:PP=(\\d+))? \\(\\d+ GPUs?\\) fits$"); match.hasMatch())
    at = {std::max(1, match.captured(1).toInt()), std::max(1, match.captured(2).toInt()), 1};
  return false;
}

// What a refusal names instead and is refused too; empty where all of it is accepted.
QString refusedAdvice(const PlanReport& report, const LayoutPlan& plan) {
  const QString fix = QString::fromStdString(plan.reasons.front().fix);
  QString problem;
  const auto ask = [&](int tp, int pp, int dp) {
    const LayoutPlan* other = report.find(tp, pp, dp);
    if (other && other->verdict != Verdict::Invalid) return;
    problem += QStringLiteral(", TP=%1 PP=%2 DP=%3: %4; but TP=%5 PP=%6: %7")
                   .arg(plan.tp)
                   .arg(plan.pp)
                   .arg(plan.dp)
                   .arg(fix)
                   .arg(tp)
                   .arg(pp)
                   .arg(other ? QString::fromStdString(other->reasons.front().message) : QStringLiteral("no such layout"));
  };
  static const QRegularExpression all(QStringLiteral("TP=(\\d+) with PP=(\\d+) uses all (\\d+) GPUs"));
  if (const auto match = all.match(fix); match.hasMatch()) {
    if (match.captured(1).toInt() * match.captured(2).toInt() != match.captured(3).toInt()) problem += fix;
    ask(match.captured(1).toInt(), match.captured(2).toInt(), 1);
  }
  static const QRegularExpression sizes(QStringLiteral("TP sizes that work: ([\\d, ]+)"));
  if (const auto match = sizes.match(fix); match.hasMatch())
    for (const QString& size : match.captured(1).split(QLatin1Char(','))) ask(size.trimmed().toInt(), 1, 1);
  static const QRegularExpression fewer(QStringLiteral("use (TP|PP)=(\\d+) or fewer"));
  if (const auto match = fewer.match(fix); match.hasMatch()) {
    const bool tp = match.captured(1) == QStringLiteral("TP");
    ask(tp ? match.captured(2).toInt() : plan.tp, tp ? plan.pp : match.captured(2).toInt(), plan.dp);
  }
  return problem;
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

  // What serves nothing is part of the machine's memory: outside the budgets, on idle GPUs, or left in a budget.
  void wastedMemoryAddsUp_data() { everyFixKeepsItsPromise_data(); }
  void wastedMemoryAddsUp() {
    QFETCH(QString, engine);
    QFETCH(QString, gpus);
    const Machine machine = *parseMachine(gpus.toStdString());
    const auto model = openModel("Qwen/Qwen2.5-7B-Instruct");
    QVERIFY(model);
    PlanOptions options;
    options.engine = *parseEngine(engine.toStdString());
    options.maxModelLen = 4096;
    const auto report = planModel(*model, machine, options);
    QVERIFY(report);
    Bytes all;
    for (const MachineGpu& gpu : machine.gpus) all += gpu.totalMemory;
    int looked = 0;
    for (const LayoutPlan& plan : report->layouts) {
      if (plan.verdict == Verdict::Invalid) continue;
      Bytes budgets, used, whole;
      for (const RankPlan& rank : plan.ranks) {
        budgets += *rank.budget;
        whole += machine.gpus[static_cast<size_t>(rank.slice.gpu)].totalMemory;
        used += *rank.weights + rank.activations.value_or(Bytes()) + rank.graphs.value_or(Bytes()) +
                rank.runtime.value_or(Bytes()) + *rank.kvCache;
      }
      std::map<std::string, Bytes> items;
      for (const WasteItem& item : plan.waste) {
        QVERIFY2(item.bytes.count() > 0 && items.emplace(item.kind, item.bytes).second, item.kind.c_str());
      }
      QCOMPARE(items["idle_gpus"].count(), (all - whole).count());
      if (engine != "llama.cpp") QCOMPARE(items["outside_budget"].count(), std::max<int64_t>(0, (whole - budgets).count()));
      if (plan.kvTokens.value_or(0) > 0) QVERIFY(items["stage_surplus"] <= budgets - used);
      QVERIFY(items["kv_copies"] <= *plan.kvCache * plan.dp);
      ++looked;
    }
    QVERIFY(looked > 0);
  }

  // Whatever is offered for a layout that does not fit makes it fit, and every layout that is named does.
  void everyFixKeepsItsPromise_data() {
    QTest::addColumn<QString>("engine");
    QTest::addColumn<QString>("gpus");
    for (const char* engine : {"headroom", "vllm", "vllm@0.10", "sglang", "tensorrt-llm", "lmdeploy", "llama.cpp"})
      for (const char* gpus : {"6xA100-80GB", "4xRTX 4090", "3xL40S", "2x24GiB,1x48GiB", "2n8xH100-80GB"})
        QTest::addRow("%s on %s", engine, gpus) << QString(engine) << QString(gpus);
  }
  void everyFixKeepsItsPromise() {
    QFETCH(QString, engine);
    QFETCH(QString, gpus);
    const Machine machine = *parseMachine(gpus.toStdString());
    struct Load {
      std::optional<int64_t> length, input, output;
      int64_t concurrency;
    };
    const Load loads[] = {{{}, {}, {}, 1}, {{}, {}, {}, 64}, {16384, 2000, 500, 256}, {{}, 30000, 2000, 8}};
    // Each model of the catalog under one of the loads; the next machine and engine take another.
    size_t turn = static_cast<size_t>(engine.size() + gpus.size());
    int applied = 0;
    for (const CatalogModel& entry : modelCatalog()) {
      const auto opened = openModel(entry.name);
      QVERIFY2(opened, entry.name.c_str());
      const PreparedModel model(std::make_shared<const ModelSource>(std::move(*opened)));
      const Load& load = loads[turn++ % std::size(loads)];
      PlanOptions options;
      options.engine = *parseEngine(engine.toStdString());
      options.maxModelLen = load.length;
      options.inputLen = load.input;
      options.outputLen = load.output;
      options.concurrency = load.concurrency;
      const auto report = planModel(model, machine, options);
      if (!report) continue;                    // the model is shorter than the load
      std::map<std::string, PlanReport> plans;  // by what was changed
      for (const LayoutPlan& plan : report->layouts) {
        if (plan.verdict == Verdict::Invalid) {
          const QString refused = refusedAdvice(*report, plan);
          QVERIFY2(refused.isEmpty(), qPrintable(QString::fromStdString(entry.name) + refused));
        }
        if (plan.verdict != Verdict::DoesNotFit) continue;
        const std::string fix = plan.reasons.front().fix;
        const QString about = QStringLiteral("%1, %2 requests, TP=%3 PP=%4 DP=%5: %6")
                                  .arg(QString::fromStdString(entry.name))
                                  .arg(load.concurrency)
                                  .arg(plan.tp)
                                  .arg(plan.pp)
                                  .arg(plan.dp)
                                  .arg(QString::fromStdString(fix));
        QVERIFY2(!fix.empty(), qPrintable(about));
        for (const QString& part : QString::fromStdString(fix).split(QStringLiteral(", or "))) {
          if (part == QStringLiteral("more GPUs") || part.contains(QStringLiteral("more memory")) ||
              part.contains(QStringLiteral("quantized")))
            continue;
          PlanOptions changed = options;
          FixAt at{plan.tp, plan.pp, plan.dp};
          const bool option = apply(part, changed, at);
          QVERIFY2(option || at != FixAt(plan.tp, plan.pp, plan.dp), qPrintable(about));
          const PlanReport* after = &*report;
          if (option) {
            auto known = plans.find(part.toStdString());
            if (known == plans.end()) {
              auto again = planModel(model, machine, changed);
              QVERIFY2(again, qPrintable(about + (again ? "" : QString::fromStdString(again.error().message()))));
              known = plans.emplace(part.toStdString(), std::move(*again)).first;
            }
            after = &known->second;
          }
          const LayoutPlan* now = after->find(std::get<0>(at), std::get<1>(at), std::get<2>(at));
          QVERIFY2(now, qPrintable(about));
          QVERIFY2(
              now->verdict == Verdict::Fits || now->verdict == Verdict::Tight,
              qPrintable(about + QStringLiteral(" -> %1").arg(
                                     now->reasons.empty() ? QString() : QString::fromStdString(now->reasons.front().message))));
          ++applied;
        }
      }
    }
    QVERIFY(applied > 50);
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
            rules.check({model, machine, versionOf(report->options.engine), options.dtype, ""}, {plan.tp, plan.pp, plan.dp})
                .refusal;
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
    const auto pick = [&](int low, int high) {
      return static_cast<int64_t>(std::uniform_int_distribution<int>(low, high)(random));
    };
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
        for (int64_t b = a + 1; b < layers; ++b)
          best = std::max(best, unitsOfPartition(load, rooms, {{0, a}, {a, b}, {b, layers}}));
      const std::vector<Range> found = stagesByRoom(load, rooms);
      QCOMPARE(found.size(), size_t(3));
      QCOMPARE(found.back().end, layers);
      QCOMPARE(unitsOfPartition(load, rooms, found), best);
    }
  }
};

QTEST_GUILESS_MAIN(PlanPropertiesTest)
#include "plan_properties_test.moc"
