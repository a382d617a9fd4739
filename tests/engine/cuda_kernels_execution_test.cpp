// SPDX-License-Identifier: Apache-2.0
// The emulated execution model itself, by kernels of this file: what CUDA promises works, and what it does not is reported. The
// test is compiled with memory callbacks, as the kernels are.
#include "engine/device/cuda/kernels/device_api.cuh"
#include "tests/cuda_emulation/runtime.h"

#include <QtTest>

#include <vector>

using namespace headroom;
using namespace headroom::engine::cuda;

extern "C" const char* headroomEmulationReport();

namespace {

// ---- kernels
__global__ void sumRows(float* out, const float* in, int columns) {
  __shared__ float scratch[32];
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x)) sum += in[blockIdx.x * columns + i];
  sum = blockSum(sum, scratch);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
__global__ void reverseThroughShared(int* data, bool withBarrier) {
  __shared__ int tile[64];
  tile[threadIdx.x] = data[threadIdx.x];
  if (withBarrier) __syncthreads();
  data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
__global__ void laneExchange(int* data, bool withBarrier) {
  __shared__ int tile[32];
  tile[threadIdx.x] = data[threadIdx.x];
  if (withBarrier) __syncwarp();
  const int value = tile[threadIdx.x ^ 1u];
  data[threadIdx.x] = value;
}
__global__ void writeAt(int* data, int64_t index) { data[index] = 1; }
__global__ void writeSame(int* data) { *data = static_cast<int>(blockIdx.x); }
__global__ void countAtomically(int* data) { atomicAdd(data, 1); }
__global__ void readUnwritten(int* out) {
  __shared__ int tile[32];
  if (out[threadIdx.x] > 30) tile[threadIdx.x] = 1;
  out[threadIdx.x] = tile[threadIdx.x];
}
__global__ void halfWaits() {
  if (threadIdx.x < 16)
    __shfl_sync(kAllLanes, 1, 0);
  else
    __syncthreads();
}
__global__ void earlyExit(int* data) {
  if (threadIdx.x >= 40) return;
  __syncthreads();
  const int votes = __popc(__ballot_sync(kAllLanes, 1));
  if (threadIdx.x == 32) data[0] = votes;
}
__global__ void dynamicOverrun(int count) {
  HEADROOM_DYNAMIC_SHARED(int, values);
  values[count] = 1;
}
__global__ void copyWithoutWait(int* out, const int* in, bool wait) {
  alignas(16) __shared__ int tile[32 * 4];
  copyAsync16(&tile[threadIdx.x * 4], in + threadIdx.x * 4, threadIdx.x != 3);
  commitCopies();
  if (wait) waitCopies<0>();
  __syncthreads();
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = tile[threadIdx.x * 4 + i];
}
// The last block to arrive sums what the others wrote: ordered by fence and atomic.
__global__ void lastBlockSums(float* partial, float* out, unsigned* counter) {
  __shared__ bool isLast;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = static_cast<float>(blockIdx.x + 1);
    __threadfence();
    isLast = atomicAdd(counter, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!isLast || threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  *out = sum;
}
template <class T>
__global__ void multiplyTile(float* c, const T* a, const T* b) {  // c (16, 8) = a (16, 16) · b (8, 16)ᵀ
  const int g = static_cast<int>(threadIdx.x) / 4, t = static_cast<int>(threadIdx.x) % 4;
  auto pair = [](const T* p) { return *reinterpret_cast<const uint32_t*>(p); };
  const uint32_t fragmentA[4] = {pair(a + g * 16 + 2 * t), pair(a + (g + 8) * 16 + 2 * t), pair(a + g * 16 + 2 * t + 8),
                                 pair(a + (g + 8) * 16 + 2 * t + 8)};
  const uint32_t fragmentB[2] = {pair(b + g * 16 + 2 * t), pair(b + g * 16 + 2 * t + 8)};
  float sum[4] = {};
  mmaTile<T>(sum, fragmentA, fragmentB);
  for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}
// The same, fragments taken by loadTiles4 from shared memory; B is stored (16, 8) and taken transposed.
__global__ void multiplyLoadedTile(float* c, const Half* a, const Half* b) {
  alignas(16) __shared__ Half sharedA[16 * 16];
  alignas(16) __shared__ Half sharedB[32 * 8];
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) {
    sharedA[i] = a[i];
    sharedB[i] = i < 128 ? b[i] : Half{};
  }
  __syncthreads();
  uint32_t fragmentA[4], loadedB[4];
  // Tiles in the order of a[0] … a[3]: rows 0-7, rows 8-15, then the same of columns 8-15.
  loadTiles4(fragmentA, sharedA + (lane % 16) * 16 + lane / 16 * 8);
  loadTiles4Transposed(loadedB, sharedB + lane * 8);
  const uint32_t fragmentB[2] = {loadedB[0], loadedB[1]};
  float sum[4] = {};
  mmaTile<Half>(sum, fragmentA, fragmentB);
  for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + 2 * (lane % 4) + i % 2] = sum[i];
}
__global__ void multiplyInt8Tile(int* c, const int8_t* a, const int8_t* b) {  // a (16, 32), b (8, 32)
  const int g = static_cast<int>(threadIdx.x) / 4, t = static_cast<int>(threadIdx.x) % 4;
  auto four = [](const int8_t* p) { return *reinterpret_cast<const uint32_t*>(p); };
  const uint32_t fragmentA[4] = {four(a + g * 32 + 4 * t), four(a + (g + 8) * 32 + 4 * t), four(a + g * 32 + 4 * t + 16),
                                 four(a + (g + 8) * 32 + 4 * t + 16)};
  const uint32_t fragmentB[2] = {four(b + g * 32 + 4 * t), four(b + g * 32 + 4 * t + 16)};
  int sum[4] = {};
  mmaTileInt8(sum, fragmentA, fragmentB);
  for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}

