// SPDX-License-Identifier: Apache-2.0
// Attention kernels in the emulation against double precision, over a cache that storeKv has filled.
#include "engine/device/cuda/kernels/attention.h"
#include "engine/device/cuda/kernels/rope_kv.h"

#include "tests/engine/cuda_kernels_support.h"

#include <algorithm>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda;
using namespace headroom::engine::cuda::test;

namespace {

// Sequences of a step: how many tokens each brings, and its context with them.
struct Sequence {
  int tokens, context;
};

struct Case {
  const char* name;
  DType type, cacheType;
  int64_t headDim, vHeadDim;
  int64_t qHeads, groupSize, qHeadBegin;  // kv heads follow
  std::vector<Sequence> sequences;
  int64_t window = 0;
  bool chunked = false, sinks = false, latent = false;
  float softcap = 0.0f;
  int splits = 1;
  bool tensorCores = true;
  int64_t sharedBytes = 160 * 1024;
};

const std::vector<Sequence> kDecode = {{1, 1}, {1, 70}, {1, 200}}, kPrompt = {{37, 37}}, kMixed = {{5, 90}, {1, 33}, {70, 70}};

std::vector<Case> cases() {
  const DType half = DType::F16, bf16 = DType::BF16, f32 = DType::F32, fp8 = DType::F8E4M3, e5m2 = DType::F8E5M2;
  return {
      {"decode, group of 4", bf16, bf16, 64, 64, 8, 4, 0, kDecode},
      {"decode, group of 4, in parts", half, half, 64, 64, 8, 4, 0, kDecode, 0, false, false, false, 0.0f, 5},
      {"decode, heads of 128", half, half, 128, 128, 2, 2, 0, kDecode},
      {"decode, heads of 128, in parts with sinks", bf16, bf16, 128, 128, 3, 3, 0, kDecode, 0, false, true, false, 0.0f, 3},
      {"decode, heads of 80", half, half, 80, 80, 2, 1, 0, kDecode},
      {"decode, heads of 256", bf16, bf16, 256, 256, 2, 2, 0, kDecode},
      {"decode, window", half, half, 64, 64, 4, 2, 0, kDecode, 40},
      {"decode, window, in parts", half, half, 64, 64, 4, 2, 0, kDecode, 100, false, false, false, 0.0f, 4},
      {"decode, chunked window", half, half, 64, 64, 4, 2, 0, kDecode, 48, true},
      {"decode, softcap", half, half, 64, 64, 4, 2, 0, kDecode, 0, false, false, false, 2.0f},
      {"decode, fp8 cache", bf16, fp8, 64, 64, 4, 4, 0, kDecode},
      {"decode, group of 20", half, half, 64, 64, 20, 20, 0, kDecode},
      {"decode, uneven heads", half, half, 64, 64, 5, 4, 3, kDecode},
      {"prompt", half, half, 64, 64, 4, 2, 0, kPrompt},
      {"prompt, heads of 128", bf16, bf16, 128, 128, 2, 2, 0, kMixed},
      {"prompt, heads of 256", half, half, 256, 256, 1, 1, 0, kPrompt},
      {"prompt, heads of 256, little shared memory", half, half, 256, 256, 2, 2, 0, kPrompt, 0, false, false, false, 0.0f, 1,
       true, 64 * 1024},
      {"mixed", half, half, 64, 64, 6, 3, 0, kMixed},
      {"mixed, in parts", bf16, bf16, 64, 64, 6, 3, 0, kMixed, 0, false, false, false, 0.0f, 2},
      {"mixed, window and sinks", half, half, 64, 64, 4, 2, 0, kMixed, 20, false, true},
      {"mixed, chunked window", half, half, 64, 64, 4, 2, 0, kMixed, 32, true},
      {"mixed, softcap", half, half, 64, 64, 4, 2, 0, kMixed, 0, false, false, false, 1.5f},
      {"mixed, uneven heads", bf16, bf16, 64, 64, 7, 4, 2, kMixed},
      {"mixed, values narrower than keys", half, half, 96, 64, 4, 2, 0, kMixed},
      {"mixed, fp8 cache", half, fp8, 128, 128, 2, 2, 0, kMixed},
      {"mixed, E5M2 cache", bf16, e5m2, 64, 64, 4, 2, 0, kMixed},
      {"plain, E5M2 cache", f32, e5m2, 32, 32, 2, 2, 0, kDecode},
      {"latent cache", bf16, bf16, 576, 512, 4, 4, 0, {{1, 50}, {3, 3}}, 0, false, false, true},
      {"latent cache, 20 heads in parts", half, half, 96, 64, 20, 20, 0, {{1, 90}, {1, 130}}, 0, false, false, true, 0.0f, 2},
      {"plain, floats", f32, f32, 24, 24, 4, 2, 0, kMixed},
      {"plain, floats in parts with sinks", f32, f32, 10, 6, 3, 1, 0, kDecode, 30, false, true, false, 0.0f, 3},
      {"plain, halves over a float cache", half, f32, 64, 64, 4, 2, 0, kDecode, 0, false, false, false, 3.0f},
      {"plain, odd heads", bf16, bf16, 20, 12, 5, 4, 3, kMixed},
      {"plain, fp8 cache and chunked window", f32, fp8, 32, 32, 2, 2, 0, kMixed, 16, true},
      {"plain, latent cache", f32, f32, 40, 32, 4, 4, 0, kMixed, 0, false, false, true},
      {"without tensor cores", half, half, 64, 64, 4, 2, 0, kMixed, 0, false, false, false, 0.0f, 1, false},
  };
}

float rounded(float value, DType type) {
  int mantissa = 3, least = -6;
  float most = 448.0f;
  if (type == DType::BF16) return cpu::bf16ToFloat(cpu::floatToBf16(value));
  if (type == DType::F16) return cpu::f16ToFloat(cpu::floatToF16(value));
  if (type == DType::F8E5M2) type = DType::F8E4M3, mantissa = 2, least = -14, most = 57344.0f;
  if (type != DType::F8E4M3) return value;
  const float size = std::abs(value);  // bits behind the leading one; below 2^least steps stay the same
  const int exponent = size == 0.0f ? least : std::max(least, static_cast<int>(std::floor(std::log2(size))));
  const float unit = std::ldexp(1.0f, exponent - mantissa);
  return std::copysign(std::min(most, std::nearbyint(size / unit) * unit), value);
}

class CudaKernelsAttentionTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void attention_data() {
    QTest::addColumn<int>("index");
    const std::vector<Case> all = cases();
    for (size_t i = 0; i < all.size(); ++i) QTest::newRow(all[i].name) << static_cast<int>(i);
  }
  void attention() {
    QFETCH(int, index);
    const Case which = cases()[static_cast<size_t>(index)];
    Gpu gpu;
    constexpr int kBlockTokens = 16;
    const int64_t kvHeadBegin = which.qHeadBegin / which.groupSize,
                  kvHeads = (which.qHeadBegin + which.qHeads - 1) / which.groupSize - kvHeadBegin + 1;

    // Blocks in shuffled order; entries past a context would end a kernel that reads them.
    int tokens = 0, allTokens = 0, blockCount = 0;
    std::vector<int> start = {0}, contexts, table, slots;
    constexpr int kTableWidth = 16;
    for (const Sequence& sequence : which.sequences) blockCount += (sequence.context + kBlockTokens - 1) / kBlockTokens;
    std::vector<int> order;
    for (int i = 0; i < blockCount; ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), std::mt19937(9));
    size_t next = 0;
    for (const Sequence& sequence : which.sequences) {
      tokens += sequence.tokens;
      allTokens += sequence.context;
      start.push_back(tokens);
      contexts.push_back(sequence.context);
      const size_t first = table.size();
      for (int i = 0; i < kTableWidth; ++i) table.push_back(i * kBlockTokens < sequence.context ? order[next++] : 1 << 30);
      for (int position = 0; position < sequence.context; ++position)
        slots.push_back(table[first + static_cast<size_t>(position / kBlockTokens)] * kBlockTokens + position % kBlockTokens);
    }

