// SPDX-License-Identifier: Apache-2.0
// The CUDA module on emulated devices runs the engine's own table: the same tokens and log probabilities as the reference on
// every layout, sampling, and recorded steps. How it starts and fails: cuda_start_test.cpp.
#include "engine/engine.h"
#include "engine/sample/token_constraint.h"
#include "tests/engine/cuda_engine_support.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::test;

namespace {

// Tokens with even ids, then the end.
class EvenTokens : public TokenConstraint {
 public:
  void mask(std::span<float> logits, std::span<const int32_t>) override {
    for (size_t i = 1; i < logits.size(); i += 2) logits[i] = -std::numeric_limits<float>::infinity();
  }
  void accept(int32_t token) override { allEven = allEven && token % 2 == 0; }
  bool isComplete() const override { return true; }
  bool isOver() const override { return false; }
  bool allEven = true;
};

// The answers of an engine to requests that come together, in their order; empty after a failure.
std::vector<std::vector<int32_t>> answersOf(const std::shared_ptr<const CudaModule>& cuda,
                                            const std::vector<GenerationRequest>& requests, std::string& error) {
  auto model = openModel(kModels + "llama");
  auto layout = makeHeadroomLayout(*model, 2, 1, 1);
  EngineLimits limits = smallLimits();
  limits.graphs = limits.cuda = cuda != nullptr;
  EngineSettings settings;
  settings.modelName = "llama";
  settings.ranks.cuda = cuda;
  settings.ranks.device = cuda ? DeviceKind::Cuda : DeviceKind::Cpu;
  auto engine =
      Engine::start(std::move(*model), std::move(*layout), hostMachine({2, kDeviceMemory}), limits, 0.9, settings, [] {});
  if (!engine) {
    error = engine.error().message();
    return {};
  }
  std::mutex mutex;
  std::condition_variable changed;
  size_t finished = 0;
  std::vector<std::vector<int32_t>> answers(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    (*engine)->submit(requests[i], [&, i](GenerationUpdate&& update) {
      std::lock_guard lock(mutex);
      for (const TokenOutput& token : update.tokens) answers[i].push_back(token.token);
      if (update.finish) ++finished;
      if (!update.error.empty()) error = update.error;
      changed.notify_all();
    });
  }
  {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(120), [&] { return finished == requests.size(); }))
      error = "no answer in time";
  }
  engine->reset();
  return answers;
}

GenerationRequest greedyRequest(const std::vector<int32_t>& prompt) {
  GenerationRequest request;
  request.prompt = prompt;
  request.sampling.temperature = 0;
  request.sampling.ignoreEos = true;
  request.sampling.maxTokens = 10;
  return request;
}

}  // namespace

class CudaEngineTest : public QObject {
  Q_OBJECT

  static void addRows(const char* name, const std::string& path, const std::string& expected,
                      const std::vector<std::pair<int, int>>& layouts) {
    for (const auto& [tp, pp] : layouts) QTest::addRow("%s TP%d PP%d", name, tp, pp) << path << expected << tp << pp;
  }

