// SPDX-License-Identifier: Apache-2.0
// Can it run on 3, 5, 6 or 7 GPUs? One table over engines and models: sizes and stages as the engines' sources deal them.
#include "core/layout/rules/even_checks.h"
#include "core/layout/rules/llama_cpp.h"
#include "tests/core/sample_model.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::test;

namespace {

ModelSource awqOf(ModelShape shape) {
  ModelSource model = makeModel(shape);
  QuantizationConfig quantization;
  quantization.method = "awq";
  quantization.bits = 4;
  quantization.groupSize = 128;
  model.config.quantization = quantization;
  return model;
}

ModelShape shape7b() {
  ModelShape shape{28, 3584, 28, 4, 128, 18944, 152064};
  shape.tied = false;
  shape.biases = true;
  shape.maxPositions = 32768;
  return shape;
}

ModelSource modelNamed(const QString& name) {
  if (name == "72B") return makeModel(qwen72Shape());
  ModelShape padded = qwen72Shape();
  padded.intermediate = 29696;
  if (name == "72B-AWQ") return awqOf(qwen72Shape());
  if (name == "72B-AWQ-padded") return awqOf(padded);
  return name == "7B-AWQ" ? awqOf(shape7b()) : makeModel(shape7b());
}

QString listOf(const std::vector<Range>& ranges) {
  QStringList sizes;
  for (const Range& range : ranges) sizes << QString::number(range.size());
  return sizes.join(',');
}

EngineKind kindNamed(const QString& name) {
  for (const EngineKind kind :
       {EngineKind::Vllm, EngineKind::SgLang, EngineKind::TensorRtLlm, EngineKind::LmDeploy, EngineKind::LlamaCpp})
    if (name == QString::fromUtf8(engineName(kind).data(), static_cast<qsizetype>(engineName(kind).size()))) return kind;
  return EngineKind::Headroom;
}

}  // namespace

class RulesTableTest : public QObject {
  Q_OBJECT
 private slots:
  void acceptedSizes_data() {
    QTest::addColumn<QString>("engine");
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("sizes");
    const auto row = [](const char* engine, const char* model, const char* sizes) {
      QTest::addRow("%s %s", engine, model) << QString(engine) << QString(model) << QString(sizes);
    };
    for (const char* engine : {"vllm", "sglang"}) {
      row(engine, "72B", "1,2,4,8");
      row(engine, "72B-AWQ", "1");  // 231 groups share no factor with 64 heads
      row(engine, "72B-AWQ-padded", "1,2,4,8");
      row(engine, "7B", "1,2,4");  // 7 divides 28 heads, and fails on KV heads, columns and vocabulary
      row(engine, "7B-AWQ", "1,2,4");
    }
    row("tensorrt-llm", "72B", "1,2,4,8");
    row("tensorrt-llm", "72B-AWQ", "1");
    row("tensorrt-llm", "7B", "1,2,4");
    row("lmdeploy", "72B", "1,2,4,8");
    row("lmdeploy", "72B-AWQ", "1,2,4,8");  // columns are padded
    row("lmdeploy", "7B", "1,2,4");
  }
  void acceptedSizes() {
    QFETCH(QString, engine);
    QFETCH(QString, model);
    QFETCH(QString, sizes);
    const ModelSource source = modelNamed(model);
    const Machine machine = *parseMachine("8xH100-80GB");
    const EngineRules& rules = rulesOf(kindNamed(engine));
    const std::string method = source.config.quantization ? source.config.quantization->method : "";
    const RuleContext context{source, machine, rules.newestKnown(), std::nullopt, method};
    QStringList accepted;
    for (int size : acceptedTpSizes(rules, context, 8)) accepted << QString::number(size);
    QCOMPARE(accepted.join(','), sizes);
  }

