// SPDX-License-Identifier: Apache-2.0
// Sampling: a block a row. What top_k, top_p and the draw need of a sorted order is found without sorting: three passes over the
// row with histograms of 11 bits of the logits' order lead to the logit at which a count or a sum of weights is reached, whole
// numbers throughout. Roofline: the row's bytes from the L2 cache: one reading for greedy, two more for a plain draw, three for
// each of top_k, top_p and their draw; about 10 us to 80 us for a vocabulary of 128 Ki (an estimate), rows side by side. Test:
// tests/engine/cuda_kernels_sampling_test.cpp.
#include "engine/device/cuda/kernels/sampling.h"

#include "engine/device/cuda/kernels/common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr int kThreads = 1024, kWarps = kThreads / kWarp, kBins = 2048;
using Whole = unsigned long long;

__global__ void maskKernel(Rows<float> logits, int vocabulary, const uint32_t* masks, int64_t words, const int* maskOfRow) {
  const int mask = maskOfRow[blockIdx.y], token = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (mask < 0 || token >= vocabulary) return;
  if ((masks[mask * words + token / 32] >> (token % 32) & 1u) == 0u) logits.row(blockIdx.y)[token] = -INFINITY;
}

__global__ void biasKernel(Rows<float> logits, const LogitBias* biases, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) logits.row(biases[i].row)[biases[i].token] += biases[i].amount;
}

__global__ void penaltyKernel(Rows<float> logits, const SeenToken* seen, int64_t count, const Penalties* ofRow) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const SeenToken token = seen[i];
  const Penalties penalties = ofRow[token.row];
  float* logit = logits.row(token.row) + token.token;
  float value = *logit;
  if (penalties.repetition != 1.0f) value = value > 0.0f ? value / penalties.repetition : value * penalties.repetition;
  if (token.count > 0) value -= penalties.frequency * static_cast<float>(token.count) + penalties.presence;
  *logit = value;
}

// Floats in the order of unsigned numbers; minus infinity and what is no number: 0.
__device__ inline uint32_t orderOf(float value) {
  if (!(value > -INFINITY)) return 0u;
  const uint32_t bits = __float_as_uint(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline float valueOf(uint32_t order) { return __uint_as_float(order & 0x80000000u ? order & 0x7fffffffu : ~order); }

// The largest logit of a row and its lowest token, for every thread. `shared` has two rooms a warp.
__device__ inline void rowLargest(const float* logits, int vocabulary, float* values, int* tokens, float& best, int& token) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  best = -INFINITY;
  token = -1;
  for (int i = thread; i < vocabulary; i += kThreads) {
    if (logits[i] > best) {
      best = logits[i];
      token = i;
    }
  }
  const auto merge = [&](float otherBest, int otherToken) {
    if (otherToken >= 0 && (token < 0 || otherBest > best || (otherBest == best && otherToken < token))) {
      best = otherBest;
      token = otherToken;
    }
  };
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const float otherBest = __shfl_xor_sync(kAllLanes, best, step);
    merge(otherBest, __shfl_xor_sync(kAllLanes, token, step));
  }
  if (lane == 0) {
    values[warp] = best;
    tokens[warp] = token;
  }
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) merge(values[w], tokens[w]);
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) argmaxKernel(int* ids, Rows<const float> logits, int vocabulary) {
  __shared__ float values[kWarps];
  __shared__ int tokens[kWarps];
  float best;
  int token;
  rowLargest(logits.row(blockIdx.x), vocabulary, values, tokens, best, token);
  if (threadIdx.x == 0) ids[blockIdx.x] = token;
}

struct Shared {
  Whole sums[kBins];
  unsigned counts[kBins];
  Whole warpSums[kWarps], warpCounts[kWarps];
  float values[kWarps];
  int tokens[kWarps];
  Whole found[3];  // bin, sum and count before it
};

struct Row {
  const float* logits;
  int vocabulary;
  float most;
  double inverse;
  // Multiples of 2^-32; the likeliest has 2^32.
  __device__ Whole weight(float logit) const {
    return static_cast<Whole>(rint(exp((static_cast<double>(logit) - most) * inverse) * 4294967296.0));
  }
};

// Where, from the likeliest down, the count (bySum: the sum of weights) goes past `limit`: its order, and what was counted and
// summed before it. Tokens below `floor` are left out. False where the end comes first.
template <bool kBySum>
__device__ bool descend(const Row& row, uint32_t floor, Whole limit, Shared& shared, uint32_t& order, Whole& sumBefore,
                        Whole& countBefore) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  sumBefore = countBefore = 0;
  order = 0;
