// SPDX-License-Identifier: Apache-2.0
// A rank's blocks of keys and values, one buffer a layer. Which block holds what is the scheduler's matter.
#pragma once

#include "core/memory/memory_plan.h"
#include "engine/device/backend.h"

#include <vector>

namespace headroom::engine {

class KvCache {
 public:
  static Result<KvCache> allocate(const ModelConfig& config, const RankSlice& rank, const EngineLimits& limits, int64_t blocks,
                                  Backend& backend);
  const KvLayerView& layer(int64_t indexInStage) const { return m_views[static_cast<size_t>(indexInStage)]; }
  Bytes allocated() const { return m_allocated; }

 private:
  std::vector<DeviceBuffer> m_buffers;
  std::vector<KvLayerView> m_views;
  Bytes m_allocated;
};

}  // namespace headroom::engine
