// SPDX-License-Identifier: Apache-2.0
// The step plans on their way to the ranks: one writer, and every rank reads all of them in order at its own pace.
#pragma once

#include "engine/parallel/abortable_barrier.h"
#include "engine/schedule/step_plan.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace headroom::engine {

class StepFeed {
 public:
  // `inFlight`: plans that usually wait at once; more make the ring grow.
  StepFeed(int readers, int inFlight, bool spin)
      : m_readers(readers), m_spin(spin), m_taken(readers, 0), m_ring(std::max(64, 2 * inFlight)) {}

  // Any thread.
  void push(SharedStepPlan plan) {
    {
      std::lock_guard lock(m_mutex);
      const int64_t oldest = *std::min_element(m_taken.begin(), m_taken.end());
      if (m_pushed - oldest == static_cast<int64_t>(m_ring.size())) grow(oldest);
      m_ring[slotOf(m_pushed)] = {std::move(plan), m_readers};
      ++m_pushed;
    }
    wakeAll();
  }

  // The reader's next plan; waits for it. Null when the feed was closed.
  SharedStepPlan take(int reader) {
    for (;;) {
      const int changes = m_changes.load(std::memory_order_acquire);
      {
        std::lock_guard lock(m_mutex);
        if (m_closed) return nullptr;
        if (m_taken[reader] < m_pushed) {
          Entry& entry = m_ring[slotOf(m_taken[reader]++)];
          return --entry.readersLeft == 0 ? std::move(entry.plan) : entry.plan;
        }
      }
      waitWhileEqual(m_changes, changes, m_spin);
    }
  }

  // Any thread: all readers get null from now on.
  void close() {
    {
      std::lock_guard lock(m_mutex);
      m_closed = true;
    }
    wakeAll();
  }

 private:
  struct Entry {
    SharedStepPlan plan;
    int readersLeft = 0;
  };
  size_t slotOf(int64_t index) const { return static_cast<size_t>(index) % m_ring.size(); }
  void grow(int64_t oldest) {
    std::vector<Entry> larger(m_ring.size() * 2);
    for (int64_t i = oldest; i < m_pushed; ++i) larger[static_cast<size_t>(i) % larger.size()] = std::move(m_ring[slotOf(i)]);
    m_ring = std::move(larger);
  }
  void wakeAll() {
    m_changes.fetch_add(1, std::memory_order_acq_rel);
    m_changes.notify_all();
  }

  const int m_readers;
  const bool m_spin;
  std::mutex m_mutex;
  std::vector<int64_t> m_taken;  // plans taken, by reader
  std::vector<Entry> m_ring;
  int64_t m_pushed = 0;
  bool m_closed = false;
  std::atomic<int> m_changes{0};
};

}  // namespace headroom::engine
