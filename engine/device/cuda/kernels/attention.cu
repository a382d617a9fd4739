// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores: K and V of 32 or 64 tokens at a time in shared memory, softmax kept current as they pass (online
// softmax, https://arxiv.org/abs/1805.02867; the tiling of https://arxiv.org/abs/2205.14135). A row is a (token, query head)
// pair; all query heads of a KV head are rows of one block, so K and V are read once for the group.
//   prompts: warps own 16 rows each and share every key.
//   single tokens: all warps hold the same 16 rows, each takes its share of every tile's keys; contexts are cut into parts (grid
//   z), joined by mergeAttention.
// Roofline: decode reads each K and V element once: the copy bandwidth; the copy of the next tile runs while this one is
// computed. Prefill: 4 * rows * keys * headDim operations against the tensor cores' peak; 60 to 70 % of it is expected with
// copies by cp.async and no TMA (an estimate). Test: tests/engine/cuda_kernels_attention_test.cpp.
#include "engine/device/cuda/kernels/attention_common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr float kLog2e = 1.44269504f;

// How a kernel is cut. kValueDims: the V columns a warp can hold; kColumnWarps of them stand side by side.
template <int kValueDimsOf, int kRowWarpsOf, int kKeyWarpsOf, int kColumnWarpsOf, int kKeysOf>
struct Shape {
  static constexpr int kValueDims = kValueDimsOf, kRowWarps = kRowWarpsOf, kKeyWarps = kKeyWarpsOf, kColumnWarps = kColumnWarpsOf,
                       kKeys = kKeysOf;
  static constexpr int kRows = 16 * kRowWarps, kThreads = kWarp * kRowWarps * kKeyWarps * kColumnWarps,
                       kKeysPerWarp = kKeys / kKeyWarps, kScoreTiles = kKeysPerWarp / 8, kValueTiles = kValueDims / 8;
  static_assert(kKeysPerWarp % 16 == 0 && kValueDims % 16 == 0);
};

constexpr int kPadding = 8;  // elements after each row in shared memory, so that eight rows lie in different banks

template <class S>
size_t sharedBytesFor(const AttentionCall& call) {
  const int64_t headDim = call.cache.headDim + kPadding, vHeadDim = call.valuesInKeys ? 0 : call.cache.vHeadDim + kPadding;
  const int64_t tiles = 2 * (S::kRows * headDim + S::kKeys * (headDim + vHeadDim));
  const int64_t merge =
      S::kKeyWarps > 1 ? 4 * (S::kKeyWarps / 2 * 16 * (S::kValueDims * S::kColumnWarps) + 2 * S::kKeyWarps * 16) : 0;
  return static_cast<size_t>(tiles > merge ? tiles : merge);
}

// Rows of a tile, found from the lengths on the device.
struct TilePlace {
  int sequence, tile;
};

// Sequence and tile number of the block's tile; false past the last. Each warp finds it alone, 32 sequences at a time.
template <int kRows>
__device__ bool findTile(const int* sequenceStart, int sequences, int heads, int tile, TilePlace& place) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int base = 0; base < sequences; base += kWarp) {
    const int sequence = base + lane;
    const int tiles =
        sequence < sequences ? ((sequenceStart[sequence + 1] - sequenceStart[sequence]) * heads + kRows - 1) / kRows : 0;
    int through = tiles;
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
      const int other = __shfl_up_sync(kAllLanes, through, step);
      if (lane >= step) through += other;
    }
    const unsigned past = __ballot_sync(kAllLanes, through > tile);
    if (past != 0) {
      const int found = __ffs(static_cast<int>(past)) - 1;
      place.sequence = base + found;
      place.tile = tile - __shfl_sync(kAllLanes, through - tiles, found);
      return true;
    }
    tile -= __shfl_sync(kAllLanes, through, kWarp - 1);
  }
  return false;
}

