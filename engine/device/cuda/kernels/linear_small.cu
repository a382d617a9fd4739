// SPDX-License-Identifier: Apache-2.0
// Linear layers of up to 16 tokens: a block of eight warps holds 16 outputs; the warps take turns with chunks of 128 columns and
// add up at the end. Weights go from memory to registers to the tensor cores' first operand (16 outputs x 16 columns), tokens are
// its second; so one token costs as much as eight, and every weight is read once, in whole and aligned accesses, the next chunk's
// while this one is multiplied. Roofline: bytes of the weights. At the copy bandwidth of an H100 (about 3 TB/s) Q4_0's 4.5 bits
// give 5.3e12 weights/s; the arithmetic is about 1.6 instructions a weight pair and lane, a third of what the SMs issue in that
// time. Expected: 85 to 92 % of the copy bandwidth for matrices of 8 MiB and more (an estimate). Test:
// tests/engine/cuda_kernels_linear_test.cpp.
#include "engine/device/cuda/kernels/linear_common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr int kWarps = 8;
// Blocks that a multiprocessor is to hold at once: with two, some loads hide behind others. Some formats would spill a few bytes
// for it on some devices.
template <WeightFormat kFormat>
constexpr int kBlocks = kFormat == WeightFormat::Q2_K || kFormat == WeightFormat::Q5_0 || kFormat == WeightFormat::IQ3_S ? 1 : 2;

// Adds the warps' sums of 16 outputs x kTokens and writes them.
template <int kTokens, class T>
__device__ void addWarps(const LinearArguments<T>& task, const float (&sums)[kTokens / 8][4], int firstOutput,
                         const TokenTile& tile, float (&shared)[kWarps][kTokens][kTileRows], int64_t column = 0) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, g = static_cast<int>(threadIdx.x) % kWarp / 4,
            t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int n = 0; n < kTokens / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) shared[warp][n * 8 + 2 * t + i % 2][g + i / 2 * 8] = sums[n][i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTokens * kTileRows; i += kWarps * kWarp) {
    const int token = i / kTileRows, output = i % kTileRows;
    if (tile.begin + token >= tile.end || firstOutput + output >= task.matrix.out) continue;
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += shared[w][token][output];
    writeResult(task, tile.begin + token, firstOutput + output, tile.expert, sum, column);
  }
}

template <WeightFormat kFormat, class T, int kTokenTiles>
__global__ void __launch_bounds__(kWarps* kWarp, kBlocks<kFormat>)
    linearSmallKernel(const __grid_constant__ LinearLaunch<T> launch) {
  constexpr FormatTraits kTraits = formatTraits(kFormat);
  constexpr int kTokens = 8 * kTokenTiles;
  __shared__ float shared[kWarps][kTokens][kTileRows];
  const LinearArguments<T>& task = launch.tasks[blockIdx.z];
  const int firstOutput = static_cast<int>(blockIdx.x) * kTileRows;
  TokenTile tile;
  if (firstOutput >= task.matrix.out || !findTokens<kTokens>(launch, static_cast<int>(blockIdx.y), tile)) return;
  const PackedArguments matrix = matrixOf(task.matrix, launch.experts, tile.expert);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, g = static_cast<int>(threadIdx.x) % kWarp / 4,
            t = static_cast<int>(threadIdx.x) % 4;
  const int upper = min(firstOutput + g, matrix.out - 1), lower = min(firstOutput + g + 8, matrix.out - 1);
  const T* x[kTokenTiles];
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) {
    const int token = tile.begin + n * 8 + g;
    x[n] = token < tile.end ? launch.in.row(inputRow(launch, token)) + 4 * t : nullptr;
  }

  float sums[kTokenTiles][4] = {};
  const int chunks = (matrix.groups + 3) / 4;
  PackedPart<kFormat> first, second;
  int chunk = warp;
  if (chunk < chunks) {
    first.load(matrix, upper, chunk, t);
    second.load(matrix, lower, chunk, t);
  }
