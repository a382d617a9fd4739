// SPDX-License-Identifier: Apache-2.0
// The gated MLPs of a layer's experts, whole: sort, gate and up, activation, down, join. It launches kernels of moe, linear and
// elementwise and decides nothing by what the router chose, so that it may be replayed.
#pragma once

#include "engine/device/cuda/kernels/linear.h"

namespace headroom::engine::cuda {

// One matrix of every expert, all of one shape and format. Tables are in device memory, one entry an expert.
struct ExpertMatrices {
  bool packed = false;
  PackedWeight packedShape;  // its data is not used
  DenseWeight denseShape;
  const uint8_t* const* data = nullptr;
  const void* const* scales = nullptr;    // Int4, F8E4M3
  const uint8_t* const* zeros = nullptr;  // Int4 with zeros
  const float* bias = nullptr;            // (experts, out); may be null
  DType product = DType::F32;             // F16, BF16: F32 inputs are rounded to it for tensor cores; F32: they are not
};

struct ExpertMlp {
  TensorView out, in;       // (tokens, hidden), one activation type, which is also that of all between them
  TensorView ids, weights;  // I32, F32 (tokens, expertsPerToken), without gaps
  int experts = 0;
  int64_t columns = 0;            // of gate and up; 0: this rank has none
  ExpertMatrices gate, up, down;  // (columns, hidden) twice, (hidden, columns)
  KernelActivation activation = KernelActivation::Silu;
  float swigluLimit = 0.0f;     // above 0, in place of the activation: clampedSwiglu with alpha 1.702
  bool weightsOnInput = false;  // the weight multiplies the expert's input, not its output
  bool addToOut = false;        // out += the sum over the token's experts, else out = the sum
  void* scratch = nullptr;      // expertMlpBytes(…), aligned to 256 bytes
};

// out(t) = the sum over the token's experts e, in ascending order, of weight * (down_e · (activation(gate_e · in(t)) * (up_e ·
// in(t)))).
void expertMlp(Stream stream, const ExpertMlp& task, const LinearOptions& options);
int64_t expertMlpBytes(int64_t tokens, int64_t expertsPerToken, int64_t experts, int64_t hidden, int64_t columns,
                       DType activationType);

}  // namespace headroom::engine::cuda
