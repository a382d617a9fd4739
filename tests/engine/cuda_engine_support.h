// SPDX-License-Identifier: Apache-2.0
// The engine on emulated CUDA devices: opening a build of the module, its machine's figures, and limits of a small model there.
// CUDA_EMULATED and CUDA_CHECKED are two builds of the module's own sources; the second sees every access of the kernels.
#pragma once

#include "engine/device/backend_registry.h"
#include "tests/engine/step_driver.h"

#include <QtTest>

#include <dlfcn.h>

namespace headroom::engine::test {

inline const std::string kModels = std::string(HEADROOM_TEST_DATA) + "/models/";
constexpr std::chrono::milliseconds kSoon{30000};

// Opens a build of the module with so many devices; what it found is in `found`.
inline std::shared_ptr<const CudaModule> open(const char* path, int devices, FoundDevices* found = nullptr) {
  qputenv("HEADROOM_CUDA_MODULE", path);
  qputenv("HEADROOM_EMULATED_GPUS", QByteArray::number(devices));
  FoundDevices all = findDevices({});
  if (found) *found = all;
  return all.cudaModule;
}

// A figure of the emulated machine since its module was loaded; -1: it is not.
inline int64_t figureOf(const char* path, const char* name) {
  void* module = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!module) return -1;
  const auto count = reinterpret_cast<int64_t (*)()>(dlsym(module, name));
  const int64_t bytes = count ? count() : -1;
  dlclose(module);
  return bytes;
}

inline int64_t bytesToHost(const char* path) { return figureOf(path, "headroomEmulationBytesToHost"); }
inline int64_t graphLaunches(const char* path) { return figureOf(path, "headroomEmulationGraphLaunches"); }

// Device memory in use, of all emulated devices.
inline int64_t deviceBytes(const char* path) { return figureOf(path, "headroomEmulationDeviceBytes"); }

// Limits of ranks on CUDA devices, and the memory of one that holds their runtime and a small model.
inline constexpr Bytes kDeviceMemory = 80_MiB;
inline EngineLimits cudaLimits() {
  EngineLimits limits = smallLimits();
  limits.cuda = true;
  return limits;
}

inline void unsetCudaVariables() {
  for (const char* name :
       {"HEADROOM_CUDA_MODULE", "HEADROOM_EMULATED_GPUS", "HEADROOM_EMULATED_FAULT", "HEADROOM_EMULATED_DELAY_US",
        "HEADROOM_FAULT", "HEADROOM_CUDA_SEPARATE_ALLOCATIONS", "HEADROOM_CUDA_TIMEOUT", "HEADROOM_CUDA_COMMUNICATOR",
        "HEADROOM_EMULATED_MEMORY", "HEADROOM_EMULATED_CAPABILITY"})
    qunsetenv(name);
}

}  // namespace headroom::engine::test
