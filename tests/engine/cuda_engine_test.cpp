// SPDX-License-Identifier: Apache-2.0
// The CUDA module on emulated devices runs the engine's own table: the same tokens and log probabilities as the reference on
// every layout, memory as planned, and an end with a reason in bounded time whatever fails. CUDA_EMULATED and CUDA_CHECKED are
// two builds of the module's own sources; the second sees every access of the kernels.
#include "engine/device/backend_registry.h"
#include "tests/engine/step_driver.h"

#include <QElapsedTimer>
#include <QtTest>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::test;

namespace {

const std::string kModels = std::string(HEADROOM_TEST_DATA) + "/models/";
constexpr std::chrono::milliseconds kSoon{30000};

// Opens a build of the module with so many devices; what it found is in `found`.
std::shared_ptr<const CudaModule> open(const char* path, int devices, FoundDevices* found = nullptr) {
  qputenv("HEADROOM_CUDA_MODULE", path);
  qputenv("HEADROOM_EMULATED_GPUS", QByteArray::number(devices));
  FoundDevices all = findDevices({});
  if (found) *found = all;
  return all.cudaModule;
}

}  // namespace

class CudaEngineTest : public QObject {
  Q_OBJECT

  static void addRows(const char* name, const std::string& path, const std::string& expected,
                      const std::vector<std::pair<int, int>>& layouts) {
    for (const auto& [tp, pp] : layouts) QTest::addRow("%s TP%d PP%d", name, tp, pp) << path << expected << tp << pp;
  }

 private slots:
  void cleanup() {
    for (const char* name : {"HEADROOM_CUDA_MODULE", "HEADROOM_EMULATED_GPUS", "HEADROOM_EMULATED_FAULT",
                             "HEADROOM_EMULATED_DELAY_US", "HEADROOM_FAULT", "HEADROOM_CUDA_SEPARATE_ALLOCATIONS",
                             "HEADROOM_CUDA_TIMEOUT", "HEADROOM_CUDA_COMMUNICATOR", "HEADROOM_EMULATED_MEMORY"})
      qunsetenv(name);
  }

  void findsEmulatedDevices() {
    FoundDevices found;
    QVERIFY(open(CUDA_EMULATED, 3, &found));
    QCOMPARE(found.cuda.size(), 3);
    QCOMPARE(found.cuda.gpus[0].spec.name, std::string("Emulated GPU"));
    QCOMPARE(found.cuda.gpus[0].totalMemory, 4_GiB);
    QVERIFY(!open(CUDA_EMULATED, 0, &found));
    QVERIFY2(found.cudaOffReason.find("no CUDA-capable device is detected") != std::string::npos, found.cudaOffReason.c_str());
    QVERIFY(!open(CUDA_EMULATED, -1, &found));
    QVERIFY2(found.cudaOffReason.find("driver version is insufficient") != std::string::npos, found.cudaOffReason.c_str());
  }

