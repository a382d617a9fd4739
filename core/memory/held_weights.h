// SPDX-License-Identifier: Apache-2.0
// Weights as vLLM, SGLang and TensorRT-LLM hold them: even shares of padded tables, blocks that a rank's share only partly fills,
// 32-bit parameters beside 16-bit ones, towers, copies on later stages. Sums by layer kind and split, once for a model; a layout
// is then a few multiplications.
#pragma once

#include "core/layout/rules/engine_rules.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

// Families that vLLM 0.32 runs on its generic backend: what no plan divides stands whole on every rank.
bool vllmUsesGenericBackend(const ModelConfig& config);

struct HeldWeightsOptions {
  EngineKind engine = EngineKind::Vllm;
  EngineVersion version;
  DType dtype = DType::BF16;                // of the parameters
  std::string quantization;                 // in force; made while loading where the checkpoint has none
  std::optional<double> computeCapability;  // of the GPUs: padding of packed experts depends on it
};

class HeldWeights {
 public:
  // `tensors` may hold one of several like tensors; `countOf` says how many it stands for. Empty: one each.
  HeldWeights(const ModelSource& model, const TensorInventory& tensors, const HeldWeightsOptions& options,
              const std::function<int64_t(const TensorEntry&)>& countOf = {});
  HeldWeights(const ModelSource& model, const HeldWeightsOptions& options) : HeldWeights(model, model.inventory, options) {}

  struct Shards {
    int tp = 1;
    int experts = 1;       // ranks that divide the columns of every expert
    int expertGroups = 1;  // ranks among which whole experts are dealt; the first get the spare ones
    int attention = 0;     // ranks that divide the heads, where attention is divided otherwise (0: tp)
  };
  // Bytes of one layer of each kind and of the parts outside, on TP rank 0.
  struct Shares {
    std::vector<int64_t> kindBytes;
    int64_t embedding = 0, front = 0, norm = 0, head = 0, everywhere = 0;
    friend bool operator==(const Shares&, const Shares&) = default;
  };
  Shares sharesOf(const Shards& shards) const;
  Bytes stageBytes(const Shares& shares, Range layers, bool first, bool last) const;
  Bytes stageBytes(const Shards& shards, Range layers, bool first, bool last) const {
    return stageBytes(sharesOf(shards), layers, first, last);
  }
  // Bytes of each layer and of what the first and the last stage hold besides, for balanced stages.
  std::vector<int64_t> layerBytes(const Shares& shares) const;
  int64_t layerCount() const { return static_cast<int64_t>(m_kindOfLayer.size()); }

  // Mean bytes of a weight in the layers' and in the outer matrices, for predictions.
  double layerBytesPerElement() const { return m_layerBytesPerElement; }
  double headBytesPerElement() const { return m_headBytesPerElement; }

 private:
  // Tensors whose rank share follows the same numbers.
  struct SplitClass {
    SplitUnit unit = SplitUnit::Replicated;
    int64_t units = 1, perUnit = 1;  // weight elements along the split: units x perUnit
    int64_t granule = 1;             // weight elements that one stored element covers
    int64_t elements = 1;            // stored elements of the whole
    int64_t padding = 1;             // a rank's share of the units is rounded up to this
    int64_t experts = 0;             // whole experts in the tensor; 0: not experts
    int64_t otherWidth = 0;          // of block scales that become finer where a share ends inside a block: the other dimension
    friend auto operator<=>(const SplitClass&, const SplitClass&) = default;
  };
  using Rows = std::vector<std::pair<int, int64_t>>;  // class, bytes of the whole

  int64_t heldOf(const SplitClass& split, const Shards& shards) const;
  int64_t sum(const Rows& rows, const std::vector<double>& held) const;

  bool m_tied = false, m_padVocabulary = true;
  bool m_embeddingOnAll = false, m_normOnAll = false, m_headOnAll = false, m_frontOnAll = false;
  std::vector<SplitClass> m_classes;
  std::vector<Rows> m_kinds;
  std::vector<int> m_kindOfLayer;
  std::vector<std::vector<int>> m_kindCountBefore;  // by kind, layers of that kind before a layer
  Rows m_embedding, m_front, m_norm, m_head, m_everywhere;
  double m_layerBytesPerElement = 2, m_headBytesPerElement = 2;
};

}  // namespace headroom
