// SPDX-License-Identifier: Apache-2.0
// What a rank on a CUDA device takes beside weights, cache and activations: the memory its operations work in, and what the
// module and the driver hold. The module works within these sizes, so a start never takes more than was planned.
#pragma once

#include "core/memory/workspace.h"

namespace headroom {

inline constexpr int64_t kCudaAlignment = 256;  // bytes on which a buffer of a CUDA device begins

// Up to kCudaSmallTokens weights are read where they lie; beyond, cuBLASLt multiplies plain ones. From kCudaUnpackTokens + 1 on
// packed ones (those of codebooks at once) are unpacked in parts of kCudaUnpack and multiplied by cuBLASLt. Experts take
// kCudaExpertTokens at a time.
inline constexpr int64_t kCudaSmallTokens = 16, kCudaUnpackTokens = 256, kCudaExpertTokens = 256;
inline constexpr Bytes kCudaUnpack = 64_MiB;          // of unpacked rows
inline constexpr Bytes kCudaLoad = 8_MiB;             // of stored rows that are converted or packed at once
inline constexpr Bytes kCudaProduct = 32_MiB;         // cuBLASLt's workspace: what NVIDIA recommends for Hopper and above
inline constexpr Bytes kCudaPartialSums = 8_MiB;      // of a product whose columns are cut into parts
inline constexpr Bytes kCudaAttentionParts = 48_MiB;  // results of contexts that are cut into parts
inline constexpr Bytes kCudaSampling = 256_KiB;       // of masks, biases and seen tokens that are uploaded at once
inline constexpr int64_t kCudaMostParts = 32;         // of a context

// cuBLASLt's workspace for a product of so many results: room for eight partial sums of each, within kCudaProduct.
inline Bytes cudaProductWorkspace(int64_t results) {
  return Bytes(std::min(kCudaProduct.count(), roundUp(8 * 4 * results, kCudaAlignment)));
}

// The buffer that the rank's operations work in, one after another. Zero on host devices (limits.cuda false).
Bytes cudaScratchBytes(const ModelConfig& config, const WorkspaceShape& shape, const EngineLimits& limits);

// The largest message between TP ranks.
Bytes cudaMessageBytes(const ModelConfig& config, const EngineLimits& limits);

// What is held beside planned buffers.
struct CudaRuntime {
  Bytes arena;   // in the same allocation as the buffers: their alignment, and tables of addresses
  Bytes beside;  // allocations of their own: buffers for sums of ranks, and code as the driver loads it (an estimate)
  Bytes total() const { return arena + beside; }
};
// Each part is that of a rank without layers and one for every layer, so that layers may be added up.
CudaRuntime cudaRuntime(const ModelConfig& config, const RankSlice& rank, int tp, const EngineLimits& limits);

}  // namespace headroom
