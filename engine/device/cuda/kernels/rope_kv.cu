// SPDX-License-Identifier: Apache-2.0
// Rotary positions and the KV store: a warp a head. Roofline: bytes; fused, a decode step reads q, k, v once and writes q and the
// cache once, against two readings and writings more for the separate kernels (at one token: two launches saved). Test:
// tests/engine/cuda_kernels_rope_kv_test.cpp.
#include "engine/device/cuda/kernels/rope_kv.h"

#include "engine/device/cuda/kernels/common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr int kHeadsPerBlock = 4;

__global__ void ropeAnglesKernel(Rows<float> cosSin, const int* positions, const double* inverseFrequencies, double factor,
                                 int half, int64_t items) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= items) return;
  const int64_t token = item / half;
  const int i = static_cast<int>(item % half);
  double sine, cosine;
  sincos(positions[token] * inverseFrequencies[i], &sine, &cosine);
  float* to = cosSin.row(token);
  to[i] = static_cast<float>(cosine * factor);
  to[half + i] = static_cast<float>(sine * factor);
}

// A thread a pair.
template <class T>
__global__ void applyRopeKernel(Rows<T> x, int heads, int headDim, Rows<const float> cosSin, int half, bool neox, int64_t items) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= items) return;
  const int i = static_cast<int>(item % half);
  const int64_t token = item / half / heads;
  T* head = x.row(token) + item / half % heads * headDim;
  const float cosine = cosSin.row(token)[i], sine = cosSin.row(token)[half + i];
  T* first = head + (neox ? i : 2 * i);
  T* second = head + (neox ? i + half : 2 * i + 1);
  const float a = toFloat(*first), b = toFloat(*second);
  *first = fromFloat<T>(a * cosine - b * sine);
  *second = fromFloat<T>(b * cosine + a * sine);
}

// Where a head of a token lies in the cache.
struct CacheLayout {
  int64_t blockElements;
  int blockTokens, kvHeads, headDim, vHeadDim;
  __device__ int64_t key(int slot, int head) const {
    return slot / blockTokens * blockElements + (static_cast<int64_t>(head) * blockTokens + slot % blockTokens) * headDim;
  }
  __device__ int64_t value(int slot, int head) const {
    return slot / blockTokens * blockElements + static_cast<int64_t>(blockTokens) * kvHeads * headDim +
           (static_cast<int64_t>(head) * blockTokens + slot % blockTokens) * vHeadDim;
  }
};

template <class T>
struct RopeStoreArguments {
  Rows<T> q;
  Rows<const T> k, v;
  const float *qNorm, *kNorm;
  float epsilon, offset;
  Rows<const float> cosSin;
  int half;  // 0: no rotation
  bool neox;
  CacheLayout layout;
  const int* slots;
  int qHeads;
};

// Element `i` of a head after rotation.
__device__ inline float rotated(const float* head, int i, const float* cosSin, int half, bool neox) {
  if (i >= 2 * half) return head[i];
  const int pair = neox ? i % half : i / 2;
  const bool second = neox ? i >= half : i % 2 != 0;
  const float a = head[neox ? pair : 2 * pair], b = head[neox ? pair + half : 2 * pair + 1];
  return second ? b * cosSin[pair] + a * cosSin[half + pair] : a * cosSin[pair] - b * cosSin[half + pair];
}

// Heads of a token: those of q, then K's, then V's.
template <class T, class C>
__global__ void ropeStoreKernel(RopeStoreArguments<T> arguments, C* cache, int64_t items) {
  HEADROOM_DYNAMIC_SHARED(float, heads);
  const CacheLayout& layout = arguments.layout;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kHeadsPerBlock + warp;
  if (item >= items) return;
  const int perToken = arguments.qHeads + (layout.vHeadDim > 0 ? 2 : 1) * layout.kvHeads;
  const int64_t token = item / perToken;
  int head = static_cast<int>(item % perToken);
  if (head >= arguments.qHeads && arguments.slots[token] < 0) return;  // its warp alone: nothing of the token is stored
  if (head >= arguments.qHeads + layout.kvHeads) {
    head -= arguments.qHeads + layout.kvHeads;
    const T* from = arguments.v.row(token) + head * layout.vHeadDim;
    C* to = cache + layout.value(arguments.slots[token], head);
    for (int i = lane; i < layout.vHeadDim; i += kWarp) to[i] = fromFloat<C>(toFloat(from[i]));
    return;
  }
  const bool isKey = head >= arguments.qHeads;
  if (isKey) head -= arguments.qHeads;
  const T* from = isKey ? arguments.k.row(token) + head * layout.headDim : arguments.q.row(token) + head * layout.headDim;
  const float* norm = isKey ? arguments.kNorm : arguments.qNorm;
  float* values = heads + warp * layout.headDim;
  float squares = 0.0f;
  for (int i = lane; i < layout.headDim; i += kWarp) {
    values[i] = toFloat(from[i]);
    squares += values[i] * values[i];
  }
  if (norm) {  // rounded as the separate norm would
    const float factor = 1.0f / sqrtf(warpSum(squares) / static_cast<float>(layout.headDim) + arguments.epsilon);
    for (int i = lane; i < layout.headDim; i += kWarp)
      values[i] = toFloat(fromFloat<T>(values[i] * factor * (norm[i] + arguments.offset)));
  }
  __syncwarp(kAllLanes);
  const float* cosSin = arguments.half > 0 ? arguments.cosSin.row(token) : nullptr;
  C* toCache = isKey ? cache + layout.key(arguments.slots[token], head) : nullptr;
  T* toQuery = arguments.q.row(token) + head * layout.headDim;
  for (int i = lane; i < layout.headDim; i += kWarp) {
    const T value = fromFloat<T>(rotated(values, i, cosSin, arguments.half, arguments.neox));
    if (isKey)
      toCache[i] = fromFloat<C>(toFloat(value));
    else
      toQuery[i] = value;
  }
}

