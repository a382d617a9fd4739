// SPDX-License-Identifier: Apache-2.0
// Plans asked the other way round, and corrected by what an engine printed.
#include "core/launch/plan_search.h"
#include "core/launch/start_log.h"
#include "tests/core/sample_model.h"

#include <QtTest>

#include <cmath>

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

// What vLLM 0.19 printed for CodeLlama-7b-hf on one H100 at utilization 0.95.
const char* const kVllmLog =
    "INFO [api_server.py:1896] vLLM API server version 0.19.0\n"
    "INFO [core.py:76] Initializing a V1 LLM engine (v0.19.0) with config: model='codellama/CodeLlama-7b-hf', dtype=torch.bfloat16, "
    "max_seq_len=8192, tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, enforce_eager=False\n"
    "INFO non-default args: {'model': 'codellama/CodeLlama-7b-hf', 'gpu_memory_utilization': 0.95}\n"
    "INFO [gpu_model_runner.py:2653] Model loading took 12.56 GiB memory and 5.1 seconds\n"
    "DEBUG Memory profiling takes 4.2 seconds. Total non KV cache memory: 13.57GiB; torch peak memory increase: 0.77GiB; non-torch "
    "forward increase memory: 0.25GiB; weights memory: 12.56GiB.\n"
    "INFO [gpu_worker.py:298] Available KV cache memory: 61.66 GiB\n"
    "INFO [kv_cache_utils.py:1087] GPU KV cache size: 126,256 tokens\n"
    "INFO [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens per request: 15.41x\n"
    "INFO [gpu_model_runner.py:3480] Graph capturing finished in 9 secs, took 0.89 GiB\n";

ModelSource codeLlama7b() {
  ModelShape shape{32, 4096, 32, 32, 128, 11008, 32016};
  shape.tied = false;
  shape.maxPositions = 16384;
  return makeModel(shape);
}

}  // namespace

class PlanAnswersTest : public QObject {
  Q_OBJECT
 private slots:
  // The longest context fits when it is asked for, and one block more does not; so for the number of requests.
  void longestAndMostAreExact_data() {
    QTest::addColumn<QString>("engine");
    for (const char* engine : {"headroom", "vllm", "sglang", "tensorrt-llm", "lmdeploy", "llama.cpp"})
      QTest::addRow("%s", engine) << QString(engine);
  }
  void longestAndMostAreExact() {
    QFETCH(QString, engine);
    ModelShape shape = qwen72Shape();
    shape.maxPositions = 1 << 20;
    const ModelSource model = makeModel(shape);
    PlanOptions options;
    options.engine = *parseEngine(engine.toStdString());
    options.maxModelLen = 4096;
    options.concurrency = 2;
    const bool stages = engine == "llama.cpp";
    const int tp = stages ? 1 : 4, pp = stages ? 4 : 1;
    const Machine machine = *parseMachine("4xA100-80GB");
    const auto plan = planLayout(model, machine, options, tp, pp, 1);
    QVERIFY(plan.has_value());
    QVERIFY(!plan->answers.empty());
    const int64_t longest = *plan->answers.front().longestContext, most = *plan->answers.front().mostRequests;
    QVERIFY(longest > 4096 && longest < shape.maxPositions);
    const auto verdictAt = [&](int64_t length, int64_t requests) {
      PlanOptions asked = options;
      asked.maxModelLen = length;
      asked.concurrency = requests;
      return planLayout(model, machine, asked, tp, pp, 1)->verdict;
    };
    QVERIFY(verdictAt(longest, 2) != Verdict::DoesNotFit);
    QCOMPARE(verdictAt(longest + 64, 2), Verdict::DoesNotFit);
    QVERIFY(verdictAt(4096, most) != Verdict::DoesNotFit);
    if (engine != "tensorrt-llm") QCOMPARE(verdictAt(4096, most + 1), Verdict::DoesNotFit);
  }

