// SPDX-License-Identifier: Apache-2.0
// Norm kernels in the emulation against double precision.
#include "engine/device/cuda/kernels/norms.h"

#include "tests/engine/cuda_kernels_support.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda::test;

namespace {

// Widths with and without whole 16-byte pieces, one token, more columns than a block has threads.
struct Shape {
  int64_t rows, cols;
};
constexpr Shape kShapes[] = {{1, 1}, {3, 7}, {2, 64}, {5, 33}, {1, 576}, {2, 4096}, {2, 9000}};

double squares(const Matrix& x, int64_t row, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += std::pow(x.at(row, i), 2);
  return sum;
}

class CudaKernelsNormsTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void rmsNorm_data() { activationTypes(); }
  void rmsNorm() {
    QFETCH(int, type);
    const auto dtype = static_cast<DType>(type);
    for (const Shape& shape : kShapes) {
      Gpu gpu;
      const Matrix in(shape.rows, shape.cols, dtype, 1, 3.0f), delta(shape.rows, shape.cols, dtype, 4),
          weight(1, shape.cols, DType::F32, 3);
      Matrix out(shape.rows, shape.cols, dtype, 2), residual = in;
      const TensorView deviceIn = in.upload(gpu), deviceOut = out.upload(gpu), deviceDelta = delta.upload(gpu);
      const auto* deviceWeight = static_cast<const float*>(weight.upload(gpu).data);
      const auto norm = [&](const Matrix& x, double epsilon, double offset) {
        return [&, epsilon, offset](int64_t r, int64_t c) {
          return x.at(r, c) / std::sqrt(squares(x, r, 0, x.cols) / static_cast<double>(x.cols) + epsilon) *
                 (weight.at(0, c) + offset);
        };
      };
      cuda::rmsNorm(gpu.stream, deviceOut, deviceIn, deviceWeight, 0.5, 1.0);
      out.download(gpu, deviceOut);
      compare(out, norm(in, 0.5, 1.0), tolerance(dtype));
      cuda::addRmsNorm(gpu.stream, deviceOut, deviceIn, deviceDelta, deviceWeight, 1e-5, 0.0);
      for (size_t i = 0; i < residual.values.size(); ++i) residual.values[i] += delta.values[i];
      residual.round();
      Matrix sum = residual;
      sum.download(gpu, deviceIn);
      QCOMPARE(sum.values, residual.values);
      out.download(gpu, deviceOut);
      compare(out, norm(residual, 1e-5, 0.0), tolerance(dtype));
      cuda::rmsNorm(gpu.stream, deviceIn, deviceIn, deviceWeight, 1e-5, 0.0);
      sum.download(gpu, deviceIn);
      QCOMPARE(sum.values, out.values);
      QCOMPARE(gpu.report(), QString());
    }
  }

  void stridedRowsKeepTheirNeighbours() {
    Gpu gpu;
    Matrix wide(3, 24, DType::BF16, 1);
    const Matrix before = wide, weight(1, 8, DType::F32, 2);
    const TensorView device = wide.upload(gpu), middle = device.columns(8, 8);
    cuda::rmsNorm(gpu.stream, middle, middle, static_cast<const float*>(weight.upload(gpu).data), 1e-5, 0.0);
    wide.download(gpu, device);
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < 24; ++c) {
        const bool inside = c >= 8 && c < 16;
        const double factor = 1.0 / std::sqrt(squares(before, r, 8, 16) / 8 + 1e-5);
        const double expected = inside ? before.at(r, c) * factor * weight.at(0, c - 8) : before.at(r, c);
        QVERIFY(std::abs(wide.at(r, c) - expected) <= (inside ? 0x1p-8 : 0.0) * std::max(1.0, std::abs(expected)));
      }
    }
    QCOMPARE(gpu.report(), QString());
  }

  void layerNorm_data() { activationTypes(); }
  void layerNorm() {
    QFETCH(int, type);
    const auto dtype = static_cast<DType>(type);
    for (const Shape& shape : kShapes) {
      for (bool biased : {true, false}) {
        Gpu gpu;
        const Matrix in(shape.rows, shape.cols, dtype, 1, 3.0f), weight(1, shape.cols, DType::F32, 3),
            bias(1, shape.cols, DType::F32, 4);
        Matrix out(shape.rows, shape.cols, dtype, 2);
        const TensorView device = out.upload(gpu);
        cuda::layerNorm(gpu.stream, device, in.upload(gpu), static_cast<const float*>(weight.upload(gpu).data),
                        biased ? static_cast<const float*>(bias.upload(gpu).data) : nullptr, 1e-5);
        out.download(gpu, device);
        compare(
            out,
            [&](int64_t r, int64_t c) {
              double mean = 0, variance = 0;
              for (int64_t i = 0; i < in.cols; ++i) mean += in.at(r, i) / static_cast<double>(in.cols);
              for (int64_t i = 0; i < in.cols; ++i) variance += std::pow(in.at(r, i) - mean, 2) / static_cast<double>(in.cols);
              return (in.at(r, c) - mean) / std::sqrt(variance + 1e-5) * weight.at(0, c) + (biased ? bias.at(0, c) : 0.0f);
            },
            tolerance(dtype) * 2);
        QCOMPARE(gpu.report(), QString());
      }
    }
  }

  void headRmsNorm_data() { activationTypes(); }
  void headRmsNorm() {
    QFETCH(int, type);
    const auto dtype = static_cast<DType>(type);
    for (int64_t headDim : {5, 64, 100}) {
      for (bool weighted : {true, false}) {
        Gpu gpu;
        const Matrix before(7, 3 * headDim, dtype, 1), weight(1, headDim, DType::F32, 2);
        Matrix after = before;
        const TensorView device = before.upload(gpu);
        cuda::headRmsNorm(gpu.stream, device, headDim, weighted ? static_cast<const float*>(weight.upload(gpu).data) : nullptr,
                          1e-6, 1.0);
        after.download(gpu, device);
        compare(
            after,
            [&](int64_t r, int64_t c) {
              const int64_t head = c / headDim * headDim;
              return before.at(r, c) / std::sqrt(squares(before, r, head, head + headDim) / static_cast<double>(headDim) + 1e-6) *
                     (weighted ? weight.at(0, c % headDim) + 1.0 : 1.0);
            },
            tolerance(dtype));
        QCOMPARE(gpu.report(), QString());
      }
    }
  }

  void splitNorm_data() { activationTypes(); }
  void splitNorm() {
    QFETCH(int, type);
    const auto dtype = static_cast<DType>(type);
    Gpu gpu;
    const Matrix before(4, 100, dtype, 1), weight(1, 100, DType::F32, 2);
    Matrix after = before, sums(4, 3, DType::F32, 5);
    const TensorView device = before.upload(gpu), squaresView = sums.upload(gpu).columns(1, 1);
    cuda::rowSquareSum(gpu.stream, squaresView, device);
    cuda::normBySquareSum(gpu.stream, device, squaresView, 250, static_cast<const float*>(weight.upload(gpu).data), 1e-5, 0.5);
    after.download(gpu, device);
    compare(
        after,
        [&](int64_t r, int64_t c) {
          return before.at(r, c) / std::sqrt(squares(before, r, 0, 100) / 250 + 1e-5) * (weight.at(0, c) + 0.5);
        },
        tolerance(dtype));
    QCOMPARE(gpu.report(), QString());
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsNormsTest)
#include "cuda_kernels_norms_test.moc"
