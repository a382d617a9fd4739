// SPDX-License-Identifier: Apache-2.0
// Keys and values of the CPU backend, and causal attention over them. Inside a block K lies as (kvHeads, headDim, blockTokens),
// so that the scores of neighbouring tokens are computed side by side; V follows as (kvHeads, blockTokens, vHeadDim). Behind the
// codes of an I8 cache stand the scales of its keys, then those of its values, each (kvHeads, blockTokens) F32.
#pragma once

#include "engine/device/backend.h"
#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/attention_kernels.h"
#include "engine/device/cpu/thread_pool.h"

#include <vector>

namespace headroom::engine::cpu {

// A row's result depends on its own sequence alone: the context is walked in chunks that begin at multiples of kChunkTokens, the
// partial softmax of every kSplitTokens is merged into the next in order, whether one thread walks the context or several share
// it.
class CpuAttention {
 public:
  static constexpr int64_t kChunkTokens = 64, kSplitTokens = 1024;

  CpuAttention(CpuLevel level, ThreadPool& pool)
      : m_kernels(attentionKernels(level)), m_pool(pool), m_scratch(static_cast<size_t>(pool.threads())) {}
  void store(const KvLayerView& cache, TensorView k, TensorView v, TensorView slots);
  void run(TensorView out, TensorView q, const KvLayerView& cache, const AttentionBatch& batch, const AttentionParams& params);

 private:
  // Query rows that share one KV head: tokens [tokenBegin, tokenEnd) of the batch times heads [headBegin, headEnd). Items of one
  // split of a long context leave their partial result in m_partials for the merge.
  struct Item {
    int64_t sequence, kvHead, tokenBegin, tokenEnd, headBegin, headEnd;
    int64_t split = -1;    // -1: all of the context
    int64_t partial = -1;  // floats into m_partials
    int64_t rows() const { return (tokenEnd - tokenBegin) * (headEnd - headBegin); }
  };
  struct Merge {
    Item item;
    int64_t splits;
  };
  struct Call;
  struct Softmax;  // rows of unnormalized output with their maxima and sums

  void plan(const Call& call);
  void attend(const Call& call, const Item& item, int thread);
  void attendSplit(const Call& call, const Item& item, int64_t split, const float* queries, float* work, const Softmax& to) const;
  void mergePartials(const Call& call, const Merge& merge, int thread);
  void finish(const Call& call, const Item& item, const Softmax& result) const;

  const AttentionKernels& m_kernels;
  ThreadPool& m_pool;
  std::vector<Item> m_items;
  std::vector<Merge> m_merges;
  std::vector<AlignedBuffer> m_scratch;  // outside the device's budget: a few hundred KiB a thread
  AlignedBuffer m_partials;
};

}  // namespace headroom::engine::cpu
