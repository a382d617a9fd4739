// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/block_pool.h"

#include "core/result.h"

#include <random>

namespace headroom::engine {

namespace {

struct Seeds {
  uint64_t low, high;
};

const Seeds& processSeeds() {
  static const Seeds seeds = [] {
    std::random_device device;
    auto draw = [&] { return (static_cast<uint64_t>(device()) << 32) | device(); };
    return Seeds{draw() | 1, draw() | 1};
  }();
  return seeds;
}

uint64_t mix(uint64_t value) {
  // Finalizer of SplitMix64: https://prng.di.unimi.it/splitmix64.c
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

BlockHash hashBlock(const BlockHash& parent, std::span<const int32_t> tokens) {
  const Seeds& seeds = processSeeds();
  BlockHash hash{mix(parent.low + seeds.low), mix(parent.high ^ seeds.high)};
  for (const int32_t token : tokens) {
    const auto value = static_cast<uint64_t>(static_cast<uint32_t>(token)) + 1;
    hash.low = mix(hash.low ^ (value * seeds.low));
    hash.high = mix((hash.high + value) * seeds.high);
  }
  return hash;
}

BlockPool::BlockPool(int64_t blocks, int64_t blockTokens, bool prefixCaching)
    : m_blocks(static_cast<size_t>(blocks)), m_blockTokens(blockTokens), m_prefixCaching(prefixCaching) {
  m_byHash.reserve(prefixCaching ? m_blocks.size() : 0);
  for (BlockId id = 0; id < blocks; ++id) m_blocks[id].place = m_free.insert(m_free.end(), id);
}

std::optional<BlockId> BlockPool::allocate() {
  if (m_free.empty()) return std::nullopt;
  const BlockId id = m_free.front();
  m_free.pop_front();
  Block& block = m_blocks[id];
  if (block.hash) {
    m_byHash.erase(*block.hash);
    block.hash.reset();
  }
  block.holders = 1;
  return id;
}

std::optional<BlockId> BlockPool::acquire(const BlockHash& hash) {
  const auto found = m_byHash.find(hash);
  if (found == m_byHash.end()) return std::nullopt;
  Block& block = m_blocks[found->second];
  if (block.holders++ == 0) m_free.erase(block.place);
  return found->second;
}

void BlockPool::release(BlockId id) {
  Block& block = m_blocks[id];
  expects(block.holders > 0, "a KV block is released more often than it was taken");
  if (--block.holders > 0) return;
  block.place = m_free.insert(block.hash ? m_free.end() : m_free.begin(), id);
}

void BlockPool::publish(BlockId id, const BlockHash& hash) {
  if (!m_prefixCaching || m_blocks[id].hash) return;
  if (m_byHash.emplace(hash, id).second) m_blocks[id].hash = hash;
}

}  // namespace headroom::engine
