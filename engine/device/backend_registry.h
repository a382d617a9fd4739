// SPDX-License-Identifier: Apache-2.0
// Finds the devices of this machine: host devices always, CUDA devices through libheadroom_cuda.so. Keeps the reason when CUDA is off.
#pragma once

#include "core/hardware/machine.h"
#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/cuda/cuda_module.h"

#include <memory>
#include <string>
#include <vector>

namespace headroom::engine {

struct FoundDevices {
  Machine host;             // host devices
  Machine cuda;             // empty when CUDA is off
  std::shared_ptr<const CudaModule> cudaModule;  // null when CUDA is off
  std::string cudaOffReason;  // one sentence: "no NVIDIA driver (libcuda.so.1 was not found)"; empty when CUDA is on
};
FoundDevices findDevices(const HostDeviceSettings& settings);

}  // namespace headroom::engine
