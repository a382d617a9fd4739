// SPDX-License-Identifier: Apache-2.0
// Memory and element-wise operations of the CPU backend: every operation against its formula in double precision, on every
// instruction set.
#include "engine/device/cpu/cpu_backend.h"

#include <QtTest>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

using namespace headroom;
using namespace headroom::engine;

Q_DECLARE_METATYPE(headroom::engine::CpuLevel)

namespace {

// A matrix of random numbers with a gap after each row; the gap must never change.
struct Matrix {
  Matrix(int64_t rows, int64_t cols, unsigned seed, float size = 1.0f)
      : rows(rows), cols(cols), stride(cols + 3), data(static_cast<size_t>(rows * stride), -55.0f) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, size);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) at(r, c) = normal(random);
  }
  float& at(int64_t r, int64_t c) { return data[static_cast<size_t>(r * stride + c)]; }
  float at(int64_t r, int64_t c) const { return data[static_cast<size_t>(r * stride + c)]; }
  TensorView view() { return {data.data(), DType::F32, rows, cols, stride}; }
  int64_t rows, cols, stride;
  std::vector<float> data;
};

// Compares with expected(row, column).
template <class Expected>
void compare(const Matrix& found, const Expected& expected, double tolerance = 2e-6) {
  for (int64_t r = 0; r < found.rows; ++r) {
    for (int64_t c = 0; c < found.stride; ++c) {
      const double x = c < found.cols ? expected(r, c) : -55.0;
      const double error = std::fabs(found.at(r, c) - x);
      if (!(error <= tolerance * (1 + std::fabs(x))))
        QFAIL(qPrintable(QString("(%1, %2): %3, expected %4").arg(r).arg(c).arg(found.at(r, c)).arg(x)));
    }
  }
}

double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::Silu:
      return x / (1 + std::exp(-x));
    case Activation::Gelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Activation::GeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::Relu2:
      return x > 0 ? x * x : 0;
  }
  return 0;
}

int64_t residentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

TensorView indices(std::vector<int32_t>& values) {
  return TensorView::of(values.data(), DType::I32, 1, static_cast<int64_t>(values.size()));
}

class CpuBackendTest : public QObject {
  Q_OBJECT

  // Rows of every length around the widths of vectors, and enough rows to be shared by threads.
  struct Shape {
    int64_t rows, cols;
  };
  static constexpr Shape kShapes[] = {{1, 1}, {3, 7}, {2, 16}, {5, 33}, {4, 576}, {200, 301}};

  static void levels() {
    QTest::addColumn<CpuLevel>("level");
    for (CpuLevel level : availableCpuLevels()) QTest::newRow(std::string(cpuLevelName(level)).c_str()) << level;
  }
  static std::unique_ptr<Backend> make(CpuLevel level) { return makeCpuBackend({.threads = 3, .level = level}); }

 private slots:
  void rmsNorm_data() { levels(); }
  void rmsNorm() {
    QFETCH(CpuLevel, level);
    const auto backend = make(level);
    for (const Shape& shape : kShapes) {
      Matrix x(shape.rows, shape.cols, 1, 3.0f), out(shape.rows, shape.cols, 2), weight(1, shape.cols, 3),
          residual(shape.rows, shape.cols, 4), delta = x;
      const auto norm = [&](const Matrix& in, double offset, double epsilon) {
        return [&, offset, epsilon](int64_t r, int64_t c) {
          double squares = 0;
          for (int64_t i = 0; i < in.cols; ++i) squares += std::pow(in.at(r, i), 2);
          return in.at(r, c) / std::sqrt(squares / static_cast<double>(in.cols) + epsilon) * (weight.at(0, c) + offset);
        };
      };
      backend->rmsNorm(out.view(), x.view(), weight.data.data(), 1e-5, 0.0);
      compare(out, norm(x, 0.0, 1e-5));
      backend->rmsNorm(out.view(), x.view(), weight.data.data(), 0.5, 1.0);
      compare(out, norm(x, 1.0, 0.5));
      Matrix sum = residual;
      for (int64_t r = 0; r < sum.rows; ++r)
        for (int64_t c = 0; c < sum.cols; ++c) sum.at(r, c) += delta.at(r, c);
      backend->addRmsNorm(out.view(), residual.view(), delta.view(), weight.data.data(), 1e-6, 0.0);
      QCOMPARE(residual.data, [&] {
        Matrix exact = sum;
        return exact.data;
      }());
      compare(out, norm(sum, 0.0, 1e-6));
      const Matrix before = x;
      backend->rmsNorm(x.view(), x.view(), weight.data.data(), 1e-5, 0.0);
      compare(x, norm(before, 0.0, 1e-5));
    }
  }

