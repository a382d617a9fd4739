// SPDX-License-Identifier: Apache-2.0
// Gated delta nets in the emulation against double precision, over several steps of several sequences.
#include "engine/device/cuda/kernels/delta_net.h"

#include "tests/engine/cuda_kernels_support.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda;
using namespace headroom::engine::cuda::test;

namespace {

class CudaKernelsDeltaNetTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void steps_data() {
    QTest::addColumn<int>("type");
    QTest::addColumn<int>("keyDim");
    QTest::addColumn<int>("valueDim");
    QTest::newRow("F32, small heads") << static_cast<int>(DType::F32) << 6 << 5;
    QTest::newRow("F32, heads of 128 and 32") << static_cast<int>(DType::F32) << 128 << 32;
    QTest::newRow("F32, heads of 160") << static_cast<int>(DType::F32) << 160 << 8;
    QTest::newRow("BF16") << static_cast<int>(DType::BF16) << 32 << 48;
    QTest::newRow("F16") << static_cast<int>(DType::F16) << 40 << 16;
  }
  // A prompt shorter than the convolution, one longer, then single tokens and a sequence that begins anew in a used slot.
  void steps() {
    QFETCH(int, type);
    QFETCH(int, keyDim);
    QFETCH(int, valueDim);
    const auto dtype = static_cast<DType>(type);
    Gpu gpu;
    constexpr int kKeyHeads = 2, kValueHeads = 4, kKernel = 4, kSlots = 3;
    DeltaNet net;
    net.keyHeads = kKeyHeads, net.valueHeads = kValueHeads, net.keyDim = keyDim, net.valueDim = valueDim, net.kernel = kKernel;
    const auto channels = static_cast<int>(net.channels());
    const Matrix convolution(channels, kKernel, DType::F32, 1), timeBias(1, kValueHeads, DType::F32, 2),
        decay(1, kValueHeads, DType::F32, 3), norm(1, valueDim, DType::F32, 4, 2.0f);
    net.convolution = static_cast<const float*>(convolution.upload(gpu).data);
    net.timeBias = static_cast<const float*>(timeBias.upload(gpu).data);
    net.decay = static_cast<const float*>(decay.upload(gpu).data);
    net.norm = static_cast<const float*>(norm.upload(gpu).data);
    net.epsilon = 1e-5;
    const int64_t slotElements = (kKernel - 1) * channels + kValueHeads * keyDim * valueDim;
    net.state = static_cast<float*>(
        Matrix(kSlots, slotElements, DType::F32, 5, 50.0f).upload(gpu).data);  // what a slot held before must not matter
    net.scratch = gpu.allocate(static_cast<size_t>(deltaNetBytes(10, channels)));

    struct Sequence {
      int slot, tokens, context;
    };
    const std::vector<std::vector<Sequence>> allSteps = {
        {{2, 2, 2}, {0, 7, 7}}, {{0, 1, 8}, {2, 1, 3}}, {{2, 4, 7}, {0, 1, 9}, {1, 1, 1}}, {{0, 3, 3}, {1, 2, 3}}};
    std::vector<std::vector<std::vector<double>>> inputs(kSlots);  // rows that a slot's sequence has had
    std::vector<std::vector<double>> states(kSlots, std::vector<double>(static_cast<size_t>(kValueHeads * keyDim * valueDim)));
    unsigned seed = 10;
    for (const auto& step : allSteps) {
      std::vector<int> start = {0}, context, stateOf;
      for (const Sequence& sequence : step) {
        start.push_back(start.back() + sequence.tokens);
        context.push_back(sequence.context);
        stateOf.push_back(sequence.slot);
        if (sequence.context == sequence.tokens) {
          inputs[static_cast<size_t>(sequence.slot)].clear();
          std::fill(states[static_cast<size_t>(sequence.slot)].begin(), states[static_cast<size_t>(sequence.slot)].end(), 0.0);
        }
      }
      const int64_t tokens = start.back();
      const Matrix qkv(tokens, channels, dtype, ++seed, 2.0f), z(tokens, kValueHeads * valueDim, dtype, ++seed, 2.0f),
          gates(tokens, 2 * kValueHeads, dtype, ++seed, 2.0f);
      Matrix out = z;
      net.qkv = qkv.upload(gpu);
      net.out = net.z = z.upload(gpu);
      net.betaAlpha = gates.upload(gpu);
      net.sequences = static_cast<int64_t>(step.size());
      net.sequenceStart = gpu.upload(start);
      net.contextLength = gpu.upload(context);
      net.stateSlots = gpu.upload(stateOf);
      gatedDeltaNet(gpu.stream, net);
      out.download(gpu, net.out);
      Matrix expected(tokens, kValueHeads * valueDim, DType::F32, 1);
      for (size_t s = 0; s < step.size(); ++s) {
        auto& rows = inputs[static_cast<size_t>(step[s].slot)];
        auto& state = states[static_cast<size_t>(step[s].slot)];
        for (int64_t t = start[s]; t < start[s + 1]; ++t) {
          rows.emplace_back();
          for (int64_t c = 0; c < channels; ++c) rows.back().push_back(qkv.at(t, c));
          std::vector<double> x;
          for (int64_t c = 0; c < channels; ++c) {
            double sum = 0;
            for (int64_t j = 0; j < kKernel; ++j) {
              const auto at = static_cast<int64_t>(rows.size()) - kKernel + j;
              if (at >= 0) sum += convolution.at(c, j) * rows[static_cast<size_t>(at)][static_cast<size_t>(c)];
            }
            x.push_back(sum / (1 + std::exp(-sum)));
          }
          for (int h = 0; h < kValueHeads; ++h) {
            const double *q = x.data() + h / 2 * keyDim, *k = x.data() + (kKeyHeads + h / 2) * keyDim,
                         *v = x.data() + 2 * kKeyHeads * keyDim + h * valueDim;
            double qLength = 1e-6, kLength = 1e-6, squares = 0;
            for (int i = 0; i < keyDim; ++i) qLength += q[i] * q[i], kLength += k[i] * k[i];
            qLength = std::sqrt(qLength), kLength = std::sqrt(kLength);
            const double fade = std::exp(-std::exp(decay.at(0, h)) *
                                         std::log1p(std::exp(gates.at(t, kValueHeads + h) + timeBias.at(0, h)))),
                         beta = 1 / (1 + std::exp(-gates.at(t, h)));
            std::vector<double> o;
            for (int c = 0; c < valueDim; ++c) {
              const auto cell = [&](int i) -> double& { return state[static_cast<size_t>((h * keyDim + i) * valueDim + c)]; };
              double known = 0, result = 0;
              for (int i = 0; i < keyDim; ++i) known += k[i] / kLength * (cell(i) *= fade);
              for (int i = 0; i < keyDim; ++i) {
                cell(i) += k[i] / kLength * beta * (v[c] - known);
                result += q[i] / qLength / std::sqrt(static_cast<double>(keyDim)) * cell(i);
              }
              o.push_back(result);
              squares += result * result;
            }
            for (int c = 0; c < valueDim; ++c) {
              const double gate = z.at(t, h * valueDim + c);
              expected.at(t, h * valueDim + c) =
                  static_cast<float>(o[static_cast<size_t>(c)] / std::sqrt(squares / valueDim + 1e-5) * norm.at(0, c) * gate /
                                     (1 + std::exp(-gate)));
            }
          }
        }
      }
      compare(
          out, [&](int64_t t, int64_t c) { return expected.at(t, c); }, dtype == DType::F32 ? 2e-4 : tolerance(dtype) * 1.5);
      QCOMPARE(gpu.report(), QString());
    }
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsDeltaNetTest)
#include "cuda_kernels_delta_net_test.moc"
