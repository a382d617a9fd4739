// SPDX-License-Identifier: Apache-2.0
// What both attention kernels share: the call as kernels take it, and who sees what.
#pragma once

#include "engine/device/cuda/kernels/attention.h"
#include "engine/device/cuda/kernels/common.cuh"

namespace headroom::engine::cuda {

template <class T, class C>
struct AttentionArguments {
  Rows<T> out;
  Rows<const T> q;
  const C* cache;
  int64_t blockElements, valueOffset;               // elements of a block; where its V begin
  int blockTokens, headDim, vHeadDim, valueStride;  // valueStride: elements from one token's V to the next
  bool valuesInKeys;
  bool isE5M2;  // a cache of FP8 holds E5M2, not E4M3
  int sequences;
  const int *sequenceStart, *contextLength, *blockTable;
  int64_t blockTableStride;
  float scale, softcap;
  int window;
  bool chunkedWindow;
  int qHeads, qHeadBegin, kvHeadBegin, groupSize;
  const float* sinks;
  int splits;
  float* partialValues;  // (tokens, qHeads, splits, vHeadDim), not divided by the sums
  float2* partialSums;   // (tokens, qHeads, splits): highest score, sum of exp(score - highest); natural logarithms

  // The first token that a token at `position` sees.
  __device__ int firstSeen(int position) const {
    if (window <= 0) return 0;
    if (chunkedWindow) return position / window * window;
    return position < window ? 0 : position - window + 1;
  }
  // Where K of a token of a KV head begins; V likewise.
  __device__ const C* key(int block, int offset, int head) const {
    return cache + block * blockElements + (static_cast<int64_t>(head) * blockTokens + offset) * headDim;
  }
  __device__ const C* value(int block, int offset, int head) const {
    return cache + block * blockElements + valueOffset + (static_cast<int64_t>(head) * blockTokens + offset) * valueStride;
  }
  __device__ float number(C x) const {
    if constexpr (sizeof(C) == 1)
      return isE5M2 ? toFloat(Fp8E5M2{x.bits}) : toFloat(x);
    else
      return toFloat(x);
  }
  __device__ int64_t partial(int64_t token, int head, int split) const { return (token * qHeads + head) * splits + split; }
};

template <class T, class C>
AttentionArguments<T, C> attentionArguments(const AttentionCall& call) {
  const KvCache& cache = call.cache;
  AttentionArguments<T, C> arguments;
  arguments.out = rowsOf<T>(call.out);
  arguments.q = rowsOf<const T>(call.q);
  arguments.cache = static_cast<const C*>(cache.data);
  arguments.blockElements = cache.blockTokens * cache.kvHeads * (cache.headDim + (call.valuesInKeys ? 0 : cache.vHeadDim));
  arguments.valueOffset = call.valuesInKeys ? cache.headDim - cache.vHeadDim : cache.blockTokens * cache.kvHeads * cache.headDim;
  arguments.blockTokens = static_cast<int>(cache.blockTokens);
  arguments.headDim = static_cast<int>(cache.headDim);
  arguments.vHeadDim = static_cast<int>(cache.vHeadDim);
  arguments.valueStride = static_cast<int>(call.valuesInKeys ? cache.headDim : cache.vHeadDim);
  arguments.valuesInKeys = call.valuesInKeys;
  arguments.isE5M2 = cache.dtype == DType::F8E5M2;
  arguments.sequences = static_cast<int>(call.sequences);
  arguments.sequenceStart = call.sequenceStart;
  arguments.contextLength = call.contextLength;
  arguments.blockTable = call.blockTable;
  arguments.blockTableStride = call.blockTableStride;
  arguments.scale = call.scale;
  arguments.softcap = call.softcap;
  arguments.window = static_cast<int>(call.window);
  arguments.chunkedWindow = call.chunkedWindow;
  arguments.qHeads = static_cast<int>(call.qHeads);
  arguments.qHeadBegin = static_cast<int>(call.qHeadBegin);
  arguments.kvHeadBegin = static_cast<int>(call.kvHeadBegin);
  arguments.groupSize = static_cast<int>(call.groupSize);
  arguments.sinks = call.sinks;
  arguments.splits = call.splits;
  arguments.partialSums = static_cast<float2*>(call.workspace);
  arguments.partialValues = static_cast<float*>(call.workspace) + 2 * call.q.rows * call.qHeads * call.splits;
  return arguments;
}

}  // namespace headroom::engine::cuda
