// SPDX-License-Identifier: Apache-2.0
// One pass over the inventory: check the shape, slice, read, hand over.
#include "engine/weights/weight_loader.h"

#include "core/memory/workspace.h"
#include "engine/weights/held_weight_reader.h"
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

// One expert's matrix, or all of a layer's as stored: as they are, or transposed.
ExpectedShape expertShape(const TensorEntry& tensor, const MoeParameters& moe, int64_t out, int64_t in, const char* why) {
  if (tensor.shape.size() < 3) return {{out, in}, why};
  const bool transposed = tensor.splitDim == (tensor.role == TensorRole::ExpertDown ? 1 : 2);
  if (transposed) std::swap(out, in);
  return {{moe.experts, out, in}, fmt::format("experts x {}", why)};
}

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
      if (layer.attention == AttentionKind::Latent && layer.latent.qLoraRank > 0)
        return ExpectedShape{{q, layer.latent.qLoraRank}, qWhy + " x the queries' latent size"};
      if (config.checkpoint.queryGate) return ExpectedShape{{2 * q, hidden}, "2 x " + qWhy};
      return ExpectedShape{{q, hidden}, qWhy};
    case TensorRole::QLatent:
      return ExpectedShape{{layer.latent.qLoraRank, hidden}, "the queries' latent size x hidden size"};
    case TensorRole::QLatentNorm:
      return ExpectedShape{{layer.latent.qLoraRank}, "the queries' latent size"};
    case TensorRole::KvLatent:
      return ExpectedShape{{layer.latent.kvLoraRank + layer.latent.qkRopeHeadDim, hidden}, "latent size + rotated size"};
    case TensorRole::KvLatentNorm:
      return ExpectedShape{{layer.latent.kvLoraRank}, "latent size"};
    case TensorRole::KvUp:
      return ExpectedShape{
          {layer.qHeads * (layer.latent.qkNopeHeadDim + layer.latent.vHeadDim), layer.latent.kvLoraRank},
          fmt::format("{} heads x ({} + {}) x latent size", layer.qHeads, layer.latent.qkNopeHeadDim, layer.latent.vHeadDim)};
    case TensorRole::KeyUp:
      return ExpectedShape{{layer.qHeads, layer.latent.kvLoraRank, layer.latent.qkNopeHeadDim},
                           "heads x latent size x head size"};
    case TensorRole::ValueUp:
      return ExpectedShape{{layer.qHeads, layer.latent.vHeadDim, layer.latent.kvLoraRank}, "heads x head size x latent size"};
    case TensorRole::LinearQkvz:
      return ExpectedShape{{layer.linear.channels() + layer.linear.valueHeads * layer.linear.valueDim, hidden},
                           "queries, keys, values and gates x hidden size"};
    case TensorRole::LinearQkv:
      return ExpectedShape{{layer.linear.channels(), hidden}, "queries, keys and values x hidden size"};
    case TensorRole::LinearZ:
      return ExpectedShape{{layer.linear.valueHeads * layer.linear.valueDim, hidden}, "value heads x head size x hidden size"};
    case TensorRole::LinearBetaAlpha:
      return ExpectedShape{{2 * layer.linear.valueHeads, hidden}, "2 x value heads x hidden size"};
    case TensorRole::LinearBeta:
    case TensorRole::LinearAlpha:
      return ExpectedShape{{layer.linear.valueHeads, hidden}, "value heads x hidden size"};
    case TensorRole::LinearConvolution:
      return ExpectedShape{{layer.linear.channels(), 1, layer.linear.kernel}, "channels x 1 x kernel"};
    case TensorRole::LinearTimeBias:
    case TensorRole::LinearDecay:
      return ExpectedShape{{layer.linear.valueHeads}, "value heads"};
    case TensorRole::LinearNorm:
      return ExpectedShape{{layer.linear.valueDim}, "value head size"};
    case TensorRole::LinearOut:
      return ExpectedShape{{hidden, layer.linear.valueHeads * layer.linear.valueDim}, "hidden size x value heads"};
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
    case TensorRole::Router:
      return ExpectedShape{{layer.moe.experts, hidden}, "experts x hidden size"};
    case TensorRole::RouterBias:
      return ExpectedShape{{layer.moe.experts}, "experts"};
    case TensorRole::SharedGate:
    case TensorRole::SharedUp:
      return ExpectedShape{{layer.moe.sharedIntermediate, hidden}, "shared experts' width x hidden size"};
    case TensorRole::SharedDown:
      return ExpectedShape{{hidden, layer.moe.sharedIntermediate}, "hidden size x shared experts' width"};
    case TensorRole::SharedRouter:
      if (tensor.shape.size() == 1) return ExpectedShape{{hidden}, "hidden size"};  // GGUF
      return ExpectedShape{{1, hidden}, "1 x hidden size"};
    case TensorRole::ExpertGate:
    case TensorRole::ExpertUp:
      return expertShape(tensor, layer.moe, layer.moe.expertIntermediate, hidden, "expert width x hidden size");
    case TensorRole::ExpertDown:
      return expertShape(tensor, layer.moe, hidden, layer.moe.expertIntermediate, "hidden size x expert width");
    case TensorRole::ExpertGateUp:
      return expertShape(tensor, layer.moe, 2 * layer.moe.expertIntermediate, hidden, "2 x expert width x hidden size");
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
        m_reader(model.weightFiles),
        m_heldReader(model, m_reader) {}

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
    if (isExpertTensor(tensor)) return loadExperts(tensor, slice);
    if (tensor.role == TensorRole::KvUp) return loadKvUp(tensor, slice);
    if (tensor.role == TensorRole::KeyUp || tensor.role == TensorRole::ValueUp) return loadHeadStack(tensor, slice);
    if (tensor.role == TensorRole::LinearConvolution) return loadConvolution(tensor, slice);
    if (tensor.role == TensorRole::SharedRouter) return loadSharedRouter(tensor);
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
      case TensorRole::RouterBias:
        return {&layer->routerBias};
      case TensorRole::QLatentNorm:
        return {&layer->qLatentNorm};
      case TensorRole::KvLatentNorm:
        return {&layer->kvLatentNorm};
      case TensorRole::LinearTimeBias:
        return {&layer->linearTimeBias};
      case TensorRole::LinearDecay:
        return {&layer->linearDecay};
      case TensorRole::LinearNorm:
        return {&layer->linearNorm};
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
        if (m_model.config.checkpoint.queryGate) return {&layer->q, &layer->queryGate};
        return {&layer->q};
      case TensorRole::QLatent:
        return {&layer->qLatent};
      case TensorRole::KvLatent:
        return {&layer->kvLatent, &layer->keyRope};
      case TensorRole::LinearQkvz:
        return {&layer->linearQkv, &layer->linearZ};
      case TensorRole::LinearQkv:
        return {&layer->linearQkv};
      case TensorRole::LinearZ:
        return {&layer->linearZ};
      case TensorRole::LinearBetaAlpha:
        return {&layer->linearBeta, &layer->linearAlpha};
      case TensorRole::LinearBeta:
        return {&layer->linearBeta};
      case TensorRole::LinearAlpha:
        return {&layer->linearAlpha};
      case TensorRole::LinearOut:
        return {&layer->linearOut};
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
      case TensorRole::Router:
        return {&layer->router};
      case TensorRole::SharedGate:
        return {&layer->sharedGate};
      case TensorRole::SharedUp:
        return {&layer->sharedUp};
      case TensorRole::SharedDown:
        return {&layer->sharedDown};
      default:
        return {};
    }
  }

  // Rows of several parts that stand one behind the other in each head, e.g. queries and gates: all heads' rows of each part.
  static std::vector<std::vector<Range>> partsOfHeads(const std::vector<Range>& ranges, const std::vector<int64_t>& parts) {
    int64_t rows = 0;
    for (int64_t part : parts) rows += part;
    std::vector<std::vector<Range>> split(parts.size());
    for (Range range : ranges) {
      for (int64_t head = range.begin; head < range.end; head += rows) {
        int64_t at = head;
        for (size_t i = 0; i < parts.size(); at += parts[i++]) split[i].push_back({at, at + parts[i]});
      }
    }
    return split;
  }

  // The ranges that belong to each of `count` targets: a fused tensor's segments in order, else all of them to the one.
  std::vector<std::vector<Range>> rangesOfTargets(const TensorEntry& tensor, const std::vector<Range>& ranges,
                                                  size_t count) const {
    if (count == 1) return {ranges};
    const LayerSpec& spec = m_model.config.layers[static_cast<size_t>(tensor.layer)];
    const LinearAttention& net = spec.linear;
    const int64_t shared = net.keyHeads > 0 ? net.valueHeads / net.keyHeads : 1;
    if (tensor.role == TensorRole::Q) return partsOfHeads(ranges, {spec.headDim, spec.headDim});
    if (tensor.role == TensorRole::LinearBetaAlpha) return partsOfHeads(ranges, {shared, shared});
    if (tensor.role == TensorRole::KvLatent)
      return {{{0, spec.latent.kvLoraRank}}, {{spec.latent.kvLoraRank, spec.latent.kvLoraRank + spec.latent.qkRopeHeadDim}}};
    if (tensor.role == TensorRole::LinearQkvz) {
      auto split = partsOfHeads(ranges, {net.keyDim, net.keyDim, shared * net.valueDim, shared * net.valueDim});
      for (size_t part : {1, 2}) split[0].insert(split[0].end(), split[part].begin(), split[part].end());
      return {split[0], split[3]};
    }
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

  static bool isExpertTensor(const TensorEntry& tensor) {
    switch (tensor.role) {
      case TensorRole::ExpertGate:
      case TensorRole::ExpertUp:
      case TensorRole::ExpertDown:
      case TensorRole::ExpertGateUp:
      case TensorRole::ExpertGateBias:
      case TensorRole::ExpertUpBias:
      case TensorRole::ExpertDownBias:
      case TensorRole::ExpertGateUpBias:
        return true;
      default:
        return false;
    }
  }

  // Weights of one expert, or of all of a layer in one tensor: (experts, rows, columns), or transposed (experts, columns, rows).
  Status loadExperts(const TensorEntry& tensor, const TensorSlice& slice) {
    LayerWeights* layer = layerOf(tensor);
    if (!layer) return unknown(tensor);
    const int64_t experts = m_model.config.layers[static_cast<size_t>(tensor.layer)].moe.experts;
    for (auto* stack : {&layer->expertGate, &layer->expertUp, &layer->expertDown}) stack->resize(static_cast<size_t>(experts));
    if (tensor.shape.size() == 2 && tensor.expert >= 0) {
      if (tensor.expert >= experts) return unknown(tensor);
      return loadExpertRows(tensor, slice, *layer, tensor.expert, 0);
    }
    if (tensor.shape.front() != experts) return unknown(tensor);
    if (tensor.shape.size() == 2) return loadExpertBiases(tensor, slice, *layer);
    if (tensor.shape.size() != 3) return unknown(tensor);
    const bool transposed = tensor.splitDim == (tensor.role == TensorRole::ExpertDown ? 1 : 2);
    for (int64_t expert = 0; expert < experts; ++expert) {
      Status status = transposed ? loadTransposedExpert(tensor, slice, *layer, expert)
                                 : loadExpertRows(tensor, slice, *layer, expert, expert * tensor.shape[1]);
      if (!status) return status;
    }
    return {};
  }

  // The matrices that one expert's part of a tensor fills.
  static std::vector<WeightMatrix*> expertTargets(TensorRole role, LayerWeights& layer, int64_t expert) {
    const auto e = static_cast<size_t>(expert);
    if (role == TensorRole::ExpertGate) return {&layer.expertGate[e]};
    if (role == TensorRole::ExpertUp) return {&layer.expertUp[e]};
    if (role == TensorRole::ExpertDown) return {&layer.expertDown[e]};
    return {&layer.expertGate[e], &layer.expertUp[e]};
  }

  // The ranges of a fused gate and up that belong to each: halves one behind the other, or rows in turn.
  std::vector<std::vector<Range>> gateAndUp(const TensorEntry& tensor, const std::vector<Range>& ranges) const {
    if (tensor.segments.size() == 2) return rangesOfTargets(tensor, ranges, 2);
    std::vector<std::vector<Range>> split(2);
    for (Range range : ranges)
      for (int64_t at = range.begin; at < range.end; ++at) split[static_cast<size_t>(at % 2)].push_back({at, at + 1});
    return split;
  }

  Status loadExpertRows(const TensorEntry& tensor, const TensorSlice& slice, LayerWeights& layer, int64_t expert,
                        int64_t firstRow) {
    const size_t last = tensor.shape.size() - 1;
    const std::vector<Range> columns = rangesOf(tensor, slice, last), held = rangesOf(tensor, slice, last - 1);
    if (Status status = checkColumns(tensor, columns); !status) return status;
    const std::vector<WeightMatrix*> targets = expertTargets(tensor.role, layer, expert);
    auto rows = targets.size() == 1 ? std::vector<std::vector<Range>>{held} : gateAndUp(tensor, held);
    for (size_t i = 0; i < targets.size(); ++i) {
      for (Range& range : rows[i]) range = {range.begin + firstRow, range.end + firstRow};
      if (Status status = loadRows(tensor, rows[i], columns, *targets[i]); !status) return status;
    }
    return {};
  }

  // Bands of columns become rows, as many as the transposing buffer holds.
  Status loadTransposedExpert(const TensorEntry& tensor, const TensorSlice& slice, LayerWeights& layer, int64_t expert) {
    if (!isFloating(tensor.dtype)) return unknown(tensor);
    const std::vector<WeightMatrix*> targets = expertTargets(tensor.role, layer, expert);
    std::vector<Range> in = rangesOf(tensor, slice, 1);
    const std::vector<Range> held = rangesOf(tensor, slice, 2);
    const auto out = targets.size() == 1 ? std::vector<std::vector<Range>>{held} : gateAndUp(tensor, held);
    int64_t depth = 0;
    for (Range& range : in) {
      depth += range.size();
      range = {range.begin + expert * tensor.shape[1], range.end + expert * tensor.shape[1]};
    }
    for (size_t i = 0; i < targets.size(); ++i) {
      int64_t rows = 0;
      for (Range range : out[i]) rows += range.size();
      if (rows == 0 || depth == 0) continue;
      Result<WeightMatrix> matrix = m_backend.makeMatrix(loadedDType(tensor, m_computeDType), rows, depth, tensor.name);
      if (!matrix) return tl::unexpected(matrix.error());
      if (Status status = writeTransposed(tensor, in, out[i], depth, *matrix); !status) return status;
      m_backend.finishMatrix(*matrix);
      m_weights.allocated += matrix->storage.size();
      *targets[i] = std::move(*matrix);
    }
    return {};
  }

  Status writeTransposed(const TensorEntry& tensor, const std::vector<Range>& in, const std::vector<Range>& out, int64_t depth,
                         WeightMatrix& matrix) {
    constexpr int64_t kTransposeFloats = 1 << 21;
    const int64_t band = std::max<int64_t>(1, kTransposeFloats / depth);
    std::vector<float> rows, line;
    std::vector<Range> columns;
    int64_t written = 0;
    auto flush = [&]() -> Status {
      int64_t width = 0;
      for (Range range : columns) width += range.size();
      if (width == 0) return {};
      rows.resize(static_cast<size_t>(width * depth));
      line.resize(static_cast<size_t>(width));
      int64_t at = 0;
      Status status = m_reader.read(tensor, in, columns, [&](const TensorReader::Chunk& chunk) -> Status {
        const int64_t lineBytes = storageBytes(tensor.dtype, width).count();
        for (int64_t r = 0; r < chunk.rows; ++r, ++at) {
          convertToFloat(tensor.dtype, chunk.data + r * lineBytes, width, line.data());
          for (int64_t c = 0; c < width; ++c) rows[static_cast<size_t>(c * depth + at)] = line[static_cast<size_t>(c)];
        }
        return report(chunk.bytesRead);
      });
      if (!status) return status;
      m_backend.writeRows(matrix, written, width, DType::F32, rows.data());
      written += width;
      columns.clear();
      return m_backend.sync();  // `rows` is used again
    };
    int64_t pending = 0;
    for (Range range : out) {
      while (!range.empty()) {
        const Range piece{range.begin, std::min(range.end, range.begin + band - pending)};
        columns.push_back(piece);
        pending += piece.size();
        range.begin = piece.end;
        if (pending < band) continue;
        if (Status status = flush(); !status) return status;
        pending = 0;
      }
    }
    return flush();
  }

  // The rows of each head in kv_b_proj: keys, which are wanted transposed, then values.
  Status loadKvUp(const TensorEntry& tensor, const TensorSlice& slice) {
    LayerWeights* layer = layerOf(tensor);
    if (!layer || tensor.shape.size() != 2 || !isFloating(tensor.dtype)) return unknown(tensor);
    const LatentAttention& latent = m_model.config.layers[static_cast<size_t>(tensor.layer)].latent;
    const auto parts = partsOfHeads(rangesOf(tensor, slice, 0), {latent.qkNopeHeadDim, latent.vHeadDim});
    const std::vector<Range> columns{{0, latent.kvLoraRank}};
    layer->keyUp.resize(parts[0].size());
    layer->valueUp.resize(parts[1].size());
    for (size_t head = 0; head < parts[0].size(); ++head) {
      Result<WeightMatrix> matrix =
          m_backend.makeMatrix(loadedDType(tensor, m_computeDType), latent.kvLoraRank, latent.qkNopeHeadDim, tensor.name);
      if (!matrix) return tl::unexpected(matrix.error());
      if (Status status = writeTransposed(tensor, {parts[0][head]}, columns, latent.qkNopeHeadDim, *matrix); !status)
        return status;
      m_backend.finishMatrix(*matrix);
      m_weights.allocated += matrix->storage.size();
      layer->keyUp[head] = std::move(*matrix);
      if (Status status = loadRows(tensor, {parts[1][head]}, columns, layer->valueUp[head]); !status) return status;
    }
    return {};
  }

  // (heads, rows, columns) as GGUF files have them: keys already transposed.
  Status loadHeadStack(const TensorEntry& tensor, const TensorSlice& slice) {
    LayerWeights* layer = layerOf(tensor);
    if (!layer || tensor.shape.size() != 3) return unknown(tensor);
    std::vector<WeightMatrix>& stack = tensor.role == TensorRole::KeyUp ? layer->keyUp : layer->valueUp;
    const int64_t rows = tensor.shape[1];
    const std::vector<Range> columns{{0, tensor.shape[2]}};
    for (Range heads : rangesOf(tensor, slice, 0)) {
      for (int64_t head = heads.begin; head < heads.end; ++head) {
        stack.emplace_back();
        if (Status status = loadRows(tensor, {{head * rows, (head + 1) * rows}}, columns, stack.back()); !status) return status;
      }
    }
    return {};
  }

  // One row, which GGUF files have as a vector.
  Status loadSharedRouter(const TensorEntry& tensor) {
    LayerWeights* layer = layerOf(tensor);
    if (!layer) return unknown(tensor);
    return loadRows(tensor, {{0, 1}}, {{0, tensor.shape.back()}}, layer->sharedRouter);
  }

  // (channels, 1, kernel) as F32.
  Status loadConvolution(const TensorEntry& tensor, const TensorSlice& slice) {
    LayerWeights* layer = layerOf(tensor);
    if (!layer || tensor.shape.size() < 2) return unknown(tensor);
    return loadFloatRows(tensor, rangesOf(tensor, slice, 0), {{0, tensor.shape.back()}}, layer->linearConvolution);
  }

  // Rows and columns of a small tensor as F32, one row behind the other.
  Status loadFloatRows(const TensorEntry& tensor, const std::vector<Range>& rows, const std::vector<Range>& columns,
                       DeviceBuffer& target) {
    std::vector<float> values;
    int64_t width = 0;
    for (Range range : columns) width += range.size();
    if (width == 0) return {};
    Status status = m_reader.read(tensor, rows, columns, [&](const TensorReader::Chunk& chunk) -> Status {
      const size_t at = values.size();
      values.resize(at + static_cast<size_t>(chunk.rows * width));
      if (!convertToFloat(tensor.dtype, chunk.data, chunk.rows * width, values.data() + at))
        return failure(tensor.name, fmt::format("type {}", dtypeName(tensor.dtype)), "float32, float16 or bfloat16");
      return report(chunk.bytesRead);
    });
    if (!status) return status;
    const Bytes size(static_cast<int64_t>(values.size() * sizeof(float)));
    Result<DeviceBuffer> buffer = m_backend.allocate(size, tensor.name);
    if (!buffer) return tl::unexpected(buffer.error());
    m_backend.copyToDevice(buffer->data(), values.data(), size);
    if (status = m_backend.sync(); !status) return status;  // `values` is on this function's stack
    m_weights.allocated += size;
    target = std::move(*buffer);
    return {};
  }

  // (experts, width) as F32: of each expert this rank's columns.
  Status loadExpertBiases(const TensorEntry& tensor, const TensorSlice& slice, LayerWeights& layer) {
    std::vector<DeviceBuffer*> targets;
    switch (tensor.role) {
      case TensorRole::ExpertGateBias:
        targets = {&layer.expertGateBias};
        break;
      case TensorRole::ExpertUpBias:
        targets = {&layer.expertUpBias};
        break;
      case TensorRole::ExpertDownBias:
        targets = {&layer.expertDownBias};
        break;
      case TensorRole::ExpertGateUpBias:
        targets = {&layer.expertGateBias, &layer.expertUpBias};
        break;
      default:
        return unknown(tensor);
    }
    const std::vector<Range> held = rangesOf(tensor, slice, 1);
    const auto columns = targets.size() == 1 ? std::vector<std::vector<Range>>{held} : gateAndUp(tensor, held);
    for (size_t i = 0; i < targets.size(); ++i) {
      if (Status status = loadFloatRows(tensor, {{0, tensor.shape.front()}}, columns[i], *targets[i]); !status) return status;
    }
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
    Status status;
    if (m_heldReader.reads(tensor)) {
      status = m_heldReader.read(tensor, rows, columns, [&](int64_t first, int64_t count, DType dtype, const void* data) -> Status {
        m_backend.writeRows(*matrix, first, count, dtype, data);
        if (Status synced = m_backend.sync(); !synced) return synced;  // the buffer is used again
        return report(storageBytes(tensor.dtype, in) * count);
      });
    } else {
      status = m_reader.read(tensor, rows, columns, [&](const TensorReader::Chunk& chunk) -> Status {
        m_backend.writeRows(*matrix, chunk.firstRow, chunk.rows, tensor.dtype, chunk.data);
        if (Status synced = m_backend.sync(); !synced) return synced;  // the buffer is used again
        return report(chunk.bytesRead);
      });
    }
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
      if (spec.attention == AttentionKind::Latent && !share.qHeads.empty()) {
        const auto heads = static_cast<size_t>(share.qHeads.size());
        if (layer.q.out == 0 || layer.kvLatent.out == 0 || layer.keyRope.out == 0) return inLayer("query or latent projection");
        if (spec.latent.qLoraRank > 0 && (layer.qLatent.out == 0 || !layer.qLatentNorm))
          return inLayer("latent query projection");
        if (!layer.kvLatentNorm || layer.keyUp.size() != heads || layer.valueUp.size() != heads)
          return inLayer("projection from the latent space");
        if (layer.o.out == 0) return inLayer("attention output projection");
      } else if (spec.attention == AttentionKind::LinearAttention) {
        const bool some = layer.linearQkv.out > 0;
        if (some &&
            (layer.linearZ.out == 0 || layer.linearBeta.out == 0 || layer.linearAlpha.out == 0 || layer.linearOut.out == 0))
          return inLayer("projection of the linear attention");
        if (some && (!layer.linearConvolution || !layer.linearTimeBias || !layer.linearDecay || !layer.linearNorm))
          return inLayer("convolution, decay or norm of the linear attention");
      } else if (spec.attention != AttentionKind::None && !share.qHeads.empty()) {
        if (layer.q.out == 0 || layer.k.out == 0 || layer.v.out == 0) return inLayer("query, key or value projection");
        if (config.checkpoint.queryGate && layer.queryGate.out == 0) return inLayer("gate of the queries");
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
      if (spec.ffn == FfnKind::MixtureOfExperts) {
        if (layer.router.out == 0) return inLayer("router");
        if (spec.moe.routerBias && !layer.routerBias) return inLayer("router bias");
        if (!share.expertColumns.empty()) {
          for (const auto* stack : {&layer.expertGate, &layer.expertUp, &layer.expertDown}) {
            if (static_cast<int64_t>(stack->size()) != spec.moe.experts) return inLayer("experts");
            for (const WeightMatrix& matrix : *stack)
              if (matrix.out == 0) return inLayer("projection of an expert");
          }
        }
        if (!share.sharedColumns.empty()) {
          if (layer.sharedGate.out == 0 || layer.sharedUp.out == 0 || layer.sharedDown.out == 0) return inLayer("shared expert");
          if (spec.moe.sharedGate && layer.sharedRouter.out == 0) return inLayer("gate of the shared expert");
        }
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
  HeldWeightReader m_heldReader;
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
