// SPDX-License-Identifier: Apache-2.0
// Linear layers of more than 16 tokens: a block of eight warps holds 128 outputs x 64 tokens. Tokens come to shared memory by
// asynchronous copies, 128 columns at a time in two buffers; weights go from memory to registers, the next chunk's while this one
// is multiplied, each warp reading the 32 rows it alone needs. Where the outputs are too few for the device, the columns are cut
// into parts (grid z) whose F32 sums a second kernel adds. Roofline: bytes of the weights up to about 200 tokens (a block reads
// 64 KiB of codes for 1 MiB of products), then the tensor cores; scales are applied to sums, which costs one F32 instruction a
// lane and eight products of the tensor cores: expected 50 to 60 % of their peak (an estimate), which is why cuBLASLt on
// dequantized weights takes over. Test: tests/engine/cuda_kernels_linear_test.cpp.
#include "engine/device/cuda/kernels/linear_common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr int kWarps = 8, kThreads = kWarps * kWarp,
              kRowTiles = 1;  // row tiles of 16 outputs a warp; two need more registers than there are
static_assert(kWarps * kRowTiles * kTileRows == kTileOutputs);
constexpr int kInputStride = kChunk + 16;  // elements of a token in shared memory: eight tokens lie in different banks
constexpr int kSums = 8;                   // sums of a token's inputs, of 16 columns each, in a chunk

template <class T>
constexpr size_t sharedBytes(bool minimums) {
  return 2 * (kTileTokens * kInputStride * sizeof(T)) + (minimums ? kTileTokens * kSums * sizeof(float) : 0);
}

template <WeightFormat kFormat, class T>
__global__ void __launch_bounds__(kThreads, 1)
    linearTileKernel(const __grid_constant__ LinearLaunch<T> launch, int splits, float* partial) {
  constexpr FormatTraits kTraits = formatTraits(kFormat);
  constexpr int kTokenTiles = kTileTokens / 8;
  HEADROOM_DYNAMIC_SHARED(T, inputs);
  float* inputSums = reinterpret_cast<float*>(inputs + 2 * kTileTokens * kInputStride);  // (tokens, kSums)
  const int split = static_cast<int>(blockIdx.z) % splits;
  const LinearArguments<T>& task = launch.tasks[blockIdx.z / static_cast<unsigned>(splits)];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, g = static_cast<int>(threadIdx.x) % kWarp / 4,
            t = static_cast<int>(threadIdx.x) % 4;
  if (static_cast<int>(blockIdx.x) * kTileOutputs >= task.matrix.out) return;
  TokenTile tile;
  if (!findTokens<kTileTokens>(launch, static_cast<int>(blockIdx.y), tile)) return;
  const PackedArguments matrix = matrixOf(task.matrix, launch.experts, tile.expert);
  const int firstOutput = static_cast<int>(blockIdx.x) * kTileOutputs + warp * kRowTiles * kTileRows;

  // Eight threads a token, 16 bytes each, twice a chunk.
  const auto copyInputs = [&](int chunk, int buffer) {
#pragma unroll 1
    for (int token = static_cast<int>(threadIdx.x) / 8; token < kTileTokens; token += kThreads / 8) {
      const bool inside = tile.begin + token < tile.end;
      const T* from = launch.in.row(inside ? inputRow(launch, tile.begin + token) : 0);
      T* to = inputs + (buffer * kTileTokens + token) * kInputStride;
#pragma unroll
      for (int piece = 0; piece < 2; ++piece) {
        const int column = piece * 64 + static_cast<int>(threadIdx.x) % 8 * 8;
        const bool valid = inside && chunk * kChunk + column < matrix.in;
        copyAsync16(to + column, valid ? from + chunk * kChunk + column : from, valid);
      }
    }
  };

  float sums[kRowTiles][kTokenTiles][4];
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r)
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[r][n][i] = 0.0f;

  const int chunks = (matrix.groups + 3) / 4, chunksPerSplit = (chunks + splits - 1) / splits;
  const int chunkBegin = split * chunksPerSplit, chunkEnd = min(chunks, chunkBegin + chunksPerSplit);
  PackedPart<kFormat> parts[kRowTiles][2];
  const auto loadWeights = [&](int chunk) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        parts[r][half].load(matrix, min(firstOutput + r * kTileRows + half * 8 + g, matrix.out - 1), chunk, t);
  };
  if (chunkBegin < chunkEnd) {
    copyInputs(chunkBegin, 0);
    loadWeights(chunkBegin);
  }
  commitCopies();
#pragma unroll 1
  for (int chunk = chunkBegin; chunk < chunkEnd; ++chunk) {
    const int buffer = (chunk - chunkBegin) % 2;
    if (chunk + 1 < chunkEnd) copyInputs(chunk + 1, 1 - buffer);
    commitCopies();
    waitCopies<1>();
    __syncthreads();  // this chunk's inputs are here
    const T* input = inputs + buffer * kTileTokens * kInputStride;
    if constexpr (kTraits.minimums) {
      for (int i = static_cast<int>(threadIdx.x); i < kTileTokens * kSums; i += kThreads) {
        float values[8], sum = 0.0f;
        const T* from = input + i / kSums * kInputStride + i % kSums * 16;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          loadFloats(from + half * 8, values);
#pragma unroll
          for (int k = 0; k < 8; ++k) sum += values[k];
        }
        inputSums[i] = sum;
      }
      __syncthreads();
    }
    PackedPart<kFormat> now[kRowTiles][2];
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) now[r][0] = parts[r][0], now[r][1] = parts[r][1];
    if (chunk + 1 < chunkEnd) loadWeights(chunk + 1);

    const int count = min(4, matrix.groups - 4 * chunk);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (j >= count) break;
      uint32_t up[kRowTiles][4], low[kRowTiles][4];
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        now[r][0].template pairs<T>(j, up[r]);
        now[r][1].template pairs<T>(j, low[r]);
      }
      if constexpr (kTraits.scalesPerGroup == 1) {
        float scale[kRowTiles][2], minimum[kRowTiles][2];
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          now[r][0].template scale<T>(chunk, j, 0, scale[r][0], minimum[r][0]);
          now[r][1].template scale<T>(chunk, j, 0, scale[r][1], minimum[r][1]);
        }
