// SPDX-License-Identifier: Apache-2.0
// What libheadroom_cuda.so offers, and the one function by which it is opened. The module is built apart (preset "cuda") and
// loaded at run time, so that the program itself needs no CUDA. Program and module exchange C++ types: both are of one version,
// and the interface number says so.
#pragma once

#include "engine/device/backend.h"
#include "engine/parallel/communicator.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace headroom::engine {

// Raised whenever anything below, or in the headers above, changes; a module of another number is refused.
inline constexpr int kCudaAbi = 5;

struct CudaDeviceInfo {
  int index = 0;
  char name[256] = {};
  int64_t totalBytes = 0;
  int64_t freeBytes = 0;     // now, all processes counted
  int major = 0, minor = 0;  // compute capability
  double bandwidthGBs = 0;   // 1e9 bytes/s by memory clock and bus width; 0: the driver does not tell
  int pciDomain = 0, pciBus = 0, pciDevice = 0;
};

struct CudaBackendOptions {
  int device = 0;
  // Memory of weights, KV cache and activations and of what lies between them, taken at once: what was planned. 0: every buffer
  // is an allocation of its own (slower to load, and memory checkers see the end of each buffer).
  Bytes arena;
  // F32 throughout (a model computed in float32); else inputs of products are rounded to 16 bits.
  bool exact = false;
  // Longest wait for the device before the rank gives up; 0: for ever.
  double timeoutSeconds = 300;
};

class CudaModule {
 public:
  virtual ~CudaModule() = default;
  virtual int deviceCount() const = 0;
  // False, with a reason, when the device does not answer.
  virtual bool describe(int index, CudaDeviceInfo& info, char* reason, size_t size) const = 0;
  // For the calling thread, which alone uses it.
  virtual Result<std::unique_ptr<Backend>> makeBackend(const CudaBackendOptions& options) const = 0;
  // One a rank, in rank order; each is attached to its rank's backend before use. NCCL where every rank has a device of its own
  // and the library is there, else copies between the ranks' memory; `why` says which.
  virtual std::vector<std::unique_ptr<Communicator>> makeCommunicators(const std::vector<int>& devices,
                                                                       std::string& why) const = 0;
  virtual std::unique_ptr<PipelineLink> makeLink(int depth) const = 0;
};

// extern "C" headroom_cuda_open: a new CudaModule that the caller owns, or null with a reason (at most `size` bytes, the final
// zero included) where it does not speak interface `abi` or finds no usable device.
using OpenCudaModule = CudaModule* (*)(int abi, char* reason, size_t size);

}  // namespace headroom::engine
