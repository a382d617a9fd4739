// SPDX-License-Identifier: Apache-2.0
// The CUDA module on emulated devices as it starts and fails: memory as planned and no more, types that plan and load agree on,
// how ranks reach each other, and an end with a reason in bounded time whatever fails.
#include "core/launch/planner.h"
#include "core/memory/cuda_types.h"
#include "tests/engine/cuda_engine_support.h"

#include <QElapsedTimer>

#include <thread>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::test;

class CudaStartTest : public QObject {
  Q_OBJECT
 private slots:
  void cleanup() { unsetCudaVariables(); }

  // A device of exactly the planned memory starts and serves: weights, cache and activations are what was planned to the byte,
  // the rest stays within the plan, and nothing is taken later.
  void allOfTheMemoryStarts_data() {
    QTest::addColumn<std::string>("path");
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    QTest::addColumn<int>("type");
    QTest::addColumn<bool>("graphs");
    QTest::addColumn<QByteArray>("communicator");
    QTest::addColumn<int>("devices");
    auto row = [](const char* name, const std::string& model, int tp, int pp, DType type, bool graphs = true,
                  const char* communicator = "", int devices = 0) {
      QTest::newRow(name) << kModels + model << tp << pp << static_cast<int>(type) << graphs << QByteArray(communicator)
                          << (devices > 0 ? devices : tp * pp);
    };
    row("one rank", "llama", 1, 1, DType::BF16);
    row("two ranks", "llama", 2, 1, DType::BF16);
    row("uneven ranks, stages", "llama", 3, 2, DType::F32);
    row("no graphs", "llama", 2, 1, DType::F16, false);
    row("no NCCL", "llama", 2, 1, DType::BF16, true, "peer");
    row("ranks on one device", "llama", 2, 2, DType::F32, true, "", 1);
    row("packed weights", "gguf/Q4_0.gguf", 1, 1, DType::F16);
    row("experts", "architectures/gpt_oss", 1, 1, DType::BF16);
    row("latent heads", "architectures/deepseek_v3", 2, 1, DType::BF16);
    row("linear attention", "architectures/qwen3_next", 2, 1, DType::BF16);
    row("windows in chunks", "architectures/llama4", 2, 1, DType::BF16, false);
  }
  void allOfTheMemoryStarts() {
    QFETCH(std::string, path);
    QFETCH(int, tp);
    QFETCH(int, pp);
    QFETCH(int, type);
    QFETCH(bool, graphs);
    QFETCH(QByteArray, communicator);
    QFETCH(int, devices);
    if (!communicator.isEmpty()) qputenv("HEADROOM_CUDA_COMMUNICATOR", communicator);
    const int ranksOfDevice = tp * pp / devices;
    const Bytes memory = kDeviceMemory * ranksOfDevice;
    qputenv("HEADROOM_EMULATED_MEMORY", QByteArray::number(static_cast<qint64>(memory.count() >> 20)));
    EngineLimits limits = cudaLimits();
    limits.graphs = graphs;
    limits.computeDType = limits.kvDType = static_cast<DType>(type);
    auto driver = StepDriver::make(path, tp, pp, limits, memory, 1.0);
    QVERIFY2(driver.has_value(), driver ? "" : driver.error().message().c_str());
    StepDriver& d = **driver;
    if (ranksOfDevice > 1) {
      for (RankSlice& rank : d.layout.ranks) rank.gpu = rank.rank / ranksOfDevice;
      const auto shared = planEngineMemory(d.model, d.layout, d.machine, limits, 1.0);
      QVERIFY(shared.has_value());
      d.memory = *shared;
    }
    Bytes planned, fullest;
    for (const RankMemory& rank : d.memory.ranks) {
      planned += rank.total();
      fullest = std::max(fullest, rank.total());
    }
    QVERIFY(fullest <= kDeviceMemory && fullest > kDeviceMemory - 64_KiB);  // all but less than a block
    d.cuda = open(CUDA_EMULATED, devices);
    QVERIFY(d.cuda);
    d.start();
    QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
    for (const RankState& state : d.group().rankStates()) {
      QCOMPARE(state.allocated.weights, state.planned.weights);
      QCOMPARE(state.allocated.kvCache, state.planned.kvCache);
      QCOMPARE(state.allocated.activations, state.planned.activations);
      QVERIFY(state.allocated.graphs <= state.planned.graphs);
    }
    const int64_t atStart = deviceBytes(CUDA_EMULATED);
    QVERIFY2(atStart > 0 && atStart <= planned.count(), fmt::format("{} of {} bytes", atStart, planned.count()).c_str());
    // The longest prompts together, then single tokens beside a prompt.
    for (int i = 0; i < 3; ++i) d.add(std::vector<int32_t>(40, 3 + i), 4);
    QVERIFY2(d.generate(d.all(), 2, 32), d.failure ? d.failure->message().c_str() : "no answer in time");
    d.add({5, 6, 7}, 2);
    QVERIFY2(d.generate(d.all(), 1, 96), d.failure ? d.failure->message().c_str() : "no answer in time");
    QCOMPARE(deviceBytes(CUDA_EMULATED), atStart);
  }

