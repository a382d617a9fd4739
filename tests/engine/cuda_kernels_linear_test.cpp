// SPDX-License-Identifier: Apache-2.0
// Linear layers in the emulation, every format and kernel, against the stored numbers and double precision.
#include "engine/device/cuda/kernels/linear.h"

#include "tests/engine/cuda_kernels_packed_support.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda;
using namespace headroom::engine::cuda::test;

namespace {

// Sums of exact products in F32: what can go wrong is a few roundings of the partial sums.
double bound(const Matrix& x, const Matrix& weight, int64_t token, int64_t output) {
  double size = 0;
  for (int64_t k = 0; k < x.cols; ++k) size += std::abs(static_cast<double>(x.at(token, k)) * weight.at(output, k));
  return size * 2e-6 + 1e-6;
}

double product(const Matrix& x, const Matrix& weight, int64_t token, int64_t output) {
  double sum = 0;
  for (int64_t k = 0; k < x.cols; ++k) sum += static_cast<double>(x.at(token, k)) * weight.at(output, k);
  return sum;
}

struct Case {
  DType type;
  int64_t tokens;
  bool tensorCores, floatOut;
};
// One token, few, the two sizes of small tiles, a tile of the large kernel and more, each in both types; the plain kernel.
constexpr Case kCases[] = {{DType::BF16, 1, true, true}, {DType::F16, 5, true, false},  {DType::BF16, 11, true, false},
                           {DType::F16, 16, true, true}, {DType::BF16, 17, true, true}, {DType::F16, 70, true, true},
                           {DType::F32, 1, true, true},  {DType::F32, 6, true, true},   {DType::BF16, 3, false, true}};

class CudaKernelsLinearTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void packed_data() { formats(); }
  void packed() {
    QFETCH(int, index);
    const Format& format = kFormats[index];
    for (const Case& which : kCases) {
      Gpu gpu;
      // Three tasks of one input in one launch, outputs that fill no whole tile.
      const int64_t in = format.block == 256 ? 512 : 320;
      StoredMatrix first(format, 21, in, 1), second(format, 8, in, 2), third(format, 33, in, 3);
      const Matrix x(which.tokens, in, which.type, 5), bias(1, 21, DType::F32, 6);
      const DType outType = which.floatOut ? DType::F32 : which.type;
      Matrix out1(which.tokens, 21, outType, 7), out2(which.tokens, 8, outType, 8), out3(which.tokens, 33, outType, 9);
      const TensorView view1 = out1.upload(gpu), view2 = out2.upload(gpu), view3 = out3.upload(gpu);
      const PackedTask tasks[] = {{view1, first.pack(gpu, {{0, 21}}), static_cast<const float*>(bias.upload(gpu).data)},
                                  {view2, second.pack(gpu, {{0, 8}}), nullptr},
                                  {view3, third.pack(gpu, {{0, 33}}), nullptr}};
      LinearOptions options;
      options.tensorCores = which.tensorCores;
      packedLinear(gpu.stream, x.upload(gpu), tasks, options);
      const auto check = [&](Matrix& out, const TensorView& view, const StoredMatrix& weight, bool biased) {
        out.download(gpu, view);
        for (int64_t t = 0; t < out.rows; ++t)
          for (int64_t o = 0; o < out.cols; ++o) {
            const double expected = product(x, weight.values, t, o) + (biased ? bias.at(0, o) : 0.0f);
            const double allowed =
                bound(x, weight.values, t, o) + (which.floatOut ? 0.0 : tolerance(outType) * std::abs(expected));
            if (!(std::abs(out.at(t, o) - expected) <= allowed))
              QFAIL(qPrintable(QString("%1 tokens, (%2, %3): found %4, expected %5 within %6")
                                   .arg(which.tokens)
                                   .arg(t)
                                   .arg(o)
                                   .arg(out.at(t, o))
                                   .arg(expected)
                                   .arg(allowed)));
          }
      };
      check(out1, view1, first, true);
      check(out2, view2, second, false);
      check(out3, view3, third, false);
      QCOMPARE(gpu.report(), QString());
    }
  }