// Eight elements of a cache to shared memory as T; zeros where !valid.
template <class T, class C>
__device__ void copyEight(const AttentionArguments<T, C>& arguments, T* to, const C* from, bool valid) {
  if constexpr (sizeof(C) == sizeof(T)) {
    copyAsync16(to, from, valid);
  } else {
    Vector<C, 8> packed = {};
    if (valid) packed = *reinterpret_cast<const Vector<C, 8>*>(from);
    uint4 converted;
    converted.x = packPair<T>(arguments.number(packed.values[0]), arguments.number(packed.values[1]));
    converted.y = packPair<T>(arguments.number(packed.values[2]), arguments.number(packed.values[3]));
    converted.z = packPair<T>(arguments.number(packed.values[4]), arguments.number(packed.values[5]));
    converted.w = packPair<T>(arguments.number(packed.values[6]), arguments.number(packed.values[7]));
    *reinterpret_cast<uint4*>(to) = converted;
  }
}

// Keys [begin, begin + kKeys) of a sequence, or their values, to shared memory; zeros outside [seen, end). Eight lanes a row.
template <class S, bool kValues, class T, class C>
__device__ void loadTile(const AttentionArguments<T, C>& arguments, const int* blocks, int kvHead, int begin, int seen, int end,
                         T* to) {
  const int dims = kValues ? arguments.vHeadDim : arguments.headDim;
  const int column = static_cast<int>(threadIdx.x) % 8 * 8;
#pragma unroll 1
  for (int row = static_cast<int>(threadIdx.x) / 8; row < S::kKeys; row += S::kThreads / 8) {
    const int token = begin + row;
    const bool valid = token >= seen && token < end;
    const C* from = arguments.cache;
    if (valid) {
      const int block = blocks[token / arguments.blockTokens], offset = token % arguments.blockTokens;
      from = kValues ? arguments.value(block, offset, kvHead) : arguments.key(block, offset, kvHead);
    }
    T* row16 = to + row * (dims + kPadding);
    for (int i = column; i < dims; i += 64) copyEight(arguments, row16 + i, valid ? from + i : from, valid);
  }
}

template <class S, class T, class C>
__global__ void __launch_bounds__(S::kThreads, 1) attentionKernel(AttentionArguments<T, C> arguments) {
  HEADROOM_DYNAMIC_SHARED(T, shared);
  const int kvHead = static_cast<int>(blockIdx.y), split = static_cast<int>(blockIdx.z);
  const int headDim = arguments.headDim, vHeadDim = arguments.vHeadDim, keyStride = headDim + kPadding,
            valueStride = arguments.valuesInKeys ? keyStride : vHeadDim + kPadding;
  const int firstHead = (arguments.kvHeadBegin + kvHead) * arguments.groupSize - arguments.qHeadBegin;
  const int headBegin = max(0, firstHead), headEnd = min(arguments.qHeads, firstHead + arguments.groupSize);
  const int heads = headEnd - headBegin;
  if (heads <= 0) return;
  TilePlace place;
  if (!findTile<S::kRows>(arguments.sequenceStart, arguments.sequences, heads, static_cast<int>(blockIdx.x), place)) return;

  const int tokenBegin = arguments.sequenceStart[place.sequence], tokenEnd = arguments.sequenceStart[place.sequence + 1];
  const int firstRow = place.tile * S::kRows, rows = min(S::kRows, (tokenEnd - tokenBegin) * heads - firstRow);
  const int before = arguments.contextLength[place.sequence] - (tokenEnd - tokenBegin);  // tokens of earlier steps
  const int firstPosition = before + firstRow / heads, lastPosition = before + (firstRow + rows - 1) / heads;
  const int* blocks = arguments.blockTable + place.sequence * arguments.blockTableStride;

  // The part of the context that this block reads: whole tiles from the first that any row sees.
  const int seen = arguments.firstSeen(firstPosition), firstTile = seen / S::kKeys,
            tiles = lastPosition / S::kKeys + 1 - firstTile;
  const int tilesPerSplit = (tiles + arguments.splits - 1) / arguments.splits;
  const int tileBegin = firstTile + split * tilesPerSplit, tileEnd = firstTile + min(tiles, (split + 1) * tilesPerSplit);

  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int columnWarp = warp % S::kColumnWarps, rowWarp = warp / S::kColumnWarps % S::kRowWarps,
            keyWarp = warp / (S::kColumnWarps * S::kRowWarps);
  const int columnBegin = columnWarp * S::kValueDims, columns = min(S::kValueDims, vHeadDim - columnBegin);
  T* queries = shared;
  T* keys = queries + S::kRows * keyStride;
  T* values = arguments.valuesInKeys ? keys + headDim - vHeadDim : keys + S::kKeys * keyStride;

  // Queries: eight lanes a row.
  for (int row = static_cast<int>(threadIdx.x) / 8; row < S::kRows; row += S::kThreads / 8) {
    const int token = tokenBegin + (firstRow + min(row, rows - 1)) / heads,
              head = headBegin + (firstRow + min(row, rows - 1)) % heads;
    const T* from = arguments.q.row(token) + head * headDim;
    for (int i = static_cast<int>(threadIdx.x) % 8 * 8; i < headDim; i += 64)
      copyAsync16(queries + row * keyStride + i, from + i, row < rows);
  }
  const int keyEnd = lastPosition + 1;
  if (tileBegin < tileEnd) loadTile<S, false>(arguments, blocks, kvHead, tileBegin * S::kKeys, seen, keyEnd, keys);
  commitCopies();
  if (tileBegin < tileEnd && !arguments.valuesInKeys)
    loadTile<S, true>(arguments, blocks, kvHead, tileBegin * S::kKeys, seen, keyEnd, values);
  commitCopies();

  // Positions of this lane's two rows: g and g + 8 of the warp's 16.
  int position[2], sees[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = min(rowWarp * 16 + lane / 4 + 8 * half, rows - 1);
    position[half] = before + (firstRow + row) / heads;
    sees[half] = arguments.firstSeen(position[half]);
  }
  const int lastSeen = arguments.firstSeen(lastPosition);
  const bool capped = arguments.softcap > 0.0f;
  const float toLog2 = capped ? kLog2e * arguments.softcap : kLog2e * arguments.scale,
              toCap = capped ? arguments.scale / arguments.softcap : 0.0f;

  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f}, result[S::kValueTiles][4];
