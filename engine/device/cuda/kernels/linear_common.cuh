// SPDX-License-Identifier: Apache-2.0
// What the kernels of linear layers share: tasks as kernels take them, the rows of an expert, and how results are written.
#pragma once

#include "engine/device/cuda/kernels/linear.h"
#include "engine/device/cuda/kernels/packed_codes.cuh"

namespace headroom::engine::cuda {

inline constexpr int kTasksPerLaunch = 4;
inline constexpr int kChunk = 128;  // columns that a warp takes at once

struct ExpertArguments {
  int experts;
  const int *begin, *inputRows;
  const uint8_t* const* data;
  const void* const* scales;
  const uint8_t* const* zeros;
};

template <class T>
struct LinearArguments {
  PackedArguments matrix;  // dense: codes are the matrix, out and in are set
  Rows<T> out;             // floats where outIsFloat
  bool outIsFloat;
  const float* bias;
};

template <class T>
struct LinearLaunch {
  Rows<const T> in;
  int tokens;
  ExpertArguments experts;  // experts 0: none
  int heads;  // above 0: one task, a matrix a head (experts.data), input and output of head h begin h * inHead and h * outHead on
  int64_t inHead, outHead;
  LinearArguments<T> tasks[kTasksPerLaunch];
};

// A tile of tokens: rows [begin, end) of the output, of one expert.
struct TokenTile {
  int begin, end, expert;
};

// Tile `index` of kTokens rows; of experts, each of whose rows begin a tile. False past the last.
template <int kTokens, class T>
__device__ bool findTokens(const LinearLaunch<T>& launch, int index, TokenTile& tile) {
  if (launch.experts.experts == 0) {
    tile = {index * kTokens, min(launch.tokens, (index + 1) * kTokens), 0};
    return tile.begin < launch.tokens;
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int base = 0; base < launch.experts.experts; base += kWarp) {
    const int expert = base + lane;
    int begin = 0, end = 0;
    if (expert < launch.experts.experts) {
      begin = launch.experts.begin[expert];
      end = launch.experts.begin[expert + 1];
    }
    const int tiles = (end - begin + kTokens - 1) / kTokens;
    int through = tiles;
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
      const int other = __shfl_up_sync(kAllLanes, through, step);
      if (lane >= step) through += other;
    }
    const unsigned past = __ballot_sync(kAllLanes, through > index);
    if (past != 0) {
      const int found = __ffs(static_cast<int>(past)) - 1;
      const int first = __shfl_sync(kAllLanes, begin + (index - (through - tiles)) * kTokens, found);
      tile = {first, min(first + kTokens, __shfl_sync(kAllLanes, end, found)), base + found};
      return true;
    }
    index -= __shfl_sync(kAllLanes, through, kWarp - 1);
  }
  return false;
}

template <class T>
__device__ int inputRow(const LinearLaunch<T>& launch, int row) {
  return launch.experts.inputRows ? launch.experts.inputRows[row] : row;
}

// The planes of an expert's matrix: those of the first address moved to another.
__device__ inline PackedArguments matrixOf(const PackedArguments& matrix, const ExpertArguments& experts, int expert) {
  PackedArguments moved = matrix;
  if (experts.experts > 0) {
    const uint8_t* data = experts.data[expert];
    moved.codes = data + matrix.codesAt, moved.twos = data + matrix.twosAt, moved.ones = data + matrix.onesAt;
    moved.scales = data + matrix.scalesAt, moved.more = data + matrix.moreAt;
    if (experts.scales) moved.outerScales = experts.scales[expert];
    if (experts.zeros) moved.zeros = experts.zeros[expert];
  }
  return moved;
}

template <class T>
__device__ void writeResult(const LinearArguments<T>& task, int token, int row, int expert, float value, int64_t column = 0) {
  if (task.bias) value += task.bias[static_cast<int64_t>(expert) * task.matrix.out + row];
  if (task.outIsFloat)
    reinterpret_cast<float*>(task.out.data)[token * task.out.stride + column + row] = value;
  else
    task.out.row(token)[column + row] = fromFloat<T>(value);
}

// How many tiles of kTokens rows there can be at most.
inline int64_t tokenTiles(int64_t tokens, int perTile, const ExpertRows* experts) {
  if (!experts) return (tokens + perTile - 1) / perTile;
  const int64_t most = tokens / perTile + experts->experts;
  return most < tokens ? most : tokens;
}

// Launches of linear_small.cu, linear_tile.cu and linear_plain.cu; all tasks have the format of the first, `widest` is the most
// outputs, `tiles` those of tokens.
template <class T>
void launchSmall(Stream stream, WeightFormat format, const LinearLaunch<T>& launch, int tasks, int widest, int64_t tiles,
                 int perTile);
template <class T>
void launchDenseSmall(Stream stream, const LinearLaunch<T>& launch, int tasks, int widest, int64_t tiles, int perTile);
template <class T>
void launchTile(Stream stream, WeightFormat format, const LinearLaunch<T>& launch, int tasks, int widest, int64_t tiles,
                int splits, float* workspace);
template <class T>
void launchPlain(Stream stream, WeightFormat format, const LinearLaunch<T>& launch, int tasks, int widest, int64_t tiles);
template <class T>
void launchDensePlain(Stream stream, DType weightType, const LinearLaunch<T>& launch, int tasks, int widest, int64_t tiles);
inline constexpr int kPlainTokens = 4;                      // of a tile of linear_plain.cu
inline constexpr int kTileTokens = 64, kTileOutputs = 128;  // of linear_tile.cu

}  // namespace headroom::engine::cuda
