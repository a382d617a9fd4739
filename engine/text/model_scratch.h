// SPDX-License-Identifier: Apache-2.0
// Work space of the token models, and a cache of the ids of short words. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace headroom::engine::text {

// FNV-like mix over eight bytes at a time; good enough for tables whose keys are compared.
inline uint64_t hashBytes(std::string_view bytes) {
  uint64_t hash = 0x9E3779B97F4A7C15ull ^ bytes.size();
  const auto mix = [&](uint64_t part) {
    hash = (hash ^ part) * 0xD6E8FEB86659FD93ull;
    hash ^= hash >> 32;
  };
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t part;
    std::memcpy(&part, bytes.data() + at, 8);
    mix(part);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  mix(rest);
  return hash;
}

// A direct-mapped table from short words to their ids; a newer word takes the place of an older one.
class WordCache {
 public:
  static constexpr size_t kLongestWord = 40, kMostIds = 12;

  // True where the word is known, with its ids appended.
  bool find(std::string_view word, uint64_t hash, std::vector<int32_t>& ids) const {
    if (m_slots.empty()) return false;
    const Slot& slot = m_slots[hash & (kSlots - 1)];
    if (slot.hash != hash || slot.length != word.size() || std::memcmp(slot.word, word.data(), word.size()) != 0) return false;
    ids.insert(ids.end(), slot.ids, slot.ids + slot.count);
    return true;
  }
  void keep(std::string_view word, uint64_t hash, const int32_t* ids, size_t count) {
    if (word.size() > kLongestWord || count > kMostIds) return;
    if (m_slots.empty()) m_slots.resize(kSlots);
    Slot& slot = m_slots[hash & (kSlots - 1)];
    slot.hash = hash;
    slot.length = static_cast<uint8_t>(word.size());
    slot.count = static_cast<uint8_t>(count);
    std::memcpy(slot.word, word.data(), word.size());
    std::copy(ids, ids + count, slot.ids);
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 14;
  struct Slot {
    uint64_t hash = 0;
    uint8_t length = 255, count = 0;
    char word[kLongestWord];
    int32_t ids[kMostIds];
  };
  std::vector<Slot> m_slots;
};

// One symbol of a word in work, in a doubly linked list.
struct Symbol {
  int32_t id;
  int32_t previous, next;  // -1 at the ends
  uint32_t bytes;          // 0: merged into its left neighbour
};

// A pair that may be joined. Smaller keys come first: rank, then place.
struct Candidate {
  uint64_t key;  // rank << 32 | place of the left symbol
  int32_t joined;
};

struct ModelScratch {
  WordCache cache;
  std::vector<Symbol> symbols;
  std::vector<Candidate> queue;
  std::vector<double> scores;
  std::vector<int32_t> starts, pieces;
};

}  // namespace headroom::engine::text
