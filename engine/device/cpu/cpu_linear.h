// SPDX-License-Identifier: Apache-2.0
// Linear layers of the CPU backend: packs weights into row groups, prepares the activations once for all weights that share them,
// and deals the groups out to the threads.
#pragma once

#include "engine/device/backend.h"
#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/linear_kernels.h"
#include "engine/device/cpu/thread_pool.h"

#include <array>
#include <vector>

namespace headroom::engine::cpu {

class CpuLinear {
 public:
  // With `exact`, activations stay floats for every weight.
  CpuLinear(CpuLevel level, bool exact, ThreadPool& pool);

  static int packingFor(DType dtype) { return hasRowGroups(dtype) ? kRowGroups : kPlainRows; }
  // Rows of the matrix's own type or of a floating type.
  void writeRows(WeightMatrix& matrix, int64_t firstRow, int64_t rows, DType dtype, const void* data);
  // One row as floats; any thread.
  static void readRow(const WeightMatrix& matrix, int64_t row, float* to);
  void run(TensorView in, std::span<const LinearTask> tasks);

 private:
  // Forms of activations. Of kInt8Fine each token has two rows: itself, and what rounding it loses.
  enum Form { kFloats, kInt8, kBf16, kInt8Fine, kForms };
  struct Prepared {
    int64_t tileTokens = 0, tiles = 0, tileBytes = 0;  // tokens of all tiles but the last; 0 tiles: not needed
    size_t width = 0;                                  // index into the family's widths
  };
  // Items of one parallel region that belong to one task.
  struct Share {
    const LinearTask* task;
    Form form;
    int64_t firstItem, groupItems, plainItems, tileSplits;
  };

  Form formOf(const LinearTask& task) const;
  TensorView withLost(TensorView in);
  void runTokens(TensorView in, std::span<const LinearTask> tasks, int64_t firstToken, int64_t tokens);
  void prepare(Form form, TensorView in, int64_t tokens);
  void runGroups(const Share& share, int64_t item, int64_t firstToken, int64_t tokens, int thread);
  void groupToFloats(const WeightMatrix& weight, int64_t group, float* to) const;
  void runPlainRows(const Share& share, int64_t item, int64_t firstToken, int64_t tokens, int thread);

  const CpuLevel m_level;
  const bool m_exact;
  ThreadPool& m_pool;
  std::array<const LinearFamily*, kForms> m_families{};
  std::array<Prepared, kForms> m_prepared;
  // Scratch outside the device's budget: activations of kTokensAtOnce tokens at most in each form, and two groups of
  // dequantized rows a thread.
  std::array<AlignedBuffer, kForms> m_activations;
  AlignedBuffer m_withLost;
  std::vector<AlignedBuffer> m_rows;
  std::vector<Share> m_shares;
};

}  // namespace headroom::engine::cpu
