// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/attention_kernels.h"

#include "engine/device/cpu/block_formats.h"
#include "engine/device/cpu/vector_targets.h"

#include <cmath>
#include <limits>

// clang-format off: this file is included again for each target, then what depends on the target
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/attention_kernels.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace headroom::engine::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using F = hn::CappedTag<float, 16>;
using V = hn::Vec<F>;
constexpr int kLanes = static_cast<int>(MaxLanes(F()));
constexpr int kColumns = kLanes == 16 ? 4 : 2;  // vectors side by side: with 4 rows they fill the registers

void copyRows(DType dtype, const void* from, int64_t fromStride, int64_t rows, int64_t count, float* to, int64_t toStride) {
  const F d;
  for (int64_t row = 0; row < rows; ++row, to += toStride) {
    int64_t i = 0;
    if (dtype == DType::F32) {
      const float* x = static_cast<const float*>(from) + row * fromStride;
      for (; i + kLanes <= count; i += kLanes) hn::StoreU(hn::LoadU(d, x + i), d, to + i);
      for (; i < count; ++i) to[i] = x[i];
    } else if (dtype == DType::F16) {
      const hn::Rebind<hwy::float16_t, F> dh;
      const uint16_t* x = static_cast<const uint16_t*>(from) + row * fromStride;
      for (; i + kLanes <= count; i += kLanes)
        hn::StoreU(hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(x + i))), d, to + i);
      for (; i < count; ++i) to[i] = f16ToFloat(x[i]);
    } else if (dtype == DType::F8E4M3 || dtype == DType::F8E5M2) {
      // Shifted into half precision; E4M3's exponents are 8 smaller there.
      const hn::Rebind<hwy::float16_t, F> dh;
      const hn::Rebind<uint16_t, F> du16;
      const hn::Rebind<uint8_t, F> du8;
      const bool e4m3 = dtype == DType::F8E4M3;
      const V factor = hn::Set(d, e4m3 ? 256.0f : 1.0f);
      const uint8_t* x = static_cast<const uint8_t*>(from) + row * fromStride;
      for (; i + kLanes <= count; i += kLanes) {
        auto bits = hn::PromoteTo(du16, hn::LoadU(du8, x + i));
        bits = e4m3 ? hn::Or(hn::ShiftLeft<8>(hn::And(bits, hn::Set(du16, 0x80))),
                             hn::ShiftLeft<7>(hn::And(bits, hn::Set(du16, 0x7f))))
                    : hn::ShiftLeft<8>(bits);
        hn::StoreU(hn::Mul(hn::PromoteTo(d, hn::BitCast(dh, bits)), factor), d, to + i);
      }
      for (; i < count; ++i) to[i] = e4m3 ? e4m3ToFloat(x[i]) : e5m2ToFloat(x[i]);
    } else if (dtype == DType::I8) {
      const hn::Rebind<int8_t, F> di8;
      const hn::RebindToSigned<F> di32;
      const int8_t* x = static_cast<const int8_t*>(from) + row * fromStride;
      for (; i + kLanes <= count; i += kLanes)
        hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(di32, hn::LoadU(di8, x + i))), d, to + i);
      for (; i < count; ++i) to[i] = static_cast<float>(x[i]);
    } else {
      const hn::Rebind<uint16_t, F> du16;
      const hn::RebindToUnsigned<F> du;
      const uint16_t* x = static_cast<const uint16_t*>(from) + row * fromStride;
      for (; i + kLanes <= count; i += kLanes)
        hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(du16, x + i)))), d, to + i);
      for (; i < count; ++i) to[i] = bf16ToFloat(x[i]);
    }
  }
}

void scaleColumns(float* x, int64_t stride, int64_t rows, int64_t columns, const float* factors) {
  const F d;
  for (int64_t row = 0; row < rows; ++row, x += stride)
    for (int64_t i = 0; i < columns; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::LoadU(d, factors + i)), d, x + i);
}

