// SPDX-License-Identifier: Apache-2.0
// A 16-bit model as it would be if it were quantized: what a checkpoint of that format would store, tensor by tensor.
#pragma once

#include "core/model/tensor_inventory.h"

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// "awq", "gptq", "gptq-int8", "fp8", "fp8-block", "fp8-dynamic", "w4a16", "w8a8", "nvfp4", "mxfp4", "bitsandbytes", "nf4",
// "int8", and GGUF types with their usual mixes: "Q4_K_M", "IQ4_XS", "Q8_0", …
std::vector<std::string_view> whatIfQuantizations();
bool isGgufMix(std::string_view method);

// Errors: the method is not in the list; the model is quantized already; a GGUF's tensors are no starting point. The answer's
// configuration carries the quantization and a warning that no such checkpoint was opened.
Result<ModelSource> quantizedAs(const ModelSource& model, std::string_view method);

// Type of one tensor in a GGUF of the mix, by llama.cpp's own rules: some tensors of some layers get a larger type, rows that are
// no multiple of 256 a type of 32-element blocks, vectors 32 bits.
DType ggufMixType(std::string_view mix, const TensorEntry& tensor, const ModelConfig& config);

}  // namespace headroom
