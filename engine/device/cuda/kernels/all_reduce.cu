// SPDX-License-Identifier: Apache-2.0
// One-shot all-reduce. A block serves its own share of the message and meets only the block of its number on each other rank, so
// that no grid-wide wait is needed; 32 blocks are resident on any device. Two buffers in turns: a rank comes to turn n + 2 only
// after all peers' flags of turn n + 1, which they raise when turn n is behind them. Roofline: (ranks - 1) messages over the
// links and two crossings of latency: about 5 us for 16 KiB over NVLink (an estimate); from about 256 KiB up a ring moves less.
// Test: tests/engine/cuda_kernels_all_reduce_test.cpp.
#include "engine/device/cuda/kernels/all_reduce.h"

#include "engine/device/cuda/kernels/common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr int kThreads = 256;

template <class T, int N>
__global__ void __launch_bounds__(kThreads) oneShotKernel(T* x, int64_t count, const __grid_constant__ OneShotPeers peers) {
  const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const uint32_t turn = peers.turns[block] + 1;
  T* mine = static_cast<T*>(peers.buffers[turn % 2][peers.rank]);
  const int64_t first = (static_cast<int64_t>(block) * kThreads + thread) * N,
                step = static_cast<int64_t>(gridDim.x) * kThreads * N;
  for (int64_t i = first; i < count; i += step)
    *reinterpret_cast<Vector<T, N>*>(mine + i) = *reinterpret_cast<const Vector<T, N>*>(x + i);
  __threadfence_system();
  __syncthreads();
  const bool meets = thread < peers.ranks && thread != peers.rank;
  if (meets) storeReleaseSystem(peers.flags[thread] + block * kOneShotRanks + peers.rank, turn);
  __syncwarp(kAllLanes);  // all flags are raised before any lane waits
  if (meets) {
    const uint32_t* flag = peers.flags[peers.rank] + block * kOneShotRanks + thread;
    uint32_t looks = 0;
    while (static_cast<int32_t>(loadAcquireSystem(flag) - turn) < 0) {
      if (looks++ == peers.patience) {
        atomicExch(peers.failed, 1 + thread);
        break;
      }
      // A rank that failed is waited for no more: the host, or another block, has said so.
      if (looks % 1024 == 0 && loadAcquireSystem(reinterpret_cast<const uint32_t*>(peers.failed)) != 0) break;
      pauseInLoop();
    }
  }
  __syncthreads();
  for (int64_t i = first; i < count; i += step) {
    float sum[N] = {};
    for (int rank = 0; rank < peers.ranks; ++rank) {
      float values[N];
      loadFloats(static_cast<const T*>(peers.buffers[turn % 2][rank]) + i, values);
#pragma unroll
      for (int j = 0; j < N; ++j) sum[j] += values[j];
    }
    storeFloats(sum, x + i);
  }
  if (thread == 0) peers.turns[block] = turn;  // all threads have read it before the barriers
}

}  // namespace

void oneShotAllReduce(Stream stream, TensorView x, const OneShotPeers& peers) {
  kernelExpects(x.rows <= 1 || x.stride == x.cols, "an all-reduce was given rows with gaps");
  kernelExpects(peers.ranks >= 1 && peers.ranks <= kOneShotRanks, "a one-shot all-reduce has 1 to 8 ranks");
  const int64_t count = x.rows * x.cols;
  if (count == 0 || peers.ranks == 1) return;
  withActivationType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Every rank must take the same number of blocks: by the count alone, though one may have an unaligned view.
    const unsigned wanted = blocksFor(count, kThreads * kWide<T>), blocks = wanted < kOneShotBlocks ? wanted : kOneShotBlocks;
    if (count % kWide<T> == 0) {
      kernelExpects(reinterpret_cast<uintptr_t>(x.data) % 16 == 0,
                    "an all-reduce was given memory that is not aligned to 16 bytes");
      launchKernel(oneShotKernel<T, kWide<T>>, dim3(blocks), dim3(kThreads), 0, stream, static_cast<T*>(x.data), count, peers);
    } else {
      launchKernel(oneShotKernel<T, 1>, dim3(blocks), dim3(kThreads), 0, stream, static_cast<T*>(x.data), count, peers);
    }
  });
}

}  // namespace headroom::engine::cuda
