// SPDX-License-Identifier: Apache-2.0
// Causal attention over the paged cache. attention.cu holds the tensor-core kernels, attention_plain.cu the one for everything
// else (F32 activations, head sizes that are no multiple of 16, caches of another type); both give the same results and take the
// same call.
#pragma once

#include "engine/device/cuda/kernels/kernel_types.h"

namespace headroom::engine::cuda {

struct AttentionCall {
  TensorView out, q;  // (tokens, qHeads * vHeadDim), (tokens, qHeads * headDim), one activation type
  KvCache cache;
  // V of a token is the last vHeadDim elements of its K (a latent cache): the cache then holds K only.
  bool valuesInKeys = false;

  // Rows sequenceStart[i] … sequenceStart[i+1] of the batch are the last tokens of sequence i, whose context, they included, has
  // contextLength[i] tokens in the blocks blockTable[i * blockTableStride …]. All in device memory: nothing of them shapes the
  // launch, so that it may be replayed.
  int64_t sequences = 0;
  const int* sequenceStart = nullptr;
  const int* contextLength = nullptr;
  const int* blockTable = nullptr;
  int64_t blockTableStride = 0;

  float scale = 1.0f;
  float softcap = 0.0f;                                    // 0: none
  int64_t window = 0;                                      // 0: all; else a token sees itself and window - 1 before it
  bool chunkedWindow = false;                              // sees only the tokens of its own chunk of `window`
  int64_t qHeads = 0;                                      // of this rank
  int64_t qHeadBegin = 0, kvHeadBegin = 0, groupSize = 1;  // kv head of query head q: (qHeadBegin + q) / groupSize - kvHeadBegin
  const float* sinks = nullptr;                            // a logit per query head of this rank; may be null

  int splits = 1;             // parts that a context is cut into, from attentionSplits
  void* workspace = nullptr;  // attentionWorkspaceBytes(…); unused with one part
};

// In how many parts contexts are cut so that `multiprocessors` have work: 1 … 32. It depends on counts only, never on lengths.
int attentionSplits(const AttentionCall& call, int multiprocessors);
int64_t attentionWorkspaceBytes(int64_t tokens, int64_t qHeads, int64_t vHeadDim, int splits);

// `maxSharedBytes`: what a block may have on this device (cudaDevAttrMaxSharedMemoryPerBlockOptin).
// `tensorCores`: the device has them for the activation type (Half: 7.5 and above, BFloat16: 8.0 and above).
void pagedAttention(Stream stream, const AttentionCall& call, int64_t maxSharedBytes, bool tensorCores);

// Used by pagedAttention.
void plainAttention(Stream stream, const AttentionCall& call);
// Joins the parts in the workspace, sinks included.
void mergeAttention(Stream stream, const AttentionCall& call);

}  // namespace headroom::engine::cuda
