// SPDX-License-Identifier: Apache-2.0
// What the fakes of cuBLASLt and NCCL need of the emulated runtime: work in stream order, and the machine's settings.
//
// Settings come from the environment when the device count is asked for while nothing is open:
//   HEADROOM_EMULATED_GPUS         devices (1; 0: none; -1: the driver is too old)
//   HEADROOM_EMULATED_MEMORY       MiB each (4096)
//   HEADROOM_EMULATED_CAPABILITY   compute capability times ten (90)
//   HEADROOM_EMULATED_DELAY_US     every operation of a stream waits so long before it begins (0): host code that forgets to wait
//   is caught HEADROOM_EMULATED_FAULT        "malloc:N" the N-th allocation from now fails, "host-malloc:N" that of pinned
//   memory; "peer-corrupt" peer copies flip a bit; "no-peer" no peer access;
//                                  "hang:N" the N-th operation of the streams never ends; "nccl-hang:N" the N-th all-reduce never
//                                  ends; "nccl-error:N" it fails; "nccl-dead:R" rank R never joins a communicator
#pragma once

#include "tests/cuda_emulation/include/cuda_runtime_api.h"

#include <functional>
#include <string>

namespace headroom::emulation {

// Runs `work` in the order of `stream`. `stop` becomes true when the device fails or the stream ends: long waits must look at it.
struct StreamWork {
  std::function<cudaError_t(const std::function<bool()>& stop)> run;
};
cudaError_t enqueue(cudaStream_t stream, std::function<cudaError_t(const std::function<bool()>& stop)> run);

// The number after "name:" in HEADROOM_EMULATED_FAULT; -1 where another or no fault is set; 0 for a fault without number.
int faultNumber(const char* name);
// What checks have found so far (also written to stderr); empty: nothing.
std::string firstReport();

}  // namespace headroom::emulation
