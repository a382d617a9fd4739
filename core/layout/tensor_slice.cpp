// SPDX-License-Identifier: Apache-2.0
// Which part of a tensor a rank holds. Loader and planner both ask here, so that planned and allocated bytes cannot differ.
#include "core/layout/split_units.h"

#include <algorithm>

namespace headroom {
namespace {

// The same share of `width` as `range` is of `main`, with inner boundaries at multiples of `granule`. Neighbouring ranges stay
// neighbours.
Range scaledRange(Range range, int64_t main, int64_t width, int64_t granule) {
  auto boundary = [&](int64_t at) {
    if (at >= main) return width;
    const int64_t scaled = (at * width + main / 2) / main;
    return std::min(width, (scaled + granule / 2) / granule * granule);
  };
  return {boundary(range.begin), boundary(range.end)};
}

Range columnsOf(const RankSlice& rank, const ModelConfig& config, int64_t width, int tp) {
  if (width == config.intermediateSize) return rank.mlpColumns;
  const int64_t granule = std::max<int64_t>(1, rank.columnGranule);
  if (config.intermediateSize == 0) return splitRange(width, tp, granule)[rank.tpRank];
  return scaledRange(rank.mlpColumns, config.intermediateSize, width, granule);
}

// Query heads of a layer with `qHeads` heads in groups of `group`: whole groups where the rank's own heads are whole groups.
Range queryHeadsOf(const RankSlice& rank, const ModelConfig& config, int64_t qHeads, int64_t group) {
  if (qHeads == config.qHeads) return rank.qHeads;
  if (config.qHeads == 0) return {0, qHeads};
  const int64_t mainGroup = config.kvHeads > 0 ? std::max<int64_t>(1, config.qHeads / config.kvHeads) : 1;
  auto boundary = [&](int64_t at) {
    const int64_t granule = at % mainGroup == 0 && group > 0 ? group : 1;
    return scaledRange({at, at}, config.qHeads, qHeads, granule).begin;
  };
  const int64_t begin = boundary(rank.qHeads.begin);
  return {begin, std::max(begin, boundary(rank.qHeads.end))};
}

Range kvHeadsOf(const RankSlice& rank, const ModelConfig& config, int64_t qHeads, int64_t kvHeads) {
  if (kvHeads == config.kvHeads && qHeads == config.qHeads) return rank.kvHeads;
  const int64_t group = std::max<int64_t>(1, qHeads / std::max<int64_t>(1, kvHeads));
  const Range q = queryHeadsOf(rank, config, qHeads, group);
  const int64_t begin = std::min(q.begin / group, kvHeads);
  return {begin, q.empty() ? begin : std::min(kvHeads, ceilDiv(q.end, group))};
}

Range vocabularyOf(const RankSlice& rank, const ModelConfig& config, int64_t rows) {
  // Rows beyond the configured vocabulary (a padded table) belong to the rank of the last token.
  auto boundary = [&](int64_t at) { return at >= config.vocabSize ? rows : std::min(at, rows); };
  return {boundary(rank.vocabulary.begin), boundary(rank.vocabulary.end)};
}

}  // namespace

Range heldUnits(SplitUnit unit, int64_t units, int64_t layerQHeads, int64_t layerKvHeads, const ModelConfig& config,
                const RankSlice& rank, int tp) {
  switch (unit) {
    case SplitUnit::QHeads:
      return queryHeadsOf(rank, config, units, layerKvHeads > 0 ? units / layerKvHeads : 1);
    case SplitUnit::KvHeads:
      return kvHeadsOf(rank, config, layerQHeads, units);
    case SplitUnit::MlpColumns:
    case SplitUnit::ExpertColumns:
    case SplitUnit::SharedColumns:
      return columnsOf(rank, config, units, tp);
    case SplitUnit::Experts:
      return rank.experts.empty() ? Range{0, units} : Range{rank.experts.begin, std::min(rank.experts.end, units)};
    case SplitUnit::Vocabulary:
      return vocabularyOf(rank, config, units);
    case SplitUnit::Replicated:
      return {0, units};
  }
  return {0, units};
}

bool stageHolds(const TensorEntry& tensor, const ModelConfig& config, bool embeds, bool projects, Range layers) {
  if (tensor.layer >= 0) return layers.contains(tensor.layer);
  switch (tensor.role) {
    case TensorRole::TokenEmbedding:
      return embeds || (projects && config.tieWordEmbeddings);
    case TensorRole::FinalNorm:
    case TensorRole::FinalNormBias:
    case TensorRole::LmHead:
    case TensorRole::LmHeadBias:
      return projects;
    case TensorRole::RopeFrequencies:
      return true;
    default:
      return embeds;  // towers and projectors stand before the first layer
  }
}

bool onlyFirstTpRank(TensorRole role) {
  return role == TensorRole::OBias || role == TensorRole::DownBias || role == TensorRole::ExpertDownBias;
}

Range qHeadsOfLayer(const ModelConfig& config, const RankSlice& rank, const LayerSpec& layer) {
  return queryHeadsOf(rank, config, layer.qHeads, layer.kvHeads > 0 ? layer.qHeads / layer.kvHeads : 1);
}

Range kvHeadsOfLayer(const ModelConfig& config, const RankSlice& rank, const LayerSpec& layer) {
  return kvHeadsOf(rank, config, layer.qHeads, layer.kvHeads);
}

std::optional<TensorSlice> sliceOf(const TensorEntry& tensor, const ModelConfig& config, const RankSlice& rank, int tp) {
  if (!tensor.loaded || !stageHolds(tensor, config, rank.embeds, rank.projects, rank.layers)) return std::nullopt;
  // The bias of a row-parallel product is added once, after the sum over ranks.
  if (onlyFirstTpRank(tensor.role) && rank.tpRank != 0) return std::nullopt;
  if (tensor.expert >= 0 && !rank.experts.empty() && !rank.experts.contains(tensor.expert)) return std::nullopt;
  if (tensor.splitDim < 0 || tensor.segments.empty()) return TensorSlice{};

  int64_t layerQ = config.qHeads, layerKv = config.kvHeads;
  if (tensor.layer >= 0 && tensor.layer < config.layerCount()) {
    layerQ = config.layers[tensor.layer].qHeads;
    layerKv = config.layers[tensor.layer].kvHeads;
  }
  TensorSlice slice{tensor.splitDim, {}};
  int64_t offset = 0, held = 0;
  for (const SplitSegment& segment : tensor.segments) {
    const int64_t count = segment.elements / std::max<int64_t>(1, segment.elementsPerUnit);
    const Range units = heldUnits(segment.unit, count, layerQ, layerKv, config, rank, tp);
    const Range elements{offset + units.begin * segment.elementsPerUnit, offset + units.end * segment.elementsPerUnit};
    offset += segment.elements;
    if (elements.empty()) continue;
    held += elements.size();
    if (!slice.ranges.empty() && slice.ranges.back().end == elements.begin)
      slice.ranges.back().end = elements.end;
    else
      slice.ranges.push_back(elements);
  }
  if (held == 0) return std::nullopt;
  if (held == tensor.shape[tensor.splitDim]) return TensorSlice{};
  return slice;
}

}  // namespace headroom
