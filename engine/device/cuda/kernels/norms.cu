// SPDX-License-Identifier: Apache-2.0
// Norms: one block a token, or one warp a head. A row is read twice, the second time from the L1 cache that the first reading
// filled. Roofline: bytes. rmsNorm moves 2 n elements a token, addRmsNorm 4 n; with 16-byte accesses and a full card the copy
// bandwidth is the limit, with a single token the start of the kernel (about 3 us, 1.5 us inside a graph) is. Test:
// tests/engine/cuda_kernels_norms_test.cpp.
#include "engine/device/cuda/kernels/norms.h"

#include "engine/device/cuda/kernels/common.cuh"

namespace headroom::engine::cuda {
namespace {

template <class T, int N, bool kAdd>
__global__ void rmsNormKernel(Rows<T> out, Rows<T> in, Rows<T> delta, const float* weight, int cols, float epsilon,
                              float offset) {
  __shared__ float scratch[32];
  T* x = in.row(blockIdx.x);
  T* y = out.row(blockIdx.x);
  float squares = 0.0f;
  for (int i = static_cast<int>(threadIdx.x) * N; i < cols; i += static_cast<int>(blockDim.x) * N) {
    float values[N];
    loadFloats(x + i, values);
    if constexpr (kAdd) {
      float added[N];
      loadFloats(delta.row(blockIdx.x) + i, added);
#pragma unroll
      for (int j = 0; j < N; ++j) values[j] = toFloat(fromFloat<T>(values[j] + added[j]));
      storeFloats(values, x + i);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) squares += values[j] * values[j];
  }
  const float factor = 1.0f / sqrtf(blockSum(squares, scratch) / static_cast<float>(cols) + epsilon);
  // Each thread reads again what it alone has read and written: no barrier is needed.
  for (int i = static_cast<int>(threadIdx.x) * N; i < cols; i += static_cast<int>(blockDim.x) * N) {
    float values[N], weights[N];
    loadFloats(x + i, values);
    loadFloats(weight + i, weights);
#pragma unroll
    for (int j = 0; j < N; ++j) values[j] = values[j] * factor * (weights[j] + offset);
    storeFloats(values, y + i);
  }
}

template <class T>
__global__ void layerNormKernel(Rows<T> out, Rows<T> in, const float* weight, const float* bias, int cols, float epsilon) {
  __shared__ float scratch[32];
  const T* x = in.row(blockIdx.x);
  T* y = out.row(blockIdx.x);
  const int first = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  float sum = 0.0f, squares = 0.0f;
  for (int i = first; i < cols; i += step) sum += toFloat(x[i]);
  const float mean = blockSum(sum, scratch) / static_cast<float>(cols);
  for (int i = first; i < cols; i += step) {
    const float centred = toFloat(x[i]) - mean;
    squares += centred * centred;
  }
  const float factor = 1.0f / sqrtf(blockSum(squares, scratch) / static_cast<float>(cols) + epsilon);
  for (int i = first; i < cols; i += step)
    y[i] = fromFloat<T>((toFloat(x[i]) - mean) * factor * weight[i] + (bias ? bias[i] : 0.0f));
}

constexpr int kHeadsPerBlock = 4;

// A warp a head.
template <class T>
__global__ void headRmsNormKernel(Rows<T> x, int64_t tokens, int heads, int headDim, const float* weight, float epsilon,
                                  float offset) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kHeadsPerBlock + threadIdx.x / kWarp;
  if (item >= tokens * heads) return;
  T* head = x.row(item / heads) + item % heads * headDim;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float squares = 0.0f;
  for (int i = lane; i < headDim; i += kWarp) {
    const float value = toFloat(head[i]);
    squares += value * value;
  }
  const float factor = 1.0f / sqrtf(warpSum(squares) / static_cast<float>(headDim) + epsilon);
  for (int i = lane; i < headDim; i += kWarp)
    head[i] = fromFloat<T>(toFloat(head[i]) * factor * (weight ? weight[i] + offset : 1.0f));
}

template <class T>
__global__ void rowSquareSumKernel(Rows<float> squares, Rows<const T> x, int cols) {
  __shared__ float scratch[32];
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < cols; i += static_cast<int>(blockDim.x)) {
    const float value = toFloat(x.row(blockIdx.x)[i]);
    sum += value * value;
  }
  sum = blockSum(sum, scratch);
  if (threadIdx.x == 0) *squares.row(blockIdx.x) = sum;
}

