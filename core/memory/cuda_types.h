// SPDX-License-Identifier: Apache-2.0
// Element types that Headroom's CUDA devices hold and multiply by. The plan refuses others, and so does the module: by this list.
#pragma once

#include "core/memory/memory_plan.h"

namespace headroom {

inline bool cudaHolds(DType type) {
  switch (type) {
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::Q4_0:
    case DType::Q4_1:
    case DType::Q5_0:
    case DType::Q5_1:
    case DType::Q8_0:
    case DType::Q2_K:
    case DType::Q3_K:
    case DType::Q4_K:
    case DType::Q5_K:
    case DType::Q6_K:
    case DType::IQ4_NL:
    case DType::IQ4_XS:
    case DType::MXFP4:
    case DType::IQ1_S:
    case DType::IQ1_M:
    case DType::IQ2_XXS:
    case DType::IQ2_XS:
    case DType::IQ2_S:
    case DType::IQ3_XXS:
    case DType::IQ3_S:
    case DType::TQ1_0:
    case DType::TQ2_0:
      return true;
    default:
      return false;
  }
}
inline constexpr const char* kCudaTypes =
    "float32, float16, bfloat16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ1 to IQ4, TQ1_0, TQ2_0 or MXFP4";

// Types of the KV cache there.
inline bool cudaHoldsCache(DType type) {
  return type == DType::F32 || type == DType::F16 || type == DType::BF16 || type == DType::F8E4M3 || type == DType::F8E5M2;
}
inline constexpr const char* kCudaCacheTypes = "float32, float16, bfloat16, fp8_e4m3 or fp8_e5m2";

// The first tensor that CUDA devices would have to hold in another type; null: none.
inline const TensorEntry* heldByNoCudaDevice(const ModelSource& model, DType computeDType) {
  for (const TensorEntry& tensor : model.inventory.tensors)
    if (tensor.loaded && !cudaHolds(loadedDType(tensor, computeDType))) return &tensor;
  return nullptr;
}

}  // namespace headroom