#pragma unroll
  for (int n = 0; n < S::kValueTiles; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) result[n][i] = 0.0f;

  // Rows of 8x8 tiles that this lane points at, for loadTiles4.
  const int tileIndex = lane / 8, tileRow = lane % 8;
  const T* queryRow = queries + (rowWarp * 16 + tileIndex % 2 * 8 + tileRow) * keyStride + tileIndex / 2 * 8;
  const T* keyRow = keys + (keyWarp * S::kKeysPerWarp + tileIndex / 2 * 8 + tileRow) * keyStride + tileIndex % 2 * 8;
  const T* valueRow =
      values + (keyWarp * S::kKeysPerWarp + tileIndex % 2 * 8 + tileRow) * valueStride + columnBegin + tileIndex / 2 * 8;

#pragma unroll 1
  for (int tile = tileBegin; tile < tileEnd; ++tile) {
    waitCopies<1>();
    __syncthreads();  // the keys are here
    float scores[S::kScoreTiles][4];
#pragma unroll
    for (int n = 0; n < S::kScoreTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[n][i] = 0.0f;
#pragma unroll 2
    for (int d = 0; d < headDim; d += 16) {
      uint32_t a[4];
      loadTiles4(a, queryRow + d);
#pragma unroll
      for (int n = 0; n < S::kScoreTiles; n += 2) {
        uint32_t b[4];
        loadTiles4(b, keyRow + n * 8 * keyStride + d);
        mmaTile<T>(scores[n], a, {b[0], b[1]});
        mmaTile<T>(scores[n + 1], a, {b[2], b[3]});
      }
    }
    if (!arguments.valuesInKeys) {
      __syncthreads();  // all have read the keys
      if (tile + 1 < tileEnd) loadTile<S, false>(arguments, blocks, kvHead, (tile + 1) * S::kKeys, seen, keyEnd, keys);
      commitCopies();
    }

    // Scores to base-2 exponents; what a row does not see becomes -infinity.
    const int firstKey = tile * S::kKeys;
    const bool allSeen = firstKey >= lastSeen && firstKey + S::kKeys <= firstPosition + 1;
    float highest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int n = 0; n < S::kScoreTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float score = scores[n][i];
        score = capped ? toLog2 * tanhf(score * toCap) : score * toLog2;
        const int key = firstKey + keyWarp * S::kKeysPerWarp + n * 8 + lane % 4 * 2 + i % 2;
        if (!allSeen && (key < sees[i / 2] || key > position[i / 2])) score = -INFINITY;
        scores[n][i] = score;
        highest[i / 2] = fmaxf(highest[i / 2], score);
      }
    }
    float factor[2], base[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      highest[half] = fmaxf(highest[half], __shfl_xor_sync(kAllLanes, highest[half], 1));
      highest[half] = fmaxf(highest[half], __shfl_xor_sync(kAllLanes, highest[half], 2));
      const float newTop = fmaxf(top[half], highest[half]);
      base[half] = newTop == -INFINITY ? 0.0f : newTop;  // a row may see nothing of this tile
      factor[half] = exp2f(top[half] - base[half]);
      top[half] = newTop;
      sum[half] *= factor[half];
    }
