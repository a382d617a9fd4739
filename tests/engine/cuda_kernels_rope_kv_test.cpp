// SPDX-License-Identifier: Apache-2.0
// Rotation and the KV store in the emulation against double precision.
#include "engine/device/cuda/kernels/rope_kv.h"

#include "tests/engine/cuda_kernels_support.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda;
using namespace headroom::engine::cuda::test;

namespace {

struct Angles {
  Angles(Gpu& gpu, int rotaryDim, double factor) : values(5, rotaryDim, DType::F32, 1) {
    std::vector<double> frequencies;
    for (int i = 0; i < rotaryDim / 2; ++i) frequencies.push_back(std::pow(10000.0, -2.0 * i / rotaryDim));
    for (int64_t t = 0; t < 5; ++t) {
      for (int64_t i = 0; i < rotaryDim / 2; ++i) {
        const double angle = positions[static_cast<size_t>(t)] * frequencies[static_cast<size_t>(i)];
        values.at(t, i) = static_cast<float>(factor * std::cos(angle));
        values.at(t, rotaryDim / 2 + i) = static_cast<float>(factor * std::sin(angle));
      }
    }
    view = Matrix(5, rotaryDim, DType::F32, 2).upload(gpu);
    ropeAngles(gpu.stream, view, gpu.indices(positions), gpu.upload(frequencies), factor);
  }
  double cosine(int64_t t, int64_t i) const { return values.at(t, i); }
  double sine(int64_t t, int64_t i) const { return values.at(t, values.cols / 2 + i); }
  const std::vector<int> positions = {0, 1, 77, 131071, 5};
  Matrix values;
  TensorView view;
};

// Element c of x's row t after rotation.
double rotated(const Matrix& x, int64_t t, int64_t c, int64_t headDim, const Angles& angles, bool neox) {
  const int64_t half = angles.values.cols / 2, begin = c / headDim * headDim, d = c % headDim;
  if (d >= 2 * half) return x.at(t, c);
  const int64_t pair = neox ? d % half : d / 2;
  const double a = x.at(t, begin + (neox ? pair : 2 * pair)), b = x.at(t, begin + (neox ? pair + half : 2 * pair + 1));
  const bool second = neox ? d >= half : d % 2 != 0;
  return second ? b * angles.cosine(t, pair) + a * angles.sine(t, pair) : a * angles.cosine(t, pair) - b * angles.sine(t, pair);
}

class CudaKernelsRopeKvTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void rope_data() {
    QTest::addColumn<int>("type");
    QTest::addColumn<bool>("neox");
    QTest::addColumn<int>("headDim");
    QTest::addColumn<int>("rotaryDim");
    for (DType type : {DType::F32, DType::F16, DType::BF16})
      for (bool neox : {true, false})
        for (auto [headDim, rotaryDim] : {std::pair{64, 64}, {80, 32}, {10, 6}})
          QTest::addRow("%s %s %d of %d", dtypeName(type).data(), neox ? "halves" : "neighbours", rotaryDim, headDim)
              << static_cast<int>(type) << neox << headDim << rotaryDim;
  }
  void rope() {
    QFETCH(int, type);
    QFETCH(bool, neox);
    QFETCH(int, headDim);
    QFETCH(int, rotaryDim);
    Gpu gpu;
    const auto dtype = static_cast<DType>(type);
    const Angles angles(gpu, rotaryDim, 1.25);
    Matrix found = angles.values;
    found.download(gpu, angles.view);
    compare(
        found, [&](int64_t r, int64_t c) { return angles.values.at(r, c); }, 1e-6);
    const Matrix before(5, 3 * headDim, dtype, 2);
    Matrix after = before;
    const TensorView view = before.upload(gpu);
    applyRope(gpu.stream, view, headDim, angles.view, neox ? KernelRope::Neox : KernelRope::Interleaved);
    after.download(gpu, view);
    compare(
        after, [&](int64_t r, int64_t c) { return rotated(before, r, c, headDim, angles, neox); }, tolerance(dtype));
    QCOMPARE(gpu.report(), QString());
  }

