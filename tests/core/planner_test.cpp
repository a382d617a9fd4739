// SPDX-License-Identifier: Apache-2.0
// The grid end to end: the story of six GPUs and 64 heads, agreement with the engine's own memory plan, and JSON that can be
// started.
#include "core/launch/planner.h"
#include "core/memory/sglang_memory.h"
#include "tests/core/sample_model.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::test;

namespace {

PlanReport planOf(const ModelSource& model, const char* gpus, const char* engine, void (*change)(PlanOptions&) = nullptr) {
  PlanOptions options;
  options.engine = *parseEngine(engine);
  if (change) change(options);
  auto report = planModel(model, *parseMachine(gpus, {6, 2_GiB}), options);
  if (!report) qFatal("%s", report.error().message().c_str());
  return *report;
}

}  // namespace

class PlannerTest : public QObject {
  Q_OBJECT
 private slots:
  void sixGpusAnd64Heads() {
    const ModelSource model = makeModel(qwen72Shape());
    const PlanReport vllm = planOf(model, "6xA800-80GB", "vllm");
    const LayoutPlan* six = vllm.find(6, 1, 1);
    QCOMPARE(six->verdict, Verdict::Invalid);
    QCOMPARE(six->reasons.front().rule, std::string("vllm.attention_heads"));
    QVERIFY(six->reasons.front().fix.find("TP=2 with PP=3") != std::string::npos);
    QVERIFY(six->ranks.empty());
    for (const auto& [tp, pp] : {std::pair{2, 3}, std::pair{4, 1}}) {
      const LayoutPlan* plan = vllm.find(tp, pp, 1);
      QCOMPARE(plan->verdict, Verdict::Fits);
      QVERIFY(plan->headroom->count() > 0 && *plan->kvTokens > 0 && plan->predicted.decodeTokensPerSecond);
      QCOMPARE(plan->ranks.size(), size_t(tp * pp));
    }
    QCOMPARE(vllm.find(1, 3, 2)->verdict, Verdict::Fits);  // two replicas of three stages
    QVERIFY(vllm.recommended.has_value());

    const PlanReport own = planOf(model, "6xA800-80GB", "headroom");
    QCOMPARE(own.find(6, 1, 1)->verdict, Verdict::Fits);
    QCOMPARE(own.find(6, 1, 1)->even, false);
    QCOMPARE(*own.kvBytesPerToken, int64_t(327680));
  }

  void everySizeIsListedOnce() {
    const PlanReport report = planOf(makeModel(smolShape()), "7x24GiB", "headroom");
    size_t expected = 0;
    for (int dp = 1; dp <= 7; ++dp)
      for (int pp = 1; pp <= 7; ++pp)
        for (int tp = 1; tp <= 7; ++tp) {
          if (tp * pp * dp > 7) continue;
          ++expected;
          QVERIFY(report.find(tp, pp, dp));
        }
    QCOMPARE(report.layouts.size(), expected);
  }

  void planAgreesWithTheEnginesMemoryPlan() {
    const ModelSource model = makeModel(smolShape());
    const PlanReport report = planOf(model, "local", "headroom", [](PlanOptions& o) { o.maxModelLen = 1024; });
    const Machine machine = *parseMachine("local", {6, 2_GiB});
    for (const LayoutPlan& plan : report.layouts) {
      const auto layout = makeHeadroomLayout(model, plan.tp, plan.pp, plan.dp);
      const auto memory =
          planEngineMemory(model, *layout, machine, engineLimits(report.options), report.options.gpuMemoryUtilization);
      QVERIFY(memory.has_value());
      QCOMPARE(*plan.kvTokens, memory->kvBlocks * 16);
      for (size_t i = 0; i < plan.ranks.size(); ++i) {
        QCOMPARE(plan.ranks[i].weights->count(), memory->ranks[i].weights.count());
        QCOMPARE(plan.ranks[i].activations->count(), memory->ranks[i].activations.count());
        QCOMPARE(plan.ranks[i].kvCache->count(), memory->ranks[i].kvCache.count());
      }
    }
  }

