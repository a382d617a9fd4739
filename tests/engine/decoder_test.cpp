// SPDX-License-Identifier: Apache-2.0
// Every layout of every reference model gives what Transformers computes in float32: greedy tokens and log probabilities, whole
// and in chunks.
#include "tests/engine/gguf_split.h"
#include "tests/engine/step_driver.h"

#include <QTemporaryDir>
#include <QtTest>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::test;

namespace {
const std::string kModels = std::string(HEADROOM_TEST_DATA) + "/models/";
constexpr double kTolerance = 1e-3;
// Under a sanitizer: the least, the usual and the largest layouts of each model in place of all.
const bool kSubset = qEnvironmentVariableIsSet("HEADROOM_SANITIZER_SUBSET");
}  // namespace

class DecoderTest : public QObject {
  Q_OBJECT

  static void addModel(const char* name, const std::string& path, const std::string& expected) {
    const Result<ModelSource> model = openModel(path);
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const int heads = static_cast<int>(model->config.qHeads), layers = static_cast<int>(model->config.layerCount());
    for (int tp = 1; tp <= heads; ++tp)
      for (int pp = 1; pp <= layers; ++pp)
        if (!kSubset || ((tp <= 2 || tp == heads) && (pp == 1 || pp == layers)))
          QTest::addRow("%s TP%d PP%d", name, tp, pp) << path << expected << tp << pp;
  }