#pragma unroll
    for (int n = 0; n < S::kScoreTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[n][i] = exp2f(scores[n][i] - base[i / 2]);
        sum[i / 2] += scores[n][i];
      }
    }
#pragma unroll
    for (int n = 0; n < S::kValueTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) result[n][i] *= factor[i / 2];

    if (!arguments.valuesInKeys) {
      waitCopies<1>();
      __syncthreads();  // the values are here
    }
#pragma unroll
    for (int k = 0; k < S::kScoreTiles; k += 2) {
      const uint32_t a[4] = {packPair<T>(scores[k][0], scores[k][1]), packPair<T>(scores[k][2], scores[k][3]),
                             packPair<T>(scores[k + 1][0], scores[k + 1][1]), packPair<T>(scores[k + 1][2], scores[k + 1][3])};
#pragma unroll
      for (int n = 0; n < S::kValueTiles; n += 2) {
        if (n * 8 < columns) {
          uint32_t b[4];
          loadTiles4Transposed(b, valueRow + k * 8 * valueStride + n * 8);
          mmaTile<T>(result[n], a, {b[0], b[1]});
          mmaTile<T>(result[n + 1], a, {b[2], b[3]});
        }
      }
    }
    __syncthreads();  // all have read the values
    if (arguments.valuesInKeys) {
      if (tile + 1 < tileEnd) loadTile<S, false>(arguments, blocks, kvHead, (tile + 1) * S::kKeys, seen, keyEnd, keys);
      commitCopies();
      commitCopies();  // an empty group, so that waiting for all but one waits for the keys
    } else {
      if (tile + 1 < tileEnd) loadTile<S, true>(arguments, blocks, kvHead, (tile + 1) * S::kKeys, seen, keyEnd, values);
      commitCopies();
    }
  }
  waitCopies<0>();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 1);
    sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 2);
  }

  // Warps that took different keys of the same rows: the upper half hands its results to the lower, until one is left.
  if constexpr (S::kKeyWarps > 1) {
    __syncthreads();
    float* sums = reinterpret_cast<float*>(shared);  // (kKeyWarps, 16) pairs of highest score and sum, then results
    float* results = sums + 2 * 16 * S::kKeyWarps;
#pragma unroll
    for (int giving = S::kKeyWarps / 2; giving > 0; giving /= 2) {
      if (keyWarp >= giving && keyWarp < 2 * giving) {
        float* to = results + (keyWarp - giving) * 16 * S::kValueDims + lane;
        for (int n = 0; n < S::kValueTiles; ++n)
          for (int i = 0; i < 4; ++i) to[(n * 4 + i) * kWarp] = result[n][i];
        for (int half = 0; half < 2; ++half) {
          if (lane % 4 == 0) {
            sums[(keyWarp * 16 + lane / 4 + 8 * half) * 2] = top[half];
            sums[(keyWarp * 16 + lane / 4 + 8 * half) * 2 + 1] = sum[half];
          }
        }
      }
      __syncthreads();
      if (keyWarp < giving) {
        float mine[2], theirs[2];
        for (int half = 0; half < 2; ++half) {
          const float* other = sums + ((keyWarp + giving) * 16 + lane / 4 + 8 * half) * 2;
          const float newTop = fmaxf(top[half], other[0]), from = newTop == -INFINITY ? 0.0f : newTop;
          mine[half] = exp2f(top[half] - from);
          theirs[half] = exp2f(other[0] - from);
          sum[half] = sum[half] * mine[half] + other[1] * theirs[half];
          top[half] = newTop;
        }
        const float* from = results + keyWarp * 16 * S::kValueDims + lane;
        for (int n = 0; n < S::kValueTiles; ++n)
          for (int i = 0; i < 4; ++i) result[n][i] = result[n][i] * mine[i / 2] + from[(n * 4 + i) * kWarp] * theirs[i / 2];
      }
      __syncthreads();
    }
    if (keyWarp > 0) return;
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = rowWarp * 16 + lane / 4 + 8 * half;
    if (row >= rows) continue;
    const int token = tokenBegin + (firstRow + row) / heads, head = headBegin + (firstRow + row) % heads;
    if (arguments.splits > 1) {
      const int64_t partial = arguments.partial(token, head, split);
      if (lane % 4 == 0 && columnWarp == 0) arguments.partialSums[partial] = make_float2(top[half] / kLog2e, sum[half]);
      if (sum[half] > 0.0f) {
        float* to = arguments.partialValues + partial * vHeadDim + columnBegin + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < S::kValueTiles; ++n)
          if (n * 8 < columns) *reinterpret_cast<float2*>(to + n * 8) = make_float2(result[n][2 * half], result[n][2 * half + 1]);
      }
      continue;
    }
    float factor = 1.0f, total = sum[half];
    if (arguments.sinks) {  // a logit that takes its share and gives nothing
      const float sink = arguments.sinks[head] * kLog2e, highest = fmaxf(top[half], sink);
      factor = exp2f(top[half] - highest);
      total = total * factor + exp2f(sink - highest);
    }
    factor /= total;
    T* to = arguments.out.row(token) + head * vHeadDim + columnBegin + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < S::kValueTiles; ++n)
      if (n * 8 < columns)
        *reinterpret_cast<uint32_t*>(to + n * 8) = packPair<T>(result[n][2 * half] * factor, result[n][2 * half + 1] * factor);
  }
}

