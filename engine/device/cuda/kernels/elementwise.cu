// SPDX-License-Identifier: Apache-2.0
// Element-wise operations: a thread takes 16 bytes of a row (one element where rows are not aligned), a block a piece of one row.
// Roofline: bytes; each operation reads its inputs and writes its output once, so the copy bandwidth is the limit from about 1
// MiB up, the start of the kernel (2 to 3 us) below. Test: tests/engine/cuda_kernels_elementwise_test.cpp.
#include "engine/device/cuda/kernels/elementwise.h"

#include "engine/device/cuda/kernels/common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr int kThreads = 128;

// The piece of a row that this thread holds; begin >= cols where it holds nothing.
struct Piece {
  int64_t row;
  int begin;
};

template <int N>
__device__ Piece pieceOf(int blocksPerRow) {
  const auto block = static_cast<int64_t>(blockIdx.x);
  return {block / blocksPerRow, (static_cast<int>(block % blocksPerRow) * kThreads + static_cast<int>(threadIdx.x)) * N};
}

// x / (1 + exp(-u)); exp of large numbers is infinite, which gives the right limit, 0.
__device__ inline float timesSigmoid(float x, float u) { return x / (1.0f + __expf(-u)); }

__device__ inline float activated(float x, KernelActivation activation) {
  switch (activation) {
    case KernelActivation::Silu:
      return timesSigmoid(x, x);
    case KernelActivation::Gelu:
      return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case KernelActivation::GeluTanh:  // x / 2 * (1 + tanh(u)) = x * sigmoid(2 u); https://arxiv.org/abs/1606.08415
      return timesSigmoid(x, 1.5957691f * x * (1.0f + 0.044715f * x * x));
    case KernelActivation::Relu2:
      return x > 0.0f ? x * x : 0.0f;
  }
  return x;
}

// ---- what is computed, as functions of floats

struct GatedActivation {
  KernelActivation activation;
  __device__ float operator()(float gate, float up) const { return activated(gate, activation) * up; }
};
struct ClampedSwiglu {
  float alpha, limit;
  __device__ float operator()(float gate, float up) const {
    const float x = fminf(gate, limit), y = fminf(fmaxf(up, -limit), limit);
    return timesSigmoid(x, alpha * x) * (y + 1.0f);
  }
};
struct Add {
  __device__ float operator()(float x, float delta) const { return x + delta; }
};
struct SigmoidGate {
  __device__ float operator()(float x, float gate) const { return timesSigmoid(x, gate); }
};
struct Activate {
  KernelActivation activation;
  __device__ float operator()(float x) const { return activated(x, activation); }
};
struct Scale {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};
struct Softcap {
  float cap, inverse;
  __device__ float operator()(float x) const { return cap * tanhf(x * inverse); }
};
struct Same {
  __device__ float operator()(float x) const { return x; }
};

// out = function(a, b); b has `bCols` columns: as many as out, or one that serves the row.
template <class T, int N, class Function>
__global__ void binaryKernel(Rows<T> out, Rows<T> a, Rows<T> b, int cols, bool broadcast, int blocksPerRow, Function function) {
  const Piece piece = pieceOf<N>(blocksPerRow);
  if (piece.begin >= cols) return;
  float x[N], y[N];
  loadFloats(a.row(piece.row) + piece.begin, x);
  if (broadcast) {
    const float value = toFloat(*b.row(piece.row));
#pragma unroll
    for (int i = 0; i < N; ++i) y[i] = value;
  } else {
    loadFloats(b.row(piece.row) + piece.begin, y);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = function(x[i], y[i]);
  storeFloats(x, out.row(piece.row) + piece.begin);
}

template <class To, class From, int N, class Function>
__global__ void unaryKernel(Rows<To> out, Rows<From> in, int cols, int blocksPerRow, Function function) {
  const Piece piece = pieceOf<N>(blocksPerRow);
  if (piece.begin >= cols) return;
  float x[N];
  loadFloats(in.row(piece.row) + piece.begin, x);
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = function(x[i]);
  storeFloats(x, out.row(piece.row) + piece.begin);
}

template <class T>
__global__ void addBiasKernel(Rows<T> x, const float* bias, int cols, int blocksPerRow) {
  const Piece piece = pieceOf<1>(blocksPerRow);
  if (piece.begin >= cols) return;
  T* to = x.row(piece.row) + piece.begin;
  *to = fromFloat<T>(toFloat(*to) + bias[piece.begin]);
}

template <class T>
__global__ void scaleByPositionKernel(Rows<T> x, const int* positions, double floorScale, double scale, int cols,
                                      int blocksPerRow) {
  const Piece piece = pieceOf<1>(blocksPerRow);
  if (piece.begin >= cols) return;
  const auto factor = static_cast<float>(1.0 + scale * log(1.0 + floor((positions[piece.row] + 1) / floorScale)));
  T* to = x.row(piece.row) + piece.begin;
  *to = fromFloat<T>(toFloat(*to) * factor);
}

template <class T>
__global__ void copyHeadsKernel(Rows<T> out, int64_t outHead, Rows<const T> in, int64_t inHead, int heads, int width,
                                int64_t items) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (item >= items) return;
  const int64_t token = item / width / heads, head = item / width % heads;
  out.row(token)[head * outHead + item % width] = in.row(token)[head * inHead + item % width];
}

