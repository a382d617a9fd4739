// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/cpu_attention.h"

#include "engine/device/cpu/block_formats.h"

#include <cmath>
#include <limits>

namespace headroom::engine::cpu {
namespace {
struct BlockLayout {
  explicit BlockLayout(const KvLayerView& cache) : cache(cache) {}
  const KvLayerView& cache;
  int64_t elements() const { return cache.blockTokens * cache.kvHeads * (cache.headDim + cache.vHeadDim); }
  int64_t k(int64_t head, int64_t token, int64_t d) const { return (head * cache.headDim + d) * cache.blockTokens + token; }
  int64_t v(int64_t head, int64_t token, int64_t d) const {
    return cache.blockTokens * cache.kvHeads * cache.headDim + (head * cache.blockTokens + token) * cache.vHeadDim + d;
  }
};

float element(DType dtype, const void* data, int64_t index) {
  switch (dtype) {
    case DType::F32:
      return static_cast<const float*>(data)[index];
    case DType::F16:
      return f16ToFloat(static_cast<const uint16_t*>(data)[index]);
    default:
      return bf16ToFloat(static_cast<const uint16_t*>(data)[index]);
  }
}
void setElement(DType dtype, void* data, int64_t index, float value) {
  if (dtype == DType::F32) {
    static_cast<float*>(data)[index] = value;
  } else {
    static_cast<uint16_t*>(data)[index] = dtype == DType::F16 ? floatToF16(value) : floatToBf16(value);
  }
}
}  // namespace

void CpuAttention::store(const KvLayerView& cache, TensorView k, TensorView v, TensorView slots) {
  const BlockLayout layout(cache);
  for (int64_t t = 0; t < k.rows; ++t) {
    const int64_t slot = slots.row<int32_t>(0)[t], base = slot / cache.blockTokens * layout.elements(),
                  offset = slot % cache.blockTokens;
    for (int64_t h = 0; h < cache.kvHeads; ++h) {
      for (int64_t d = 0; d < cache.headDim; ++d)
        setElement(cache.dtype, cache.data, base + layout.k(h, offset, d), k.row<float>(t)[h * cache.headDim + d]);
      for (int64_t d = 0; d < cache.vHeadDim; ++d)
        setElement(cache.dtype, cache.data, base + layout.v(h, offset, d), v.row<float>(t)[h * cache.vHeadDim + d]);
    }
  }
}

void CpuAttention::run(TensorView out, TensorView q, const KvLayerView& cache, const AttentionBatch& batch,
                       const AttentionParams& params) {
  const BlockLayout layout(cache);
  const auto* starts = batch.sequenceStart.row<int32_t>(0);
  const auto* contexts = batch.contextLength.row<int32_t>(0);
  for (int64_t s = 0; s < batch.sequences; ++s) {
    const int64_t tokens = starts[s + 1] - starts[s];
    const auto* blocks = batch.blockTable.row<int32_t>(s);
    m_pool.run(tokens * params.qHeads, [&](int64_t item, int) {
      const int64_t row = starts[s] + item / params.qHeads, head = item % params.qHeads;
      const int64_t kvHead = (params.qHeadBegin + head) / params.groupSize - params.kvHeadBegin;
      const int64_t position = contexts[s] - tokens + item / params.qHeads;
      int64_t begin = 0;
      if (params.window > 0)
        begin =
            params.chunkedWindow ? position / params.window * params.window : std::max<int64_t>(0, position - params.window + 1);
      const float* query = q.row<float>(row) + head * cache.headDim;
      float* to = out.row<float>(row) + head * cache.vHeadDim;
      std::vector<float> scores(static_cast<size_t>(position + 1 - begin));
      float top = params.sinks ? params.sinks[head] : -std::numeric_limits<float>::infinity();
      for (int64_t j = begin; j <= position; ++j) {
        const int64_t base = blocks[j / cache.blockTokens] * layout.elements();
        float score = 0;
        for (int64_t d = 0; d < cache.headDim; ++d)
          score += query[d] * element(cache.dtype, cache.data, base + layout.k(kvHead, j % cache.blockTokens, d));
        score *= params.scale;
        if (params.softcap > 0) score = params.softcap * std::tanh(score / params.softcap);
        scores[static_cast<size_t>(j - begin)] = score;
        top = std::max(top, score);
      }
      float sum = params.sinks ? std::exp(params.sinks[head] - top) : 0.0f;
      std::fill(to, to + cache.vHeadDim, 0.0f);
      for (int64_t j = begin; j <= position; ++j) {
        const float p = std::exp(scores[static_cast<size_t>(j - begin)] - top);
        sum += p;
        const int64_t base = blocks[j / cache.blockTokens] * layout.elements();
        for (int64_t d = 0; d < cache.vHeadDim; ++d)
          to[d] += p * element(cache.dtype, cache.data, base + layout.v(kvHead, j % cache.blockTokens, d));
      }
      for (int64_t d = 0; d < cache.vHeadDim; ++d) to[d] /= sum;
    });
  }
}

}  // namespace headroom::engine::cpu
