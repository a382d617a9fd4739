// SPDX-License-Identifier: Apache-2.0
// Linear layers of the CPU backend: out = in · weightᵀ + bias for several weights that share the input.
#pragma once

#include "engine/device/backend.h"
#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/cpu/thread_pool.h"

#include <vector>

namespace headroom::engine::cpu {

// Writes rows of `matrix` in the form that the kernels read (see WeightMatrix::packing).
void writeRows(WeightMatrix& matrix, int64_t firstRow, int64_t rows, DType dtype, const void* data);
// Row `row` of the matrix as floats.
void readRow(const WeightMatrix& matrix, int64_t row, float* to);

class CpuLinear {
 public:
  CpuLinear(CpuLevel level, bool exact, ThreadPool& pool) : m_level(level), m_exact(exact), m_pool(pool) {}
  void run(TensorView in, std::span<const LinearTask> tasks);

 private:
  const CpuLevel m_level;
  const bool m_exact;
  ThreadPool& m_pool;
  std::vector<std::vector<float>> m_rows;  // one dequantized row a thread
};

}  // namespace headroom::engine::cpu
