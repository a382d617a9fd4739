// SPDX-License-Identifier: Apache-2.0
// Runs a kernel's blocks on the calling OS thread, one fiber a device thread, and checks what they do. Used by runtime.cpp.
#pragma once

#include "tests/cuda_emulation/device_emulation.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace headroom::emulation {

// Memory that device code may touch. Shadow memory of the race check belongs to it and is made on first use.
struct Cell;
struct Allocation {
  const char* begin = nullptr;
  size_t size = 0;
  int device = -1;  // -1: pinned host memory
  mutable Cell* shadow = nullptr;
  mutable size_t shadowBytes = 0;
  ~Allocation();
};
using AllocationTable = std::vector<std::shared_ptr<const Allocation>>;  // by address

struct Launch {
  std::string name;
  dim3 grid, block;
  size_t sharedBytes = 0;
  std::shared_ptr<const KernelCall> call;
  std::shared_ptr<const AllocationTable> allocations;
};

// Runs all blocks; empty, or what went wrong: an access out of bounds, a race, a deadlock, a trap. `stop` is asked while threads
// wait in loops.
std::string runKernel(const Launch& launch, const std::function<bool()>& stop);

// Sources compiled with memory callbacks are loaded (set by the first callback's initialiser).
bool checksAccesses();

}  // namespace headroom::emulation
