// SPDX-License-Identifier: Apache-2.0
// Linear kernels with float activations: weights become floats on the way, sums are fused multiply-adds in order of the input.
#include "engine/device/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/float_linear.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/linear_kernels.h"

#include <algorithm>
#include <array>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace headroom::engine::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using F = hn::CappedTag<float, kGroupRows>;
using U = hn::RebindToUnsigned<F>;
using I = hn::RebindToSigned<F>;
using H = hn::Rebind<hwy::float16_t, F>;
using U16 = hn::Rebind<uint16_t, F>;
using V = hn::Vec<F>;
constexpr int kLanes = static_cast<int>(MaxLanes(F()));
constexpr int kParts = static_cast<int>(kGroupRows) / kLanes;  // vectors that hold a group's rows

#if HWY_TARGET == HWY_AVX3
constexpr int kWidths[] = {1, 2, 4, 8, 12};
#elif HWY_TARGET == HWY_AVX2
constexpr int kWidths[] = {1, 2, 4};
#else
constexpr int kWidths[] = {1, 4};
#endif
constexpr size_t kWidthCount = sizeof kWidths / sizeof kWidths[0];

// Some rows of a group: `lane` is the first of kLanes rows.
struct Column {
  const uint8_t* group;
  int lane;
};

template <int R, int T>
HWY_INLINE void step(V (&sums)[R][T], const V (&weights)[R], const float* activations) {
  const F d;
  for (int t = 0; t < T; ++t) {
    const V a = hn::Set(d, activations[t]);
    for (int r = 0; r < R; ++r) sums[r][t] = hn::MulAdd(weights[r], a, sums[r][t]);
  }
}

HWY_INLINE V halves(const uint8_t* from) {
  return hn::PromoteTo(F(), hn::LoadU(H(), reinterpret_cast<const hwy::float16_t*>(from)));
}
HWY_INLINE hn::Vec<U> words(const uint8_t* from) { return hn::LoadU(U(), reinterpret_cast<const uint32_t*>(from)); }

// Exact for Q8_0 and Q4_0: scale * (q - zero) has no more bits than a float.
HWY_INLINE V weigh(hn::Vec<U> q, V scale, V offset) { return hn::MulAdd(scale, hn::ConvertTo(F(), hn::BitCast(I(), q)), offset); }

template <DType kType, int R, int T>
HWY_INLINE void sumColumns(const Column (&columns)[R], int64_t in, const float* activations, V (&sums)[R][T]) {
  const F d;
  const U du;
  V w[R];
  if constexpr (kType == DType::F32) {
    for (int64_t k = 0; k < in; ++k) {
      for (int r = 0; r < R; ++r)
        w[r] = hn::LoadU(d, reinterpret_cast<const float*>(columns[r].group + k * 64) + columns[r].lane);
      step(sums, w, activations + k * T);
    }
  } else if constexpr (kType == DType::F16) {
    for (int64_t k = 0; k < in; ++k) {
      for (int r = 0; r < R; ++r) w[r] = halves(columns[r].group + k * 32 + columns[r].lane * 2);
      step(sums, w, activations + k * T);
    }
  } else if constexpr (kType == DType::BF16) {
    for (int64_t pair = 0; pair < in / 2; ++pair) {
      V odd[R];
      for (int r = 0; r < R; ++r) {
        const auto both = words(columns[r].group + pair * 64 + columns[r].lane * 4);
        w[r] = hn::BitCast(d, hn::ShiftLeft<16>(both));
        odd[r] = hn::BitCast(d, hn::And(both, hn::Set(du, 0xffff0000u)));
      }
      step(sums, w, activations + 2 * pair * T);
      step(sums, odd, activations + (2 * pair + 1) * T);
    }
    if (in % 2) {
      for (int r = 0; r < R; ++r) {
        const auto bits = hn::LoadU(U16(), reinterpret_cast<const uint16_t*>(columns[r].group + in / 2 * 64) + columns[r].lane);
        w[r] = hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
      }
      step(sums, w, activations + (in - 1) * T);
    }
  } else {
    constexpr int kWords = kType == DType::Q8_0 ? 8 : 4;
    const int64_t blocks = in / 32;
    const auto mask = hn::Set(du, kType == DType::Q8_0 ? 255u : 15u);
    for (int64_t block = 0; block < blocks; ++block, activations += 32 * T) {
      V scale[R], offset[R];
      for (int r = 0; r < R; ++r) {
        const uint8_t* scales =
            columns[r].group + blocks * kWords * 64 + block * (kType == DType::Q4_1 ? 64 : 32) + columns[r].lane * 2;
        scale[r] = halves(scales);
        if constexpr (kType == DType::Q4_1) {
          offset[r] = halves(scales + 32);
        } else {
          offset[r] = hn::Mul(scale[r], hn::Set(d, kType == DType::Q8_0 ? -128.0f : -8.0f));
        }
      }
      for (int word = 0; word < kWords; ++word) {
        hn::Vec<U> bits[R];
        for (int r = 0; r < R; ++r) bits[r] = words(columns[r].group + (block * kWords + word) * 64 + columns[r].lane * 4);
        for (int i = 0; i < 4; ++i) {
          for (int r = 0; r < R; ++r) w[r] = weigh(hn::And(bits[r], mask), scale[r], offset[r]);
          step(sums, w, activations + (4 * word + i) * T);
          if constexpr (kType != DType::Q8_0) {
            for (int r = 0; r < R; ++r) {
              bits[r] = hn::ShiftRight<4>(bits[r]);
              w[r] = weigh(hn::And(bits[r], mask), scale[r], offset[r]);
              bits[r] = hn::ShiftRight<4>(bits[r]);
            }
            step(sums, w, activations + (16 + 4 * word + i) * T);
          } else {
            for (int r = 0; r < R; ++r) bits[r] = hn::ShiftRight<8>(bits[r]);
          }
        }
      }
    }
  }
}