template <class Body>
void withCacheType(DType dtype, const Body& body) {
  if (dtype == DType::F8E4M3) return body(TypeTag<Fp8E4M3>());
  if (dtype == DType::F8E5M2) return body(TypeTag<Fp8E5M2>());
  withActivationType(dtype, body);
}

}  // namespace

void ropeAngles(Stream stream, TensorView cosSin, TensorView positions, const double* inverseFrequencies, double factor) {
  const int64_t half = cosSin.cols / 2, items = cosSin.rows * half;
  if (items == 0) return;
  launchKernel(ropeAnglesKernel, dim3(blocksFor(items, 128)), dim3(128), 0, stream, rowsOf<float>(cosSin),
               static_cast<const int*>(positions.data), inverseFrequencies, factor, static_cast<int>(half), items);
}

void applyRope(Stream stream, TensorView x, int64_t headDim, TensorView cosSin, KernelRope style) {
  const int64_t half = cosSin.cols / 2, heads = x.cols / headDim, items = x.rows * heads * half;
  if (items == 0) return;
  withActivationType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    launchKernel(applyRopeKernel<T>, dim3(blocksFor(items, 128)), dim3(128), 0, stream, rowsOf<T>(x), static_cast<int>(heads),
                 static_cast<int>(headDim), rowsOf<const float>(cosSin), static_cast<int>(half), style == KernelRope::Neox,
                 items);
  });
}

void ropeAndStoreKv(Stream stream, const RopeStore& task) {
  const KvCache& cache = task.cache;
  const int64_t tokens = task.k.rows, qHeads = task.q.data ? task.q.cols / cache.headDim : 0,
                items = tokens * (qHeads + (cache.vHeadDim > 0 ? 2 : 1) * cache.kvHeads);
  if (items == 0) return;
  const CacheLayout layout = {cache.blockTokens * cache.kvHeads * (cache.headDim + cache.vHeadDim),
                              static_cast<int>(cache.blockTokens), static_cast<int>(cache.kvHeads),
                              static_cast<int>(cache.headDim), static_cast<int>(cache.vHeadDim)};
  withActivationType(task.k.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    RopeStoreArguments<T> arguments = {rowsOf<T>(task.q),
                                       rowsOf<const T>(task.k),
                                       rowsOf<const T>(task.v),
                                       task.qNorm,
                                       task.kNorm,
                                       static_cast<float>(task.epsilon),
                                       static_cast<float>(task.offset),
                                       rowsOf<const float>(task.cosSin),
                                       task.cosSin.data ? static_cast<int>(task.cosSin.cols / 2) : 0,
                                       task.style == KernelRope::Neox,
                                       layout,
                                       static_cast<const int*>(task.slots.data),
                                       static_cast<int>(qHeads)};
    withCacheType(cache.dtype, [&](auto cacheTag) {
      using C = typename decltype(cacheTag)::type;
      launchKernel(ropeStoreKernel<T, C>, dim3(blocksFor(items, kHeadsPerBlock)), dim3(kWarp * kHeadsPerBlock),
                   sizeof(float) * kHeadsPerBlock * static_cast<size_t>(cache.headDim), stream, arguments,
                   static_cast<C*>(cache.data), items);
    });
  });
}

void storeKv(Stream stream, const KvCache& cache, TensorView k, TensorView v, TensorView slots) {
  RopeStore task;
  task.k = k;
  task.v = v;
  task.cache = cache;
  task.slots = slots;
  ropeAndStoreKv(stream, task);
}

}  // namespace headroom::engine::cuda