    KvCache cache;
    cache.dtype = which.cacheType;
    cache.blockTokens = kBlockTokens;
    cache.kvHeads = kvHeads;
    cache.headDim = which.headDim;
    cache.vHeadDim = which.latent ? 0 : which.vHeadDim;
    const size_t elementSize = which.cacheType == DType::F32                                          ? 4
                               : which.cacheType == DType::F8E4M3 || which.cacheType == DType::F8E5M2 ? 1
                                                                                                      : 2;
    cache.data = gpu.upload(std::vector<uint8_t>(
        static_cast<size_t>(blockCount * kBlockTokens * kvHeads * (cache.headDim + cache.vHeadDim)) * elementSize,
        0x7f));  // not numbers
    const Matrix k(allTokens, kvHeads * which.headDim, which.type, 1, 2.0f),
        v(allTokens, kvHeads * which.vHeadDim, which.type, 2);
    storeKv(gpu.stream, cache, k.upload(gpu), which.latent ? TensorView() : v.upload(gpu), gpu.indices(slots));
    cache.vHeadDim = which.vHeadDim;

    const Matrix q(tokens, which.qHeads * which.headDim, which.type, 3), sinks(1, which.qHeads, DType::F32, 4, 3.0f);
    Matrix out(tokens, which.qHeads * which.vHeadDim, which.type, 5);
    AttentionCall call;
    call.out = out.upload(gpu);
    call.q = q.upload(gpu);
    call.cache = cache;
    call.valuesInKeys = which.latent;
    call.sequences = static_cast<int64_t>(which.sequences.size());
    call.sequenceStart = gpu.upload(start);
    call.contextLength = gpu.upload(contexts);
    call.blockTable = gpu.upload(table);
    call.blockTableStride = kTableWidth;
    call.scale = 0.6f / std::sqrt(static_cast<float>(which.headDim) / 16.0f);
    call.softcap = which.softcap;
    call.window = which.window;
    call.chunkedWindow = which.chunked;
    call.qHeads = which.qHeads;
    call.qHeadBegin = which.qHeadBegin;
    call.kvHeadBegin = kvHeadBegin;
    call.groupSize = which.groupSize;
    if (which.sinks) call.sinks = static_cast<const float*>(sinks.upload(gpu).data);
    call.splits = which.splits;
    if (which.splits > 1)
      call.workspace =
          gpu.allocate(static_cast<size_t>(attentionWorkspaceBytes(tokens, which.qHeads, which.vHeadDim, which.splits)));
    pagedAttention(gpu.stream, call, which.sharedBytes, which.tensorCores);
    out.download(gpu, call.out);
    QCOMPARE(gpu.report(), QString());

