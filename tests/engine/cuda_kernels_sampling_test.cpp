// SPDX-License-Identifier: Apache-2.0
// Sampling kernels in the emulation against a plain form with a sorted list.
#include "engine/device/cuda/kernels/sampling.h"

#include "tests/engine/cuda_kernels_support.h"

#include <algorithm>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda;
using namespace headroom::engine::cuda::test;

namespace {

// The order of engine/sample/sampler.h: min_p, top_k, top_p within what they left, a draw; sorted unless neither top_k nor top_p
// asks for it.
int sampled(const std::vector<float>& logits, const SampleRow& how) {
  int best = -1;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -INFINITY && (best < 0 || logits[i] > logits[static_cast<size_t>(best)])) best = static_cast<int>(i);
  if (best < 0 || how.temperature < 1e-5f) return best;
  const float most = logits[static_cast<size_t>(best)];
  struct Candidate {
    float logit;
    double weight;
    int token;
  };
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double weight = std::exp((static_cast<double>(logits[i]) - most) / how.temperature);
    if (logits[i] > -INFINITY && weight >= how.minP) candidates.push_back({logits[i], weight, static_cast<int>(i)});
  }
  if (how.topK > 0 || how.topP < 1.0f) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
    if (how.topK > 0 && static_cast<size_t>(how.topK) < candidates.size()) candidates.resize(static_cast<size_t>(how.topK));
    double within = 0, kept = 0;
    for (const Candidate& candidate : candidates) within += candidate.weight;
    size_t count = 0;
    while (count < candidates.size() && (count == 0 || kept < how.topP * within)) kept += candidates[count++].weight;
    candidates.resize(count);
  }
  double sum = 0;
  for (const Candidate& candidate : candidates) sum += candidate.weight;
  double target = sum * how.uniform;
  for (const Candidate& candidate : candidates) {
    target -= candidate.weight;
    if (target < 0) return candidate.token;
  }
  return candidates.back().token;
}

class CudaKernelsSamplingTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void samples_data() {
    QTest::addColumn<int>("vocabulary");
    QTest::addColumn<float>("temperature");
    QTest::addColumn<int>("topK");
    QTest::addColumn<float>("topP");
    QTest::addColumn<float>("minP");
    QTest::newRow("greedy") << 3000 << 0.0f << 0 << 1.0f << 0.0f;
    QTest::newRow("temperature") << 3000 << 0.8f << 0 << 1.0f << 0.0f;
    QTest::newRow("one token") << 1 << 1.0f << 5 << 0.5f << 0.0f;
    QTest::newRow("top_k") << 2500 << 1.0f << 10 << 1.0f << 0.0f;
    QTest::newRow("top_k beyond the vocabulary") << 50 << 1.0f << 100 << 1.0f << 0.0f;
    QTest::newRow("top_p") << 2500 << 1.5f << 0 << 0.9f << 0.0f;
    QTest::newRow("top_p of nothing") << 2500 << 1.5f << 0 << 0.0f << 0.0f;
    QTest::newRow("min_p") << 2500 << 1.2f << 0 << 1.0f << 0.2f;
    QTest::newRow("all") << 2500 << 1.3f << 40 << 0.8f << 0.05f;
  }
  void samples() {
    QFETCH(int, vocabulary);
    QFETCH(float, temperature);
    QFETCH(int, topK);
    QFETCH(float, topP);
    QFETCH(float, minP);
    Gpu gpu;
    constexpr int kRows = 6;
    Matrix logits(kRows, vocabulary, DType::F32, 1, 6.0f);
    for (int64_t i = 0; i < vocabulary; ++i) {
      logits.at(1, i) = std::round(logits.at(1, i));  // many equals, cut among them
      if (i % 3 == 0 && vocabulary > 1) logits.at(2, i) = -INFINITY;
      logits.at(5, i) = i % 2 ? -INFINITY : std::nanf("");  // nothing to choose
    }
    std::vector<SampleRow> rows;
    const float uniforms[kRows] = {0.0f, 0.37f, 0.62f, 0.83f, 0.9999f, 0.5f};
    for (float uniform : uniforms) rows.push_back({temperature, topK, topP, minP, uniform});
    int* ids = gpu.upload(std::vector<int>(kRows, -9));
    const TensorView view = logits.upload(gpu);
    sampleRows(gpu.stream, ids, view, gpu.upload(rows));
    const std::vector<int> found = gpu.download<int>(ids, kRows);
    argmaxRows(gpu.stream, ids, view);
    const std::vector<int> greedy = gpu.download<int>(ids, kRows);
    for (int r = 0; r < kRows; ++r) {
      const std::vector<float> row(logits.values.begin() + r * vocabulary, logits.values.begin() + (r + 1) * vocabulary);
      QCOMPARE(found[static_cast<size_t>(r)], sampled(row, rows[static_cast<size_t>(r)]));
      QCOMPARE(greedy[static_cast<size_t>(r)], sampled(row, {}));
    }
    QCOMPARE(gpu.report(), QString());
  }

  void drawsFollowTheWeights() {
    Gpu gpu;
    constexpr int kDraws = 400;
    const std::vector<float> one = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
    Matrix logits(kDraws, 3, DType::F32, 1);
    std::vector<SampleRow> rows;
    for (int i = 0; i < kDraws; ++i) {
      for (int64_t c = 0; c < 3; ++c) logits.at(i, c) = one[static_cast<size_t>(c)];
      rows.push_back({1.0f, i % 2 ? 3 : 0, 1.0f, 0.0f, (static_cast<float>(i / 2) + 0.5f) / (kDraws / 2)});
    }
    int* ids = gpu.upload(std::vector<int>(kDraws));
    sampleRows(gpu.stream, ids, logits.upload(gpu), gpu.upload(rows));
    int counts[3] = {};
    for (int id : gpu.download<int>(ids, kDraws)) ++counts[id];
    QCOMPARE(counts[0], 200);
    QCOMPARE(counts[1], 120);
    QCOMPARE(counts[2], 80);
  }

  void masksBiasesAndPenalties() {
    Gpu gpu;
    Matrix logits(3, 70, DType::F32, 1, 4.0f);
    const Matrix before = logits;
    const std::vector<uint32_t> masks = {0x80000001u, 0u, 0x3fu, 0xffffffffu, 0xffffffffu, 0xffffffffu};
    const TensorView view = logits.upload(gpu);
    applyMasks(gpu.stream, view, gpu.upload(masks), 3, gpu.upload(std::vector<int>{0, -1, 1}));
    applyBiases(gpu.stream, view, gpu.upload(std::vector<LogitBias>{{1, 69, 2.5f}, {2, 0, -INFINITY}}), 2);
    const std::vector<SeenToken> seen = {{0, 0, 0}, {0, 31, 2}, {1, 3, 5}, {1, 4, 0}, {2, 7, 1}};
    const std::vector<Penalties> penalties = {{1.5f, 0.0f, 0.0f}, {1.0f, 0.25f, 0.5f}, {2.0f, 1.0f, 0.0f}};
    applyPenalties(gpu.stream, view, gpu.upload(seen), static_cast<int64_t>(seen.size()), gpu.upload(penalties));
    logits.download(gpu, view);
    const auto repeated = [](float logit, float penalty) { return logit > 0 ? logit / penalty : logit * penalty; };
    for (int64_t c = 0; c < 70; ++c) {
      const bool allowed = c == 0 || c == 31 || (c >= 64 && c < 70);
      float first = allowed ? before.at(0, c) : -INFINITY;
      if (c == 0 || c == 31) first = repeated(first, 1.5f);
      QCOMPARE(logits.at(0, c), first);
      float second = before.at(1, c);
      if (c == 69) second += 2.5f;
      if (c == 3) second -= 0.25f * 5 + 0.5f;
      QCOMPARE(logits.at(1, c), second);
      float third = c == 0 ? -INFINITY : before.at(2, c);
      if (c == 7) third = repeated(third, 2.0f) - 1.0f;
      QCOMPARE(logits.at(2, c), third);
    }
    QCOMPARE(gpu.report(), QString());
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsSamplingTest)
#include "cuda_kernels_sampling_test.moc"