  void seriesGrowsWithTheContext() {
    const PlanReport report = planOf(makeModel(qwen72Shape()), "4xA100-80GB", "vllm");
    const LayoutPlan& plan = *report.find(4, 1, 1);
    QVERIFY(plan.contextSeries.size() > 10);
    for (size_t i = 1; i < plan.contextSeries.size(); ++i) {
      QVERIFY(plan.contextSeries[i].tokens > plan.contextSeries[i - 1].tokens);
      QVERIFY(plan.contextSeries[i].kvCache > plan.contextSeries[i - 1].kvCache);
    }
    QCOMPARE(plan.contextSeries.back().tokens, int64_t(32768));
    // 80 layers x 2 KV heads x 256 elements x 2 bytes a token on each of four ranks.
    QCOMPARE(plan.contextSeries.back().kvCache.count(), int64_t(32768) * 80 * 2 * 256 * 2);
    const nlohmann::json json = planToJson(report, "model");
    QCOMPARE(json["context_series"][0]["points"].size(), plan.contextSeries.size());
    QVERIFY(json["recommended"]["launch"]["command"].get<std::string>().find("vllm serve model") != std::string::npos);
  }

  void wasteIsNamed() {
    ModelShape shape = qwen72Shape();
    const PlanReport report = planOf(makeModel(shape), "16xA100-80GB", "vllm");
    const LayoutPlan& sixteen = *report.find(16, 1, 1);  // 8 KV heads on 16 ranks
    const auto kinds = [](const LayoutPlan& plan) {
      QStringList list;
      for (const WasteItem& item : plan.waste) list << QString::fromStdString(item.kind);
      return list;
    };
    QVERIFY(kinds(sixteen).contains("kv_copies"));
    QCOMPARE(sixteen.waste.front().bytes.count(), sixteen.kvCache->count() / 2);
    QVERIFY(kinds(*report.find(4, 1, 1)).contains("idle_gpus"));
    QVERIFY(!kinds(*report.find(8, 1, 1)).contains("kv_copies"));
  }

  // Experts dealt whole: each rank has half of them, columns uncut; an odd number gives the first rank one more.
  void wholeExpertsAreCounted() {
    ModelShape shape{4, 1024, 16, 8, 64, 4096, 32000};
    shape.tied = false;
    shape.experts = 9;
    shape.expertWidth = 512;
    const ModelSource model = makeModel(shape);
    const PlanReport cut = planOf(model, "2xH100-80GB", "vllm"),
                     whole = planOf(model, "2xH100-80GB", "vllm", [](PlanOptions& o) { o.expertParallel = true; });
    const int64_t expert = 4 * 3 * int64_t(512) * 1024 * 2;  // in all layers, bytes
    const LayoutPlan& plan = *whole.find(2, 1, 1);
    QCOMPARE(plan.ep, 2);
    // 9 halves against 5 of 9.
    QCOMPARE(plan.ranks[0].weights->count() - cut.find(2, 1, 1)->ranks[0].weights->count(), expert / 2);
    const auto refused = planModel(model, *parseMachine("2xH100-80GB"), [] {
      PlanOptions options;
      options.expertParallel = true;
      return options;
    }());
    QVERIFY(!refused.has_value());
    QVERIFY(refused.error().message().find("--expert-parallel") != std::string::npos);
  }

  void mixedCardsHoldWhatTheyHaveRoomFor() {
    const ModelSource model = makeModel(qwen72Shape());
    const PlanReport report = planOf(model, "2x80GiB,1x24GiB", "headroom", [](PlanOptions& o) { o.maxModelLen = 4096; });
    const LayoutPlan& plan = *report.find(1, 3, 1);
    QVERIFY2(plan.verdict != Verdict::DoesNotFit, plan.reasons.empty() ? "" : plan.reasons.front().message.c_str());
    QVERIFY(plan.ranks[2].slice.layers.size() < 15 && plan.ranks[0].slice.layers.size() > 30);
    const PlanReport vllm = planOf(model, "2x80GiB,1x24GiB", "vllm", [](PlanOptions& o) { o.maxModelLen = 4096; });
    QCOMPARE(vllm.find(1, 3, 1)->verdict, Verdict::DoesNotFit);  // 27,27,26 whatever the cards
    QVERIFY(!vllm.find(1, 3, 1)->partition.empty());
    QCOMPARE(vllm.find(1, 3, 1)->limitingGpu, std::optional<int>(2));
  }

