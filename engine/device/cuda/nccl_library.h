// SPDX-License-Identifier: Apache-2.0
// NCCL, opened at run time (libnccl.so.2), so that one GPU needs none of it and a missing library is a reason. Only the calls
// that Headroom makes are declared, as NCCL's user guide documents them for 2.18 and above.
#pragma once

#include "core/result.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace headroom::engine::cuda {

struct NcclUniqueId {
  char bytes[128];
};
using NcclComm = struct ncclComm*;
enum NcclResult : int { kNcclSuccess = 0, kNcclRemoteError = 6, kNcclInProgress = 7 };
inline constexpr int kNcclFloat32 = 7, kNcclSum = 0;

// ncclConfig_t: its size tells the library which fields follow; unset ones are INT_MIN, null.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21805;
  int blocking = 0;
  int cgaClusterSize = INT32_MIN, minCtas = INT32_MIN, maxCtas = INT32_MIN;
  const char* netName = nullptr;
  int splitShare = INT32_MIN;
};

struct NcclLibrary {
  int (*getVersion)(int* version);
  int (*getUniqueId)(NcclUniqueId* id);
  int (*commInitRankConfig)(NcclComm* comm, int ranks, NcclUniqueId id, int rank, NcclConfig* config);
  int (*commGetAsyncError)(NcclComm comm, int* error);
  int (*commAbort)(NcclComm comm);
  int (*commDestroy)(NcclComm comm);
  int (*allReduce)(const void* from, void* to, size_t count, int type, int operation, NcclComm comm, cudaStream_t stream);
  int (*send)(const void* from, size_t count, int type, int peer, NcclComm comm, cudaStream_t stream);
  int (*recv)(void* to, size_t count, int type, int peer, NcclComm comm, cudaStream_t stream);
  int (*groupStart)();
  int (*groupEnd)();
  const char* (*getErrorString)(int result);

  // Opened once a process; the reason when it cannot be.
  static Result<const NcclLibrary*> open();
};

}  // namespace headroom::engine::cuda
