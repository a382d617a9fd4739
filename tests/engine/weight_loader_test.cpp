// SPDX-License-Identifier: Apache-2.0
// Slices of a checkpoint: the ranks' pieces are the whole matrix, values are those of the file, and bad files give an error that
// names them.
#include "engine/weights/weight_loader.h"
#include "engine/device/cpu/cpu_backend.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cstring>
#include <filesystem>
#include <fstream>

using namespace headroom;
using namespace headroom::engine;

namespace {

const std::string kModels = std::string(HEADROOM_TEST_DATA) + "/models/";

std::unique_ptr<Backend> makeBackend(Bytes budget = 0_B) {
  CpuBackendOptions options;
  options.exact = true;
  options.budget = budget;
  return makeCpuBackend(options);
}

ModelSource opened(const std::string& path) {
  Result<ModelSource> model = openModel(path);
  if (!model) qFatal("%s", model.error().message().c_str());
  return std::move(*model);
}

ParallelLayout layoutOf(const ModelSource& model, int tp, int pp = 1) {
  Result<ParallelLayout> layout = makeHeadroomLayout(model, tp, pp, 1);
  if (!layout) qFatal("%s", layout.error().message().c_str());
  return std::move(*layout);
}

Result<RankWeights> load(const ModelSource& model, const RankSlice& rank, int tp, Backend& backend,
                         const LoadProgress& progress = {}) {
  return loadRankWeights(model, rank, tp, DType::F32, backend, progress);
}

// The matrix as numbers, row by row: looking its rows up as an embedding table.
std::vector<std::vector<float>> rowsOf(Backend& backend, const WeightMatrix& matrix) {
  std::vector<int32_t> ids(static_cast<size_t>(matrix.out));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::vector<float> values(static_cast<size_t>(matrix.out * matrix.in));
  backend.embed(TensorView::of(values.data(), DType::F32, matrix.out, matrix.in), matrix,
                TensorView::of(ids.data(), DType::I32, 1, matrix.out), 0);
  if (!backend.sync()) qFatal("a lookup failed");
  std::vector<std::vector<float>> rows;
  for (int64_t row = 0; row < matrix.out; ++row)
    rows.emplace_back(values.begin() + row * matrix.in, values.begin() + (row + 1) * matrix.in);
  return rows;
}

std::vector<std::vector<float>> part(const std::vector<std::vector<float>>& whole, Range rows, Range columns) {
  std::vector<std::vector<float>> piece;
  if (columns.empty()) return piece;  // fewer blocks than ranks: this one holds none
  for (int64_t row = rows.begin; row < rows.end; ++row)
    piece.emplace_back(whole[row].begin() + columns.begin, whole[row].begin() + columns.end);
  return piece;
}

// A copy of a model that a test may spoil.
std::filesystem::path copyOf(const QTemporaryDir& folder, const char* model) {
  const std::filesystem::path to = std::filesystem::path(folder.path().toStdString()) / model;
  std::filesystem::copy(kModels + model, to, std::filesystem::copy_options::recursive);
  return to;
}

}  // namespace

class WeightLoaderTest : public QObject {
  Q_OBJECT
 private slots:
  void readsTheFilesOwnValues() {
    const ModelSource model = opened(kModels + "mistral");  // F32: bytes as they are
    auto backend = makeBackend();
    const ParallelLayout layout = layoutOf(model, 1);
    const Result<RankWeights> weights = load(model, layout.ranks[0], 1, *backend);
    QVERIFY2(weights.has_value(), weights ? "" : weights.error().message().c_str());
    auto inFile = [&](TensorRole role, int layer) {
      const TensorEntry* tensor = model.inventory.find(role, layer);
      std::ifstream file(model.weightFiles[tensor->location->file], std::ios::binary);
      file.seekg(tensor->location->offset);
      std::vector<float> values(static_cast<size_t>(tensor->elements()));
      file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
      return values;
    };
    auto flat = [&](const WeightMatrix& matrix) {
      std::vector<float> values;
      for (const auto& row : rowsOf(*backend, matrix)) values.insert(values.end(), row.begin(), row.end());
      return values;
    };
    QCOMPARE(flat(weights->embedding), inFile(TensorRole::TokenEmbedding, -1));
    QCOMPARE(flat(weights->head), inFile(TensorRole::LmHead, -1));
    QCOMPARE(flat(weights->layers[1].k), inFile(TensorRole::K, 1));
    QCOMPARE(flat(weights->layers[1].down), inFile(TensorRole::Down, 1));
    const std::vector<float> norm = inFile(TensorRole::FfnNorm, 0);
    QVERIFY(std::memcmp(weights->layers[0].ffnNorm.data(), norm.data(), norm.size() * sizeof(float)) == 0);
  }

  void piecesAreTheWholeMatrix_data() {
    QTest::addColumn<std::string>("path");
    for (const char* model : {"llama", "qwen2", "qwen3", "gguf/F16.gguf", "gguf/Q8_0.gguf", "gguf/Q4_0.gguf", "gguf/Q4_1.gguf"})
      QTest::newRow(model) << kModels + model;
  }