  void loadDecidesTheVerdict() {
    const ModelSource model = makeModel(qwen72Shape());
    const PlanReport one = planOf(model, "4xA100-80GB", "headroom", [](PlanOptions& o) { o.maxModelLen = 32768; });
    const PlanReport many = planOf(model, "4xA100-80GB", "headroom", [](PlanOptions& o) {
      o.maxModelLen = 32768;
      o.concurrency = 64;
    });
    QCOMPARE(one.find(4, 1, 1)->verdict, Verdict::Fits);
    const LayoutPlan* full = many.find(4, 1, 1);
    QCOMPARE(full->verdict, Verdict::DoesNotFit);
    // 63 more requests of 32768 tokens, 80 KiB a token and GPU.
    QCOMPARE((*one.find(4, 1, 1)->headroom - *full->headroom).count(), int64_t(63) * 32768 * 81920);
    QVERIFY2(full->reasons.front().fix.find("requests at once") != std::string::npos, full->reasons.front().fix.c_str());
    // A short load of the same requests fits.
    const PlanReport small = planOf(model, "4xA100-80GB", "headroom", [](PlanOptions& o) {
      o.maxModelLen = 32768;
      o.concurrency = 64;
      o.inputLen = 1000;
      o.outputLen = 200;
    });
    QCOMPARE(small.find(4, 1, 1)->verdict, Verdict::Fits);
  }

  void lengthIsLoweredToWhatFitsUnlessAsked() {
    const ModelSource model = makeModel(qwen72Shape());
    const PlanReport lowered = planOf(model, "2xA100-80GB", "headroom");
    QVERIFY(lowered.options.maxModelLen < 32768 && lowered.options.maxModelLen >= 256);
    QVERIFY(lowered.find(2, 1, 1)->verdict != Verdict::DoesNotFit);
    const PlanReport asked = planOf(model, "2xA100-80GB", "headroom", [](PlanOptions& o) { o.maxModelLen = 32768; });
    const LayoutPlan* plan = asked.find(2, 1, 1);
    QCOMPARE(plan->verdict, Verdict::DoesNotFit);
    QVERIFY2(plan->reasons.front().message.find("weights") != std::string::npos &&
                 plan->reasons.front().fix.find("--max-model-len") != std::string::npos,
             plan->reasons.front().fix.c_str());
  }

  // Whole numbers and a scale of four bytes for each head's key and value.
  void int8CachesArePlannedWithTheirScalesOnHosts() {
    PlanOptions options;
    options.kvCacheDType = DType::I8;
    const ModelSource model = makeModel(smolShape());
    const auto report = planModel(model, hostMachine({2, 1_GiB}), options);
    QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
    const LayerSpec& layer = model.config.layers.front();
    QCOMPARE(*report->kvBytesPerToken, model.config.layerCount() * layer.kvHeads * 2 * (layer.headDim + 4));
    const auto onGpus = planModel(model, *parseMachine("1x24GiB"), options);
    QVERIFY(!onGpus && onGpus.error().message().find("int8 on GPUs") != std::string::npos);
  }

