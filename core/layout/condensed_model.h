// SPDX-License-Identifier: Apache-2.0
// A model's tensors with repetitions counted: the experts of a layer differ in name and place only. What sums over layouts looks
// at each kind once, however many experts there are.
#pragma once

#include "core/model/tensor_inventory.h"

#include <vector>

namespace headroom {

class CondensedModel {
 public:
  explicit CondensedModel(const ModelSource& model);

  // One tensor of each kind in place of all, under a configuration that has the sizes and the layers only.
  const ModelSource& model() const { return m_model; }
  // How many tensors of the original a tensor of model().inventory stands for.
  int64_t count(const TensorEntry& tensor) const { return m_counts[static_cast<size_t>(&tensor - m_model.inventory.tensors.data())]; }
  // Sums over the original's tensors.
  int64_t parameters() const;
  Bytes checkpointBytes() const;

 private:
  ModelSource m_model;
  std::vector<int64_t> m_counts;
};

}  // namespace headroom
