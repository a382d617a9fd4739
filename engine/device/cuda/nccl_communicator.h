// SPDX-License-Identifier: Apache-2.0
// Collectives by NCCL for ranks that have a device each. Nothing waits without end: ranks join within a time, errors of peers are
// polled while the host waits for the device, and abort() ends the kernels that wait for a dead peer.
#pragma once

#include "engine/device/cuda/nccl_library.h"
#include "engine/parallel/communicator.h"

#include <memory>
#include <vector>

namespace headroom::engine::cuda {

// One a rank, in rank order. `joinSeconds`: how long a rank waits for the others to join.
std::vector<std::unique_ptr<Communicator>> makeNcclCommunicators(const NcclLibrary& library, const std::vector<int>& devices,
                                                                 double joinSeconds);

}  // namespace headroom::engine::cuda
