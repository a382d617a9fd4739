// SPDX-License-Identifier: Apache-2.0
// Paged attention of the CPU backend against the textbook formula in double precision: windows, caps, sinks, any share of heads,
// mixed steps.
#include "core/memory/kv_cache_size.h"
#include "engine/device/cpu/block_formats.h"
#include "engine/device/cpu/cpu_backend.h"

#include <QtTest>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace headroom;
using namespace headroom::engine;

Q_DECLARE_METATYPE(headroom::DType)
Q_DECLARE_METATYPE(headroom::engine::CpuLevel)

namespace {

struct Setup {
  DType dtype = DType::F32;
  CpuLevel level = bestCpuLevel();
  int threads = 1;
  int64_t blockTokens = 16, kvHeads = 2, headDim = 32, vHeadDim = 32;
  std::vector<std::pair<int64_t, int64_t>> sequences;  // tokens of the step, context with them
  AttentionParams params;
  bool sinks = false;
};

// Sequences with random keys and values, written through storeKv into shuffled blocks.
class Scene {
 public:
  explicit Scene(const Setup& setup, unsigned seed = 1) : m_setup(setup) {
    m_backend = makeCpuBackend({.threads = setup.threads, .level = setup.level});
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    int64_t tokens = 0, blocks = 0, blocksEach = 1;
    m_starts = {0};
    for (const auto& [count, context] : setup.sequences) {
      tokens += count;
      m_starts.push_back(static_cast<int32_t>(tokens));
      m_contexts.push_back(static_cast<int32_t>(context));
      blocksEach = std::max(blocksEach, ceilDiv(context, setup.blockTokens));
      blocks += ceilDiv(context, setup.blockTokens);
    }
    std::vector<int32_t> free(static_cast<size_t>(blocks));
    for (size_t i = 0; i < free.size(); ++i) free[i] = static_cast<int32_t>(i);
    std::shuffle(free.begin(), free.end(), random);
    m_table.assign(setup.sequences.size() * static_cast<size_t>(blocksEach), -1);
    m_cacheBytes =
        m_backend
            ->allocate(kvCacheBytes(setup.dtype, setup.blockTokens * blocks, setup.kvHeads, setup.headDim, setup.vHeadDim),
                       "cache")
            .value();
    std::memset(m_cacheBytes.data(), 0xff, static_cast<size_t>(m_cacheBytes.size().count()));  // NaN wherever nothing was written
    m_cache = {m_cacheBytes.data(), setup.dtype, blocks, setup.blockTokens, setup.kvHeads, setup.headDim, setup.vHeadDim};
    const int64_t kWidth = setup.kvHeads * setup.headDim, vWidth = setup.kvHeads * setup.vHeadDim;
    for (size_t s = 0; s < setup.sequences.size(); ++s) {
      const int64_t context = setup.sequences[s].second;
      std::vector<float> k(static_cast<size_t>(context * (kWidth + 1))), v(static_cast<size_t>(context * vWidth));
      std::vector<int32_t> places;
      for (int64_t t = 0; t < context; ++t) {
        if (t % setup.blockTokens == 0) {
          m_table[s * static_cast<size_t>(blocksEach) + static_cast<size_t>(t / setup.blockTokens)] = free.back();
          free.pop_back();
        }
        places.push_back(static_cast<int32_t>(
            m_table[s * static_cast<size_t>(blocksEach) + static_cast<size_t>(t / setup.blockTokens)] * setup.blockTokens +
            t % setup.blockTokens));
      }
      for (float& x : k) x = round(normal(random));
      for (float& x : v) x = round(normal(random));
      if (setup.dtype == DType::I8) {
        for (int64_t t = 0; t < context; ++t) {
          for (int64_t head = 0; head < setup.kvHeads; ++head) {
            makeWhole(k.data() + t * (kWidth + 1) + head * setup.headDim, setup.headDim, random);
            makeWhole(v.data() + t * vWidth + head * setup.vHeadDim, setup.vHeadDim, random);
          }
        }
      }
      m_backend->storeKv(m_cache, {k.data(), DType::F32, context, kWidth, kWidth + 1},
                         TensorView::of(v.data(), DType::F32, context, vWidth),
                         TensorView::of(places.data(), DType::I32, 1, context));
      m_k.push_back(std::move(k));
      m_v.push_back(std::move(v));
    }
    m_blocksEach = blocksEach;
    m_qWidth = setup.params.qHeads * setup.headDim;
    m_q.resize(static_cast<size_t>(tokens * (m_qWidth + 5)));
    for (float& x : m_q) x = normal(random) * 1.5f;
    m_sinks.resize(static_cast<size_t>(setup.params.qHeads));
    for (float& x : m_sinks) x = normal(random) * 2;
  }

