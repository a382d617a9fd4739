// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/cpu_attention.h"

#include "engine/device/cpu/block_formats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace headroom::engine::cpu {
namespace {

constexpr int64_t kRowsPerItem = 48;       // query rows that share one reading of K and V
constexpr int64_t kTokensToSplitUpTo = 8;  // steps with more tokens have items enough

struct BlockLayout {
  explicit BlockLayout(const KvLayerView& cache) : cache(cache) {}
  const KvLayerView& cache;
  int64_t codes() const {
    return cache.blockTokens * cache.kvHeads * (cache.headDim + (cache.valuesInKeys ? 0 : cache.vHeadDim));
  }
  // From block to block. The elements of a cache with scales are bytes.
  int64_t elements() const {
    const int64_t scales = cache.dtype != DType::I8 ? 0 : cache.valuesInKeys ? 1 : 2;
    return codes() + scales * cache.kvHeads * cache.blockTokens * static_cast<int64_t>(sizeof(float));
  }
  // Element offsets inside a block: K (headDim, blockTokens) and V (blockTokens, vHeadDim) of a head.
  int64_t k(int64_t head) const { return head * cache.headDim * cache.blockTokens; }
  int64_t v(int64_t head) const { return cache.blockTokens * (cache.kvHeads * cache.headDim + head * cache.vHeadDim); }
  int64_t kScale(int64_t head) const { return codes() + head * cache.blockTokens * static_cast<int64_t>(sizeof(float)); }
  int64_t vScale(int64_t head) const { return cache.valuesInKeys ? kScale(head) : kScale(cache.kvHeads + head); }
};

const std::byte* elementAt(const KvLayerView& cache, int64_t index) {
  return static_cast<const std::byte*>(cache.data) + index * dtypeInfo(cache.dtype).blockBytes;
}

template <class T, class Convert>
void storeToken(const KvLayerView& cache, int64_t slot, const float* k, const float* v, const Convert& convert) {
  const BlockLayout layout(cache);
  const int64_t offset = slot % cache.blockTokens;
  T* block = static_cast<T*>(cache.data) + slot / cache.blockTokens * layout.elements();
  for (int64_t i = 0; i < cache.kvHeads * cache.headDim; ++i) block[i * cache.blockTokens + offset] = convert(k[i]);
  if (cache.valuesInKeys) return;
  for (int64_t head = 0; head < cache.kvHeads; ++head)
    for (int64_t d = 0; d < cache.vHeadDim; ++d)
      block[layout.v(head) + offset * cache.vHeadDim + d] = convert(v[head * cache.vHeadDim + d]);
}

// A head's numbers as whole ones of -127 … 127, `stride` apart; returns what to multiply them with. Numbers that are not finite
// make the whole head so, as they would in a cache of floats.
float storeCodes(const float* from, int64_t count, int8_t* to, int64_t stride) {
  float largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    finite = finite && std::isfinite(from[i]);
    largest = std::max(largest, std::fabs(from[i]));
  }
  const float scale = largest / 127.0f, factor = finite && largest > 0 ? 127.0f / largest : 0.0f;
  for (int64_t i = 0; i < count; ++i)
    to[i * stride] = finite ? static_cast<int8_t>(std::clamp(std::nearbyint(from[i] * factor), -127.0f, 127.0f)) : int8_t{1};
  return finite ? scale : std::numeric_limits<float>::quiet_NaN();
}

void storeTokenScaled(const KvLayerView& cache, int64_t slot, const float* k, const float* v) {
  const BlockLayout layout(cache);
  const int64_t offset = slot % cache.blockTokens;
  auto* block = static_cast<int8_t*>(cache.data) + slot / cache.blockTokens * layout.elements();
  const auto putScale = [&](int64_t scales, float scale) {
    std::memcpy(block + scales + offset * static_cast<int64_t>(sizeof scale), &scale, sizeof scale);
  };
  for (int64_t head = 0; head < cache.kvHeads; ++head) {
    putScale(layout.kScale(head),
             storeCodes(k + head * cache.headDim, cache.headDim, block + layout.k(head) + offset, cache.blockTokens));
    if (cache.valuesInKeys) continue;
    putScale(layout.vScale(head),
             storeCodes(v + head * cache.vHeadDim, cache.vHeadDim, block + layout.v(head) + offset * cache.vHeadDim, 1));
  }
}

}  // namespace

