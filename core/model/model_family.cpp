// SPDX-License-Identifier: Apache-2.0
// The table of model families. Defaults are those of each family's configuration class in Hugging Face Transformers.
#include "core/model/model_family.h"

#include <array>
#include <cmath>

namespace headroom {
namespace {

void adjustGemma(FamilyContext context) {
  context.config.decoder.embeddingMultiplier = std::sqrt(static_cast<double>(context.config.hiddenSize));
}

void adjustGemma2(FamilyContext context) {
  adjustGemma(context);
  DecoderTraits& decoder = context.config.decoder;
  decoder.attentionScale = 1.0 / std::sqrt(context.keys.number({"query_pre_attn_scalar"}, 1e-6, 1e9).value_or(256.0));
  decoder.attentionSoftcap = context.keys.number({"attn_logit_softcapping"}, 0, 1e9).value_or(0.0);
  decoder.finalSoftcap = context.keys.number({"final_logit_softcapping"}, 0, 1e9).value_or(0.0);
}

void adjustGemma3(FamilyContext context) {
  adjustGemma2(context);
  ModelConfig& config = context.config;
  config.localRope.theta = context.keys.number({"rope_local_base_freq"}, 1, 1e12).value_or(10000.0);
  config.localRope.scaling = RopeScaling::None;
  config.localRope.factor = 1.0;
  for (auto& layer : config.layers) layer.localRope = layer.attention == AttentionKind::SlidingWindow;
}

void adjustSmolLm3(FamilyContext context) {
  ModelConfig& config = context.config;
  const auto rotates = context.keys.integers({"no_rope_layers"}, 0, 1);
  const int64_t interval = context.keys.integer({"no_rope_layer_interval"}, 1, 100000).value_or(4);
  for (size_t i = 0; i < config.layers.size(); ++i)
    config.layers[i].rope = rotates.empty() ? (static_cast<int64_t>(i) + 1) % interval != 0 : i < rotates.size() && rotates[i] == 1;
}

void adjustCohere(FamilyContext context) {
  ModelConfig& config = context.config;
  config.decoder.logitsMultiplier = context.keys.number({"logit_scale"}, 1e-9, 1e9).value_or(0.0625);
  for (auto& layer : config.layers)
    if (context.family.window == WindowRule::AllButEveryNth) layer.rope = layer.attention == AttentionKind::SlidingWindow;
}

void adjustGranite(FamilyContext context) {
  DecoderTraits& decoder = context.config.decoder;
  decoder.embeddingMultiplier = context.keys.number({"embedding_multiplier"}, 1e-9, 1e9).value_or(1.0);
  decoder.residualMultiplier = context.keys.number({"residual_multiplier"}, 1e-9, 1e9).value_or(1.0);
  decoder.logitsMultiplier = 1.0 / context.keys.number({"logits_scaling"}, 1e-9, 1e9).value_or(1.0);
  decoder.attentionScale = context.keys.number({"attention_multiplier"}, 1e-9, 1e9).value_or(1.0);
}

constexpr std::array kFamilies = {
    ModelFamily{.modelTypes = "llama", .architecture = "LlamaForCausalLM"},
    ModelFamily{.modelTypes = "mistral ministral", .architecture = "MistralForCausalLM", .bias = BiasRule::Never, .window = WindowRule::AllLayers},
    ModelFamily{.modelTypes = "ministral3", .architecture = "Ministral3ForCausalLM", .bias = BiasRule::Never, .window = WindowRule::AllLayers, .normEpsilon = 1e-5},
    ModelFamily{.modelTypes = "qwen2", .architecture = "Qwen2ForCausalLM", .bias = BiasRule::AlwaysQkv, .window = WindowRule::FromMaxWindow},
    ModelFamily{.modelTypes = "qwen3", .architecture = "Qwen3ForCausalLM", .qkNorm = QkNormRule::PerHead, .window = WindowRule::FromMaxWindow},
    ModelFamily{.modelTypes = "smollm3", .architecture = "SmolLM3ForCausalLM", .window = WindowRule::FromMaxWindow, .tiedByDefault = true, .ropeTheta = 2000000.0,
                .adjust = adjustSmolLm3},
    ModelFamily{.modelTypes = "mimo", .architecture = "MiMoForCausalLM", .bias = BiasRule::AlwaysQkv, .window = WindowRule::FromMaxWindow},
    ModelFamily{.modelTypes = "gemma", .architecture = "GemmaForCausalLM", .tiedByDefault = true, .normWeightOffset = 1.0, .activation = Activation::GeluTanh,
                .vocabSize = 256000, .adjust = adjustGemma},
    ModelFamily{.modelTypes = "gemma2", .architecture = "Gemma2ForCausalLM", .norms = NormPlaces::BeforeAndAfter, .window = WindowRule::EveryOther,
                .tiedByDefault = true, .normWeightOffset = 1.0, .activation = Activation::GeluTanh, .vocabSize = 256000, .adjust = adjustGemma2},
    ModelFamily{.modelTypes = "gemma3_text gemma3", .architecture = "Gemma3ForCausalLM", .qkNorm = QkNormRule::PerHead, .norms = NormPlaces::BeforeAndAfter,
                .window = WindowRule::AllButEveryNth, .tiedByDefault = true, .normWeightOffset = 1.0, .activation = Activation::GeluTanh, .ropeTheta = 1000000.0,
                .vocabSize = 262208, .adjust = adjustGemma3},
    ModelFamily{.modelTypes = "phi3", .architecture = "Phi3ForCausalLM", .bias = BiasRule::Never, .window = WindowRule::AllLayers, .normEpsilon = 1e-5,
                .fusedQkv = true, .fusedGateUp = true},
    ModelFamily{.modelTypes = "olmo2", .architecture = "Olmo2ForCausalLM", .qkNorm = QkNormRule::FullWidth, .norms = NormPlaces::After, .normEpsilon = 1e-5},
    ModelFamily{.modelTypes = "olmo3", .architecture = "Olmo3ForCausalLM", .qkNorm = QkNormRule::FullWidth, .norms = NormPlaces::After,
                .window = WindowRule::AllButEveryNth, .normEpsilon = 1e-5},
    ModelFamily{.modelTypes = "granite", .architecture = "GraniteForCausalLM", .adjust = adjustGranite},
    ModelFamily{.modelTypes = "glm4", .architecture = "Glm4ForCausalLM", .bias = BiasRule::KeyQkv, .norms = NormPlaces::BeforeAndAfter, .fusedGateUp = true,
                .partialRotary = 0.5, .ropeStyle = RopeStyle::Interleaved},
    ModelFamily{.modelTypes = "glm", .architecture = "GlmForCausalLM", .bias = BiasRule::KeyQkv, .fusedGateUp = true, .partialRotary = 0.5,
                .ropeStyle = RopeStyle::Interleaved},
    ModelFamily{.modelTypes = "cohere", .architecture = "CohereForCausalLM", .qkNorm = QkNormRule::Key, .norms = NormPlaces::Single, .tiedByDefault = true,
                .norm = NormKind::LayerNorm, .normEpsilon = 1e-5, .ropeStyle = RopeStyle::Interleaved, .adjust = adjustCohere},
    ModelFamily{.modelTypes = "cohere2", .architecture = "Cohere2ForCausalLM", .norms = NormPlaces::Single, .window = WindowRule::AllButEveryNth, .tiedByDefault = true,
                .norm = NormKind::LayerNorm, .normEpsilon = 1e-5, .ropeStyle = RopeStyle::Interleaved, .adjust = adjustCohere},
};

bool listsWord(std::string_view list, std::string_view word) {
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(' ', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

const ModelFamily* findModelFamily(std::string_view modelType) {
  for (const auto& family : kFamilies)
    if (listsWord(family.modelTypes, modelType)) return &family;
  return nullptr;
}

}  // namespace headroom