  std::vector<float> run() { return attend(m_starts, m_contexts, m_table, m_q); }
  // All sequences twice in one step.
  std::vector<float> runBesideItself() {
    std::vector<int32_t> starts = m_starts, contexts = m_contexts, table = m_table;
    std::vector<float> q = m_q;
    for (size_t i = 1; i < m_starts.size(); ++i) starts.push_back(m_starts.back() + m_starts[i]);
    contexts.insert(contexts.end(), m_contexts.begin(), m_contexts.end());
    table.insert(table.end(), m_table.begin(), m_table.end());
    q.insert(q.end(), m_q.begin(), m_q.end());
    return attend(starts, contexts, table, q);
  }
  // One sequence whose step is its whole context, a token a step.
  std::vector<float> runTokenByToken() {
    std::vector<float> out;
    for (int32_t t = 0; t < m_contexts[0]; ++t) {
      const std::vector<float> q(m_q.begin() + t * (m_qWidth + 5), m_q.begin() + (t + 1) * (m_qWidth + 5));
      const std::vector<float> one = attend({0, 1}, {t + 1}, m_table, q);
      out.insert(out.end(), one.begin(), one.end());
    }
    return out;
  }

  std::vector<double> reference() const {
    std::vector<double> out;
    const AttentionParams& p = m_setup.params;
    for (size_t s = 0; s < m_contexts.size(); ++s) {
      for (int64_t row = m_starts[s]; row < m_starts[s + 1]; ++row) {
        const int64_t position = m_contexts[s] - m_starts[s + 1] + row;
        for (int64_t head = 0; head < p.qHeads; ++head) {
          const int64_t kvHead = (p.qHeadBegin + head) / p.groupSize - p.kvHeadBegin;
          std::vector<double> weights;
          std::vector<int64_t> seen;
          double total = m_setup.sinks ? std::exp(static_cast<double>(m_sinks[static_cast<size_t>(head)])) : 0.0;
          for (int64_t j = 0; j <= position; ++j) {
            if (p.window > 0 && (p.chunkedWindow ? j / p.window != position / p.window : position - j >= p.window)) continue;
            double score = 0;
            for (int64_t d = 0; d < m_setup.headDim; ++d)
              score += static_cast<double>(m_q[static_cast<size_t>(row * (m_qWidth + 5) + head * m_setup.headDim + d)]) *
                       m_k[s][static_cast<size_t>(j * (m_setup.kvHeads * m_setup.headDim + 1) + kvHead * m_setup.headDim + d)];
            score *= static_cast<double>(p.scale);
            if (p.softcap > 0) score = p.softcap * std::tanh(score / p.softcap);
            weights.push_back(std::exp(score));
            seen.push_back(j);
            total += weights.back();
          }
          for (int64_t d = 0; d < m_setup.vHeadDim; ++d) {
            double sum = 0;
            for (size_t i = 0; i < seen.size(); ++i)
              sum += weights[i] * m_v[s][static_cast<size_t>((seen[i] * m_setup.kvHeads + kvHead) * m_setup.vHeadDim + d)];
            out.push_back(sum / total);
          }
        }
      }
    }
    return out;
  }

 private:
  std::vector<float> attend(std::vector<int32_t> starts, std::vector<int32_t> contexts, std::vector<int32_t> table,
                            std::vector<float> q) {
    const int64_t rows = starts.back(), width = m_setup.params.qHeads * m_setup.vHeadDim,
                  sequences = static_cast<int64_t>(contexts.size());
    std::vector<float> out(static_cast<size_t>(rows * width), 99.0f);
    const AttentionBatch batch = {sequences, TensorView::of(starts.data(), DType::I32, 1, sequences + 1),
                                  TensorView::of(contexts.data(), DType::I32, 1, sequences),
                                  TensorView::of(table.data(), DType::I32, sequences, m_blocksEach), TensorView{}};
    AttentionParams params = m_setup.params;
    params.sinks = m_setup.sinks ? m_sinks.data() : nullptr;
    m_backend->pagedAttention(TensorView::of(out.data(), DType::F32, rows, width),
                              {q.data(), DType::F32, rows, m_qWidth, m_qWidth + 5}, m_cache, batch, params);
    if (!m_backend->sync()) qFatal("sync failed");
    return out;
  }