struct CpuAttention::Call {
  TensorView out, q;
  const KvLayerView& cache;
  const AttentionBatch& batch;
  const AttentionParams& params;

  int64_t start(int64_t sequence) const { return batch.sequenceStart.row<int32_t>(0)[sequence]; }
  int64_t context(int64_t sequence) const { return batch.contextLength.row<int32_t>(0)[sequence]; }
  int64_t position(int64_t sequence, int64_t token) const { return context(sequence) - start(sequence + 1) + token; }
  // The first token that a token at `position` sees.
  int64_t firstSeen(int64_t position) const {
    if (params.window <= 0) return 0;
    return params.chunkedWindow ? position / params.window * params.window : std::max<int64_t>(0, position - params.window + 1);
  }
  int64_t outWidth() const { return roundUp(cache.vHeadDim, 16); }
};

struct CpuAttention::Softmax {
  Softmax(float* floats, int64_t rows, int64_t width)
      : values(floats), tops(values + rows * width), sums(tops + rows), rows(rows), width(width) {}
  static int64_t floats(int64_t rows, int64_t width) { return roundUp(rows * (width + 2), 16); }
  void clear() const {
    std::fill_n(values, rows * width, 0.0f);
    std::fill_n(tops, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(sums, rows, 0.0f);
  }
  // Takes in the partial result of later tokens.
  void merge(const Softmax& later) const {
    for (int64_t r = 0; r < rows; ++r) {
      if (later.sums[r] == 0.0f) continue;  // saw nothing
      const float top = std::max(tops[r], later.tops[r]), mine = std::exp(tops[r] - top), theirs = std::exp(later.tops[r] - top);
      for (int64_t i = r * width; i < (r + 1) * width; ++i) values[i] = values[i] * mine + later.values[i] * theirs;
      sums[r] = sums[r] * mine + later.sums[r] * theirs;
      tops[r] = top;
    }
  }
  float *values, *tops, *sums;  // (rows, width), (rows), (rows)
  int64_t rows, width;
};

void CpuAttention::store(const KvLayerView& cache, TensorView k, TensorView v, TensorView slots) {
  const auto* slot = slots.row<int32_t>(0);
  const auto one = [&](int64_t t, int) {
    switch (cache.dtype) {
      case DType::F32:
        storeToken<float>(cache, slot[t], k.row<float>(t), v.row<float>(t), [](float x) { return x; });
        break;
      case DType::F16:
        storeToken<uint16_t>(cache, slot[t], k.row<float>(t), v.row<float>(t), floatToF16);
        break;
      case DType::F8E4M3:
        storeToken<uint8_t>(cache, slot[t], k.row<float>(t), v.row<float>(t), floatToE4m3);
        break;
      case DType::I8:
        storeTokenScaled(cache, slot[t], k.row<float>(t), v.row<float>(t));
        break;
      case DType::F8E5M2:
        storeToken<uint8_t>(cache, slot[t], k.row<float>(t), v.row<float>(t), floatToE5m2);
        break;
      default:
        storeToken<uint16_t>(cache, slot[t], k.row<float>(t), v.row<float>(t), floatToBf16);
        break;
    }
  };
  if (k.rows >= 64) {
    m_pool.run(k.rows, one);
  } else {
    for (int64_t t = 0; t < k.rows; ++t) one(t, 0);
  }
}

void CpuAttention::plan(const Call& call) {
  m_items.clear();
  m_merges.clear();
  int64_t partialFloats = 0;
  for (int64_t s = 0; s < call.batch.sequences; ++s) {
    const int64_t begin = call.start(s), end = call.start(s + 1), splits = ceilDiv(call.context(s), kSplitTokens);
    for (int64_t kvHead = 0; kvHead < call.cache.kvHeads; ++kvHead) {
      const int64_t firstHead = (call.params.kvHeadBegin + kvHead) * call.params.groupSize - call.params.qHeadBegin;
      const int64_t headBegin = std::max<int64_t>(0, firstHead),
                    headEnd = std::min(call.params.qHeads, firstHead + call.params.groupSize);
      if (headBegin >= headEnd) continue;
      const int64_t step = std::max<int64_t>(1, kRowsPerItem / (headEnd - headBegin));
      for (int64_t t = begin; t < end; t += step) {
        Item item = {s, kvHead, t, std::min(end, t + step), headBegin, headEnd};
        if (splits == 1 || end - begin > kTokensToSplitUpTo || m_pool.threads() == 1) {
          m_items.push_back(item);
          continue;
        }
        item.partial = partialFloats;
        m_merges.push_back({item, splits});
        for (item.split = 0; item.split < splits; ++item.split) {
          item.partial = partialFloats;
          m_items.push_back(item);
          partialFloats += Softmax::floats(item.rows(), call.outWidth());
        }
      }
    }
  }
  m_partials.reserve(partialFloats * static_cast<int64_t>(sizeof(float)));
}

void CpuAttention::run(TensorView out, TensorView q, const KvLayerView& cache, const AttentionBatch& batch,
                       const AttentionParams& params) {
  const Call call = {out, q, cache, batch, params};
  plan(call);
  // The longest contexts of a prompt come last in its rows: begin with them.
  const auto items = static_cast<int64_t>(m_items.size());
  m_pool.run(items, [&](int64_t i, int thread) { attend(call, m_items[static_cast<size_t>(items - 1 - i)], thread); });
  if (!m_merges.empty())
    m_pool.run(static_cast<int64_t>(m_merges.size()),
               [&](int64_t i, int thread) { mergePartials(call, m_merges[static_cast<size_t>(i)], thread); });
}

void CpuAttention::attend(const Call& call, const Item& item, int thread) {
  const int64_t rows = item.rows(), heads = item.headEnd - item.headBegin, headDim = call.cache.headDim, width = call.outWidth();
  const int64_t workFloats = kChunkTokens * (headDim + width + rows + 2) + roundUp(rows, 16),
                resultFloats = Softmax::floats(rows, width);
  float* queries = m_scratch[static_cast<size_t>(thread)].reserve<float>(
      (roundUp(rows * headDim, 16) + workFloats + 2 * resultFloats) * static_cast<int64_t>(sizeof(float)));
  float *work = queries + roundUp(rows * headDim, 16), *results = work + workFloats;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = call.q.row<float>(item.tokenBegin + r / heads) + (item.headBegin + r % heads) * headDim;
    for (int64_t d = 0; d < headDim; ++d) queries[r * headDim + d] = from[d] * call.params.scale;
  }
  if (item.split >= 0) {
    attendSplit(call, item, item.split, queries, work, Softmax(m_partials.data<float>() + item.partial, rows, width));
    return;
  }
  const Softmax all(results, rows, width), part(results + resultFloats, rows, width);
  all.clear();
  const int64_t firstPosition = call.position(item.sequence, item.tokenBegin),
                lastPosition = call.position(item.sequence, item.tokenEnd - 1);
  for (int64_t split = call.firstSeen(firstPosition) / kSplitTokens; split <= lastPosition / kSplitTokens; ++split) {
    attendSplit(call, item, split, queries, work, part);
    all.merge(part);
  }
  finish(call, item, all);
}

