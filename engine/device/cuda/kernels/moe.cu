// SPDX-License-Identifier: Apache-2.0
// Mixture of experts: a warp chooses for a token, a block sorts for an expert, a block joins a token's results. Roofline: routing
// and sorting are bound by their start (a few us; sorting reads all ids once an expert, from the L2 cache); joining moves
// expertsPerToken rows and writes one, at the copy bandwidth. Test: tests/engine/cuda_kernels_moe_test.cpp.
#include "engine/device/cuda/kernels/moe.h"

#include "engine/device/cuda/kernels/common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr float kLowest = -3.4028235e38f;

// The lane's best of a strided run, then the warp's: the largest value, the lowest index among equals.
__device__ inline void warpLargest(float& value, int& index) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const float otherValue = __shfl_xor_sync(kAllLanes, value, step);
    const int otherIndex = __shfl_xor_sync(kAllLanes, index, step);
    if (otherValue > value || (otherValue == value && otherIndex < index)) {
      value = otherValue;
      index = otherIndex;
    }
  }
}

__device__ inline int takeLargest(float* values, int count, int lane) {
  float best = -INFINITY;
  int index = 1 << 30;
  for (int i = lane; i < count; i += kWarp) {
    if (values[i] > best || (values[i] == best && i < index)) {
      best = values[i];
      index = i;
    }
  }
  warpLargest(best, index);
  if (index < count && lane == index % kWarp) values[index] = -INFINITY;
  __syncwarp(kAllLanes);
  return index;
}

__global__ void routeKernel(Rows<int> ids, Rows<float> weights, Rows<const float> logits, int experts, int count,
                            RoutingRule rule) {
  HEADROOM_DYNAMIC_SHARED(float, scores);  // scores, scores for the choice, group scores, whether a group is kept
  float* choice = scores + experts;
  float* groupScores = choice + experts;
  float* kept = groupScores + rule.groups;
  const int lane = static_cast<int>(threadIdx.x);
  const float* row = logits.row(blockIdx.x);
  float top = -INFINITY, sum = 0.0f;
  for (int e = lane; e < experts; e += kWarp) top = fmaxf(top, row[e]);
  top = warpMax(top);
  for (int e = lane; e < experts; e += kWarp) {
    scores[e] = rule.sigmoid ? 1.0f / (1.0f + expf(-row[e])) : expf(row[e] - top);
    sum += scores[e];
  }
  sum = warpSum(sum);
  for (int e = lane; e < experts; e += kWarp) {
    if (!rule.sigmoid) scores[e] /= sum;
    const float score = scores[e] + (rule.choiceBias ? rule.choiceBias[e] : 0.0f);
    choice[e] = score > kLowest ? score : kLowest;  // what is no number comes last
  }
  __syncwarp(kAllLanes);
  if (rule.groupsPerToken < rule.groups) {
    const int size = experts / rule.groups;
    for (int g = lane; g < rule.groups; g += kWarp) {
      float best = -INFINITY, second = -INFINITY;
      for (int e = g * size; e < (g + 1) * size; ++e) {
        if (choice[e] > best) {
          second = best;
          best = choice[e];
        } else if (choice[e] > second) {
          second = choice[e];
        }
      }
      groupScores[g] = rule.groupByTopTwo && size > 1 ? best + second : best;
      kept[g] = 0.0f;
    }
    __syncwarp(kAllLanes);
    for (int i = 0; i < rule.groupsPerToken; ++i) {
      const int group = takeLargest(groupScores, rule.groups, lane);
      if (lane == 0 && group < rule.groups) kept[group] = 1.0f;
    }
    __syncwarp(kAllLanes);
    for (int e = lane; e < experts; e += kWarp)
      if (kept[e / size] == 0.0f) choice[e] = -INFINITY;
    __syncwarp(kAllLanes);
  }
  float total = 0.0f;
  for (int i = 0; i < count; ++i) {
    int expert = takeLargest(choice, experts, lane);
    if (expert >= experts) expert = 0;  // fewer experts than choices: the caller's mistake, but no access outside
    total += scores[expert];
    if (lane == 0) {
      ids.row(blockIdx.x)[i] = expert;
      weights.row(blockIdx.x)[i] = scores[expert];
    }
  }
  __syncwarp(kAllLanes);
  const float factor = rule.normalize ? rule.scale / (total + 1e-20f) : rule.scale;
  if (lane == 0)
    for (int i = 0; i < count; ++i) weights.row(blockIdx.x)[i] *= factor;
}

