// SPDX-License-Identifier: Apache-2.0
// From two neighbouring ids to the rank and id of what they join to: open addressing, built once, read by any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace headroom::engine::text {

class PairTable {
 public:
  struct Join {
    uint32_t rank;
    int32_t id;
  };

  explicit PairTable(size_t pairs) : m_mask(std::bit_ceil(pairs * 2 + 16) - 1), m_slots(m_mask + 1) {}

  void set(int32_t left, int32_t right, Join join) { m_slots[place(key(left, right))] = {key(left, right), join}; }
  const Join* find(int32_t left, int32_t right) const {
    const Slot& slot = m_slots[place(key(left, right))];
    return slot.key == kNone ? nullptr : &slot.join;
  }

 private:
  static constexpr uint64_t kNone = ~0ull;
  struct Slot {
    uint64_t key = kNone;
    Join join{};
  };
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t place(uint64_t key) const {
    size_t at = (key * 0x9E3779B97F4A7C15ull >> 29) & m_mask;
    while (m_slots[at].key != kNone && m_slots[at].key != key) at = (at + 1) & m_mask;
    return at;
  }

  size_t m_mask;
  std::vector<Slot> m_slots;
};

}  // namespace headroom::engine::text