  // To the nearest number of the cache's type, so that storing loses nothing: both have 8 bits or more.
  // To numbers that the cache's type holds.
  float round(float x) const {
    if (m_setup.dtype == DType::F8E4M3 || m_setup.dtype == DType::F8E5M2) return std::clamp(std::round(x * 2) / 2, -3.0f, 3.0f);
    return m_setup.dtype == DType::F32 ? x : std::round(x * 32) / 32;
  }

  // Whole multiples of a power of two, the largest 127 of them: that is the head's scale, and storing loses nothing.
  static void makeWhole(float* head, int64_t count, std::mt19937& random) {
    const float scale = std::ldexp(1.0f, -5 - static_cast<int>(random() % 4));
    for (int64_t i = 0; i < count; ++i) head[i] = std::clamp(std::round(head[i] / scale), -127.0f, 127.0f) * scale;
    head[static_cast<int64_t>(random()) % count] = random() % 2 ? 127 * scale : -127 * scale;
  }

  Setup m_setup;
  std::unique_ptr<Backend> m_backend;
  DeviceBuffer m_cacheBytes;
  KvLayerView m_cache;
  std::vector<std::vector<float>> m_k, m_v;
  std::vector<float> m_q, m_sinks;
  std::vector<int32_t> m_starts, m_contexts, m_table;
  int64_t m_blocksEach = 0, m_qWidth = 0;
};

AttentionParams heads(int64_t qHeads, int64_t groupSize, int64_t qHeadBegin = 0, int64_t kvHeadBegin = 0) {
  AttentionParams params;
  params.scale = 0.17f;
  params.qHeads = qHeads;
  params.groupSize = groupSize;
  params.qHeadBegin = qHeadBegin;
  params.kvHeadBegin = kvHeadBegin;
  return params;
}

const std::vector<std::pair<int64_t, int64_t>> kMixed = {{1, 1},   {1, 17},   {5, 5},  {70, 70},
                                                         {1, 130}, {33, 100}, {1, 64}, {2, 65}};

std::vector<std::pair<std::string, Setup>> setups() {
  std::vector<std::pair<std::string, Setup>> all;
  const auto add = [&](const char* name, auto&& change) {
    Setup setup;
    setup.sequences = kMixed;
    setup.params = heads(4, 2);
    change(setup);
    all.emplace_back(name, setup);
  };
  add("plain", [](Setup&) {});
  add("F16 cache", [](Setup& s) { s.dtype = DType::F16; });
  add("FP8 E4M3 cache", [](Setup& s) { s.dtype = DType::F8E4M3; });
  add("FP8 E5M2 cache", [](Setup& s) { s.dtype = DType::F8E5M2, s.headDim = 24, s.vHeadDim = 10; });
  add("I8 cache", [](Setup& s) { s.dtype = DType::I8; });
  add("I8 cache, narrow values, blocks of 5",
      [](Setup& s) { s.dtype = DType::I8, s.headDim = 24, s.vHeadDim = 10, s.blockTokens = 5; });
  add("I8 cache, odd head, window, sinks, softcap", [](Setup& s) {
    s.dtype = DType::I8, s.headDim = 7, s.vHeadDim = 80, s.sinks = true, s.params.window = 40, s.params.softcap = 5.0f;
  });
  add("I8 cache, long contexts", [](Setup& s) {
    s.dtype = DType::I8, s.sequences = {{1, 2500}, {3, 1024}, {20, 1500}, {1, 3}}, s.params = heads(4, 2);
  });
  add("BF16 cache", [](Setup& s) { s.dtype = DType::BF16; });
  add("window", [](Setup& s) { s.params.window = 20; });
  add("window of one", [](Setup& s) { s.params.window = 1; });
  add("chunked window", [](Setup& s) { s.params.window = 24, s.params.chunkedWindow = true; });
  add("softcap", [](Setup& s) { s.params.softcap = 2.5f; });
  add("sinks", [](Setup& s) { s.sinks = true; });
  add("sinks, window, softcap", [](Setup& s) { s.sinks = true, s.params.window = 40, s.params.softcap = 5.0f; });
  add("blocks of 5", [](Setup& s) { s.blockTokens = 5; });
  add("blocks of 128", [](Setup& s) { s.blockTokens = 128, s.dtype = DType::BF16; });
  add("narrow values", [](Setup& s) { s.headDim = 24, s.vHeadDim = 10, s.dtype = DType::F16; });
  add("wide values", [](Setup& s) { s.headDim = 8, s.vHeadDim = 128; });
  add("odd head", [](Setup& s) { s.headDim = 7, s.vHeadDim = 80; });
  add("one KV head a query head", [](Setup& s) { s.kvHeads = 3, s.params = heads(3, 1); });
  // Heads 2 … 6 of groups of 3 read KV heads 0, 1 and 2 of the model; this rank holds them from 0 on.
  add("uneven share of groups", [](Setup& s) { s.kvHeads = 3, s.params = heads(5, 3, 2, 0); });
  // Heads 5 … 8 of groups of 4: KV heads 1 and 2.
  add("share with an offset", [](Setup& s) { s.kvHeads = 2, s.params = heads(4, 4, 5, 1); });
  add("a KV head that no query head reads", [](Setup& s) { s.kvHeads = 3, s.params = heads(2, 2, 2, 0); });
  add("large groups", [](Setup& s) { s.kvHeads = 1, s.params = heads(64, 64); });
  add("long contexts", [](Setup& s) {
    s.sequences = {{1, 2500}, {3, 1024}, {1, 1025}, {20, 1500}, {1, 3}}, s.params = heads(4, 2);
  });
  add("long contexts, window, sinks", [](Setup& s) {
    s.sequences = {{1, 2500}, {3, 2050}, {20, 2060}}, s.sinks = true, s.params.window = 1030;
  });
  return all;
}

class CpuAttentionTest : public QObject {
  Q_OBJECT
 private slots:
  // The formats by their definitions: https://arxiv.org/abs/2209.05433.
  void eightBitFloatsRoundToNearestEven() {
    const auto value = [](int code, int fractionBits, int bias) {
      const int exponent = (code & 127) >> fractionBits, fraction = code & ((1 << fractionBits) - 1);
      const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - fractionBits)
                                             : std::ldexp((1 << fractionBits) + fraction, exponent - bias - fractionBits);
      return code & 128 ? -magnitude : magnitude;
    };
    for (int sign : {0, 128}) {
      for (int i = 0; i < 0x7f; ++i) {
        const double here = value(i | sign, 3, 7);
        QCOMPARE(static_cast<double>(cpu::e4m3ToFloat(static_cast<uint8_t>(i | sign))), here);
        QCOMPARE(int{cpu::floatToE4m3(static_cast<float>(here))}, i | sign);
        if (i == 0x7e) continue;
        const auto middle = static_cast<float>((here + value((i + 1) | sign, 3, 7)) / 2);
        QCOMPARE(int{cpu::floatToE4m3(middle)}, (i + i % 2) | sign);
        QCOMPARE(int{cpu::floatToE4m3(std::nextafter(middle, 0.0f))}, i | sign);
      }
      for (int i = 0; i < 0x7b; ++i) {
        const double here = value(i | sign, 2, 15);
        QCOMPARE(static_cast<double>(cpu::e5m2ToFloat(static_cast<uint8_t>(i | sign))), here);
        QCOMPARE(int{cpu::floatToE5m2(static_cast<float>(here))}, i | sign);
        const auto middle = static_cast<float>((here + value((i + 1) | sign, 2, 15)) / 2);
        QCOMPARE(int{cpu::floatToE5m2(middle)}, (i + i % 2) | sign);
        QCOMPARE(int{cpu::floatToE5m2(std::nextafter(middle, 0.0f))}, i | sign);
      }
    }
    QCOMPARE(int{cpu::floatToE4m3(1e9f)}, 0x7e);
    QCOMPARE(cpu::e4m3ToFloat(0x7e), 448.0f);
  }

