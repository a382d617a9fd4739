// SPDX-License-Identifier: Apache-2.0
#include "engine/model/kv_cache.h"

#include "core/memory/kv_cache_size.h"

namespace headroom::engine {

namespace {
bool hasNoKeys(AttentionKind kind) { return kind == AttentionKind::None || kind == AttentionKind::LinearAttention; }
}  // namespace

Result<KvCache> KvCache::allocate(const ModelConfig& config, const RankSlice& rank, const EngineLimits& limits, int64_t blocks,
                                  Backend& backend) {
  KvCache cache;
  for (int64_t i = rank.layers.begin; i < rank.layers.end; ++i) {
    const LayerSpec& layer = config.layers[static_cast<size_t>(i)];
    KvLayerView view;
    view.dtype = limits.kvDType;
    view.blocks = blocks;
    view.blockTokens = limits.blockTokens;
    view.kvHeads = hasNoKeys(layer.attention) ? 0 : kvHeadsOfLayer(config, rank, layer).size();
    view.headDim = layer.headDim;
    view.vHeadDim = layer.vHeadDim > 0 ? layer.vHeadDim : layer.headDim;
    if (layer.attention == AttentionKind::Latent) {  // one head for all: the key's part with RoPE, then the latent
      view.kvHeads = 1;
      view.headDim = layer.latent.qkRopeHeadDim + layer.latent.kvLoraRank;
      view.vHeadDim = layer.latent.kvLoraRank;
      view.valuesInKeys = true;
    }
    const Bytes size =
        kvCacheBytes(view.dtype, blocks * view.blockTokens, view.kvHeads, view.headDim, view.valuesInKeys ? 0 : view.vHeadDim);
    if (size > Bytes(0)) {
      Result<DeviceBuffer> buffer = backend.allocate(size, fmt::format("KV cache of layer {}", i));
      if (!buffer) return tl::unexpected(buffer.error());
      view.data = buffer->data();
      cache.m_allocated += size;
      cache.m_buffers.push_back(std::move(*buffer));
    }
    cache.m_views.push_back(view);
  }
  return cache;
}

}  // namespace headroom::engine