// The most tiles that the sequences can come to, whatever their lengths.
int64_t tilesOf(const AttentionCall& call, int64_t heads, int rows) {
  const int64_t most = call.q.rows * heads / rows + call.sequences;
  return call.q.rows == call.sequences && heads <= rows ? call.sequences : most;
}

template <class S, class T, class C>
void launchShape(Stream stream, const AttentionCall& call, int64_t heads) {
  const dim3 grid(static_cast<unsigned>(tilesOf(call, heads, S::kRows)), static_cast<unsigned>(call.cache.kvHeads),
                  static_cast<unsigned>(call.splits));
  launchKernel(attentionKernel<S, T, C>, grid, dim3(S::kThreads), sharedBytesFor<S>(call), stream,
               attentionArguments<T, C>(call));
}

// Values a row, warps for rows, for keys, for columns, keys of a tile.
using Single64 = Shape<64, 1, 4, 1, 64>;
using Single128 = Shape<128, 1, 4, 1, 64>;
using Single256 = Shape<256, 1, 2, 1, 32>;
using Many64 = Shape<64, 4, 1, 1, 64>;
using Many128 = Shape<128, 4, 1, 1, 64>;
using Many256 = Shape<256, 4, 1, 1, 32>;
using Few256 = Shape<256, 2, 1, 1, 32>;     // where shared memory is 64 KiB
using Latent512 = Shape<256, 2, 1, 2, 32>;  // DeepSeek's latent cache: 576 elements of K, the last 512 of them V

bool isSingle(const AttentionCall& call, int64_t heads) { return call.q.rows == call.sequences && heads <= 16; }
int64_t headsOf(const AttentionCall& call) { return call.groupSize < call.qHeads ? call.groupSize : call.qHeads; }

