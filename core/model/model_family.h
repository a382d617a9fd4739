// SPDX-License-Identifier: Apache-2.0
// Private to core/model: what the code of each model family knows and its config.json does not say. One family is one row of the
// table in model_family.cpp; a family with keys of its own adds one function.
#pragma once

#include "core/model/config_reader.h"
#include "core/model/model_config.h"

#include <span>
#include <string>
#include <string_view>

namespace headroom {

// Which projections have biases.
enum class BiasRule : uint8_t {
  Key,        // attention_bias: q, k, v and o
  KeyQkv,     // attention_bias: q, k and v only
  AlwaysQkv,  // q, k and v without a key
  UseBias,    // use_bias (or bias): attention, MLP and norms
  Always,     // attention, MLP and norms
  Never,
};

enum class QkNormRule : uint8_t { None, PerHead, FullWidth, Key /* use_qk_norm: per head */ };

// Where a layer's norms stand.
enum class NormPlaces : uint8_t {
  Before,          // input_layernorm, post_attention_layernorm
  After,           // OLMo 2: post_attention_layernorm, post_feedforward_layernorm
  BeforeAndAfter,  // Gemma 2: four
  OnePerMixer,     // Nemotron-H: one before the layer's only branch
  Single,          // Cohere: one for both branches, which run in parallel
  Weightless,      // OLMo: before each branch, without weights
};

// Which layers see a window, where layer_types is silent.
enum class WindowRule : uint8_t {
  None,
  AllLayers,       // sliding_window alone decides (Mistral)
  FromMaxWindow,   // use_sliding_window, from layer max_window_layers on (Qwen2)
  EveryOther,      // even layers (Gemma 2, gpt-oss)
  AllButEveryNth,  // the last of each sliding_window_pattern is full (Gemma 3, Cohere 2)
};

// How a checkpoint spells its tensors; defaults are Llama's. "{}" in experts stands for the expert's number.
struct TensorNames {
  std::string_view model = "model.", embedding = "embed_tokens", layers = "layers.", finalNorm = "norm", head = "lm_head";
  std::string_view attentionNorm = "input_layernorm", ffnNorm = "post_attention_layernorm";
  std::string_view attention = "self_attn.", q = "q_proj", k = "k_proj", v = "v_proj", o = "o_proj", qkv = "qkv_proj",
                   qNorm = "q_norm", kNorm = "k_norm";
  std::string_view mlp = "mlp.", gate = "gate_proj", up = "up_proj", down = "down_proj", gateUp = "gate_up_proj";
  std::string_view moe = "mlp.", router = "gate", expertGate = "gate_proj", expertUp = "up_proj", expertDown = "down_proj";
  std::string_view shared = "mlp.shared_experts.", routerBias = "gate.e_score_correction_bias";
};

// How a checkpoint stores the experts of a layer.
enum class ExpertStyle : uint8_t {
  PerExpert,     // experts.N.gate_proj.weight
  FusedRows,     // one tensor (experts, 2 * width, hidden)
  FusedColumns,  // one tensor (experts, hidden, 2 * width)
};

// Sizes that the configuration class takes where a file leaves them out, as files of several parts often do. 0: not known here.
struct ClassSizes {
  int64_t hidden = 0, layers = 0, qHeads = 0, kvHeads = 0, headDim = 0, intermediate = 0, vocabulary = 0;
};

struct ModelFamily;
class InventoryBuilder;

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
  double normEpsilon = 1e-6;  // where the file is silent
  double normWeightOffset = 0.0;
  bool gatedMlp = true;
  bool attentionFree = false;  // no layer has heads
  Activation activation = Activation::Silu;
  bool fusedQkv = false, fusedGateUp = false;
  double partialRotary = 1.0;
  RopeStyle ropeStyle = RopeStyle::Neox;
  double ropeTheta = 10000.0;
  int64_t vocabSize = 0;               // class default; 0: the key is required
  int64_t positions = 0;               // class default of max_position_embeddings; 0: unknown without the key
  int64_t mlpRatio = 0;                // width of the MLP over hidden_size where the file gives none; 0: the key is required
  const ClassSizes* sizes = nullptr;   // class defaults of the sizes
  const TensorNames* names = nullptr;  // where they are not Llama's
  // Layers come in pairs that the checkpoint gives one number: names of the second of each pair (LongCat).
  const TensorNames* secondNames = nullptr;
  ExpertStyle experts = ExpertStyle::PerExpert;
  std::string_view lacks = {};              // what the engine lacks beside what layers and traits tell
  void (*adjust)(FamilyContext) = nullptr;  // keys of its own
  void (*layerExtras)(InventoryBuilder&, const LayerSpec&, int layer, const std::string& at) = nullptr;  // tensors of its layers
  bool ownLayers = false, ownAttention = false;  // layerExtras write all of a layer, or its attention
  void (*extras)(InventoryBuilder&) = nullptr;  // tensors outside the decoder's layers
};

// A model of several parts whose language model is a family of its own, named by model_type inside text_config.
struct WrapperFamily {
  std::string_view modelTypes;  // values of the outer model_type, separated by spaces
  std::string_view language;    // the family where text_config names none
  void (*extras)(InventoryBuilder&) = nullptr;
  bool ownTower = false;  // extras write a tower of their own, whatever vision_config names
  bool hears = false;     // extras write the encoder of audio_config
};

// Empty for a type that is not in the table.
const ModelFamily* findModelFamily(std::string_view modelType);
const WrapperFamily* findWrapperFamily(std::string_view modelType);

// Parts of the two tables, by files: model_family.cpp holds what the engine runs or was built for, the others their siblings.
std::span<const ModelFamily> siblingFamilies();
std::span<const ModelFamily> hybridFamilies();
std::span<const WrapperFamily> wrapperFamilies();

}  // namespace headroom
