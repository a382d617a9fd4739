// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cuda/device_memory.h"

#include <algorithm>
#include <cstring>

namespace headroom::engine::cuda {

Error Arena::noMemory(Bytes size, std::string_view purpose) const {
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess)
    return Error{fmt::format("cuda:{}", m_device), "no answer about free memory", {}, {}};
  return Error{fmt::format("cuda:{}", m_device),
               fmt::format("{:.3f} GiB free of {:.3f} GiB", Bytes(static_cast<int64_t>(free)).gib(),
                           Bytes(static_cast<int64_t>(total)).gib()),
               fmt::format("{:.3f} GiB for {}", size.gib(), purpose),
               "close other programs on this device, or lower --gpu-memory-utilization"};
}

Arena::~Arena() {
  if (m_memory) cudaFree(m_memory);
}

Result<void*> Arena::allocate(Bytes size, std::string_view purpose) {
  if (const Status status = useDevice(m_device); !status) return tl::unexpected(status.error());
  if (m_size > Bytes(0)) {
    if (!m_memory) {
      void* memory = nullptr;
      if (const cudaError_t error = cudaMalloc(&memory, static_cast<size_t>(m_size.count()))) {
        cudaGetLastError();
        return tl::unexpected(error == cudaErrorMemoryAllocation ? noMemory(m_size, "weights, KV cache and activations")
                                                                 : cudaFailure(m_device, "taking the planned memory", error));
      }
      m_memory = static_cast<char*>(memory);
      m_reserved = m_size;
    }
    const int64_t padded = roundUp(size.count(), kAlignment);
    if (m_used + padded <= m_size.count()) {
      void* data = m_memory + m_used;
      m_used += padded;
      ++m_buffers;
      m_allocated += size;
      return data;
    }
  }
  void* memory = nullptr;
  if (const cudaError_t error = cudaMalloc(&memory, static_cast<size_t>(size.count()))) {
    cudaGetLastError();
    return tl::unexpected(error == cudaErrorMemoryAllocation ? noMemory(size, purpose)
                                                             : cudaFailure(m_device, "allocating memory", error));
  }
  m_allocated += size;
  m_reserved += size;
  return memory;
}

void Arena::release(void* data, Bytes size) noexcept {
  m_allocated -= size;
  const char* begin = static_cast<const char*>(data);
  if (m_memory && begin >= m_memory && begin < m_memory + m_size.count()) {
    const int64_t padded = roundUp(size.count(), kAlignment);
    if (begin + padded == m_memory + m_used) m_used -= padded;
    if (--m_buffers == 0) m_used = 0;
    return;
  }
  m_reserved -= size;
  cudaSetDevice(m_device);
  cudaFree(data);
}

Scratch::~Scratch() {
  cudaSetDevice(m_device);
  collect();
  if (m_memory) cudaFree(m_memory);
}

void Scratch::collect() {
  for (void* memory : m_old) cudaFree(memory);
  m_old.clear();
}

