// SPDX-License-Identifier: Apache-2.0
// Linear kernels of blocks of 32: whole-number dot products of weights (unsigned bytes) and activations rounded to signed bytes,
// then scale * scale. Included once per instruction set, inside its target region and an unnamed namespace, after these are
// defined:
//   kLanes         rows a vector holds (8 or 16)
//   kWidths        tile widths, ascending
//   Floats, Ints   vectors of kLanes floats / 32-bit integers, and on them the functions of int8_vectors_*-inl.h
//   dotWords<kTop, kCount>(start, weights, activations): start + the products of 4 * kCount weights (at most kTop) of each row with the same
//                  activations; with kTop 255 the weights are value + 128 and `start` is their sum's debt
// The including file has included the headers that this one uses (int8_activations.h among them).

#include "engine/device/cpu/block_decoders-inl.h"

template <DType kType, int T>
void int8Kernel(const LinearTile& tile) {
  constexpr int kVectors = kType == DType::Q8_0 ? 8 : 4;
  const int64_t blocks = tile.in / 32;
  for (int64_t group = 0; group < tile.groupCount; ++group) {
    const auto* begin = reinterpret_cast<const uint8_t*>(tile.groups) + group * tile.groupBytes;
    for (int lane = 0; lane < kGroupRows; lane += kLanes) {
      const uint8_t* quants = begin + lane * 4;
      const uint8_t* scales = begin + blocks * kVectors * 64 + lane * 2;
      const auto* block = static_cast<const uint8_t*>(tile.activations);
      Floats sums[T];
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) sums[t] = zero();
      for (int64_t b = 0; b < blocks; ++b) {
        for (int i = 0; i < kVectors; ++i)
          _mm_prefetch(reinterpret_cast<const char*>(quants + kPrefetchBytes + i * 64), _MM_HINT_T0);
        Ints weights[8];
        for (int i = 0; i < kVectors; ++i) {
          weights[i] = load(quants + i * 64);
          if constexpr (kType != DType::Q8_0) {
            weights[i + 4] = highNibbles(weights[i]);
            weights[i] = lowNibbles(weights[i]);
          }
        }
        const Floats scale = halves(scales);
        const Floats minimum = kType == DType::Q4_1 ? halves(scales + 32) : zero();
        const Int8Block<T> inputs(block);
#pragma GCC unroll 16  // else the sums live in memory
        for (int t = 0; t < T; ++t) {
          Ints start;
          if constexpr (kType == DType::Q8_0) {
            start = broadcast(inputs.minus128[t]);
          } else if constexpr (kType == DType::Q4_0) {
            start = broadcast(inputs.minus8[t]);
          } else {
            start = broadcast(int32_t{0});
          }
          const Ints dot = dotWords<kType == DType::Q8_0 ? 255 : 15, 8>(start, weights, inputs.quants + 32 * t);
          sums[t] = fma(toFloats(dot), multiply(scale, broadcast(inputs.scale[t])), sums[t]);
          if constexpr (kType == DType::Q4_1) sums[t] = fma(minimum, broadcast(inputs.sum[t]), sums[t]);
        }
        quants += kVectors * 64;
        scales += kType == DType::Q4_1 ? 64 : 32;
        block += T * kInt8BlockBytes;
      }
      const int64_t row = group * kGroupRows + lane;
      const Floats bias = tile.bias ? loadFloats(tile.bias + row) : zero();
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t)
        if (t < tile.tokens) store(tile.out + t * tile.outStride + row, add(sums[t], bias));
    }
  }
}

template <DType kType>
LinearKernel int8ForWidth(size_t width) {
  const auto table = []<size_t... index>(std::index_sequence<index...>) {
    return std::array<LinearKernel, sizeof...(index)>{int8Kernel<kType, kWidths[index]>...};
  }
  (std::make_index_sequence<std::size(kWidths)>());
  return table[width];
}

LinearKernel findInt8(DType dtype, size_t width) {
  switch (dtype) {
    case DType::Q8_0:
      return int8ForWidth<DType::Q8_0>(width);
    case DType::Q4_0:
      return int8ForWidth<DType::Q4_0>(width);
    case DType::Q4_1:
      return int8ForWidth<DType::Q4_1>(width);
    default:
      return forBlockType<LinearKernel>(dtype, [&]<DType kType>() { return blockKernelForWidth<kType>(width); });
  }
}