  void givesTheReferencesTokens_data() {
    QTest::addColumn<std::string>("path");
    QTest::addColumn<std::string>("expected");
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    addRows("llama", kModels + "llama", kModels + "llama/expected.json", {{1, 1}, {2, 1}, {3, 1}, {1, 2}, {2, 2}, {5, 2}});
    for (const char* name : {"qwen2", "qwen3", "mistral"})
      addRows(name, kModels + name, kModels + name + "/expected.json", {{1, 1}, {2, 1}, {3, 2}});
    for (const char* type : {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"})
      addRows(type, kModels + "gguf/" + type + ".gguf", kModels + "gguf/" + type + ".expected.json", {{1, 1}, {2, 2}});
  }
  void givesTheReferencesTokens() {
    QFETCH(std::string, path);
    QFETCH(std::string, expected);
    QFETCH(int, tp);
    QFETCH(int, pp);
    auto driver = StepDriver::make(path, tp, pp);
    QVERIFY2(driver.has_value(), driver ? "" : driver.error().message().c_str());
    StepDriver& d = **driver;
    d.cuda = open(CUDA_EMULATED, tp * pp);
    QVERIFY(d.cuda);
    d.start();
    QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
    const std::vector<ReferenceCase> cases = readReference(expected);
    // Chunks of 5 meet prompts in parts and answers beside them; whole prompts at once are enough on two layouts.
    const bool both = path.ends_with("llama") && tp == pp;
    for (int64_t chunk : both ? std::vector<int64_t>{96, 5} : std::vector<int64_t>{5}) {
      d.clear();
      for (const ReferenceCase& reference : cases) d.add(reference.prompt, static_cast<int64_t>(reference.greedy.size()));
      const bool done = d.generate(d.all(), static_cast<int64_t>(cases.front().greedy.size()), chunk);
      QVERIFY2(done, d.failure ? d.failure->message().c_str() : "no answer in time");
      for (size_t i = 0; i < cases.size(); ++i) {
        const std::string difference = compareWith(cases[i], d.sequences[i], 1e-3);
        QVERIFY2(difference.empty(), fmt::format("chunks of {}, prompt {}: {}", chunk, i, difference).c_str());
      }
    }
    // Planned is allocated, to the byte.
    for (const RankState& state : d.group().rankStates()) {
      QCOMPARE(state.allocated.weights, state.planned.weights);
      QCOMPARE(state.allocated.kvCache, state.planned.kvCache);
      QCOMPARE(state.allocated.activations, state.planned.activations);
    }
  }

  // The 16-bit paths (tensor-core tiles in attention and products) stay near the float32 reference, as the CPU's do: the mean
  // difference of log probabilities over all positions, not single tokens, which near ties may flip.
  void sixteenBitsStayNear_data() {
    QTest::addColumn<std::string>("path");
    QTest::addColumn<std::string>("expected");
    QTest::newRow("llama bfloat16") << kModels + "llama" << kModels + "llama/expected.json";
    QTest::newRow("qwen3 bfloat16") << kModels + "qwen3" << kModels + "qwen3/expected.json";
    QTest::newRow("Q4_0 bfloat16") << kModels + "gguf/Q4_0.gguf" << kModels + "gguf/Q4_0.expected.json";
    QTest::newRow("Q8_0 bfloat16") << kModels + "gguf/Q8_0.gguf" << kModels + "gguf/Q8_0.expected.json";
  }
  void sixteenBitsStayNear() {
    QFETCH(std::string, path);
    QFETCH(std::string, expected);
    EngineLimits limits = smallLimits();
    limits.computeDType = limits.kvDType = DType::BF16;
    auto driver = StepDriver::make(path, 2, 1, limits);
    QVERIFY2(driver.has_value(), driver ? "" : driver.error().message().c_str());
    StepDriver& d = **driver;
    d.cuda = open(CUDA_CHECKED, 2);
    QVERIFY(d.cuda);
    d.start();
    QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
    const std::vector<ReferenceCase> cases = readReference(expected);
    // The reference's own tokens are given, so that every position is compared.
    for (const ReferenceCase& reference : cases) {
      std::vector<int32_t> all = reference.prompt;
      all.insert(all.end(), reference.greedy.begin(), reference.greedy.end() - 1);
      d.add(all, 1);
    }
    for (int64_t chunk : {7})
      QVERIFY2(d.generate(d.all(), 1, chunk), d.failure ? d.failure->message().c_str() : "no answer in time");
    double sum = 0;
    int64_t count = 0;
    for (size_t i = 0; i < cases.size(); ++i)
      for (size_t position = 0; position < cases[i].topLogprobs.size(); ++position)
        for (const auto& [token, logprob] : cases[i].topLogprobs[position]) {
          sum += std::abs(d.sequences[i].logprobs[position][static_cast<size_t>(token)] - logprob);
          ++count;
        }
    QVERIFY(count > 0);
    QVERIFY2(sum / static_cast<double>(count) < 0.05,
             fmt::format("mean difference {}", sum / static_cast<double>(count)).c_str());
  }

  // Every access of every kernel of a run, each buffer an allocation of its own: no race, nothing out of bounds.
  void checkedRunIsClean() {
    qputenv("HEADROOM_CUDA_SEPARATE_ALLOCATIONS", "1");
    auto driver = StepDriver::make(kModels + "llama", 2, 2);
    QVERIFY(driver.has_value());
    StepDriver& d = **driver;
    d.cuda = open(CUDA_CHECKED, 4);
    QVERIFY(d.cuda);
    d.start();
    QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
    const std::vector<ReferenceCase> cases = readReference(kModels + "llama/expected.json");
    for (const ReferenceCase& reference : cases) d.add(reference.prompt, 3);
    QVERIFY2(d.generate(d.all(), 3, 11), d.failure ? d.failure->message().c_str() : "no answer in time");
    for (size_t i = 0; i < cases.size(); ++i)
      QVERIFY(std::equal(cases[i].greedy.begin(), cases[i].greedy.begin() + 3, d.sequences[i].tokens.end() - 3));
  }

  // Several ranks on one device: the ranks' streams and buffers are their own.
  void ranksShareADevice() {
    auto driver = StepDriver::make(kModels + "llama", 3, 2);
    QVERIFY(driver.has_value());
    StepDriver& d = **driver;
    for (RankSlice& rank : d.layout.ranks) rank.gpu = 0;
    d.cuda = open(CUDA_EMULATED, 1);
    qputenv("HEADROOM_EMULATED_DELAY_US", "200");
    QVERIFY(d.cuda);
    d.start();
    QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
    const std::vector<ReferenceCase> cases = readReference(kModels + "llama/expected.json");
    for (const ReferenceCase& reference : cases) d.add(reference.prompt, static_cast<int64_t>(reference.greedy.size()));
    QVERIFY(d.generate(d.all(), static_cast<int64_t>(cases.front().greedy.size()), 96));
    for (size_t i = 0; i < cases.size(); ++i) QCOMPARE(compareWith(cases[i], d.sequences[i], 1e-3), std::string());
  }

  void faultsEndWithAReason_data() {
    QTest::addColumn<QByteArray>("name");
    QTest::addColumn<QByteArray>("value");
    QTest::addColumn<QString>("reason");
    QTest::newRow("no memory for the plan") << QByteArray("HEADROOM_EMULATED_FAULT") << QByteArray("malloc:1")
                                            << "GiB for weights, KV cache and activations";
    QTest::newRow("no memory for a later buffer")
        << QByteArray("HEADROOM_EMULATED_FAULT") << QByteArray("malloc:12") << "GiB for ";
    QTest::newRow("peer copies corrupt") << QByteArray("HEADROOM_EMULATED_FAULT") << QByteArray("peer-corrupt")
                                         << "copy from cuda:";
    QTest::newRow("a rank never joins NCCL")
        << QByteArray("HEADROOM_EMULATED_FAULT") << QByteArray("nccl-dead:1") << "not all of 2 ranks in the communicator";
    QTest::newRow("an all-reduce hangs") << QByteArray("HEADROOM_EMULATED_FAULT") << QByteArray("nccl-hang:9")
                                         << "no end of its work after";
    QTest::newRow("NCCL reports an error") << QByteArray("HEADROOM_EMULATED_FAULT") << QByteArray("nccl-error:9")
                                           << "remote process exited";
    QTest::newRow("a rank dies") << QByteArray("HEADROOM_FAULT") << QByteArray("rank=1,step=2,kind=throw")
                                 << "rank 1 (stage 0, TP rank 1) on cuda:1: found an exception";
    QTest::newRow("a kernel hangs") << QByteArray("HEADROOM_EMULATED_FAULT") << QByteArray("hang:40")
                                    << "no end of its work after";
  }
  void faultsEndWithAReason() {
    QFETCH(QByteArray, name);
    QFETCH(QByteArray, value);
    QFETCH(QString, reason);
    qputenv(name, value);
    qputenv("HEADROOM_CUDA_TIMEOUT", "3");
    if (value == "malloc:12") qputenv("HEADROOM_CUDA_SEPARATE_ALLOCATIONS", "1");
    if (value == "peer-corrupt") qputenv("HEADROOM_CUDA_COMMUNICATOR", "peer");
    auto driver = StepDriver::make(kModels + "llama", 2, 1);
    QVERIFY(driver.has_value());
    StepDriver& d = **driver;
    d.cuda = open(CUDA_EMULATED, 2);
    QVERIFY(d.cuda);
    QElapsedTimer timer;
    timer.start();
    d.start();
    d.add({3, 1, 4, 1, 5}, 12);
    if (d.waitLoaded()) QVERIFY(!d.generate({0}, 12, 4));
    QVERIFY(d.waitFailed(kSoon));
    QVERIFY2(QString::fromStdString(d.failure->message()).contains(reason), d.failure->message().c_str());
    d.stop();
    QVERIFY(timer.elapsed() < kSoon.count());
  }
};

QTEST_GUILESS_MAIN(CudaEngineTest)
#include "cuda_engine_test.moc"
