// SPDX-License-Identifier: Apache-2.0
// One-shot all-reduce for small messages between devices that reach each other's memory: every rank copies its numbers where the
// others can read them, raises a flag at each, waits for theirs, and adds all in rank order, so that every rank has the same
// bits. Replayable: it counts its turns itself.
#pragma once

#include "engine/device/cuda/kernels/kernel_types.h"

namespace headroom::engine::cuda {

inline constexpr int kOneShotRanks = 8, kOneShotBlocks = 32;

// Memory of the ranks, all of it visible to all of them (peer access), zero before the first turn.
struct OneShotPeers {
  int ranks = 0, rank = 0;
  void* buffers[2][kOneShotRanks] = {};  // two of each rank, taken in turns, as large as the largest message
  uint32_t* flags[kOneShotRanks] = {};   // kOneShotBlocks * kOneShotRanks of each rank
  uint32_t* turns = nullptr;             // kOneShotBlocks, this rank's own
  // This rank's, device or pinned memory: 1 + the rank that did not come within `patience` looks at its flag; else unchanged.
  // Anything but 0 ends all waits soon, so a host may write it.
  int* failed = nullptr;
  uint32_t patience = 1u << 24;
};
inline constexpr int64_t kOneShotFlagBytes = static_cast<int64_t>(kOneShotBlocks) * kOneShotRanks * 4;

// x (rows without gaps; F32, F16, BF16) = the sum of all ranks' x. Every rank calls with the same sizes.
void oneShotAllReduce(Stream stream, TensorView x, const OneShotPeers& peers);

}  // namespace headroom::engine::cuda
