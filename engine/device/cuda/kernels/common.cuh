// SPDX-License-Identifier: Apache-2.0
// What all kernel files share: rows of a view on the device, 16-byte accesses as floats, and the step from a run-time element
// type to a template parameter.
#pragma once

#include "engine/device/cuda/kernels/device_api.cuh"
#include "engine/device/tensor.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace headroom::engine::cuda {

// core/result.h's expects() without its headers, which nvcc takes seconds to read for each file.
inline void kernelExpects(bool condition, const char* why) {
  if (condition) return;
  std::fprintf(stderr, "headroom: internal error: %s\n", why);
  std::abort();
}

inline constexpr int kWarp = 32;

// A TensorView as kernels take it.
template <class T>
struct Rows {
  T* data;
  int64_t stride;
  __device__ T* row(int64_t index) const { return data + index * stride; }
};

template <class T>
Rows<T> rowsOf(const TensorView& view) {
  return {static_cast<T*>(view.data), view.stride};
}

// N elements that move with one access.
template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T values[N];
};

template <int N, class T>
__device__ inline void loadFloats(const T* from, float (&to)[N]) {
  const auto vector = *reinterpret_cast<const Vector<T, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = toFloat(vector.values[i]);
}

template <int N, class T>
__device__ inline void storeFloats(const float (&from)[N], T* to) {
  Vector<T, N> vector;
#pragma unroll
  for (int i = 0; i < N; ++i) vector.values[i] = fromFloat<T>(from[i]);
  *reinterpret_cast<Vector<T, N>*>(to) = vector;
}

// Elements of T in 16 bytes.
template <class T>
inline constexpr int kWide = 16 / static_cast<int>(sizeof(T));

// True where every row of `cols` elements may be read in pieces of 16 bytes.
template <class T>
bool isWide(const TensorView& view, int64_t cols) {
  return reinterpret_cast<uintptr_t>(view.data) % 16 == 0 && view.stride % kWide<T> == 0 && cols % kWide<T> == 0;
}

template <class T>
struct TypeTag {
  using type = T;
};

// Calls body(TypeTag<T>) for the activation type of a view.
template <class Body>
void withActivationType(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::F32:
      return body(TypeTag<float>());
    case DType::F16:
      return body(TypeTag<Half>());
    case DType::BF16:
      return body(TypeTag<BFloat16>());
    default:
      kernelExpects(false, "a CUDA kernel was given activations that are not F32, F16 or BF16");
  }
}

inline unsigned blocksFor(int64_t items, int64_t perBlock) { return static_cast<unsigned>((items + perBlock - 1) / perBlock); }

}  // namespace headroom::engine::cuda
