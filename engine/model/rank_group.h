// SPDX-License-Identifier: Apache-2.0
// The ranks of one replica as threads: loads each rank's weights, then runs the step plans it is given, several in flight through
// the stages. A rank that fails wakes its peers; failed() is called once with the first reason.
#pragma once

#include "core/memory/memory_plan.h"
#include "core/protocol/engine_api.h"
#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/cuda/cuda_module.h"
#include "engine/schedule/step_plan.h"

#include <functional>
#include <memory>
#include <vector>

namespace headroom::engine {

enum class DeviceKind : uint8_t { Cpu, Cuda };

struct RankGroupOptions {
  DeviceKind device = DeviceKind::Cpu;
  std::shared_ptr<const CudaModule> cuda;  // for DeviceKind::Cuda
  int threads = 0;   // all CPU ranks of this replica together; 0: the machine's cores
  bool spin = true;  // CPU ranks may spin while they wait: ranks of all replicas together are no more than cores
};

class RankGroup {
 public:
  struct Callbacks {
    std::function<void()> loadProgress;        // any rank thread; read it with rankStates()
    std::function<void()> loaded;              // once, when all ranks are ready
    std::function<void(const Error&)> failed;  // once, from any rank thread
  };

  // Starts a thread a rank and begins to load. `replica` chooses the ranks of `layout`. The references must outlive the group.
  RankGroup(const ModelSource& model, const ParallelLayout& layout, int replica, const Machine& machine,
            const EngineLimits& limits, const EngineMemoryPlan& memory, const RankGroupOptions& options, LogitsConsumer& consumer,
            Callbacks callbacks);
  ~RankGroup();  // stops and joins, whatever the ranks are doing

  // Hands a step to all ranks; returns at once. At most pp steps should be in flight.
  void submit(SharedStepPlan plan);
  // Thread-safe: the protocol's per-rank state with planned, allocated and loaded bytes.
  std::vector<RankState> rankStates() const;
  void abort(const Error& reason);

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
};

}  // namespace headroom::engine
