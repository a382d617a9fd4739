// SPDX-License-Identifier: Apache-2.0
// The one-shot all-reduce on several emulated devices at once, and what a rank that never comes does to the others.
#include "engine/device/cuda/kernels/all_reduce.h"

#include "tests/engine/cuda_kernels_support.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda;
using namespace headroom::engine::cuda::test;

namespace {

// A stream and memory on each of several devices that reach each other.
struct Machine {
  explicit Machine(int ranks) : streams(static_cast<size_t>(ranks)), peers(static_cast<size_t>(ranks)) {
    qputenv("HEADROOM_EMULATED_GPUS", QByteArray::number(ranks));
    int count = 0;
    cudaGetDeviceCount(&count);
    opened = count == ranks;
    if (!opened) return;
    for (int rank = 0; rank < ranks; ++rank) {
      cudaSetDevice(rank);
      cudaStreamCreateWithFlags(&streams[static_cast<size_t>(rank)], 0);
      for (int other = 0; other < ranks; ++other)
        if (other != rank) cudaDeviceEnablePeerAccess(other, 0);
      OneShotPeers& mine = peers[static_cast<size_t>(rank)];
      mine.ranks = ranks;
      mine.rank = rank;
      mine.turns = static_cast<uint32_t*>(allocate(rank, kOneShotBlocks * 4));
      mine.failed = static_cast<int*>(allocate(rank, 4));
      void* flags = allocate(rank, static_cast<size_t>(kOneShotFlagBytes));
      for (OneShotPeers& one : peers) one.flags[rank] = static_cast<uint32_t*>(flags);
      for (int turn = 0; turn < 2; ++turn) {
        void* buffer = allocate(rank, kBufferBytes);
        for (OneShotPeers& one : peers) one.buffers[turn][rank] = buffer;
      }
    }
  }
  ~Machine() {
    for (size_t rank = 0; rank < streams.size() && opened; ++rank) {
      cudaSetDevice(static_cast<int>(rank));
      cudaStreamDestroy(streams[rank]);
    }
    for (void* memory : memories) cudaFree(memory);
    cudaSetDevice(0);
    qunsetenv("HEADROOM_EMULATED_GPUS");
  }
  void* allocate(int rank, size_t bytes) {
    void* memory = nullptr;
    cudaSetDevice(rank);
    cudaMalloc(&memory, bytes);
    cudaMemsetAsync(memory, 0, bytes, streams[static_cast<size_t>(rank)]);
    cudaStreamSynchronize(streams[static_cast<size_t>(rank)]);
    memories.push_back(memory);
    return memory;
  }
  TensorView upload(int rank, const Matrix& matrix) {
    const size_t size = matrix.dtype == DType::F32 ? 4 : 2, bytes = matrix.values.size() * size;
    std::vector<uint8_t> data(bytes);
    cpu::fromFloats(matrix.dtype, matrix.values.data(), static_cast<int64_t>(matrix.values.size()), data.data());
    void* memory = allocate(rank, bytes);
    cudaMemcpyAsync(memory, data.data(), bytes, cudaMemcpyHostToDevice, streams[static_cast<size_t>(rank)]);
    cudaStreamSynchronize(streams[static_cast<size_t>(rank)]);
    return TensorView::of(memory, matrix.dtype, matrix.rows, matrix.cols);
  }
  void reduce(int rank, const TensorView& view) {
    cudaSetDevice(rank);
    oneShotAllReduce(streams[static_cast<size_t>(rank)], view, peers[static_cast<size_t>(rank)]);
  }
  void download(int rank, const TensorView& view, Matrix& to) {
    const size_t size = view.dtype == DType::F32 ? 4 : 2;
    std::vector<uint8_t> bytes(to.values.size() * size);
    cudaSetDevice(rank);
    cudaMemcpyAsync(bytes.data(), view.data, bytes.size(), cudaMemcpyDeviceToHost, streams[static_cast<size_t>(rank)]);
    cudaStreamSynchronize(streams[static_cast<size_t>(rank)]);
    cpu::toFloats(view.dtype, bytes.data(), static_cast<int64_t>(to.values.size()), to.values.data());
  }
  // As `from` does for block 0 of the first turn.
  void raiseFirstFlag(int from, int at) {
    const uint32_t turn = 1;
    cudaSetDevice(at);
    cudaMemcpyAsync(peers[static_cast<size_t>(at)].flags[at] + from, &turn, 4, cudaMemcpyHostToDevice,
                    streams[static_cast<size_t>(at)]);
    cudaStreamSynchronize(streams[static_cast<size_t>(at)]);
  }
  int failed(int rank) {
    int value = 0;
    cudaSetDevice(rank);
    cudaMemcpyAsync(&value, peers[static_cast<size_t>(rank)].failed, 4, cudaMemcpyDeviceToHost,
                    streams[static_cast<size_t>(rank)]);
    cudaStreamSynchronize(streams[static_cast<size_t>(rank)]);
    return value;
  }

