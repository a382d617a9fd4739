// SPDX-License-Identifier: Apache-2.0
// vLLM's rules against what the engine itself says: valid TP sizes, stage splits, words and order of its checks.
#include "core/layout/rules/engine_rules.h"
#include "tests/core/sample_model.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::test;

namespace {

ModelSource qwen7b() {
  ModelShape shape{28, 3584, 28, 4, 128, 18944, 152064};
  shape.tied = false;
  shape.biases = true;
  return makeModel(shape);
}

ModelSource qwen72b(int64_t intermediate, const char* quantization) {
  ModelShape shape = qwen72Shape();
  shape.intermediate = intermediate;
  ModelSource model = makeModel(shape);
  if (*quantization) {
    model.config.quantization = QuantizationConfig{};
    model.config.quantization->method = quantization;
    model.config.quantization->bits = 4;
    model.config.quantization->groupSize = 128;
  }
  return model;
}

RuleContext contextOf(const ModelSource& model, const Machine& machine, EngineVersion version = {0, 32, 0}) {
  return {model, machine, version, std::nullopt, model.config.quantization ? model.config.quantization->method : ""};
}

std::vector<int64_t> layersOf(int64_t layers, int pp) {
  ModelConfig config;
  config.layers.resize(layers);
  std::vector<int64_t> counts;
  for (Range range : vllmRules().stages(config, pp)) counts.push_back(range.size());
  return counts;
}
using Counts = std::vector<int64_t>;

}  // namespace

class RulesVllmTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { m_machine = *parseMachine("8xH100-80GB"); }

  void warnsOfVersionsBeforeItsRules() {
    const ModelSource model = qwen7b();
    const auto warned = [&](EngineVersion version) {
      const RuleVerdict verdict = vllmRules().check(contextOf(model, m_machine, version), {1, 1, 1});
      return std::any_of(verdict.warnings.begin(), verdict.warnings.end(),
                         [](const RuleFinding& finding) { return finding.rule == "vllm.version"; });
    };
    QVERIFY(warned({0, 1, 0}));
    QVERIFY(warned({0, 5, 5}));
    QVERIFY(!warned({0, 6, 0}));
    QVERIFY(!warned({0, 32, 0}));
  }

  // The published table of sizes that run, for three models.
  void acceptedSizes_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<QString>("sizes");
    QTest::newRow("72B BF16") << 0 << "1 2 4 8";
    QTest::newRow("72B AWQ, 29568 columns (231 groups)") << 1 << "1";
    QTest::newRow("72B AWQ, padded to 29696 (232 groups)") << 2 << "1 2 4 8";
    QTest::newRow("7B BF16: 7 divides its heads, yet fails") << 3 << "1 2 4";
    QTest::newRow("13B: 40 heads, 5 fails at the columns") << 4 << "1 2 4 8";
    QTest::newRow("phi-4: 40 heads, 10 KV heads") << 5 << "1 2";
  }
  void acceptedSizes() {
    QFETCH(int, model);
    QFETCH(QString, sizes);
    ModelShape llama13{40, 5120, 40, 40, 128, 13824, 32000}, phi4{40, 5120, 40, 10, 128, 17920, 100352};
    const ModelSource models[] = {qwen72b(29568, ""), qwen72b(29568, "awq"), qwen72b(29696, "awq"),
                                  qwen7b(),           makeModel(llama13),    makeModel(phi4)};
    QString accepted;
    for (int tp : acceptedTpSizes(vllmRules(), contextOf(models[model], m_machine), 8))
      accepted += (accepted.isEmpty() ? "" : " ") + QString::number(tp);
    QCOMPARE(accepted, sizes);
  }

  void firstFailureInTheEnginesOrder_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<int>("tp");
    QTest::addColumn<QString>("rule");
    QTest::addColumn<QString>("words");
    QTest::newRow("heads first") << 0 << 6 << "vllm.attention_heads"
                                 << "Total number of attention heads (64) must be divisible by tensor parallel size (6).";
    QTest::newRow("vocabulary before KV heads") << 3 << 7 << "vllm.vocabulary"
                                                << "152064 is not divisible by 7";
    QTest::newRow("KV heads") << 5 << 4 << "vllm.kv_heads"
                              << "self.total_num_kv_heads % tp_size";
    QTest::newRow("columns") << 4 << 5 << "vllm.mlp_columns"
                             << "13824";
    QTest::newRow("AWQ groups") << 1 << 2 << "vllm.awq_groups"
                                << "The input size is not aligned with the quantized weight shape";
    QTest::newRow("padded vocabulary") << 6 << 7 << "vllm.vocabulary"
                                       << "151936 is not divisible by 7";
  }
  void firstFailureInTheEnginesOrder() {
    QFETCH(int, model);
    QFETCH(int, tp);
    QFETCH(QString, rule);
    QFETCH(QString, words);
    ModelShape llama13{40, 5120, 40, 40, 128, 13824, 32000}, phi4{40, 5120, 40, 10, 128, 17920, 100352},
        qwen05{24, 896, 14, 2, 64, 4864, 151900};
    const ModelSource models[] = {qwen72b(29568, ""), qwen72b(29568, "awq"), qwen72b(29696, "awq"), qwen7b(),
                                  makeModel(llama13), makeModel(phi4),       makeModel(qwen05)};
    const auto verdict = vllmRules().check(contextOf(models[model], m_machine), {tp, 1, 1});
    QVERIFY(verdict.refusal.has_value());
    QCOMPARE(QString::fromStdString(verdict.refusal->rule), rule);
    QVERIFY2(verdict.refusal->message.find(words.toStdString()) != std::string::npos, verdict.refusal->message.c_str());
  }

  void spareLayersStandBeforeTheLastStage() {
    QCOMPARE(layersOf(80, 3), (Counts{27, 27, 26}));
    QCOMPARE(layersOf(80, 6), (Counts{13, 13, 13, 14, 14, 13}));
    QCOMPARE(layersOf(80, 7), (Counts{11, 11, 11, 12, 12, 12, 11}));
    QCOMPARE(layersOf(28, 3), (Counts{9, 10, 9}));
    QCOMPARE(layersOf(28, 5), (Counts{5, 6, 6, 6, 5}));
    QCOMPARE(layersOf(28, 6), (Counts{4, 5, 5, 5, 5, 4}));
    QCOMPARE(layersOf(94, 4), (Counts{23, 24, 24, 23}));
  }

  void versionsDiffer() {
    ModelSource model = qwen72b(29568, "bitsandbytes");
    QVERIFY(vllmRules().check(contextOf(model, m_machine, {0, 32, 0}), {1, 1, 1}).refusal.has_value());
    QVERIFY(!vllmRules().check(contextOf(model, m_machine, {0, 31, 0}), {1, 1, 1}).refusal.has_value());
    QCOMPARE(parseVersion("0.26.1rc1.dev608+g99a10304d").value(), (EngineVersion{0, 26, 1}));
    QCOMPARE(parseVersion(">=0.21 nightly (2026-05)").value(), (EngineVersion{0, 21, 0}));
    QVERIFY(!parseVersion("main"));
  }

  void trapsAreWarnings() {
    const ModelSource model = qwen72b(29568, "gptq");
    const auto verdict = vllmRules().check(contextOf(model, m_machine), {2, 1, 1});
    QVERIFY(!verdict.refusal);
    QVERIFY(std::any_of(verdict.warnings.begin(), verdict.warnings.end(),
                        [](const RuleFinding& f) { return f.rule == "vllm.gptq_groups"; }));
    const Machine t4 = *parseMachine("6xT4");
    RuleContext asked = contextOf(model, t4);
    asked.dtype = DType::BF16;
    QCOMPARE(vllmRules().check(asked, {1, 1, 1}).refusal->rule, std::string("vllm.bfloat16"));
  }

 private:
  Machine m_machine;
};

QTEST_GUILESS_MAIN(RulesVllmTest)
#include "rules_vllm_test.moc"