template <DType kType, int R, int T>
HWY_NOINLINE void runColumns(const LinearTile& tile, int64_t first) {
  const F d;
  Column columns[R];
  V sums[R][T];
  for (int r = 0; r < R; ++r) {
    const int64_t column = first + r;
    columns[r] = {reinterpret_cast<const uint8_t*>(tile.groups) + column / kParts * tile.groupBytes,
                  static_cast<int>(column % kParts) * kLanes};
    for (int t = 0; t < T; ++t) sums[r][t] = hn::Zero(d);
  }
  sumColumns<kType, R, T>(columns, tile.in, static_cast<const float*>(tile.activations), sums);
  for (int r = 0; r < R; ++r) {
    const int64_t row = (first + r) * kLanes;
    const V bias = tile.bias ? hn::LoadU(d, tile.bias + row) : hn::Zero(d);
    for (int t = 0; t < T; ++t)
      if (t < tile.tokens) hn::StoreU(hn::Add(sums[r][t], bias), d, tile.out + t * tile.outStride + row);
  }
}

// Quantized rows take one vector at a time: making floats of them keeps enough work in flight.
template <DType kType, int T>
void kernel(const LinearTile& tile) {
  constexpr bool kQuantized = kType != DType::F32 && kType != DType::F16 && kType != DType::BF16;
  constexpr int R = kQuantized ? 1 : T <= 2 ? 4 : 2;
  const int64_t columns = tile.groupCount * kParts;
  int64_t column = 0;
  for (; column + R <= columns; column += R) runColumns<kType, R, T>(tile, column);
  if constexpr (R > 1)
    for (; column < columns; ++column) runColumns<kType, 1, T>(tile, column);
}

template <DType kType>
LinearKernel forWidth(size_t width) {
  const auto table = []<size_t... index>(std::index_sequence<index...>) {
    return std::array<LinearKernel, kWidthCount>{kernel<kType, kWidths[index]>...};
  }
  (std::make_index_sequence<kWidthCount>());
  return table[width];
}

LinearKernel find(DType dtype, size_t width) {
  switch (dtype) {
    case DType::F32:
      return forWidth<DType::F32>(width);
    case DType::F16:
      return forWidth<DType::F16>(width);
    case DType::BF16:
      return forWidth<DType::BF16>(width);
    case DType::Q8_0:
      return forWidth<DType::Q8_0>(width);
    case DType::Q4_0:
      return forWidth<DType::Q4_0>(width);
    case DType::Q4_1:
      return forWidth<DType::Q4_1>(width);
    default:
      return nullptr;
  }
}

int64_t tokenBytes(int64_t in) { return in * static_cast<int64_t>(sizeof(float)); }

void fill(const float* rows, int64_t stride, int64_t tokens, int64_t in, int width, void* tile) {
  constexpr int64_t kStretch = 64;  // of the input at once: what is written stays in the nearest cache
  auto* to = static_cast<float*>(tile);
  for (int64_t begin = 0; begin < in; begin += kStretch) {
    const int64_t end = std::min(in, begin + kStretch);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t k = begin; k < end; ++k) to[k * width + t] = rows[t * stride + k];
    for (int64_t t = tokens; t < width; ++t)
      for (int64_t k = begin; k < end; ++k) to[k * width + t] = 0.0f;
  }
}

}  // namespace

const LinearFamily& family() {
  static const LinearFamily family = {kWidths, find, tokenBytes, fill};
  return family;
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom::engine::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom::engine::cpu {
const LinearFamily& floatFamily(CpuLevel level) { HEADROOM_SELECT(family) }
}  // namespace headroom::engine::cpu
#endif
