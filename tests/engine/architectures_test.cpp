// SPDX-License-Identifier: Apache-2.0
// Every architecture that is more than a dense Llama gives what Transformers computes in float32, in even and uneven layouts,
// whole and in chunks; and allocates what is planned.
#include "tests/engine/step_driver.h"

#include <QtTest>

#include <set>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::test;

namespace {
const std::string kModels = std::string(HEADROOM_TEST_DATA) + "/models/architectures/";
constexpr double kTolerance = 1e-3;
const char* const kNames[] = {"mixtral",       "qwen2_moe",  "qwen3_moe",  "gpt_oss",      "deepseek_v2", "deepseek_v3",
                              "glm4_moe",      "minimax_m2", "granitemoe", "llama4",       "olmo2",       "olmo3",
                              "phi3_longrope", "qwen3_next", "qwen3_5",    "gpt_oss_mxfp4"};
// The same weights as GGUF files have them.
const char* const kGgufs[] = {"mixtral", "qwen2_moe", "gpt_oss", "deepseek_v3", "glm4_moe", "minimax_m2"};
}  // namespace

class ArchitecturesTest : public QObject {
  Q_OBJECT

  static void addModel(const std::string& name, const std::string& path, const std::string& expected) {
    const Result<ModelSource> model = openModel(path);
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const int heads = static_cast<int>(model->config.qHeads), layers = static_cast<int>(model->config.layerCount());
    for (int tp : std::set<int>{1, 2, 3, heads}) {
      const int pp = tp == 2 ? layers : 1;
      QTest::addRow("%s TP%d PP%d", name.c_str(), tp, pp) << path << tp << pp << expected;
    }
  }

 private slots:
  void matchesTransformers_data() {
    QTest::addColumn<std::string>("path");
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    QTest::addColumn<std::string>("expected");
    for (const std::string name : kNames) addModel(name, kModels + name, kModels + name + "/expected.json");
    for (const std::string name : kGgufs)
      addModel(name + " GGUF", kModels + name + "/" + name + ".gguf", kModels + name + "/expected.json");
  }

  void matchesTransformers() {
    QFETCH(std::string, path);
    QFETCH(int, tp);
    QFETCH(int, pp);
    QFETCH(std::string, expected);
    auto driver = StepDriver::make(path, tp, pp);
    QVERIFY2(driver.has_value(), driver ? "" : driver.error().message().c_str());
    StepDriver& d = **driver;
    const std::string missing = fmt::format("{}", fmt::join(d.model.config.missingInEngine, ", "));
    QCOMPARE(missing, std::string());
    if (path.ends_with("mxfp4")) {  // experts stay 4 bits: 17 bytes for 32 numbers
      for (const TensorEntry& tensor : d.model.inventory.tensors)
        QVERIFY2(!tensor.loaded || tensor.name.find("_proj") == std::string::npos ||
                     tensor.name.find("experts") == std::string::npos || tensor.name.ends_with("bias") ||
                     tensor.dtype == DType::MXFP4,
                 tensor.name.c_str());
    }
    d.start();
    QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
    for (const RankState& rank : d.group().rankStates()) {
      QCOMPARE(rank.allocated.weights, rank.planned.weights);
      QCOMPARE(rank.allocated.kvCache, rank.planned.kvCache);
      QCOMPARE(rank.allocated.activations, rank.planned.activations);
    }
    const std::vector<ReferenceCase> cases = readReference(expected);
    QVERIFY(!cases.empty());
    for (int64_t chunk : {96, 5}) {
      d.clear();
      for (const ReferenceCase& reference : cases) d.add(reference.prompt, static_cast<int64_t>(reference.greedy.size()));
      const bool done = d.generate(d.all(), static_cast<int64_t>(cases.front().greedy.size()), chunk);
      QVERIFY2(done, d.failure ? d.failure->message().c_str() : "no answer in time");
      for (size_t i = 0; i < cases.size(); ++i) {
        const std::string difference = compareWith(cases[i], d.sequences[i], kTolerance);
        QVERIFY2(difference.empty(), fmt::format("chunks of {}, prompt {}: {}", chunk, i, difference).c_str());
      }
    }
  }
};

QTEST_GUILESS_MAIN(ArchitecturesTest)
#include "architectures_test.moc"