#pragma unroll
        for (int n = 0; n < kTokenTiles; ++n) {
          const T* from = input + (n * 8 + g) * kInputStride + j * kGroup + 4 * t;
          const uint2 first = *reinterpret_cast<const uint2*>(from), second = *reinterpret_cast<const uint2*>(from + 16);
          float both[2] = {};
          if constexpr (kTraits.minimums) {
            const float* of = inputSums + (n * 8 + 2 * t) * kSums + 2 * j;
            both[0] = of[0] + of[1];
            both[1] = of[kSums] + of[kSums + 1];
          }
#pragma unroll
          for (int r = 0; r < kRowTiles; ++r) {
            float c[4] = {};
            mmaTile<T>(c, {up[r][0], low[r][0], up[r][1], low[r][1]}, {first.x, first.y});
            mmaTile<T>(c, {up[r][2], low[r][2], up[r][3], low[r][3]}, {second.x, second.y});
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              sums[r][n][i] += scale[r][i / 2] * c[i];
              if constexpr (kTraits.minimums) sums[r][n][i] += minimum[r][i / 2] * both[i % 2];
            }
          }
        }
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float scale[kRowTiles][2], minimum[kRowTiles][2];
#pragma unroll
          for (int r = 0; r < kRowTiles; ++r) {
            now[r][0].template scale<T>(chunk, j, half, scale[r][0], minimum[r][0]);
            now[r][1].template scale<T>(chunk, j, half, scale[r][1], minimum[r][1]);
          }
#pragma unroll
          for (int n = 0; n < kTokenTiles; ++n) {
            const uint2 b = *reinterpret_cast<const uint2*>(input + (n * 8 + g) * kInputStride + j * kGroup + 16 * half + 4 * t);
            float of[2] = {};
            if constexpr (kTraits.minimums) {
              of[0] = inputSums[(n * 8 + 2 * t) * kSums + 2 * j + half];
              of[1] = inputSums[(n * 8 + 2 * t + 1) * kSums + 2 * j + half];
            }
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
              float c[4] = {};
              mmaTile<T>(c, {up[r][2 * half], low[r][2 * half], up[r][2 * half + 1], low[r][2 * half + 1]}, {b.x, b.y});
#pragma unroll
              for (int i = 0; i < 4; ++i) {
                sums[r][n][i] += scale[r][i / 2] * c[i];
                if constexpr (kTraits.minimums) sums[r][n][i] += minimum[r][i / 2] * of[i % 2];
              }
            }
          }
        }
      }
    }
    __syncthreads();  // all have read this chunk's inputs
  }
  waitCopies<0>();

#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int output = firstOutput + r * kTileRows + g + i / 2 * 8, token = tile.begin + n * 8 + 2 * t + i % 2;
        if (output >= matrix.out || token >= tile.end) continue;
        if (splits > 1)
          partial[(static_cast<int64_t>(split) * launch.tokens + token) * matrix.out + output] = sums[r][n][i];
        else
          writeResult(task, token, output, tile.expert, sums[r][n][i]);
      }
    }
  }
}

// Adds the parts of a task's sums, in their order.
template <class T>
__global__ void addPartsKernel(const __grid_constant__ LinearLaunch<T> launch, int splits, const float* partial, int64_t items) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= items) return;
  const LinearArguments<T>& task = launch.tasks[0];
  float sum = 0.0f;
  for (int split = 0; split < splits; ++split) sum += partial[split * items + item];
  writeResult(task, static_cast<int>(item / task.matrix.out), static_cast<int>(item % task.matrix.out), 0, sum);
}

}  // namespace

template <class T>
void launchTile(Stream stream, WeightFormat format, const LinearLaunch<T>& launch, int tasks, int widest, int64_t tiles,
                int splits, float* workspace) {
  const dim3 grid(blocksFor(widest, kTileOutputs), static_cast<unsigned>(tiles), static_cast<unsigned>(tasks * splits));
  withFormat(format, [&](auto tag) {
    constexpr WeightFormat kFormat = decltype(tag)::value;
    if constexpr (!hasCodebook(kFormat))
      launchKernel(linearTileKernel<kFormat, T>, grid, dim3(kThreads), sharedBytes<T>(formatTraits(kFormat).minimums), stream,
                   launch, splits, workspace);
  });
  if (splits > 1) {
    const int64_t items = static_cast<int64_t>(launch.tokens) * widest;
    launchKernel(addPartsKernel<T>, dim3(blocksFor(items, 128)), dim3(128), 0, stream, launch, splits, workspace, items);
  }
}

template void launchTile<Half>(Stream, WeightFormat, const LinearLaunch<Half>&, int, int, int64_t, int, float*);
template void launchTile<BFloat16>(Stream, WeightFormat, const LinearLaunch<BFloat16>&, int, int, int64_t, int, float*);

}  // namespace headroom::engine::cuda