constexpr int kSortThreads = 256;

// Block e places expert e's slots behind those of all lower experts, in their order. The last block (e = experts) clears what has
// no row.
__global__ void __launch_bounds__(kSortThreads)
    sortKernel(int* begin, int* tokenOf, int* rowOf, const int* ids, int slots, int perToken, int experts) {
  __shared__ int warpCounts[kSortThreads / kWarp], below;
  const int expert = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x), warp = thread / kWarp,
            lane = thread % kWarp;
  if (thread == 0) below = 0;
  __syncthreads();
  int lower = 0;
  for (int slot = thread; slot < slots; slot += kSortThreads) {
    const int id = ids[slot];
    if (id >= 0 && id < expert) ++lower;
  }
  atomicAdd(&below, lower);
  __syncthreads();
  int next = below;
  if (thread == 0) begin[expert] = next;
  if (expert == experts) {
    for (int slot = thread; slot < slots; slot += kSortThreads) {
      if (slot >= next) tokenOf[slot] = 0;
      if (ids[slot] < 0 || ids[slot] >= experts) rowOf[slot] = -1;
    }
    return;
  }
  for (int base = 0; base < slots; base += kSortThreads) {
    const int slot = base + thread;
    const bool mine = slot < slots && ids[slot] == expert;
    const unsigned votes = __ballot_sync(kAllLanes, mine);
    if (lane == 0) warpCounts[warp] = __popc(votes);
    __syncthreads();
    int before = 0, all = 0;
#pragma unroll
    for (int w = 0; w < kSortThreads / kWarp; ++w) {
      before += w < warp ? warpCounts[w] : 0;
      all += warpCounts[w];
    }
    if (mine) {
      const int row = next + before + __popc(votes & ((1u << lane) - 1u));
      tokenOf[row] = slot / perToken;
      rowOf[slot] = row;
    }
    next += all;
    __syncthreads();
  }
}

template <class T, int N>
__global__ void gatherWeightedKernel(Rows<T> out, Rows<const T> in, const int* rowOf, Rows<const float> weights, int perToken,
                                     int cols) {
  const int slot = static_cast<int>(blockIdx.x), row = rowOf[slot];
  if (row < 0) return;
  const float weight = weights.row(slot / perToken)[slot % perToken];
  for (int i = static_cast<int>(threadIdx.x) * N; i < cols; i += static_cast<int>(blockDim.x) * N) {
    float x[N];
    loadFloats(in.row(slot / perToken) + i, x);
#pragma unroll
    for (int j = 0; j < N; ++j) x[j] *= weight;
    storeFloats(x, out.row(row) + i);
  }
}

constexpr int kMostChoices = 64;

template <class T, class R, int N>
__global__ void combineKernel(Rows<T> out, Rows<const R> rows, const int* rowOf, Rows<const int> ids, Rows<const float> weights,
                              int perToken, int cols, bool addToOut) {
  __shared__ int order[kMostChoices];
  __shared__ float shares[kMostChoices];
  const int64_t token = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < perToken) {  // where this choice stands among the token's, by expert
    const int mine = ids.row(token)[thread];
    int place = 0;
    for (int i = 0; i < perToken; ++i) {
      const int other = ids.row(token)[i];
      if (other < mine || (other == mine && i < thread)) ++place;
    }
    order[place] = rowOf[token * perToken + thread];
    shares[place] = weights.data ? weights.row(token)[thread] : 1.0f;
  }
  __syncthreads();
  for (int i = thread * N; i < cols; i += static_cast<int>(blockDim.x) * N) {
    float sum[N] = {};
    if (addToOut) loadFloats(out.row(token) + i, sum);
    for (int choice = 0; choice < perToken; ++choice) {
      if (order[choice] < 0) continue;
      float x[N];
      loadFloats(rows.row(order[choice]) + i, x);
#pragma unroll
      for (int j = 0; j < N; ++j) sum[j] += shares[choice] * x[j];
    }
    storeFloats(sum, out.row(token) + i);
  }
}

}  // namespace

