// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/thread_pool.h"

#include <algorithm>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace headroom::engine::cpu {
namespace {
constexpr int kSpins = 4000;  // about 20 to 100 microseconds: longer than the gap between two operations of a forward pass

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
}  // namespace

ThreadPool::ThreadPool(int threads, bool spin) : m_spins(spin ? kSpins : 0) {
  for (int thread = 1; thread < std::max(threads, 1); ++thread) m_workers.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  m_stop.store(true, std::memory_order_relaxed);
  m_region.fetch_add(1, std::memory_order_release);
  m_region.notify_all();
  for (std::thread& worker : m_workers) worker.join();
}

void ThreadPool::waitWhile(std::atomic<uint32_t>& value, uint32_t old) const {
  for (int spin = 0; spin < m_spins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

void ThreadPool::takeItems(int thread) {
  for (int64_t item; (item = m_next.fetch_add(1, std::memory_order_relaxed)) < m_count;) m_invoke(m_context, item, thread);
}

void ThreadPool::runShared(int64_t count, Invoke invoke, void* context) {
  m_invoke = invoke;
  m_context = context;
  m_count = count;
  m_next.store(0, std::memory_order_relaxed);
  m_working.store(static_cast<uint32_t>(m_workers.size()), std::memory_order_relaxed);
  m_region.fetch_add(1, std::memory_order_release);
  m_region.notify_all();
  takeItems(0);
  for (uint32_t working; (working = m_working.load(std::memory_order_acquire)) != 0;) waitWhile(m_working, working);
}

void ThreadPool::work(int thread) {
  for (uint32_t seen = 0;;) {
    waitWhile(m_region, seen);
    ++seen;  // the caller starts no region before all workers have finished the last one
    if (m_stop.load(std::memory_order_relaxed)) return;
    takeItems(thread);
    if (m_working.fetch_sub(1, std::memory_order_acq_rel) == 1) m_working.notify_one();
  }
}

}  // namespace headroom::engine::cpu
