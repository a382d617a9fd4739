// SPDX-License-Identifier: Apache-2.0
// Block sizes against ggml's structures, spellings, and the numbers of GGUF files.
#include "core/model/dtype.h"

#include <QtTest>

using namespace headroom;

class DTypeTest : public QObject {
  Q_OBJECT

 private slots:
  void storesBlocks_data() {
    QTest::addColumn<int>("ggufType");
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("elements");
    QTest::addColumn<int>("bytes");
    // sizeof(block_*) of ggml-common.h.
    const struct {
      int type;
      const char* name;
      int elements, bytes;
    } rows[] = {{0, "float32", 1, 4},     {1, "float16", 1, 2},     {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
                {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
                {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
                {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
                {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
                {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "int8", 1, 1},       {25, "int16", 1, 2},
                {26, "int32", 1, 4},      {27, "int64", 1, 8},      {28, "float64", 1, 8},    {29, "IQ1_M", 256, 56},
                {30, "bfloat16", 1, 2},   {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17}};
    for (const auto& row : rows) QTest::newRow(row.name) << row.type << row.name << row.elements << row.bytes;
  }
  void storesBlocks() {
    QFETCH(int, ggufType);
    QFETCH(QString, name);
    QFETCH(int, elements);
    QFETCH(int, bytes);
    const auto dtype = dtypeOfGgufType(static_cast<uint32_t>(ggufType));
    QVERIFY(dtype.has_value());
    QCOMPARE(QString::fromStdString(std::string(dtypeName(*dtype))), name);
    QCOMPARE(dtypeInfo(*dtype).blockElements, elements);
    QCOMPARE(storageBytes(*dtype, 3 * elements).count(), 3 * bytes);
    QCOMPARE(isBlockQuantized(*dtype), elements > 1);
  }

  void leavesUnknownGgufTypesEmpty() {
    for (uint32_t type : {4u, 5u, 31u, 33u, 36u, 38u, 1000u, UINT32_MAX})
      QVERIFY2(!dtypeOfGgufType(type), qPrintable(QString::number(type)));
  }

  void parsesSpellings_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("name");
    const std::pair<const char*, const char*> rows[] = {{"bfloat16", "bfloat16"},
                                                        {"BF16", "bfloat16"},
                                                        {"bf16", "bfloat16"},
                                                        {"torch.bfloat16", "bfloat16"},
                                                        {"half", "float16"},
                                                        {"F16", "float16"},
                                                        {"fp16", "float16"},
                                                        {"float", "float32"},
                                                        {"F32", "float32"},
                                                        {"float32", "float32"},
                                                        {"F64", "float64"},
                                                        {"F8_E4M3", "float8_e4m3"},
                                                        {"float8_e4m3fn", "float8_e4m3"},
                                                        {"fp8", "float8_e4m3"},
                                                        {"F8_E5M2", "float8_e5m2"},
                                                        {"F8_E8M0", "float8_e8m0"},
                                                        {"F4", "float4_e2m1"},
                                                        {"I64", "int64"},
                                                        {"I32", "int32"},
                                                        {"U8", "uint8"},
                                                        {"BOOL", "bool"},
                                                        {"q4_1", "Q4_1"},
                                                        {"Q8_0", "Q8_0"},
                                                        {"iq4_xs", "IQ4_XS"}};
    for (const auto& [text, name] : rows) QTest::newRow(text) << text << name;
  }
  void parsesSpellings() {
    QFETCH(QString, text);
    QFETCH(QString, name);
    const auto dtype = parseDType(text.toStdString());
    QVERIFY(dtype.has_value());
    QCOMPARE(QString::fromStdString(std::string(dtypeName(*dtype))), name);
  }

  void refusesWhatIsNoDType() {
    for (const char* text : {"", "auto", "float17", "torch.", "bfloat16 "}) QVERIFY2(!parseDType(text), text);
  }

  void packsTwoFp4InAByte() {
    QCOMPARE(storageBytes(DType::F4E2M1, 10).count(), 5);
    QVERIFY(!isBlockQuantized(DType::F4E2M1));
    QVERIFY(!isFloating(DType::F8E4M3));
    QVERIFY(isFloating(DType::BF16));
  }
};

QTEST_APPLESS_MAIN(DTypeTest)
#include "dtype_test.moc"
