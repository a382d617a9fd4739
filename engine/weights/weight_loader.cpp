// SPDX-License-Identifier: Apache-2.0
// One pass over the inventory: check the shape, slice, read, hand over.
#include "engine/weights/weight_loader.h"

#include "core/memory/workspace.h"
#include "engine/weights/tensor_reader.h"

#include <algorithm>
#include <array>

namespace headroom::engine {
namespace {

std::string shapeText(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// What the configuration says a tensor's shape is, with the arithmetic in words.
struct ExpectedShape {
  std::vector<int64_t> shape;
  std::string why;
};

std::optional<ExpectedShape> expectedShape(const TensorEntry& tensor, const ModelConfig& config) {
  const int64_t hidden = config.hiddenSize;
  switch (tensor.role) {
    case TensorRole::TokenEmbedding:
    case TensorRole::LmHead:
      return ExpectedShape{{config.vocabSize, hidden}, "vocabulary x hidden size"};
    case TensorRole::LmHeadBias:
      return ExpectedShape{{config.vocabSize}, "vocabulary"};
    case TensorRole::FinalNorm:
      return ExpectedShape{{hidden}, "hidden size"};
    default:
      break;
  }
  if (tensor.layer < 0 || tensor.layer >= config.layerCount()) return {};
  const LayerSpec& layer = config.layers[tensor.layer];
  const int64_t q = layer.qHeads * layer.headDim, k = layer.kvHeads * layer.headDim, v = layer.kvHeads * layer.vHeadDim;
  const int64_t mlp = layer.intermediateSize;
  const std::string qWhy = fmt::format("{} query heads x {}", layer.qHeads, layer.headDim);
  const std::string kWhy = fmt::format("{} KV heads x {}", layer.kvHeads, layer.headDim);
  const std::string vWhy = fmt::format("{} KV heads x {}", layer.kvHeads, layer.vHeadDim);
  switch (tensor.role) {
    case TensorRole::Q:
      return ExpectedShape{{q, hidden}, qWhy};
    case TensorRole::K:
      return ExpectedShape{{k, hidden}, kWhy};
    case TensorRole::V:
      return ExpectedShape{{v, hidden}, vWhy};
    case TensorRole::Qkv:
      return ExpectedShape{{q + k + v, hidden}, qWhy + " + " + kWhy + " + " + vWhy};
    case TensorRole::O:
      return ExpectedShape{{hidden, layer.qHeads * layer.vHeadDim}, qWhy};
    case TensorRole::QBias:
      return ExpectedShape{{q}, qWhy};
    case TensorRole::KBias:
      return ExpectedShape{{k}, kWhy};
    case TensorRole::VBias:
      return ExpectedShape{{v}, vWhy};
    case TensorRole::QkvBias:
      return ExpectedShape{{q + k + v}, qWhy + " + " + kWhy + " + " + vWhy};
    case TensorRole::Gate:
    case TensorRole::Up:
      return ExpectedShape{{mlp, hidden}, "intermediate size x hidden size"};
    case TensorRole::GateUp:
      return ExpectedShape{{2 * mlp, hidden}, "2 x intermediate size x hidden size"};
    case TensorRole::Down:
      return ExpectedShape{{hidden, mlp}, "hidden size x intermediate size"};
    case TensorRole::AttentionNorm:
    case TensorRole::PostAttentionNorm:
    case TensorRole::FfnNorm:
    case TensorRole::PostFfnNorm:
      return ExpectedShape{{hidden}, "hidden size"};
    case TensorRole::QNorm:
      return config.decoder.qkNormFullWidth ? ExpectedShape{{q}, qWhy} : ExpectedShape{{layer.headDim}, "head size"};
    case TensorRole::KNorm:
      return config.decoder.qkNormFullWidth ? ExpectedShape{{k}, kWhy} : ExpectedShape{{layer.headDim}, "head size"};
    default:
      return {};
  }
}

Status checkShape(const TensorEntry& tensor, const ModelConfig& config) {
  const std::optional<ExpectedShape> expected = expectedShape(tensor, config);
  if (!expected || expected->shape == tensor.shape) return {};
  return failure(tensor.name, "shape " + shapeText(tensor.shape),
                 fmt::format("{} ({})", shapeText(expected->shape), expected->why),
                 "the weights do not belong to this configuration, or are one shard of a split checkpoint");
}

// Fills RankWeights. One use, one thread.
class Loader {
 public:
  Loader(const ModelSource& model, const RankSlice& rank, int tp, DType computeDType, Backend& backend,
         const LoadProgress& progress)
      : m_model(model),
        m_rank(rank),
        m_tp(tp),
        m_computeDType(computeDType),
        m_backend(backend),
        m_progress(progress),
        m_reader(model.weightFiles) {}

  Result<RankWeights> load() {
    m_weights.layers.resize(static_cast<size_t>(m_rank.layers.size()));
    for (const TensorEntry& tensor : m_model.inventory.tensors) {
      const std::optional<TensorSlice> slice = heldSlice(tensor);
      if (slice) m_total += fileBytes(tensor, *slice);
    }
    if (Status status = report(Bytes(0)); !status) return tl::unexpected(status.error());
    for (const TensorEntry& tensor : m_model.inventory.tensors) {
      const std::optional<TensorSlice> slice = heldSlice(tensor);
      if (!slice) continue;
      if (Status status = loadTensor(tensor, *slice); !status) return tl::unexpected(status.error());
    }
    if (Status status = checkComplete(); !status) return tl::unexpected(status.error());
    if (Status status = m_backend.sync(); !status) return tl::unexpected(status.error());
    return std::move(m_weights);
  }

 private:
  std::optional<TensorSlice> heldSlice(const TensorEntry& tensor) const {
    return tensor.loaded ? sliceOf(tensor, m_model.config, m_rank, m_tp) : std::nullopt;
  }

  static std::vector<Range> rangesOf(const TensorEntry& tensor, const TensorSlice& slice, size_t dim) {
    if (slice.dim == static_cast<int>(dim)) return slice.ranges;
    return {Range{0, tensor.shape[dim]}};
  }

  static Bytes fileBytes(const TensorEntry& tensor, const TensorSlice& slice) {
    int64_t rows = 0, rowBytes = 0;
    const size_t last = tensor.shape.size() - 1;
    for (Range range : rangesOf(tensor, slice, last)) rowBytes += storageBytes(tensor.dtype, range.size()).count();
    if (last == 0) return Bytes(rowBytes);
    for (Range range : rangesOf(tensor, slice, 0)) rows += range.size();
    return Bytes(rows * rowBytes);
  }

  Status report(Bytes more) {
    m_done += more;
    if (m_progress && !m_progress(m_done, m_total)) return failure("loading", "a request to stop");
    return {};
  }

  Status loadTensor(const TensorEntry& tensor, const TensorSlice& slice) {
    if (!tensor.location) return failure(tensor.name, "no place in a weight file", "a tensor that the checkpoint stores");
    if (Status status = checkShape(tensor, m_model.config); !status) return status;
    if (tensor.role == TensorRole::RopeFrequencies) return loadRopeDivisors(tensor);
    if (tensor.shape.size() == 1) return loadVector(tensor, slice);
    if (tensor.shape.size() == 2) return loadMatrix(tensor, slice);
    return unknown(tensor);
  }

  Status unknown(const TensorEntry& tensor) const {
    return failure(tensor.name, fmt::format("a tensor of shape {}", shapeText(tensor.shape)),
                   "a tensor that this engine's decoder knows");
  }

  LayerWeights* layerOf(const TensorEntry& tensor) {
    if (!m_rank.layers.contains(tensor.layer)) return nullptr;
    return &m_weights.layers[static_cast<size_t>(tensor.layer - m_rank.layers.begin)];
  }

  // Where the pieces of a vector go; a fused one has several.
  std::vector<DeviceBuffer*> vectorTargets(const TensorEntry& tensor) {
    switch (tensor.role) {
      case TensorRole::FinalNorm:
        return {&m_weights.finalNorm};
      case TensorRole::FinalNormBias:
        return {&m_weights.finalNormBias};
      case TensorRole::LmHeadBias:
        return {&m_weights.headBias};
      default:
        break;
    }
    LayerWeights* layer = layerOf(tensor);
    if (!layer) return {};
    switch (tensor.role) {
      case TensorRole::AttentionNorm:
        return {&layer->attentionNorm};
      case TensorRole::AttentionNormBias:
        return {&layer->attentionNormBias};
      case TensorRole::PostAttentionNorm:
        return {&layer->postAttentionNorm};
      case TensorRole::FfnNorm:
        return {&layer->ffnNorm};
      case TensorRole::FfnNormBias:
        return {&layer->ffnNormBias};
      case TensorRole::PostFfnNorm:
        return {&layer->postFfnNorm};
      case TensorRole::QBias:
        return {&layer->qBias};
      case TensorRole::KBias:
        return {&layer->kBias};
      case TensorRole::VBias:
        return {&layer->vBias};
      case TensorRole::QkvBias:
        return {&layer->qBias, &layer->kBias, &layer->vBias};
      case TensorRole::OBias:
        return {&layer->oBias};
      case TensorRole::QNorm:
        return {&layer->qNorm};
      case TensorRole::KNorm:
        return {&layer->kNorm};
      case TensorRole::Sinks:
        return {&layer->sinks};
      case TensorRole::GateBias:
        return {&layer->gateBias};
      case TensorRole::UpBias:
        return {&layer->upBias};
      case TensorRole::DownBias:
        return {&layer->downBias};
      default:
        return {};
    }
  }

  std::vector<WeightMatrix*> matrixTargets(const TensorEntry& tensor) {
    if (tensor.role == TensorRole::TokenEmbedding) return {&m_weights.embedding};
    if (tensor.role == TensorRole::LmHead) return {&m_weights.head};
    LayerWeights* layer = layerOf(tensor);
    if (!layer) return {};
    switch (tensor.role) {
      case TensorRole::Q:
        return {&layer->q};
      case TensorRole::K:
        return {&layer->k};
      case TensorRole::V:
        return {&layer->v};
      case TensorRole::Qkv:
        return {&layer->q, &layer->k, &layer->v};
      case TensorRole::O:
        return {&layer->o};
      case TensorRole::Gate:
        return {&layer->gate};
      case TensorRole::Up:
        return {&layer->up};
      case TensorRole::GateUp:
        return {&layer->gate, &layer->up};
      case TensorRole::Down:
        return {&layer->down};
      default:
        return {};
    }
  }

  // The ranges that belong to each of `count` targets: a fused tensor's segments in order, else all of them to the one.
  static std::vector<std::vector<Range>> rangesOfTargets(const TensorEntry& tensor, const std::vector<Range>& ranges,
                                                         size_t count) {
    if (count == 1) return {ranges};
    std::vector<std::vector<Range>> split(count);
    int64_t begin = 0;
    for (size_t segment = 0; segment < count && segment < tensor.segments.size(); ++segment) {
      const int64_t end = begin + tensor.segments[segment].elements;
      for (Range range : ranges) {
        const Range piece{std::max(range.begin, begin), std::min(range.end, end)};
        if (!piece.empty()) split[segment].push_back(piece);
      }
      begin = end;
    }
    return split;
  }

  Status loadVector(const TensorEntry& tensor, const TensorSlice& slice) {
    const std::vector<DeviceBuffer*> targets = vectorTargets(tensor);
    if (targets.empty()) return unknown(tensor);
    const auto ranges = rangesOfTargets(tensor, rangesOf(tensor, slice, 0), targets.size());
    for (size_t i = 0; i < targets.size(); ++i) {
      Result<std::vector<float>> values = readVector(tensor, ranges[i]);
      if (!values) return tl::unexpected(values.error());
      if (values->empty()) continue;
      const Bytes size(static_cast<int64_t>(values->size() * sizeof(float)));
      Result<DeviceBuffer> buffer = m_backend.allocate(size, tensor.name);
      if (!buffer) return tl::unexpected(buffer.error());
      m_backend.copyToDevice(buffer->data(), values->data(), size);
      if (Status status = m_backend.sync(); !status) return status;  // `values` is on this function's stack
      m_weights.allocated += size;
      *targets[i] = std::move(*buffer);
    }
    return {};
  }

  Result<std::vector<float>> readVector(const TensorEntry& tensor, const std::vector<Range>& ranges) {
    std::vector<float> values;
    const Range row{0, 1};
    Status status = m_reader.read(tensor, std::span(&row, 1), ranges, [&](const TensorReader::Chunk& chunk) -> Status {
      int64_t count = 0;
      for (Range range : ranges) count += range.size();
      values.resize(static_cast<size_t>(count));
      if (!convertToFloat(tensor.dtype, chunk.data, count, values.data()))
        return failure(tensor.name, fmt::format("type {}", dtypeName(tensor.dtype)), "float32, float16 or bfloat16");
      return report(chunk.bytesRead);
    });
    if (!status) return tl::unexpected(status.error());
    return values;
  }

  Status loadRopeDivisors(const TensorEntry& tensor) {
    Result<std::vector<float>> values = readVector(tensor, {Range{0, tensor.shape[0]}});
    if (!values) return tl::unexpected(values.error());
    m_weights.ropeDivisors.assign(values->begin(), values->end());
    const Bytes size(static_cast<int64_t>(values->size() * sizeof(float)));
    Result<DeviceBuffer> buffer = m_backend.allocate(size, tensor.name);
    if (!buffer) return tl::unexpected(buffer.error());
    m_backend.copyToDevice(buffer->data(), values->data(), size);
    if (Status status = m_backend.sync(); !status) return status;
    m_weights.allocated += size;
    m_weights.ropeFrequencies = std::move(*buffer);
    return {};
  }

  Status loadMatrix(const TensorEntry& tensor, const TensorSlice& slice) {
    const std::vector<WeightMatrix*> targets = matrixTargets(tensor);
    if (targets.empty()) return unknown(tensor);
    const std::vector<Range> columns = rangesOf(tensor, slice, 1);
    if (Status status = checkColumns(tensor, columns); !status) return status;
    const auto rows = rangesOfTargets(tensor, rangesOf(tensor, slice, 0), targets.size());
    for (size_t i = 0; i < targets.size(); ++i) {
      if (Status status = loadRows(tensor, rows[i], columns, *targets[i]); !status) return status;
    }
    return {};
  }

  static Status checkColumns(const TensorEntry& tensor, const std::vector<Range>& columns) {
    const int64_t block = dtypeInfo(tensor.dtype).blockElements;
    for (Range range : columns) {
      if (range.begin % block == 0 && range.end % block == 0) continue;
      return failure(tensor.name, fmt::format("a cut at columns {} to {}", range.begin, range.end),
                     fmt::format("multiples of {}, the block of {}", block, dtypeName(tensor.dtype)),
                     "choose another tensor-parallel size");
    }
    return {};
  }

  Status loadRows(const TensorEntry& tensor, const std::vector<Range>& rows, const std::vector<Range>& columns,
                  WeightMatrix& target) {
    int64_t out = 0, in = 0;
    for (Range range : rows) out += range.size();
    for (Range range : columns) in += range.size();
    if (out == 0 || in == 0) return {};
    Result<WeightMatrix> matrix = m_backend.makeMatrix(loadedDType(tensor, m_computeDType), out, in, tensor.name);
    if (!matrix) return tl::unexpected(matrix.error());
    Status status = m_reader.read(tensor, rows, columns, [&](const TensorReader::Chunk& chunk) -> Status {
      m_backend.writeRows(*matrix, chunk.firstRow, chunk.rows, tensor.dtype, chunk.data);
      if (Status synced = m_backend.sync(); !synced) return synced;  // the buffer is used again
      return report(chunk.bytesRead);
    });
    if (!status) return status;
    m_backend.finishMatrix(*matrix);
    m_weights.allocated += matrix->storage.size();
    target = std::move(*matrix);
    return {};
  }

  // A checkpoint that lacks a tensor is refused here, not by a crash in the first step.
  Status checkComplete() const {
    const ModelConfig& config = m_model.config;
    auto lacks = [&](const std::string& what) {
      return failure(m_model.path.string(), "no " + what, "a complete checkpoint", "download the missing files");
    };
    if (m_rank.embeds && m_weights.embedding.out == 0 && !m_rank.vocabulary.empty()) return lacks("token embedding");
    if (m_rank.projects && m_weights.projection().out == 0 && !m_rank.vocabulary.empty()) return lacks("LM head");
    if (m_rank.projects && !m_weights.finalNorm) return lacks("final norm");
    for (int64_t i = m_rank.layers.begin; i < m_rank.layers.end; ++i) {
      const LayerSpec& spec = config.layers[i];
      const LayerWeights& layer = m_weights.layers[static_cast<size_t>(i - m_rank.layers.begin)];
      const LayerShare share = layerShare(config, spec, m_rank, m_tp);
      auto inLayer = [&](const char* what) { return lacks(fmt::format("{} in layer {}", what, i)); };
      if (spec.attention != AttentionKind::None && !share.qHeads.empty()) {
        if (layer.q.out == 0 || layer.k.out == 0 || layer.v.out == 0) return inLayer("query, key or value projection");
        if (layer.o.out == 0) return inLayer("attention output projection");
        if ((config.decoder.qkNorm || config.decoder.qkNormFullWidth) && (!layer.qNorm || !layer.kNorm))
          return inLayer("query or key norm");
        if (config.decoder.attentionSinks && !layer.sinks) return inLayer("attention sinks");
      }
      if (config.decoder.preNorm && !layer.attentionNorm) return inLayer("attention norm");
      if (config.decoder.preNorm && !config.decoder.parallelBlock && !layer.ffnNorm) return inLayer("MLP norm");
      if (config.decoder.postNorm && (!layer.postAttentionNorm || !layer.postFfnNorm)) return inLayer("norm of a branch");
      if (spec.ffn == FfnKind::Dense && !share.mlpColumns.empty()) {
        if (layer.up.out == 0 || layer.down.out == 0) return inLayer("MLP projection");
        if (config.decoder.gatedMlp && layer.gate.out == 0) return inLayer("MLP gate");
      }
    }
    return {};
  }

  const ModelSource& m_model;
  const RankSlice& m_rank;
  const int m_tp;
  const DType m_computeDType;
  Backend& m_backend;
  const LoadProgress& m_progress;
  TensorReader m_reader;
  RankWeights m_weights;
  Bytes m_done, m_total;
};

}  // namespace

Result<RankWeights> loadRankWeights(const ModelSource& model, const RankSlice& rank, int tp, DType computeDType, Backend& backend,
                                    const LoadProgress& progress) {
  if (!model.canBeLoaded())
    return failure(model.config.name, "a configuration without weights", "a model folder or file with weights");
  return Loader(model, rank, tp, computeDType, backend, progress).load();
}

}  // namespace headroom::engine
