// SPDX-License-Identifier: Apache-2.0
// Norms. All views of a call have one activation type (F32, F16, BF16); sums and factors are F32.
#pragma once

#include "engine/device/cuda/kernels/kernel_types.h"

namespace headroom::engine::cuda {

// out (tokens, n) = in / sqrt(mean(in^2) + epsilon) * (weight + offset); weight: n floats. In place allowed.
void rmsNorm(Stream stream, TensorView out, TensorView in, const float* weight, double epsilon, double offset);
// residual += delta, rounded to its type; out = rmsNorm(residual). out may be delta.
void addRmsNorm(Stream stream, TensorView out, TensorView residual, TensorView delta, const float* weight, double epsilon,
                double offset);
// out = (in - mean) / sqrt(variance + epsilon) * weight + bias; bias may be null. In place allowed.
void layerNorm(Stream stream, TensorView out, TensorView in, const float* weight, const float* bias, double epsilon);
// rmsNorm of each head of x (tokens, heads * headDim) in place; weight: headDim floats, null: ones (and no
// offset).
void headRmsNorm(Stream stream, TensorView x, int64_t headDim, const float* weight, double epsilon, double offset);
// A norm over columns that several ranks hold: squares (tokens, 1) F32 = the sum of x^2 along the row; then, summed over the
// ranks, x = x / sqrt(squares / width + epsilon) * (weight + offset) in place.
void rowSquareSum(Stream stream, TensorView squares, TensorView x);
void normBySquareSum(Stream stream, TensorView x, TensorView squares, int64_t width, const float* weight, double epsilon,
                     double offset);

}  // namespace headroom::engine::cuda
