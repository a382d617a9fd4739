// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/state_cache.h"

#include "core/result.h"

namespace headroom::engine {

StateCache::StateCache(int32_t firstSlot, int64_t count) : m_firstSlot(firstSlot), m_entries(static_cast<size_t>(count)) {
  for (size_t index = 0; index < m_entries.size(); ++index) m_entries[index].place = m_order.insert(m_order.end(), index);
}

void StateCache::touch(Entry& entry) { m_order.splice(m_order.end(), m_order, entry.place); }

StateCache::Taken StateCache::take(const std::optional<Taken>& mine) {
  expects(!empty(), "a cache of states without slots gives none");
  size_t index = m_order.front();
  if (mine) {
    const auto own = static_cast<size_t>(mine->slot - m_firstSlot);
    if (m_entries.at(own).turn == mine->turn) index = own;
  }
  Entry& entry = m_entries[index];
  if (entry.prefix) m_byPrefix.erase(*entry.prefix);
  entry.prefix.reset();
  entry.turn = ++m_turn;
  touch(entry);
  return {m_firstSlot + static_cast<int32_t>(index), entry.turn};
}

void StateCache::publish(const Taken& taken, const BlockHash& prefix) {
  const auto index = static_cast<size_t>(taken.slot - m_firstSlot);
  Entry& entry = m_entries.at(index);
  if (entry.turn != taken.turn || entry.prefix || !m_byPrefix.emplace(prefix, index).second) return;
  entry.prefix = prefix;
}

std::optional<int32_t> StateCache::find(const BlockHash& prefix) {
  const auto found = m_byPrefix.find(prefix);
  if (found == m_byPrefix.end()) return std::nullopt;
  touch(m_entries[found->second]);
  return m_firstSlot + static_cast<int32_t>(found->second);
}

}  // namespace headroom::engine