  // Columns cut into parts, when the outputs are few for the device.
  void parts() {
    Gpu gpu;
    const int64_t in = 32 * 70;  // 17 whole chunks and half of one
    StoredMatrix weight(kFormats[1], 130, in, 1);
    const Matrix x(20, in, DType::F16, 5), bias(1, 130, DType::F32, 6);
    Matrix out(20, 130, DType::F16, 7);
    const TensorView view = out.upload(gpu);
    const PackedTask task = {view, weight.pack(gpu, {{0, 130}}), static_cast<const float*>(bias.upload(gpu).data)};
    LinearOptions options;
    options.multiprocessors = 100;
    options.workspaceBytes = linearWorkspaceBytes(20, 130);
    options.workspace = gpu.allocate(static_cast<size_t>(options.workspaceBytes));
    packedLinear(gpu.stream, x.upload(gpu), std::span(&task, 1), options);
    out.download(gpu, view);
    compare(
        out, [&](int64_t t, int64_t o) { return product(x, weight.values, t, o) + bias.at(0, o); }, 0x1p-10);
    QCOMPARE(gpu.report(), QString());
  }

  // Ends of rows in every phase of a run of four groups; what is narrower than a run is read in pieces.
  void shortRows_data() { formats(); }
  void shortRows() {
    QFETCH(int, index);
    const Format& format = kFormats[index];
    for (int64_t blocks : {1, 2, 3, 5}) {
      for (const auto& [type, tokens] : {std::pair{DType::F32, 2}, {DType::F16, 2}, {DType::BF16, 18}}) {
        Gpu gpu;
        const StoredMatrix weight(format, 9, blocks * format.block, 1);
        const Matrix x(tokens, weight.in, type, 5);
        Matrix out(tokens, 9, DType::F32, 7);
        const TensorView view = out.upload(gpu);
        const PackedTask task = {view, weight.pack(gpu, {{0, 9}}), nullptr};
        packedLinear(gpu.stream, x.upload(gpu), std::span(&task, 1), {});
        out.download(gpu, view);
        for (int64_t t = 0; t < tokens; ++t)
          for (int64_t o = 0; o < 9; ++o)
            QVERIFY(std::abs(out.at(t, o) - product(x, weight.values, t, o)) <= bound(x, weight.values, t, o));
        QCOMPARE(gpu.report(), QString());
      }
    }
  }

  void aTokensResultDoesNotDependOnItsBatch() {
    Gpu gpu;
    StoredMatrix weight(kFormats[7], 40, 512, 1);
    const Matrix x(16, 512, DType::BF16, 5);
    Matrix together(16, 40, DType::F32, 7), alone(1, 40, DType::F32, 7);
    const TensorView view = together.upload(gpu), single = alone.upload(gpu), in = x.upload(gpu);
    const PackedWeight packed = weight.pack(gpu, {{0, 40}});
    const PackedTask task = {view, packed, nullptr}, one = {single, packed, nullptr};
    packedLinear(gpu.stream, in, std::span(&task, 1), {});
    TensorView third = in;
    third.data = static_cast<uint8_t*>(in.data) + 3 * in.stride * 2;
    third.rows = 1;
    packedLinear(gpu.stream, third, std::span(&one, 1), {});
    together.download(gpu, view);
    alone.download(gpu, single);
    for (int64_t o = 0; o < 40; ++o) QCOMPARE(alone.at(0, o), together.at(3, o));
  }

