// SPDX-License-Identifier: Apache-2.0
// Three models on 3, 5, 6 and 7 equal GPUs under every engine: which splits each takes, and which layers each stage gets.
#include "core/layout/rules/llama_cpp.h"
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

QString layersOf(const EngineRules& rules, int64_t layers, int pp) {
  ModelConfig config;
  config.layers.resize(layers);
  QStringList counts;
  for (Range range : rules.stages(config, pp)) counts << QString::number(range.size());
  return counts.join(' ');
}

RuleContext contextOf(const ModelSource& model, const Machine& machine, EngineKind kind) {
  return {model, machine, rulesOf(kind).newestKnown(), std::nullopt,
          model.config.quantization ? model.config.quantization->method : ""};
}

}  // namespace

Q_DECLARE_METATYPE(headroom::EngineKind)

class RulesEnginesTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { m_machine = *parseMachine("8xH100-80GB"); }

  void acceptedSizes_data() {
    QTest::addColumn<EngineKind>("engine");
    QTest::addColumn<int>("model");
    QTest::addColumn<QString>("sizes");
    for (EngineKind kind : {EngineKind::Vllm, EngineKind::SgLang}) {
      const std::string name(engineName(kind));
      QTest::addRow("%s 72B", name.c_str()) << kind << 0 << "1 2 4 8";
      QTest::addRow("%s 72B AWQ, 231 groups", name.c_str()) << kind << 1 << "1";
      QTest::addRow("%s 72B AWQ, 232 groups", name.c_str()) << kind << 2 << "1 2 4 8";
      QTest::addRow("%s 7B", name.c_str()) << kind << 3 << "1 2 4";
    }
    QTest::newRow("TensorRT-LLM 72B") << EngineKind::TensorRtLlm << 0 << "1 2 4 8";
    QTest::newRow("TensorRT-LLM 72B AWQ, 231 groups") << EngineKind::TensorRtLlm << 1 << "1";
    QTest::newRow("TensorRT-LLM 7B") << EngineKind::TensorRtLlm << 3 << "1 2 4";
    // Its tensor split takes any count; AWQ has to become a GGUF first.
    QTest::newRow("llama.cpp 72B") << EngineKind::LlamaCpp << 0 << "1 2 3 4 5 6 7 8";
    QTest::newRow("llama.cpp 72B AWQ") << EngineKind::LlamaCpp << 1 << "";
    QTest::newRow("Headroom 72B") << EngineKind::Headroom << 0 << "1 2 3 4 5 6 7 8";
    QTest::newRow("Headroom 7B") << EngineKind::Headroom << 3 << "1 2 3 4 5 6 7 8";
  }
  void acceptedSizes() {
    QFETCH(EngineKind, engine);
    QFETCH(int, model);
    QFETCH(QString, sizes);
    const ModelSource models[] = {qwen72b(29568, ""), qwen72b(29568, "awq"), qwen72b(29696, "awq"), qwen7b()};
    QStringList accepted;
    for (int tp : acceptedTpSizes(rulesOf(engine), contextOf(models[model], m_machine, engine), 8))
      accepted << QString::number(tp);
    QCOMPARE(accepted.join(' '), sizes);
  }

  void spareLayers_data() {
    QTest::addColumn<EngineKind>("engine");
    QTest::addColumn<int>("layers");
    QTest::addColumn<int>("stages");
    QTest::addColumn<QString>("counts");
    const struct {
      EngineKind engine;
      int layers, stages;
      const char* counts;
    } rows[] = {{EngineKind::Vllm, 80, 3, "27 27 26"},
                {EngineKind::Vllm, 80, 5, "16 16 16 16 16"},
                {EngineKind::Vllm, 80, 6, "13 13 13 14 14 13"},
                {EngineKind::Vllm, 80, 7, "11 11 11 12 12 12 11"},
                {EngineKind::Vllm, 28, 3, "9 10 9"},
                {EngineKind::Vllm, 28, 5, "5 6 6 6 5"},
                {EngineKind::Vllm, 28, 6, "4 5 5 5 5 4"},
                {EngineKind::Vllm, 28, 7, "4 4 4 4 4 4 4"},
                {EngineKind::SgLang, 80, 3, "26 27 27"},
                {EngineKind::SgLang, 80, 6, "13 13 13 13 14 14"},
                {EngineKind::SgLang, 80, 7, "11 11 11 11 12 12 12"},
                {EngineKind::SgLang, 28, 3, "9 9 10"},
                {EngineKind::SgLang, 28, 5, "5 5 6 6 6"},
                {EngineKind::SgLang, 28, 6, "4 4 5 5 5 5"},
                {EngineKind::TensorRtLlm, 80, 3, "27 27 26"},
                {EngineKind::TensorRtLlm, 80, 6, "14 14 13 13 13 13"},
                {EngineKind::TensorRtLlm, 80, 7, "12 12 12 11 11 11 11"},
                {EngineKind::TensorRtLlm, 28, 3, "10 9 9"},
                {EngineKind::TensorRtLlm, 28, 5, "6 6 6 5 5"},
                {EngineKind::TensorRtLlm, 28, 6, "5 5 5 5 4 4"},
                {EngineKind::LlamaCpp, 80, 3, "27 27 26"},
                {EngineKind::LlamaCpp, 80, 7, "12 12 11 12 11 12 10"}};
    for (const auto& row : rows) {
      QTest::addRow("%s %d/%d", std::string(engineName(row.engine)).c_str(), row.layers, row.stages)
          << row.engine << row.layers << row.stages << QString(row.counts);
    }
  }
  void spareLayers() {
    QFETCH(EngineKind, engine);
    QFETCH(int, layers);
    QFETCH(int, stages);
    QFETCH(QString, counts);
    QCOMPARE(layersOf(rulesOf(engine), layers, stages), counts);
  }

  void llamaCppDealsLayersByMemory() {
    // 48 and 24 GiB: two thirds of 81 layers (the output layer counts) and the rest.
    const std::vector<Range> ranges = llamaCppLayers(80, {48, 24});
    QCOMPARE(ranges[0].size(), int64_t(54));
    QCOMPARE(ranges[1].size(), int64_t(26));
  }

  void llamaCppTensorPieces_data() {
    QTest::addColumn<int>("devices");
    QTest::addColumn<QString>("heads");
    QTest::newRow("3") << 3 << "2 3 3";
    QTest::newRow("5") << 5 << "1 2 1 2 2";
    QTest::newRow("6") << 6 << "1 1 2 1 1 2";
    QTest::newRow("7") << 7 << "1 1 1 1 1 1 2";
  }
  void llamaCppTensorPieces() {
    QFETCH(int, devices);
    QFETCH(QString, heads);
    QStringList held, next;
    for (int device = 0; device < devices; ++device) {
      held << QString::number(llamaCppPiece(8, devices, device, 0).size());
      next << QString::number(llamaCppPiece(8, devices, device, 1).size());
    }
    QCOMPARE(held.join(' '), heads);
    held.append(held.takeFirst());
    QCOMPARE(next, held);  // the next layer's pieces are one device further on
  }

  void llamaCppGranulesFollowTheBlocks() {
    // 7 query heads of 128 a KV head are 896 elements: a K-quant's block of 256 keeps two KV heads together.
    ModelSource model = qwen7b();
    QCOMPARE(llamaCppGranules(model, model.config.layers[0]).kvUnits, int64_t(4));
    for (TensorEntry& tensor : model.inventory.tensors) {
      if (tensor.role == TensorRole::O) tensor.dtype = DType::Q4_K;
    }
    QCOMPARE(llamaCppGranules(model, model.config.layers[0]).kvUnits, int64_t(2));
    const auto verdict = llamaCppRules().check(contextOf(model, m_machine, EngineKind::LlamaCpp), {4, 1, 1});
    QVERIFY(!verdict.refusal);
    QVERIFY(std::any_of(verdict.warnings.begin(), verdict.warnings.end(),
                        [](const RuleFinding& f) { return f.rule == "llamacpp.idle_devices"; }));
    QCOMPARE(llamaCppRules().check(contextOf(model, m_machine, EngineKind::LlamaCpp), {2, 2, 1}).refusal->rule,
             std::string("llamacpp.one_split"));
  }

  void sgLangLooksAtTheMachineAndTheVocabularyFirst() {
    const ModelSource model = qwen72b(29568, "");
    const Machine unequal = *parseMachine("1x24GiB,1x48GiB");
    const RuleContext context = contextOf(model, unequal, EngineKind::SgLang);
    QCOMPARE(sgLangRules().check(context, {2, 1, 1}).refusal->rule, std::string("sglang.memory_balance"));
    QVERIFY(!sgLangRules().check(context, {1, 2, 1}).refusal);
    const auto seven = sgLangRules().check(contextOf(model, m_machine, EngineKind::SgLang), {7, 1, 1});
    QCOMPARE(seven.refusal->rule, std::string("sglang.vocabulary"));
    QVERIFY(seven.refusal->message.find("152064 is not divisible by 7") != std::string::npos);
    const auto six = sgLangRules().check(contextOf(model, m_machine, EngineKind::SgLang), {6, 1, 1});
    QCOMPARE(six.refusal->rule, std::string("sglang.attention_heads"));
    const Machine nodes = *parseMachine("2n8xH100-80GB");
    QCOMPARE(sgLangRules().check(contextOf(model, nodes, EngineKind::SgLang), {2, 1, 2}).refusal->rule,
             std::string("sglang.data_parallel"));
  }

  void normsOverAllHeadsSplitToo() {
    ModelSource model = makeModel(smolShape());
    model.config.decoder.qkNormFullWidth = true;
    const RuleContext context = contextOf(model, m_machine, EngineKind::Headroom);
    QVERIFY(!headroomRules().check(context, {1, 3, 2}).refusal);
    QVERIFY(!headroomRules().check(context, {2, 1, 1}).refusal);
  }

 private:
  Machine m_machine;
};

QTEST_GUILESS_MAIN(RulesEnginesTest)
#include "rules_engines_test.moc"
