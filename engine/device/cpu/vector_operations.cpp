// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/vector_operations.h"

#include "engine/device/cpu/vector_targets.h"

#include <cmath>
#include <numbers>

// clang-format off: this file is included again for each target, then what depends on the target
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/vector_operations.cpp"
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
constexpr int64_t kLanes = static_cast<int64_t>(MaxLanes(F()));

// The last, partial vector of a row goes through a padded copy, so that every element is computed alike.
struct Padded {
  HWY_ALIGN float values[16] = {};
  V load(const float* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values[i] = from[i];
    return hn::Load(F(), values);
  }
  void store(V x, float* to, int64_t count) {
    hn::Store(x, F(), values);
    for (int64_t i = 0; i < count; ++i) to[i] = values[i];
  }
};

// out = function(x), or function(x, y).
template <class Function>
HWY_INLINE void map(float* out, const float* x, int64_t count, const Function& function) {
  const F d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(function(hn::LoadU(d, x + i)), d, out + i);
  if (i < count) {
    Padded part;
    part.store(function(part.load(x + i, count - i)), out + i, count - i);
  }
}
template <class Function>
HWY_INLINE void map(float* out, const float* x, const float* y, int64_t count, const Function& function) {
  const F d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(function(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, out + i);
  if (i < count) {
    Padded a, b;
    a.store(function(a.load(x + i, count - i), b.load(y + i, count - i)), out + i, count - i);
  }
}

void rmsNorm(float* out, const float* in, const float* weight, int64_t count, double epsilon, double offset) {
  const F d;
  V squares = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V x = hn::LoadU(d, in + i);
    squares = hn::MulAdd(x, x, squares);
  }
  if (i < count) {
    Padded part;
    const V x = part.load(in + i, count - i);
    squares = hn::MulAdd(x, x, squares);
  }
  const double mean = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, squares))) / static_cast<double>(count);
  const V factor = hn::Set(d, static_cast<float>(1.0 / std::sqrt(mean + epsilon))),
          shift = hn::Set(d, static_cast<float>(offset));
  map(out, in, weight, count, [&](V x, V w) HWY_ATTR { return hn::Mul(hn::Mul(x, factor), hn::Add(w, shift)); });
}

void add(float* x, const float* delta, int64_t count) {
  map(x, x, delta, count, [](V a, V b) HWY_ATTR { return hn::Add(a, b); });
}

void scale(float* x, float factor, int64_t count) {
  const V factors = hn::Set(F(), factor);
  map(x, x, count, [&](V a) HWY_ATTR { return hn::Mul(a, factors); });
}

// x / (1 + exp(-u)). Highway's Exp is not made for results beyond the range of floats.
HWY_INLINE V timesSigmoid(V x, V u) {
  const F d;
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), hn::Exp(d, hn::Min(hn::Neg(u), hn::Set(d, 87.0f)))));
}
HWY_INLINE V silu(V x) { return timesSigmoid(x, x); }
// x / 2 * (1 + tanh(u)) = x * sigmoid(2 u), u = sqrt(2 / pi) * (x + 0.044715 x^3); https://arxiv.org/abs/1606.08415
HWY_INLINE V geluTanh(V x) {
  const F d;
  return timesSigmoid(
      x, hn::Mul(x, hn::MulAdd(hn::Mul(x, x), hn::Set(d, 2.0f * 0.79788456f * 0.044715f), hn::Set(d, 2.0f * 0.79788456f))));
}
HWY_INLINE V relu2(V x) {
  const V positive = hn::Max(x, hn::Zero(F()));
  return hn::Mul(positive, positive);
}

void activate(float* out, const float* x, const float* up, int64_t count, Activation activation) {
  switch (activation) {
    case Activation::Silu:
      if (up) return map(out, x, up, count, [](V a, V b) HWY_ATTR { return hn::Mul(silu(a), b); });
      return map(out, x, count, [](V a) HWY_ATTR { return silu(a); });
    case Activation::GeluTanh:
      if (up) return map(out, x, up, count, [](V a, V b) HWY_ATTR { return hn::Mul(geluTanh(a), b); });
      return map(out, x, count, [](V a) HWY_ATTR { return geluTanh(a); });
    case Activation::Relu2:
      if (up) return map(out, x, up, count, [](V a, V b) HWY_ATTR { return hn::Mul(relu2(a), b); });
      return map(out, x, count, [](V a) HWY_ATTR { return relu2(a); });
    case Activation::Gelu:
      for (int64_t i = 0; i < count; ++i)
        out[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * (std::numbers::sqrt2_v<float> / 2))) * (up ? up[i] : 1.0f);
      return;
  }
}

void softcap(float* x, float cap, int64_t count) {
  const F d;
  const V limit = hn::Set(d, cap), inverse = hn::Set(d, 1.0f / cap);
  map(x, x, count, [&](V a) HWY_ATTR { return hn::Mul(limit, hn::Tanh(F(), hn::Mul(a, inverse))); });
}

void rotate(float* a, float* b, const float* cosines, const float* sines, int64_t count) {
  const F d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V x = hn::LoadU(d, a + i), y = hn::LoadU(d, b + i), c = hn::LoadU(d, cosines + i), s = hn::LoadU(d, sines + i);
    hn::StoreU(hn::Sub(hn::Mul(x, c), hn::Mul(y, s)), d, a + i);
    hn::StoreU(hn::MulAdd(y, c, hn::Mul(x, s)), d, b + i);
  }
  for (; i < count; ++i) {
    const float x = a[i], y = b[i];
    a[i] = x * cosines[i] - y * sines[i];
    b[i] = y * cosines[i] + x * sines[i];
  }
}

}  // namespace

const VectorOperations& operations() {
  static const VectorOperations operations = {rmsNorm, add, scale, activate, softcap, rotate};
  return operations;
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom::engine::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom::engine::cpu {
const VectorOperations& vectorOperations(CpuLevel level) { HEADROOM_SELECT(operations) }
}  // namespace headroom::engine::cpu
#endif
