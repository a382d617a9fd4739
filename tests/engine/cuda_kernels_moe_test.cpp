// SPDX-License-Identifier: Apache-2.0
// Choosing, sorting and joining experts in the emulation, against the CPU's choice and plain loops.
#include "engine/device/cpu/cpu_experts.h"
#include "engine/device/cuda/kernels/moe.h"

#include "tests/engine/cuda_kernels_support.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda::test;

namespace {

class CudaKernelsMoeTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void routes_data() {
    QTest::addColumn<int>("experts");
    QTest::addColumn<int>("count");
    QTest::addColumn<int>("rule");
    QTest::newRow("softmax, 2 of 8") << 8 << 2 << 0;
    QTest::newRow("softmax normalized, 8 of 128") << 128 << 8 << 1;
    QTest::newRow("sigmoid with bias, 3 of 60") << 60 << 3 << 2;
    QTest::newRow("groups by best, 6 of 160") << 160 << 6 << 3;
    QTest::newRow("groups by best two with bias, 8 of 256") << 256 << 8 << 4;
    QTest::newRow("all of 5") << 5 << 5 << 1;
  }
  void routes() {
    QFETCH(int, experts);
    QFETCH(int, count);
    QFETCH(int, rule);
    Gpu gpu;
    constexpr int kTokens = 6;
    Matrix logits(kTokens, experts, DType::F32, 1, 3.0f);
    const Matrix bias(1, experts, DType::F32, 2, 0.3f);
    logits.at(1, 1) = logits.at(1, 3) = 5.0f;   // equals: the first is first
    logits.at(2, 2) = std::nanf("");            // is chosen last
    if (rule < 2) logits.at(2, 2) = -INFINITY;  // in a softmax it would spoil all
    ExpertRouting routing;
    cuda::RoutingRule device;
    routing.normalize = device.normalize = rule == 1 || rule == 4;
    if (rule == 2 || rule == 4) {
      routing.scoring = RouterScoring::Sigmoid;
      device.sigmoid = true;
      routing.choiceBias = bias.values.data();
      device.choiceBias = static_cast<const float*>(bias.upload(gpu).data);
    }
    if (rule == 3) {
      logits.at(2, 2) = 0.0f;
      routing.groups = device.groups = 8;
      routing.groupsPerToken = device.groupsPerToken = 3;
      routing.scale = device.scale = 16.0f;
    }
    if (rule == 4) {
      routing.groups = device.groups = 8;
      routing.groupsPerToken = device.groupsPerToken = 4;
      routing.groupByTopTwo = device.groupByTopTwo = true;
      routing.scale = device.scale = 2.5f;
    }
    const TensorView ids =
        TensorView::of(gpu.upload(std::vector<int>(static_cast<size_t>(kTokens * count), -7)), DType::I32, kTokens, count);
    Matrix weights(kTokens, count, DType::F32, 3);
    const TensorView deviceWeights = weights.upload(gpu);
    cuda::routeExperts(gpu.stream, ids, deviceWeights, logits.upload(gpu), device);
    weights.download(gpu, deviceWeights);
    const std::vector<int> chosen = gpu.download<int>(ids.data, static_cast<size_t>(kTokens * count));
    std::vector<float> scores(static_cast<size_t>(experts)), choice(static_cast<size_t>(experts + 2 * routing.groups)),
        expected(static_cast<size_t>(count));
    std::vector<int32_t> expectedIds(static_cast<size_t>(count));
    for (int t = 0; t < kTokens; ++t) {
      cpu::chooseExperts(logits.values.data() + t * experts, experts, routing, count, scores.data(), choice.data(),
                         expectedIds.data(), expected.data());
      for (int i = 0; i < count; ++i) {
        QCOMPARE(chosen[static_cast<size_t>(t * count + i)], expectedIds[static_cast<size_t>(i)]);
        const double wanted = expected[static_cast<size_t>(i)];
        if (std::isnan(wanted))
          QVERIFY(std::isnan(weights.at(t, i)));
        else
          QVERIFY2(std::abs(weights.at(t, i) - wanted) <= 3e-6 * std::max(1.0, std::abs(wanted)),
                   qPrintable(QString("%1 %2").arg(weights.at(t, i)).arg(wanted)));
      }
    }
    QCOMPARE(gpu.report(), QString());
  }

