// SPDX-License-Identifier: Apache-2.0
// The experts' MLPs in the emulation against double precision.
#include "engine/device/cuda/kernels/expert_mlp.h"

#include "tests/engine/cuda_kernels_packed_support.h"

#include <algorithm>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda;
using namespace headroom::engine::cuda::test;

namespace {

constexpr int kExperts = 6;
constexpr int64_t kHidden = 64, kColumns = 96;

// The matrices of all experts, plain or packed.
struct Matrices {
  Matrices(Gpu& gpu, int format, DType type, int64_t out, int64_t in, unsigned seed, bool biased)
      : bias(kExperts, out, DType::F32, seed) {
    std::vector<const uint8_t*> data, zeros;
    std::vector<const void*> scales;
    for (unsigned e = 0; e < kExperts; ++e) {
      if (format < 0) {
        values.emplace_back(out, in, type, seed + e, 0.3f);
        data.push_back(static_cast<const uint8_t*>(values.back().upload(gpu).data));
        device.denseShape = {nullptr, type, out, in};
        continue;
      }
      const StoredMatrix stored(kFormats[format], out, in, seed + e);
      device.packedShape = stored.pack(gpu, {{0, out}});
      data.push_back(device.packedShape.data);
      scales.push_back(device.packedShape.scales);
      zeros.push_back(device.packedShape.zeros);
      values.push_back(stored.values);
    }
    device.packed = format >= 0;
    device.packedShape.data = nullptr;
    device.data = gpu.upload(data);
    if (device.packed && device.packedShape.scales) device.scales = gpu.upload(scales);
    if (device.packed && device.packedShape.zeros) device.zeros = gpu.upload(zeros);
    if (biased) device.bias = static_cast<const float*>(bias.upload(gpu).data);
  }
  double times(int expert, int64_t out, const std::vector<double>& x) const {
    double sum = device.bias ? bias.at(expert, out) : 0.0;
    for (size_t k = 0; k < x.size(); ++k) sum += values[static_cast<size_t>(expert)].at(out, static_cast<int64_t>(k)) * x[k];
    return sum;
  }
  std::vector<Matrix> values;
  Matrix bias;
  ExpertMatrices device;
};

class CudaKernelsExpertMlpTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void experts_data() {
    QTest::addColumn<int>("format");
    QTest::addColumn<int>("type");
    QTest::addColumn<int>("tokens");
    QTest::addColumn<int>("variant");  // 0: plain; 1: biases, clamped SwiGLU, out added; 2: weights on the input
    QTest::newRow("one token, BF16") << -1 << static_cast<int>(DType::BF16) << 1 << 0;
    QTest::newRow("floats") << -1 << static_cast<int>(DType::F32) << 9 << 0;
    QTest::newRow("many tokens, F16, biases") << -1 << static_cast<int>(DType::F16) << 60 << 1;
    QTest::newRow("weights on the input") << -1 << static_cast<int>(DType::F32) << 7 << 2;
    QTest::newRow("Q8_0, floats") << 0 << static_cast<int>(DType::F32) << 5 << 0;
    QTest::newRow("MXFP4, biases") << 12 << static_cast<int>(DType::BF16) << 4 << 1;
    QTest::newRow("int4, many tokens") << 13 << static_cast<int>(DType::F16) << 80 << 2;
  }
  void experts() {
    QFETCH(int, format);
    QFETCH(int, type);
    QFETCH(int, tokens);
    QFETCH(int, variant);
    Gpu gpu;
    const auto dtype = static_cast<DType>(type);
    // kColumns is no multiple of 64, the groups of formats with scales apart: those get 128.
    const int64_t columns = format >= 13 ? 128 : kColumns;
    const Matrices gate(gpu, format, dtype, columns, kHidden, 100, variant == 1),
        up(gpu, format, dtype, columns, kHidden, 200, variant == 1),
        down(gpu, format, dtype, kHidden, columns, 300, variant == 1);
    const Matrix in(tokens, kHidden, dtype, 5), before(tokens, kHidden, dtype, 6), weights(tokens, 2, DType::F32, 7);
    std::vector<int> ids;
    for (int t = 0; t < tokens; ++t) {
      ids.push_back(t % 5 == 4 ? 5 : (t * 3 + 1) % 4);
      ids.push_back(t % 7 == 3        ? -1
                    : ids.back() == 0 ? 3
                                      : 0);  // some tokens have one expert only; experts 4 and often 5 have no token
    }
    Matrix out = before;
    ExpertMlp task;
    task.out = before.upload(gpu);
    task.in = in.upload(gpu);
    task.ids = TensorView::of(gpu.upload(ids), DType::I32, tokens, 2);
    task.weights = weights.upload(gpu);
    task.experts = kExperts;
    task.columns = columns;
    task.gate = gate.device;
    task.up = up.device;
    task.down = down.device;
    task.swigluLimit = variant == 1 ? 0.7f : 0.0f;
    task.addToOut = variant == 1;
    task.weightsOnInput = variant == 2;
    task.scratch = gpu.allocate(static_cast<size_t>(expertMlpBytes(tokens, 2, kExperts, kHidden, columns, dtype)));
    expertMlp(gpu.stream, task, {});
    out.download(gpu, task.out);
    double worst = 0, size = 0;
    for (int t = 0; t < tokens; ++t) {
      std::vector<double> expected(kHidden, 0.0);
      for (int i = 0; i < 2; ++i) {
        const int expert = ids[static_cast<size_t>(2 * t + i)];
        if (expert < 0) continue;
        const double weight = weights.at(t, i);
        std::vector<double> x, inner;
        for (int64_t k = 0; k < kHidden; ++k) x.push_back(in.at(t, k) * (variant == 2 ? weight : 1.0));
        for (int64_t c = 0; c < columns; ++c) {
          const double a = gate.times(expert, c, x), b = up.times(expert, c, x);
          const double g = std::min(a, 0.7);
          inner.push_back(variant == 1 ? g / (1 + std::exp(-1.702 * g)) * (std::clamp(b, -0.7, 0.7) + 1)
                                       : a / (1 + std::exp(-a)) * b);
        }
        for (int64_t o = 0; o < kHidden; ++o)
          expected[static_cast<size_t>(o)] += down.times(expert, o, inner) * (variant == 2 ? 1.0 : weight);
      }
      for (int64_t o = 0; o < kHidden; ++o) {
        const double wanted = expected[static_cast<size_t>(o)] + (variant == 1 ? before.at(t, o) : 0.0f);
        worst = std::max(worst, std::abs(out.at(t, o) - wanted));
        size = std::max(size, std::abs(wanted));
      }
    }
    // Gate, up, their product and the result are rounded to the activation type once each.
    QVERIFY2(worst <= 4 * tolerance(dtype) * size, qPrintable(QString("%1 of %2").arg(worst).arg(size)));
    QVERIFY(size > 0.05);
    QCOMPARE(gpu.report(), QString());
  }

  void aRankWithoutColumnsAddsNothing() {
    for (bool add : {false, true}) {
      Gpu gpu;
      const Matrix in(3, kHidden, DType::BF16, 5), before(3, kHidden, DType::BF16, 6), weights(3, 2, DType::F32, 7);
      Matrix out = before;
      ExpertMlp task;
      task.out = before.upload(gpu);
      task.in = in.upload(gpu);
      task.ids = TensorView::of(gpu.upload(std::vector<int>{0, 1, 2, 3, 4, 5}), DType::I32, 3, 2);
      task.weights = weights.upload(gpu);
      task.experts = kExperts;
      task.addToOut = add;
      task.scratch = gpu.allocate(static_cast<size_t>(expertMlpBytes(3, 2, kExperts, kHidden, 0, DType::BF16)));
      expertMlp(gpu.stream, task, {});
      out.download(gpu, task.out);
      compare(
          out, [&](int64_t t, int64_t c) { return add ? before.at(t, c) : 0.0f; }, 0.0);
      QCOMPARE(gpu.report(), QString());
    }
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsExpertMlpTest)
#include "cuda_kernels_expert_mlp_test.moc"
