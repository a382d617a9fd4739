// SPDX-License-Identifier: Apache-2.0
#include "core/memory/weight_table.h"

#include "core/layout/split_units.h"

#include <algorithm>

namespace headroom {

WeightTable::WeightTable(const ModelSource& model, const std::function<int64_t(const TensorEntry&)>& bytesOf)
    : m_tied(model.config.tieWordEmbeddings) {
  const ModelConfig& config = model.config;
  std::map<SplitClass, int> index;
  auto add = [&](std::map<int, int64_t>& rows, const SplitClass& split, int64_t bytes) {
    const auto [found, isNew] = index.try_emplace(split, static_cast<int>(m_classes.size()));
    if (isNew) m_classes.push_back(split);
    rows[found->second] += bytes;
  };
  std::vector<std::map<int, int64_t>> layers(config.layers.size());
  std::map<int, int64_t> embedding, front, back, everywhere;
  for (const TensorEntry& tensor : model.inventory.tensors) {
    if (!tensor.loaded || tensor.layer >= config.layerCount()) continue;
    std::map<int, int64_t>* rows = &front;
    SplitClass split{SplitUnit::Replicated, 1, 0, 0, onlyFirstTpRank(tensor.role)};
    if (tensor.layer >= 0) {
      rows = &layers[tensor.layer];
      split.layerQHeads = config.layers[tensor.layer].qHeads;
      split.layerKvHeads = config.layers[tensor.layer].kvHeads;
    } else {
      split.layerQHeads = config.qHeads;
      split.layerKvHeads = config.kvHeads;
      if (tensor.role == TensorRole::RopeFrequencies)
        rows = &everywhere;
      else if (tensor.role == TensorRole::TokenEmbedding)
        rows = &embedding;
      else if (stageHolds(tensor, config, false, true, {}))
        rows = &back;
    }
    const int64_t bytes = bytesOf(tensor);
    if (tensor.splitDim < 0 || tensor.segments.empty()) {
      split.layerQHeads = split.layerKvHeads = 0;
      add(*rows, split, bytes);
      continue;
    }
    const int64_t width = tensor.shape[tensor.splitDim];
    for (const SplitSegment& segment : tensor.segments) {
      SplitClass piece = split;
      piece.unit = segment.unit;
      piece.units = std::max<int64_t>(1, segment.elements / std::max<int64_t>(1, segment.elementsPerUnit));
      add(*rows, piece, bytes / width * segment.elements + bytes % width * segment.elements / width);
    }
  }
  auto rowsOf = [](const std::map<int, int64_t>& sums) { return Rows(sums.begin(), sums.end()); };
  m_embedding = rowsOf(embedding);
  m_front = rowsOf(front);
  m_back = rowsOf(back);
  m_everywhere = rowsOf(everywhere);
  std::vector<int> kindOfLayer;
  for (const auto& layer : layers) {
    const Rows rows = rowsOf(layer);
    const auto found = std::find(m_kinds.begin(), m_kinds.end(), rows);
    kindOfLayer.push_back(static_cast<int>(found - m_kinds.begin()));
    if (found == m_kinds.end()) m_kinds.push_back(rows);
  }
  m_kindCountBefore.assign(m_kinds.size(), std::vector<int>(layers.size() + 1, 0));
  for (size_t kind = 0; kind < m_kinds.size(); ++kind) {
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      m_kindCountBefore[kind][layer + 1] =
          m_kindCountBefore[kind][layer] + (kindOfLayer[layer] == static_cast<int>(kind) ? 1 : 0);
    }
  }
}

int64_t WeightTable::sum(const Rows& rows, const std::vector<int64_t>& held, const std::vector<SplitClass>& classes) {
  int64_t total = 0;
  for (const auto& [index, bytes] : rows) {
    const int64_t units = classes[index].units;
    total += bytes / units * held[index] + bytes % units * held[index] / units;
  }
  return total;
}

WeightTable::Shares WeightTable::sharesOf(const std::vector<int64_t>& held) const {
  Shares shares;
  shares.kindBytes.reserve(m_kinds.size());
  for (const Rows& rows : m_kinds) shares.kindBytes.push_back(sum(rows, held, m_classes));
  shares.embedding = sum(m_embedding, held, m_classes);
  shares.front = sum(m_front, held, m_classes);
  shares.back = sum(m_back, held, m_classes);
  shares.everywhere = sum(m_everywhere, held, m_classes);
  return shares;
}

void WeightTable::heldOf(const ModelConfig& config, const RankSlice& rank, int tp, std::vector<int64_t>& held) const {
  held.clear();
  held.reserve(m_classes.size());
  for (const SplitClass& split : m_classes) {
    const bool none = split.firstTpRankOnly && rank.tpRank != 0;
    held.push_back(none ? 0 : heldUnits(split.unit, split.units, split.layerQHeads, split.layerKvHeads, config, rank, tp).size());
  }
}

Bytes WeightTable::stageBytes(const Shares& shares, Range layers, bool embeds, bool projects) const {
  int64_t total = shares.everywhere;
  for (size_t kind = 0; kind < m_kinds.size(); ++kind) {
    total += shares.kindBytes[kind] * (m_kindCountBefore[kind][layers.end] - m_kindCountBefore[kind][layers.begin]);
  }
  if (embeds || (projects && m_tied)) total += shares.embedding;
  if (embeds) total += shares.front;
  if (projects) total += shares.back;
  return Bytes(total);
}

}  // namespace headroom
