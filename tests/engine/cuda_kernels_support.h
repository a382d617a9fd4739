// SPDX-License-Identifier: Apache-2.0
// What tests of kernels share: an emulated device for one function, matrices that live on host and device, and comparisons.
#pragma once

#include "engine/device/cpu/block_formats.h"
#include "engine/device/cuda/kernels/kernel_types.h"
#include "tests/cuda_emulation/runtime.h"

#define QT_NO_KEYWORDS  // "slots" is a word of the KV cache too: tests say Q_SLOTS
#include <QtTest>

#include <cmath>
#include <random>
#include <string>
#include <vector>

extern "C" const char* headroomEmulationReport();

namespace headroom::engine::cuda::test {

// One stream of device 0 and the memory that a test uploads.
struct Gpu {
  Gpu() {
    int count = 0;
    cudaGetDeviceCount(&count);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, 0);
  }
  ~Gpu() {
    cudaStreamDestroy(stream);
    for (void* memory : m_memories) cudaFree(memory);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void* allocate(size_t bytes) {
    void* memory = nullptr;
    cudaMalloc(&memory, bytes);
    m_memories.push_back(memory);
    return memory;
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    void* memory = allocate(values.size() * sizeof(T));
    cudaMemcpyAsync(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, stream);
    return static_cast<T*>(memory);
  }
  template <class T>
  std::vector<T> download(const void* from, size_t count) {
    std::vector<T> values(count);
    cudaMemcpyAsync(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return values;
  }
  TensorView indices(const std::vector<int>& values) {
    return TensorView::of(upload(values), DType::I32, 1, static_cast<int64_t>(values.size()));
  }
  // What the emulation's checks have found: accesses outside of memory, races, unwritten shared memory. Empty: nothing.
  QString report() {
    cudaStreamSynchronize(stream);
    return QString::fromUtf8(headroomEmulationReport());
  }

  cudaStream_t stream = nullptr;

 private:
  std::vector<void*> m_memories;
};

// A (rows, cols) matrix of floats that fit its type exactly; rows on the device are `stride` apart.
struct Matrix {
  Matrix(int64_t rowCount, int64_t colCount, DType type, unsigned seed, float range = 1.0f)
      : rows(rowCount), cols(colCount), stride(colCount), dtype(type), values(static_cast<size_t>(rowCount * colCount)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-range, range);
    for (float& value : values) value = uniform(random);
    round();
  }
  float& at(int64_t row, int64_t col) { return values[static_cast<size_t>(row * cols + col)]; }
  float at(int64_t row, int64_t col) const { return values[static_cast<size_t>(row * cols + col)]; }
  // Values become what the type can hold.
  void round() {
    for (float& value : values) {
      if (dtype == DType::BF16) value = cpu::bf16ToFloat(cpu::floatToBf16(value));
      if (dtype == DType::F16) value = cpu::f16ToFloat(cpu::floatToF16(value));
    }
  }
  TensorView upload(Gpu& gpu) const {
    const size_t size = dtype == DType::F32 ? 4 : 2;
    std::vector<uint8_t> bytes(static_cast<size_t>(rows * stride) * size);
    for (int64_t row = 0; row < rows; ++row)
      cpu::fromFloats(dtype, values.data() + row * cols, cols, bytes.data() + static_cast<size_t>(row * stride) * size);
    return {gpu.upload(bytes), dtype, rows, cols, stride};
  }
  void download(Gpu& gpu, const TensorView& view) {
    const size_t size = dtype == DType::F32 ? 4 : 2;
    const std::vector<uint8_t> bytes = gpu.download<uint8_t>(view.data, static_cast<size_t>(rows * view.stride) * size);
    for (int64_t row = 0; row < rows; ++row)
      cpu::toFloats(dtype, bytes.data() + static_cast<size_t>(row * view.stride) * size, cols, values.data() + row * cols);
  }
  int64_t rows, cols, stride;
  DType dtype;
  std::vector<float> values;
};

// Half a unit in the last place of a type, relative, and a little for F32 arithmetic.
inline double tolerance(DType dtype) { return dtype == DType::BF16 ? 0x1p-8 : dtype == DType::F16 ? 0x1p-10 : 2e-6; }

// Every element of `actual` against `expected(row, col)`: within `relative` of its size or of `scale`.
template <class Expected>
void compare(const Matrix& actual, const Expected& expected, double relative, double scale = 1.0) {
  for (int64_t row = 0; row < actual.rows; ++row) {
    for (int64_t col = 0; col < actual.cols; ++col) {
      const double wanted = expected(row, col), found = actual.at(row, col);
      if (!(std::abs(found - wanted) <= relative * std::max(std::abs(wanted), scale)))
        QFAIL(qPrintable(
            QString("(%1, %2): found %3, expected %4").arg(row).arg(col).arg(found, 0, 'g', 9).arg(wanted, 0, 'g', 9)));
    }
  }
}

inline void activationTypes() {
  QTest::addColumn<int>("type");
  QTest::newRow("F32") << static_cast<int>(DType::F32);
  QTest::newRow("F16") << static_cast<int>(DType::F16);
  QTest::newRow("BF16") << static_cast<int>(DType::BF16);
}

}  // namespace headroom::engine::cuda::test