// Row `index[t] - firstIndex` of a table of `tableRows` rows, zeros where that is outside.
template <class To, class From, int N>
__global__ void gatherKernel(Rows<To> out, Rows<From> table, const int* index, int64_t firstIndex, int64_t tableRows, int cols,
                             int blocksPerRow) {
  const Piece piece = pieceOf<N>(blocksPerRow);
  if (piece.begin >= cols) return;
  float x[N] = {};
  const int64_t row = index[piece.row] - firstIndex;
  if (row >= 0 && row < tableRows) loadFloats(table.row(row) + piece.begin, x);
  storeFloats(x, out.row(piece.row) + piece.begin);
}

// Calls launch(grid, cols, blocksPerRow) with a block for each piece of each row.
template <class Launch>
void overRows(const TensorView& view, int perThread, const Launch& launch) {
  if (view.rows == 0 || view.cols == 0) return;
  const unsigned blocksPerRow = blocksFor(view.cols, static_cast<int64_t>(kThreads) * perThread);
  launch(dim3(static_cast<unsigned>(view.rows) * blocksPerRow), static_cast<int>(view.cols), static_cast<int>(blocksPerRow));
}

template <class Function>
void binary(Stream stream, TensorView out, TensorView a, TensorView b, const Function& function) {
  withActivationType(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool broadcast = b.cols == 1 && out.cols != 1;
    const auto launch = [&](auto kernel, int n) {
      overRows(out, n, [&](dim3 grid, int cols, int blocksPerRow) {
        launchKernel(kernel, grid, dim3(kThreads), 0, stream, rowsOf<T>(out), rowsOf<T>(a), rowsOf<T>(b), cols, broadcast,
                     blocksPerRow, function);
      });
    };
    if (isWide<T>(out, out.cols) && isWide<T>(a, out.cols) && (broadcast || isWide<T>(b, out.cols)))
      launch(binaryKernel<T, kWide<T>, Function>, kWide<T>);
    else
      launch(binaryKernel<T, 1, Function>, 1);
  });
}

template <class Function>
void unary(Stream stream, TensorView out, TensorView in, const Function& function) {
  withActivationType(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto launch = [&](auto kernel, int n) {
      overRows(out, n, [&](dim3 grid, int cols, int blocksPerRow) {
        launchKernel(kernel, grid, dim3(kThreads), 0, stream, rowsOf<T>(out), rowsOf<T>(in), cols, blocksPerRow, function);
      });
    };
    if (isWide<T>(out, out.cols) && isWide<T>(in, out.cols))
      launch(unaryKernel<T, T, kWide<T>, Function>, kWide<T>);
    else
      launch(unaryKernel<T, T, 1, Function>, 1);
  });
}

// Elements that both types move in at most 16 bytes.
template <class A, class B>
constexpr int kBothWide = kWide<A> < kWide<B> ? kWide<A> : kWide<B>;

