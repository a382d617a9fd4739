// SPDX-License-Identifier: Apache-2.0
// Backend::gatedDeltaNet on the CPU: key heads of all sequences are independent items.
#pragma once

#include "engine/device/backend.h"
#include "engine/device/cpu/thread_pool.h"

namespace headroom::engine::cpu {

struct DeltaNetCall {
  TensorView out, qkv, z, betaAlpha;
  const LinearState& state;
  const AttentionBatch& batch;
  const GatedDeltaNet& net;
};

// Overwrites qkv.
void runDeltaNet(const DeltaNetCall& call, ThreadPool& pool);

}  // namespace headroom::engine::cpu