// ---- a device for one test function: what a kernel's report poisons is gone with it
struct Gpu {
  Gpu() {
    int count = 0;
    cudaGetDeviceCount(&count);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, 0);
  }
  ~Gpu() {
    cudaStreamDestroy(stream);
    for (void* memory : memories) cudaFree(memory);
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    void* memory = nullptr;
    cudaMalloc(&memory, values.size() * sizeof(T));
    memories.push_back(memory);
    cudaMemcpyAsync(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, stream);
    return static_cast<T*>(memory);
  }
  template <class T>
  std::vector<T> download(const T* from, size_t count) {
    std::vector<T> values(count);
    cudaMemcpyAsync(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return values;
  }
  QString report() {
    cudaStreamSynchronize(stream);
    return QString::fromUtf8(headroomEmulationReport());
  }
  cudaStream_t stream = nullptr;
  std::vector<void*> memories;
};

std::vector<int> counted(int count) {
  std::vector<int> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = i;
  return values;
}

class CudaKernelsExecutionTest : public QObject {
  Q_OBJECT
 private slots:
  void sumsOverABlock() {
    Gpu gpu;
    std::vector<float> in(3 * 100);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
    const float* from = gpu.upload(in);
    float* out = gpu.upload(std::vector<float>(3));
    launchKernel(sumRows, dim3(3), dim3(64), 0, gpu.stream, out, from, 100);
    QCOMPARE(gpu.download(out, 3), (std::vector<float>{4950.0f, 14950.0f, 24950.0f}));
    QCOMPARE(gpu.report(), QString());
  }
  void barriersOrderSharedMemory() {
    Gpu gpu;
    int* data = gpu.upload(counted(64));
    launchKernel(reverseThroughShared, dim3(1), dim3(64), 0, gpu.stream, data, true);
    const std::vector<int> reversed = gpu.download(data, 64);
    for (int i = 0; i < 64; ++i) QCOMPARE(reversed[static_cast<size_t>(i)], 63 - i);
    launchKernel(laneExchange, dim3(1), dim3(32), 0, gpu.stream, data, true);
    QCOMPARE(gpu.download(data, 2), (std::vector<int>{62, 63}));
    QCOMPARE(gpu.report(), QString());
  }
  void reports_data() {
    QTest::addColumn<int>("fault");
    QTest::addColumn<QString>("expected");
    QTest::newRow("no barrier") << 0 << "reverseThroughShared";
    QTest::newRow("no warp barrier") << 1 << "laneExchange";
    QTest::newRow("write past the end") << 2 << "outside of every allocation";
    QTest::newRow("write before the begin") << 3 << "outside of every allocation";
    QTest::newRow("two blocks write") << 4 << "races: global memory written by block";
    QTest::newRow("shared memory that nobody wrote") << 5 << "has not written";
    QTest::newRow("deadlock") << 6 << "deadlock";
    QTest::newRow("past dynamic shared memory") << 7 << "dynamic shared memory of 64 bytes";
    QTest::newRow("a host pointer") << 8 << "outside of every allocation";
    QTest::newRow("too many threads") << 9 << "beyond the limits";
  }
  void reports() {
    QFETCH(int, fault);
    QFETCH(QString, expected);
    Gpu gpu;
    int* data = gpu.upload(counted(64));
    int onHost = 0;
    switch (fault) {
      case 0:
        launchKernel(reverseThroughShared, dim3(1), dim3(64), 0, gpu.stream, data, false);
        break;
      case 1:
        launchKernel(laneExchange, dim3(1), dim3(32), 0, gpu.stream, data, false);
        break;
      case 2:
        launchKernel(writeAt, dim3(1), dim3(1), 0, gpu.stream, data, 64);
        break;
      case 3:
        launchKernel(writeAt, dim3(1), dim3(1), 0, gpu.stream, data, -1);
        break;
      case 4:
        launchKernel(writeSame, dim3(2), dim3(1), 0, gpu.stream, data);
        break;
      case 5:
        launchKernel(readUnwritten, dim3(1), dim3(32), 0, gpu.stream, data);
        break;
      case 6:
        launchKernel(halfWaits, dim3(1), dim3(32), 0, gpu.stream);
        break;
      case 7:
        launchKernel(dynamicOverrun, dim3(1), dim3(1), 64, gpu.stream, 16);
        break;
      case 8:
        launchKernel(writeAt, dim3(1), dim3(1), 0, gpu.stream, &onHost, 0);
        break;
      default:
        launchKernel(writeSame, dim3(1), dim3(2048), 0, gpu.stream, data);
        break;
    }
    const QString report = gpu.report();
    QVERIFY2(report.contains(expected), qPrintable(report));
    if (fault < 9) QCOMPARE(cudaStreamSynchronize(gpu.stream), cudaErrorIllegalAddress);  // and stays
  }
  void atomicsAndFencesOrderBlocks() {
    Gpu gpu;
    int* count = gpu.upload(std::vector<int>{0});
    launchKernel(countAtomically, dim3(7), dim3(33), 0, gpu.stream, count);
    QCOMPARE(gpu.download(count, 1).front(), 7 * 33);
    float* partial = gpu.upload(std::vector<float>(10));
    float* out = gpu.upload(std::vector<float>(1));
    unsigned* counter = gpu.upload(std::vector<unsigned>{0});
    launchKernel(lastBlockSums, dim3(10), dim3(32), 0, gpu.stream, partial, out, counter);
    QCOMPARE(gpu.download(out, 1).front(), 55.0f);
    QCOMPARE(gpu.report(), QString());
  }
  void endedThreadsAreNotWaitedFor() {
    Gpu gpu;
    int* data = gpu.upload(std::vector<int>{0});
    launchKernel(earlyExit, dim3(1), dim3(64), 0, gpu.stream, data);
    QCOMPARE(gpu.download(data, 1).front(), 8);  // lanes of the second warp that are left
    QCOMPARE(gpu.report(), QString());
  }
  void asynchronousCopiesComeWithTheWait() {
    Gpu gpu;
    const int* in = gpu.upload(counted(128));
    int* out = gpu.upload(std::vector<int>(128));
    launchKernel(copyWithoutWait, dim3(1), dim3(32), 0, gpu.stream, out, in, true);
    std::vector<int> expected = counted(128);
    for (size_t i = 12; i < 16; ++i) expected[i] = 0;  // the invalid one
    QCOMPARE(gpu.download(out, 128), expected);
    launchKernel(copyWithoutWait, dim3(1), dim3(32), 0, gpu.stream, out, gpu.upload(std::vector<int>(128, 1000)), false);
    QVERIFY(gpu.download(out, 1).front() != 1000);
  }
  void tensorCoreTiles() {
    Gpu gpu;
    std::vector<Half> a(256), b(128), bTransposed(128);
    std::vector<BFloat16> a16(256), b16(128);
    std::vector<float> exact(128);
    std::vector<int8_t> a8(512), b8(256);
    auto value = [](int i, int salt) {
      return static_cast<float>((i * 7 + salt * 3) % 11 - 5);
    };  // small integers: every sum is exact
    for (int i = 0; i < 256; ++i) {
      a[static_cast<size_t>(i)] = fromFloat<Half>(value(i, 1));
      a16[static_cast<size_t>(i)] = fromFloat<BFloat16>(value(i, 1));
    }
    for (int i = 0; i < 128; ++i) {
      b[static_cast<size_t>(i)] = fromFloat<Half>(value(i, 2));
      b16[static_cast<size_t>(i)] = fromFloat<BFloat16>(value(i, 2));
      bTransposed[static_cast<size_t>(i % 16 * 8 + i / 16)] = b[static_cast<size_t>(i)];
    }
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column)
        for (int k = 0; k < 16; ++k)
          exact[static_cast<size_t>(row * 8 + column)] += value(row * 16 + k, 1) * value(column * 16 + k, 2);
    float* c = gpu.upload(std::vector<float>(128));
    launchKernel(multiplyTile<Half>, dim3(1), dim3(32), 0, gpu.stream, c, gpu.upload(a), gpu.upload(b));
    QCOMPARE(gpu.download(c, 128), exact);
    launchKernel(multiplyTile<BFloat16>, dim3(1), dim3(32), 0, gpu.stream, c, gpu.upload(a16), gpu.upload(b16));
    QCOMPARE(gpu.download(c, 128), exact);
    launchKernel(multiplyLoadedTile, dim3(1), dim3(32), 0, gpu.stream, c, gpu.upload(a), gpu.upload(bTransposed));
    QCOMPARE(gpu.download(c, 128), exact);

