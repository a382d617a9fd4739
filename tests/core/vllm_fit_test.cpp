// SPDX-License-Identifier: Apache-2.0
// The constants of vLLM's memory come from a handful of start-up logs. Each log is left out in turn, the constants are fitted
// anew to the others, and the log that was left out is predicted: no constant may hang on one log. The table is printed.
#include "core/memory/vllm_memory.h"
#include "core/model/tensor_inventory.h"

#include <QtTest>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

using namespace headroom;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr EngineVersion kLogged{0, 19, 0};
// Defaults of the server on these cards, as the logs tell.
constexpr double kSequences = 1024, kBatchedTokens = 8192;

// Printed by vLLM 0.19 on H100 (80 GB), TP 1 to 4, dense models without a tower: the peak of the profile run and what was left
// for the KV cache, GiB.
struct PeakLog {
  const char* shape;  // vocabulary x width, or what else tells it apart
  double vocabulary, hidden, activation, kvCache;
};
constexpr std::array<PeakLog, 7> kPeaks{{{"100k x 5120", 100352, 5120, 1.52, 46.08},
                                         {"128k x 4096", 128256, 4096, 1.89, 58.11},
                                         {"128k x 8192, TP 4", 128256, 8192, 1.97, 54.09},
                                         {"152k x 3584", 152064, 3584, 2.21, 64.64},
                                         {"152k x 4096", 151936, 4096, 2.21, 57.50},
                                         {"152k x 8192, TP 2", 152064, 8192, 2.29, 3.04},
                                         {"256k x 4608", 256000, 4608, 3.66, 20.59}}};

// Growth outside the allocator, as the same engine printed it, on one GPU and over NVLink.
struct GrowthLog {
  int tp;
  double growth, kvCache;
};
constexpr std::array<GrowthLog, 10> kGrowth{{{1, 0.25, 61.66},
                                             {1, 0.24, 64.64},
                                             {1, 0.26, 20.59},
                                             {1, 0.25, 58.11},
                                             {1, 0.25, 46.08},
                                             {1, 0.27, 15.41},
                                             {2, 2.07, 63.76},
                                             {2, 2.09, 3.02},
                                             {2, 2.09, 3.04},
                                             {4, 2.21, 54.09}}};

double logitsUnit(const PeakLog& log) { return kSequences * log.vocabulary * 4 / kGiB; }
double hiddenUnit(const PeakLog& log) { return kBatchedTokens * log.hidden * 2 / kGiB; }

struct Fit {
  double first = 0, second = 0;
};

// Least squares of y = first * u + second * v over the rows but `without`.
template <typename Rows, typename U, typename V, typename Y>
Fit fitted(const Rows& rows, int without, U u, V v, Y y) {
  double uu = 0, uv = 0, vv = 0, uy = 0, vy = 0;
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
    if (i == without) continue;
    const auto& row = rows[static_cast<size_t>(i)];
    uu += u(row) * u(row);
    uv += u(row) * v(row);
    vv += v(row) * v(row);
    uy += u(row) * y(row);
    vy += v(row) * y(row);
  }
  const double determinant = uu * vv - uv * uv;
  return {(uy * vv - vy * uv) / determinant, (vy * uu - uy * uv) / determinant};
}

}  // namespace