  void layerNorm_data() { levels(); }
  void layerNorm() {
    QFETCH(CpuLevel, level);
    const auto backend = make(level);
    for (const Shape& shape : kShapes) {
      Matrix x(shape.rows, shape.cols, 1, 3.0f), out(shape.rows, shape.cols, 2), weight(1, shape.cols, 3), bias(1, shape.cols, 4);
      for (bool biased : {true, false}) {
        backend->layerNorm(out.view(), x.view(), weight.data.data(), biased ? bias.data.data() : nullptr, 1e-5);
        compare(out, [&](int64_t r, int64_t c) {
          double mean = 0, variance = 0;
          for (int64_t i = 0; i < x.cols; ++i) mean += x.at(r, i) / static_cast<double>(x.cols);
          for (int64_t i = 0; i < x.cols; ++i) variance += std::pow(x.at(r, i) - mean, 2) / static_cast<double>(x.cols);
          return (x.at(r, c) - mean) / std::sqrt(variance + 1e-5) * weight.at(0, c) + (biased ? bias.at(0, c) : 0.0f);
        });
      }
    }
  }

  void headRmsNorm_data() { levels(); }
  void headRmsNorm() {
    QFETCH(CpuLevel, level);
    const auto backend = make(level);
    for (int64_t headDim : {5, 16, 64}) {
      Matrix x(9, 3 * headDim, 1), weight(1, headDim, 2);
      const Matrix before = x;
      backend->headRmsNorm(x.view(), headDim, weight.data.data(), 1e-6, 1.0);
      compare(x, [&](int64_t r, int64_t c) {
        double squares = 0;
        for (int64_t i = 0; i < headDim; ++i) squares += std::pow(before.at(r, c / headDim * headDim + i), 2);
        return before.at(r, c) / std::sqrt(squares / static_cast<double>(headDim) + 1e-6) * (weight.at(0, c % headDim) + 1.0);
      });
    }
  }

  void rope_data() {
    QTest::addColumn<CpuLevel>("level");
    QTest::addColumn<int>("style");
    QTest::addColumn<int>("headDim");
    QTest::addColumn<int>("rotaryDim");
    for (CpuLevel level : availableCpuLevels())
      for (RopeStyle style : {RopeStyle::Neox, RopeStyle::Interleaved})
        for (auto [headDim, rotaryDim] : {std::pair{64, 64}, {80, 32}, {10, 6}})
          QTest::newRow(fmt::format("{} {} {} of {}", cpuLevelName(level), style == RopeStyle::Neox ? "halves" : "neighbours",
                                    rotaryDim, headDim)
                            .c_str())
              << level << static_cast<int>(style) << headDim << rotaryDim;
  }
  void rope() {
    QFETCH(CpuLevel, level);
    QFETCH(int, style);
    QFETCH(int, headDim);
    QFETCH(int, rotaryDim);
    const bool neox = static_cast<RopeStyle>(style) == RopeStyle::Neox;
    const auto backend = make(level);
    const int half = rotaryDim / 2;
    std::vector<int32_t> positions = {0, 1, 77, 131071, 5};
    std::vector<double> frequencies;
    for (int i = 0; i < half; ++i) frequencies.push_back(std::pow(10000.0, -2.0 * i / rotaryDim));
    Matrix angles(5, rotaryDim, 1), x(5, 3 * headDim, 2);
    const Matrix before = x;
    backend->ropeAngles(angles.view(), indices(positions), frequencies.data(), 1.25);
    const auto angle = [&](int64_t r, int64_t i) {
      return positions[static_cast<size_t>(r)] * frequencies[static_cast<size_t>(i)];
    };
    compare(
        angles, [&](int64_t r, int64_t c) { return 1.25 * (c < half ? std::cos(angle(r, c)) : std::sin(angle(r, c - half))); },
        1e-7);
    backend->applyRope(x.view(), headDim, angles.view(), static_cast<RopeStyle>(style));
    compare(x, [&](int64_t r, int64_t c) {
      const int64_t begin = c / headDim * headDim, d = c % headDim;
      if (d >= rotaryDim) return static_cast<double>(before.at(r, c));
      const int64_t pair = neox ? d % half : d / 2;
      const bool second = neox ? d >= half : d % 2;
      const double a = before.at(r, begin + (neox ? pair : 2 * pair)),
                   b = before.at(r, begin + (neox ? pair + half : 2 * pair + 1));
      const double cosine = 1.25 * std::cos(angle(r, pair)), sine = 1.25 * std::sin(angle(r, pair));
      return second ? b * cosine + a * sine : a * cosine - b * sine;
    });
  }