void CpuAttention::attendSplit(const Call& call, const Item& item, int64_t split, const float* queries, float* work,
                               const Softmax& to) const {
  const KvLayerView& cache = call.cache;
  const BlockLayout layout(cache);
  const int64_t rows = item.rows(), heads = item.headEnd - item.headBegin, blockTokens = cache.blockTokens;
  const auto* blocks = call.batch.blockTable.row<int32_t>(item.sequence);
  float *keys = work, *values = keys + kChunkTokens * cache.headDim, *scores = values + kChunkTokens * to.width,
        *keyScales = scores + kChunkTokens * rows, *valueScales = keyScales + kChunkTokens, *factors = valueScales + kChunkTokens;
  const bool scaled = cache.dtype == DType::I8;
  to.clear();
  const int64_t firstPosition = call.position(item.sequence, item.tokenBegin),
                lastPosition = call.position(item.sequence, item.tokenEnd - 1);
  const int64_t begin = std::max(split * kSplitTokens, call.firstSeen(firstPosition) / kChunkTokens * kChunkTokens);
  const int64_t end = std::min((split + 1) * kSplitTokens, lastPosition + 1);
  for (int64_t chunk = begin; chunk < end; chunk += kChunkTokens) {
    const int64_t count = std::min(kChunkTokens, end - chunk), columns = roundUp(count, 16);
    // What windows hide from all rows is not read: its blocks may be gone.
    const int64_t readBegin = std::max(chunk, call.firstSeen(firstPosition));
    if (readBegin > chunk || count < columns || cache.vHeadDim < to.width)
      std::fill_n(keys, kChunkTokens * (cache.headDim + to.width), 0.0f);
    if (scaled) std::fill_n(keyScales, 2 * kChunkTokens, 0.0f);
    for (int64_t token = readBegin; token < chunk + count;) {
      const int64_t offset = token % blockTokens, run = std::min(blockTokens - offset, chunk + count - token);
      const int64_t base = blocks[token / blockTokens] * layout.elements();
      m_kernels.copyRows(cache.dtype, elementAt(cache, base + layout.k(item.kvHead) + offset), blockTokens, cache.headDim, run,
                         keys + token - chunk, kChunkTokens);
      if (cache.valuesInKeys) {
        const float* latent = keys + (cache.headDim - cache.vHeadDim) * kChunkTokens + token - chunk;
        for (int64_t i = 0; i < run; ++i)
          for (int64_t d = 0; d < cache.vHeadDim; ++d) values[(token - chunk + i) * to.width + d] = latent[d * kChunkTokens + i];
      } else {
        m_kernels.copyRows(cache.dtype, elementAt(cache, base + layout.v(item.kvHead) + offset * cache.vHeadDim), cache.vHeadDim,
                           run, cache.vHeadDim, values + (token - chunk) * to.width, to.width);
      }
      if (scaled) {
        const auto copyScales = [&](int64_t scales, float* to) {
          m_kernels.copyRows(DType::F32, elementAt(cache, base + scales + offset * static_cast<int64_t>(sizeof(float))), 0, 1,
                             run, to + token - chunk, 0);
        };
        copyScales(layout.kScale(item.kvHead), keyScales);
        copyScales(layout.vScale(item.kvHead), valueScales);
      }
      token += run;
    }
    m_kernels.multiply(queries, cache.headDim, rows, cache.headDim, keys, kChunkTokens, columns, scores, kChunkTokens, nullptr);
    if (scaled) m_kernels.scaleColumns(scores, kChunkTokens, rows, columns, keyScales);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t position = call.position(item.sequence, item.tokenBegin + r / heads);
      const int64_t seen = std::max<int64_t>(0, call.firstSeen(position) - chunk), past = std::min(count, position + 1 - chunk);
      factors[r] =
          m_kernels.softmaxStep(scores + r * kChunkTokens, seen, past, columns, call.params.softcap, to.tops[r], to.sums[r]);
    }
    // A score's weight times the scale of the token's values: the sum of the weights is taken before.
    if (scaled) m_kernels.scaleColumns(scores, kChunkTokens, rows, columns, valueScales);
    m_kernels.multiply(scores, kChunkTokens, rows, count, values, to.width, to.width, to.values, to.width, factors);
  }
}

