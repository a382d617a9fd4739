// SPDX-License-Identifier: Apache-2.0
// Element by element: activations, sums, scaling, copies of rows, changes of type. Views of a call share one activation type
// (F32, F16, BF16) unless said otherwise; arithmetic is F32, rounded once.
#pragma once

#include "engine/device/cuda/kernels/kernel_types.h"

namespace headroom::engine::cuda {

// out (tokens, hidden) = row ids[t] - firstId of the table (vocabulary, hidden), zeros where that is outside. The table is F32,
// F16 or BF16, of any of them for each activation type. Quantized tables: dequantizeRows in linear.h.
void embed(Stream stream, TensorView out, TensorView table, TensorView ids, int64_t firstId);
// out = activation(gate) * up. out may be gate.
void gatedActivation(Stream stream, TensorView out, TensorView gate, TensorView up, KernelActivation activation);
// gpt-oss: with gate clamped from above and up from both sides by `limit`, out = gate * sigmoid(alpha * gate) * (up + 1). out may
// be gate.
void clampedSwiglu(Stream stream, TensorView out, TensorView gate, TensorView up, float alpha, float limit);
void activate(Stream stream, TensorView x, KernelActivation activation);
void add(Stream stream, TensorView x, TensorView delta);       // x += delta
void scale(Stream stream, TensorView x, double factor);        // x *= factor
void softcap(Stream stream, TensorView x, double cap);         // x = cap * tanh(x / cap)
void addBias(Stream stream, TensorView x, const float* bias);  // x(t) += bias, for every row; bias: cols floats
// out(t) *= sigmoid(gate(t)); gate has one column (a shared expert's gate) or as many as out.
void sigmoidGate(Stream stream, TensorView out, TensorView gate);
// x(t) *= 1 + scale * log(1 + floor((positions[t] + 1) / floorScale)); positions: I32 (1, tokens). Computed in double.
void scaleByPosition(Stream stream, TensorView x, TensorView positions, double floorScale, double scale);
void gatherRows(Stream stream, TensorView out, TensorView in, TensorView rows);  // out(i) = in(rows[i])
// For each of `heads`: out(t, h * outHead + i) = in(t, h * inHead + i), i below `width`: parts of heads from one layout to
// another.
void copyHeads(Stream stream, TensorView out, int64_t outHead, TensorView in, int64_t inHead, int64_t heads, int64_t width);
// out = in in another activation type.
void convert(Stream stream, TensorView out, TensorView in);

}  // namespace headroom::engine::cuda