  void fewestGpusForAWish() {
    const ModelSource model = makeModel(qwen72Shape());
    PlanOptions options;
    options.engine = *parseEngine("vllm");
    options.maxModelLen = 8192;
    options.concurrency = 4;
    const auto report = searchMachines(model, options, {}, {"A100-80GB", "H200-141GB", "L4-24GB", "T4-16GB"});
    QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
    QVERIFY(report->answers.size() >= 2);
    const WishAnswer& first = report->answers.front();
    QCOMPARE(first.count, 2);  // 135 GiB of weights on cards of 139
    // One fewer does not grant it.
    for (const WishAnswer& answer : report->answers) {
      const auto fewer = planModel(model, *parseMachine(std::to_string(answer.count - 1) + answer.gpus.substr(answer.gpus.find('x'))), options);
      if (!fewer) continue;
      for (const LayoutPlan& plan : fewer->layouts) {
        if (plan.tp * plan.pp * plan.dp == answer.count - 1)
          QVERIFY(plan.verdict == Verdict::DoesNotFit || plan.verdict == Verdict::Invalid);
      }
    }
    // A speed that only bandwidth gives, and prices that turn the order.
    Wish fast;
    fast.decodeTokensPerSecond = 30;
    const auto faster = searchMachines(model, options, fast, {"A100-80GB", "H200-141GB"});
    for (const WishAnswer& answer : faster->answers) QVERIFY(1000 / *answer.predicted.itlMs >= 30);
    Wish cheap;
    cheap.prices = {{"A100-80GB", 1.0}, {"H200-141GB", 9.0}};
    const auto cheapest = searchMachines(model, options, cheap, {"A100-80GB", "H200-141GB"});
    QVERIFY(cheapest->answers.front().gpus.find("A100") != std::string::npos);
    QVERIFY(*cheapest->answers.front().price <= *cheapest->answers.back().price);
    QVERIFY(!searchMachines(model, options, {}, {"B999"}).has_value());
  }

  void enginesBesideEachOther() {
    const auto answers = compareEngines(makeModel(qwen72Shape()), *parseMachine("6xA800-80GB"), PlanOptions());
    QCOMPARE(answers.size(), size_t(6));
    for (const EngineAnswer& answer : answers) {
      QVERIFY2(answer.error.empty(), answer.error.c_str());
      QVERIFY(answer.best.has_value());
      const bool own = answer.engine.kind == EngineKind::Headroom;
      QCOMPARE(answer.accepted == answer.layouts, own);  // only Headroom runs every size of six
      QVERIFY(*answer.mostKvTokens >= *answer.best->kvTokens);
    }
    QVERIFY(answers[1].firstRefusal.find("64 / 6") != std::string::npos);
  }

  void readsVllm() {
    const auto log = readStartLog(kVllmLog, "log");
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    QCOMPARE(log->engine.kind, EngineKind::Vllm);
    QCOMPARE(log->engine.version, std::string("0.19.0"));
    QCOMPARE(log->model, std::string("codellama/CodeLlama-7b-hf"));
    QCOMPARE(*log->tp * *log->pp, 1);
    QCOMPARE(*log->maxModelLen, int64_t(8192));
    QCOMPARE(*log->utilization, 0.95);
    QCOMPARE(*log->kvTokens, int64_t(126256));
    QCOMPARE(*log->maxConcurrency, 15.41);
    QCOMPARE(std::lround(log->weights->gib() * 100), 1256L);
    QCOMPARE(std::lround(log->activations->gib() * 100), 77L);
    QCOMPARE(std::lround(log->runtime->gib() * 100), 25L);
    QCOMPARE(std::lround(log->graphs->gib() * 100), 89L);
    QCOMPARE(std::lround(log->kvCache->gib() * 100), 6166L);
  }

