// SPDX-License-Identifier: Apache-2.0
// A CUDA module without CUDA, for the test of the registry: FAKE_CUDA_ABI is the interface it speaks, FAKE_CUDA_DEVICES how many devices it has
// (-1: one that does not answer).
#include "engine/device/cuda/cuda_module.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace headroom::engine;

namespace {

int number(const char* name) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : 0;
}

class FakeModule final : public CudaModule {
 public:
  int deviceCount() const override { return std::abs(number("FAKE_CUDA_DEVICES")); }
  bool describe(int index, CudaDeviceInfo& info, char* reason, size_t size) const override {
    if (number("FAKE_CUDA_DEVICES") < 0) {
      std::snprintf(reason, size, "it fell off the bus");
      return false;
    }
    info.index = index;
    std::strcpy(info.name, "Fake GPU");
    info.totalBytes = int64_t{16} << 30;
    info.freeBytes = int64_t{15} << 30;
    info.major = 8;
    info.minor = 6;
    return true;
  }
  headroom::Result<std::unique_ptr<Backend>> makeBackend(const CudaBackendOptions&) const override {
    return headroom::failure("fake", "a device that computes nothing");
  }
  std::vector<std::unique_ptr<Communicator>> makeCommunicators(const std::vector<int>&, std::string&) const override { return {}; }
  std::unique_ptr<PipelineLink> makeLink(int) const override { return nullptr; }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) CudaModule* headroom_cuda_open(int abi, char* reason, size_t size) {
  if (number("FAKE_CUDA_ABI") != abi) {
    std::snprintf(reason, size, "the module speaks interface %d, the program asks for %d", number("FAKE_CUDA_ABI"), abi);
    return nullptr;
  }
  if (number("FAKE_CUDA_DEVICES") == 0) {
    std::snprintf(reason, size, "the driver reports no device");
    return nullptr;
  }
  return new FakeModule;
}