 private slots:
  void cleanup() { unsetCudaVariables(); }

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
    // Experts, latent heads, linear attention, sinks, windows in chunks.
    const std::string architectures = kModels + "architectures/";
    for (const char* name : {"gpt_oss", "deepseek_v2", "deepseek_v3", "llama4", "qwen3_next"})
      addRows(name, architectures + name, architectures + name + "/expected.json", {{1, 1}, {2, 1}});
    for (const char* name : {"mixtral", "qwen2_moe", "qwen3_moe", "glm4_moe", "minimax_m2", "granitemoe", "olmo2", "olmo3",
                             "phi3_longrope", "qwen3_5"})
      addRows(name, architectures + name, architectures + name + "/expected.json", {{1, 1}});
    for (const char* name : {"deepseek_v3", "gpt_oss"})
      addRows(fmt::format("{} GGUF", name).c_str(), architectures + name + "/" + name + ".gguf",
              architectures + name + "/expected.json", {{2, 1}});
  }
  void givesTheReferencesTokens() {
    QFETCH(std::string, path);
    QFETCH(std::string, expected);
    QFETCH(int, tp);
    QFETCH(int, pp);
    auto driver = StepDriver::make(path, tp, pp, cudaLimits(), kDeviceMemory);
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
    QTest::addColumn<int>("capability");
    QTest::newRow("llama bfloat16") << kModels + "llama" << kModels + "llama/expected.json" << 90;
    QTest::newRow("qwen3 bfloat16") << kModels + "qwen3" << kModels + "qwen3/expected.json" << 90;
    QTest::newRow("Q4_0 bfloat16") << kModels + "gguf/Q4_0.gguf" << kModels + "gguf/Q4_0.expected.json" << 90;
    QTest::newRow("Q8_0 bfloat16") << kModels + "gguf/Q8_0.gguf" << kModels + "gguf/Q8_0.expected.json" << 90;
    // Without bfloat16 in tensor cores: plain matrices in float32, packed ones with float16 activations.
    QTest::newRow("llama bfloat16 on 7.5") << kModels + "llama" << kModels + "llama/expected.json" << 75;
    QTest::newRow("Q4_0 bfloat16 on 7.5") << kModels + "gguf/Q4_0.gguf" << kModels + "gguf/Q4_0.expected.json" << 75;
  }
  void sixteenBitsStayNear() {
    QFETCH(std::string, path);
    QFETCH(std::string, expected);
    QFETCH(int, capability);
    qputenv("HEADROOM_EMULATED_CAPABILITY", QByteArray::number(capability));
    EngineLimits limits = cudaLimits();
    limits.computeDType = limits.kvDType = DType::BF16;
    auto driver = StepDriver::make(path, 2, 1, limits, kDeviceMemory);
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

  // A cache of 8-bit floats holds what the host's holds: in float32 both compute the same from it.
  void eightBitCachesAreTheHostsOwn_data() {
    QTest::addColumn<std::string>("model");
    QTest::addColumn<int>("type");
    for (const DType type : {DType::F8E4M3, DType::F8E5M2})
      for (const char* model : {"llama", "architectures/deepseek_v3"})
        QTest::newRow(fmt::format("{} {}", model, dtypeName(type)).c_str()) << std::string(model) << static_cast<int>(type);
  }
  void eightBitCachesAreTheHostsOwn() {
    QFETCH(std::string, model);
    QFETCH(int, type);
    const std::vector<ReferenceCase> cases = readReference(kModels + model + "/expected.json");
    const auto run = [&](bool onDevice, std::vector<std::vector<std::vector<float>>>& logprobs) {
      EngineLimits limits = smallLimits();
      limits.cuda = onDevice;
      limits.kvDType = static_cast<DType>(type);
      auto driver = StepDriver::make(kModels + model, 2, 1, limits, kDeviceMemory);
      QVERIFY2(driver.has_value(), driver ? "" : driver.error().message().c_str());
      StepDriver& d = **driver;
      if (onDevice) d.cuda = open(CUDA_EMULATED, 2);
      QCOMPARE(d.cuda != nullptr, onDevice);
      d.start();
      QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
      for (const ReferenceCase& reference : cases) d.add(reference.prompt, 1);
      QVERIFY2(d.generate(d.all(), 1, 7), d.failure ? d.failure->message().c_str() : "no answer in time");
      for (const auto& sequence : d.sequences) logprobs.push_back(sequence.logprobs);
    };
    std::vector<std::vector<std::vector<float>>> host, device;
    run(false, host);
    run(true, device);
    QCOMPARE(device.size(), host.size());
    double sum = 0;
    int64_t count = 0;
    for (size_t i = 0; i < host.size(); ++i) {
      QCOMPARE(device[i].size(), host[i].size());
      for (size_t position = 0; position < host[i].size(); ++position)
        for (size_t token = 0; token < host[i][position].size(); ++token, ++count)
          sum += std::abs(host[i][position][token] - device[i][position][token]);
    }
    QVERIFY(count > 0);
    // What differs in the last bit of a float32 may round to a neighbour, and those of E5M2 lie twice as far apart.
    const double most = static_cast<DType>(type) == DType::F8E5M2 ? 0.01 : 0.002;
    QVERIFY2(sum / static_cast<double>(count) < most,
             fmt::format("mean difference {}", sum / static_cast<double>(count)).c_str());
  }

  // Every access of every kernel of a run, each buffer an allocation of its own: no race, nothing out of bounds.
  void checkedRunIsClean() {
    qputenv("HEADROOM_CUDA_SEPARATE_ALLOCATIONS", "1");
    auto driver = StepDriver::make(kModels + "llama", 2, 2, cudaLimits(), kDeviceMemory);
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

  // The device chooses tokens as the host does, from the same random numbers, and only they cross the bus.
  void samplesAsTheHostDoes() {
    const std::vector<ReferenceCase> cases = readReference(kModels + "llama/expected.json");
    std::vector<std::pair<const char*, GenerationRequest>> named;
    auto add = [&](const char* name, auto&& change) {
      GenerationRequest request = greedyRequest(cases[named.size() % cases.size()].prompt);
      request.sampling.seed = 1000 + static_cast<int64_t>(named.size());
      change(request.sampling);
      named.emplace_back(name, std::move(request));
    };
    add("greedy", [](SamplingParams&) {});
    add("temperature", [](SamplingParams& p) { p.temperature = 1.3; });
    add("top_k", [](SamplingParams& p) { p.temperature = 1.0, p.topK = 5; });
    add("top_p", [](SamplingParams& p) { p.temperature = 1.5, p.topP = 0.8; });
    add("min_p", [](SamplingParams& p) { p.temperature = 2.0, p.minP = 0.1; });
    add("all three", [](SamplingParams& p) { p.temperature = 1.2, p.topK = 20, p.topP = 0.9, p.minP = 0.02; });
    add("penalties, greedy",
        [](SamplingParams& p) { p.repetitionPenalty = 1.4, p.frequencyPenalty = 0.5, p.presencePenalty = 0.3; });
    add("penalties, drawn", [](SamplingParams& p) { p.temperature = 0.9, p.repetitionPenalty = 1.2, p.presencePenalty = 0.4; });
    add("biases", [](SamplingParams& p) { p.logitBias = {{7, 4.0f}, {11, 4.5f}, {3, -100.0f}, {7, 0.25f}}; });
    add("stop tokens until enough", [](SamplingParams& p) {
      p.temperature = 1.0, p.stopTokenIds = {1, 2, 3, 4, 5}, p.minTokens = 8;
    });
    add("mask", [](SamplingParams& p) { p.temperature = 1.0, p.constraint = std::make_shared<EvenTokens>(); });
    std::vector<GenerationRequest> forHost, forDevice;
    for (const auto& [name, request] : named) {
      forHost.push_back(request);
      forDevice.push_back(request);
      if (request.sampling.constraint) forDevice.back().sampling.constraint = std::make_shared<EvenTokens>();
    }
    std::string error;
    const auto expected = answersOf(nullptr, forHost, error);
    QVERIFY2(error.empty(), error.c_str());
    const auto cuda = open(CUDA_EMULATED, 2);
    QVERIFY(cuda);
    const auto found = answersOf(cuda, forDevice, error);
    QVERIFY2(error.empty(), error.c_str());
    for (size_t i = 0; i < named.size(); ++i)
      QVERIFY2(
          found[i] == expected[i],
          fmt::format("{}: [{}], expected [{}]", named[i].first, fmt::join(found[i], " "), fmt::join(expected[i], " ")).c_str());
    QVERIFY(static_cast<const EvenTokens&>(*forDevice.back().sampling.constraint).allEven);
    // Six tokens more are six numbers more. With log probabilities asked for each brings a row of logits too, and is the same.
    GenerationRequest shorter = forDevice[1], explained = forDevice[1];
    shorter.sampling.maxTokens = 4;
    explained.sampling.logprobs = 2;
    std::vector<int64_t> bytes;
    std::vector<std::vector<int32_t>> answers;
    for (const GenerationRequest& request : {shorter, forDevice[1], explained}) {
      const int64_t before = bytesToHost(CUDA_EMULATED);
      QVERIFY(before >= 0);
      answers.push_back(answersOf(cuda, {request}, error).front());
      QVERIFY2(error.empty(), error.c_str());
      bytes.push_back(bytesToHost(CUDA_EMULATED) - before);
    }
    QVERIFY(answers[1] == answers[2]);
    QCOMPARE(answers[1].size(), size_t{10});
    QCOMPARE(bytes[1] - bytes[0], 6 * 4);
    const int64_t vocabulary = openModel(kModels + "llama")->config.vocabSize;
    QCOMPARE(bytes[2] - bytes[1], 10 * 4 * vocabulary);
  }

  // Steps that only generate are recorded once for each number of sequences and replayed: the same tokens, no more memory than
  // was planned, nothing in a recording that may not stand there. Without graphs nothing is recorded.
  void replaysSteps_data() {
    QTest::addColumn<std::string>("path");
    QTest::addColumn<std::string>("expected");
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    QTest::addColumn<QByteArray>("communicator");
    QTest::addColumn<bool>("graphs");
    auto row = [](const char* name, const std::string& model, int tp, int pp, const char* communicator = "", bool graphs = true) {
      QTest::newRow(name) << kModels + model << kModels + model + "/expected.json" << tp << pp << QByteArray(communicator)
                          << graphs;
    };
    row("one rank", "llama", 1, 1);
    row("two ranks", "llama", 2, 1);
    row("two ranks, NCCL alone", "llama", 2, 1, "nccl");
    row("stages", "llama", 2, 2);
    row("experts", "architectures/gpt_oss", 1, 1);
    row("latent heads", "architectures/deepseek_v3", 2, 1);
    row("linear attention", "architectures/qwen3_next", 1, 1);
    row("not asked for", "llama", 2, 1, "", false);
    row("sums through the host", "llama", 2, 1, "peer");
    QTest::newRow("packed weights") << kModels + "gguf/Q4_0.gguf" << kModels + "gguf/Q4_0.expected.json" << 1 << 1 << QByteArray()
                                    << true;
  }
  void replaysSteps() {
    QFETCH(std::string, path);
    QFETCH(std::string, expected);
    QFETCH(int, tp);
    QFETCH(int, pp);
    QFETCH(QByteArray, communicator);
    QFETCH(bool, graphs);
    if (!communicator.isEmpty()) qputenv("HEADROOM_CUDA_COMMUNICATOR", communicator);
    EngineLimits limits = cudaLimits();
    limits.graphs = graphs;
    auto driver = StepDriver::make(path, tp, pp, limits, kDeviceMemory);
    QVERIFY2(driver.has_value(), driver ? "" : driver.error().message().c_str());
    StepDriver& d = **driver;
    d.cuda = open(CUDA_EMULATED, tp * pp);
    QVERIFY(d.cuda);
    const int64_t before = graphLaunches(CUDA_EMULATED);
    QVERIFY(before >= 0);
    d.start();
    QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
    const bool replays = graphs && communicator != "peer";
    for (const RankState& state : d.group().rankStates()) {
      QCOMPARE(state.planned.graphs > 0, graphs);
      QCOMPARE(state.allocated.graphs > 0, replays);
      const RankBytes& parts = state.allocated;
      const int64_t inParts = *parts.weights + *parts.kvCache + *parts.activations + *parts.graphs;
      QVERIFY(*state.deviceUsedBytes >= inParts && *state.deviceUsedBytes - inParts < 64 << 10);  // and tables of addresses
      QVERIFY2(
          state.allocated.graphs <= state.planned.graphs,
          fmt::format("{} bytes of graphs, {} planned", state.allocated.graphs.value_or(-1), state.planned.graphs.value_or(-1))
              .c_str());
    }
    const std::vector<ReferenceCase> cases = readReference(expected);
    for (const ReferenceCase& reference : cases) d.add(reference.prompt, static_cast<int64_t>(reference.greedy.size()));
    const auto tokens = static_cast<int64_t>(cases.front().greedy.size());
    QVERIFY2(d.generate(d.all(), tokens, 96), d.failure ? d.failure->message().c_str() : "no answer in time");
    for (size_t i = 0; i < cases.size(); ++i) QCOMPARE(compareWith(cases[i], d.sequences[i], 1e-3), std::string());
    // Every step after the prompts', on every rank: no prompt moves memory that recordings use.
    QCOMPARE(graphLaunches(CUDA_EMULATED) - before, replays ? (tokens - 1) * tp * pp : 0);
  }
};

QTEST_GUILESS_MAIN(CudaEngineTest)
#include "cuda_engine_test.moc"
