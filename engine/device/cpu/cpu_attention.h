// SPDX-License-Identifier: Apache-2.0
// Keys and values of the CPU backend, and causal attention over them. Inside a block K lies as (kvHeads, headDim, blockTokens),
// so that the scores of neighbouring tokens are computed side by side; V follows as (kvHeads, blockTokens, vHeadDim).
#pragma once

#include "engine/device/backend.h"
#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/cpu/thread_pool.h"

#include <vector>

namespace headroom::engine::cpu {

class CpuAttention {
 public:
  CpuAttention(CpuLevel level, ThreadPool& pool) : m_level(level), m_pool(pool) {}
  void store(const KvLayerView& cache, TensorView k, TensorView v, TensorView slots);
  void run(TensorView out, TensorView q, const KvLayerView& cache, const AttentionBatch& batch, const AttentionParams& params);

 private:
  const CpuLevel m_level;
  ThreadPool& m_pool;
};

}  // namespace headroom::engine::cpu
