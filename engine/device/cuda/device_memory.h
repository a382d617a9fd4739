// SPDX-License-Identifier: Apache-2.0
// A rank's device memory: the arena that holds what was planned, the memory that operations work in, and pinned memory through
// which small copies go. One rank's thread only.
#pragma once

#include "core/memory/cuda_memory.h"
#include "core/units.h"
#include "engine/device/cuda/cuda_call.h"

#include <deque>
#include <map>
#include <string_view>
#include <vector>

namespace headroom::engine::cuda {

inline constexpr int64_t kAlignment = kCudaAlignment;

// Buffers one behind the other in one allocation, each on a multiple of 256 bytes; or, without an arena, allocations of their
// own.
class Arena {
 public:
  Arena(int device, Bytes size) : m_device(device), m_size(size) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Result<void*> allocate(Bytes size, std::string_view purpose);
  void release(void* data, Bytes size) noexcept;
  Bytes allocated() const { return m_allocated; }  // sum of what was asked for
  Bytes reserved() const { return m_reserved; }    // taken from the device

 private:
  Error noMemory(Bytes size, std::string_view purpose) const;
  const int m_device;
  const Bytes m_size;
  char* m_memory = nullptr;
  int64_t m_used = 0;
  int64_t m_buffers = 0;
  Bytes m_allocated, m_reserved;
};

// Device memory of no lasting content that grows to what is asked for. What was handed out before stays valid until the next sync
// of the stream: growing keeps the old block until collect().
class Scratch {
 public:
  explicit Scratch(int device) : m_device(device) {}
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  // Null after a failure; `error` then says why.
  void* atLeast(int64_t bytes, cudaError_t& error);
  void collect();  // the stream is idle: old blocks go
  Bytes size() const { return Bytes(m_size); }
  int64_t moves() const { return m_moves; }  // how often it grew

 private:
  const int m_device;
  int64_t m_moves = 0;
  void* m_memory = nullptr;
  int64_t m_size = 0;
  std::vector<void*> m_old;
};

// What operations of one stream work in, one after another: begin() hands all of it out anew, since what comes later in the
// stream runs later. It lies where the plan has put it; without a plan, or where that was too small, it grows, and what was
// handed out before stays valid until collect().
class WorkArea {
 public:
  explicit WorkArea(int device) : m_device(device) {}
  ~WorkArea();
  WorkArea(const WorkArea&) = delete;
  WorkArea& operator=(const WorkArea&) = delete;
  void setPlanned(void* memory, Bytes size);
  void begin() { m_used = 0; }
  // A part of an operation hands out anew what the part before took: used() before the first, then rewind().
  int64_t used() const { return m_used; }
  void rewind(int64_t used) { m_used = used; }
  // On a multiple of 256 bytes. Null after a failure; `error` then says why.
  void* take(int64_t bytes, cudaError_t& error);
  void collect();                            // the stream is idle: outgrown memory goes
  int64_t moves() const { return m_moves; }  // how often it grew

 private:
  const int m_device;
  char* m_memory = nullptr;
  bool m_isOwn = false;
  int64_t m_size = 0, m_used = 0, m_moves = 0;
  std::vector<void*> m_old;
};

// A ring of pinned memory: what goes in is copied at once, so the caller's buffer is free when put() returns.
class StagingRing {
 public:
  explicit StagingRing(int device) : m_device(device) {}
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;
  cudaError_t copyToDevice(void* to, const void* from, int64_t size, cudaStream_t stream);
  // `rows` of `width` bytes each, without gaps, into rows `pitch` bytes apart.
  cudaError_t copyRowsToDevice(void* to, int64_t pitch, const void* from, int64_t width, int64_t rows, cudaStream_t stream);

 private:
  static constexpr int64_t kPartBytes = 4 << 20;
  static constexpr int kParts = 3;
  cudaError_t open();
  cudaError_t nextPart(cudaStream_t stream);
  const int m_device;
  char* m_memory = nullptr;
  cudaEvent_t m_free[kParts] = {};
  int m_part = 0;
  int64_t m_used = 0;
};

}  // namespace headroom::engine::cuda
