// SPDX-License-Identifier: Apache-2.0
// Element-wise operations and norms of one row of floats.
#pragma once

#include "core/model/model_config.h"
#include "engine/device/cpu/cpu_backend.h"

namespace headroom::engine::cpu {

struct VectorOperations {
  // out = in / sqrt(mean(in^2) + epsilon) * (weight + offset). In place allowed.
  void (*rmsNorm)(float* out, const float* in, const float* weight, int64_t count, double epsilon, double offset);
  void (*add)(float* x, const float* delta, int64_t count);
  void (*scale)(float* x, float factor, int64_t count);
  // x = activation(x) * up, or activation(x) where up is null; out may be x.
  void (*activate)(float* out, const float* x, const float* up, int64_t count, Activation activation);
  void (*softcap)(float* x, float cap, int64_t count);
  // Rotates pairs (a[i], b[i]) by the angles' cosines and sines.
  void (*rotate)(float* a, float* b, const float* cosines, const float* sines, int64_t count);
};

const VectorOperations& vectorOperations(CpuLevel level);

}  // namespace headroom::engine::cpu