template <int R, int C>
HWY_INLINE void multiplyTile(const float* a, int64_t aStride, int64_t depth, const float* b, int64_t bStride, float* c,
                             int64_t cStride, const float* factors) {
  const F d;
  V sums[R][C];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < C; ++j)
      sums[r][j] = factors ? hn::Mul(hn::LoadU(d, c + r * cStride + j * kLanes), hn::Set(d, factors[r])) : hn::Zero(d);
  for (int64_t k = 0; k < depth; ++k, b += bStride) {
    V x[C];
    for (int j = 0; j < C; ++j) x[j] = hn::LoadU(d, b + j * kLanes);
    for (int r = 0; r < R; ++r) {
      const V factor = hn::Set(d, a[r * aStride + k]);
      for (int j = 0; j < C; ++j) sums[r][j] = hn::MulAdd(factor, x[j], sums[r][j]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < C; ++j) hn::StoreU(sums[r][j], d, c + r * cStride + j * kLanes);
}

template <int R>
void multiplyRows(const float* a, int64_t aStride, int64_t depth, const float* b, int64_t bStride, int64_t columns, float* c,
                  int64_t cStride, const float* factors) {
  int64_t column = 0;
  for (; column + kColumns * kLanes <= columns; column += kColumns * kLanes)
    multiplyTile<R, kColumns>(a, aStride, depth, b + column, bStride, c + column, cStride, factors);
  for (; column < columns; column += kLanes)
    multiplyTile<R, 1>(a, aStride, depth, b + column, bStride, c + column, cStride, factors);
}

void multiply(const float* a, int64_t aStride, int64_t rows, int64_t depth, const float* b, int64_t bStride, int64_t columns,
              float* c, int64_t cStride, const float* factors) {
  while (rows > 0) {
    const int64_t step = rows >= 4 ? 4 : rows;
    switch (step) {
      case 4:
        multiplyRows<4>(a, aStride, depth, b, bStride, columns, c, cStride, factors);
        break;
      case 3:
        multiplyRows<3>(a, aStride, depth, b, bStride, columns, c, cStride, factors);
        break;
      case 2:
        multiplyRows<2>(a, aStride, depth, b, bStride, columns, c, cStride, factors);
        break;
      default:
        multiplyRows<1>(a, aStride, depth, b, bStride, columns, c, cStride, factors);
        break;
    }
    a += step * aStride;
    c += step * cStride;
    if (factors) factors += step;
    rows -= step;
  }
}

void capScores(float* scores, int64_t columns, float softcap) {
  const F d;
  const V cap = hn::Set(d, softcap), inverse = hn::Set(d, 1.0f / softcap);
  for (int64_t i = 0; i < columns; i += kLanes)
    hn::StoreU(hn::Mul(cap, hn::Tanh(d, hn::Mul(hn::LoadU(d, scores + i), inverse))), d, scores + i);
}

// exp(x) for x <= 0, as 2^n * e^r with |r| <= ln 2 / 2; Taylor's first terms leave a relative error below 2e-7. What is smaller
// than the least normal float becomes 0.
HWY_INLINE V expOfNegative(V x) {
  const F d;
  const hn::RebindToSigned<F> di;
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x);  // ln 2 in two parts, the first with few bits
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
  V y = hn::MulAdd(r, hn::Set(d, 1.0f / 720), hn::Set(d, 1.0f / 120));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0f / 24));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0f / 6));
  y = hn::MulAdd(y, r, hn::Set(d, 0.5f));
  y = hn::MulAdd(hn::Mul(r, r), y, hn::Add(r, hn::Set(d, 1.0f)));
  const V scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, y), hn::ShiftLeft<23>(hn::ConvertTo(di, n))));
  return hn::IfThenElseZero(hn::Gt(x, hn::Set(d, -87.0f)), scaled);
}

float softmaxStep(float* scores, int64_t begin, int64_t end, int64_t columns, float softcap, float& top, float& sum) {
  const F d;
  if (begin >= end) {
    for (int64_t i = 0; i < columns; i += kLanes) hn::StoreU(hn::Zero(d), d, scores + i);
    return 1.0f;
  }
  if (softcap > 0) capScores(scores, columns, softcap);
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  HWY_ALIGN static constexpr float kLaneNumbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const V lanes = hn::LoadU(d, kLaneNumbers);
  const V first = hn::Set(d, static_cast<float>(begin)), past = hn::Set(d, static_cast<float>(end));
  V highest = lowest;
  for (int64_t i = 0; i < columns; i += kLanes) {
    V x = hn::LoadU(d, scores + i);
    if (i < begin || i + kLanes > end) {
      const V index = hn::Add(lanes, hn::Set(d, static_cast<float>(i)));
      x = hn::IfThenElse(hn::And(hn::Ge(index, first), hn::Lt(index, past)), x, lowest);
    }
    highest = hn::Max(highest, x);
    hn::StoreU(x, d, scores + i);
  }
  const float newTop = std::max(top, hn::GetLane(hn::MaxOfLanes(d, highest)));
  const V shift = hn::Set(d, newTop);
  V total = hn::Zero(d);
  for (int64_t i = 0; i < columns; i += kLanes) {
    const V x = expOfNegative(hn::Sub(hn::LoadU(d, scores + i), shift));
    total = hn::Add(total, x);
    hn::StoreU(x, d, scores + i);
  }
  const float factor = std::exp(top - newTop);
  sum = sum * factor + hn::GetLane(hn::SumOfLanes(d, total));
  top = newTop;
  return factor;
}

}  // namespace

const AttentionKernels& kernels() {
  static const AttentionKernels kernels = {copyRows, scaleColumns, multiply, softmaxStep};
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom::engine::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom::engine::cpu {
const AttentionKernels& attentionKernels(CpuLevel level) { HEADROOM_SELECT(kernels) }
}  // namespace headroom::engine::cpu
#endif
