// SPDX-License-Identifier: Apache-2.0
// Property of every layout: the ranks of a stage hold each element of its tensors once, replicated ones hold all, and only KV
// heads that two ranks read are held twice. So the bytes add up to the checkpoint plus the copies that are named here.
#include "core/layout/parallel_layout.h"
#include "core/memory/memory_plan.h"
#include "core/memory/weight_table.h"
#include "tests/core/sample_model.h"

#include <QtTest>
#include <random>

using namespace headroom;
using namespace headroom::test;

namespace {

bool holdsKv(const TensorEntry& tensor) {
  for (const SplitSegment& segment : tensor.segments) {
    if (segment.unit == SplitUnit::KvHeads) return true;
  }
  return false;
}

// How often each index of the split dimension is held by the ranks of one stage.
std::vector<int> holders(const TensorEntry& tensor, const ModelConfig& config, const ParallelLayout& layout, int stage) {
  std::vector<int> count(tensor.shape[tensor.splitDim], 0);
  for (int tpRank = 0; tpRank < layout.tp; ++tpRank) {
    const auto slice = sliceOf(tensor, config, layout.at(0, stage, tpRank), layout.tp);
    if (!slice) continue;
    if (slice->dim < 0) {
      for (int& c : count) ++c;
      continue;
    }
    int64_t last = -1;
    for (Range range : slice->ranges) {
      if (range.begin <= last || range.empty()) return {};
      last = range.end;
      for (int64_t i = range.begin; i < range.end; ++i) ++count[i];
    }
  }
  return count;
}

void checkPartition(const ModelSource& model, const ParallelLayout& layout) {
  for (const TensorEntry& tensor : model.inventory.tensors) {
    for (int stage = 0; stage < layout.pp; ++stage) {
      const RankSlice& first = layout.at(0, stage, 0);
      bool expected = tensor.layer >= 0 ? first.layers.contains(tensor.layer) : false;
      if (tensor.role == TensorRole::TokenEmbedding)
        expected = stage == 0 || (stage == layout.pp - 1 && model.config.tieWordEmbeddings);
      if (tensor.role == TensorRole::FinalNorm || tensor.role == TensorRole::LmHead) expected = stage == layout.pp - 1;
      const bool onceOnly = tensor.role == TensorRole::OBias || tensor.role == TensorRole::DownBias;
      if (!expected || tensor.splitDim < 0) {
        for (int tpRank = 0; tpRank < layout.tp; ++tpRank) {
          const bool held = sliceOf(tensor, model.config, layout.at(0, stage, tpRank), layout.tp).has_value();
          QCOMPARE(held, expected && (!onceOnly || tpRank == 0));
        }
        continue;
      }
      const std::vector<int> count = holders(tensor, model.config, layout, stage);
      QCOMPARE(count.size(), size_t(tensor.shape[tensor.splitDim]));
      for (size_t i = 0; i < count.size(); ++i) {
        if (holdsKv(tensor))
          QVERIFY2(count[i] >= 1, tensor.name.c_str());
        else
          QVERIFY2(count[i] == 1, tensor.name.c_str());
      }
    }
  }
}

}  // namespace

