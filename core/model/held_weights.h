// SPDX-License-Identifier: Apache-2.0
// How Headroom's engine holds the quantized weights of safetensors files (AWQ, GPTQ, compressed-tensors, MXFP4, FP8): as blocks
// of 32 with one scale, a form that all its kernels know and that keeps every stored number, or as plain numbers where no such
// block exists.
#pragma once

#include "core/model/tensor_inventory.h"

namespace headroom {

struct HeldWeight {
  enum class Codes : uint8_t {
    Awq,        // qweight (in, out / 8), qzeros (groups, out / 8), scales (groups, out)
    Gptq,       // qweight (in * bits / 32, out), qzeros (groups, out * bits / 32) less 1, scales (groups, out), g_idx (in)
    PackedInt,  // weight_packed (out, in * bits / 32) plus 2^(bits - 1), weight_scale (out, groups); where it is not symmetric
                // weight_zero_point (out * bits / 32, groups) plus 2^(bits - 1); weight_g_idx (in)
    Int8,       // weight (out, in), weight_scale (out, groups or 1), weight_zero_point of the same shape
    Mxfp4,      // x_blocks (experts, out, in / 32, 16) two E2M1 codes a byte, x_scales (experts, out, in / 32) E8M0
    Fp8         // weight (out, in), weight_scale_inv of tiles, or weight_scale (out, 1) or (1)
  };
  Codes codes = Codes::Fp8;
  int bits = 8;
  std::string module;         // "model.layers.0.self_attn.q_proj"
  int64_t experts = 0;        // that stand one behind the other; 0: one matrix
  bool zeroPoints = false;    // PackedInt, Int8
  int64_t out = 0, in = 0;    // of the weight
  int64_t groupColumns = 0;   // columns of one scale; `in` where a row has one
  bool columnGroups = false;  // g_idx says the group of each column
  // Q4_0, Q5_0, Q8_0 or MXFP4; BF16 stands for plain numbers of the compute type.
  DType held = DType::BF16;
};

// The weight that `tensor` stores the codes of; empty where it stores none, or not in a form that the engine reads.
std::optional<HeldWeight> heldWeightOf(const TensorEntry& tensor, const ModelConfig& config);
// True for a quantization whose weights heldByEngine understands.
bool canHoldQuantization(const ModelConfig& config);
// The same model with one entry for each quantized weight, as the engine holds it: name of the module and ".weight" (of
// MXFP4 experts the module alone), the shape (out, in) behind the number of experts, the place of the codes. What it is made of
// stays listed and is not loaded. For plans and for loading; parameters and checkpoint bytes are those of the model as opened.
ModelSource heldByEngine(ModelSource model);

}  // namespace headroom
