// SPDX-License-Identifier: Apache-2.0
// Sizes of a model as if quantized, against the sizes of published files of Llama 3.1 8B.
#include "core/model/what_if_quantization.h"

#include <QtTest>

using namespace headroom;

class WhatIfQuantizationTest : public QObject {
  Q_OBJECT
 private slots:
  // Published files: tensors, and 7841184 bytes of metadata in each.
  void mixesMeetPublishedFiles_data() {
    QTest::addColumn<QString>("mix");
    QTest::addColumn<qint64>("fileBytes");
    QTest::addRow("Q8_0") << "Q8_0" << qint64(8540775840);
    QTest::addRow("Q6_K") << "Q6_K" << qint64(6596011424);
    QTest::addRow("Q5_K_M") << "q5_k_m" << qint64(5732992416);
    QTest::addRow("Q4_K_M") << "Q4_K_M" << qint64(4920739232);
    QTest::addRow("Q2_K") << "Q2_K" << qint64(3179136416);
  }
  void mixesMeetPublishedFiles() {
    QFETCH(QString, mix);
    QFETCH(qint64, fileBytes);
    const auto model = openModel("meta-llama/Llama-3.1-8B-Instruct");
    QVERIFY(model.has_value());
    const auto quantized = quantizedAs(*model, mix.toStdString());
    QVERIFY(quantized.has_value());
    QCOMPARE(qint64(quantized->inventory.checkpointBytes().count()), fileBytes - 7841184);
    QCOMPARE(quantized->inventory.parameters(), model->inventory.parameters());
    QVERIFY(quantized->config.warnings.back().find("as if quantized") != std::string::npos);
  }

  // 29568 columns are no multiple of 256: the down projection falls back to blocks of 32.
  void rowsWithoutSuperBlocksFallBack() {
    const auto model = openModel("Qwen/Qwen2.5-72B-Instruct");
    QVERIFY(model.has_value());
    const TensorEntry* down = model->inventory.find(TensorRole::Down, 40);
    const TensorEntry* gate = model->inventory.find(TensorRole::Gate, 40);
    QVERIFY(down && gate);
    QCOMPARE(ggufMixType("Q4_K_S", *down, model->config), DType::Q5_0);
    QCOMPARE(ggufMixType("Q4_K_S", *gate, model->config), DType::Q4_K);
    QCOMPARE(ggufMixType("Q4_K_M", *model->inventory.find(TensorRole::Down, 0), model->config), DType::Q8_0);
    QCOMPARE(ggufMixType("Q4_K_M", *model->inventory.find(TensorRole::FinalNorm), model->config), DType::F32);
  }

  // AWQ of the padded 72B: 4.25 bits a weight with scales and zero points; head and embedding stay.
  void describesPackedFormats() {
    const auto model = openModel("Qwen/Qwen2.5-7B-Instruct");
    QVERIFY(model.has_value());
    const auto awq = quantizedAs(*model, "awq"), gptq = quantizedAs(*model, "gptq");
    QVERIFY(awq && gptq);
    QCOMPARE(qint64(awq->inventory.checkpointBytes().count()), qint64(5570747392));
    QCOMPARE(qint64(gptq->inventory.checkpointBytes().count()), qint64(5575277568));
    QCOMPARE(awq->inventory.parameters(), model->inventory.parameters());
  }

  void refusesWhatItCannotTell() {
    const auto model = openModel("Qwen/Qwen2.5-7B-Instruct");
    QVERIFY(model.has_value());
    const auto unknown = quantizedAs(*model, "q9");
    QVERIFY(!unknown);
    QVERIFY(unknown.error().expected.find("Q4_K_M") != std::string::npos);
    const auto twice = quantizedAs(*openModel("Qwen/Qwen3-30B-A3B-FP8"), "awq");
    QVERIFY(!twice);
    QVERIFY(twice.error().found == "awq");
  }
};

QTEST_APPLESS_MAIN(WhatIfQuantizationTest)
#include "what_if_quantization_test.moc"
