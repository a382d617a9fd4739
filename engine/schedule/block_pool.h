// SPDX-License-Identifier: Apache-2.0
// The KV blocks of one replica: which are in use, which hold a known prefix, which goes next. Host only; one thread at a time.
//
// A block that no sequence holds any more keeps its contents and its hash until it is needed for something else (least recently used first), so a prompt
// that begins like an earlier one finds its blocks again.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace headroom::engine {

using BlockId = int32_t;

// Identifies the tokens of a block and all before it. 128 bits, seeded anew in each process, so that nobody can aim at a collision.
struct BlockHash {
  uint64_t low = 0, high = 0;
  friend bool operator==(const BlockHash&, const BlockHash&) = default;
};

// Hash of a full block that follows `parent` (a default BlockHash for the first).
BlockHash hashBlock(const BlockHash& parent, std::span<const int32_t> tokens);

class BlockPool {
 public:
  BlockPool(int64_t blocks, int64_t blockTokens, bool prefixCaching);

  int64_t total() const { return static_cast<int64_t>(m_blocks.size()); }
  int64_t free() const { return static_cast<int64_t>(m_free.size()); }  // held by no sequence, whether or not they hold a prefix
  int64_t blockTokens() const { return m_blockTokens; }
  bool prefixCaching() const { return m_prefixCaching; }

  // A block for one holder; its old contents are forgotten. Empty when none is free.
  std::optional<BlockId> allocate();
  // The block with these contents, held once more; empty when unknown.
  std::optional<BlockId> acquire(const BlockHash& hash);
  bool contains(const BlockHash& hash) const { return m_byHash.contains(hash); }
  void release(BlockId block);
  // The block is full and computed: others may find it. A second block with the same contents stays unnamed.
  void publish(BlockId block, const BlockHash& hash);

 private:
  struct HashOfHash {
    size_t operator()(const BlockHash& hash) const { return hash.low; }
  };
  struct Block {
    int32_t holders = 0;
    std::optional<BlockHash> hash;
    std::list<BlockId>::iterator place;  // in m_free while holders == 0
  };
  std::vector<Block> m_blocks;
  std::list<BlockId> m_free;  // next to be reused first: unnamed blocks, then by time of release
  std::unordered_map<BlockHash, BlockId, HashOfHash> m_byHash;
  int64_t m_blockTokens;
  bool m_prefixCaching;
};

}  // namespace headroom::engine
