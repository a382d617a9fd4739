// SPDX-License-Identifier: Apache-2.0
// A model's tensors summed by layer kind and split, once; the weights of any layout are then a handful of multiplications. Agrees
// with the sum over sliceOf to the byte.
#pragma once

#include "core/layout/parallel_layout.h"

#include <functional>
#include <map>
#include <vector>

namespace headroom {

class WeightTable {
 public:
  // Tensors that split alike: the same unit and number of units, in layers with the same heads.
  struct SplitClass {
    SplitUnit unit = SplitUnit::Replicated;
    int64_t units = 1;
    int64_t layerQHeads = 0, layerKvHeads = 0;
    bool firstTpRankOnly = false;
    friend auto operator<=>(const SplitClass&, const SplitClass&) = default;
  };

  // `bytesOf` gives the bytes of a whole tensor as the engine holds it.
  WeightTable(const ModelSource& model, const std::function<int64_t(const TensorEntry&)>& bytesOf);

  const std::vector<SplitClass>& classes() const { return m_classes; }

  // Bytes of each layer kind and of the parts outside the layers for one rank that holds `held[c]` units of class c.
  struct Shares {
    std::vector<int64_t> kindBytes;
    int64_t embedding = 0, front = 0, back = 0, everywhere = 0;
    friend bool operator==(const Shares&, const Shares&) = default;
  };
  Shares sharesOf(const std::vector<int64_t>& held) const;
  // By Headroom's layout: units as sliceOf deals them.
  Shares sharesOf(const ModelConfig& config, const RankSlice& rank, int tp) const { return sharesOf(heldOf(config, rank, tp)); }
  // Units of each class that the rank holds by Headroom's layout; ranks that hold as many have equal shares.
  std::vector<int64_t> heldOf(const ModelConfig& config, const RankSlice& rank, int tp) const {
    std::vector<int64_t> held;
    heldOf(config, rank, tp, held);
    return held;
  }
  void heldOf(const ModelConfig& config, const RankSlice& rank, int tp, std::vector<int64_t>& held) const;

  Bytes stageBytes(const Shares& shares, Range layers, bool embeds, bool projects) const;

 private:
  using Row = std::pair<int, int64_t>;  // class, bytes
  using Rows = std::vector<Row>;
  static int64_t sum(const Rows& rows, const std::vector<int64_t>& held, const std::vector<SplitClass>& classes);

  bool m_tied = false;
  std::vector<SplitClass> m_classes;
  std::vector<Rows> m_kinds;
  std::vector<std::vector<int>> m_kindCountBefore;  // by kind, layers of that kind before a layer
  Rows m_embedding, m_front, m_back, m_everywhere;
};

}  // namespace headroom