  void dense_data() {
    QTest::addColumn<int>("weightType");
    for (DType type : {DType::F32, DType::F16, DType::BF16}) QTest::newRow(dtypeName(type).data()) << static_cast<int>(type);
  }
  void dense() {
    QFETCH(int, weightType);
    for (const Case& which : kCases) {
      for (int64_t in : {8, 200, 456, 37}) {
        Gpu gpu;
        const Matrix weight(19, in, static_cast<DType>(weightType), 1), other(30, in, static_cast<DType>(weightType), 2),
            x(which.tokens, in, which.type, 5), bias(1, 19, DType::F32, 6);
        const DType outType = which.floatOut ? DType::F32 : which.type;
        Matrix out(which.tokens, 19, outType, 7), out2(which.tokens, 30, outType, 7);
        const TensorView view = out.upload(gpu), view2 = out2.upload(gpu);
        const DenseTask tasks[] = {
            {view, {weight.upload(gpu).data, weight.dtype, 19, in}, static_cast<const float*>(bias.upload(gpu).data)},
            {view2, {other.upload(gpu).data, weight.dtype, 30, in}, nullptr}};
        LinearOptions options;
        options.tensorCores = which.tensorCores;
        denseLinear(gpu.stream, x.upload(gpu), tasks, options);
        out.download(gpu, view);
        out2.download(gpu, view2);
        const double relative = which.floatOut ? 4e-6 : tolerance(outType);
        compare(
            out, [&](int64_t t, int64_t o) { return product(x, weight, t, o) + bias.at(0, o); }, relative, 4.0);
        compare(
            out2, [&](int64_t t, int64_t o) { return product(x, other, t, o); }, relative, 4.0);
        QCOMPARE(gpu.report(), QString());
      }
    }
  }

  void heads_data() {
    QTest::addColumn<int>("type");
    QTest::addColumn<int>("tokens");
    QTest::addColumn<int>("weightType");
    QTest::newRow("one token, tensor cores") << static_cast<int>(DType::BF16) << 1 << static_cast<int>(DType::BF16);
    QTest::newRow("many tokens, tensor cores") << static_cast<int>(DType::F16) << 40 << static_cast<int>(DType::F16);
    QTest::newRow("floats") << static_cast<int>(DType::F32) << 5 << static_cast<int>(DType::BF16);
    QTest::newRow("another type of weights") << static_cast<int>(DType::BF16) << 3 << static_cast<int>(DType::F32);
  }
  // Heads inside wider rows, as latent attention has them: what lies between them stays.
  void heads() {
    QFETCH(int, type);
    QFETCH(int, tokens);
    QFETCH(int, weightType);
    Gpu gpu;
    constexpr int kHeads = 3;
    const Matrix x(tokens, kHeads * 56, static_cast<DType>(type), 5);
    Matrix out(tokens, kHeads * 30, static_cast<DType>(type), 6);
    const Matrix before = out;
    const TensorView view = out.upload(gpu);
    std::vector<Matrix> weights;
    std::vector<const uint8_t*> data;
    for (int h = 0; h < kHeads; ++h) {
      weights.emplace_back(20, 48, static_cast<DType>(weightType), static_cast<unsigned>(10 + h));
      data.push_back(static_cast<const uint8_t*>(weights.back().upload(gpu).data));
    }
    HeadLinear task;
    task.out = view.columns(10, kHeads * 30 - 10);
    task.in = x.upload(gpu);
    task.outHead = 30;
    task.inHead = 56;
    task.heads = kHeads;
    task.weights = gpu.upload(data);
    task.shape = {nullptr, static_cast<DType>(weightType), 20, 48};
    headLinear(gpu.stream, task, true);
    out.download(gpu, view);
    compare(
        out,
        [&](int64_t t, int64_t c) {
          const int64_t head = c / 30, o = c % 30 - 10;
          if (o < 0) return static_cast<double>(before.at(t, c));
          double sum = 0;
          for (int64_t k = 0; k < 48; ++k)
            sum += static_cast<double>(x.at(t, head * 56 + k)) * weights[static_cast<size_t>(head)].at(o, k);
          return sum;
        },
        tolerance(static_cast<DType>(type)), 4.0);
    QCOMPARE(gpu.report(), QString());
  }

