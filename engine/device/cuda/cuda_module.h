// SPDX-License-Identifier: Apache-2.0
// What libheadroom_cuda.so offers, and the one function by which it is opened. The module is built apart (preset "cuda") and loaded at run time, so
// that the program itself needs no CUDA. In this version it finds and describes devices; operations follow with the next interface number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom::engine {

// Raised whenever anything below changes; a module of another number is refused.
inline constexpr int kCudaAbi = 1;

struct CudaDeviceInfo {
  int index = 0;
  char name[256] = {};
  int64_t totalBytes = 0;
  int64_t freeBytes = 0;        // now, all processes counted
  int major = 0, minor = 0;     // compute capability
  double bandwidthGBs = 0;      // 1e9 bytes/s by memory clock and bus width; 0: the driver does not tell
  int pciDomain = 0, pciBus = 0, pciDevice = 0;
};

class CudaModule {
 public:
  virtual ~CudaModule() = default;
  virtual int deviceCount() const = 0;
  // False, with a reason, when the device does not answer.
  virtual bool describe(int index, CudaDeviceInfo& info, char* reason, size_t size) const = 0;
};

// extern "C" headroom_cuda_open: a new CudaModule that the caller owns, or null with a reason (at most `size` bytes, the final zero included)
// where it does not speak interface `abi` or finds no usable device.
using OpenCudaModule = CudaModule* (*)(int abi, char* reason, size_t size);

}  // namespace headroom::engine
