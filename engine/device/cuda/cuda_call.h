// SPDX-License-Identifier: Apache-2.0
// CUDA's error codes as Error, and the device that a call belongs to.
#pragma once

#include "core/result.h"

#include <cuda_runtime_api.h>

namespace headroom::engine::cuda {

inline Error cudaFailure(int device, std::string_view doing, cudaError_t error) {
  return Error{fmt::format("cuda:{}", device),
               fmt::format("{} (CUDA error {}) while {}", cudaGetErrorString(error), static_cast<int>(error), doing),
               {},
               {}};
}

// Makes `device` the calling thread's.
inline Status useDevice(int device) {
  if (const cudaError_t error = cudaSetDevice(device)) return tl::unexpected(cudaFailure(device, "selecting the device", error));
  return {};
}

}  // namespace headroom::engine::cuda