  void readsSgLangAndLlamaCpp() {
    const auto sglang = readStartLog(
        "[2026-02-01 10:00:00] server_args=ServerArgs(model_path='meta-llama/Llama-3.1-8B-Instruct', tp_size=1, mem_fraction_static=0.87)\n"
        "[2026-02-01 10:00:05] Load weight begin. avail mem=78.60 GB\n"
        "[2026-02-01 10:00:15] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.50 GB, mem usage=15.10 GB.\n"
        "[2026-02-01 10:00:16] KV Cache is allocated. #tokens: 434000, K size: 26.49 GB, V size: 26.49 GB\n"
        "[2026-02-01 10:00:20] Capture cuda graph end. Time elapsed: 3.51 s. mem usage=0.85 GB. avail mem=9.10 GB.\n"
        "[2026-02-01 10:00:21] max_total_num_tokens=434000, chunked_prefill_size=8192, context_len=131072\n",
        "log");
    QVERIFY2(sglang.has_value(), sglang ? "" : sglang.error().message().c_str());
    QCOMPARE(sglang->engine.kind, EngineKind::SgLang);
    QCOMPARE(*sglang->kvTokens, int64_t(434000));
    QCOMPARE(std::lround(sglang->kvCache->gib() * 100), 5298L);
    QCOMPARE(std::lround(sglang->weights->gib() * 100), 1510L);
    QCOMPARE(*sglang->utilization, 0.87);
    QCOMPARE(*sglang->maxModelLen, int64_t(131072));

    const auto llama = readStartLog(
        "llama_model_loader: loaded meta data with 33 key-value pairs and 579 tensors from /models/q.gguf (version GGUF V3 (latest))\n"
        "load_tensors:        CUDA0 model buffer size =  9512.80 MiB\n"
        "load_tensors:        CUDA1 model buffer size =  9100.20 MiB\n"
        "load_tensors:   CPU_Mapped model buffer size =   417.66 MiB\n"
        "llama_context: n_ctx         = 32768\n"
        "llama_kv_cache_unified:      CUDA0 KV buffer size =  4096.00 MiB\n"
        "llama_kv_cache_unified:      CUDA1 KV buffer size =  3840.00 MiB\n"
        "llama_context:      CUDA0 compute buffer size =   328.00 MiB\n",
        "log");
    QVERIFY(llama.has_value());
    QCOMPARE(llama->engine.kind, EngineKind::LlamaCpp);
    QCOMPARE(llama->model, std::string("/models/q.gguf"));
    QCOMPARE(std::lround(llama->weights->gib() * 1024), 9513L);  // the fullest device; main memory is none
    QCOMPARE(std::lround(llama->kvCache->gib() * 1024), 3840L);
    QCOMPARE(*llama->kvTokens, int64_t(32768));
    QVERIFY(!readStartLog("INFO vLLM GPU KV cache size: 99,999,999,999,999,999,999 tokens\n", "log").has_value());
    QVERIFY(!readStartLog("hello\n", "log").has_value());
    QVERIFY(!readStartLog("INFO vLLM API server version 0.19.0\n", "log").has_value());
  }

  // After a correction, the plan of the same start says what was measured.
  void correctionMakesThePlanSayWhatWasMeasured() {
    const ModelSource model = codeLlama7b();
    const Machine machine = *parseMachine("H100-80GB");
    const auto log = readStartLog(kVllmLog, "log");
    PlanOptions options;
    options.engine = log->engine;
    options.maxModelLen = log->maxModelLen;
    options.gpuMemoryUtilization = log->utilization;
    const auto before = planLayout(model, machine, options, 1, 1, 1);
    const std::vector<MeasuredTerm> terms = compareWithLog(*before, *log);
    QCOMPARE(terms.size(), size_t(7));
    QCOMPARE(terms[0].name, std::string("weights"));
    QVERIFY(std::abs(*terms[0].predicted / *terms[0].measured - 1) < 0.01);
    const auto correction = correctionFrom(*before, *log);
    QVERIFY(correction.has_value());
    options.corrections = {*correction};
    const auto after = planLayout(model, machine, options, 1, 1, 1);
    QVERIFY(std::abs(*after->kvTokens - *log->kvTokens) <= 32);  // the log's GiB have two digits
    QCOMPARE(after->memoryProvenance, Provenance::MeasuredHere);
    // Another kind of layout is not corrected by it, and the file keeps every digit.
    options.corrections[0].severalRanks = true;
    QCOMPARE(*planLayout(model, machine, options, 1, 1, 1)->kvTokens, *before->kvTokens);
    const auto again = correctionFromJson(correctionToJson(*correction));
    QVERIFY(again && again->runtime == correction->runtime && again->activations == correction->activations);
    QVERIFY(!correctionFromJson(nlohmann::json::parse(R"({"runtime_bytes": "1"})")));
  }
};

QTEST_GUILESS_MAIN(PlanAnswersTest)
#include "plan_answers_test.moc"