void* Scratch::atLeast(int64_t bytes, cudaError_t& error) {
  error = cudaSuccess;
  if (bytes <= m_size) return m_memory;
  void* memory = nullptr;
  const int64_t size = roundUp(bytes, int64_t{1} << 16);
  error = cudaMalloc(&memory, static_cast<size_t>(size));
  if (error != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  if (m_memory) m_old.push_back(m_memory);
  m_memory = memory;
  m_size = size;
  ++m_moves;
  return m_memory;
}

WorkArea::~WorkArea() {
  cudaSetDevice(m_device);
  collect();
  if (m_isOwn) cudaFree(m_memory);
}

void WorkArea::collect() {
  for (void* memory : m_old) cudaFree(memory);
  m_old.clear();
}

void WorkArea::setPlanned(void* memory, Bytes size) {
  if (m_isOwn) m_old.push_back(m_memory);
  m_memory = static_cast<char*>(memory);
  m_isOwn = false;
  m_size = size.count();
  m_used = 0;
  ++m_moves;
}

void* WorkArea::take(int64_t bytes, cudaError_t& error) {
  error = cudaSuccess;
  const int64_t padded = roundUp(std::max<int64_t>(bytes, 1), kAlignment);
  if (m_used + padded > m_size) {
    void* memory = nullptr;
    const int64_t size = roundUp(std::max(m_used + padded, m_size), int64_t{1} << 16);
    error = cudaMalloc(&memory, static_cast<size_t>(size));
    if (error != cudaSuccess) {
      cudaGetLastError();
      return nullptr;
    }
    if (m_isOwn) m_old.push_back(m_memory);
    m_memory = static_cast<char*>(memory);
    m_isOwn = true;
    m_size = size;
    m_used = 0;
    ++m_moves;
  }
  void* taken = m_memory + m_used;
  m_used += padded;
  return taken;
}

StagingRing::~StagingRing() {
  cudaSetDevice(m_device);
  for (cudaEvent_t event : m_free)
    if (event) cudaEventDestroy(event);
  if (m_memory) cudaFreeHost(m_memory);
}

cudaError_t StagingRing::open() {
  if (m_memory) return cudaSuccess;
  void* memory = nullptr;
  if (const cudaError_t error = cudaHostAlloc(&memory, static_cast<size_t>(kPartBytes * kParts), cudaHostAllocPortable))
    return error;
  m_memory = static_cast<char*>(memory);
  for (cudaEvent_t& event : m_free)
    if (const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming)) return error;
  return cudaSuccess;
}

cudaError_t StagingRing::nextPart(cudaStream_t stream) {
  if (const cudaError_t error = cudaEventRecord(m_free[m_part], stream)) return error;
  m_part = (m_part + 1) % kParts;
  m_used = 0;
  return cudaEventSynchronize(m_free[m_part]);  // at once where it was never recorded
}

cudaError_t StagingRing::copyRowsToDevice(void* to, int64_t pitch, const void* from, int64_t width, int64_t rows,
                                          cudaStream_t stream) {
  if (const cudaError_t error = open()) return error;
  if (width > kPartBytes) {
    for (int64_t row = 0; row < rows; ++row)
      if (const cudaError_t error =
              copyToDevice(static_cast<char*>(to) + row * pitch, static_cast<const char*>(from) + row * width, width, stream))
        return error;
    return cudaSuccess;
  }
  for (int64_t row = 0; row < rows && width > 0;) {
    if (m_used + width > kPartBytes)
      if (const cudaError_t error = nextPart(stream)) return error;
    const int64_t count = std::min(rows - row, (kPartBytes - m_used) / width);
    char* staged = m_memory + m_part * kPartBytes + m_used;
    std::memcpy(staged, static_cast<const char*>(from) + row * width, static_cast<size_t>(count * width));
    if (const cudaError_t error = cudaMemcpy2DAsync(static_cast<char*>(to) + row * pitch, static_cast<size_t>(pitch), staged,
                                                    static_cast<size_t>(width), static_cast<size_t>(width),
                                                    static_cast<size_t>(count), cudaMemcpyHostToDevice, stream))
      return error;
    row += count;
    m_used = std::min(kPartBytes, roundUp(m_used + count * width, int64_t{64}));
  }
  return cudaSuccess;
}

cudaError_t StagingRing::copyToDevice(void* to, const void* from, int64_t size, cudaStream_t stream) {
  if (const cudaError_t error = open()) return error;
  for (int64_t at = 0; at < size;) {
    if (m_used == kPartBytes)
      if (const cudaError_t error = nextPart(stream)) return error;
    const int64_t count = std::min(size - at, kPartBytes - m_used);
    char* staged = m_memory + m_part * kPartBytes + m_used;
    std::memcpy(staged, static_cast<const char*>(from) + at, static_cast<size_t>(count));
    if (const cudaError_t error =
            cudaMemcpyAsync(static_cast<char*>(to) + at, staged, static_cast<size_t>(count), cudaMemcpyHostToDevice, stream))
      return error;
    at += count;
    m_used = std::min(kPartBytes, roundUp(m_used + count, int64_t{64}));
  }
  return cudaSuccess;
}

}  // namespace headroom::engine::cuda
