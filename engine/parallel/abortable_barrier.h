// SPDX-License-Identifier: Apache-2.0
// A barrier whose waiters can be woken for good. std::barrier cannot be cancelled, and a rank that fails must wake its peers.
#pragma once

#include <atomic>

namespace headroom::engine {

// One polite turn of a spinning wait.
inline void pauseWhileSpinning() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waits until `value` is no longer `old`: spins a little when allowed, then sleeps.
inline void waitWhileEqual(const std::atomic<int>& value, int old, bool spin) {
  constexpr int kSpins = 4000;  // some ten microseconds, about the length of a small operation
  for (int i = 0; spin && i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pauseWhileSpinning();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

// Any thread. `spin` is for groups that have a core for each party.
class AbortableBarrier {
 public:
  AbortableBarrier(int parties, bool spin) : m_parties(parties), m_spin(spin) {}

  // True when all parties have arrived; false, now and ever after, once abort() was called.
  bool arriveAndWait() {
    const int round = m_round.load(std::memory_order_acquire);
    if (m_aborted.load(std::memory_order_acquire)) return false;
    if (m_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == m_parties) {
      m_arrived.store(0, std::memory_order_relaxed);
      nextRound();
    } else {
      waitWhileEqual(m_round, round, m_spin);
    }
    return !m_aborted.load(std::memory_order_acquire);
  }
  void abort() {
    m_aborted.store(true, std::memory_order_release);
    nextRound();
  }

 private:
  void nextRound() {
    m_round.fetch_add(1, std::memory_order_acq_rel);
    m_round.notify_all();
  }
  const int m_parties;
  const bool m_spin;
  std::atomic<int> m_arrived{0};
  std::atomic<int> m_round{0};
  std::atomic<bool> m_aborted{false};
};

}  // namespace headroom::engine
