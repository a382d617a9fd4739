// SPDX-License-Identifier: Apache-2.0
// The operations that some architectures need, on the CPU backend: against their formulas in double precision.
#include "core/memory/workspace.h"
#include "engine/device/cpu/cpu_backend.h"

#include <QtTest>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

using namespace headroom;
using namespace headroom::engine;

namespace {

struct Matrix {
  Matrix(int64_t rows, int64_t cols, unsigned seed) : rows(rows), cols(cols), data(static_cast<size_t>(rows * cols)) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& x : data) x = normal(random);
  }
  double at(int64_t r, int64_t c) const { return data[static_cast<size_t>(r * cols + c)]; }
  TensorView view() { return TensorView::of(data.data(), DType::F32, rows, cols); }
  int64_t rows, cols;
  std::vector<float> data;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

bool near(double found, double expected, double tolerance = 2e-5) {
  return std::fabs(found - expected) <= tolerance * (1 + std::fabs(expected));
}

template <class Expected>
void compare(const Matrix& found, const Expected& expected) {
  for (int64_t r = 0; r < found.rows; ++r)
    for (int64_t c = 0; c < found.cols; ++c)
      if (!near(found.at(r, c), expected(r, c)))
        QFAIL(qPrintable(QString("(%1, %2): %3, expected %4").arg(r).arg(c).arg(found.at(r, c)).arg(expected(r, c))));
}

}  // namespace

class CpuArchitectureOperationsTest : public QObject {
  Q_OBJECT

  WeightMatrix weights(const Matrix& values) {
    auto matrix = m_backend->makeMatrix(DType::F32, values.rows, values.cols, "test");
    m_backend->writeRows(*matrix, 0, values.rows, DType::F32, values.data.data());
    m_backend->finishMatrix(*matrix);
    return std::move(*matrix);
  }
  struct Chosen {
    std::vector<int32_t> ids;
    std::vector<float> weights;
  };
  Chosen choose(std::vector<float> logits, const ExpertRouting& routing, int64_t count) {
    Chosen chosen{std::vector<int32_t>(static_cast<size_t>(count)), std::vector<float>(static_cast<size_t>(count))};
    m_backend->routeExperts(TensorView::of(chosen.ids.data(), DType::I32, 1, count),
                            TensorView::of(chosen.weights.data(), DType::F32, 1, count),
                            TensorView::of(logits.data(), DType::F32, 1, static_cast<int64_t>(logits.size())), routing);
    return chosen;
  }

 private slots:
  void init() {
    CpuBackendOptions options;
    options.budget = 64_MiB;
    options.threads = 2;
    options.exact = true;
    m_backend = makeCpuBackend(options);
  }

  void choosesTheLikeliestExperts() {
    ExpertRouting routing;
    const double sum = std::exp(1.0) + std::exp(3.0) + std::exp(2.0) + std::exp(-1.0);
    Chosen chosen = choose({1, 3, 2, -1}, routing, 2);
    QCOMPARE(chosen.ids, (std::vector<int32_t>{1, 2}));
    QVERIFY(near(chosen.weights[0], std::exp(3.0) / sum) && near(chosen.weights[1], std::exp(2.0) / sum));
    routing.normalize = true;
    routing.scale = 2.5;
    chosen = choose({1, 3, 2, -1}, routing, 2);
    QVERIFY(near(chosen.weights[0], 2.5 * sigmoid(1)) && near(chosen.weights[1], 2.5 * sigmoid(-1)));
  }

  // The bias decides who is chosen, never with which weight; groups are judged by their best two.
  void choosesFromTheBestGroups() {
    const std::vector<float> bias{0, 0, 0, 0, 0.5f, 0};
    ExpertRouting routing;
    routing.scoring = RouterScoring::Sigmoid;
    routing.choiceBias = bias.data();
    routing.groups = 3;
    routing.groupsPerToken = 1;
    routing.groupByTopTwo = true;
    // Group sums: sigmoid(2) + sigmoid(-4) = 0.90, sigmoid(0.5) + sigmoid(0.4) = 1.22, sigmoid(-1) + 0.5 + sigmoid(-1) = 1.04.
    Chosen chosen = choose({2, -4, 0.5f, 0.4f, -1, -1}, routing, 2);
    QCOMPARE(chosen.ids, (std::vector<int32_t>{2, 3}));
    QVERIFY(near(chosen.weights[0], sigmoid(0.5)) && near(chosen.weights[1], sigmoid(0.4)));
    routing.groupByTopTwo = false;  // now the best expert of a group counts: 0.88, 0.62, 0.77
    QCOMPARE(choose({2, -4, 0.5f, 0.4f, -1, -1}, routing, 1).ids, (std::vector<int32_t>{0}));
    routing.groups = routing.groupsPerToken = 1;  // without groups the bias lifts the fifth over the third
    chosen = choose({2, -4, 0.5f, 0.4f, -1, -1}, routing, 2);
    QCOMPARE(chosen.ids, (std::vector<int32_t>{0, 4}));
    QVERIFY(near(chosen.weights[1], sigmoid(-1)));
  }