    for (int i = 0; i < 512; ++i) a8[static_cast<size_t>(i)] = static_cast<int8_t>(value(i, 3));
    for (int i = 0; i < 256; ++i) b8[static_cast<size_t>(i)] = static_cast<int8_t>(value(i, 4));
    std::vector<int> exact8(128);
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column)
        for (int k = 0; k < 32; ++k)
          exact8[static_cast<size_t>(row * 8 + column)] +=
              a8[static_cast<size_t>(row * 32 + k)] * b8[static_cast<size_t>(column * 32 + k)];
    int* c8 = gpu.upload(std::vector<int>(128));
    launchKernel(multiplyInt8Tile, dim3(1), dim3(32), 0, gpu.stream, c8, gpu.upload(a8), gpu.upload(b8));
    QCOMPARE(gpu.download(c8, 128), exact8);
    QCOMPARE(gpu.report(), QString());
  }
  // Every value of 16 and 8 bits comes back, and numbers between two round to the even one.
  void conversions() {
    for (unsigned bits = 0; bits < 0x10000u; ++bits) {
      const float half = toFloat(Half{static_cast<uint16_t>(bits)});
      if (!std::isnan(half)) QCOMPARE(fromFloat<Half>(half).bits, static_cast<uint16_t>(bits));
      const float brain = toFloat(BFloat16{static_cast<uint16_t>(bits)});
      if (!std::isnan(brain)) QCOMPARE(fromFloat<BFloat16>(brain).bits, static_cast<uint16_t>(bits));
    }
    for (unsigned bits = 0; bits < 0x100u; ++bits) {
      const float e4m3 = toFloat(Fp8E4M3{static_cast<uint8_t>(bits)}), e5m2 = toFloat(Fp8E5M2{static_cast<uint8_t>(bits)});
      if (!std::isnan(e4m3)) QCOMPARE(fromFloat<Fp8E4M3>(e4m3).bits, static_cast<uint8_t>(bits));
      if (std::isfinite(e5m2)) QCOMPARE(fromFloat<Fp8E5M2>(e5m2).bits, static_cast<uint8_t>(bits));
    }
    QCOMPARE(toFloat(Fp8E4M3{0x7e}), 448.0f);
    QCOMPARE(toFloat(Fp8E5M2{0x01}), 0x1p-16f);
    QCOMPARE(toFloat(fromFloat<Half>(1.0f + 0x1p-11f)), 1.0f);  // half way: to even
    QCOMPARE(toFloat(fromFloat<Half>(1.0f + 3 * 0x1p-11f)), 1.0f + 0x1p-9f);
    QCOMPARE(toFloat(fromFloat<Half>(65519.0f)), 65504.0f);
    QVERIFY(std::isinf(toFloat(fromFloat<Half>(65520.0f))));
    QCOMPARE(toFloat(fromFloat<Fp8E4M3>(1000.0f)), 448.0f);  // saturates
    QCOMPARE(toFloat(fromFloat<Fp8E4M3>(17.0f)), 16.0f);     // 16, 18: to even
    QCOMPARE(toFloat(fromFloat<Fp8E4M3>(19.0f)), 20.0f);
  }
  void graphsReplay() {
    Gpu gpu;
    int* count = gpu.upload(std::vector<int>{0});
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaStreamBeginCapture(gpu.stream, cudaStreamCaptureModeThreadLocal);
    launchKernel(countAtomically, dim3(1), dim3(5), 0, gpu.stream, count);
    launchKernel(countAtomically, dim3(2), dim3(1), 0, gpu.stream, count);
    QCOMPARE(cudaStreamEndCapture(gpu.stream, &graph), cudaSuccess);
    QCOMPARE(gpu.download(count, 1).front(), 0);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    for (int i = 0; i < 3; ++i) cudaGraphLaunch(executable, gpu.stream);
    QCOMPARE(gpu.download(count, 1).front(), 21);
    cudaGraphExecDestroy(executable);
  }

  // What waits, allocates, depends on work outside, or copies from memory that may be gone later makes a capture invalid.
  void aCaptureForbidsCalls_data() {
    QTest::addColumn<int>("call");
    QTest::newRow("nothing") << 0;
    QTest::newRow("cudaMalloc") << 1;
    QTest::newRow("cudaFree") << 2;
    QTest::newRow("a wait for the stream") << 3;
    QTest::newRow("a question to the stream") << 4;
    QTest::newRow("a copy from memory that is not pinned") << 5;
    QTest::newRow("an event from before") << 6;
    QTest::newRow("an event of the capture") << 7;
  }
  void aCaptureForbidsCalls() {
    QFETCH(int, call);
    Gpu gpu;
    int* count = gpu.upload(std::vector<int>{0});
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, 0);
    cudaEventRecord(event, gpu.stream);
    void* memory = nullptr;
    if (call == 2) cudaMalloc(&memory, 64);
    cudaGraph_t graph = nullptr;
    cudaStreamBeginCapture(gpu.stream, cudaStreamCaptureModeThreadLocal);
    launchKernel(countAtomically, dim3(1), dim3(5), 0, gpu.stream, count);
    const int one = 1;
    cudaError_t error = cudaSuccess;
    if (call == 1) error = cudaMalloc(&memory, 64);
    if (call == 2) error = cudaFree(memory);
    if (call == 3) error = cudaStreamSynchronize(gpu.stream);
    if (call == 4) error = cudaStreamQuery(gpu.stream);
    if (call == 5) error = cudaMemcpyAsync(count, &one, sizeof one, cudaMemcpyHostToDevice, gpu.stream);
    if (call == 6) error = cudaStreamWaitEvent(gpu.stream, event, 0);
    if (call == 7) {
      cudaEventRecord(event, gpu.stream);
      error = cudaStreamWaitEvent(gpu.stream, event, 0);
    }
    const bool allowed = call == 0 || call == 7;
    QCOMPARE(error == cudaSuccess, allowed);
    QCOMPARE(cudaStreamEndCapture(gpu.stream, &graph), allowed ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
    QCOMPARE(graph != nullptr, allowed);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    if (memory) cudaFree(memory);
    // The stream goes on as before.
    launchKernel(countAtomically, dim3(1), dim3(2), 0, gpu.stream, count);
    QCOMPARE(gpu.download<int>(count, 1).front(), 2);
  }

  // A graph takes device memory while it lives.
  void aGraphTakesMemory() {
    Gpu gpu;
    int* count = gpu.upload(std::vector<int>{0});
    size_t before = 0, with = 0, after = 0, total = 0;
    cudaMemGetInfo(&before, &total);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaStreamBeginCapture(gpu.stream, cudaStreamCaptureModeThreadLocal);
    for (int i = 0; i < 3; ++i) launchKernel(countAtomically, dim3(1), dim3(5), 0, gpu.stream, count);
    cudaStreamEndCapture(gpu.stream, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    cudaMemGetInfo(&with, &total);
    cudaGraphExecDestroy(executable);
    cudaMemGetInfo(&after, &total);
    QCOMPARE(before - with, size_t{3 * 2048});
    QCOMPARE(after, before);
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsExecutionTest)
#include "cuda_kernels_execution_test.moc"
