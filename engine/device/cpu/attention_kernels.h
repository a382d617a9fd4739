// SPDX-License-Identifier: Apache-2.0
// Inner kernels of attention on small row-major float matrices. A row's result never depends on the rows beside it.
#pragma once

#include "core/model/dtype.h"
#include "engine/device/cpu/cpu_backend.h"

namespace headroom::engine::cpu {

struct AttentionKernels {
  // `rows` rows of `count` F32, F16, BF16, FP8 or I8 elements to floats; strides in elements.
  void (*copyRows)(DType dtype, const void* from, int64_t fromStride, int64_t rows, int64_t count, float* to, int64_t toStride);
  // x (rows, columns): each row times factors (columns), in place. `columns` is a multiple of 16.
  void (*scaleColumns)(float* x, int64_t stride, int64_t rows, int64_t columns, const float* factors);
  // c (rows, columns) = a (rows, depth) · b (depth, columns), plus c's old row r * factors[r] where factors are given. `columns`
  // is a multiple of 16.
  void (*multiply)(const float* a, int64_t aStride, int64_t rows, int64_t depth, const float* b, int64_t bStride, int64_t columns,
                   float* c, int64_t cStride, const float* factors);
  // One step of the online softmax over scores[begin, end): caps them, raises `top` to their maximum, turns them into exp(score -
  // top) and all others of the `columns` (a multiple of 16) into 0, and adds them to `sum`, which is rescaled first. Returns the
  // rescaling factor.
  float (*softmaxStep)(float* scores, int64_t begin, int64_t end, int64_t columns, float softcap, float& top, float& sum);
};

const AttentionKernels& attentionKernels(CpuLevel level);

}  // namespace headroom::engine::cpu
