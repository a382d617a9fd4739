// SPDX-License-Identifier: Apache-2.0
// Element-wise kernels in the emulation against double precision.
#include "engine/device/cuda/kernels/elementwise.h"

#include "tests/engine/cuda_kernels_support.h"

#include <functional>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda;
using namespace headroom::engine::cuda::test;

namespace {

double activated(double x, KernelActivation activation) {
  switch (activation) {
    case KernelActivation::Silu:
      return x / (1 + std::exp(-x));
    case KernelActivation::Gelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case KernelActivation::GeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case KernelActivation::Relu2:
      return x > 0 ? x * x : 0;
  }
  return 0;
}

struct Shape {
  int64_t rows, cols;
};
constexpr Shape kShapes[] = {{1, 1}, {3, 7}, {2, 64}, {2, 1040}};

class CudaKernelsElementwiseTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void operations_data() { activationTypes(); }
  void operations() {
    QFETCH(int, type);
    const auto dtype = static_cast<DType>(type);
    for (const Shape& shape : kShapes) {
      Gpu gpu;
      Matrix x(shape.rows, shape.cols, dtype, 1, 4.0f);
      x.at(0, 0) = -100.0f;
      if (shape.cols > 2) x.at(0, 1) = 100.0f, x.at(0, 2) = 0.0f;
      const Matrix y(shape.rows, shape.cols, dtype, 2, 2.0f), column(shape.rows, 1, dtype, 3, 2.0f),
          bias(1, shape.cols, DType::F32, 4);
      using Launch = std::function<void(TensorView out, TensorView in)>;
      using Expected = std::function<double(int64_t row, int64_t col)>;
      const TensorView deviceY = y.upload(gpu), deviceColumn = column.upload(gpu);
      const auto* deviceBias = static_cast<const float*>(bias.upload(gpu).data);
      const auto check = [&](const Launch& launch, const Expected& expected) {
        Matrix out = x;
        const TensorView in = x.upload(gpu);
        launch(in, in);
        out.download(gpu, in);
        compare(out, expected, tolerance(dtype) * 1.5);
      };
      for (auto activation :
           {KernelActivation::Silu, KernelActivation::Gelu, KernelActivation::GeluTanh, KernelActivation::Relu2}) {
        check([&](TensorView out, TensorView in) { gatedActivation(gpu.stream, out, in, deviceY, activation); },
              [&](int64_t r, int64_t c) { return activated(x.at(r, c), activation) * y.at(r, c); });
        check([&](TensorView out, TensorView) { activate(gpu.stream, out, activation); },
              [&](int64_t r, int64_t c) { return activated(x.at(r, c), activation); });
      }
      check([&](TensorView out, TensorView in) { clampedSwiglu(gpu.stream, out, in, deviceY, 1.702f, 1.25f); },
            [&](int64_t r, int64_t c) {
              const double gate = std::min<double>(x.at(r, c), 1.25), up = std::clamp<double>(y.at(r, c), -1.25, 1.25);
              return gate / (1 + std::exp(-1.702 * gate)) * (up + 1);
            });
      check([&](TensorView out, TensorView) { add(gpu.stream, out, deviceY); },
            [&](int64_t r, int64_t c) { return static_cast<double>(x.at(r, c)) + y.at(r, c); });
      check([&](TensorView out, TensorView) { scale(gpu.stream, out, -0.375); },
            [&](int64_t r, int64_t c) { return -0.375 * x.at(r, c); });
      check([&](TensorView out, TensorView) { softcap(gpu.stream, out, 3.0); },
            [&](int64_t r, int64_t c) { return 3.0 * std::tanh(x.at(r, c) / 3.0); });
      check([&](TensorView out, TensorView) { addBias(gpu.stream, out, deviceBias); },
            [&](int64_t r, int64_t c) { return static_cast<double>(x.at(r, c)) + bias.at(0, c); });
      check([&](TensorView out, TensorView) { sigmoidGate(gpu.stream, out, deviceY); },
            [&](int64_t r, int64_t c) { return x.at(r, c) / (1 + std::exp(-static_cast<double>(y.at(r, c)))); });
      check([&](TensorView out, TensorView) { sigmoidGate(gpu.stream, out, deviceColumn); },
            [&](int64_t r, int64_t c) { return x.at(r, c) / (1 + std::exp(-static_cast<double>(column.at(r, 0)))); });
      QCOMPARE(gpu.report(), QString());
    }
  }

