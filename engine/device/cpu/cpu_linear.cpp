// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/cpu_linear.h"

#include "engine/device/cpu/block_formats.h"

namespace headroom::engine::cpu {
namespace {
int64_t rowBytes(const WeightMatrix& matrix) { return storageBytes(matrix.dtype, matrix.in).count(); }
std::byte* rowAt(const WeightMatrix& matrix, int64_t row) {
  return static_cast<std::byte*>(matrix.storage.data()) + row * rowBytes(matrix);
}

float dot(const float* a, const float* b, int64_t n) {
  float sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int j = 0; j < 16; ++j) sums[j] += a[i + j] * b[i + j];
  for (; i < n; ++i) sums[i % 16] += a[i] * b[i];
  float sum = 0;
  for (float part : sums) sum += part;
  return sum;
}
}  // namespace

void writeRows(WeightMatrix& matrix, int64_t firstRow, int64_t rows, DType dtype, const void* data) {
  const auto* from = static_cast<const std::byte*>(data);
  const int64_t fromBytes = storageBytes(dtype, matrix.in).count();
  std::vector<float> row(static_cast<size_t>(matrix.in));
  for (int64_t i = 0; i < rows; ++i, from += fromBytes) {
    if (dtype == matrix.dtype) {
      std::memcpy(rowAt(matrix, firstRow + i), from, static_cast<size_t>(fromBytes));
    } else {
      toFloats(dtype, from, matrix.in, row.data());
      fromFloats(matrix.dtype, row.data(), matrix.in, rowAt(matrix, firstRow + i));
    }
  }
}

void readRow(const WeightMatrix& matrix, int64_t row, float* to) { toFloats(matrix.dtype, rowAt(matrix, row), matrix.in, to); }

void CpuLinear::run(TensorView in, std::span<const LinearTask> tasks) {
  m_rows.resize(static_cast<size_t>(m_pool.threads()));
  for (std::vector<float>& row : m_rows)
    if (row.size() < static_cast<size_t>(in.cols)) row.resize(static_cast<size_t>(in.cols));
  for (const LinearTask& task : tasks) {
    const WeightMatrix& weight = *task.weight;
    m_pool.run(ceilDiv(weight.out, 16), [&](int64_t group, int thread) {
      float* row = m_rows[static_cast<size_t>(thread)].data();
      for (int64_t o = group * 16; o < std::min(weight.out, group * 16 + 16); ++o) {
        readRow(weight, o, row);
        const float bias = task.bias ? task.bias[o] : 0.0f;
        for (int64_t t = 0; t < task.out.rows; ++t) task.out.row<float>(t)[o] = dot(in.row<float>(t), row, weight.in) + bias;
      }
    });
  }
}

}  // namespace headroom::engine::cpu
