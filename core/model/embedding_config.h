// SPDX-License-Identifier: Apache-2.0
// How a model makes one vector of a text: sentence-transformers' folders (modules.json, 1_Pooling/config.json) and GGUF's
// pooling_type say it.
#pragma once

#include "core/model/tensor_inventory.h"
#include "core/result.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom {

// Which of the hidden states h_1 … h_n behind the last norm the vector is made of.
enum class Pooling : uint8_t {
  Last,            // h_n
  First,           // h_1: "cls"
  Mean,            // Σ h_i / n
  Max,             // max h_i, for each dimension
  MeanSqrtLength,  // Σ h_i / √n
  WeightedMean,    // Σ i h_i / Σ i
};
std::string_view poolingName(Pooling pooling);  // "last", "cls", "mean", …
std::optional<Pooling> parsePooling(std::string_view name);

struct EmbeddingConfig {
  Pooling pooling = Pooling::Last;
  bool normalizes = false;  // the vector is divided by its Euclidean length
};

// What the model's files say; nothing where they say nothing. An Error where they ask for what is not computed here: other
// modules, several poolings at once, or attention that is not causal.
Result<std::optional<EmbeddingConfig>> readEmbeddingConfig(const ModelSource& model);

// Whether the files have no language model head and a class that has none: such a model makes embeddings and no text.
bool lacksHead(const ModelSource& model);

}  // namespace headroom
