// SPDX-License-Identifier: Apache-2.0
// Launch commands: right options, safe quoting, a better stage split where there is one.
#include "core/launch/planner.h"
#include "tests/core/sample_model.h"

#include <QProcess>
#include <QtTest>

#include <numeric>

using namespace headroom;
using namespace headroom::test;

namespace {
PlanReport planOf(const ModelSource& model, const char* gpus, const char* engine, int64_t length) {
  PlanOptions options;
  options.engine = *parseEngine(engine);
  options.maxModelLen = length;
  return *planModel(model, *parseMachine(gpus, {6, 2_GiB}), options);
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
}  // namespace

class LaunchCommandTest : public QObject {
  Q_OBJECT
 private slots:
  void vllmNamesSizesAndGpus() {
    const PlanReport report = planOf(makeModel(qwen72Shape()), "6xA800-80GB", "vllm", 8192);
    const std::string all = launchCommand(report, *report.find(2, 3, 1), "Qwen/Qwen2.5-72B")->text;
    QVERIFY2(has(all, "vllm serve Qwen/Qwen2.5-72B --tensor-parallel-size 2 --pipeline-parallel-size 3") &&
                 has(all, "--max-model-len 8192"),
             all.c_str());
    QVERIFY(!has(all, "CUDA_VISIBLE_DEVICES"));
    const std::string four = launchCommand(report, *report.find(4, 1, 1), "Qwen/Qwen2.5-72B")->text;
    QVERIFY2(has(four, "CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve"), four.c_str());
    QVERIFY(!launchCommand(report, *report.find(6, 1, 1), "Qwen/Qwen2.5-72B"));
  }

  void eachEngineHasItsCommand() {
    const ModelSource model = makeModel(qwen72Shape());
    const auto text = [&](const char* engine, int tp, int pp) {
      const PlanReport report = planOf(model, "6xA800-80GB", engine, 8192);
      return launchCommand(report, *report.find(tp, pp, 1), "model")->text;
    };
    QVERIFY2(has(text("sglang", 2, 3), "python3 -m sglang.launch_server --model-path model --tp-size 2 --pp-size 3"),
             text("sglang", 2, 3).c_str());
    QVERIFY2(has(text("tensorrt-llm", 2, 3), "trtllm-serve serve model --tp_size 2 --pp_size 3"),
             text("tensorrt-llm", 2, 3).c_str());
    // 81 layers with the output layer; more than 54 on the last two devices of three only.
    QVERIFY2(has(text("llama.cpp", 1, 3), "llama-server -m model -ngl 999 -sm layer -ts 27,27,27 -c 8192 -np 1"),
             text("llama.cpp", 1, 3).c_str());
    QVERIFY2(has(text("llama.cpp", 6, 1), "-sm tensor -fa on"), text("llama.cpp", 6, 1).c_str());
    const PlanReport vllm = planOf(model, "6xA800-80GB", "vllm", 8192);
    // Engines take the folder of a configuration, not its file.
    const auto modelIn = [&](const char* argument) { return launchCommand(vllm, *vllm.find(4, 1, 1), argument)->text; };
    QVERIFY2(has(modelIn("/models/a b/config.json"), "vllm serve '/models/a b' "), modelIn("/models/a b/config.json").c_str());
    QVERIFY2(has(modelIn("models/config.json"), "vllm serve models "), modelIn("models/config.json").c_str());
    QVERIFY2(has(modelIn("config.json"), "vllm serve . "), modelIn("config.json").c_str());
    const std::string docker = launchCommand(vllm, *vllm.find(4, 1, 1), "/models/a b")->docker;
    QVERIFY2(has(docker, "docker run --rm --gpus '\"device=0,1,2,3\"' --shm-size 16g") &&
                 has(docker, "-v '/models/a b:/models/a b:ro' vllm/vllm-openai '/models/a b' --tensor-parallel-size 4"),
             docker.c_str());
  }

  // A command starts what was planned: what differs from the engine's defaults is in it, and nothing else.
  void headroomsCommandSaysWhatThePlanTook() {
    const ModelSource model = makeModel(qwen72Shape());
    PlanOptions options;
    options.maxModelLen = 8192;
    const Machine machine = *parseMachine("6xA800-80GB", {6, 2_GiB});
    const auto text = [&] {
      const auto report = planModel(model, machine, options);
      return launchCommand(*report, *report->find(2, 2, 1), "model")->text;
    };
    QCOMPARE(text(), std::string("headroom-engine serve model --tp 2 --pp 2 --gpus 0,1,2,3 --max-model-len 8192 --dtype bfloat16"));
    options.kvCacheDType = DType::F8E4M3;
    options.maxNumSeqs = 32;
    options.maxNumBatchedTokens = 4096;
    options.gpuMemoryUtilization = 0.85;
    options.enforceEager = true;
    QCOMPARE(text(), std::string("headroom-engine serve model --tp 2 --pp 2 --gpus 0,1,2,3 --max-model-len 8192 --max-num-seqs 32 "
                                 "--max-num-batched-tokens 4096 --gpu-memory-utilization 0.85 --dtype bfloat16 "
                                 "--kv-cache-dtype fp8_e4m3 --enforce-eager"));
  }

