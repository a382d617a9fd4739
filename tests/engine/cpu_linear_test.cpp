// SPDX-License-Identifier: Apache-2.0
// Linear layers and embeddings of the CPU backend against sums in double precision, on every instruction set of this machine. The
// commonest blocks are decoded here a second time, one element at a time, from what the format says; the readers of all block
// types are held to what the gguf package makes of tests/data/blocks.
#include "core/model/dtype.h"
#include "engine/device/cpu/block_formats.h"
#include "engine/device/cpu/cpu_backend.h"

#include <QtTest>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

using namespace headroom;
using namespace headroom::engine;

Q_DECLARE_METATYPE(headroom::DType)
Q_DECLARE_METATYPE(headroom::engine::CpuLevel)

namespace {

using Raw = std::vector<uint8_t>;

double half(const uint8_t* p) {
  const int bits = p[0] | p[1] << 8, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Element `k` of a stored row.
double decode(DType dtype, const uint8_t* row, int64_t k) {
  const DTypeInfo& info = dtypeInfo(dtype);
  const uint8_t* block = row + k / info.blockElements * info.blockBytes;
  const int i = static_cast<int>(k % info.blockElements);
  switch (dtype) {
    case DType::F32: {
      float value;
      std::memcpy(&value, block, 4);
      return value;
    }
    case DType::F16:
      return half(block);
    case DType::BF16: {
      const uint32_t bits = static_cast<uint32_t>(block[0] | block[1] << 8) << 16;
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    case DType::Q8_0:
      return half(block) * static_cast<int8_t>(block[2 + i]);
    case DType::Q4_0:
      return half(block) * ((i < 16 ? block[2 + i] & 15 : block[2 + i - 16] >> 4) - 8);
    case DType::Q4_1:
      return half(block) * (i < 16 ? block[4 + i] & 15 : block[4 + i - 16] >> 4) + half(block + 2);
    case DType::Q5_0: {
      const int low = i < 16 ? block[6 + i] & 15 : block[6 + i - 16] >> 4, high = block[2 + i / 8] >> (i % 8) & 1;
      return half(block) * (low + 16 * high - 16);
    }
    case DType::Q5_1: {
      const int low = i < 16 ? block[8 + i] & 15 : block[8 + i - 16] >> 4, high = block[4 + i / 8] >> (i % 8) & 1;
      return half(block) * (low + 16 * high) + half(block + 2);
    }
    case DType::Q6_K: {
      const int part = i / 128, lane = i % 32, quarter = i % 128 / 32;
      const uint8_t low = block[part * 64 + quarter % 2 * 32 + lane], high = block[128 + part * 32 + lane];
      const int q = (quarter < 2 ? low & 15 : low >> 4) + 16 * (high >> (2 * quarter) & 3) - 32;
      return half(block + 208) * static_cast<int8_t>(block[192 + i / 16]) * q;
    }
    case DType::Q4_K: {
      const int group = i / 32;
      const uint8_t* s = block + 4;
      const int scale = group < 4 ? s[group] & 63 : (s[group + 4] & 15) + 16 * (s[group - 4] >> 6);
      const int minimum = group < 4 ? s[group + 4] & 63 : (s[group + 4] >> 4) + 16 * (s[group] >> 6);
      const uint8_t byte = block[16 + group / 2 * 32 + i % 32];
      return half(block) * scale * (group % 2 ? byte >> 4 : byte & 15) - half(block + 2) * minimum;
    }
    default: {
      static thread_local std::vector<uint8_t> last;  // the block read last, and its values
      static thread_local float floats[256];
      static thread_local DType lastType = DType::F32;
      if (lastType != dtype || !std::equal(last.begin(), last.end(), block, block + info.blockBytes)) {
        cpu::toFloats(dtype, block, info.blockElements, floats);
        last.assign(block, block + info.blockBytes);
        lastType = dtype;
      }
      return floats[i];
    }
  }
}

// Rows of random bits with sensible scales.
Raw randomRows(DType dtype, int64_t rows, int64_t in, std::mt19937& random) {
  const DTypeInfo& info = dtypeInfo(dtype);
  Raw data(static_cast<size_t>(storageBytes(dtype, in).count() * rows));
  std::normal_distribution<float> normal(0.0f, 0.5f);
  const auto putHalf = [&](uint8_t* to) {  // 2^-6 … 2^-5 with a random fraction and sign
    const uint16_t bits = static_cast<uint16_t>((random() & 0x83ff) | 9 << 10);
    std::memcpy(to, &bits, 2);
  };
  if (!isBlockQuantized(dtype)) {
    for (size_t i = 0; i < data.size(); i += static_cast<size_t>(info.blockBytes)) {
      const float value = normal(random);
      if (dtype == DType::F32) std::memcpy(&data[i], &value, 4);
      if (dtype == DType::BF16) std::memcpy(&data[i], reinterpret_cast<const uint8_t*>(&value) + 2, 2);
      if (dtype == DType::F16) putHalf(&data[i]);
    }
    return data;
  }
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
  for (size_t i = 0; i < data.size(); i += static_cast<size_t>(info.blockBytes)) {
    uint8_t* block = &data[i];
    switch (dtype) {
      case DType::Q6_K:
        putHalf(block + 208);
        break;
      case DType::Q3_K:
        putHalf(block + 108);
        break;
      case DType::Q2_K:
        putHalf(block + 80);
        putHalf(block + 82);
        break;
      case DType::TQ1_0:
        putHalf(block + 52);
        break;
      case DType::TQ2_0:
        putHalf(block + 64);
        break;
      case DType::MXFP4:
        block[0] = static_cast<uint8_t>(random() % 8 == 0 ? random() % 3 : 118 + random() % 6);
        break;
      case DType::IQ1_M:
        block[55] = static_cast<uint8_t>((block[55] & 15) | 0x20);  // the exponent of the spread factor
        break;
      default:
        putHalf(block);
        if (dtype == DType::Q4_1 || dtype == DType::Q5_1 || dtype == DType::Q4_K || dtype == DType::Q5_K) putHalf(block + 2);
    }
  }
  return data;
}

struct Case {
  std::unique_ptr<Backend> backend;
  WeightMatrix weight;
  std::vector<float> bias, input;
  Raw rows;
  std::vector<double> values;  // of the rows
  int64_t tokens = 0, inStride = 0;
  bool fine = false;

  Case(const CpuBackendOptions& options, DType dtype, int64_t out, int64_t in, int64_t tokenCount, unsigned seed = 1)
      : tokens(tokenCount), inStride(in + 3) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    backend = makeCpuBackend(options);
    rows = randomRows(dtype, out, in, random);
    weight = *backend->makeMatrix(dtype, out, in, "test");
    // In two unaligned chunks, the later one first.
    const int64_t cut = out / 3 + (out > 20 ? 5 : 0), bytes = storageBytes(dtype, in).count();
    backend->writeRows(weight, cut, out - cut, dtype, rows.data() + cut * bytes);
    backend->writeRows(weight, 0, cut, dtype, rows.data());
    backend->finishMatrix(weight);
    for (int64_t i = 0; i < out * in; ++i) values.push_back(decode(dtype, rows.data() + i / in * bytes, i % in));
    for (int64_t i = 0; i < out; ++i) bias.push_back(normal(random));
    for (int64_t i = 0; i < tokens * inStride; ++i) input.push_back(normal(random));
  }
  TensorView in(int64_t first, int64_t count) {
    return {input.data() + first * inStride, DType::F32, count, weight.in, inStride};
  }
  double reference(int64_t t, int64_t o, double* magnitude = nullptr) const {
    const double* row = values.data() + o * weight.in;
    double sum = bias[static_cast<size_t>(o)], sizes = std::fabs(sum);
    for (int64_t k = 0; k < weight.in; ++k) {
      const double product = row[k] * input[static_cast<size_t>(t * inStride + k)];
      sum += product;
      sizes += std::fabs(product);
    }
    if (magnitude) *magnitude = sizes;
    return sum;
  }
  // What rounding activations to int8 blocks (or BF16) may change at most, if all errors added up, halved twice: errors have
  // signs. With 8 more bits a hundredth of it and less.
  double roundingBound(int64_t t, int64_t o) const {
    const double* row = values.data() + o * weight.in;
    double sum = 0;
    for (int64_t block = 0; block < weight.in; block += 32) {
      const int64_t end = std::min(weight.in, block + 32);
      double top = 0;
      for (int64_t k = block; k < end; ++k) top = std::max<double>(top, std::fabs(input[static_cast<size_t>(t * inStride + k)]));
      for (int64_t k = block; k < end; ++k) {
        const double x = std::fabs(input[static_cast<size_t>(t * inStride + k)]);
        const double error = weight.dtype == DType::BF16 ? x / 256 : top / 254;
        sum += std::pow(row[k] * error, 2);
      }
    }
    const bool rest = fine && isBlockQuantized(weight.dtype);
    return 5 * std::sqrt(sum) * (rest ? 0.01 : 1.0);  // independent errors: five times their root mean square bound
  }
  std::vector<float> run(int64_t first, int64_t count, int64_t outStride) {
    std::vector<float> out(static_cast<size_t>(count * outStride), -77.0f);
    const LinearTask task = {{out.data(), DType::F32, count, weight.out, outStride}, &weight, bias.data(), fine};
    backend->linear(in(first, count), {&task, 1});
    if (!backend->sync()) qFatal("sync failed");
    return out;
  }
};

// What of activations a product may round.
enum class Rounding { None, Lost8Bits, All };
constexpr struct {
  Rounding rounding;
  const char* name;
} kRoundings[] = {{Rounding::None, "exact"}, {Rounding::Lost8Bits, "fine"}, {Rounding::All, "fast"}};

std::string label(CpuLevel level, const char* rounding, DType dtype) {
  return fmt::format("{} {} {}", cpuLevelName(level), rounding, dtypeName(dtype));
}

constexpr DType kTypes[] = {DType::F32,   DType::F16,     DType::BF16,   DType::Q8_0,   DType::Q4_0,
                            DType::Q4_1,  DType::Q5_0,    DType::Q5_1,   DType::Q2_K,   DType::Q3_K,
                            DType::Q4_K,  DType::Q5_K,    DType::Q6_K,   DType::IQ4_NL, DType::IQ4_XS,
                            DType::MXFP4, DType::IQ2_XXS, DType::IQ2_XS, DType::IQ2_S,  DType::IQ3_XXS,
                            DType::IQ3_S, DType::IQ1_S,   DType::IQ1_M,  DType::TQ1_0,  DType::TQ2_0};

std::vector<uint8_t> bytesOfHex(const std::string& hex) {
  const QByteArray bytes = QByteArray::fromHex(QByteArray::fromStdString(hex));
  return {bytes.begin(), bytes.end()};
}

class CpuLinearTest : public QObject {
  Q_OBJECT
 private slots:
  void levels() {
    QTest::addColumn<CpuLevel>("level");
    QTest::addColumn<Rounding>("rounding");
    QTest::addColumn<DType>("dtype");
    for (CpuLevel level : availableCpuLevels())
      for (const auto& [rounding, name] : kRoundings)
        for (DType dtype : kTypes) QTest::newRow(label(level, name, dtype).c_str()) << level << rounding << dtype;
  }
  void readersAgreeWithTheGgufPackage() {
    std::ifstream file(HEADROOM_TEST_DATA "/blocks/blocks.json");
    const nlohmann::json expected = nlohmann::json::parse(file);
    QCOMPARE(expected.size(), size_t{22});
    for (const auto& [name, entry] : expected.items()) {
      const DType dtype = *parseDType(name);
      const Raw blocks = bytesOfHex(entry["blocks"]), floats = bytesOfHex(entry["floats"]);
      const auto count = static_cast<int64_t>(floats.size() / sizeof(float));
      QCOMPARE(storageBytes(dtype, count).count(), static_cast<int64_t>(blocks.size()));
      std::vector<float> found(static_cast<size_t>(count));
      cpu::toFloats(dtype, blocks.data(), count, found.data());
      for (size_t i = 0; i < found.size(); ++i) {
        float value;
        std::memcpy(&value, floats.data() + i * sizeof value, sizeof value);
        QVERIFY2(std::fabs(found[i] - value) <= 1e-6f * std::fabs(value) + 1e-9f,
                 qPrintable(QString("%1 element %2: %3, expected %4").arg(name.c_str()).arg(i).arg(found[i]).arg(value)));
      }
    }
  }

  void matchesDoubleSums_data() { levels(); }
  void matchesDoubleSums() {
    QFETCH(CpuLevel, level);
    QFETCH(Rounding, rounding);
    QFETCH(DType, dtype);
    const bool exact = rounding == Rounding::None;
    const bool superBlocks = dtypeInfo(dtype).blockElements == 256, plain = !isBlockQuantized(dtype);
    const struct {
      int64_t out, in, tokens;
    } shapes[] = {{1, 32, 1},   {16, 64, 1},   {17, 32, 3},  {100, 96, 5}, {64, 576, 12},
                  {33, 64, 13}, {48, 160, 16}, {80, 64, 29}, {130, 32, 45}};
    for (const auto& shape : shapes) {
      const int64_t in = superBlocks ? shape.in / 32 * 256 % 1024 + 256 : plain ? shape.in - shape.out % 2 * 3 : shape.in;
      Case test({.exact = exact, .level = level}, dtype, shape.out, in, shape.tokens);
      test.fine = rounding == Rounding::Lost8Bits;
      QCOMPARE(test.weight.storage.size().count(), (storageBytes(dtype, in) * shape.out).count());
      const std::vector<float> out = test.run(0, shape.tokens, shape.out + 2);
      for (int64_t t = 0; t < shape.tokens; ++t) {
        for (int64_t o = 0; o < shape.out; ++o) {
          double magnitude = 0;
          const double expected = test.reference(t, o, &magnitude), found = out[static_cast<size_t>(t * (shape.out + 2) + o)];
          const double bound = magnitude * 1e-6 + (exact ? 0.0 : test.roundingBound(t, o));
          if (!(std::fabs(found - expected) <= bound))
            QFAIL(qPrintable(QString("(%1, %2) token %3 row %4: %5, expected %6 +- %7")
                                 .arg(shape.out)
                                 .arg(in)
                                 .arg(t)
                                 .arg(o)
                                 .arg(found)
                                 .arg(expected)
                                 .arg(bound)));
        }
        for (int64_t o = shape.out; o < shape.out + 2; ++o) QCOMPARE(out[static_cast<size_t>(t * (shape.out + 2) + o)], -77.0f);
      }
    }
  }

  void tokenAloneEqualsTokenInBatch_data() { levels(); }
  void tokenAloneEqualsTokenInBatch() {
    QFETCH(CpuLevel, level);
    QFETCH(Rounding, rounding);
    QFETCH(DType, dtype);
    const bool exact = rounding == Rounding::None;
    const int64_t out = 53, in = 256, tokens = 37;
    Case test({.exact = exact, .level = level}, dtype, out, in, tokens);
    test.fine = rounding == Rounding::Lost8Bits;
    const std::vector<float> all = test.run(0, tokens, out);
    for (int64_t count : {1, 2, 3, 4, 6, 7, 9, 16, 17}) {
      const std::vector<float> some = test.run(tokens - count, count, out);
      QCOMPARE(std::memcmp(some.data(), all.data() + (tokens - count) * out, some.size() * sizeof(float)), 0);
    }
  }

  void threadsDoNotChangeResults_data() { levels(); }
  void threadsDoNotChangeResults() {
    QFETCH(CpuLevel, level);
    QFETCH(Rounding, rounding);
    QFETCH(DType, dtype);
    const bool exact = rounding == Rounding::None;
    const int64_t out = 165, in = 256, tokens = 70;
    const auto with = [&](int threads) {
      Case test({.threads = threads, .exact = exact, .level = level}, dtype, out, in, tokens);
      test.fine = rounding == Rounding::Lost8Bits;
      return test.run(0, tokens, out);
    };
    const std::vector<float> one = with(1);
    for (int threads : {2, 3}) {
      const std::vector<float> more = with(threads);
      QCOMPARE(std::memcmp(one.data(), more.data(), one.size() * sizeof(float)), 0);
    }
  }

  void longPromptsAreCutWithoutATrace() {
    Case test({.threads = 2}, DType::Q4_1, 32, 64, 1100);
    const std::vector<float> all = test.run(0, 1100, 32);
    for (int64_t t : {0, 511, 512, 1023, 1024, 1099})
      QCOMPARE(std::memcmp(test.run(t, 1, 32).data(), all.data() + t * 32, 32 * sizeof(float)), 0);
  }

  void severalWeightsShareAnInput() {
    const int64_t in = 96, tokens = 9;
    Case q({.threads = 2}, DType::Q4_1, 70, in, tokens, 3), v({}, DType::Q8_0, 33, in, tokens, 4),
        plain({}, DType::BF16, 16, in, tokens, 5);
    std::vector<float> a(static_cast<size_t>(tokens * 70)), b(static_cast<size_t>(tokens * 33)),
        c(static_cast<size_t>(tokens * 16));
    v.input = plain.input = q.input;
    const LinearTask tasks[] = {{TensorView::of(a.data(), DType::F32, tokens, 70), &q.weight, q.bias.data()},
                                {TensorView::of(b.data(), DType::F32, tokens, 33), &v.weight, nullptr},
                                {TensorView::of(c.data(), DType::F32, tokens, 16), &plain.weight, plain.bias.data()}};
    q.backend->linear(q.in(0, tokens), tasks);
    QCOMPARE(a, q.run(0, tokens, 70));
    QCOMPARE(c, plain.run(0, tokens, 16));
    std::fill(v.bias.begin(), v.bias.end(), 0.0f);
    QCOMPARE(b, v.run(0, tokens, 33));
  }

  void embeddingReadsThePackedTable_data() {
    QTest::addColumn<DType>("dtype");
    for (DType dtype : kTypes) QTest::newRow(std::string(dtypeName(dtype)).c_str()) << dtype;
  }
  void embeddingReadsThePackedTable() {
    QFETCH(DType, dtype);
    const int64_t vocabulary = 45, hidden = 256;
    Case test({.threads = 2}, dtype, vocabulary, hidden, 1);
    std::vector<int32_t> ids = {100, 144, 99, 145, 117, 116, 143, 0};
    std::vector<float> out(ids.size() * hidden, 5.0f);
    test.backend->embed(TensorView::of(out.data(), DType::F32, static_cast<int64_t>(ids.size()), hidden), test.weight,
                        TensorView::of(ids.data(), DType::I32, 1, static_cast<int64_t>(ids.size())), 100);
    for (size_t i = 0; i < ids.size(); ++i) {
      const int64_t row = ids[i] - 100;
      for (int64_t k = 0; k < hidden; ++k) {
        const double expected =
            row < 0 || row >= vocabulary ? 0.0 : decode(dtype, test.rows.data() + row * storageBytes(dtype, hidden).count(), k);
        const double found = out[i * hidden + static_cast<size_t>(k)];
        QVERIFY2(std::fabs(found - expected) <= 2e-7 * std::fabs(expected) + 1e-7,
                 qPrintable(QString("row %1 element %2: %3, expected %4").arg(row).arg(k).arg(found).arg(expected)));
      }
    }
  }

  void floatsAreRoundedToTheMatrixType() {
    const auto backend = makeCpuBackend({});
    // Halfway cases go to the even neighbour; outside sources: IEEE 754 binary16 and the upper half of binary32.
    const std::vector<float> values = {1.0f, 1.0f + 0x1p-8f, 1.0f + 0x1p-7f + 0x1p-8f, -2.5f, 65504.0f, 0x1p-24f, 0x1.8p-25f,
                                       0.1f};
    const std::vector<float> bf16 = {1.0f, 1.0f, 1.0f + 0x1p-6f, -2.5f, 65536.0f, 0x1p-24f, 0x1.8p-25f, 0.10009765625f};
    const std::vector<float> f16 = {1.0f,     1.0f + 0x1p-8f, 1.0f + 0x1p-7f + 0x1p-8f, -2.5f, 65504.0f,
                                    0x1p-24f, 0x1p-24f,       0.0999755859375f};
    for (DType dtype : {DType::BF16, DType::F16}) {
      WeightMatrix matrix = *backend->makeMatrix(dtype, 1, 8, "test");
      backend->writeRows(matrix, 0, 1, DType::F32, values.data());
      std::vector<float> out(8);
      int32_t id = 0;
      backend->embed(TensorView::of(out.data(), DType::F32, 1, 8), matrix, TensorView::of(&id, DType::I32, 1, 1), 0);
      QCOMPARE(out, dtype == DType::BF16 ? bf16 : f16);
    }
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CpuLinearTest)
#include "cpu_linear_test.moc"
