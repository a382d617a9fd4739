// SPDX-License-Identifier: Apache-2.0
// Threads of one CPU backend. A parallel region hands out items 0 … count - 1; the calling thread works along. Which thread runs
// an item never changes what the item computes. Used by one calling thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace headroom::engine::cpu {

class ThreadPool {
 public:
  // `threads` includes the caller. With `spin`, waiting threads spin for some microseconds before they sleep.
  ThreadPool(int threads, bool spin);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(m_workers.size()) + 1; }

  // Calls body(item, thread) for each item in [0, count), threads numbered 0 (the caller) … threads() - 1; returns when all are
  // done.
  template <class Body>
  void run(int64_t count, Body&& body) {
    if (count <= 1 || m_workers.empty()) {
      for (int64_t item = 0; item < count; ++item) body(item, 0);
      return;
    }
    using Plain = std::remove_reference_t<Body>;
    runShared(
        count, [](void* context, int64_t item, int thread) { (*static_cast<Plain*>(context))(item, thread); },
        const_cast<std::remove_const_t<Plain>*>(&body));
  }

 private:
  using Invoke = void (*)(void* context, int64_t item, int thread);
  void runShared(int64_t count, Invoke invoke, void* context);
  void work(int thread);
  void takeItems(int thread);
  // Returns when `value` differs from `old`.
  void waitWhile(std::atomic<uint32_t>& value, uint32_t old) const;

  const int m_spins;
  Invoke m_invoke = nullptr;
  void* m_context = nullptr;
  int64_t m_count = 0;
  alignas(64) std::atomic<int64_t> m_next{0};
  alignas(64) std::atomic<uint32_t> m_region{0};   // goes up by one with every region
  alignas(64) std::atomic<uint32_t> m_working{0};  // workers that have not finished the region
  std::atomic<bool> m_stop{false};
  std::vector<std::thread> m_workers;
};

}  // namespace headroom::engine::cpu