template <class T, class C>
void launchTensorCores(Stream stream, const AttentionCall& call, int64_t maxSharedBytes) {
  const int64_t heads = headsOf(call), dims = call.cache.vHeadDim;
  const bool single = isSingle(call, heads);
  if (dims > 256) return launchShape<Latent512, T, C>(stream, call, heads);
  if (dims > 128) {
    if (single) return launchShape<Single256, T, C>(stream, call, heads);
    if (static_cast<int64_t>(sharedBytesFor<Many256>(call)) <= maxSharedBytes)
      return launchShape<Many256, T, C>(stream, call, heads);
    return launchShape<Few256, T, C>(stream, call, heads);
  }
  if (dims > 64)
    return single ? launchShape<Single128, T, C>(stream, call, heads) : launchShape<Many128, T, C>(stream, call, heads);
  return single ? launchShape<Single64, T, C>(stream, call, heads) : launchShape<Many64, T, C>(stream, call, heads);
}

// The least that some shape for these head sizes needs.
int64_t leastSharedBytes(const AttentionCall& call) {
  const int64_t dims = call.cache.vHeadDim;
  const bool single = isSingle(call, headsOf(call));
  size_t bytes = 0;
  if (dims > 256)
    bytes = sharedBytesFor<Latent512>(call);
  else if (dims > 128)
    bytes = single ? sharedBytesFor<Single256>(call) : sharedBytesFor<Few256>(call);
  else if (dims > 64)
    bytes = single ? sharedBytesFor<Single128>(call) : sharedBytesFor<Many128>(call);
  else
    bytes = single ? sharedBytesFor<Single64>(call) : sharedBytesFor<Many64>(call);
  return static_cast<int64_t>(bytes);
}

bool aligned16(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

bool fitsTensorCores(const AttentionCall& call, int64_t maxSharedBytes) {
  const KvCache& cache = call.cache;
  return (call.q.dtype == DType::F16 || call.q.dtype == DType::BF16) &&
         (cache.dtype == call.q.dtype || cache.dtype == DType::F8E4M3 || cache.dtype == DType::F8E5M2) &&
         cache.headDim % 16 == 0 && cache.vHeadDim % 16 == 0 && call.out.cols == call.qHeads * cache.vHeadDim &&
         cache.vHeadDim <= 512 && aligned16(call.q.data) && aligned16(cache.data) && call.q.stride % 8 == 0 &&
         call.out.stride % 2 == 0 && leastSharedBytes(call) <= maxSharedBytes;
}

}  // namespace

int attentionSplits(const AttentionCall& call, int multiprocessors) {
  const int64_t heads = headsOf(call), blocks = tilesOf(call, heads, isSingle(call, heads) ? 16 : 64) * call.cache.kvHeads,
                wanted = 3 * static_cast<int64_t>(multiprocessors);
  const int64_t splits = wanted / (blocks > 0 ? blocks : 1);
  return static_cast<int>(splits < 1 ? 1 : splits > 32 ? 32 : splits);
}

int64_t attentionWorkspaceBytes(int64_t tokens, int64_t qHeads, int64_t vHeadDim, int splits) {
  return splits <= 1 ? 0 : tokens * qHeads * splits * (vHeadDim + 2) * 4;
}

void pagedAttention(Stream stream, const AttentionCall& call, int64_t maxSharedBytes, bool tensorCores) {
  if (call.q.rows == 0) return;
  kernelExpects(call.splits >= 1 && call.splits <= 32 && (call.splits == 1 || call.workspace),
                "attention in parts has no workspace");
  if (tensorCores && fitsTensorCores(call, maxSharedBytes)) {
    if (call.q.dtype == DType::F16) {
      if (call.cache.dtype == DType::F16)
        launchTensorCores<Half, Half>(stream, call, maxSharedBytes);
      else
        launchTensorCores<Half, Fp8E4M3>(stream, call, maxSharedBytes);
    } else {
      if (call.cache.dtype == DType::BF16)
        launchTensorCores<BFloat16, BFloat16>(stream, call, maxSharedBytes);
      else
        launchTensorCores<BFloat16, Fp8E4M3>(stream, call, maxSharedBytes);
    }
  } else {
    plainAttention(stream, call);
  }
  if (call.splits > 1) mergeAttention(stream, call);
}

}  // namespace headroom::engine::cuda