class VllmFitTest : public QObject {
  Q_OBJECT
 private slots:
  void peakOfTheProfileRun() {
    const auto activation = [](const PeakLog& log) { return log.activation; };
    const Fit all = fitted(kPeaks, -1, logitsUnit, hiddenUnit, activation);
    qInfo("copies of logits and of hidden states: all %.3f %.3f, in use %.2f %.2f", all.first, all.second,
          vllmConstant("logits_copies", kLogged), vllmConstant("hidden_copies", kLogged));
    qInfo("%-20s %8s %8s %12s %12s %10s", "left out", "logits", "hidden", "predicted", "printed", "capacity");
    for (int i = 0; i < static_cast<int>(kPeaks.size()); ++i) {
      const PeakLog& log = kPeaks[static_cast<size_t>(i)];
      const Fit rest = fitted(kPeaks, i, logitsUnit, hiddenUnit, activation);
      const double predicted = rest.first * logitsUnit(log) + rest.second * hiddenUnit(log);
      const double capacity = (log.activation - predicted) / log.kvCache;
      qInfo("%-20s %8.3f %8.3f %8.2f GiB %8.2f GiB %+9.2f%%", log.shape, rest.first, rest.second, predicted, log.activation,
            100 * capacity);
      QVERIFY(std::abs(rest.first / all.first - 1) < 0.02);
      QVERIFY(std::abs(predicted - log.activation) < 0.05);
      QVERIFY(std::abs(capacity) < 0.01);
      // What is in use predicts the log as well, though it leans on models with towers too.
      const double used =
          vllmConstant("logits_copies", kLogged) * logitsUnit(log) + vllmConstant("hidden_copies", kLogged) * hiddenUnit(log);
      QVERIFY(std::abs(used - log.activation) < 0.07);
    }
    QVERIFY(std::abs(vllmConstant("logits_copies", kLogged) / all.first - 1) < 0.03);
  }

  void growthOutsideTheAllocator() {
    // One GPU: a mean. Several: a base, and as much again for every rank.
    std::vector<GrowthLog> one, several;
    for (const GrowthLog& log : kGrowth) (log.tp == 1 ? one : several).push_back(log);
    for (int i = 0; i < static_cast<int>(one.size()); ++i) {
      double sum = 0;
      for (int j = 0; j < static_cast<int>(one.size()); ++j) sum += j == i ? 0 : one[static_cast<size_t>(j)].growth;
      const double mean = sum / static_cast<double>(one.size() - 1), printed = one[static_cast<size_t>(i)].growth;
      qInfo("TP 1: without %.2f GiB the mean is %.3f", printed, mean);
      QVERIFY(std::abs(mean - vllmConstant("growth_one_gpu", kLogged)) < 0.01);
      QVERIFY(std::abs(mean - printed) < 0.03);
    }
    const auto base = [](const GrowthLog&) { return 1.0; };
    const auto ranks = [](const GrowthLog& log) { return static_cast<double>(log.tp); };
    const auto growth = [](const GrowthLog& log) { return log.growth; };
    for (int i = 0; i < static_cast<int>(several.size()); ++i) {
      const GrowthLog& log = several[static_cast<size_t>(i)];
      if (log.tp == 4) continue;  // the only log of four: without it nothing tells what a rank adds
      const Fit rest = fitted(several, i, base, ranks, growth);
      const double predicted = rest.first + rest.second * log.tp;
      qInfo("NVLink, without TP %d at %.2f GiB: %.3f + %.3f a rank, predicted %.2f, capacity %+.2f%%", log.tp, log.growth,
            rest.first, rest.second, predicted, 100 * (log.growth - predicted) / log.kvCache);
      QVERIFY(std::abs(rest.first - vllmConstant("growth_nvlink", kLogged)) < 0.05);
      QVERIFY(std::abs(rest.second - vllmConstant("growth_nvlink_rank", kLogged)) < 0.02);
      QVERIFY(std::abs(predicted - log.growth) < 0.03);
    }
  }

  // The function that plans ask gives the table's sum.
  void theFunctionFollowsTheTable() {
    ModelConfig config;
    config.hiddenSize = 4096;
    config.vocabSize = 128256;
    config.layers.resize(1);
    config.layers[0].intermediateSize = 14336;
    VllmLimits limits;
    limits.version = kLogged;
    limits.maxNumSeqs = 1024;
    limits.maxNumBatchedTokens = 8192;
    const VllmStage stage{1, 1, {0, 1}, true};
    QVERIFY(std::abs(static_cast<double>(vllmActivationPeak(config, limits, stage).count()) / kGiB - 1.89) < 0.06);
    // V1's sampler was profiled with more copies before 0.17; 5.6 GiB were printed for a vocabulary of 152k.
    limits.version = {0, 15, 0};
    config.vocabSize = 151936;
    QVERIFY(std::abs(static_cast<double>(vllmActivationPeak(config, limits, stage).count()) / kGiB - 5.64) < 0.1);
  }
};

QTEST_GUILESS_MAIN(VllmFitTest)
#include "vllm_fit_test.moc"
