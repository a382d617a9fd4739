// SPDX-License-Identifier: Apache-2.0
// Linear layers whose weights are read where they lie: out = in · weightᵀ + bias. Three kernels: for up to 16 tokens
// (linear_small.cu), for more (linear_tile.cu), both on tensor cores with Half or BFloat16 activations, and for all else
// (linear_plain.cu). Products are exact, sums and scales F32. From some hundred tokens up, dequantizeRows and cuBLASLt are
// faster; large plain matrices are cuBLASLt's from 17 tokens up.
#pragma once

#include "engine/device/cuda/kernels/packed_weight.h"

#include <span>

namespace headroom::engine::cuda {

// A plain matrix, rows without gaps, 16-byte aligned.
struct DenseWeight {
  const void* data = nullptr;
  DType type = DType::BF16;  // F32, F16 or BF16
  int64_t out = 0, in = 0;
};

// out: (tokens, weight.out), the input's activation type or F32. bias: weight.out floats, or null.
struct PackedTask {
  TensorView out;
  PackedWeight weight;
  const float* bias = nullptr;
};
struct DenseTask {
  TensorView out;
  DenseWeight weight;
  const float* bias = nullptr;
};

// Many matrices of one shape and format, each for its own run of rows: rows begin[e] … begin[e+1] of the output are expert e's. A
// task's weight then stands for all of them (its data may be null), its bias has a row an expert. All arrays in device memory.
struct ExpertRows {
  int experts = 0;
  const int* begin = nullptr;             // experts + 1
  const int* inputRows = nullptr;         // the input's row for each of the output's; null: the same row
  const uint8_t* const* data = nullptr;   // a matrix's bytes, by expert
  const void* const* scales = nullptr;    // Int4, F8E4M3 only
  const uint8_t* const* zeros = nullptr;  // Int4 with zeros only
};

struct LinearOptions {
  bool tensorCores = true;  // the device has them for the activation type
  void* workspace =
      nullptr;  // linearWorkspaceBytes(…): for matrices with fewer tiles than the device has multiprocessors; may be null
  int64_t workspaceBytes = 0;
  int multiprocessors = 1;
  const ExpertRows* experts = nullptr;
};

// Tasks of one input (tokens, weight.in). At most four with one launch if their formats agree; more are several launches.
void packedLinear(Stream stream, TensorView in, std::span<const PackedTask> tasks, const LinearOptions& options);
void denseLinear(Stream stream, TensorView in, std::span<const DenseTask> tasks, const LinearOptions& options);
// A matrix a head, all of `shape` (its data is not used): out(t, h * outHead + o) = row o of weights[h] · in(t, h * inHead …).
// `weights`: one address a head, in device memory. out: the input's type or F32.
struct HeadLinear {
  TensorView out, in;
  int64_t outHead = 0, inHead = 0, heads = 0;
  const uint8_t* const* weights = nullptr;
  DenseWeight shape;
};
void headLinear(Stream stream, const HeadLinear& task, bool tensorCores);
// What packedLinear makes use of at most.
int64_t linearWorkspaceBytes(int64_t tokens, int64_t out);

}  // namespace headroom::engine::cuda