  void choosesAnExpertOnceWhateverTheNumbers() {
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    for (const std::vector<float>& logits :
         {std::vector<float>{nan, nan, nan, nan}, std::vector<float>{infinity, -infinity, 0, nan}}) {
      for (RouterScoring scoring : {RouterScoring::Softmax, RouterScoring::Sigmoid}) {
        ExpertRouting routing;
        routing.scoring = scoring;
        const Chosen chosen = choose(logits, routing, 3);
        QCOMPARE(std::set<int32_t>(chosen.ids.begin(), chosen.ids.end()).size(), size_t{3});
      }
    }
  }

  void runsTheChosenExperts_data() {
    QTest::addColumn<double>("limit");
    QTest::addColumn<bool>("onInput");
    QTest::addColumn<bool>("add");
    QTest::newRow("SwiGLU") << 0.0 << false << false;
    QTest::newRow("clamped SwiGLU") << 0.7 << false << false;
    QTest::newRow("weights on the input") << 0.0 << true << false;
    QTest::newRow("beside a shared expert") << 0.0 << false << true;
  }

  void runsTheChosenExperts() {
    QFETCH(double, limit);
    QFETCH(bool, onInput);
    QFETCH(bool, add);
    constexpr int64_t kExperts = 5, kTokens = 9, kHidden = 21, kColumns = 18, kChosen = 2;
    std::vector<Matrix> gate, up, down;
    std::vector<WeightMatrix> gates, ups, downs;
    for (unsigned e = 0; e < kExperts; ++e) {
      gate.emplace_back(kColumns, kHidden, 10 + e);
      up.emplace_back(kColumns, kHidden, 20 + e);
      down.emplace_back(kHidden, kColumns, 30 + e);
      gates.push_back(weights(gate.back()));
      ups.push_back(weights(up.back()));
      downs.push_back(weights(down.back()));
    }
    Matrix gateBias(kExperts, kColumns, 1), upBias(kExperts, kColumns, 2), downBias(kExperts, kHidden, 3);
    Matrix in(kTokens, kHidden, 4), out(kTokens, kHidden, 5), chosenWeights(kTokens, kChosen, 6);
    for (float& x : in.data) x *= 0.2f;  // so that sums stay near 1
    const Matrix before = out;
    std::vector<int32_t> ids;
    for (int32_t t = 0; t < kTokens; ++t) ids.insert(ids.end(), {t % 4, (t % 4 + 1 + t % 2) % 4});  // nobody chooses the last
    ExpertLayer layer;
    layer.gate = gates;
    layer.up = ups;
    layer.down = downs;
    layer.gateBias = gateBias.data.data();
    layer.upBias = upBias.data.data();
    layer.downBias = downBias.data.data();
    layer.swigluLimit = static_cast<float>(limit);
    layer.weightsOnInput = onInput;
    layer.addToOut = add;
    std::vector<float> scratch(static_cast<size_t>(expertScratch(kTokens, kHidden, kColumns)));
    m_backend->expertMlp(out.view(), in.view(), layer, TensorView::of(ids.data(), DType::I32, kTokens, kChosen),
                         chosenWeights.view(),
                         TensorView::of(scratch.data(), DType::F32, 1, static_cast<int64_t>(scratch.size())));
    QVERIFY(m_backend->sync());
    compare(out, [&](int64_t t, int64_t c) {
      double sum = add ? before.at(t, c) : 0;
      for (int64_t i = 0; i < kChosen; ++i) {
        const int64_t e = ids[static_cast<size_t>(t * kChosen + i)];
        const double weight = chosenWeights.at(t, i);
        double result = downBias.at(e, c);
        for (int64_t k = 0; k < kColumns; ++k) {
          double g = 0, u = 0;
          for (int64_t h = 0; h < kHidden; ++h) {
            const double x = in.at(t, h) * (onInput ? weight : 1);
            g += gate[static_cast<size_t>(e)].at(k, h) * x;
            u += up[static_cast<size_t>(e)].at(k, h) * x;
          }
          g += gateBias.at(e, k);
          u += upBias.at(e, k);
          const double clamped = std::min(g, limit);
          result += down[static_cast<size_t>(e)].at(c, k) *
                    (limit > 0 ? clamped * sigmoid(1.702 * clamped) * (std::clamp(u, -limit, limit) + 1) : g * sigmoid(g) * u);
        }
        sum += onInput ? result : weight * result;
      }
      return sum;
    });
  }