#pragma unroll 1
  for (int level = 0; level < 3; ++level) {
    const int shift = level == 0 ? 21 : level == 1 ? 10 : 0, bits = level == 2 ? 10 : 11;
    const uint32_t prefix = order >> (shift + bits - (level == 0 ? 1 : 0));
    for (int i = thread; i < kBins; i += kThreads) shared.sums[i] = 0, shared.counts[i] = 0;
    __syncthreads();
    for (int i = thread; i < row.vocabulary; i += kThreads) {
      const uint32_t mine = orderOf(row.logits[i]);
      if (mine == 0u || mine < floor) continue;
      if (level > 0 && mine >> (shift + bits) != prefix) continue;
      const int bin = static_cast<int>((mine >> shift) & ((1u << bits) - 1u));
      atomicAdd(&shared.counts[bin], 1u);
      atomicAdd(&shared.sums[bin], row.weight(row.logits[i]));
    }
    __syncthreads();
    // From the highest bin down: thread t holds bins 2047 - 2t and 2046 - 2t.
    const int high = kBins - 1 - 2 * thread, low = high - 1;
    const Whole highSum = shared.sums[high], lowSum = shared.sums[low], highCount = shared.counts[high],
                lowCount = shared.counts[low];
    Whole sum = highSum + lowSum, count = highCount + lowCount;
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
      const Whole otherSum = __shfl_up_sync(kAllLanes, sum, step), otherCount = __shfl_up_sync(kAllLanes, count, step);
      if (lane >= step) sum += otherSum, count += otherCount;
    }
    if (lane == kWarp - 1) shared.warpSums[warp] = sum, shared.warpCounts[warp] = count;
    if (thread == 0) shared.found[0] = kBins;
    __syncthreads();
    for (int w = 0; w < warp; ++w) sum += shared.warpSums[w], count += shared.warpCounts[w];
    sum += sumBefore - highSum - lowSum;  // before this thread's bins
    count += countBefore - highCount - lowCount;
    const Whole start = kBySum ? sum : count, first = kBySum ? highSum : highCount, second = kBySum ? lowSum : lowCount;
    if (start <= limit && start + first + second > limit) {
      const bool inHigh = start + first > limit;
      shared.found[0] = static_cast<Whole>(inHigh ? high : low);
      shared.found[1] = inHigh ? sum : sum + highSum;
      shared.found[2] = inHigh ? count : count + highCount;
    }
    __syncthreads();
    const Whole bin = shared.found[0];
    if (bin == kBins) return false;
    sumBefore = shared.found[1];
    countBefore = shared.found[2];
    order |= static_cast<uint32_t>(bin) << shift;
    __syncthreads();
  }
  return true;
}

// The token with `order` that has `before` others of the same order at lower ids.
__device__ inline int tokenOfOrder(const Row& row, uint32_t order, unsigned before, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  unsigned seen = 0;
  for (int base = 0; base < row.vocabulary; base += kThreads) {
    const int token = base + thread;
    const bool mine = token < row.vocabulary && orderOf(row.logits[token]) == order;
    const unsigned votes = __ballot_sync(kAllLanes, mine);
    if (lane == 0) shared.tokens[warp] = __popc(votes);
    if (thread == 0) shared.found[0] = ~Whole{0};
    __syncthreads();
    unsigned at = seen + static_cast<unsigned>(__popc(votes & ((1u << lane) - 1u))), all = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) at += static_cast<unsigned>(shared.tokens[w]);
      all += static_cast<unsigned>(shared.tokens[w]);
    }
    if (mine && at == before) shared.found[0] = static_cast<Whole>(token);
    __syncthreads();
    const Whole found = shared.found[0];
    __syncthreads();
    if (found != ~Whole{0}) return static_cast<int>(found);
    seen += all;
  }
  return -1;
}

// The sum of weights at or above `floor`.
__device__ inline Whole sumAbove(const Row& row, uint32_t floor, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  Whole sum = 0;
  for (int i = thread; i < row.vocabulary; i += kThreads) {
    const uint32_t mine = orderOf(row.logits[i]);
    if (mine != 0u && mine >= floor) sum += row.weight(row.logits[i]);
  }
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
  if (thread % kWarp == 0) shared.warpSums[thread / kWarp] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += shared.warpSums[w];
  __syncthreads();
  return sum;
}

// The first token, by id, at which the sum of weights at or above `floor` goes past `limit`.
__device__ inline int drawById(const Row& row, uint32_t floor, Whole limit, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  const int each = (row.vocabulary + kThreads - 1) / kThreads, begin = thread * each, end = min(row.vocabulary, begin + each);
  const auto weightAt = [&](int i) {
    const uint32_t mine = orderOf(row.logits[i]);
    return mine != 0u && mine >= floor ? row.weight(row.logits[i]) : Whole{0};
  };
  Whole mine = 0;
  for (int i = begin; i < end; ++i) mine += weightAt(i);
  Whole through = mine;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const Whole other = __shfl_up_sync(kAllLanes, through, step);
    if (lane >= step) through += other;
  }
  if (lane == kWarp - 1) shared.warpSums[warp] = through;
  if (thread == 0) shared.found[0] = ~Whole{0};
  __syncthreads();
  for (int w = 0; w < warp; ++w) through += shared.warpSums[w];
  Whole sum = through - mine;
  if (sum <= limit && through > limit) {
    for (int i = begin; i < end; ++i) {
      sum += weightAt(i);
      if (sum > limit) {
        shared.found[0] = static_cast<Whole>(i);
        break;
      }
    }
  }
  __syncthreads();
  return static_cast<int>(shared.found[0]);
}

