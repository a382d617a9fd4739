// SPDX-License-Identifier: Apache-2.0
// What the memory plan promises is what the ranks allocate, to the byte: every rank of every layout, in all types of weights and
// cache.
#include "tests/engine/step_driver.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::test;

class PlannedIsAllocatedTest : public QObject {
  Q_OBJECT
 private slots:
  void toTheByte_data() {
    QTest::addColumn<std::string>("path");
    QTest::addColumn<DType>("computeDType");
    QTest::addColumn<DType>("kvDType");
    const std::string models = std::string(HEADROOM_TEST_DATA) + "/models/";
    for (const char* model : {"llama", "qwen2", "qwen3", "mistral", "gguf/Q4_1.gguf", "gguf/Q8_0.gguf", "gguf/F16.gguf"})
      for (auto [compute, kv] :
           {std::pair(DType::F32, DType::F32), std::pair(DType::BF16, DType::F16), std::pair(DType::BF16, DType::BF16),
            std::pair(DType::BF16, DType::F8E4M3), std::pair(DType::BF16, DType::I8)})
        QTest::addRow("%s as %s, cache %s", model, dtypeName(compute).data(), dtypeName(kv).data())
            << models + model << compute << kv;
  }

  void toTheByte() {
    QFETCH(std::string, path);
    QFETCH(DType, computeDType);
    QFETCH(DType, kvDType);
    EngineLimits limits = smallLimits();
    limits.computeDType = computeDType;
    limits.kvDType = kvDType;
    const Result<ModelSource> model = openModel(path);
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    for (int tp = 1; tp <= model->config.qHeads; ++tp) {
      for (int pp = 1; pp <= model->config.layerCount(); ++pp) {
        auto driver = StepDriver::make(path, tp, pp, limits);
        QVERIFY2(driver.has_value(), driver ? "" : driver.error().message().c_str());
        StepDriver& d = **driver;
        d.start();
        QVERIFY2(d.waitLoaded(), d.failure ? d.failure->message().c_str() : "not loaded in time");
        QVERIFY(d.memory.kvBlocks > 0);
        for (const RankState& state : d.group().rankStates()) {
          const std::string where = fmt::format("TP{} PP{} rank {}", tp, pp, state.rank);
          const RankMemory& planned = d.memory.ranks[state.rank];
          auto same = [&](const char* what, std::optional<int64_t> allocated, Bytes expected) {
            QVERIFY2(
                allocated == expected.count(),
                fmt::format("{}: {} bytes of {}, planned {}", where, allocated.value_or(-1), what, expected.count()).c_str());
          };
          same("weights", state.allocated.weights, planned.weights);
          same("KV cache", state.allocated.kvCache, planned.kvCache);
          same("activations", state.allocated.activations, planned.activations);
          // Nothing is allocated on the device beside them.
          same("device memory", state.deviceUsedBytes, planned.weights + planned.kvCache + planned.activations);
          QVERIFY(planned.weights > Bytes(0) && planned.kvCache > Bytes(0) && planned.activations > Bytes(0));
        }
      }
    }
  }
};

QTEST_GUILESS_MAIN(PlannedIsAllocatedTest)
#include "planned_is_allocated_test.moc"