  void activations_data() { levels(); }
  void activations() {
    QFETCH(CpuLevel, level);
    const auto backend = make(level);
    for (const Shape& shape : kShapes) {
      for (Activation activation : {Activation::Silu, Activation::Gelu, Activation::GeluTanh, Activation::Relu2}) {
        Matrix gate(shape.rows, shape.cols, 1, 4.0f), up(shape.rows, shape.cols, 2), out(shape.rows, shape.cols, 3);
        gate.at(0, 0) = -200.0f;
        if (shape.cols > 2) gate.at(0, 1) = 200.0f, gate.at(0, 2) = 0.0f;
        const Matrix before = gate;
        backend->gatedActivation(out.view(), gate.view(), up.view(), activation);
        compare(out, [&](int64_t r, int64_t c) { return activated(before.at(r, c), activation) * up.at(r, c); });
        backend->gatedActivation(gate.view(), gate.view(), up.view(), activation);
        QCOMPARE(gate.data, out.data);
        gate = before;
        backend->activate(gate.view(), activation);
        compare(gate, [&](int64_t r, int64_t c) { return activated(before.at(r, c), activation); });
      }
    }
  }

  void addScaleSoftcapGather_data() { levels(); }
  void addScaleSoftcapGather() {
    QFETCH(CpuLevel, level);
    const auto backend = make(level);
    for (const Shape& shape : kShapes) {
      Matrix x(shape.rows, shape.cols, 1, 20.0f), delta(shape.rows, shape.cols, 2);
      Matrix before = x;
      backend->add(x.view(), delta.view());
      compare(x, [&](int64_t r, int64_t c) { return static_cast<double>(before.at(r, c)) + delta.at(r, c); });
      before = x;
      backend->scale(x.view(), -0.25);
      compare(
          x, [&](int64_t r, int64_t c) { return -0.25 * before.at(r, c); }, 0.0);
      before = x;
      backend->softcap(x.view(), 3.0);
      compare(x, [&](int64_t r, int64_t c) { return 3.0 * std::tanh(before.at(r, c) / 3.0); });
      std::vector<int32_t> rows = {static_cast<int32_t>(shape.rows - 1), 0, static_cast<int32_t>(shape.rows / 2), 0};
      Matrix gathered(4, shape.cols, 3);
      backend->gatherRows(gathered.view(), x.view(), indices(rows));
      compare(
          gathered, [&](int64_t r, int64_t c) { return static_cast<double>(x.at(rows[static_cast<size_t>(r)], c)); }, 0.0);
    }
    QVERIFY(backend->sync());
  }