  void optionsThatCannotBeHonouredAreRefused_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("which");
    QTest::newRow("length beyond the positions") << "--max-model-len" << 0;
    QTest::newRow("utilization") << "--gpu-memory-utilization" << 1;
    QTest::newRow("compute in blocks") << "--dtype" << 2;
    QTest::newRow("cache in 4-bit blocks") << "--kv-cache-dtype" << 3;
    QTest::newRow("quantization") << "--quantization" << 4;
    QTest::newRow("no requests") << "--concurrency" << 5;
    QTest::newRow("no sequences") << "--max-num-seqs" << 6;
  }
  void optionsThatCannotBeHonouredAreRefused() {
    QFETCH(QString, name);
    QFETCH(int, which);
    PlanOptions options;
    if (which == 0) options.maxModelLen = 1 << 20;
    if (which == 1) options.gpuMemoryUtilization = 1.2;
    if (which == 2) options.dtype = DType::Q4_1;
    if (which == 3) options.kvCacheDType = DType::Q4_1;
    if (which == 4) options.quantization = "awq";
    if (which == 5) options.concurrency = 0;
    if (which == 6) options.maxNumSeqs = 0;
    const auto report = planModel(makeModel(smolShape()), *parseMachine("1x24GiB"), options);
    QVERIFY(!report);
    QVERIFY2(report.error().message().find(name.toStdString()) != std::string::npos, report.error().message().c_str());
  }

  void moreGpusNeverLessCache() {
    const ModelSource model = makeModel(qwen72Shape());
    for (const char* engine : {"headroom", "vllm"}) {
      const PlanReport report = planOf(model, "8xH100-80GB", engine, [](PlanOptions& o) { o.maxModelLen = 4096; });
      for (int pp = 1; pp <= 4; ++pp) {
        int64_t before = 0;
        for (int tp : {1, 2, 4, 8}) {
          const LayoutPlan* plan = report.find(tp, pp, 1);
          if (!plan) continue;
          QVERIFY2(plan->kvTokens.value_or(0) >= before, engine);
          before = plan->kvTokens.value_or(0);
        }
      }
    }
  }

  void jsonHasTheContractAndCanBeStarted() {
    const ModelSource model = makeModel(smolShape());
    const nlohmann::json json = nlohmann::json::parse(planToJson(planOf(model, "local", "headroom")).dump());
    QCOMPARE(QString::fromStdString(json["schema"].get<std::string>()), QStringLiteral("headroom.plan/1"));
    for (const char* key :
         {"name", "architecture", "layers", "hidden_size", "q_heads", "kv_heads", "head_dim", "intermediate_size", "vocab_size",
          "parameters", "checkpoint_bytes", "dtype", "quantization", "kv_bytes_per_token", "warnings"}) {
      QVERIFY2(json["model"].contains(key), key);
    }
    QCOMPARE(json["model"]["parameters"].get<int64_t>(), int64_t(134515008));   // SmolLM2-135M
    QVERIFY(json["layouts"][0]["predicted"]["decode_tokens_per_s"].is_null());  // unknown on host devices, not 0
    for (const auto& entry : json["layouts"]) {
      const auto layout = layoutFromJson(entry, "plan");
      QVERIFY2(layout.has_value(), layout ? "" : layout.error().message().c_str());
      QVERIFY(checkLayout(*layout, model).has_value());
    }
    QVERIFY(layoutFromJson(json, "plan").has_value());  // the recommended one
  }

  void everyEnginePlans_data() {
    QTest::addColumn<QString>("engine");
    for (const char* engine : {"headroom", "vllm", "sglang", "tensorrt-llm", "llama.cpp"})
      QTest::newRow(engine) << QString(engine);
  }
  void everyEnginePlans() {
    QFETCH(QString, engine);
    const ModelSource model = makeModel(qwen72Shape());
    const PlanReport report = planOf(model, "6xA800-80GB", engine.toUtf8().constData());
    QVERIFY(report.recommended.has_value());
    const LayoutPlan* stages = report.find(1, 6, 1);
    QVERIFY(stages && stages->verdict == Verdict::Fits && *stages->kvTokens > 0);
    Bytes weights, cache;
    int64_t layers = 0;
    for (const RankPlan& rank : stages->ranks) {
      weights += *rank.weights;
      cache += *rank.kvCache;
      layers += rank.slice.layers.size();
      QVERIFY(*rank.headroom >= *stages->headroom);
    }
    QCOMPARE(layers, int64_t(80));
    QCOMPARE(cache.count(), stages->kvCache->count());
    // llama.cpp leaves the embedding in main memory and keeps vectors in 32 bits; the others hold the whole checkpoint.
    const int64_t embedding = int64_t(152064) * 8192 * 2;
    const double expected = static_cast<double>(report.checkpointBytes.count() - (engine == "llama.cpp" ? embedding : 0));
    QVERIFY(std::abs(static_cast<double>(weights.count()) / expected - 1) < 0.001);
    QVERIFY(launchCommand(report, *stages, "model").has_value());
    for (const LayoutPlan& plan : report.layouts) QCOMPARE(plan.ranks.empty(), plan.verdict == Verdict::Invalid);
  }

  // Published examples of --mem-fraction-static's default.
  void sgLangStaticFractionOfTheLayout() {
    auto share = [&](const char* gpus, int tp) { return sgLangStaticFraction(*parseMachine(gpus), tp, 1); };
    QVERIFY(std::abs(share("1x23.99GiB", 1) - 0.847) < 0.001);
    QVERIFY(std::abs(share("4x79.65GiB", 4) - 0.824) < 0.001);
    QVERIFY(std::abs(share("8x140.4GiB", 8) - 0.897) < 0.001);
    // KV tokens: what the share leaves after weights, by bytes of a token on the rank.
    const PlanReport report = planOf(makeModel(qwen72Shape()), "4xA100-80GB", "sglang", [](PlanOptions& o) {
      o.gpuMemoryUtilization = 0.9;
      o.maxModelLen = 8192;
    });
    const LayoutPlan* plan = report.find(4, 1, 1);
    const RankPlan& rank = plan->ranks.front();
    const Bytes budget(static_cast<int64_t>(static_cast<double>(sgLangFreeAtStart(report.machine.gpus[0], 4).count()) * 0.9));
    QCOMPARE(*plan->kvTokens, (budget - *rank.weights - *rank.runtime).count() / (2 * 2 * 128 * 80 * 2));
  }

  void enginesByName() {
    QCOMPARE(parseEngine("vllm@0.21")->version, std::string("0.21"));
    QCOMPARE(parseEngine("VLLM")->kind, EngineKind::Vllm);
    QCOMPARE(parseEngine("llama.cpp")->kind, EngineKind::LlamaCpp);
    QVERIFY(!parseEngine("vlm"));
    QVERIFY(!parseEngine("vllm@"));
    QVERIFY(!parseEngine("vllm@newest"));
  }
};

QTEST_GUILESS_MAIN(PlannerTest)
#include "planner_test.moc"