  static constexpr size_t kBufferBytes = 64 * 1024;
  bool opened = false;
  std::vector<cudaStream_t> streams;
  std::vector<OneShotPeers> peers;
  std::vector<void*> memories;
};

class CudaKernelsAllReduceTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void sums_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("type");
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("cols");
    QTest::newRow("2 ranks, F32") << 2 << static_cast<int>(DType::F32) << 1 << 64;
    QTest::newRow("3 ranks, BF16, several blocks") << 3 << static_cast<int>(DType::BF16) << 4 << 1200;
    QTest::newRow("4 ranks, F16, an odd count") << 4 << static_cast<int>(DType::F16) << 3 << 37;
    QTest::newRow("1 rank") << 1 << static_cast<int>(DType::F32) << 2 << 8;
  }
  void sums() {
    QFETCH(int, ranks);
    QFETCH(int, type);
    QFETCH(int, rows);
    QFETCH(int, cols);
    Machine machine(ranks);
    QVERIFY(machine.opened);
    std::vector<Matrix> inputs;
    std::vector<TensorView> views;
    // Five turns one behind the other: buffers and flags are used again without a wait of the host.
    constexpr int kTurns = 5;
    for (int turn = 0; turn < kTurns; ++turn)
      for (int rank = 0; rank < ranks; ++rank) {
        inputs.emplace_back(rows, cols, static_cast<DType>(type), static_cast<unsigned>(10 * turn + rank + 1));
        views.push_back(machine.upload(rank, inputs.back()));
      }
    for (int turn = 0; turn < kTurns; ++turn)
      for (int rank = 0; rank < ranks; ++rank) machine.reduce(rank, views[static_cast<size_t>(turn * ranks + rank)]);
    for (int turn = 0; turn < kTurns; ++turn) {
      Matrix expected = inputs[static_cast<size_t>(turn * ranks)];
      for (int rank = 1; rank < ranks; ++rank)
        for (size_t i = 0; i < expected.values.size(); ++i)
          expected.values[i] += inputs[static_cast<size_t>(turn * ranks + rank)].values[i];
      expected.round();
      for (int rank = 0; rank < ranks; ++rank) {
        Matrix found = expected;
        machine.download(rank, views[static_cast<size_t>(turn * ranks + rank)], found);
        QCOMPARE(found.values, expected.values);
      }
    }
    for (int rank = 0; rank < ranks; ++rank) QCOMPARE(machine.failed(rank), 0);
    QCOMPARE(QString::fromUtf8(headroomEmulationReport()), QString());
  }

  void aRankThatDoesNotComeIsNamed() {
    Machine machine(3);
    QVERIFY(machine.opened);
    for (OneShotPeers& one : machine.peers) one.patience = 20;
    // Ranks 0 and 2 have come to each other; how soon their devices run must not matter.
    machine.raiseFirstFlag(0, 2);
    machine.raiseFirstFlag(2, 0);
    const Matrix x(1, 16, DType::F32, 1);
    for (int rank : {0, 2}) machine.reduce(rank, machine.upload(rank, x));
    QCOMPARE(machine.failed(0), 2);
    QCOMPARE(machine.failed(2), 2);
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsAllReduceTest)
#include "cuda_kernels_all_reduce_test.moc"