    const double relative = which.type == DType::F32 ? 2e-5 : 1.5 * tolerance(which.type);
    int contextBegin = 0;
    for (size_t s = 0; s < which.sequences.size(); ++s) {
      const Sequence& sequence = which.sequences[s];
      for (int i = 0; i < sequence.tokens; ++i) {
        const int position = sequence.context - sequence.tokens + i, token = start[s] + i;
        int64_t seen = 0;
        if (which.window > 0)
          seen = which.chunked ? position / which.window * which.window : std::max<int64_t>(0, position - which.window + 1);
        for (int64_t head = 0; head < which.qHeads; ++head) {
          const int64_t kvHead = (which.qHeadBegin + head) / which.groupSize - kvHeadBegin;
          std::vector<double> weights;
          double top = which.sinks ? sinks.at(0, head) : -1e30, sum = 0;
          for (int64_t key = seen; key <= position; ++key) {
            double score = 0;
            for (int64_t d = 0; d < which.headDim; ++d)
              score += static_cast<double>(q.at(token, head * which.headDim + d)) *
                       rounded(k.at(contextBegin + key, kvHead * which.headDim + d), which.cacheType);
            score *= call.scale;
            if (which.softcap > 0) score = which.softcap * std::tanh(score / which.softcap);
            weights.push_back(score);
            top = std::max(top, score);
          }
          for (double& weight : weights) sum += weight = std::exp(weight - top);
          if (which.sinks) sum += std::exp(sinks.at(0, head) - top);
          for (int64_t d = 0; d < which.vHeadDim; ++d) {
            double expected = 0;
            for (size_t j = 0; j < weights.size(); ++j) {
              const int64_t key = contextBegin + seen + static_cast<int64_t>(j);
              const float value = which.latent ? k.at(key, kvHead * which.headDim + which.headDim - which.vHeadDim + d)
                                               : v.at(key, kvHead * which.vHeadDim + d);
              expected += weights[j] / sum * rounded(value, which.cacheType);
            }
            const double found = out.at(token, head * which.vHeadDim + d);
            if (!(std::abs(found - expected) <= relative * std::max(1.0, std::abs(expected))))
              QFAIL(qPrintable(QString("sequence %1, token %2, head %3, element %4: found %5, expected %6")
                                   .arg(s)
                                   .arg(i)
                                   .arg(head)
                                   .arg(d)
                                   .arg(found)
                                   .arg(expected)));
          }
        }
      }
      contextBegin += sequence.context;
    }
  }

  void partsFollowCountsAlone() {
    AttentionCall call;
    call.cache.kvHeads = 8;
    call.groupSize = 4;
    call.qHeads = 32;
    call.sequences = call.q.rows = 1;
    QCOMPARE(attentionSplits(call, 132), 32);
    call.sequences = call.q.rows = 64;
    QCOMPARE(attentionSplits(call, 132), 1);
    QCOMPARE(attentionWorkspaceBytes(64, 32, 128, 1), 0);
    QCOMPARE(attentionWorkspaceBytes(2, 32, 128, 4), 2 * 32 * 4 * (128 + 2) * 4);
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsAttentionTest)
#include "cuda_kernels_attention_test.moc"
