// SPDX-License-Identifier: Apache-2.0
// Private to core/model: what the code of each model family knows and its config.json does not say. One family is one row of the table
// in model_family.cpp; a family with keys of its own adds one function.
#pragma once

#include "core/model/config_reader.h"
#include "core/model/model_config.h"

#include <string_view>

namespace headroom {

// Which projections have biases.
enum class BiasRule : uint8_t {
  Key,         // attention_bias: q, k, v and o
  KeyQkv,      // attention_bias: q, k and v only
  AlwaysQkv,   // q, k and v without a key
  UseBias,     // use_bias (or bias): attention, MLP and norms
  Never,
};

enum class QkNormRule : uint8_t { None, PerHead, FullWidth, Key /* use_qk_norm: per head */ };

// Where a layer's norms stand.
enum class NormPlaces : uint8_t {
  Before,          // input_layernorm, post_attention_layernorm
  After,           // OLMo 2: post_attention_layernorm, post_feedforward_layernorm
  BeforeAndAfter,  // Gemma 2: four
  Single,          // Cohere: one for both branches, which run in parallel
};

// Which layers see a window, where layer_types is silent.
enum class WindowRule : uint8_t {
  None,
  AllLayers,         // sliding_window alone decides (Mistral)
  FromMaxWindow,     // use_sliding_window, from layer max_window_layers on (Qwen2)
  EveryOther,        // even layers (Gemma 2, gpt-oss)
  AllButEveryNth,    // the last of each sliding_window_pattern is full (Gemma 3, Cohere 2)
};

struct ModelFamily;

// What a family's function may look at and change.
struct FamilyContext {
  const ConfigReader& keys;
  const ModelFamily& family;
  ModelConfig& config;
};

struct ModelFamily {
  std::string_view modelTypes;    // values of model_type, separated by spaces
  std::string_view architecture;  // the class that config.json names
  BiasRule bias = BiasRule::Key;
  QkNormRule qkNorm = QkNormRule::None;
  NormPlaces norms = NormPlaces::Before;
  WindowRule window = WindowRule::None;
  bool tiedByDefault = false;
  NormKind norm = NormKind::RmsNorm;
  double normEpsilon = 1e-6;       // where the file is silent
  double normWeightOffset = 0.0;
  bool gatedMlp = true;
  Activation activation = Activation::Silu;
  bool fusedQkv = false, fusedGateUp = false;
  double partialRotary = 1.0;
  RopeStyle ropeStyle = RopeStyle::Neox;
  double ropeTheta = 10000.0;
  int64_t vocabSize = 0;           // class default; 0: the key is required
  void (*adjust)(FamilyContext) = nullptr;
};

// Empty for a type that is not in the table.
const ModelFamily* findModelFamily(std::string_view modelType);

}  // namespace headroom
