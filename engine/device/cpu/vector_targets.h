// SPDX-License-Identifier: Apache-2.0
// Which Highway targets the vector kernels are compiled for, and which of them a CpuLevel takes. Include before Highway.
#pragma once

// One target a step is enough: the rest gains these kernels nothing.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)

#include "engine/device/cpu/cpu_backend.h"

#include <hwy/targets.h>

// Body of a function (CpuLevel level) that returns N_<target>::FUNCTION(). Use it outside the target's namespace, inside
// HWY_ONCE.
#if HWY_TARGETS & HWY_AVX3
#define HEADROOM_TRY_AVX3(FUNCTION) \
  if (level >= CpuLevel::Avx512) return N_AVX3::FUNCTION();
#else
#define HEADROOM_TRY_AVX3(FUNCTION)
#endif
#if HWY_TARGETS & HWY_AVX2
#define HEADROOM_TRY_AVX2(FUNCTION) \
  if (level >= CpuLevel::Avx2) return N_AVX2::FUNCTION();
#else
#define HEADROOM_TRY_AVX2(FUNCTION)
#endif
#if HWY_TARGETS & HWY_SSE4
#define HEADROOM_TRY_SSE4(FUNCTION) \
  if (hwy::SupportedTargets() & HWY_SSE4) return N_SSE4::FUNCTION();
#else
#define HEADROOM_TRY_SSE4(FUNCTION)
#endif
#define HEADROOM_SELECT(FUNCTION) \
  HEADROOM_TRY_AVX3(FUNCTION)     \
  HEADROOM_TRY_AVX2(FUNCTION)     \
  HEADROOM_TRY_SSE4(FUNCTION)     \
  static_cast<void>(level);       \
  return HWY_STATIC_DISPATCH(FUNCTION)();
