// SPDX-License-Identifier: Apache-2.0
// What the kernels' launch functions take, beside TensorView: the stream, and small enumerations that stand for the model's own,
// so that kernel files read none of the model's headers.
#pragma once

#include "engine/device/tensor.h"

#include <cstdint>

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace headroom::engine::cuda {

using Stream = CUstream_st*;

// As headroom::Activation.
enum class KernelActivation : uint8_t { Silu, Gelu, GeluTanh, Relu2 };
// As headroom::RopeStyle.
enum class KernelRope : uint8_t { Neox, Interleaved };

// A layer's keys and values. A block of `blockTokens` tokens holds K as (kvHeads, blockTokens, headDim), then V as (kvHeads,
// blockTokens, vHeadDim): what one head reads of a block lies together.
struct KvCache {
  void* data = nullptr;
  DType dtype = DType::BF16;
  int64_t blockTokens = 16, kvHeads = 0, headDim = 0, vHeadDim = 0;
};

}  // namespace headroom::engine::cuda
