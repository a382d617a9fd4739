// SPDX-License-Identifier: Apache-2.0
// Private to core/model: how a tensor of a role divides over tensor-parallel ranks, and which role a name has.
#pragma once

#include "core/model/tensor_inventory.h"

#include <optional>
#include <string_view>

namespace headroom {

// Fills splitDim and segments by role, layer and shape. A tensor whose shape does not follow the configuration is replicated, and
// false is returned.
bool assignSplit(TensorEntry& entry, const ModelConfig& config);

struct TensorName {
  TensorRole role = TensorRole::Other;
  int layer = -1;
  int expert = -1;
};

// By the names of Hugging Face checkpoints: "model.layers.3.self_attn.q_proj.weight". Unknown names have the role Other.
TensorName readTensorName(std::string_view name, const ModelConfig& config);
// By the names of GGUF files: "blk.3.attn_q.weight".
TensorName readGgufTensorName(std::string_view name, const ModelConfig& config);

}  // namespace headroom