__device__ inline Whole share(Whole sum, double part) { return static_cast<Whole>(static_cast<double>(sum) * part); }

__global__ void __launch_bounds__(kThreads)
    sampleKernel(int* ids, Rows<const float> logits, int vocabulary, const SampleRow* rows) {
  __shared__ Shared shared;
  const SampleRow how = rows[blockIdx.x];
  Row row = {logits.row(blockIdx.x), vocabulary, 0.0f, 0.0};
  int token;
  rowLargest(row.logits, vocabulary, shared.values, shared.tokens, row.most, token);
  if (token < 0 || how.temperature < kGreedyBelow) {
    if (threadIdx.x == 0) ids[blockIdx.x] = token;
    return;
  }
  row.inverse = 1.0 / how.temperature;
  // min_p: the lowest logit whose weight is at least minP of the likeliest's.
  uint32_t floor = 1u;
  if (how.minP > 0.0) floor = orderOf(static_cast<float>(row.most + how.temperature * log(fmin(how.minP, 1.0))));
  if (how.topK <= 0 && how.topP >= 1.0) {
    const Whole limit = share(sumAbove(row, floor, shared), how.uniform);
    token = drawById(row, floor, limit, shared);
    if (threadIdx.x == 0) ids[blockIdx.x] = token;
    return;
  }
  // The kept tokens are the first of the sorted order, equals by id; their weights' sum is `kept`.
  Whole kept = 0, sumBefore = 0, countBefore = 0;
  uint32_t order = 0;
  Whole mostCount = ~Whole{0};
  if (how.topK > 0 && descend<false>(row, floor, static_cast<Whole>(how.topK) - 1, shared, order, sumBefore, countBefore)) {
    mostCount = static_cast<Whole>(how.topK);
    kept = sumBefore + (mostCount - countBefore) * row.weight(valueOf(order));
  } else {
    kept = sumAbove(row, floor, shared);
  }
  if (how.topP < 1.0) {
    // Counts within what top_k and min_p left. The first token that brings the sum to topP of it is the last kept.
    const Whole wanted = share(kept, fmax(how.topP, 0.0));
    if (wanted == 0) {
      kept = row.weight(row.most);
    } else if (descend<true>(row, floor, wanted - 1, shared, order, sumBefore, countBefore)) {
      const Whole one = row.weight(valueOf(order)), more = (wanted - sumBefore + one - 1) / one;
      const Whole reached = sumBefore + more * one;
      kept = reached < kept ? reached : kept;
    }
  }
  const Whole limit = share(kept, how.uniform);
  if (descend<true>(row, floor, limit, shared, order, sumBefore, countBefore)) {
    const Whole one = row.weight(valueOf(order));
    token = tokenOfOrder(row, order, static_cast<unsigned>((limit - sumBefore) / one), shared);
  }
  if (threadIdx.x == 0) ids[blockIdx.x] = token;
}

}  // namespace

void applyMasks(Stream stream, TensorView logits, const uint32_t* masks, int64_t words, const int* maskOfRow) {
  if (logits.rows == 0) return;
  launchKernel(maskKernel, dim3(blocksFor(logits.cols, 256), static_cast<unsigned>(logits.rows)), dim3(256), 0, stream,
               rowsOf<float>(logits), static_cast<int>(logits.cols), masks, words, maskOfRow);
}

void applyBiases(Stream stream, TensorView logits, const LogitBias* biases, int64_t count) {
  if (count == 0) return;
  launchKernel(biasKernel, dim3(blocksFor(count, 128)), dim3(128), 0, stream, rowsOf<float>(logits), biases, count);
}

void applyPenalties(Stream stream, TensorView logits, const SeenToken* seen, int64_t count, const Penalties* ofRow) {
  if (count == 0) return;
  launchKernel(penaltyKernel, dim3(blocksFor(count, 128)), dim3(128), 0, stream, rowsOf<float>(logits), seen, count, ofRow);
}

void argmaxRows(Stream stream, int* ids, TensorView logits) {
  if (logits.rows == 0) return;
  launchKernel(argmaxKernel, dim3(static_cast<unsigned>(logits.rows)), dim3(kThreads), 0, stream, ids,
               rowsOf<const float>(logits), static_cast<int>(logits.cols));
}

void sampleRows(Stream stream, int* ids, TensorView logits, const SampleRow* rows) {
  if (logits.rows == 0) return;
  launchKernel(sampleKernel, dim3(static_cast<unsigned>(logits.rows)), dim3(kThreads), 0, stream, ids,
               rowsOf<const float>(logits), static_cast<int>(logits.cols), rows);
}

}  // namespace headroom::engine::cuda