  void stagesOfOddCounts_data() {
    QTest::addColumn<QString>("engine");
    QTest::addColumn<QString>("model");
    QTest::addColumn<int>("stages");
    QTest::addColumn<QString>("layers");
    const auto row = [](const char* engine, const char* model, int stages, const char* layers) {
      QTest::addRow("%s %s on %d", engine, model, stages) << QString(engine) << QString(model) << stages << QString(layers);
    };
    row("vllm", "72B", 3, "27,27,26");
    row("vllm", "72B", 5, "16,16,16,16,16");
    row("vllm", "72B", 6, "13,13,13,14,14,13");
    row("vllm", "72B", 7, "11,11,11,12,12,12,11");
    row("vllm", "7B", 3, "9,10,9");
    row("vllm", "7B", 5, "5,6,6,6,5");
    row("vllm", "7B", 6, "4,5,5,5,5,4");
    row("vllm", "7B", 7, "4,4,4,4,4,4,4");
    row("sglang", "72B", 3, "26,27,27");
    row("sglang", "72B", 6, "13,13,13,13,14,14");
    row("sglang", "72B", 7, "11,11,11,11,12,12,12");
    row("sglang", "7B", 3, "9,9,10");
    row("sglang", "7B", 5, "5,5,6,6,6");
    row("sglang", "7B", 6, "4,4,5,5,5,5");
    row("tensorrt-llm", "72B", 3, "27,27,26");
    row("tensorrt-llm", "72B", 6, "14,14,13,13,13,13");
    row("tensorrt-llm", "72B", 7, "12,12,12,11,11,11,11");
    row("tensorrt-llm", "7B", 3, "10,9,9");
    row("tensorrt-llm", "7B", 5, "6,6,6,5,5");
    row("tensorrt-llm", "7B", 6, "5,5,5,5,4,4");
    row("sglang", "72B", 5, "16,16,16,16,16");
    row("sglang", "7B", 7, "4,4,4,4,4,4,4");
    row("tensorrt-llm", "72B", 5, "16,16,16,16,16");
    row("tensorrt-llm", "7B", 7, "4,4,4,4,4,4,4");
    // Groups of weights do not matter to stages: AWQ runs on any count of GPUs, padded or not.
    for (const char* model : {"72B-AWQ", "72B-AWQ-padded"}) {
      row("vllm", model, 3, "27,27,26");
      row("vllm", model, 5, "16,16,16,16,16");
      row("vllm", model, 6, "13,13,13,14,14,13");
      row("vllm", model, 7, "11,11,11,12,12,12,11");
      row("sglang", model, 3, "26,27,27");
      row("sglang", model, 5, "16,16,16,16,16");
      row("sglang", model, 6, "13,13,13,13,14,14");
      row("sglang", model, 7, "11,11,11,11,12,12,12");
    }
    row("llama.cpp", "72B", 3, "27,27,26");
    // The output layer counts as one: the last device has one layer less. Any count, any model.
    row("llama.cpp", "72B", 5, "17,16,16,16,15");
    row("llama.cpp", "72B", 6, "14,13,14,13,14,12");
    row("llama.cpp", "72B", 7, "12,12,11,12,11,12,10");
    row("llama.cpp", "7B", 3, "10,10,8");
    row("llama.cpp", "7B", 5, "6,6,6,6,4");
  }
  void stagesOfOddCounts() {
    QFETCH(QString, engine);
    QFETCH(QString, model);
    QFETCH(int, stages);
    QFETCH(QString, layers);
    const ModelSource source = modelNamed(model);
    const Machine machine = *parseMachine("8xH100-80GB");
    const EngineRules& rules = rulesOf(kindNamed(engine));
    const std::string method = source.config.quantization ? source.config.quantization->method : "";
    QVERIFY(!rules.check({source, machine, rules.newestKnown(), std::nullopt, method}, {1, stages, 1}).refusal);
    QCOMPARE(listOf(rules.stages(source.config, stages)), layers);
  }

  void sixGpus() {
    const Machine machine = *parseMachine("6xH100-80GB");
    const auto refused = [&](const QString& model, const QString& engine, LayoutSizes sizes) {
      const ModelSource source = modelNamed(model);
      const EngineRules& rules = rulesOf(kindNamed(engine));
      const std::string method = source.config.quantization ? source.config.quantization->method : "";
      const auto refusal = rules.check({source, machine, rules.newestKnown(), std::nullopt, method}, sizes).refusal;
      return refusal ? QString::fromStdString(refusal->rule) : QString();
    };
    QCOMPARE(refused("72B", "vllm", {2, 3, 1}), QString());
    for (const char* engine : {"vllm", "sglang", "tensorrt-llm"}) {
      QCOMPARE(refused("72B", engine, {2, 3, 1}), QString());
      QCOMPARE(refused("7B", engine, {2, 3, 1}), QString());
      QVERIFY(refused("72B-AWQ", engine, {2, 3, 1}) != QString());  // the groups are cut
      QCOMPARE(refused("72B-AWQ", engine, {1, 6, 1}), QString());
    }
    QCOMPARE(refused("72B-AWQ-padded", "sglang", {2, 3, 1}), QString());
    QCOMPARE(refused("72B-AWQ-padded", "vllm", {2, 3, 1}), QString());
    QCOMPARE(refused("72B-AWQ", "vllm", {2, 3, 1}), QString("vllm.awq_groups"));
    QCOMPARE(refused("72B-AWQ", "vllm", {1, 6, 1}), QString());
    QCOMPARE(refused("7B", "vllm", {2, 1, 3}), QString());
    QCOMPARE(refused("72B", "lmdeploy", {1, 3, 1}), QString("lmdeploy.pipeline"));
    QVERIFY(!refused("72B-AWQ", "llama.cpp", {1, 6, 1}).isEmpty());  // GGUF alone
    QCOMPARE(refused("72B", "llama.cpp", {1, 6, 1}), QString());
  }