template <class T>
__global__ void normBySquareSumKernel(Rows<T> x, Rows<const float> squares, int cols, float width, const float* weight,
                                      float epsilon, float offset) {
  const float factor = 1.0f / sqrtf(*squares.row(blockIdx.x) / width + epsilon);
  T* row = x.row(blockIdx.x);
  for (int i = static_cast<int>(threadIdx.x); i < cols; i += static_cast<int>(blockDim.x))
    row[i] = fromFloat<T>(toFloat(row[i]) * factor * (weight[i] + offset));
}

// Whole warps, enough for one access each, 1024 at most.
dim3 threadsFor(int64_t cols, int perThread) {
  const int64_t wanted = (cols + perThread - 1) / perThread;
  return dim3(static_cast<unsigned>(wanted >= 1024 ? 1024 : (wanted + kWarp - 1) / kWarp * kWarp));
}

template <bool kAdd>
void launchRmsNorm(Stream stream, TensorView out, TensorView in, TensorView delta, const float* weight, double epsilon,
                   double offset) {
  if (out.rows == 0) return;
  withActivationType(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto cols = static_cast<int>(out.cols);
    const dim3 grid(static_cast<unsigned>(out.rows));
    const bool wide = isWide<T>(out, cols) && isWide<T>(in, cols) && (!kAdd || isWide<T>(delta, cols)) &&
                      reinterpret_cast<uintptr_t>(weight) % 16 == 0;
    if (wide) {
      launchKernel(rmsNormKernel<T, kWide<T>, kAdd>, grid, threadsFor(cols, kWide<T>), 0, stream, rowsOf<T>(out), rowsOf<T>(in),
                   rowsOf<T>(delta), weight, cols, static_cast<float>(epsilon), static_cast<float>(offset));
    } else {
      launchKernel(rmsNormKernel<T, 1, kAdd>, grid, threadsFor(cols, 1), 0, stream, rowsOf<T>(out), rowsOf<T>(in),
                   rowsOf<T>(delta), weight, cols, static_cast<float>(epsilon), static_cast<float>(offset));
    }
  });
}

}  // namespace

void rmsNorm(Stream stream, TensorView out, TensorView in, const float* weight, double epsilon, double offset) {
  launchRmsNorm<false>(stream, out, in, TensorView(), weight, epsilon, offset);
}

void addRmsNorm(Stream stream, TensorView out, TensorView residual, TensorView delta, const float* weight, double epsilon,
                double offset) {
  launchRmsNorm<true>(stream, out, residual, delta, weight, epsilon, offset);
}

void layerNorm(Stream stream, TensorView out, TensorView in, const float* weight, const float* bias, double epsilon) {
  if (out.rows == 0) return;
  withActivationType(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    launchKernel(layerNormKernel<T>, dim3(static_cast<unsigned>(out.rows)), threadsFor(out.cols, 4), 0, stream, rowsOf<T>(out),
                 rowsOf<T>(in), weight, bias, static_cast<int>(out.cols), static_cast<float>(epsilon));
  });
}

void headRmsNorm(Stream stream, TensorView x, int64_t headDim, const float* weight, double epsilon, double offset) {
  if (x.rows == 0) return;
  withActivationType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t heads = x.cols / headDim;
    launchKernel(headRmsNormKernel<T>, dim3(blocksFor(x.rows * heads, kHeadsPerBlock)), dim3(kWarp * kHeadsPerBlock), 0, stream,
                 rowsOf<T>(x), x.rows, static_cast<int>(heads), static_cast<int>(headDim), weight, static_cast<float>(epsilon),
                 static_cast<float>(offset));
  });
}

void rowSquareSum(Stream stream, TensorView squares, TensorView x) {
  if (x.rows == 0) return;
  withActivationType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    launchKernel(rowSquareSumKernel<T>, dim3(static_cast<unsigned>(x.rows)), threadsFor(x.cols, 4), 0, stream,
                 rowsOf<float>(squares), rowsOf<const T>(x), static_cast<int>(x.cols));
  });
}

void normBySquareSum(Stream stream, TensorView x, TensorView squares, int64_t width, const float* weight, double epsilon,
                     double offset) {
  if (x.rows == 0) return;
  withActivationType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    launchKernel(normBySquareSumKernel<T>, dim3(static_cast<unsigned>(x.rows)), threadsFor(x.cols, 4), 0, stream, rowsOf<T>(x),
                 rowsOf<const float>(squares), static_cast<int>(x.cols), static_cast<float>(width), weight,
                 static_cast<float>(epsilon), static_cast<float>(offset));
  });
}

}  // namespace headroom::engine::cuda
