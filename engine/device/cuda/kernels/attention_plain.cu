// SPDX-License-Identifier: Apache-2.0
// Attention without tensor cores, for any types and head sizes: a block a token and query head, its four warps take turns with 32
// tokens of the context each, a lane a token. And the joining of parts. Roofline: K and V are read once for each query head (not
// once for a group), so at best 1 / groupSize of the tensor-core kernel's rate. Test:
// tests/engine/cuda_kernels_attention_test.cpp.
#include "engine/device/cuda/kernels/attention_common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr int kWarps = 4;

template <class T, class C>
__global__ void plainAttentionKernel(AttentionArguments<T, C> arguments) {
  HEADROOM_DYNAMIC_SHARED(float, shared);  // the query; then for each warp its values; then tops and sums
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int token = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y), split = static_cast<int>(blockIdx.z);
  const int headDim = arguments.headDim, vHeadDim = arguments.vHeadDim;
  float* query = shared;
  float* values = query + headDim + warp * vHeadDim;
  float* tops = query + headDim + kWarps * vHeadDim;
  float* sums = tops + kWarps;

  int sequence = 0;
  while (token >= arguments.sequenceStart[sequence + 1]) ++sequence;
  const int position = arguments.contextLength[sequence] - arguments.sequenceStart[sequence + 1] + token;
  const int kvHead = (arguments.qHeadBegin + head) / arguments.groupSize - arguments.kvHeadBegin;
  const int* blocks = arguments.blockTable + sequence * arguments.blockTableStride;
  const int seen = arguments.firstSeen(position), tiles = (position + 1 - seen + kWarp - 1) / kWarp;
  const int tilesPerSplit = (tiles + arguments.splits - 1) / arguments.splits;
  const int tileEnd = min((split + 1) * tilesPerSplit, tiles);

  const T* q = arguments.q.row(token) + head * headDim;
  for (int i = static_cast<int>(threadIdx.x); i < headDim; i += kWarps * kWarp) query[i] = toFloat(q[i]) * arguments.scale;
  for (int i = lane; i < vHeadDim; i += kWarp) values[i] = 0.0f;
  __syncthreads();

  float top = -INFINITY, sum = 0.0f;
  for (int tile = split * tilesPerSplit + warp; tile < tileEnd; tile += kWarps) {
    const int keyToken = seen + tile * kWarp + lane;
    float score = -INFINITY;
    if (keyToken <= position) {
      const C* key = arguments.key(blocks[keyToken / arguments.blockTokens], keyToken % arguments.blockTokens, kvHead);
      score = 0.0f;
      for (int i = 0; i < headDim; ++i) score += query[i] * arguments.number(key[i]);
      if (arguments.softcap > 0.0f) score = arguments.softcap * tanhf(score / arguments.softcap);
    }
    const float newTop = fmaxf(top, warpMax(score)),
                factor = __expf(top - newTop);  // a tile has at least one token: newTop is finite
    const float weight = __expf(score - newTop);
    sum = sum * factor + warpSum(weight);
    top = newTop;
    const int count = min(kWarp, position + 1 - (seen + tile * kWarp));
    for (int begin = 0; begin < vHeadDim; begin += kWarp) {
      const int i = begin + lane;
      float value = i < vHeadDim ? values[i] * factor : 0.0f;
      for (int j = 0; j < count; ++j) {
        const float share = __shfl_sync(kAllLanes, weight, j);
        const int from = seen + tile * kWarp + j;
        if (i < vHeadDim)
          value += share * arguments.number(
                               arguments.value(blocks[from / arguments.blockTokens], from % arguments.blockTokens, kvHead)[i]);
      }
      if (i < vHeadDim) values[i] = value;
    }
  }
  if (lane == 0) {
    tops[warp] = top;
    sums[warp] = sum;
  }
  __syncthreads();

  float highest = -INFINITY, total = 0.0f, factors[kWarps];
  for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, tops[w]);
  const bool whole = arguments.splits == 1;
  if (whole && arguments.sinks) highest = fmaxf(highest, arguments.sinks[head]);
  for (int w = 0; w < kWarps; ++w) {
    factors[w] = sums[w] > 0.0f ? __expf(tops[w] - highest) : 0.0f;
    total += sums[w] * factors[w];
  }
  if (whole && arguments.sinks) total += __expf(arguments.sinks[head] - highest);
  const float inverse = whole ? 1.0f / total : 1.0f;
  const int64_t partial = arguments.partial(token, head, split);
  for (int i = static_cast<int>(threadIdx.x); i < vHeadDim; i += kWarps * kWarp) {
    float value = 0.0f;
    for (int w = 0; w < kWarps; ++w) value += query[headDim + w * vHeadDim + i] * factors[w];
    if (whole)
      arguments.out.row(token)[head * vHeadDim + i] = fromFloat<T>(value * inverse);
    else
      arguments.partialValues[partial * vHeadDim + i] = value;
  }
  if (!whole && threadIdx.x == 0) arguments.partialSums[partial] = make_float2(highest, total);
}

