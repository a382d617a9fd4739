// SPDX-License-Identifier: Apache-2.0
// The module's side of cuda_module.h: finds and describes devices, makes backends. Linked with the static runtime.
#include "engine/device/cuda/cuda_module.h"

#include "engine/device/cuda/cuda_backend.h"
#include "engine/device/cuda/nccl_communicator.h"
#include "engine/device/cuda/peer_communicator.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <set>

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

  Result<std::unique_ptr<Backend>> makeBackend(const CudaBackendOptions& options) const override {
    CudaBackendOptions chosen = options;
    if (std::getenv("HEADROOM_CUDA_SEPARATE_ALLOCATIONS")) chosen.arena = Bytes(0);
    if (const char* seconds = std::getenv("HEADROOM_CUDA_TIMEOUT")) chosen.timeoutSeconds = std::atof(seconds);
    auto backend = cuda::CudaBackend::make(chosen);
    if (!backend) return tl::unexpected(backend.error());
    return std::unique_ptr<Backend>(std::move(*backend));
  }
  std::vector<std::unique_ptr<Communicator>> makeCommunicators(const std::vector<int>& devices, std::string& why) const override {
    const char* wanted = std::getenv("HEADROOM_CUDA_COMMUNICATOR");  // "peer": never NCCL
    const bool distinct = std::set<int>(devices.begin(), devices.end()).size() == devices.size();
    if (devices.size() > 1 && distinct && !(wanted && std::string_view(wanted) == "peer")) {
      if (const auto library = cuda::NcclLibrary::open()) {
        int version = 0;
        (*library)->getVersion(&version);
        why = fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
        const char* seconds = std::getenv("HEADROOM_CUDA_TIMEOUT");
        return cuda::makeNcclCommunicators(**library, devices, seconds ? std::atof(seconds) : 120);
      } else {
        why = "copies between the ranks' memory: " + library.error().message();
      }
    } else {
      why = "copies between the ranks' memory";
    }
    return cuda::makePeerCommunicators(devices);
  }
  std::unique_ptr<PipelineLink> makeLink(int depth) const override { return cuda::makePeerLink(depth); }

 private:
  int m_count;
};

}  // namespace
}  // namespace headroom::engine

extern "C" __attribute__((visibility("default"))) headroom::engine::CudaModule* headroom_cuda_open(int abi, char* reason,
                                                                                                   size_t size) {
  using namespace headroom::engine;
  if (abi != kCudaAbi) {
    std::snprintf(reason, size, "the module speaks interface %d, the program asks for %d; install both from the same version",
                  kCudaAbi, abi);
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