  void llamaCppSpellsTypesItsOwnWay() {
    const ModelSource model = makeModel(qwen72Shape());
    const auto text = [&](DType type) {
      PlanOptions options;
      options.engine = *parseEngine("llama.cpp");
      options.maxModelLen = 8192;
      options.kvCacheDType = type;
      const auto report = planModel(model, *parseMachine("6xA800-80GB", {6, 2_GiB}), options);
      return report ? launchCommand(*report, *report->find(1, 3, 1), "model")->text : report.error().message();
    };
    QVERIFY2(has(text(DType::Q8_0), "-ctk q8_0 -ctv q8_0"), text(DType::Q8_0).c_str());
    QVERIFY2(has(text(DType::BF16), "-ctk bf16 -ctv bf16"), text(DType::BF16).c_str());
  }

  void sgLangQuantizesWhileLoadingWhereThePlanDoes() {
    PlanOptions options;
    options.engine = *parseEngine("sglang");
    options.quantization = "fp8";
    const auto report = planModel(makeModel(qwen72Shape()), *parseMachine("6xA800-80GB", {6, 2_GiB}), options);
    QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
    const std::string text = launchCommand(*report, *report->find(2, 1, 1), "model")->text;
    QVERIFY2(has(text, "--quantization fp8"), text.c_str());
  }

  // 72B AWQ on six cards of 12 GB: the ends hold 2.5 GB each besides, so that 13 or 14 layers everywhere leave little for the cache.
  void partitionIsBalancedByBytes() {
    const auto model = openModel("Qwen/Qwen2.5-72B-Instruct-AWQ");
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const PlanReport report = planOf(*model, "6x12GB", "vllm", 2048);
    const LayoutPlan& plan = *report.find(1, 6, 1);
    const std::string text = launchCommand(report, plan, "72b")->text;
    QVERIFY2(has(text, "VLLM_PP_LAYER_PARTITION="), text.c_str());
    const size_t at = text.find('=') + 1;
    std::vector<int64_t> layers;
    for (const QString& part : QString::fromStdString(text.substr(at, text.find(' ') - at)).split(','))
      layers.push_back(part.toInt());
    QCOMPARE(std::accumulate(layers.begin(), layers.end(), int64_t{0}), int64_t(80));
    QVERIFY(layers.front() < 13 && layers.back() < 13);  // fewer on the ends than 13,13,13,14,14,13
    QVERIFY(plan.partition.front().gain == 0 || plan.partition.front().gain > 0.5);
    // Equal stages are best where the weights are nothing beside the cache.
    const PlanReport small = planOf(makeModel(smolShape()), "3x24GiB", "vllm", 2048);
    QVERIFY(small.find(1, 3, 1)->partition.empty());
  }

  void everyOptionIsExplained() {
    const PlanReport report = planOf(makeModel(smolShape()), "local", "headroom", 2048);
    const auto command = launchCommand(report, *report.find(3, 2, 1), "model");
    QVERIFY2(has(command->text, "headroom-engine serve model --tp 3 --pp 2"), command->text.c_str());
    for (const auto& option : command->explained) {
      QVERIFY2(has(command->text, option.option), option.option.c_str());
      QVERIFY(!option.why.empty());
    }
  }

  void pathsAreQuotedForTheShell() {
    const PlanReport report = planOf(makeModel(smolShape()), "local", "headroom", 2048);
    const std::string path = "/tmp/it's; $(touch pwned) `x` \"y\" *";
    const std::string text = launchCommand(report, *report.find(1, 1, 1), path)->text;
    // What a shell hands on as the third word is the path itself.
    QProcess shell;
    shell.start("sh", {"-c", "set -- " + QString::fromStdString(text) + "; printf %s \"$3\""});
    QVERIFY(shell.waitForFinished());
    QCOMPARE(shell.readAllStandardOutput().toStdString(), path);
  }
};

QTEST_GUILESS_MAIN(LaunchCommandTest)
#include "launch_command_test.moc"