  void matchesTheFormula_data() {
    QTest::addColumn<int>("index");
    QTest::addColumn<CpuLevel>("level");
    QTest::addColumn<int>("threads");
    const auto all = setups();
    for (size_t i = 0; i < all.size(); ++i)
      for (CpuLevel level : {CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512}) {
        const std::vector<CpuLevel> levels = availableCpuLevels();
        if (std::find(levels.begin(), levels.end(), level) == levels.end()) continue;
        for (int threads : {1, 3})
          QTest::newRow(fmt::format("{}, {}, {} threads", all[i].first, cpuLevelName(level), threads).c_str())
              << static_cast<int>(i) << level << threads;
      }
  }
  void matchesTheFormula() {
    QFETCH(int, index);
    QFETCH(CpuLevel, level);
    QFETCH(int, threads);
    Setup setup = setups()[static_cast<size_t>(index)].second;
    setup.level = level;
    setup.threads = threads;
    Scene scene(setup);
    const std::vector<float> found = scene.run();
    const std::vector<double> expected = scene.reference();
    QCOMPARE(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      if (!(std::fabs(found[i] - expected[i]) <= 2e-5 * (1 + std::fabs(expected[i]))))
        QFAIL(qPrintable(QString("element %1: %2, expected %3").arg(i).arg(found[i]).arg(expected[i])));
  }

  // Any numbers come back within half a step of the largest of their head; a head of zeros is zeros, one that is not finite gives
  // no finite output.
  void wholeNumbersStayNear() {
    constexpr int64_t kHead = 64;
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (const float size : {1.0f, 1e-30f, 1e30f, 0.0f, std::numeric_limits<float>::infinity()}) {
      auto backend = makeCpuBackend({});
      DeviceBuffer bytes = backend->allocate(kvCacheBytes(DType::I8, 16, 1, kHead, kHead), "cache").value();
      const KvLayerView cache = {bytes.data(), DType::I8, 1, 16, 1, kHead, kHead};
      std::vector<float> k(kHead), v(kHead), q(kHead, 0.5f), out(kHead);
      for (int64_t i = 0; i < kHead; ++i)
        k[static_cast<size_t>(i)] = normal(random), v[static_cast<size_t>(i)] = normal(random) * size;
      float largest = 0;
      for (float x : v) largest = std::max(largest, std::fabs(x));
      int32_t slot = 0, starts[] = {0, 1}, context = 1, table = 0;
      backend->storeKv(cache, TensorView::of(k.data(), DType::F32, 1, kHead), TensorView::of(v.data(), DType::F32, 1, kHead),
                       TensorView::of(&slot, DType::I32, 1, 1));
      backend->pagedAttention(TensorView::of(out.data(), DType::F32, 1, kHead), TensorView::of(q.data(), DType::F32, 1, kHead),
                              cache,
                              {1, TensorView::of(starts, DType::I32, 1, 2), TensorView::of(&context, DType::I32, 1, 1),
                               TensorView::of(&table, DType::I32, 1, 1), TensorView{}},
                              heads(1, 1));
      QVERIFY(backend->sync());
      for (size_t i = 0; i < out.size(); ++i) {  // one token: the output is its value
        if (std::isfinite(size))
          QVERIFY2(std::fabs(out[i] - v[i]) <= largest / 127 * 0.5001f, qPrintable(QString("%1 for %2").arg(out[i]).arg(v[i])));
        else
          QVERIFY(!std::isfinite(out[i]));
      }
    }
  }

  void threadsDoNotChangeResults() {
    for (auto& [name, setup] : setups()) {
      setup.threads = 1;
      const std::vector<float> one = Scene(setup).run();
      for (int threads : {2, 3}) {
        setup.threads = threads;
        const std::vector<float> more = Scene(setup).run();
        QVERIFY2(std::memcmp(one.data(), more.data(), one.size() * sizeof(float)) == 0, name.c_str());
      }
    }
  }

  void sequenceAloneEqualsSequenceInBatch() {
    for (auto& [name, setup] : setups()) {
      setup.sequences = {setup.sequences[3 % setup.sequences.size()]};
      setup.threads = 2;
      Scene alone(setup);
      const std::vector<float> single = alone.run();
      const std::vector<float> pair = alone.runBesideItself();
      QVERIFY2(pair.size() == 2 * single.size() && std::memcmp(single.data(), pair.data(), single.size() * sizeof(float)) == 0 &&
                   std::memcmp(single.data(), pair.data() + single.size(), single.size() * sizeof(float)) == 0,
               name.c_str());
    }
  }

  void tokenByTokenEqualsOneStep() {
    for (auto& [name, setup] : setups()) {
      setup.sequences = {{90, 90}};
      Scene scene(setup);
      const std::vector<float> step = scene.run(), single = scene.runTokenByToken();
      QVERIFY2(std::memcmp(step.data(), single.data(), step.size() * sizeof(float)) == 0, name.c_str());
    }
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CpuAttentionTest)
#include "cpu_attention_test.moc"
