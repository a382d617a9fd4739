// SPDX-License-Identifier: Apache-2.0
// Collectives between threads: right sums, equal bits, and a wake-up for all when one gives up.
#include "engine/parallel/local_communicator.h"

#include <QtTest>

#include <cstring>
#include <random>
#include <thread>

using namespace headroom;
using namespace headroom::engine;

namespace {

// Runs `work(rank)` on a thread a rank.
template <class F>
void onRanks(int size, F work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { work(rank); });
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

}  // namespace

class CommunicatorTest : public QObject {
  Q_OBJECT
 private slots:
  void sumsInRankOrder_data() {
    QTest::addColumn<int>("size");
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("columns");
    QTest::addColumn<int>("stride");
    QTest::newRow("one rank") << 1 << 3 << 5 << 5;
    QTest::newRow("two ranks") << 2 << 1 << 576 << 576;
    QTest::newRow("five ranks, odd width") << 5 << 7 << 131 << 131;
    QTest::newRow("six ranks, strided rows") << 6 << 9 << 50 << 64;
    QTest::newRow("fewer elements than ranks") << 4 << 1 << 2 << 2;
  }

  void sumsInRankOrder() {
    QFETCH(int, size);
    QFETCH(int, rows);
    QFETCH(int, columns);
    QFETCH(int, stride);
    std::vector<std::vector<float>> buffers;
    for (int rank = 0; rank < size; ++rank) buffers.push_back(randomFloats(static_cast<size_t>(rows) * stride, rank + 1));
    std::vector<float> expected = buffers[0];
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column)
        for (int rank = 1; rank < size; ++rank) expected[row * stride + column] += buffers[rank][row * stride + column];
    std::vector<std::vector<float>> padding = buffers;
    auto communicators = makeLocalCommunicators(size, size <= 2);
    onRanks(size, [&](int rank) {
      const TensorView view{buffers[rank].data(), DType::F32, rows, columns, stride};
      QVERIFY(communicators[rank]->allReduceSum(view).has_value());
    });
    for (int rank = 0; rank < size; ++rank)
      for (int row = 0; row < rows; ++row) {
        const float* found = buffers[rank].data() + row * stride;
        QVERIFY2(std::memcmp(found, expected.data() + row * stride, columns * sizeof(float)) == 0, "bits differ");
        QVERIFY2(
            std::memcmp(found + columns, padding[rank].data() + row * stride + columns, (stride - columns) * sizeof(float)) == 0,
            "padding was written");
      }
  }

  void keepsUpOverManyRounds() {
    constexpr int kSize = 3, kRounds = 2000;
    auto communicators = makeLocalCommunicators(kSize, false);
    std::vector<float> last(kSize);
    onRanks(kSize, [&](int rank) {
      float value = 0;
      for (int round = 0; round < kRounds; ++round) {
        value = static_cast<float>(round + rank);
        if (!communicators[rank]->allReduceSum(TensorView::of(&value, DType::F32, 1, 1))) return;
        if (value != 3.0f * static_cast<float>(round) + 3.0f) return;
      }
      last[rank] = value;
    });
    for (float value : last) QCOMPARE(value, 3.0f * (kRounds - 1) + 3.0f);
  }

  void gathersColumnsOnRankZero() {
    const std::vector<int64_t> columns = {3, 0, 4, 2};
    std::vector<float> all(2 * 9, -1.0f);
    std::vector<std::vector<float>> parts;
    for (size_t rank = 0; rank < columns.size(); ++rank)
      for (parts.emplace_back(); parts.back().size() < static_cast<size_t>(2 * columns[rank]);)
        parts.back().push_back(static_cast<float>(100 * rank + parts.back().size()));
    auto communicators = makeLocalCommunicators(4, false);
    onRanks(4, [&](int rank) {
      const TensorView in = TensorView::of(parts[rank].data(), DType::F32, 2, columns[rank]);
      const TensorView out = rank == 0 ? TensorView::of(all.data(), DType::F32, 2, 9) : TensorView{};
      QVERIFY(communicators[rank]->gatherColumns(out, in, columns).has_value());
    });
    const std::vector<float> expected = {0, 1, 2, 200, 201, 202, 203, 300, 301, 3, 4, 5, 204, 205, 206, 207, 302, 303};
    QCOMPARE(all, expected);
  }

  void abortWakesWaitersForGood() {
    for (bool spin : {false, true}) {
      auto communicators = makeLocalCommunicators(3, spin);
      std::vector<std::string> reasons(3);
      std::vector<std::array<float, 4>> values(3);
      onRanks(3, [&](int rank) {
        if (rank == 2) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          communicators[2]->abort(Error{"rank 2", "a fault", {}, {}});
          communicators[2]->abort(Error{"rank 2", "a later fault", {}, {}});
        }
        const TensorView view = TensorView::of(values[rank].data(), DType::F32, 1, 4);
        const Status status = communicators[rank]->allReduceSum(view);
        if (!status) reasons[rank] = status.error().message();
        QVERIFY(!communicators[rank]->allReduceSum(view).has_value());
        QVERIFY(!communicators[rank]->gatherColumns(view, view, std::vector<int64_t>{4, 4, 4}).has_value());
      });
      for (const std::string& reason : reasons) QCOMPARE(reason, std::string("rank 2: found a fault"));
    }
  }
};

QTEST_GUILESS_MAIN(CommunicatorTest)
#include "communicator_test.moc"
