// SPDX-License-Identifier: Apache-2.0
// What kernel sources may use, the same for nvcc and for the emulation (tests/cuda_emulation), which compiles the very same .cu
// files as C++ with HEADROOM_CUDA_EMULATION defined and runs every thread of a block as a fiber. A kernel source includes this
// file and nothing of CUDA.
//
// From CUDA C++ itself:
//   __global__, __device__, __forceinline__, __launch_bounds__(n[, m]), __restrict__, static `__shared__ T name[N];`,
//   `__constant__` threadIdx, blockIdx, blockDim, gridDim, dim3, int2/int4/uint2/uint4/float2/float4 and make_*
//   __syncthreads, __syncthreads_or/and/count, __syncwarp(mask), __shfl_sync, __shfl_xor_sync, __shfl_down_sync, __shfl_up_sync,
//   __ballot_sync,
//   __any_sync, __all_sync; every lane named in `mask` that has not ended must arrive. A shuffle orders no memory; __syncwarp
//   does. atomicAdd (int, unsigned, unsigned long long, float), atomicMax/Min (int, unsigned), atomicCAS, atomicExch, atomicOr,
//   __threadfence,
//   __threadfence_system
//   __popc, __clz, __ffs, __brev, __dp4a, __byte_perm, __funnelshift_l/r, __ldg, __expf, __logf, __fdividef, rsqrtf, exp2f, the
//   cmath functions of float and double, fminf, fmaxf, min, max, __float_as_uint, __uint_as_float, __float_as_int,
//   __int_as_float, __trap()
//
// Of this interface (namespace headroom::engine::cuda):
//   launchKernel(kernel, grid, block, sharedBytes, stream, args...)   kernel<<<…>>>; the first error of a launch is kept by the
//   runtime HEADROOM_DYNAMIC_SHARED(T, name)     T* name: the launch's dynamic shared memory, aligned to 128 bytes; once a kernel
//   Half, BFloat16, Fp8E4M3, Fp8E5M2     storage types; toFloat(x), fromFloat<T>(f) (round to nearest even; FP8 saturates to its
//   largest number) unpackPair<T>(uint32_t) -> float2, packPair<T>(a, b) -> uint32_t   two Half or BFloat16 in one register, the
//   first in the low half fmaPair<T>(a, b, c)                  a * b + c on such pairs loadStreaming(const V*)              reads
//   what no other block will read: weights. V: any 4-, 8- or 16-byte vector or integer copyAsync16(shared, global, valid),
//   copyAsync4(…), commitCopies(), waitCopies<N>()
//        16 (4) bytes from global to shared memory without registers, aligned to 16 (4); zeros where !valid (`global` is not
//        read). waitCopies<N> waits until at most N committed groups of this thread are pending; then a barrier makes them
//        visible to the others.
//   mmaTile<T>(c, a, b)                  c (16x8 F32) += a (16x16) · b (16x8); T Half or BFloat16 (BFloat16: compute
//   capability 8.0 and above; traps below) mmaTileInt8(c, a, b)                 c (16x8 I32) += a (16x32 I8) · b (32x8 I8)
//        Fragments of a warp as PTX defines them for mma.m16n8k16 / m16n8k32. With g = lane / 4, t = lane % 4:
//          a[0] row g,  columns 2t, 2t+1     a[1] row g+8, same columns    a[2] row g, columns 2t+8, 2t+9    a[3] row g+8,
//          columns 2t+8, 2t+9 b[0] column g, rows 2t, 2t+1      b[1] column g, rows 2t+8, 2t+9 c[0], c[1] row g, columns 2t, 2t+1
//          c[2], c[3] row g+8, same columns
//        Int8: four elements a register: columns (rows) 4t … 4t+3, and 16 more for a[2], a[3], b[1].
//   loadTiles4(r, row), loadTiles4Transposed(r, row)   four 8x8 tiles of 16-bit elements from shared memory (ldmatrix.x4): lane
//   8i + j gives the
//        address of row j of tile i (16 bytes, aligned); r[i] then holds row lane / 4, columns 2 (lane % 4) and one more of tile
//        i, or of its transpose
//   loadAcquireSystem(p), storeReleaseSystem(p, v)     flags (uint32_t) between blocks and devices; a loop that waits for a flag
//   ends by the
//        caller's own limit and calls pauseInLoop() each turn
//   warpSum(x), warpMax(x) (float; all 32 lanes); blockSum(x, scratch), blockMax(x, scratch): scratch float[32] in shared memory,
//   result in every
//        thread; blockDim.x a multiple of 32, one-dimensional blocks. They begin and end with a barrier.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(HEADROOM_CUDA_EMULATION)
#include "tests/cuda_emulation/device_emulation.h"
#else
#include "engine/device/cuda/kernels/device_api_nvcc.cuh"
#endif

namespace headroom::engine::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

__device__ inline float warpSum(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}
__device__ inline float warpMax(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

namespace detail {
template <class Combine, class WarpReduce>
__device__ inline float blockReduce(float value, float* scratch, float neutral, Combine combine, WarpReduce warpReduce) {
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) / 32,
            warps = static_cast<int>(blockDim.x) / 32;
  value = warpReduce(value);
  __syncthreads();  // scratch may still be read from its last use
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  float total = neutral;
  for (int i = 0; i < warps; ++i) total = combine(total, scratch[i]);
  __syncthreads();
  return total;
}
}  // namespace detail

__device__ inline float blockSum(float value, float* scratch) {
  return detail::blockReduce(
      value, scratch, 0.0f, [](float a, float b) { return a + b; }, [](float x) { return warpSum(x); });
}
__device__ inline float blockMax(float value, float* scratch) {
  return detail::blockReduce(
      value, scratch, -INFINITY, [](float a, float b) { return fmaxf(a, b); }, [](float x) { return warpMax(x); });
}

}  // namespace headroom::engine::cuda
