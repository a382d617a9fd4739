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

  void planAgreesWithTheEnginesMemoryPlan_data() {
    QTest::addColumn<QString>("gpus");
    QTest::newRow("host devices") << "local";
    QTest::newRow("CUDA devices") << "6x2GiB";
  }
  void planAgreesWithTheEnginesMemoryPlan() {
    QFETCH(QString, gpus);
    const ModelSource model = makeModel(smolShape());
    const PlanReport report = planOf(model, qPrintable(gpus), "headroom", [](PlanOptions& o) { o.maxModelLen = 1024; });
    const Machine machine = *parseMachine(gpus.toStdString(), {6, 2_GiB});
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
        QCOMPARE(plan.ranks[i].graphs->count(), memory->ranks[i].graphs.count());
        QCOMPARE(plan.ranks[i].runtime->count(), memory->ranks[i].runtime.count());
        QCOMPARE(memory->ranks[i].runtime.count() > 0, gpus != "local");
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

  // An option that an engine takes changes what is planned or what is typed; what would change nothing is refused by name.
  void everyOptionIsHonouredOrRefused_data() {
    QTest::addColumn<QString>("engine");
    QTest::addColumn<QString>("option");
    for (const char* engine : {"headroom", "vllm", "vllm@0.10", "sglang", "tensorrt-llm", "lmdeploy", "llama.cpp"})
      for (const char* option : {"--dtype", "--quantization", "--kv-cache-dtype", "--max-model-len", "--gpu-memory-utilization",
                                 "--max-num-seqs", "--max-num-batched-tokens", "--enforce-eager", "--concurrency", "--input-len",
                                 "--output-len", "--expert-parallel", "--attention-data-parallel"})
        QTest::addRow("%s %s", engine, option) << QString(engine) << QString(option);
  }
  void everyOptionIsHonouredOrRefused() {
    QFETCH(QString, engine);
    QFETCH(QString, option);
    if (engine == "lmdeploy" && option == "--enforce-eager") QSKIP("TurboMind records no graphs: what is asked holds as it is");
    const auto model = openModel("Qwen/Qwen3-30B-A3B");
    QVERIFY(model);
    const Machine machine = *parseMachine("4xH100-80GB");
    PlanOptions plain;
    plain.engine = *parseEngine(engine.toStdString());
    PlanOptions asked = plain;
    if (option == "--dtype") asked.dtype = DType::F32;
    if (option == "--quantization") asked.quantization = "fp8";
    if (option == "--kv-cache-dtype") asked.kvCacheDType = engine == "llama.cpp" ? DType::Q8_0 : DType::F8E4M3;
    if (option == "--max-model-len") asked.maxModelLen = 4096;
    if (option == "--gpu-memory-utilization") asked.gpuMemoryUtilization = 0.77;
    if (option == "--max-num-seqs") asked.maxNumSeqs = 33;
    if (option == "--max-num-batched-tokens") asked.maxNumBatchedTokens = 3000;
    if (option == "--enforce-eager") asked.enforceEager = true;
    if (option == "--concurrency") asked.concurrency = 7;
    if (option == "--input-len") asked.inputLen = 777;
    if (option == "--output-len") asked.outputLen = 333;
    if (option == "--expert-parallel") asked.expertParallel = true;
    if (option == "--attention-data-parallel") asked.attentionDataParallel = true;
    const auto planned = [&](const PlanOptions& options) {
      const auto report = planModel(*model, machine, options);
      if (!report) return report.error().message();
      nlohmann::json json = planToJson(*report, "model");
      json.erase("options");  // which only repeats what was asked
      return json.dump();
    };
    const std::string after = planned(asked);
    QVERIFY(planned(plain).front() == '{');
    QVERIFY2(after != planned(plain), "accepted without any effect");
    if (after.front() != '{') QVERIFY2(after.rfind(option.toStdString(), 0) == 0, after.c_str());
  }

  // The command carries what was asked of the engine, in the engine's own words.
  void askedLimitsAreInTheCommand_data() {
    QTest::addColumn<QString>("engine");
    QTest::addColumn<QString>("words");
    QTest::newRow("vllm") << "vllm"
                          << "--gpu-memory-utilization 0.77|--max-num-seqs 33|--max-num-batched-tokens 3000|--enforce-eager";
    QTest::newRow("sglang")
        << "sglang"
        << "--mem-fraction-static 0.77|--max-running-requests 33|--chunked-prefill-size 3000|--disable-cuda-graph";
    QTest::newRow("tensorrt-llm") << "tensorrt-llm"
                                  << "--kv_cache_free_gpu_memory_fraction 0.77|--max_batch_size 33|--max_num_tokens 3000|"
                                     "--extra_llm_api_options options.yaml";
    QTest::newRow("lmdeploy") << "lmdeploy"
                              << "--cache-max-entry-count 0.77|--max-batch-size 33|--max-prefill-token-num 3000";
    QTest::newRow("llama.cpp") << "llama.cpp"
                               << "GGML_CUDA_DISABLE_GRAPHS=1|-b 3000|-ub 3000";
    QTest::newRow("headroom") << "headroom"
                              << "--gpu-memory-utilization 0.77|--max-num-seqs 33|--max-num-batched-tokens 3000|--enforce-eager";
  }
  void askedLimitsAreInTheCommand() {
    QFETCH(QString, engine);
    QFETCH(QString, words);
    const bool bySlots = engine == "llama.cpp";
    PlanOptions options;
    options.engine = *parseEngine(engine.toStdString());
    options.maxModelLen = 4096;
    options.maxNumBatchedTokens = 3000;
    options.enforceEager = true;
    if (!bySlots) options.gpuMemoryUtilization = 0.77;
    if (!bySlots) options.maxNumSeqs = 33;
    const auto report = planModel(*openModel("Qwen/Qwen3-30B-A3B"), *parseMachine("4xH100-80GB"), options);
    QVERIFY2(report, report ? "" : report.error().message().c_str());
    QVERIFY(report->recommended);
    const LayoutPlan& best = *report->find(report->recommended->tp, report->recommended->pp, report->recommended->dp);
    const std::string command = launchCommand(*report, best, "model")->text;
    for (const QString& word : words.split(QLatin1Char('|')))
      QVERIFY2(QString::fromStdString(command).contains(word), (word.toStdString() + " in " + command).c_str());
  }

  // A checkpoint that was only assumed has no name that a command could start.
  void anAssumedCheckpointIsAPlaceInTheCommand() {
    PlanOptions options;
    options.engine = *parseEngine("vllm");
    options.quantization = "awq";
    const auto report = planModel(*openModel("Qwen/Qwen2.5-7B-Instruct"), *parseMachine("1xL4-24GB"), options);
    QVERIFY2(report, report ? "" : report.error().message().c_str());
    const auto command = launchCommand(*report, report->layouts.front(), "/models/qwen");
    QVERIFY2(QString::fromStdString(command->text).startsWith("vllm serve QUANTIZED_CHECKPOINT "), command->text.c_str());
    QCOMPARE(command->explained.front().option, std::string("QUANTIZED_CHECKPOINT"));
    options.quantization.reset();
    const auto plain = planModel(*openModel("Qwen/Qwen2.5-7B-Instruct"), *parseMachine("1xL4-24GB"), options);
    QVERIFY(QString::fromStdString(launchCommand(*plain, plain->layouts.front(), "/models/qwen")->text)
                .startsWith("vllm serve /models/qwen"));
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
