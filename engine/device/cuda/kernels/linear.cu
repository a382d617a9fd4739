// SPDX-License-Identifier: Apache-2.0
// Which kernel a linear layer takes: by tokens, activation type and alignment. No kernel of its own.
#include "engine/device/cuda/kernels/linear_common.cuh"

#include <type_traits>

namespace headroom::engine::cuda {
namespace {

constexpr int kSmallTokens = 16;
constexpr int kMostSplits = 8;

bool aligned(const void* data, size_t bytes) { return reinterpret_cast<uintptr_t>(data) % bytes == 0; }

template <class T>
LinearLaunch<T> launchFor(TensorView in, const LinearOptions& options, int64_t tokens) {
  LinearLaunch<T> launch = {};
  launch.in = rowsOf<const T>(in);
  launch.tokens = static_cast<int>(tokens);
  if (const ExpertRows* experts = options.experts)
    launch.experts = {experts->experts, experts->begin, experts->inputRows, experts->data, experts->scales, experts->zeros};
  return launch;
}

template <class T>
LinearArguments<T> argumentsFor(const PackedArguments& matrix, const TensorView& out, const float* bias) {
  const bool isFloat = out.dtype == DType::F32;
  return {matrix, rowsOf<T>(out), isFloat, bias};
}

// How many tokens a tile of linear_small.cu holds; 0: another kernel is better. Experts: by the tokens that each has on average.
int smallTile(int64_t tokens, const ExpertRows* experts) {
  const int64_t each = experts ? (tokens + experts->experts - 1) / experts->experts : tokens;
  return each <= 8 ? 8 : each <= kSmallTokens ? 16 : 0;
}

template <class T>
void runPacked(Stream stream, TensorView in, std::span<const PackedTask> tasks, const LinearOptions& options) {
  const int64_t tokens = tasks.front().out.rows;
  LinearLaunch<T> launch = launchFor<T>(in, options, tokens);
  int widest = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    launch.tasks[i] = argumentsFor<T>(packedArguments(tasks[i].weight), tasks[i].out, tasks[i].bias);
    widest = static_cast<int>(tasks[i].weight.out) > widest ? static_cast<int>(tasks[i].weight.out) : widest;
  }
  const WeightFormat format = tasks.front().weight.format;
  const auto count = static_cast<int>(tasks.size());
  if constexpr (!std::is_same_v<T, float>) {
    int small = smallTile(tokens, options.experts);
    if (small == 0 && hasCodebook(format)) small = kSmallTokens;  // many tokens are unpacked before (dequantizeRows)
    if (options.tensorCores && small > 0 && aligned(in.data, 8) && in.stride % 4 == 0)
      return launchSmall<T>(stream, format, launch, count, widest, tokenTiles(tokens, small, options.experts), small);
    if (options.tensorCores && small == 0 && aligned(in.data, 16) && in.stride % 8 == 0) {
      const int64_t tiles = tokenTiles(tokens, kTileTokens, options.experts);
      // Parts for one task alone: the others fill the device together.
      const int64_t blocks = tiles * ((widest + kTileOutputs - 1) / kTileOutputs), chunks = (in.cols + kChunk - 1) / kChunk;
      int64_t splits = 1;
      if (count == 1 && !options.experts)
        while (splits < kMostSplits && blocks * splits * 2 <= options.multiprocessors && chunks >= splits * 8 &&
               tokens * widest * splits * 2 * static_cast<int64_t>(sizeof(float)) <= options.workspaceBytes)
          splits *= 2;
      return launchTile<T>(stream, format, launch, count, widest, tiles, static_cast<int>(splits),
                           static_cast<float*>(options.workspace));
    }
  }
  launchPlain<T>(stream, format, launch, count, widest, tokenTiles(tokens, kPlainTokens, options.experts));
}

template <class T>
void runDense(Stream stream, TensorView in, std::span<const DenseTask> tasks, const LinearOptions& options) {
  const int64_t tokens = tasks.front().out.rows;
  LinearLaunch<T> launch = launchFor<T>(in, options, tokens);
  int widest = 0;
  bool wide = aligned(in.data, 16) && in.stride % 8 == 0 && in.cols % 8 == 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const DenseWeight& weight = tasks[i].weight;
    PackedArguments matrix = {};
    matrix.codes = static_cast<const uint8_t*>(weight.data);
    matrix.out = static_cast<int>(weight.out);
    matrix.in = static_cast<int>(weight.in);
    launch.tasks[i] = argumentsFor<T>(matrix, tasks[i].out, tasks[i].bias);
    widest = matrix.out > widest ? matrix.out : widest;
    wide = wide && aligned(weight.data, 16) && weight.type == in.dtype;
  }
  const auto count = static_cast<int>(tasks.size());
  if constexpr (!std::is_same_v<T, float>) {
    if (options.tensorCores && wide) {
      const int small = smallTile(tokens, options.experts) == 8 ? 8 : 16;
      return launchDenseSmall<T>(stream, launch, count, widest, tokenTiles(tokens, small, options.experts), small);
    }
  }
  launchDensePlain<T>(stream, tasks.front().weight.type, launch, count, widest,
                      tokenTiles(tokens, kPlainTokens, options.experts));
}