#pragma unroll 1
  for (; chunk < chunks; chunk += kWarps) {
    PackedPart<kFormat> nextFirst, nextSecond;
    if (chunk + kWarps < chunks) {
      nextFirst.load(matrix, upper, chunk + kWarps, t);
      nextSecond.load(matrix, lower, chunk + kWarps, t);
    }
    const int count = min(4, matrix.groups - 4 * chunk);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (j >= count) break;
      uint32_t b[kTokenTiles][2][2];
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          uint2 word = make_uint2(0u, 0u);
          if (x[n]) word = *reinterpret_cast<const uint2*>(x[n] + (4 * chunk + j) * kGroup + 16 * half);
          b[n][half][0] = word.x, b[n][half][1] = word.y;
        }
      }
      uint32_t up[4], low[4];
      first.template pairs<T>(j, up);
      second.template pairs<T>(j, low);
      constexpr uint32_t kOnes = std::is_same_v<T, Half> ? 0x3c003c00u : 0x3f803f80u;
      const uint32_t ones[4] = {kOnes, kOnes, kOnes, kOnes};
      if constexpr (kTraits.scalesPerGroup == 1) {
        float scale[2], minimum[2];
        first.template scale<T>(chunk, j, 0, scale[0], minimum[0]);
        second.template scale<T>(chunk, j, 0, scale[1], minimum[1]);
#pragma unroll
        for (int n = 0; n < kTokenTiles; ++n) {
          float c[4] = {};
          mmaTile<T>(c, {up[0], low[0], up[1], low[1]}, b[n][0]);
          mmaTile<T>(c, {up[2], low[2], up[3], low[3]}, b[n][1]);
          if constexpr (kTraits.minimums) {
            float inputs[4] = {};
            mmaTile<T>(inputs, ones, b[n][0]);
            mmaTile<T>(inputs, ones, b[n][1]);
#pragma unroll
            for (int i = 0; i < 4; ++i) sums[n][i] += minimum[i / 2] * inputs[i];
          }
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[n][i] += scale[i / 2] * c[i];
        }
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float scale[2], minimum[2];
          first.template scale<T>(chunk, j, half, scale[0], minimum[0]);
          second.template scale<T>(chunk, j, half, scale[1], minimum[1]);
#pragma unroll
          for (int n = 0; n < kTokenTiles; ++n) {
            float c[4] = {};
            mmaTile<T>(c, {up[2 * half], low[2 * half], up[2 * half + 1], low[2 * half + 1]}, b[n][half]);
            if constexpr (kTraits.minimums) {
              float inputs[4] = {};
              mmaTile<T>(inputs, ones, b[n][half]);
#pragma unroll
              for (int i = 0; i < 4; ++i) sums[n][i] += minimum[i / 2] * inputs[i];
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) sums[n][i] += scale[i / 2] * c[i];
          }
        }
      }
    }
    first = nextFirst;
    second = nextSecond;
  }
  addWarps<kTokens>(task, sums, firstOutput, tile, shared);
}