void gather(Stream stream, TensorView out, TensorView table, TensorView index, int64_t firstIndex) {
  withActivationType(out.dtype, [&](auto to) {
    withActivationType(table.dtype, [&](auto from) {
      using To = typename decltype(to)::type;
      using From = typename decltype(from)::type;
      constexpr int kN = kBothWide<To, From>;
      const auto launch = [&](auto kernel, int n) {
        overRows(out, n, [&](dim3 grid, int cols, int blocksPerRow) {
          launchKernel(kernel, grid, dim3(kThreads), 0, stream, rowsOf<To>(out), rowsOf<From>(table),
                       static_cast<const int*>(index.data), firstIndex, table.rows, cols, blocksPerRow);
        });
      };
      if (isWide<To>(out, out.cols) && isWide<From>(table, out.cols))
        launch(gatherKernel<To, From, kN>, kN);
      else
        launch(gatherKernel<To, From, 1>, 1);
    });
  });
}

}  // namespace

void embed(Stream stream, TensorView out, TensorView table, TensorView ids, int64_t firstId) {
  gather(stream, out, table, ids, firstId);
}

void gatherRows(Stream stream, TensorView out, TensorView in, TensorView rows) { gather(stream, out, in, rows, 0); }

void gatedActivation(Stream stream, TensorView out, TensorView gate, TensorView up, KernelActivation activation) {
  binary(stream, out, gate, up, GatedActivation{activation});
}

void clampedSwiglu(Stream stream, TensorView out, TensorView gate, TensorView up, float alpha, float limit) {
  binary(stream, out, gate, up, ClampedSwiglu{alpha, limit});
}

void activate(Stream stream, TensorView x, KernelActivation activation) { unary(stream, x, x, Activate{activation}); }

void add(Stream stream, TensorView x, TensorView delta) { binary(stream, x, x, delta, Add{}); }

void scale(Stream stream, TensorView x, double factor) { unary(stream, x, x, Scale{static_cast<float>(factor)}); }

void softcap(Stream stream, TensorView x, double cap) {
  unary(stream, x, x, Softcap{static_cast<float>(cap), static_cast<float>(1.0 / cap)});
}

void sigmoidGate(Stream stream, TensorView out, TensorView gate) { binary(stream, out, out, gate, SigmoidGate{}); }

void addBias(Stream stream, TensorView x, const float* bias) {
  withActivationType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    overRows(x, 1, [&](dim3 grid, int cols, int blocksPerRow) {
      launchKernel(addBiasKernel<T>, grid, dim3(kThreads), 0, stream, rowsOf<T>(x), bias, cols, blocksPerRow);
    });
  });
}

void scaleByPosition(Stream stream, TensorView x, TensorView positions, double floorScale, double scale) {
  withActivationType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    overRows(x, 1, [&](dim3 grid, int cols, int blocksPerRow) {
      launchKernel(scaleByPositionKernel<T>, grid, dim3(kThreads), 0, stream, rowsOf<T>(x),
                   static_cast<const int*>(positions.data), floorScale, scale, cols, blocksPerRow);
    });
  });
}

void copyHeads(Stream stream, TensorView out, int64_t outHead, TensorView in, int64_t inHead, int64_t heads, int64_t width) {
  const int64_t items = out.rows * heads * width;
  if (items == 0) return;
  withActivationType(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    launchKernel(copyHeadsKernel<T>, dim3(blocksFor(items, kThreads)), dim3(kThreads), 0, stream, rowsOf<T>(out), outHead,
                 rowsOf<const T>(in), inHead, static_cast<int>(heads), static_cast<int>(width), items);
  });
}

void convert(Stream stream, TensorView out, TensorView in) {
  withActivationType(out.dtype, [&](auto to) {
    withActivationType(in.dtype, [&](auto from) {
      using To = typename decltype(to)::type;
      using From = typename decltype(from)::type;
      constexpr int kN = kBothWide<To, From>;
      const auto launch = [&](auto kernel, int n) {
        overRows(out, n, [&](dim3 grid, int cols, int blocksPerRow) {
          launchKernel(kernel, grid, dim3(kThreads), 0, stream, rowsOf<To>(out), rowsOf<From>(in), cols, blocksPerRow, Same{});
        });
      };
      if (isWide<To>(out, out.cols) && isWide<From>(in, out.cols))
        launch(unaryKernel<To, From, kN, Same>, kN);
      else
        launch(unaryKernel<To, From, 1, Same>, 1);
    });
  });
}

}  // namespace headroom::engine::cuda