// Calls run with runs of at most kTasksPerLaunch tasks of one kind.
template <class Task, class Kind, class Run>
void inRuns(std::span<const Task> tasks, const Kind& kind, const Run& run) {
  for (size_t begin = 0; begin < tasks.size();) {
    size_t end = begin + 1;
    while (end < tasks.size() && end - begin < kTasksPerLaunch && kind(tasks[end]) == kind(tasks[begin])) ++end;
    if (tasks[begin].out.rows > 0) run(tasks.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace

void headLinear(Stream stream, const HeadLinear& task, bool tensorCores) {
  if (task.out.rows == 0 || task.heads == 0) return;
  kernelExpects(task.out.dtype == task.in.dtype || task.out.dtype == DType::F32,
                "a linear layer of heads was given views of other types");
  withActivationType(task.in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    LinearLaunch<T> launch = launchFor<T>(task.in, {}, task.out.rows);
    launch.heads = static_cast<int>(task.heads);
    launch.inHead = task.inHead;
    launch.outHead = task.outHead;
    launch.experts.data = task.weights;
    PackedArguments matrix = {};
    matrix.out = static_cast<int>(task.shape.out);
    matrix.in = static_cast<int>(task.shape.in);
    launch.tasks[0] = argumentsFor<T>(matrix, task.out, nullptr);
    const int64_t tokens = task.out.rows;
    if constexpr (!std::is_same_v<T, float>) {
      if (tensorCores && aligned(task.in.data, 16) && task.in.stride % 8 == 0 && task.inHead % 8 == 0 && matrix.in % 8 == 0 &&
          task.shape.type == task.in.dtype) {
        const int tile = tokens <= 8 ? 8 : 16;
        return launchDenseSmall<T>(stream, launch, launch.heads, matrix.out, tokenTiles(tokens, tile, nullptr), tile);
      }
    }
    launchDensePlain<T>(stream, task.shape.type, launch, launch.heads, matrix.out, tokenTiles(tokens, kPlainTokens, nullptr));
  });
}

int64_t linearWorkspaceBytes(int64_t tokens, int64_t out) {
  return tokens * out * kMostSplits * static_cast<int64_t>(sizeof(float));
}

void packedLinear(Stream stream, TensorView in, std::span<const PackedTask> tasks, const LinearOptions& options) {
  inRuns<PackedTask>(
      tasks, [](const PackedTask& task) { return task.weight.format; },
      [&](std::span<const PackedTask> run) {
        for (const PackedTask& task : run)
          kernelExpects(task.weight.in == in.cols && (task.out.dtype == in.dtype || task.out.dtype == DType::F32),
                        "a packed linear layer was given views of other sizes or types");
        withActivationType(in.dtype, [&](auto tag) { runPacked<typename decltype(tag)::type>(stream, in, run, options); });
      });
}

void denseLinear(Stream stream, TensorView in, std::span<const DenseTask> tasks, const LinearOptions& options) {
  inRuns<DenseTask>(
      tasks, [](const DenseTask& task) { return task.weight.type; },
      [&](std::span<const DenseTask> run) {
        for (const DenseTask& task : run)
          kernelExpects(task.weight.in == in.cols && (task.out.dtype == in.dtype || task.out.dtype == DType::F32),
                        "a linear layer was given views of other sizes or types");
        withActivationType(in.dtype, [&](auto tag) { runDense<typename decltype(tag)::type>(stream, in, run, options); });
      });
}

}  // namespace headroom::engine::cuda