// The same for plain weights of the activations' type: a lane takes 16 bytes of a row, columns 8t … 8t+7 of each 32.
template <class T, int kTokenTiles>
__global__ void __launch_bounds__(kWarps* kWarp) denseSmallKernel(const __grid_constant__ LinearLaunch<T> launch) {
  constexpr int kTokens = 8 * kTokenTiles;
  __shared__ float shared[kWarps][kTokens][kTileRows];
  const int head = launch.heads > 0 ? static_cast<int>(blockIdx.z) : 0;
  const LinearArguments<T>& task = launch.tasks[launch.heads > 0 ? 0u : blockIdx.z];
  const int firstOutput = static_cast<int>(blockIdx.x) * kTileRows;
  TokenTile tile;
  if (firstOutput >= task.matrix.out || !findTokens<kTokens>(launch, static_cast<int>(blockIdx.y), tile)) return;
  const auto* matrix = reinterpret_cast<const T*>(launch.heads > 0             ? launch.experts.data[head]
                                                  : launch.experts.experts > 0 ? launch.experts.data[tile.expert]
                                                                               : task.matrix.codes);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, g = static_cast<int>(threadIdx.x) % kWarp / 4,
            t = static_cast<int>(threadIdx.x) % 4;
  const int in = task.matrix.in;
  const T* upper = matrix + static_cast<int64_t>(min(firstOutput + g, task.matrix.out - 1)) * in;
  const T* lower = matrix + static_cast<int64_t>(min(firstOutput + g + 8, task.matrix.out - 1)) * in;
  const T* x[kTokenTiles];
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) {
    const int token = tile.begin + n * 8 + g;
    x[n] = token < tile.end ? launch.in.row(inputRow(launch, token)) + head * launch.inHead : nullptr;
  }

  const uint4 zero = make_uint4(0u, 0u, 0u, 0u);
  float sums[kTokenTiles][4] = {};
  uint4 up[4], low[4];
  const auto load = [&](int chunk) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = chunk * kChunk + j * kGroup + 8 * t;
      up[j] = column < in ? loadStreaming(reinterpret_cast<const uint4*>(upper + column)) : zero;
      low[j] = column < in ? loadStreaming(reinterpret_cast<const uint4*>(lower + column)) : zero;
    }
  };
  const int chunks = (in + kChunk - 1) / kChunk;
  int chunk = warp;
  if (chunk < chunks) load(chunk);
#pragma unroll 1
  for (; chunk < chunks; chunk += kWarps) {
    uint4 first[4], second[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) first[j] = up[j], second[j] = low[j];
    if (chunk + kWarps < chunks) load(chunk + kWarps);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = chunk * kChunk + j * kGroup + 8 * t;
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
        const uint4 b = x[n] && column < in ? *reinterpret_cast<const uint4*>(x[n] + column) : zero;
        mmaTile<T>(sums[n], {first[j].x, second[j].x, first[j].y, second[j].y}, {b.x, b.y});
        mmaTile<T>(sums[n], {first[j].z, second[j].z, first[j].w, second[j].w}, {b.z, b.w});
      }
    }
  }
  addWarps<kTokens>(task, sums, firstOutput, tile, shared, head * launch.outHead);
}

}  // namespace

template <class T>
void launchSmall(Stream stream, WeightFormat format, const LinearLaunch<T>& launch, int tasks, int widest, int64_t tiles,
                 int perTile) {
  const dim3 grid(blocksFor(widest, kTileRows), static_cast<unsigned>(tiles), static_cast<unsigned>(tasks));
  withFormat(format, [&](auto tag) {
    constexpr WeightFormat kFormat = decltype(tag)::value;
    if (perTile == 8)
      launchKernel(linearSmallKernel<kFormat, T, 1>, grid, dim3(kWarps * kWarp), 0, stream, launch);
    else
      launchKernel(linearSmallKernel<kFormat, T, 2>, grid, dim3(kWarps * kWarp), 0, stream, launch);
  });
}

template <class T>
void launchDenseSmall(Stream stream, const LinearLaunch<T>& launch, int tasks, int widest, int64_t tiles, int perTile) {
  const dim3 grid(blocksFor(widest, kTileRows), static_cast<unsigned>(tiles), static_cast<unsigned>(tasks));
  if (perTile == 8)
    launchKernel(denseSmallKernel<T, 1>, grid, dim3(kWarps * kWarp), 0, stream, launch);
  else
    launchKernel(denseSmallKernel<T, 2>, grid, dim3(kWarps * kWarp), 0, stream, launch);
}

template void launchSmall<Half>(Stream, WeightFormat, const LinearLaunch<Half>&, int, int, int64_t, int);
template void launchSmall<BFloat16>(Stream, WeightFormat, const LinearLaunch<BFloat16>&, int, int, int64_t, int);
template void launchDenseSmall<Half>(Stream, const LinearLaunch<Half>&, int, int, int64_t, int);
template void launchDenseSmall<BFloat16>(Stream, const LinearLaunch<BFloat16>&, int, int, int64_t, int);

}  // namespace headroom::engine::cuda