  // The module, the engine's check before loading and the plan say the same of every type.
  void planAndLoadAgreeOnTypes() {
    const auto cuda = open(CUDA_EMULATED, 1);
    QVERIFY(cuda);
    auto backend = cuda->makeBackend({});
    QVERIFY(backend.has_value());
    int held = 0, refused = 0;
    for (int number = 0; number <= static_cast<int>(DType::MXFP4); ++number) {
      const auto type = static_cast<DType>(number);
      const std::string name(dtypeName(type));
      if (!isFloating(type) && !isBlockQuantized(type)) continue;  // codes and indices are never matrices
      const bool loads = (*backend)->makeMatrix(type, 64, 256, "test").has_value();
      auto driver = StepDriver::make(kModels + "llama", 1, 1);
      QVERIFY(driver.has_value());
      ModelSource& model = (*driver)->model;
      for (TensorEntry& tensor : model.inventory.tensors)
        if (tensor.role == TensorRole::Down) {
          tensor.dtype = type;
          tensor.shape = {64, 256};
        }
      // Floating matrices are converted to the type of computation, so all of them load.
      const bool expected = isFloating(type) || loads;
      QVERIFY2(cudaHolds(type) == loads, name.c_str());
      QVERIFY2((heldByNoCudaDevice(model, DType::BF16) == nullptr) == expected, name.c_str());
      const auto gpus = parseMachine("1x24GiB");
      QVERIFY(gpus.has_value());
      const auto plan = planLayout(model, *gpus, PlanOptions{}, 1, 1, 1);
      QVERIFY2(plan.has_value(), plan ? "" : plan.error().message().c_str());
      QVERIFY2((plan->verdict != Verdict::Invalid) == expected, name.c_str());
      (*driver)->cuda = cuda;
      if (!expected) {  // refused by the ranks before anything is loaded
        (*driver)->start();
        QVERIFY((*driver)->waitFailed(kSoon));
        QVERIFY2(
            QString::fromStdString((*driver)->failure->message()).contains(QString::fromStdString(name) + " on CUDA devices"),
            (*driver)->failure->message().c_str());
      }
      ++(expected ? held : refused);
    }
    QVERIFY(held >= 23);
    QCOMPARE(refused, 2);  // Q8_1 and Q8_K, which no file has
  }