  // Two ranks that hold parts of a row norm it as one would.
  void normsPartsOfARowByTheirSquares() {
    Matrix x(4, 30, 1), squares(4, 2, 2), weight(1, 30, 3);
    const Matrix before = x;
    const TensorView left = x.view().columns(0, 17), right = x.view().columns(17, 13);
    m_backend->rowSquareSum(squares.view().columns(0, 1), left);
    m_backend->rowSquareSum(squares.view().columns(1, 1), right);
    for (int64_t t = 0; t < 4; ++t) squares.data[static_cast<size_t>(2 * t)] += squares.data[static_cast<size_t>(2 * t + 1)];
    m_backend->normBySquareSum(left, squares.view().columns(0, 1), 30, weight.data.data(), 1e-5, 1.0);
    m_backend->normBySquareSum(right, squares.view().columns(0, 1), 30, weight.data.data() + 17, 1e-5, 1.0);
    compare(x, [&](int64_t t, int64_t c) {
      double sum = 0;
      for (int64_t i = 0; i < 30; ++i) sum += before.at(t, i) * before.at(t, i);
      return before.at(t, c) / std::sqrt(sum / 30 + 1e-5) * (weight.at(0, c) + 1);
    });
  }

  void gatesAndScalesRows() {
    Matrix x(3, 10, 1), wide(3, 10, 2), one(3, 1, 3), y = x, q = x;
    const Matrix before = x;
    m_backend->sigmoidGate(x.view(), wide.view());
    compare(x, [&](int64_t t, int64_t c) { return before.at(t, c) * sigmoid(wide.at(t, c)); });
    m_backend->sigmoidGate(y.view(), one.view());
    compare(y, [&](int64_t t, int64_t c) { return before.at(t, c) * sigmoid(one.at(t, 0)); });
    std::vector<int32_t> positions{0, 7, 100};
    m_backend->scaleByPosition(q.view(), TensorView::of(positions.data(), DType::I32, 1, 3), 8, 0.1);
    const double factors[] = {1.0, 1 + 0.1 * std::log(2.0), 1 + 0.1 * std::log(13.0)};
    compare(q, [&](int64_t t, int64_t c) { return before.at(t, c) * factors[t]; });
  }

  void carriesHeadsThroughTheLatentSpace() {
    constexpr int64_t kTokens = 3, kHeads = 2;
    const LatentHeads sizes{5, 4, 18, 7};
    std::vector<Matrix> keys, values;
    std::vector<WeightMatrix> keyUp, valueUp;
    for (unsigned h = 0; h < kHeads; ++h) {
      keys.emplace_back(sizes.latent, sizes.nope, 1 + h);
      values.emplace_back(sizes.value, sizes.latent, 5 + h);
      keyUp.push_back(weights(keys.back()));
      valueUp.push_back(weights(values.back()));
    }
    Matrix q(kTokens, kHeads * 9, 10), queries(kTokens, kHeads * 22, 11), in(kTokens, kHeads * 18, 12),
        out(kTokens, kHeads * 7, 13);
    m_backend->latentQueries(queries.view(), q.view(), keyUp, sizes);
    compare(queries, [&](int64_t t, int64_t c) {
      const int64_t head = c / 22, at = c % 22;
      if (at < 4) return q.at(t, head * 9 + 5 + at);
      double sum = 0;
      for (int64_t i = 0; i < 5; ++i) sum += keys[static_cast<size_t>(head)].at(at - 4, i) * q.at(t, head * 9 + i);
      return sum;
    });
    m_backend->latentValues(out.view(), in.view(), valueUp, sizes);
    compare(out, [&](int64_t t, int64_t c) {
      double sum = 0;
      for (int64_t i = 0; i < 18; ++i) sum += values[static_cast<size_t>(c / 7)].at(c % 7, i) * in.at(t, c / 7 * 18 + i);
      return sum;
    });
  }

