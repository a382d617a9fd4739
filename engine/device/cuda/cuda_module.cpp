// SPDX-License-Identifier: Apache-2.0
// The module's side: CUDA runtime calls that find devices. Linked with the static runtime, so that only the driver must be there.
#include "engine/device/cuda/cuda_module.h"

#include <cuda_runtime_api.h>

#include <cstdio>

namespace headroom::engine {
namespace {

void explain(char* reason, size_t size, const char* doing, cudaError_t error) {
  std::snprintf(reason, size, "%s: %s (CUDA error %d)", doing, cudaGetErrorString(error), static_cast<int>(error));
}

class Module final : public CudaModule {
 public:
  explicit Module(int count) : m_count(count) {}
  int deviceCount() const override { return m_count; }

  bool describe(int index, CudaDeviceInfo& info, char* reason, size_t size) const override {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
      explain(reason, size, "reading the device's properties", error);
      return false;
    }
    size_t free = 0, total = 0;
    cudaError_t error = cudaSetDevice(index);
    if (error == cudaSuccess) error = cudaMemGetInfo(&free, &total);
    if (error != cudaSuccess) {
      explain(reason, size, "reading the device's memory", error);
      return false;
    }
    int clockKHz = 0, busBits = 0;
    const bool knowsMemory = cudaDeviceGetAttribute(&clockKHz, cudaDevAttrMemoryClockRate, index) == cudaSuccess &&
                             cudaDeviceGetAttribute(&busBits, cudaDevAttrGlobalMemoryBusWidth, index) == cudaSuccess;
    info = CudaDeviceInfo{};
    info.index = index;
    std::snprintf(info.name, sizeof info.name, "%s", properties.name);
    info.totalBytes = static_cast<int64_t>(total);
    info.freeBytes = static_cast<int64_t>(free);
    info.major = properties.major;
    info.minor = properties.minor;
    // Two transfers a clock on every memory that these cards have.
    if (knowsMemory) info.bandwidthGBs = 2.0 * clockKHz * 1e3 * (busBits / 8.0) / 1e9;
    info.pciDomain = properties.pciDomainID;
    info.pciBus = properties.pciBusID;
    info.pciDevice = properties.pciDeviceID;
    return true;
  }

 private:
  int m_count;
};

}  // namespace
}  // namespace headroom::engine

extern "C" __attribute__((visibility("default"))) headroom::engine::CudaModule* headroom_cuda_open(int abi, char* reason, size_t size) {
  using namespace headroom::engine;
  if (abi != kCudaAbi) {
    std::snprintf(reason, size, "the module speaks interface %d, the program asks for %d; install both from the same version", kCudaAbi, abi);
    return nullptr;
  }
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    explain(reason, size, "looking for devices", error);
    return nullptr;
  }
  if (count == 0) {
    std::snprintf(reason, size, "the driver reports no device");
    return nullptr;
  }
  return new Module(count);
}