// A warp a token and head.
template <class T>
__global__ void mergeKernel(AttentionArguments<T, T> arguments, int64_t items) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (item >= items) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, splits = arguments.splits;
  const int64_t token = item / arguments.qHeads;
  const int head = static_cast<int>(item % arguments.qHeads);
  const int64_t partial = arguments.partial(token, head, 0);
  // splits <= 32: a lane a part.
  const float2 mine = lane < splits ? arguments.partialSums[partial + lane] : make_float2(-INFINITY, 0.0f);
  float highest = warpMax(mine.x);
  if (arguments.sinks) highest = fmaxf(highest, arguments.sinks[head]);
  const float factor = mine.y > 0.0f ? __expf(mine.x - highest) : 0.0f;
  float total = warpSum(mine.y * factor);
  if (arguments.sinks) total += __expf(arguments.sinks[head] - highest);
  T* out = arguments.out.row(token) + head * arguments.vHeadDim;
  for (int begin = 0; begin < arguments.vHeadDim; begin += kWarp) {
    const int i = begin + lane;
    float value = 0.0f;
    for (int split = 0; split < splits; ++split) {
      const float share = __shfl_sync(kAllLanes, factor, split);
      if (share > 0.0f && i < arguments.vHeadDim)
        value += share * arguments.partialValues[(partial + split) * arguments.vHeadDim + i];
    }
    if (i < arguments.vHeadDim) out[i] = fromFloat<T>(value / total);
  }
}

template <class T, class C>
void launchPlain(Stream stream, const AttentionCall& call) {
  const auto shared = sizeof(float) * static_cast<size_t>(call.cache.headDim + kWarps * (call.cache.vHeadDim + 2));
  launchKernel(plainAttentionKernel<T, C>,
               dim3(static_cast<unsigned>(call.q.rows), static_cast<unsigned>(call.qHeads), static_cast<unsigned>(call.splits)),
               dim3(kWarps * kWarp), shared, stream, attentionArguments<T, C>(call));
}

}  // namespace

void plainAttention(Stream stream, const AttentionCall& call) {
  withActivationType(call.q.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (call.cache.dtype == DType::F8E4M3 || call.cache.dtype == DType::F8E5M2) {
      launchPlain<T, Fp8E4M3>(stream, call);
      return;
    }
    withActivationType(call.cache.dtype, [&](auto cacheTag) { launchPlain<T, typename decltype(cacheTag)::type>(stream, call); });
  });
}

void mergeAttention(Stream stream, const AttentionCall& call) {
  withActivationType(call.q.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t items = call.q.rows * call.qHeads;
    launchKernel(mergeKernel<T>, dim3(blocksFor(items, kWarps)), dim3(kWarps * kWarp), 0, stream, attentionArguments<T, T>(call),
                 items);
  });
}

}  // namespace headroom::engine::cuda