  // Small sums are one kernel where devices reach each other's memory and a pattern arrived whole; else NCCL's.
  void sumsOverPeerAccess_data() {
    QTest::addColumn<QByteArray>("fault");
    QTest::addColumn<QByteArray>("communicator");
    QTest::addColumn<QString>("description");
    QTest::newRow("peer access") << QByteArray() << QByteArray() << "in one kernel over peer access";
    QTest::newRow("without NCCL") << QByteArray() << QByteArray("peer") << "copies between the ranks' memory, sums up to 256 KiB";
    QTest::newRow("NCCL alone") << QByteArray() << QByteArray("nccl") << "NCCL 2.27.3";
    QTest::newRow("no peer access") << QByteArray("no-peer") << QByteArray() << "does not reach the memory of";
    QTest::newRow("a pattern arrives changed")
        << QByteArray("peer-corrupt") << QByteArray() << "no sums over peer access: copy from cuda:";
  }
  void sumsOverPeerAccess() {
    QFETCH(QByteArray, fault);
    QFETCH(QByteArray, communicator);
    QFETCH(QString, description);
    if (!fault.isEmpty()) qputenv("HEADROOM_EMULATED_FAULT", fault);
    if (!communicator.isEmpty()) qputenv("HEADROOM_CUDA_COMMUNICATOR", communicator);
    constexpr int kRanks = 3;
    const auto cuda = open(CUDA_EMULATED, kRanks);
    QVERIFY(cuda);
    std::string why;
    auto communicators = cuda->makeCommunicators({0, 1, 2}, why);
    std::vector<std::string> problems(kRanks), said(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        const auto index = static_cast<size_t>(rank);
        Communicator& mine = *communicators[index];
        auto fails = [&](const std::string& problem) {
          problems[index] = problem;
          mine.abort(Error{"test", problem, {}, {}});
        };
        CudaBackendOptions options;
        options.device = rank;
        auto backend = cuda->makeBackend(options);
        if (!backend) return fails(backend.error().message());
        if (Status status = mine.attach(**backend); !status) return fails(status.error().message());
        said[index] = mine.description();
        // The largest message that is one kernel, one beyond it, and a few numbers; twice.
        for (int64_t count : {int64_t{65536}, int64_t{65540}, int64_t{7}, int64_t{65536}, int64_t{3}}) {
          auto buffer = (*backend)->allocate(Bytes(4 * count), "test");
          if (!buffer) return fails(buffer.error().message());
          std::vector<float> values(static_cast<size_t>(count)), sums(values.size());
          for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int>(i % 1000) * (rank + 1));
          (*backend)->copyToDevice(buffer->data(), values.data(), Bytes(4 * count));
          if (Status status = mine.allReduceSum(TensorView::of(buffer->data(), DType::F32, 1, count)); !status)
            return fails(status.error().message());
          (*backend)->copyToHost(sums.data(), buffer->data(), Bytes(4 * count));
          if (Status status = (*backend)->sync(); !status) return fails(status.error().message());
          for (size_t i = 0; i < sums.size(); ++i)
            if (sums[i] != static_cast<float>(static_cast<int>(i % 1000) * 6))
              return fails(fmt::format("{} numbers: {} at {}", count, sums[i], i));
        }
        communicators[index].reset();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& problem : problems) QCOMPARE(problem, std::string());
    for (const std::string& text : said) QVERIFY2(QString::fromStdString(text).contains(description), text.c_str());
    if (communicator == "nccl") QVERIFY(!QString::fromStdString(said[0]).contains("peer access"));
  }

  // Several ranks on one device: the ranks' streams and buffers are their own.
  void ranksShareADevice() {
    auto driver = StepDriver::make(kModels + "llama", 3, 2, cudaLimits(), kDeviceMemory);
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
    // Short only where a wait has no other end: a busy machine may take long for all else.
    qputenv("HEADROOM_CUDA_TIMEOUT", value.contains("hang") || value.contains("nccl-dead") ? "3" : "100");
    if (value == "malloc:12") qputenv("HEADROOM_CUDA_SEPARATE_ALLOCATIONS", "1");
    if (value == "peer-corrupt") qputenv("HEADROOM_CUDA_COMMUNICATOR", "peer");
    // These count calls, and the trial of peer access makes some.
    if (value.startsWith("nccl-") || value.startsWith("malloc")) qputenv("HEADROOM_CUDA_COMMUNICATOR", "nccl");
    auto driver = StepDriver::make(kModels + "llama", 2, 1, cudaLimits(), kDeviceMemory);
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

  // Whichever allocation of a start fails: a reason in bounded time, or, where there is another way, the right tokens.
  void everyAllocationMayFail_data() {
    QTest::addColumn<QByteArray>("kind");
    QTest::addColumn<QByteArray>("figure");
    QTest::newRow("device memory") << QByteArray("malloc") << QByteArray("headroomEmulationMallocs");
    QTest::newRow("pinned memory") << QByteArray("host-malloc") << QByteArray("headroomEmulationHostMallocs");
  }
  void everyAllocationMayFail() {
    QFETCH(QByteArray, kind);
    QFETCH(QByteArray, figure);
    qputenv("HEADROOM_CUDA_TIMEOUT", "100");
    const ReferenceCase reference = readReference(kModels + "llama/expected.json").front();
    // The failure's text; empty: it started and gave the reference's tokens.
    const auto run = [&](int failing, std::string& problem, int64_t& count) {
      problem = "no end";
      qputenv("HEADROOM_EMULATED_FAULT", failing > 0 ? kind + ":" + QByteArray::number(failing) : QByteArray());
      EngineLimits limits = cudaLimits();
      limits.graphs = true;
      auto driver = StepDriver::make(kModels + "llama", 2, 1, limits, kDeviceMemory);
      QVERIFY(driver.has_value());
      StepDriver& d = **driver;
      d.cuda = open(CUDA_EMULATED, 2);
      QVERIFY(d.cuda);
      d.start();
      d.add(reference.prompt, 3);
      const bool done = d.waitLoaded() && d.generate({0}, 3, 96);
      count = figureOf(CUDA_EMULATED, figure.constData());
      if (!done && !d.waitFailed(kSoon)) return;
      problem = d.failure ? d.failure->message() : std::string();
      if (done) QVERIFY(std::equal(reference.greedy.begin(), reference.greedy.begin() + 3, d.sequences[0].tokens.end() - 3));
    };
    std::string problem;
    int64_t all = 0, count = 0;
    run(0, problem, all);
    QCOMPARE(problem, std::string());
    QVERIFY2(all > 2 && all < 64, fmt::format("{} allocations", all).c_str());
    int failed = 0;
    for (int n = 1; n <= all; ++n) {
      run(n, problem, count);
      QVERIFY2(problem.empty() || problem.find("memory") != std::string::npos, fmt::format("{}: {}", n, problem).c_str());
      if (!problem.empty()) ++failed;
    }
    QVERIFY(failed > 0 || kind == "host-malloc");  // all of them may have another way
  }
};

QTEST_GUILESS_MAIN(CudaStartTest)
#include "cuda_start_test.moc"