  void sorts_data() {
    QTest::addColumn<int>("tokens");
    QTest::addColumn<int>("perToken");
    QTest::addColumn<int>("experts");
    QTest::newRow("one token") << 1 << 2 << 8;
    QTest::newRow("more than a block of slots") << 150 << 4 << 6;
    QTest::newRow("many experts") << 20 << 3 << 100;
  }
  void sorts() {
    QFETCH(int, tokens);
    QFETCH(int, perToken);
    QFETCH(int, experts);
    Gpu gpu;
    const int slots = tokens * perToken;
    std::mt19937 random(3);
    std::vector<int> ids;
    for (int i = 0; i < slots; ++i)
      ids.push_back(i % 11 == 5 ? -1
                                : static_cast<int>(random() % static_cast<unsigned>(experts)) / 2 * 2);  // odd ones have none
    const TensorView view = TensorView::of(gpu.upload(ids), DType::I32, tokens, perToken);
    int* begin = gpu.upload(std::vector<int>(static_cast<size_t>(experts + 1), -9));
    int* tokenOf = gpu.upload(std::vector<int>(static_cast<size_t>(slots), -9));
    int* rowOf = gpu.upload(std::vector<int>(static_cast<size_t>(slots), -9));
    cuda::sortByExpert(gpu.stream, begin, tokenOf, rowOf, view, experts);
    std::vector<int> expectedBegin, expectedTokens, expectedRows(static_cast<size_t>(slots), -1);
    for (int e = 0; e <= experts; ++e) {
      expectedBegin.push_back(static_cast<int>(expectedTokens.size()));
      for (int slot = 0; slot < slots; ++slot) {
        if (ids[static_cast<size_t>(slot)] != e) continue;
        expectedRows[static_cast<size_t>(slot)] = static_cast<int>(expectedTokens.size());
        expectedTokens.push_back(slot / perToken);
      }
    }
    expectedTokens.resize(static_cast<size_t>(slots), 0);
    QCOMPARE(gpu.download<int>(begin, static_cast<size_t>(experts + 1)), expectedBegin);
    QCOMPARE(gpu.download<int>(tokenOf, static_cast<size_t>(slots)), expectedTokens);
    QCOMPARE(gpu.download<int>(rowOf, static_cast<size_t>(slots)), expectedRows);
    QCOMPARE(gpu.report(), QString());
  }

  void joins_data() { activationTypes(); }
  void joins() {
    QFETCH(int, type);
    for (int64_t cols : {24, 13}) {
      for (bool add : {false, true}) {
        Gpu gpu;
        const auto dtype = static_cast<DType>(type);
        const Matrix rows(6, cols, DType::F32, 1), weights(3, 2, DType::F32, 2), before(3, cols, dtype, 3), in(3, cols, dtype, 4);
        const std::vector<int> ids = {5, 1, 2, 9, 0, -1}, rowOf = {3, 1, 2, 4, 0, -1};
        const TensorView idView = TensorView::of(gpu.upload(ids), DType::I32, 3, 2), weightView = weights.upload(gpu);
        const int* deviceRows = gpu.upload(rowOf);
        Matrix out = before;
        const TensorView view = before.upload(gpu);
        cuda::combineExperts(gpu.stream, view, rows.upload(gpu), deviceRows, idView, weightView, add);
        out.download(gpu, view);
        compare(
            out,
            [&](int64_t t, int64_t c) {
              double sum = add ? before.at(t, c) : 0.0;
              for (int64_t i = 0; i < 2; ++i) {
                const int row = rowOf[static_cast<size_t>(2 * t + i)];
                if (row >= 0) sum += static_cast<double>(weights.at(t, i)) * rows.at(row, c);
              }
              return sum;
            },
            tolerance(dtype));
        Matrix gathered(6, cols, dtype, 5);
        const Matrix untouched = gathered;
        const TensorView gatheredView = gathered.upload(gpu);
        cuda::gatherWeighted(gpu.stream, gatheredView, in.upload(gpu), deviceRows, weightView);
        gathered.download(gpu, gatheredView);
        compare(
            gathered,
            [&](int64_t row, int64_t c) {
              for (size_t slot = 0; slot < 6; ++slot)
                if (rowOf[slot] == row)
                  return static_cast<double>(in.at(static_cast<int64_t>(slot / 2), c)) *
                         weights.at(static_cast<int64_t>(slot / 2), static_cast<int64_t>(slot % 2));
              return static_cast<double>(untouched.at(row, c));
            },
            tolerance(dtype));
        QCOMPARE(gpu.report(), QString());
      }
    }
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsMoeTest)
#include "cuda_kernels_moe_test.moc"