void CpuAttention::mergePartials(const Call& call, const Merge& merge, int thread) {
  const int64_t rows = merge.item.rows(), width = call.outWidth(), size = Softmax::floats(rows, width);
  const Softmax all(m_scratch[static_cast<size_t>(thread)].reserve<float>(size * static_cast<int64_t>(sizeof(float))), rows,
                    width);
  all.clear();
  for (int64_t split = 0; split < merge.splits; ++split)
    all.merge(Softmax(m_partials.data<float>() + merge.item.partial + split * size, rows, width));
  finish(call, merge.item, all);
}

void CpuAttention::finish(const Call& call, const Item& item, const Softmax& result) const {
  const int64_t heads = item.headEnd - item.headBegin;
  for (int64_t r = 0; r < result.rows; ++r) {
    const int64_t head = item.headBegin + r % heads;
    float* to = call.out.row<float>(item.tokenBegin + r / heads) + head * call.cache.vHeadDim;
    float factor = 1.0f, sum = result.sums[r];
    if (call.params.sinks) {  // a logit that takes its share and gives nothing
      const float sink = call.params.sinks[head], top = std::max(result.tops[r], sink);
      factor = std::exp(result.tops[r] - top);
      sum = sum * factor + std::exp(sink - top);
    }
    factor /= sum;
    for (int64_t d = 0; d < call.cache.vHeadDim; ++d) to[d] = result.values[r * result.width + d] * factor;
  }
}

}  // namespace headroom::engine::cpu
