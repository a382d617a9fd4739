// SPDX-License-Identifier: Apache-2.0
#include "core/layout/condensed_model.h"

namespace headroom {
namespace {

bool sameSegments(const std::vector<SplitSegment>& a, const std::vector<SplitSegment>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].unit != b[i].unit || a[i].elements != b[i].elements || a[i].elementsPerUnit != b[i].elementsPerUnit) return false;
  }
  return true;
}

bool sameKind(const TensorEntry& a, const TensorEntry& b) {
  return a.role == b.role && a.layer == b.layer && a.dtype == b.dtype && a.splitDim == b.splitDim && a.loaded == b.loaded &&
         a.logicalParameters == b.logicalParameters && a.shape == b.shape && sameSegments(a.segments, b.segments);
}

}  // namespace

CondensedModel::CondensedModel(const ModelSource& model) {
  const ModelConfig& from = model.config;
  ModelConfig& config = m_model.config;
  config.modelType = from.modelType;
  config.architecture = from.architecture;
  config.hiddenSize = from.hiddenSize;
  config.vocabSize = from.vocabSize;
  config.maxPositionEmbeddings = from.maxPositionEmbeddings;
  config.qHeads = from.qHeads;
  config.kvHeads = from.kvHeads;
  config.headDim = from.headDim;
  config.intermediateSize = from.intermediateSize;
  config.tieWordEmbeddings = from.tieWordEmbeddings;
  config.dtype = from.dtype;
  config.rope = from.rope;
  config.localRope = from.localRope;
  config.decoder = from.decoder;
  config.checkpoint = from.checkpoint;
  config.layers = from.layers;
  m_model.origin = model.origin;

  std::vector<TensorEntry>& kinds = m_model.inventory.tensors;
  size_t begin = 0;  // first kind of the run of experts
  size_t next = 0;   // the kind that followed last time
  int layer = -1;
  const std::vector<TensorEntry>& tensors = model.inventory.tensors;
  constexpr size_t kAhead = 8;  // shapes and segments lie apart from their tensors: they are asked for before they are needed
  for (size_t index = 0; index < tensors.size(); ++index) {
    if (index + kAhead < tensors.size()) {
      __builtin_prefetch(tensors[index + kAhead].shape.data());
      __builtin_prefetch(tensors[index + kAhead].segments.data());
    }
    const TensorEntry& tensor = tensors[index];
    if (tensor.expert < 0) {
      layer = -1;
      kinds.push_back(tensor);
      m_counts.push_back(1);
      continue;
    }
    if (tensor.layer != layer) {
      layer = tensor.layer;
      begin = next = kinds.size();
    }
    // Experts follow one another with the same tensors in the same order.
    size_t at = next < kinds.size() && sameKind(kinds[next], tensor) ? next : begin;
    while (at < kinds.size() && !sameKind(kinds[at], tensor)) ++at;
    if (at == kinds.size()) {
      kinds.push_back(tensor);
      m_counts.push_back(0);
    }
    ++m_counts[at];
    next = at + 1 < kinds.size() ? at + 1 : begin;
  }
}

int64_t CondensedModel::parameters() const {
  int64_t sum = 0;
  for (const TensorEntry& tensor : m_model.inventory.tensors) sum += tensor.parameters() * count(tensor);
  return sum;
}

Bytes CondensedModel::checkpointBytes() const {
  Bytes sum;
  for (const TensorEntry& tensor : m_model.inventory.tensors) sum += tensor.storedBytes() * count(tensor);
  return sum;
}

}  // namespace headroom