class TensorSliceTest : public QObject {
  Q_OBJECT
 private slots:
  void slicesPartitionRandomModels() {
    std::mt19937 random(20240607);
    auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
    int layouts = 0, uneven = 0;
    for (int trial = 0; trial < 300; ++trial) {
      ModelShape shape;
      shape.layers = pick(1, 7);
      shape.kvHeads = pick(1, 8);
      shape.qHeads = shape.kvHeads * pick(1, 5);
      shape.headDim = 8 * pick(1, 8);
      shape.hidden = 64 * pick(1, 4);
      shape.intermediate = pick(20, 700);
      shape.vocab = pick(50, 500);
      shape.tied = pick(0, 1);
      shape.fused = pick(0, 1);
      shape.biases = pick(0, 1);
      if (pick(0, 3) == 0) {
        shape.experts = pick(1, 4);
        shape.expertWidth = pick(20, 300);
        shape.sharedWidth = pick(0, 1) * pick(20, 300);
      }
      if (pick(0, 3) == 0) {
        shape.matrixType = DType::Q8_0;
        shape.hidden = 64 * pick(1, 4);
        shape.headDim = 32;
        shape.intermediate = 32 * pick(4, 30);
        if (shape.experts > 0) shape.expertWidth = 32 * pick(2, 10);
        if (shape.sharedWidth > 0) shape.sharedWidth = 32 * pick(2, 10);
      }
      const ModelSource model = makeModel(shape);
      const int tp = static_cast<int>(pick(1, shape.qHeads)), pp = static_cast<int>(pick(1, shape.layers));
      const auto layout = makeHeadroomLayout(model, tp, pp, 1);
      QVERIFY2(layout.has_value(), layout ? "" : layout.error().message().c_str());
      QVERIFY(checkLayout(*layout, model).has_value());
      checkPartition(model, *layout);
      if (QTest::currentTestFailed()) {
        qWarning("trial %d: q %d kv %d hd %d I %d tp %d pp %d", trial, int(shape.qHeads), int(shape.kvHeads), int(shape.headDim),
                 int(shape.intermediate), tp, pp);
        return;
      }
      const WeightTable table(model, [](const TensorEntry& tensor) { return loadedBytes(tensor, DType::BF16).count(); });
      // Bytes: every rank's sum of slices is what the plan says, and nothing cuts a quantization block.
      for (const RankSlice& rank : layout->ranks) {
        Bytes sum;
        for (const TensorEntry& tensor : model.inventory.tensors) {
          const auto slice = sliceOf(tensor, model.config, rank, tp);
          if (!slice) continue;
          const int64_t block = dtypeInfo(tensor.dtype).blockElements;
          int64_t elements = tensor.elements();
          if (slice->dim >= 0) {
            int64_t held = 0;
            for (Range range : slice->ranges) {
              held += range.size();
              if (slice->dim == 1) QVERIFY(range.begin % block == 0 && range.end % block == 0);
            }
            elements = elements / tensor.shape[slice->dim] * held;
          }
          sum += storageBytes(loadedDType(tensor, DType::BF16), elements);
        }
        QCOMPARE(weightBytes(model, rank, tp, DType::BF16).count(), sum.count());
        QCOMPARE(table.stageBytes(table.sharesOf(model.config, rank, tp), rank.layers, rank.embeds, rank.projects).count(), sum.count());
      }
      ++layouts;
      uneven += !layout->even;
    }
    QVERIFY(uneven > layouts / 4);  // the table must not be all even by accident
  }

  void unevenLayoutAddsUpToTheCheckpointPlusNamedCopies() {
    // TP 6 of Qwen2.5-72B: norms and router-like vectors on each rank, everything else once.
    ModelShape shape = qwen72Shape();
    shape.layers = 4;
    const ModelSource model = makeModel(shape);
    const auto layout = makeHeadroomLayout(model, 6, 1, 1);
    int64_t elements = 0, copies = 0;
    for (const TensorEntry& tensor : model.inventory.tensors) {
      const bool vector = tensor.shape.size() == 1;
      elements += tensor.elements() * (vector ? 4 : 2);
      if (vector && tensor.splitDim < 0 && tensor.role != TensorRole::OBias && tensor.role != TensorRole::DownBias)
        copies += 5 * tensor.elements() * 4;
    }
    int64_t held = 0;
    for (const RankSlice& rank : layout->ranks) held += weightBytes(model, rank, 6, DType::BF16).count();
    QCOMPARE(held, elements + copies);
  }

  void tiedHeadCountsOnceOnOneStage() {
    const ModelSource model = makeModel(smolShape());
    // SmolLM2-135M: 134,515,008 parameters; norms (61 of 576) are held in F32.
    const auto alone = makeHeadroomLayout(model, 1, 1, 1);
    QCOMPARE(weightBytes(model, alone->ranks[0], 1, DType::BF16).count(), 134515008 * 2 + 61 * 576 * 2);
    const auto two = makeHeadroomLayout(model, 1, 2, 1);
    int64_t held = 0;
    for (const RankSlice& rank : two->ranks) held += weightBytes(model, rank, 1, DType::BF16).count();
    QCOMPARE(held, 134515008 * 2 + 61 * 576 * 2 + 49152 * 576 * 2);
  }
};

QTEST_GUILESS_MAIN(TensorSliceTest)
#include "tensor_slice_test.moc"
