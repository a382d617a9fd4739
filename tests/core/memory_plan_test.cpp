// SPDX-License-Identifier: Apache-2.0
// Bytes of Headroom's ranks: types as loaded, cache blocks, and a budget that is filled and never exceeded.
#include "core/memory/cuda_memory.h"
#include "core/memory/memory_plan.h"
#include "tests/core/sample_model.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::test;

namespace {
EngineLimits limitsOf(int64_t length) {
  EngineLimits limits;
  limits.computeDType = DType::BF16;
  limits.kvDType = DType::BF16;
  limits.maxModelLen = length;
  limits.maxNumSeqs = 16;
  limits.maxNumBatchedTokens = 512;
  return limits;
}
}  // namespace

class MemoryPlanTest : public QObject {
  Q_OBJECT
 private slots:
  void typesAsLoaded() {
    TensorEntry tensor;
    tensor.shape = {8, 64};
    tensor.dtype = DType::BF16;
    QCOMPARE(loadedDType(tensor, DType::F32), DType::F32);
    QCOMPARE(loadedDType(tensor, DType::BF16), DType::BF16);
    tensor.dtype = DType::F32;
    QCOMPARE(loadedDType(tensor, DType::F16), DType::F16);
    tensor.dtype = DType::Q4_1;
    QCOMPARE(loadedDType(tensor, DType::F32), DType::Q4_1);
    tensor.shape = {64};
    tensor.dtype = DType::BF16;
    QCOMPARE(loadedDType(tensor, DType::BF16), DType::F32);  // vectors
  }

  // Published bytes of K and V a token (16-bit): 320 KiB for Qwen2.5-72B, 22.5 KiB for SmolLM2-135M.
  void cacheBytesAToken() {
    for (const auto& [shape, perToken] : {std::pair{qwen72Shape(), int64_t(327680)}, std::pair{smolShape(), int64_t(23040)}}) {
      const ModelSource model = makeModel(shape);
      const auto layout = makeHeadroomLayout(model, 1, 1, 1);
      QCOMPARE(kvBytesPerBlock(model.config, layout->ranks[0], limitsOf(128)).count(), perToken * 16);
    }
  }

  void cacheIsDividedByKvHeadsAndLayers() {
    const ModelSource model = makeModel(qwen72Shape());
    const auto layout = makeHeadroomLayout(model, 6, 2, 1);
    int64_t sum = 0;
    for (const RankSlice& rank : layout->ranks) sum += kvBytesPerBlock(model.config, rank, limitsOf(128)).count();
    QCOMPARE(sum, 327680 * 16);  // whole groups: nothing twice
  }

  // CUDA devices take a buffer to work in and a runtime beside; with all of a device's memory as budget the ranks stay within it.
  void cudaDevicesTakeMore() {
    const ModelSource model = makeModel(smolShape());
    const auto layout = makeHeadroomLayout(model, 2, 1, 1);
    const RankSlice& rank = layout->ranks[0];
    EngineLimits host = limitsOf(2048), cuda = host;
    cuda.cuda = true;
    QCOMPARE(cudaRuntime(model.config, rank, 2, host).total(), Bytes());
    const std::vector<WorkspaceBuffer> buffers = workspaceBuffers(model.config, rank, 2, 1, cuda);
    QCOMPARE(buffers.size(), workspaceBuffers(model.config, rank, 2, 1, host).size() + 1);
    QCOMPARE(buffers.back().name, std::string("scratch"));
    QCOMPARE(activationBytes(model.config, rank, 2, 1, cuda),
             activationBytes(model.config, rank, 2, 1, host) + buffers.back().bytes);
    // At least cuBLASLt's workspace for 512 x 1536 products; and the same whatever the length.
    QVERIFY(buffers.back().bytes >= cudaProductWorkspace(512 * 1536));
    cuda.maxModelLen = 8192;
    QCOMPARE(workspaceBuffers(model.config, rank, 2, 1, cuda).back().bytes, buffers.back().bytes);
    // Layers add up.
    const auto runtimeOf = [&](Range layers) {
      RankSlice part = rank;
      part.layers = layers;
      return cudaRuntime(model.config, part, 2, cuda).total();
    };
    QCOMPARE(runtimeOf({0, 30}) - runtimeOf({0, 0}), (runtimeOf({3, 4}) - runtimeOf({0, 0})) * 30);
    const auto plan = planEngineMemory(model, *layout, hostMachine({2, 2_GiB}), cuda, 1.0);
    QVERIFY(plan.has_value());
    for (const RankMemory& memory : plan->ranks) QVERIFY(memory.runtime > Bytes() && memory.total() <= 2_GiB);
  }

  void budgetIsFilledToTheLastBlock() {
    const ModelSource model = makeModel(smolShape());
    for (const auto& [tp, pp] : {std::pair{1, 1}, std::pair{3, 2}, std::pair{5, 1}, std::pair{1, 6}}) {
      const auto layout = makeHeadroomLayout(model, tp, pp, 1);
      const Machine machine = hostMachine({6, 1_GiB});
      const auto plan = planEngineMemory(model, *layout, machine, limitsOf(2048), 0.9);
      QVERIFY2(plan.has_value(), plan ? "" : plan.error().message().c_str());
      const int64_t budget = static_cast<int64_t>(static_cast<double>((1_GiB).count()) * 0.9);
      int64_t least = budget;
      for (size_t i = 0; i < plan->ranks.size(); ++i) {
        const RankMemory& rank = plan->ranks[i];
        QVERIFY(rank.total().count() <= budget);
        const Bytes block = kvBytesPerBlock(model.config, layout->ranks[i], limitsOf(2048));
        QCOMPARE(rank.kvCache, block * plan->kvBlocks);
        least = std::min(least, (budget - rank.total().count()) / block.count());
      }
      QCOMPARE(least, 0);  // the tightest rank could not take one more
    }
  }

  void ranksOnOneGpuShareItsBudget() {
    const ModelSource model = makeModel(smolShape());
    const auto layout = makeHeadroomLayout(model, 2, 1, 1, {0, 0});
    const auto plan = planEngineMemory(model, *layout, hostMachine({1, 2_GiB}), limitsOf(2048), 0.9);
    QVERIFY(plan.has_value());
    QVERIFY((plan->ranks[0].total() + plan->ranks[1].total()).count() <=
            static_cast<int64_t>(static_cast<double>((2_GiB).count()) * 0.9));
  }

  void tooSmallNamesRankAndArithmetic() {
    const ModelSource model = makeModel(smolShape());
    const auto layout = makeHeadroomLayout(model, 1, 2, 1);
    const auto plan = planEngineMemory(model, *layout, hostMachine({2, 64_MiB}), limitsOf(2048), 0.9);
    QVERIFY(!plan);
    const std::string message = plan.error().message();
    QVERIFY2(message.find("rank 0") != std::string::npos && message.find("weights") != std::string::npos &&
                 message.find("2048") != std::string::npos,
             message.c_str());
    QVERIFY(!planEngineMemory(model, *layout, hostMachine({1, 64_GiB}), limitsOf(2048), 0.9));  // rank 1 has no GPU
  }
};

QTEST_GUILESS_MAIN(MemoryPlanTest)
#include "memory_plan_test.moc"