 private slots:
  void matchesTransformers_data() {
    QTest::addColumn<std::string>("path");
    QTest::addColumn<std::string>("expected");
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    if (kSubset) qInfo("HEADROOM_SANITIZER_SUBSET: TP 1, 2 and all heads, PP 1 and all layers only");
    for (const char* name : {"llama", "qwen2", "qwen3", "mistral"})
      addModel(name, kModels + name, kModels + name + "/expected.json");
    for (const char* type : {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"})
      addModel(type, kModels + "gguf/" + type + ".gguf", kModels + "gguf/" + type + ".expected.json");
  }

  void matchesTransformers() {
    QFETCH(std::string, path);
    QFETCH(std::string, expected);
    QFETCH(int, tp);
    QFETCH(int, pp);
    auto driver = StepDriver::make(path, tp, pp);
    QVERIFY2(driver.has_value(), driver ? "" : driver.error().message().c_str());
    StepDriver& d = **driver;
    d.start();
    QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
    const std::vector<ReferenceCase> cases = readReference(expected);
    QVERIFY(!cases.empty());
    // All prompts whole in one batch; in chunks that end inside blocks; one token at a time.
    for (int64_t chunk : {96, 5, 1}) {
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

  // A split file is the same model, by its first part, by another one or by its folder; a missing part is told before anything is
  // read.
  void readsSplitFiles_data() {
    QTest::addColumn<QString>("named");
    QTest::addColumn<bool>("tensorsFirst");
    QTest::newRow("first part") << "/tiny-00001-of-00003.gguf" << true;
    QTest::newRow("last part") << "/tiny-00003-of-00003.gguf" << true;
    QTest::newRow("folder") << "" << true;
    QTest::newRow("no tensors in the first part") << "" << false;
  }
  void readsSplitFiles() {
    QFETCH(QString, named);
    QFETCH(bool, tensorsFirst);
    QTemporaryDir folder;
    const std::filesystem::path path = folder.path().toStdString();
    GgufSplitter(kModels + "gguf/Q8_0.gguf").write(path, "tiny", 3, tensorsFirst);
    auto driver = StepDriver::make((folder.path() + named).toStdString(), 2, 2);
    QVERIFY2(driver.has_value(), driver ? "" : driver.error().message().c_str());
    StepDriver& d = **driver;
    QCOMPARE(d.model.weightFiles.size(), size_t{3});
    QCOMPARE(d.model.path.filename().string(), std::string("tiny-00001-of-00003.gguf"));
    QCOMPARE(d.model.config.name, std::string("tiny"));
    d.start();
    QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
    const std::vector<ReferenceCase> cases = readReference(kModels + "gguf/Q8_0.expected.json");
    for (const ReferenceCase& reference : cases) d.add(reference.prompt, static_cast<int64_t>(reference.greedy.size()));
    QVERIFY(d.generate(d.all(), static_cast<int64_t>(cases.front().greedy.size()), 96));
    for (size_t i = 0; i < cases.size(); ++i) QCOMPARE(compareWith(cases[i], d.sequences[i], kTolerance), std::string());

    std::filesystem::remove(path / "tiny-00002-of-00003.gguf");
    const Result<ModelSource> partial = openModel((folder.path() + named).toStdString());
    QVERIFY(!partial);
    QVERIFY2(partial.error().message().find("1 of 3 parts missing (tiny-00002-of-00003.gguf)") != std::string::npos,
             partial.error().message().c_str());
  }

  // What a cache of eight bits costs: the mean KL divergence from the float32 run, which matches Transformers, over all positions
  // of the reference texts. Whole numbers with a scale for each head keep more than either of the 8-bit floats.
  void eightBitCachesStayNear_data() {
    QTest::addColumn<std::string>("path");
    for (const char* name : {"llama", "qwen3", "mistral", "architectures/deepseek_v3", "architectures/gpt_oss"})
      QTest::newRow(name) << kModels + name;
  }
  void eightBitCachesStayNear() {
    QFETCH(std::string, path);
    const std::vector<ReferenceCase> cases = readReference(path + "/expected.json");
    const auto logprobsWith = [&](DType cache) {
      EngineLimits limits = smallLimits();
      limits.kvDType = cache;
      std::vector<std::vector<float>> rows;
      auto driver = StepDriver::make(path, 2, 2, limits);
      if (!driver) qFatal("%s", driver.error().message().c_str());
      StepDriver& d = **driver;
      d.start();
      if (!d.waitLoaded()) qFatal("not loaded");
      for (const ReferenceCase& reference : cases) {
        std::vector<int32_t> text = reference.prompt;
        text.insert(text.end(), reference.greedy.begin(), reference.greedy.end());
        d.add(text, 1);
      }
      if (!d.generate(d.all(), 1, 5)) qFatal("no answer");
      for (const DrivenSequence& sequence : d.sequences)
        rows.insert(rows.end(), sequence.logprobs.begin(), sequence.logprobs.end());
      return rows;
    };
    const auto exact = logprobsWith(DType::F32);
    const auto divergence = [&](DType cache) {
      const auto rows = logprobsWith(cache);
      double sum = 0;
      for (size_t row = 0; row < exact.size(); ++row)
        for (size_t token = 0; token < exact[row].size(); ++token)
          sum += std::exp(static_cast<double>(exact[row][token])) * (static_cast<double>(exact[row][token]) - rows[row][token]);
      return sum / static_cast<double>(exact.size());
    };
    const double whole = divergence(DType::I8), e4m3 = divergence(DType::F8E4M3), e5m2 = divergence(DType::F8E5M2);
    qInfo("mean KL divergence: int8 %.3g, fp8_e4m3 %.3g, fp8_e5m2 %.3g", whole, e4m3, e5m2);
    QVERIFY(whole > 0 && whole < e4m3 && e4m3 < e5m2);
    QVERIFY(whole < 0.4 * e4m3);
  }

  // The bits of a run do not depend on the run: reductions go in rank order.
  void repeatsBitForBit() {
    std::vector<std::vector<float>> first;
    for (int run = 0; run < 2; ++run) {
      auto driver = StepDriver::make(kModels + "llama", 5, 2);
      QVERIFY(driver.has_value());
      StepDriver& d = **driver;
      d.start();
      QVERIFY(d.waitLoaded());
      d.add({3, 1, 4, 15, 92, 65, 35}, 6);
      QVERIFY(d.generate({0}, 6, 96));
      if (run == 0)
        first = d.sequences[0].logprobs;
      else
        QVERIFY(d.sequences[0].logprobs == first);
    }
  }

  // Logits of a prompt longer than one chunk of rows come in several chunks, in order.
  void projectsLongPromptsInChunks() {
    EngineLimits limits = smallLimits();
    limits.maxNumSeqs = 1;  // 16 rows a chunk
    auto driver = StepDriver::make(kModels + "llama", 2, 1, limits);
    QVERIFY(driver.has_value());
    StepDriver& d = **driver;
    QCOMPARE(workspaceRows(d), int64_t{16});
    d.start();
    QVERIFY(d.waitLoaded());
    const ReferenceCase reference = readReference(kModels + "llama/expected.json").back();
    QCOMPARE(reference.prompt.size(), size_t{40});
    d.add(reference.prompt, 12);
    QVERIFY(d.generate({0}, 12, 96));
    QCOMPARE(compareWith(reference, d.sequences[0], kTolerance), std::string());
  }

 private:
  static int64_t workspaceRows(const StepDriver& d) {
    for (const WorkspaceBuffer& buffer : workspaceBuffers(d.model.config, d.layout.ranks[0], 2, 1, d.limits))
      if (buffer.name == "logits_rows") return buffer.bytes.count() / 4;
    return 0;
  }
};

QTEST_GUILESS_MAIN(DecoderTest)
#include "decoder_test.moc"
