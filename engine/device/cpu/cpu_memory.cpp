// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/cpu_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>

namespace headroom::engine::cpu {
namespace {
constexpr Bytes kMapped = 256_KiB;  // from here on memory is mapped

std::string text(Bytes size) {
  const double mib = static_cast<double>(size.count()) / (1024.0 * 1024.0);
  return mib < 1.0      ? fmt::format("{} bytes", size.count())
         : mib < 1024.0 ? fmt::format("{:.1f} MiB", mib)
                        : fmt::format("{:.2f} GiB", mib / 1024.0);
}

size_t alignedSize(Bytes size) { return static_cast<size_t>(roundUp(size.count(), 64)); }
}  // namespace

Result<void*> CpuMemory::allocate(Bytes size, std::string_view purpose) {
  expects(size >= Bytes(0), "a negative amount of memory was asked for");
  const std::string where = fmt::format("host device {}, {}", m_device, purpose);
  if (m_budget > Bytes(0) && size > m_budget - m_allocated)
    return failure(where, fmt::format("{} free of {}", text(m_budget - m_allocated), text(m_budget)), text(size),
                   "give each host device more memory, use more devices, or shorten the context");
  void* data = nullptr;
  if (size == Bytes(0)) {
    data = std::aligned_alloc(64, 64);
  } else if (size >= kMapped) {
    data = mmap(nullptr, alignedSize(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) data = nullptr;
  } else {
    data = std::aligned_alloc(64, alignedSize(size));
  }
  if (!data)
    return failure(where, "the operating system has no memory left for it", text(size),
                   "close other programs or use a smaller model");
  m_allocated += size;
  return data;
}

void CpuMemory::release(void* data, Bytes size) noexcept {
  if (size >= kMapped) {
    munmap(data, alignedSize(size));
  } else {
    std::free(data);
  }
  m_allocated -= size;
}

}  // namespace headroom::engine::cpu
