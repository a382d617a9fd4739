// SPDX-License-Identifier: Apache-2.0
// Memory of one host device: 64-byte aligned, counted against the budget that the user gives the device.
#pragma once

#include "core/result.h"
#include "core/units.h"

#include <string_view>

namespace headroom::engine::cpu {

class CpuMemory {
 public:
  // A budget of 0 sets no limit.
  CpuMemory(int device, Bytes budget) : m_device(device), m_budget(budget) {}

  // Large allocations come from the system page by page: what is never touched costs nothing.
  Result<void*> allocate(Bytes size, std::string_view purpose);
  void release(void* data, Bytes size) noexcept;
  Bytes allocated() const { return m_allocated; }

 private:
  const int m_device;
  const Bytes m_budget;
  Bytes m_allocated;
};

}  // namespace headroom::engine::cpu