  void scaleByPosition_data() { activationTypes(); }
  void scaleByPosition() {
    QFETCH(int, type);
    Gpu gpu;
    const Matrix before(4, 9, static_cast<DType>(type), 1);
    Matrix after = before;
    const TensorView view = before.upload(gpu);
    const std::vector<int> positions = {0, 8191, 8192, 100000};
    cuda::scaleByPosition(gpu.stream, view, gpu.indices(positions), 8192.0, 0.1);
    after.download(gpu, view);
    compare(
        after,
        [&](int64_t r, int64_t c) {
          return before.at(r, c) * (1 + 0.1 * std::log(1 + std::floor((positions[static_cast<size_t>(r)] + 1) / 8192.0)));
        },
        tolerance(before.dtype));
    QCOMPARE(gpu.report(), QString());
  }

  void headsMoveBetweenLayouts() {
    Gpu gpu;
    const Matrix in(3, 24, DType::F16, 1);
    Matrix out(3, 30, DType::F16, 2);
    const Matrix before = out;
    const TensorView view = out.upload(gpu);
    copyHeads(gpu.stream, view, 10, in.upload(gpu).columns(5, 19), 8, 3, 3);
    out.download(gpu, view);
    compare(
        out, [&](int64_t r, int64_t c) { return c % 10 < 3 ? in.at(r, c / 10 * 8 + 5 + c % 10) : before.at(r, c); }, 0.0);
    QCOMPARE(gpu.report(), QString());
  }

  void rowsAndTypes_data() {
    QTest::addColumn<int>("from");
    QTest::addColumn<int>("to");
    for (DType from : {DType::F32, DType::F16, DType::BF16})
      for (DType to : {DType::F32, DType::F16, DType::BF16})
        QTest::addRow("%s to %s", dtypeName(from).data(), dtypeName(to).data()) << static_cast<int>(from) << static_cast<int>(to);
  }
  void rowsAndTypes() {
    QFETCH(int, from);
    QFETCH(int, to);
    for (int64_t cols : {1, 24, 35}) {
      Gpu gpu;
      const Matrix table(10, cols, static_cast<DType>(from), 1);
      Matrix out(4, cols, static_cast<DType>(to), 2);
      const TensorView view = out.upload(gpu), device = table.upload(gpu);
      const auto rounded = [&](float value) {
        Matrix one(1, 1, static_cast<DType>(to), 1);
        one.values[0] = value;
        one.round();
        return static_cast<double>(one.values[0]);
      };
      embed(gpu.stream, view, device, gpu.indices({100, 99, 109, 110}), 100);
      out.download(gpu, view);
      compare(
          out, [&](int64_t r, int64_t c) { return r == 0   ? rounded(table.at(0, c))
                                                  : r == 2 ? rounded(table.at(9, c))
                                                           : 0.0; },
          0.0);
      const std::vector<int> rows = {9, 0, 4, 4};
      gatherRows(gpu.stream, view, device, gpu.indices(rows));
      out.download(gpu, view);
      compare(
          out, [&](int64_t r, int64_t c) { return rounded(table.at(rows[static_cast<size_t>(r)], c)); }, 0.0);
      convert(gpu.stream, view, device.head(4));
      out.download(gpu, view);
      compare(
          out, [&](int64_t r, int64_t c) { return rounded(table.at(r, c)); }, 0.0);
      QCOMPARE(gpu.report(), QString());
    }
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsElementwiseTest)
#include "cuda_kernels_elementwise_test.moc"