  void piecesAreTheWholeMatrix() {
    QFETCH(std::string, path);
    const ModelSource model = opened(path);
    const ModelConfig& config = model.config;
    auto backend = makeBackend();
    const RankWeights whole = *load(model, layoutOf(model, 1).ranks[0], 1, *backend);
    for (int tp = 2; tp <= config.qHeads; ++tp) {
      const ParallelLayout layout = layoutOf(model, tp, 2);
      for (const RankSlice& rank : layout.ranks) {
        const Result<RankWeights> weights = load(model, rank, tp, *backend);
        QVERIFY2(weights.has_value(), weights ? "" : weights.error().message().c_str());
        QCOMPARE(weights->allocated, weightBytes(model, rank, tp, DType::F32));
        QCOMPARE(static_cast<int64_t>(weights->layers.size()), rank.layers.size());
        auto same = [&](const WeightMatrix& piece, const WeightMatrix& of, Range rows, Range columns) {
          QVERIFY(rowsOf(*backend, piece) == part(rowsOf(*backend, of), rows, columns));
        };
        const int64_t dim = config.headDim;
        const Range q{rank.qHeads.begin * dim, rank.qHeads.end * dim}, kv{rank.kvHeads.begin * dim, rank.kvHeads.end * dim};
        const Range hidden{0, config.hiddenSize};
        for (int64_t layer = rank.layers.begin; layer < rank.layers.end; ++layer) {
          const LayerWeights& piece = weights->layers[layer - rank.layers.begin];
          const LayerWeights& of = whole.layers[layer];
          same(piece.q, of.q, q, hidden);
          same(piece.k, of.k, kv, hidden);
          same(piece.v, of.v, kv, hidden);
          same(piece.o, of.o, hidden, q);
          same(piece.gate, of.gate, rank.mlpColumns, hidden);
          same(piece.up, of.up, rank.mlpColumns, hidden);
          same(piece.down, of.down, hidden, rank.mlpColumns);
          if (of.qBias)
            QVERIFY(std::memcmp(piece.qBias.data(), static_cast<const float*>(of.qBias.data()) + q.begin,
                                q.size() * sizeof(float)) == 0);
        }
        if (rank.embeds) same(weights->embedding, whole.embedding, rank.vocabulary, hidden);
        if (rank.projects) same(weights->projection(), whole.projection(), rank.vocabulary, hidden);
      }
    }
  }

  void reportsProgressInBytes() {
    const ModelSource model = opened(kModels + "llama");
    auto backend = makeBackend();
    Bytes last, total;
    const Result<RankWeights> weights = load(model, layoutOf(model, 1).ranks[0], 1, *backend, [&](Bytes done, Bytes all) {
      if (done < last) qFatal("progress went back");
      last = done;
      total = all;
      return true;
    });
    QVERIFY(weights.has_value());
    QCOMPARE(last, total);
    QCOMPARE(total, model.inventory.checkpointBytes());
  }

  void canBeCancelled() {
    const ModelSource model = opened(kModels + "llama");
    auto backend = makeBackend();
    int calls = 0;
    {
      const Result<RankWeights> weights =
          load(model, layoutOf(model, 1).ranks[0], 1, *backend, [&](Bytes, Bytes) { return ++calls < 5; });
      QVERIFY(!weights.has_value());
    }
    QCOMPARE(calls, 5);
    QCOMPARE(backend->allocatedBytes(), Bytes(0));
  }

  void namesATensorOfAnotherShape() {
    ModelSource model = opened(kModels + "llama");
    for (LayerSpec& layer : model.config.layers) layer.kvHeads = 6;
    model.config.kvHeads = 6;
    auto backend = makeBackend();
    RankSlice rank = layoutOf(opened(kModels + "llama"), 1).ranks[0];
    rank.kvHeads = {0, 6};
    const Result<RankWeights> weights = load(model, rank, 1, *backend);
    QVERIFY(!weights.has_value());
    const std::string message = weights.error().message();
    QVERIFY2(message.find("k_proj.weight: found shape [48, 48], expected [96, 48] (6 KV heads x 16)") != std::string::npos,
             message.c_str());
  }

  void namesAFileThatEndsEarly() {
    QTemporaryDir folder;
    const std::filesystem::path copy = copyOf(folder, "qwen3");
    const ModelSource model = opened(copy.string());
    const std::filesystem::path file = copy / "model.safetensors";
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 100);
    auto backend = makeBackend();
    const Result<RankWeights> weights = load(model, layoutOf(model, 1).ranks[0], 1, *backend);
    QVERIFY(!weights.has_value());
    const std::string message = weights.error().message();
    QVERIFY2(message.starts_with(file.string() + ": found the end of the file at byte "), message.c_str());
    QVERIFY2(message.find("download it again") != std::string::npos, message.c_str());
  }

  void namesAFileThatIsGone() {
    QTemporaryDir folder;
    const std::filesystem::path copy = copyOf(folder, "qwen3");
    const ModelSource model = opened(copy.string());
    std::filesystem::remove(copy / "model.safetensors");
    auto backend = makeBackend();
    const Result<RankWeights> weights = load(model, layoutOf(model, 1).ranks[0], 1, *backend);
    QVERIFY(!weights.has_value());
    QVERIFY2(weights.error().message().find("No such file") != std::string::npos, weights.error().message().c_str());
  }

  void refusesAnIncompleteCheckpoint() {
    ModelSource model = opened(kModels + "llama");
    std::erase_if(model.inventory.tensors,
                  [](const TensorEntry& tensor) { return tensor.role == TensorRole::V && tensor.layer == 2; });
    auto backend = makeBackend();
    const Result<RankWeights> weights = load(model, layoutOf(model, 1).ranks[0], 1, *backend);
    QVERIFY(!weights.has_value());
    QVERIFY2(weights.error().message().find("no query, key or value projection in layer 2") != std::string::npos,
             weights.error().message().c_str());
  }

  void passesOnThatMemoryIsShort() {
    const ModelSource model = opened(kModels + "llama");
    auto backend = makeBackend(64_KiB);
    {
      const Result<RankWeights> weights = load(model, layoutOf(model, 1).ranks[0], 1, *backend);
      QVERIFY(!weights.has_value());
    }
    QCOMPARE(backend->allocatedBytes(), Bytes(0));
  }
};

QTEST_GUILESS_MAIN(WeightLoaderTest)
#include "weight_loader_test.moc"