  // Two sequences, one in chunks of 4, 1 and 3 tokens, against the recurrence in double precision.
  void remembersByTheGatedDeltaRule() {
    GatedDeltaNet net;
    net.keyHeads = 2, net.valueHeads = 4, net.keyDim = 5, net.valueDim = 6, net.kernel = 4;
    constexpr int64_t kTokens = 8;
    const int64_t channels = net.channels();
    Matrix qkv(kTokens, channels, 1), z(kTokens, 24, 2), gates(kTokens, 8, 3), convolution(channels, 4, 4), timeBias(1, 4, 5),
        decay(1, 4, 6), norm(1, 6, 7), state(2, net.stateElements(), 8), out(kTokens, 24, 9);
    net.convolution = convolution.data.data();
    net.timeBias = timeBias.data.data();
    net.decay = decay.data.data();
    net.norm = norm.data.data();
    Matrix overwritten = qkv;
    const LinearState states{state.data.data(), 2};
    for (const Range chunk : {Range{0, 4}, Range{4, 5}, Range{5, 8}}) {
      std::vector<int32_t> start{0, static_cast<int32_t>(chunk.size())}, context{static_cast<int32_t>(chunk.end)}, slot{1};
      AttentionBatch batch;
      batch.sequences = 1;
      batch.sequenceStart = TensorView::of(start.data(), DType::I32, 1, 2);
      batch.contextLength = TensorView::of(context.data(), DType::I32, 1, 1);
      batch.stateSlots = TensorView::of(slot.data(), DType::I32, 1, 1);
      const auto rows = [&](Matrix& m) {
        return TensorView::of(m.view().row<float>(chunk.begin), DType::F32, chunk.size(), m.cols);
      };
      m_backend->gatedDeltaNet(rows(out), rows(overwritten), rows(z), rows(gates), states, batch, net);
    }
    std::vector<std::vector<double>> expected;
    std::vector<double> memory(4 * 5 * 6, 0.0);
    for (int64_t t = 0; t < kTokens; ++t) {
      std::vector<double> x(static_cast<size_t>(channels));
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < 4; ++j)
          if (t - 3 + j >= 0) sum += convolution.at(c, j) * qkv.at(t - 3 + j, c);
        x[static_cast<size_t>(c)] = sum * sigmoid(sum);
      }
      expected.emplace_back(24);
      for (int64_t h = 0; h < 4; ++h) {
        const double *q = x.data() + h / 2 * 5, *k = x.data() + 10 + h / 2 * 5, *v = x.data() + 20 + h * 6;
        double qq = 1e-6, kk = 1e-6;
        for (int i = 0; i < 5; ++i) qq += q[i] * q[i], kk += k[i] * k[i];
        const double a = std::exp(-std::exp(decay.at(0, h)) * std::log1p(std::exp(gates.at(t, 4 + h) + timeBias.at(0, h))));
        double o[6], squares = 0;
        for (int64_t d = 0; d < 6; ++d) {
          double seen = 0;
          o[d] = 0;
          for (int64_t i = 0; i < 5; ++i) {
            double& s = memory[static_cast<size_t>((h * 5 + i) * 6 + d)];
            s *= a;
            seen += s * k[i] / std::sqrt(kk);
          }
          for (int64_t i = 0; i < 5; ++i) {
            double& s = memory[static_cast<size_t>((h * 5 + i) * 6 + d)];
            s += k[i] / std::sqrt(kk) * sigmoid(gates.at(t, h)) * (v[d] - seen);
            o[d] += s * q[i] / std::sqrt(qq) / std::sqrt(5.0);
          }
          squares += o[d] * o[d];
        }
        for (int64_t d = 0; d < 6; ++d)
          expected.back()[static_cast<size_t>(h * 6 + d)] =
              o[d] / std::sqrt(squares / 6 + net.epsilon) * norm.at(0, d) * z.at(t, h * 6 + d) * sigmoid(z.at(t, h * 6 + d));
      }
    }
    compare(out, [&](int64_t t, int64_t c) { return expected[static_cast<size_t>(t)][static_cast<size_t>(c)]; });
  }

 private:
  std::unique_ptr<Backend> m_backend;
};

QTEST_GUILESS_MAIN(CpuArchitectureOperationsTest)
#include "cpu_architecture_operations_test.moc"
