// SPDX-License-Identifier: Apache-2.0
// Whether a machine is ready to serve: rules over facts that a program has read from it. What would fail minutes after a start is
// said before.
#pragma once

#include "core/units.h"

#include <optional>
#include <string>
#include <vector>

namespace headroom {

// Unknown is empty.
struct MachineFacts {
  std::optional<Bytes> memory, memoryAvailable, swap;  // main memory, the control group's limit included
  std::optional<Bytes> sharedMemory, sharedMemoryFree;  // /dev/shm
  std::optional<Bytes> modelDiskFree;                   // where a download would go
  std::optional<int64_t> openFiles;                     // soft limit
  std::optional<Bytes> lockedMemory;                    // soft limit; a negative count: unlimited
  bool container = false;
  bool iommu = false;        // remapping is on
  int gpus = 0;              // usable CUDA devices
  std::string cudaOffReason; // empty: on
  std::vector<std::string> environment;  // names of variables that change how GPUs are seen: "CUDA_VISIBLE_DEVICES=0,1"
};

// What a model needs beside GPU memory.
struct ModelNeeds {
  Bytes checkpoint;
  Bytes largestRank;  // weights that one rank reads
  int ranks = 1;
};

enum class CheckState : unsigned char { Good, Warning, Failed, Unknown };
std::string_view checkStateName(CheckState state);

struct PreflightCheck {
  std::string id;  // "shared_memory"
  CheckState state = CheckState::Good;
  std::string found, fix;
};

std::vector<PreflightCheck> preflight(const MachineFacts& facts, const std::optional<ModelNeeds>& model = std::nullopt);

}  // namespace headroom