  void experts_data() {
    QTest::addColumn<int>("index");
    QTest::addColumn<int>("rows");
    QTest::addColumn<bool>("tensorCores");
    QTest::addColumn<int>("type");
    for (int index : {-1, 0, 7, 13, 17})
      for (int rows : {3, 60, 300})
        for (bool tensorCores : {true, false})
          QTest::addRow("%s, %d rows, %s", index < 0 ? "plain" : kFormats[index].name, rows,
                        tensorCores ? "tensor cores" : "without")
              << index << rows << tensorCores << static_cast<int>(rows == 60 ? DType::F16 : DType::BF16);
  }
  // Experts of very different loads, some with none.
  void experts() {
    QFETCH(int, index);
    QFETCH(int, rows);
    QFETCH(bool, tensorCores);
    QFETCH(int, type);
    Gpu gpu;
    constexpr int kExperts = 5;
    const int64_t in = 256, out = 20;
    std::vector<int> begin = {0, 0, rows / 3, rows / 3 + 1, rows - 1, rows}, inputRows;
    for (int i = 0; i < rows; ++i) inputRows.push_back((i * 7) % 40);
    const Matrix x(40, in, static_cast<DType>(type), 5), bias(kExperts, out, DType::F32, 6);
    Matrix result(rows, out, DType::F32, 7);
    const TensorView view = result.upload(gpu);
    std::vector<const uint8_t*> data, zeros;
    std::vector<const void*> scales;
    std::vector<Matrix> values;
    PackedWeight packed;
    for (int e = 0; e < kExperts; ++e) {
      if (index < 0) {
        values.emplace_back(out, in, static_cast<DType>(type), static_cast<unsigned>(20 + e));
        data.push_back(static_cast<const uint8_t*>(values.back().upload(gpu).data));
        continue;
      }
      const StoredMatrix stored(kFormats[index], out, in, static_cast<unsigned>(20 + e));
      packed = stored.pack(gpu, {{0, out}});
      data.push_back(packed.data);
      scales.push_back(packed.scales);
      zeros.push_back(packed.zeros);
      values.push_back(stored.values);
    }
    ExpertRows groups = {kExperts, gpu.upload(begin), gpu.upload(inputRows), gpu.upload(data), nullptr, nullptr};
    if (index >= 0 && packed.scales) groups.scales = gpu.upload(scales);
    if (index >= 0 && packed.zeros) groups.zeros = gpu.upload(zeros);
    packed.data = nullptr;
    LinearOptions options;
    options.tensorCores = tensorCores;
    options.experts = &groups;
    const auto* deviceBias = static_cast<const float*>(bias.upload(gpu).data);
    if (index < 0) {
      const DenseTask task = {view, {nullptr, static_cast<DType>(type), out, in}, deviceBias};
      denseLinear(gpu.stream, x.upload(gpu), std::span(&task, 1), options);
    } else {
      const PackedTask task = {view, packed, deviceBias};
      packedLinear(gpu.stream, x.upload(gpu), std::span(&task, 1), options);
    }
    result.download(gpu, view);
    for (int e = 0; e < kExperts; ++e)
      for (int r = begin[static_cast<size_t>(e)]; r < begin[static_cast<size_t>(e) + 1]; ++r)
        for (int64_t o = 0; o < out; ++o) {
          const Matrix& weight = values[static_cast<size_t>(e)];
          const int token = inputRows[static_cast<size_t>(r)];
          const double expected = product(x, weight, token, o) + bias.at(e, o);
          if (!(std::abs(result.at(r, o) - expected) <= bound(x, weight, token, o)))
            QFAIL(qPrintable(QString("expert %1, row %2, output %3: found %4, expected %5")
                                 .arg(e)
                                 .arg(r)
                                 .arg(o)
                                 .arg(result.at(r, o))
                                 .arg(expected)));
        }
    QCOMPARE(gpu.report(), QString());
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsLinearTest)
#include "cuda_kernels_linear_test.moc"