  // A small model on odd counts: as many replicas, or pairs of them; LMDeploy, without stages, leaves GPUs idle.
  void replicasOfTheSmallModel_data() {
    QTest::addColumn<QString>("engine");
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("dp");
    for (const QString& engine : {QString("vllm"), QString("sglang"), QString("lmdeploy")}) {
      for (int gpus : {3, 5, 7}) QTest::newRow(qPrintable(QString("%1 on %2").arg(engine).arg(gpus))) << engine << 1 << gpus;
      QTest::newRow(qPrintable(engine + ", three pairs")) << engine << 2 << 3;
    }
  }
  void replicasOfTheSmallModel() {
    QFETCH(QString, engine);
    QFETCH(int, tp);
    QFETCH(int, dp);
    const Machine machine = *parseMachine("8xH100-80GB");
    const ModelSource source = modelNamed("7B");
    const EngineRules& rules = rulesOf(kindNamed(engine));
    QVERIFY(!rules.check({source, machine, rules.newestKnown(), std::nullopt, ""}, {tp, 1, dp}).refusal);
  }

  // No engine divides a layer of the three models by an odd number; LMDeploy has no other way.
  void noEngineDividesByOddNumbers_data() {
    QTest::addColumn<QString>("engine");
    QTest::addColumn<QString>("model");
    for (const char* engine : {"vllm", "sglang", "tensorrt-llm", "lmdeploy"})
      for (const char* model : {"72B", "72B-AWQ", "72B-AWQ-padded", "7B"})
        QTest::addRow("%s %s", engine, model) << QString(engine) << QString(model);
  }
  void noEngineDividesByOddNumbers() {
    QFETCH(QString, engine);
    QFETCH(QString, model);
    const Machine machine = *parseMachine("8xH100-80GB");
    const ModelSource source = modelNamed(model);
    const EngineRules& rules = rulesOf(kindNamed(engine));
    const std::string method = source.config.quantization ? source.config.quantization->method : "";
    const RuleContext context{source, machine, rules.newestKnown(), std::nullopt, method};
    for (int tp : {3, 5, 6, 7}) QVERIFY2(rules.check(context, {tp, 1, 1}).refusal.has_value(), qPrintable(QString::number(tp)));
    if (engine == "lmdeploy")
      for (int pp : {3, 5, 6, 7}) QCOMPARE(rules.check(context, {1, pp, 1}).refusal->rule, std::string("lmdeploy.pipeline"));
  }

  // The 4 KV heads of the small model: some devices get none.
  void llamaCppSlicesMayBeEmpty() {
    for (int devices : {5, 6, 7}) {
      int64_t sum = 0;
      int empty = 0;
      for (int device = 0; device < devices; ++device) {
        const int64_t size = llamaCppPiece(4, devices, device, 0).size();
        sum += size;
        empty += size == 0;
      }
      QCOMPARE(sum, int64_t(4));
      QCOMPARE(empty, devices - 4);
    }
  }

  void llamaCppTensorSplitDealsKvHeads() {
    const auto dealt = [](int devices) {
      QStringList sizes;
      for (int device = 0; device < devices; ++device) sizes << QString::number(llamaCppPiece(8, devices, device, 0).size());
      return sizes.join(',');
    };
    QCOMPARE(dealt(3), QString("2,3,3"));
    QCOMPARE(dealt(5), QString("1,2,1,2,2"));
    QCOMPARE(dealt(6), QString("1,1,2,1,1,2"));
    QCOMPARE(dealt(7), QString("1,1,1,1,1,1,2"));
  }