  void store_data() {
    QTest::addColumn<int>("type");
    QTest::addColumn<int>("cacheType");
    QTest::addColumn<bool>("fused");
    for (DType type : {DType::F32, DType::F16, DType::BF16})
      for (DType cache : {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2})
        for (bool fused : {false, true})
          QTest::addRow("%s to %s%s", dtypeName(type).data(), dtypeName(cache).data(), fused ? ", with norm and rotation" : "")
              << static_cast<int>(type) << static_cast<int>(cache) << fused;
  }
  void store() {
    QFETCH(int, type);
    QFETCH(int, cacheType);
    QFETCH(bool, fused);
    Gpu gpu;
    const auto dtype = static_cast<DType>(type), stored = static_cast<DType>(cacheType);
    constexpr int64_t kHeads = 3, kQueryHeads = 6, kHeadDim = 40, kValueDim = 24, kBlockTokens = 4, kBlocks = 6;
    const Angles angles(gpu, 32, 1.0);
    const Matrix q(5, kQueryHeads * kHeadDim, dtype, 1), k(5, kHeads * kHeadDim, dtype, 2), v(5, kHeads * kValueDim, dtype, 3),
        qNorm(1, kHeadDim, DType::F32, 4), kNorm(1, kHeadDim, DType::F32, 5);
    const std::vector<int> slots = {9, 3, 23, 0, 14};
    const size_t size = stored == DType::F32 ? 4 : stored == DType::F8E4M3 || stored == DType::F8E5M2 ? 1 : 2;
    const auto elements = static_cast<size_t>(kBlocks * kBlockTokens * kHeads * (kHeadDim + kValueDim));
    RopeStore task;
    task.cache = {gpu.upload(std::vector<uint8_t>(elements * size, 0)), stored, kBlockTokens, kHeads, kHeadDim, kValueDim};
    task.k = k.upload(gpu);
    task.v = v.upload(gpu);
    task.slots = gpu.indices(slots);
    Matrix queries = q;
    if (fused) {
      task.q = q.upload(gpu);
      task.qNorm = static_cast<const float*>(qNorm.upload(gpu).data);
      task.kNorm = static_cast<const float*>(kNorm.upload(gpu).data);
      task.epsilon = 1e-5;
      task.offset = 1.0;
      task.cosSin = angles.view;
      ropeAndStoreKv(gpu.stream, task);
      queries.download(gpu, task.q);
    } else {
      storeKv(gpu.stream, task.cache, task.k, task.v, task.slots);
    }

    const auto normed = [&](const Matrix& x, const Matrix& weight) {
      Matrix result = x;
      for (int64_t t = 0; t < 5; ++t)
        for (int64_t c = 0; c < x.cols; ++c) {
          double squares = 0;
          for (int64_t i = 0; i < kHeadDim; ++i) squares += std::pow(x.at(t, c / kHeadDim * kHeadDim + i), 2);
          result.at(t, c) =
              static_cast<float>(x.at(t, c) / std::sqrt(squares / kHeadDim + 1e-5) * (weight.at(0, c % kHeadDim) + 1.0));
        }
      result.round();
      return result;
    };
    const double relative = 3 * tolerance(dtype) + (stored == DType::F8E4M3   ? 0x1p-4
                                                    : stored == DType::F8E5M2 ? 0x1p-3
                                                                              : tolerance(stored));
    if (fused) {
      const Matrix expected = normed(q, qNorm);
      compare(
          queries, [&](int64_t t, int64_t c) { return rotated(expected, t, c, kHeadDim, angles, true); }, 3 * tolerance(dtype),
          2.0);
    }
    const Matrix keys = fused ? normed(k, kNorm) : k;
    const std::vector<uint8_t> bytes = gpu.download<uint8_t>(task.cache.data, elements * size);
    std::vector<float> cached(elements);
    if (stored == DType::F8E4M3) {
      for (size_t i = 0; i < elements; ++i) {  // exponents biased by 7
        const int exponent = (bytes[i] >> 3) & 15, mantissa = bytes[i] & 7;
        const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                              : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
        cached[i] = bytes[i] & 0x80 ? -magnitude : magnitude;
      }
    } else if (stored == DType::F8E5M2) {
      for (size_t i = 0; i < elements; ++i) cached[i] = cpu::f16ToFloat(static_cast<uint16_t>(bytes[i] << 8));
    } else {
      cpu::toFloats(stored, bytes.data(), static_cast<int64_t>(elements), cached.data());
    }
    size_t written = 0;
    for (float value : cached) written += value != 0.0f;
    QVERIFY(written > elements / 6 && written <= 5 * kHeads * (kHeadDim + kValueDim));
    for (int64_t t = 0; t < 5; ++t) {
      const int64_t block = slots[static_cast<size_t>(t)] / kBlockTokens, offset = slots[static_cast<size_t>(t)] % kBlockTokens,
                    base = block * kBlockTokens * kHeads * (kHeadDim + kValueDim);
      for (int64_t head = 0; head < kHeads; ++head) {
        for (int64_t d = 0; d < kHeadDim; ++d) {
          const double found = cached[static_cast<size_t>(base + (head * kBlockTokens + offset) * kHeadDim + d)];
          const double expected =
              fused ? rotated(keys, t, head * kHeadDim + d, kHeadDim, angles, true) : k.at(t, head * kHeadDim + d);
          QVERIFY2(std::abs(found - expected) <= relative * std::max(fused ? 2.0 : 0.02, std::abs(expected)),
                   qPrintable(QString("%1 %2").arg(found).arg(expected)));
        }
        for (int64_t d = 0; d < kValueDim; ++d) {
          const double found = cached[static_cast<size_t>(base + kBlockTokens * kHeads * kHeadDim +
                                                          (head * kBlockTokens + offset) * kValueDim + d)];
          QVERIFY(std::abs(found - v.at(t, head * kValueDim + d)) <= relative * std::max(0.02, std::abs(found)));
        }
      }
    }
    QCOMPARE(gpu.report(), QString());
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsRopeKvTest)
#include "cuda_kernels_rope_kv_test.moc"