  void memoryIsCountedAgainstTheBudget() {
    const auto backend = makeCpuBackend({.device = 4, .budget = 1_MiB});
    QCOMPARE(backend->allocatedBytes(), 0_B);
    auto first = backend->allocate(700_KiB, "weights");
    auto second = backend->allocate(100_B, "norms");
    QVERIFY(first && second);
    QCOMPARE(backend->allocatedBytes(), 700_KiB + 100_B);
    QCOMPARE(reinterpret_cast<uintptr_t>(first->data()) % 64, 0u);
    QCOMPARE(reinterpret_cast<uintptr_t>(second->data()) % 64, 0u);
    const auto tooMuch = backend->allocate(400_KiB, "KV cache");
    QVERIFY(!tooMuch);
    QCOMPARE(tooMuch.error().where, std::string("host device 4, KV cache"));
    QCOMPARE(tooMuch.error().found, std::string("331676 bytes free of 1.0 MiB"));
    QCOMPARE(tooMuch.error().expected, std::string("409600 bytes"));
    QCOMPARE(backend->allocatedBytes(), 700_KiB + 100_B);
    *first = DeviceBuffer();
    QCOMPARE(backend->allocatedBytes(), 100_B);
    QVERIFY(backend->allocate(1_MiB - 100_B, "all the rest"));
    QCOMPARE(backend->allocatedBytes(), 100_B);
    const auto matrix = backend->makeMatrix(DType::Q4_1, 4096, 512, "layers.0 q_proj");
    QVERIFY(!matrix);
    QCOMPARE(matrix.error().where, std::string("host device 4, layers.0 q_proj"));
  }

  void matricesOfUnknownTypesAreRefused() {
    const auto backend = makeCpuBackend({});
    const auto type = backend->makeMatrix(DType::I16, 16, 256, "layers.0 q_proj");
    QVERIFY(!type);
    QCOMPARE(type.error().where, std::string("layers.0 q_proj"));
    const auto width = backend->makeMatrix(DType::Q8_0, 16, 40, "layers.0 k_proj");
    QVERIFY(!width);
    QCOMPARE(width.error().found, std::string("rows of 40 elements"));
    QCOMPARE(backend->allocatedBytes(), 0_B);
  }

  void untouchedPagesCostNothing() {
    const auto backend = makeCpuBackend({});
    const int64_t before = residentBytes();
    const auto buffer = backend->allocate(512_MiB, "KV cache");
    QVERIFY(buffer);
    static_cast<char*>(buffer->data())[100 << 20] = 1;
    QVERIFY(residentBytes() - before < (16 << 20));
  }

  void copiesGoBothWays() {
    const auto backend = makeCpuBackend({});
    auto buffer = backend->allocate(16_B, "test");
    const std::vector<int32_t> from = {1, -2, 3, 4};
    std::vector<int32_t> to(4);
    backend->copyToDevice(buffer->data(), from.data(), 16_B);
    backend->copyToHost(to.data(), buffer->data(), 16_B);
    QCOMPARE(to, from);
    QCOMPARE(backend->hostAddress(buffer->data()), buffer->data());
  }

  void threadsWakeFromSleepAndShareItems() {
    for (bool spin : {true, false}) {
      const auto backend = makeCpuBackend({.threads = 4, .spin = spin});
      QVERIFY(backend->info().description.ends_with(", 4 threads"));
      Matrix x(64, 4096, 1);
      const Matrix before = x;
      for (int i = 0; i < 40; ++i) {
        if (i % 10 == 0) QTest::qSleep(3);
        backend->scale(x.view(), i % 2 ? 0.5 : 2.0);
      }
      QCOMPARE(x.data, before.data);
    }
  }

  void levelsAreNamedAndOrdered() {
    const std::vector<CpuLevel> levels = availableCpuLevels();
    QVERIFY(levels.front() == CpuLevel::Baseline);
    QVERIFY(std::is_sorted(levels.begin(), levels.end()));
    qunsetenv("HEADROOM_CPU_LEVEL");
    const CpuLevel best = bestCpuLevel();
    // The highest, except where BF16 products are the slower ones.
    QVERIFY(best == levels.back() || (levels.back() == CpuLevel::Avx512Bf16 && best == CpuLevel::Avx512Vnni));
    qputenv("HEADROOM_CPU_LEVEL", "abacus");
    QVERIFY(bestCpuLevel() == best);
    for (CpuLevel level : levels) {
      qputenv("HEADROOM_CPU_LEVEL", std::string(cpuLevelName(level)).c_str());
      QVERIFY(bestCpuLevel() == level);
    }
    qunsetenv("HEADROOM_CPU_LEVEL");
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CpuBackendTest)
#include "cpu_backend_test.moc"