void routeExperts(Stream stream, TensorView ids, TensorView weights, TensorView logits, const RoutingRule& rule) {
  if (logits.rows == 0) return;
  kernelExpects(
      logits.cols <= 2048 && rule.groups >= 1 && rule.groups <= 256 && logits.cols % rule.groups == 0 && ids.cols <= logits.cols,
      "a router's sizes do not match");
  const size_t shared = sizeof(float) * static_cast<size_t>(2 * logits.cols + 2 * rule.groups);
  launchKernel(routeKernel, dim3(static_cast<unsigned>(logits.rows)), dim3(kWarp), shared, stream, rowsOf<int>(ids),
               rowsOf<float>(weights), rowsOf<const float>(logits), static_cast<int>(logits.cols), static_cast<int>(ids.cols),
               rule);
}

void sortByExpert(Stream stream, int* begin, int* tokenOf, int* rowOf, TensorView ids, int experts) {
  kernelExpects(ids.stride == ids.cols, "the chosen experts have gaps between rows");
  launchKernel(sortKernel, dim3(static_cast<unsigned>(experts + 1)), dim3(kSortThreads), 0, stream, begin, tokenOf, rowOf,
               static_cast<const int*>(ids.data), static_cast<int>(ids.rows * ids.cols), static_cast<int>(ids.cols), experts);
}

void gatherWeighted(Stream stream, TensorView out, TensorView in, const int* rowOf, TensorView weights) {
  if (in.rows == 0) return;
  withActivationType(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const dim3 grid(static_cast<unsigned>(weights.rows * weights.cols));
    const auto launch = [&](auto kernel) {
      launchKernel(kernel, grid, dim3(128), 0, stream, rowsOf<T>(out), rowsOf<const T>(in), rowOf, rowsOf<const float>(weights),
                   static_cast<int>(weights.cols), static_cast<int>(in.cols));
    };
    if (isWide<T>(out, out.cols) && isWide<T>(in, out.cols))
      launch(gatherWeightedKernel<T, kWide<T>>);
    else
      launch(gatherWeightedKernel<T, 1>);
  });
}

void combineExperts(Stream stream, TensorView out, TensorView rows, const int* rowOf, TensorView ids, TensorView weights,
                    bool addToOut) {
  if (out.rows == 0) return;
  kernelExpects(ids.cols <= kMostChoices, "a token has more than 64 experts");
  withActivationType(out.dtype, [&](auto tag) {
    withActivationType(rows.dtype, [&](auto rowTag) {
      using T = typename decltype(tag)::type;
      using R = typename decltype(rowTag)::type;
      constexpr int kN = kWide<T> < kWide<R> ? kWide<T> : kWide<R>;
      const auto launch = [&](auto kernel) {
        launchKernel(kernel, dim3(static_cast<unsigned>(out.rows)), dim3(128), 0, stream, rowsOf<T>(out), rowsOf<const R>(rows),
                     rowOf, rowsOf<const int>(ids), rowsOf<const float>(weights), static_cast<int>(ids.cols),
                     static_cast<int>(out.cols), addToOut);
      };
      if (isWide<T>(out, out.cols) && isWide<R>(rows, out.cols))
        launch(combineKernel<T, R, kN>);
      else
        launch(combineKernel<T, R, 1>);
    });
  });
}

}  // namespace headroom::engine::cuda
