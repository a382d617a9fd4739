// SPDX-License-Identifier: Apache-2.0
// Linear layers without tensor cores: any activations (F32 among them), packed or plain weights of any type, on any device. A
// warp an output, up to four tokens at once. Roofline: with one token the bytes of the weights (F32: the copy bandwidth; packed:
// the conversion to floats, two instructions a weight, which is the limit on fast memory); with many, F32 arithmetic. Test:
// tests/engine/cuda_kernels_linear_test.cpp.
#include "engine/device/cuda/kernels/linear_common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr int kWarps = 4;

template <class T>
__device__ void finish(const LinearArguments<T>& task, const TokenTile& tile, int output, const float (&sums)[kPlainTokens],
                       int64_t column = 0) {
#pragma unroll
  for (int n = 0; n < kPlainTokens; ++n) {
    const float sum = warpSum(sums[n]);
    if (threadIdx.x % kWarp == 0 && tile.begin + n < tile.end)
      writeResult(task, tile.begin + n, output, tile.expert, sum, column);
  }
}

// Lane 4 c + t takes lane t's part of chunk c of eight.
template <WeightFormat kFormat, class T>
__global__ void __launch_bounds__(kWarps* kWarp) plainPackedKernel(const __grid_constant__ LinearLaunch<T> launch) {
  const LinearArguments<T>& task = launch.tasks[blockIdx.z];
  const int output = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarp;
  TokenTile tile;
  if (output >= task.matrix.out || !findTokens<kPlainTokens>(launch, static_cast<int>(blockIdx.y), tile)) return;
  const PackedArguments matrix = matrixOf(task.matrix, launch.experts, tile.expert);
  const int lane = static_cast<int>(threadIdx.x) % kWarp, t = lane % 4;
  float sums[kPlainTokens] = {};
  const int chunks = (matrix.groups + 3) / 4;
  for (int chunk = lane / 4; chunk < chunks; chunk += kWarp / 4) {
    PackedPart<kFormat> part;
    part.load(matrix, output, chunk, t);
    const int count = min(4, matrix.groups - 4 * chunk);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (j >= count) break;
      uint32_t pairs[4];
      part.template pairs<Half>(j, pairs);
      const int column = (chunk * 4 + j) * kGroup + 4 * t;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float scale, minimum;
        part.template scale<Half>(chunk, j, half, scale, minimum);
        const float2 first = unpackPair<Half>(pairs[2 * half]), second = unpackPair<Half>(pairs[2 * half + 1]);
        const float weights[4] = {first.x * scale + minimum, first.y * scale + minimum, second.x * scale + minimum,
                                  second.y * scale + minimum};
#pragma unroll
        for (int n = 0; n < kPlainTokens; ++n) {
          if (tile.begin + n >= tile.end) break;
          const T* x = launch.in.row(inputRow(launch, tile.begin + n)) + column + 16 * half;
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[n] += weights[i] * toFloat(x[i]);
        }
      }
    }
  }
  finish(task, tile, output, sums);
}

template <class W, class T, int kWidth>
__global__ void __launch_bounds__(kWarps* kWarp) plainDenseKernel(const __grid_constant__ LinearLaunch<T> launch) {
  const int head = launch.heads > 0 ? static_cast<int>(blockIdx.z) : 0;
  const LinearArguments<T>& task = launch.tasks[launch.heads > 0 ? 0u : blockIdx.z];
  const int output = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarp, in = task.matrix.in;
  TokenTile tile;
  if (output >= task.matrix.out || !findTokens<kPlainTokens>(launch, static_cast<int>(blockIdx.y), tile)) return;
  const auto* matrix = reinterpret_cast<const W*>(launch.heads > 0             ? launch.experts.data[head]
                                                  : launch.experts.experts > 0 ? launch.experts.data[tile.expert]
                                                                               : task.matrix.codes);
  const W* row = matrix + static_cast<int64_t>(output) * in;
  float sums[kPlainTokens] = {};
  for (int column = static_cast<int>(threadIdx.x) % kWarp * kWidth; column < in; column += kWarp * kWidth) {
    float weights[kWidth];
    loadFloats(row + column, weights);
#pragma unroll
    for (int n = 0; n < kPlainTokens; ++n) {
      if (tile.begin + n >= tile.end) break;
      const T* x = launch.in.row(inputRow(launch, tile.begin + n)) + head * launch.inHead + column;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sums[n] += weights[i] * toFloat(x[i]);
    }
  }
  finish(task, tile, output, sums, head * launch.outHead);
}

}  // namespace

template <class T>
void launchPlain(Stream stream, WeightFormat format, const LinearLaunch<T>& launch, int tasks, int widest, int64_t tiles) {
  const dim3 grid(blocksFor(widest, kWarps), static_cast<unsigned>(tiles), static_cast<unsigned>(tasks));
  withFormat(format, [&](auto tag) {
    launchKernel(plainPackedKernel<decltype(tag)::value, T>, grid, dim3(kWarps * kWarp), 0, stream, launch);
  });
}

template <class T>
void launchDensePlain(Stream stream, DType weightType, const LinearLaunch<T>& launch, int tasks, int widest, int64_t tiles) {
  const dim3 grid(blocksFor(widest, kWarps), static_cast<unsigned>(tiles), static_cast<unsigned>(tasks));
  withActivationType(weightType, [&](auto tag) {
    using W = typename decltype(tag)::type;
    bool wide = true;                                         // all tasks share one input width
    for (int i = 0; i < (launch.heads > 0 ? 1 : tasks); ++i)  // matrices by table are aligned
      wide = wide && reinterpret_cast<uintptr_t>(launch.tasks[i].matrix.codes) % 16 == 0 &&
             launch.tasks[i].matrix.in % kWide<W> == 0;
    if (wide)
      launchKernel(plainDenseKernel<W, T, kWide<W>>, grid, dim3(kWarps * kWarp), 0, stream, launch);
    else
      launchKernel(plainDenseKernel<W, T, 1>, grid, dim3(kWarps * kWarp), 0, stream, launch);
  });
}

template void launchPlain<float>(Stream, WeightFormat, const LinearLaunch<float>&, int, int, int64_t);
template void launchPlain<Half>(Stream, WeightFormat, const LinearLaunch<Half>&, int, int, int64_t);
template void launchPlain<BFloat16>(Stream, WeightFormat, const LinearLaunch<BFloat16>&, int, int, int64_t);
template void launchDensePlain<float>(Stream, DType, const LinearLaunch<float>&, int, int, int64_t);
template void launchDensePlain<Half>(Stream, DType, const LinearLaunch<Half>&, int, int, int64_t);
template void launchDensePlain<BFloat16>(Stream, DType, const LinearLaunch<BFloat16>&, int, int, int64_t);

}  // namespace headroom::engine::cuda