  // Expert parallelism keeps experts whole, so their width need not divide (public case of Qwen3-235B-A22B-FP8: 1536 / 8 = 192).
  void expertParallelismByEngineAndVersion() {
    ModelShape shape{4, 4096, 64, 4, 128, 12288, 151936};
    shape.tied = false;
    shape.experts = 128;
    shape.expertWidth = 1536;
    ModelSource model = makeModel(shape);
    QuantizationConfig fp8;
    fp8.method = "fp8";
    fp8.bits = 8;
    fp8.weightBlock = {128, 128};
    model.config.quantization = fp8;
    const Machine ampere = *parseMachine("8xA100-80GB"), hopper = *parseMachine("8xH100-80GB");
    const auto refused = [&](const EngineRules& rules, EngineVersion version, LayoutSizes sizes) {
      // SGLang's expert kernel needs FP8 arithmetic.
      const Machine& machine = &rules == &sgLangRules() ? hopper : ampere;
      const auto refusal = rules.check({model, machine, version, std::nullopt, "fp8"}, sizes).refusal;
      return refusal ? QString::fromStdString(refusal->rule) : QString();
    };
    QCOMPARE(refused(vllmRules(), {0, 32, 0}, {8, 1, 1}), QString("vllm.fp8_block"));
    QCOMPARE(refused(vllmRules(), {0, 32, 0}, {4, 1, 1}), QString());
    QCOMPARE(refused(vllmRules(), {0, 32, 0}, {8, 1, 1, true}), QString());
    QCOMPARE(refused(vllmRules(), {0, 8, 5}, {8, 1, 1, true}), QString("vllm.fp8_block"));  // that release still cut blocks
    QCOMPARE(refused(vllmRules(), {0, 6, 3}, {4, 1, 1, true}), QString("vllm.expert_parallel"));
    QCOMPARE(refused(sgLangRules(), {0, 5, 9}, {8, 1, 1, true}), QString());
    model.config.layers[0].moe.experts = 126;
    QCOMPARE(refused(sgLangRules(), {0, 5, 9}, {4, 1, 1, true}), QString("sglang.experts"));  // whole experts, evenly only
    QCOMPARE(refused(vllmRules(), {0, 32, 0}, {4, 1, 1, true}), QString());                   // the first ranks hold one more
    const ModelSource dense = makeModel(smolShape());
    QCOMPARE(
        QString::fromStdString(vllmRules().check({dense, ampere, {0, 32, 0}, std::nullopt, ""}, {1, 1, 1, true}).refusal->rule),
        QString("vllm.expert_parallel"));
  }

  // Attention in replicas: 64 heads need not divide by all 8 GPUs' share, experts do.
  void attentionReplicasShareExperts() {
    ModelShape shape{4, 4096, 6, 6, 128, 12288, 151936};
    shape.tied = false;
    shape.experts = 64;
    shape.expertWidth = 1536;
    const ModelSource model = makeModel(shape);
    const Machine machine = *parseMachine("8xH100-80GB");
    const RuleContext context{model, machine, {0, 5, 9}, std::nullopt, ""};
    QVERIFY(sgLangRules().check(context, {8, 1, 1}).refusal.has_value());
    QVERIFY(!sgLangRules().check(context, {2, 1, 4, true, true}).refusal);
    QVERIFY(!tensorRtRules().check(context, {1, 1, 8, true, true}).refusal);
  }

  void familiesWithoutFloat16() {
    ModelSource model = makeModel(smolShape());
    model.config.modelType = "gemma3";
    const Machine turing = *parseMachine("2xT4-16GB"), ampere = *parseMachine("2xA100-80GB");
    const auto rule = [&](const Machine& machine, std::optional<DType> dtype, EngineVersion version) {
      const auto refusal = vllmRules().check({model, machine, version, dtype, ""}, {1, 1, 1}).refusal;
      return refusal ? QString::fromStdString(refusal->rule) : QString();
    };
    QCOMPARE(rule(ampere, DType::F16, {0, 21, 0}), QString("vllm.float16"));
    QCOMPARE(rule(turing, DType::F16, {0, 21, 0}), QString("vllm.float16"));
    QCOMPARE(rule(turing, std::nullopt, {0, 21, 0}), QString("vllm.bfloat16"));
    QCOMPARE(rule(turing, DType::F32, {0, 21, 0}), QString());
    QCOMPARE(rule(ampere, DType::F16, {0, 6, 3}), QString());
    model.config.modelType = "llama";
    QCOMPARE(rule(turing, DType::F16, {0, 21, 0}), QString());
  }
};

QTEST_GUILESS_MAIN(RulesTableTest)
#include "rules_table_test.moc"
