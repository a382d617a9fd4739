// SPDX-License-Identifier: Apache-2.0
// Which slots hold the state that linear attention has behind a known prefix. Host only; one thread at a time.
//
// A state stands for all tokens before it and cannot be cut shorter, so a prompt that begins like an earlier one goes on only
// from where a copy was kept. What was used least recently gives way.
#pragma once

#include "engine/schedule/block_pool.h"

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

namespace headroom::engine {

class StateCache {
 public:
  // Slots firstSlot … firstSlot + count.
  StateCache(int32_t firstSlot, int64_t count);

  bool empty() const { return m_entries.empty(); }  // has no slots
  // A slot that a step writes a copy to. It is the taker's until the slot is taken again, which its `turn` tells.
  struct Taken {
    int32_t slot = -1;
    uint64_t turn = 0;
  };
  // The slot that was used least recently; what it held is forgotten. `mine` is taken in its place while it still is the
  // holder's.
  Taken take(const std::optional<Taken>& mine = {});
  // The copy is there: others may find it. Nothing happens where another has taken the slot, or another slot has the same.
  void publish(const Taken& taken, const BlockHash& prefix);
  // The slot with the state behind the prefix, used now.
  std::optional<int32_t> find(const BlockHash& prefix);
  bool contains(const BlockHash& prefix) const { return m_byPrefix.contains(prefix); }

 private:
  struct Entry {
    uint64_t turn = 0;
    std::optional<BlockHash> prefix;
    std::list<size_t>::iterator place;  // in m_order
  };
  struct HashOfHash {
    size_t operator()(const BlockHash& hash) const { return hash.low; }
  };
  void touch(Entry& entry);

  int32_t m_firstSlot;
  std::vector<Entry> m_entries;
  std::list<size_t> m_order;  // the least recently used first
  std::unordered_map<BlockHash, size_t, HashOfHash> m_byPrefix;
  uint64_t m_turn = 0;
};

}  // namespace headroom::engine
