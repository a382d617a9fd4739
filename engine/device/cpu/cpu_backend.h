// SPDX-License-Identifier: Apache-2.0
// The CPU backend: the reference, and a real way to run without a GPU. Kernels are chosen at run time by what the processor has.
#pragma once

#include "engine/device/backend.h"

#include <memory>
#include <string>
#include <vector>

namespace headroom::engine {

// Instruction sets with kernels of their own, from low to high.
enum class CpuLevel : uint8_t { Baseline, Avx2, Avx2Vnni, Avx512, Avx512Vnni, Avx512Bf16 };
std::string_view cpuLevelName(CpuLevel level);
// Fastest level of this processor, or the highest up to that which HEADROOM_CPU_LEVEL (a name of the above) asks for;
// an unknown name changes nothing and is reported on stderr once.
CpuLevel bestCpuLevel();
std::vector<CpuLevel> availableCpuLevels();

struct CpuBackendOptions {
  int device = 0;      // index of the host device, for messages
  Bytes budget{};      // allocate() fails beyond it; 0: no limit
  int threads = 1;     // of this rank, the calling thread included
  bool exact = false;  // true: activations stay F32 in every product (--dtype float32); false: they may be
                       // rounded to int8 blocks (quantized weights) or BF16 (BF16 weights)
  bool spin = true;    // false when there are more ranks than cores
  CpuLevel level = bestCpuLevel();
};

std::unique_ptr<Backend> makeCpuBackend(const CpuBackendOptions& options);

}  // namespace headroom::engine
