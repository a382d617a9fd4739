// SPDX-License-Identifier: Apache-2.0
// The inventory by formula: what a checkpoint of the configuration's family stores, tensor by tensor.
#include "core/model/model_family.h"
#include "core/model/tensor_inventory.h"
#include "core/model/tensor_split.h"

namespace headroom {
namespace {

class FormulaBuilder {
 public:
  explicit FormulaBuilder(const ModelConfig& config) : m_config(config) {
    const bool severalParts = config.raw.is_object() && config.raw.contains("text_config");
    m_prefix = severalParts ? "language_model.model." : "model.";
  }

  TensorInventory build() {
    const int64_t hidden = m_config.hiddenSize, vocab = m_config.vocabSize;
    add(TensorRole::TokenEmbedding, m_prefix + "embed_tokens.weight", {vocab, hidden});
    for (int layer = 0; layer < static_cast<int>(m_config.layerCount()); ++layer) addLayer(layer);
    add(TensorRole::FinalNorm, m_prefix + "norm.weight", {hidden});
    if (m_config.checkpoint.normBias) add(TensorRole::FinalNormBias, m_prefix + "norm.bias", {hidden});
    const bool tied = m_config.tieWordEmbeddings;
    if (!tied || m_config.checkpoint.tiedHeadStored) {
      add(TensorRole::LmHead, "lm_head.weight", {vocab, hidden});
      m_inventory.tensors.back().loaded = !tied;
      if (m_config.checkpoint.headBias) add(TensorRole::LmHeadBias, "lm_head.bias", {vocab});
    }
    return std::move(m_inventory);
  }

 private:
  TensorEntry& add(TensorRole role, std::string name, std::vector<int64_t> shape, int layer = -1) {
    TensorEntry entry;
    entry.name = std::move(name);
    entry.role = role;
    entry.layer = layer;
    entry.dtype = m_config.dtype;
    entry.shape = std::move(shape);
    expects(assignSplit(entry, m_config), "a formula's shape follows its configuration");
    m_inventory.tensors.push_back(std::move(entry));
    return m_inventory.tensors.back();
  }

  void addNorm(TensorRole role, TensorRole biasRole, const std::string& name, int layer) {
    add(role, name + ".weight", {m_config.hiddenSize}, layer);
    if (m_config.checkpoint.normBias) add(biasRole, name + ".bias", {m_config.hiddenSize}, layer);
  }

  void addNorms(const std::string& at, int layer) {
    const DecoderTraits& decoder = m_config.decoder;
    if (decoder.preNorm) addNorm(TensorRole::AttentionNorm, TensorRole::AttentionNormBias, at + "input_layernorm", layer);
    if (decoder.parallelBlock) return;
    if (m_config.modelType == "glm4") {
      add(TensorRole::PostAttentionNorm, at + "post_self_attn_layernorm.weight", {m_config.hiddenSize}, layer);
      add(TensorRole::FfnNorm, at + "post_attention_layernorm.weight", {m_config.hiddenSize}, layer);
      add(TensorRole::PostFfnNorm, at + "post_mlp_layernorm.weight", {m_config.hiddenSize}, layer);
      return;
    }
    if (!decoder.postNorm) return addNorm(TensorRole::FfnNorm, TensorRole::FfnNormBias, at + "post_attention_layernorm", layer);
    add(TensorRole::PostAttentionNorm, at + "post_attention_layernorm.weight", {m_config.hiddenSize}, layer);
    if (decoder.preNorm) add(TensorRole::FfnNorm, at + "pre_feedforward_layernorm.weight", {m_config.hiddenSize}, layer);
    add(TensorRole::PostFfnNorm, at + "post_feedforward_layernorm.weight", {m_config.hiddenSize}, layer);
  }

  void addAttention(const std::string& at, const LayerSpec& spec, int layer) {
    const int64_t hidden = m_config.hiddenSize;
    const int64_t q = spec.qHeads * spec.headDim, k = spec.kvHeads * spec.headDim, v = spec.kvHeads * spec.vHeadDim;
    const CheckpointTraits& stored = m_config.checkpoint;
    const auto projection = [&](TensorRole weight, TensorRole bias, const char* name, int64_t out, int64_t in, bool withBias) {
      add(weight, at + name + ".weight", {out, in}, layer);
      if (withBias) add(bias, at + name + ".bias", {out}, layer);
    };
    if (stored.fusedQkv) {
      projection(TensorRole::Qkv, TensorRole::QkvBias, "qkv_proj", q + k + v, hidden, stored.qkvBias);
    } else {
      projection(TensorRole::Q, TensorRole::QBias, "q_proj", q, hidden, stored.qkvBias);
      projection(TensorRole::K, TensorRole::KBias, "k_proj", k, hidden, stored.qkvBias);
      projection(TensorRole::V, TensorRole::VBias, "v_proj", v, hidden, stored.qkvBias);
    }
    projection(TensorRole::O, TensorRole::OBias, "o_proj", hidden, spec.qHeads * spec.vHeadDim, stored.outputBias);
    if (m_config.decoder.qkNorm || m_config.decoder.qkNormFullWidth) {
      add(TensorRole::QNorm, at + "q_norm.weight", {m_config.decoder.qkNormFullWidth ? q : spec.headDim}, layer);
      add(TensorRole::KNorm, at + "k_norm.weight", {m_config.decoder.qkNormFullWidth ? k : spec.headDim}, layer);
    }
    if (stored.inverseFrequencies) {
      TensorEntry& entry = add(TensorRole::Other, at + "rotary_emb.inv_freq", {spec.headDim / 2}, layer);
      entry.dtype = DType::F32;
      entry.loaded = false;
    }
  }

  void addMlp(const std::string& at, const LayerSpec& spec, int layer) {
    const int64_t hidden = m_config.hiddenSize, width = spec.intermediateSize;
    const bool bias = m_config.checkpoint.mlpBias;
    if (m_config.checkpoint.fusedGateUp) {
      add(TensorRole::GateUp, at + "gate_up_proj.weight", {2 * width, hidden}, layer);
    } else {
      if (m_config.decoder.gatedMlp) add(TensorRole::Gate, at + "gate_proj.weight", {width, hidden}, layer);
      if (m_config.decoder.gatedMlp && bias) add(TensorRole::GateBias, at + "gate_proj.bias", {width}, layer);
      add(TensorRole::Up, at + "up_proj.weight", {width, hidden}, layer);
      if (bias) add(TensorRole::UpBias, at + "up_proj.bias", {width}, layer);
    }
    add(TensorRole::Down, at + "down_proj.weight", {hidden, width}, layer);
    if (bias) add(TensorRole::DownBias, at + "down_proj.bias", {hidden}, layer);
  }

  void addLayer(int layer) {
    const LayerSpec& spec = m_config.layers[static_cast<size_t>(layer)];
    const std::string at = fmt::format("{}layers.{}.", m_prefix, layer);
    addNorms(at, layer);
    addAttention(at + "self_attn.", spec, layer);
    if (spec.ffn == FfnKind::Dense) addMlp(at + "mlp.", spec, layer);
  }

  const ModelConfig& m_config;
  std::string m_prefix;
  TensorInventory m_inventory;
};

}  // namespace

TensorInventory inventoryOfConfig(const ModelConfig& config) {
  return FormulaBuilder(config).build();
}

}  // namespace headroom
