// SPDX-License-Identifier: Apache-2.0
// Shapes follow the model classes of Hugging Face Transformers.
#include "core/model/inventory_extras.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr int64_t kMostWidth = 1 << 15;

// Sizes of a vision tower, under any of the names the families use.
class Tower {
 public:
  explicit Tower(InventoryBuilder& builder) : m_keys(builder.keys().object("vision_config")) {}
  int64_t operator()(ConfigReader::Keys names, int64_t otherwise) const {
    return m_keys.integer(names, 1, kMostWidth).value_or(otherwise);
  }
  const ConfigReader& keys() const { return m_keys; }
  bool present() const { return !m_keys.json().empty(); }

 private:
  ConfigReader m_keys;
};

std::string numbered(std::string_view prefix, int64_t index) { return fmt::format("{}{}.", prefix, index); }

}  // namespace

void addDeepseekMtp(InventoryBuilder& builder) {
  const ModelConfig& config = builder.config();
  const int64_t hidden = config.hiddenSize;
  LayerSpec spec = config.layers.back();
  // The prediction layer selects for itself, also where the decoder's layers share an indexer.
  for (const auto& layer : config.layers) spec.indexer = spec.indexer || layer.indexer;
  const InventoryBuilder::Unloaded scope(builder);
  for (int64_t i = 0; i < config.checkpoint.mtpLayers; ++i) {
    const int layer = static_cast<int>(config.layerCount() + i);
    const std::string at = fmt::format("{}layers.{}.", builder.prefix(), layer);
    writeLayer(builder, spec, layer, at);
    builder.tensor(at + "enorm.weight", {hidden}, layer);
    builder.tensor(at + "hnorm.weight", {hidden}, layer);
    builder.tensor(at + "eh_proj.weight", {hidden, 2 * hidden}, layer);
    builder.tensor(at + "shared_head.norm.weight", {hidden}, layer);
    if (!config.checkpoint.mtpEmbeddings) continue;
    builder.tensor(at + "embed_tokens.weight", {config.vocabSize, hidden}, layer);
    builder.tensor(at + "shared_head.head.weight", {config.vocabSize, hidden}, layer);
  }
}

void addDeepseekV4Parts(InventoryBuilder& builder) {
  const ModelConfig& config = builder.config();
  const int64_t hidden = config.hiddenSize, streams = builder.keys().integer({"hc_mult"}, 1, 64).value_or(4);
  const auto join = [&](const std::string& at) {
    builder.tensor(at + "hc_fn", {streams, streams * hidden});
    builder.tensor(at + "hc_base", {streams});
    builder.tensor(at + "hc_scale", {1});
  };
  join(builder.prefix() + "hc_head.");
  const InventoryBuilder::Unloaded scope(builder);
  for (int64_t i = 0; i < config.checkpoint.mtpLayers; ++i) {
    const std::string at = numbered("mtp.", i);
    writeLayer(builder, config.layers.back(), static_cast<int>(config.layerCount() + i), at);
    for (const char* projection : {"e_proj.weight", "h_proj.weight"}) builder.tensor(at + projection, {hidden, hidden});
    for (const char* norm : {"enorm.weight", "hnorm.weight", "norm.weight"}) builder.tensor(at + norm, {hidden});
    join(at);
  }
}

void addQwenMtp(InventoryBuilder& builder) {
  const ModelConfig& config = builder.config();
  const int64_t hidden = config.hiddenSize;
  LayerSpec attending = config.layers.back();
  for (const auto& layer : config.layers)
    if (layer.attention == AttentionKind::Full) attending = layer;
  const InventoryBuilder::Unloaded scope(builder);
  for (int64_t i = 0; i < config.checkpoint.mtpLayers; ++i)
    writeLayer(builder, attending, static_cast<int>(config.layerCount() + i), numbered("mtp.layers.", i));
  if (config.checkpoint.mtpLayers == 0) return;
  builder.tensor("mtp.fc.weight", {hidden, 2 * hidden});
  for (const char* norm : {"mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.norm.weight"})
    builder.tensor(norm, {hidden});
}

void addNemotronMtp(InventoryBuilder& builder) {
  const ModelConfig& config = builder.config();
  const auto pattern = builder.keys().text({"mtp_hybrid_override_pattern"});
  if (!pattern || config.checkpoint.mtpLayers == 0) return;
  const int64_t hidden = config.hiddenSize;
  const InventoryBuilder::Unloaded scope(builder);
  for (size_t i = 0; i < pattern->size(); ++i) {
    const LayerSpec* like = nullptr;
    for (const auto& layer : config.layers)
      if (((*pattern)[i] == '*' && layer.attention == AttentionKind::Full) ||
          ((*pattern)[i] == 'E' && layer.ffn == FfnKind::MixtureOfExperts))
        like = &layer;
    if (like)
      writeLayer(builder, *like, static_cast<int>(config.layerCount() + static_cast<int64_t>(i)),
                 numbered("mtp.layers.", static_cast<int64_t>(i)));
  }
  builder.tensor("mtp.eh_proj.weight", {hidden, 2 * hidden});
  for (const char* norm : {"mtp.enorm.weight", "mtp.hnorm.weight", "mtp.final_layernorm.weight"}) builder.tensor(norm, {hidden});
}

void addSiglipTower(InventoryBuilder& builder) {
  const Tower tower(builder);
  if (!tower.present()) return;
  const int64_t width = tower({"hidden_size"}, 1152), inner = tower({"intermediate_size"}, 4304),
                layers = tower({"num_hidden_layers"}, 27);
  const int64_t patch = tower({"patch_size"}, 14), image = tower({"image_size"}, 896), side = image / patch;
  const std::string at = "vision_tower.vision_model.";
  builder.tensor(at + "embeddings.patch_embedding.weight", {width, 3, patch, patch});
  builder.tensor(at + "embeddings.patch_embedding.bias", {width});
  builder.tensor(at + "embeddings.position_embedding.weight", {side * side, width});
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = numbered(at + "encoder.layers.", i);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      builder.plainLinear(layer + "self_attn." + name, width, width, true);
    builder.layerNorm(layer + "layer_norm1", width, true);
    builder.layerNorm(layer + "layer_norm2", width, true);
    builder.plainLinear(layer + "mlp.fc1", inner, width, true);
    builder.plainLinear(layer + "mlp.fc2", width, inner, true);
  }
  builder.layerNorm(at + "post_layernorm", width, true);
  builder.tensor("multi_modal_projector.mm_input_projection_weight", {width, builder.config().hiddenSize});
  builder.tensor("multi_modal_projector.mm_soft_emb_norm.weight", {width});
}

namespace {

// Qwen2-VL and Qwen2.5-VL share patches, merger and names.
void addQwenTower(InventoryBuilder& builder, bool second) {
  const Tower tower(builder);
  if (!tower.present()) return;
  const int64_t width = second ? tower({"hidden_size"}, 1280) : tower({"embed_dim"}, 1280), depth = tower({"depth"}, 32),
                patch = tower({"patch_size", "spatial_patch_size"}, 14);
  const int64_t inner = second ? tower({"intermediate_size"}, 3420) : width * tower({"mlp_ratio"}, 4);
  const int64_t merged = width * tower({"spatial_merge_size"}, 2) * tower({"spatial_merge_size"}, 2);
  const std::string visual = builder.outer() + "visual.";
  builder.tensor(visual + "patch_embed.proj.weight", {width, 3, tower({"temporal_patch_size"}, 2), patch, patch});
  for (int64_t i = 0; i < depth; ++i) {
    const std::string at = numbered(visual + "blocks.", i);
    builder.layerNorm(at + "norm1", width, !second);
    builder.layerNorm(at + "norm2", width, !second);
    if (builder.outer().empty())
      builder.plainLinear(at + "attn.qkv", 3 * width, width, true);
    else
      for (const char* name : {"attn.q", "attn.k", "attn.v"}) builder.plainLinear(at + name, width, width, true);
    builder.plainLinear(at + "attn.proj", width, width, true);
    if (second) builder.plainLinear(at + "mlp.gate_proj", inner, width, true);
    builder.plainLinear(at + (second ? "mlp.up_proj" : "mlp.fc1"), inner, width, true);
    builder.plainLinear(at + (second ? "mlp.down_proj" : "mlp.fc2"), width, inner, true);
  }
  builder.layerNorm(visual + "merger.ln_q", width, !second);
  builder.plainLinear(visual + "merger.mlp.0", merged, merged, true);
  builder.plainLinear(visual + "merger.mlp.2", builder.config().hiddenSize, merged, true);
}

}  // namespace

void addQwen2VlTower(InventoryBuilder& builder) { addQwenTower(builder, false); }

void addQwen25VlTower(InventoryBuilder& builder) { addQwenTower(builder, true); }

void addQwen3VlTower(InventoryBuilder& builder) {
  const Tower tower(builder);
  if (!tower.present()) return;
  const int64_t width = tower({"hidden_size"}, 1152), inner = tower({"intermediate_size"}, 4304), depth = tower({"depth"}, 27),
                patch = tower({"patch_size"}, 16);
  const int64_t merge = tower({"spatial_merge_size"}, 2), merged = width * merge * merge,
                out = tower({"out_hidden_size"}, builder.config().hiddenSize);
  const bool omni = !builder.outer().empty();  // the same tower under other names
  const std::string at = omni ? builder.outer() + "visual." : "model.visual.";
  builder.tensor(at + "patch_embed.proj.weight", {width, 3, tower({"temporal_patch_size"}, 2), patch, patch});
  builder.tensor(at + "patch_embed.proj.bias", {width});
  builder.tensor(at + "pos_embed.weight", {tower({"num_position_embeddings"}, 2304), width});
  for (int64_t i = 0; i < depth; ++i) {
    const std::string block = numbered(at + "blocks.", i);
    builder.layerNorm(block + "norm1", width, true);
    builder.layerNorm(block + "norm2", width, true);
    builder.plainLinear(block + "attn.qkv", 3 * width, width, true);
    builder.plainLinear(block + "attn.proj", width, width, true);
    builder.plainLinear(block + "mlp.linear_fc1", inner, width, true);
    builder.plainLinear(block + "mlp.linear_fc2", width, inner, true);
  }
  const auto merger = [&](const std::string& name, int64_t norm) {
    builder.layerNorm(name + (omni ? "ln_q" : "norm"), norm, true);
    builder.plainLinear(name + (omni ? "mlp.0" : "linear_fc1"), merged, merged, true);
    builder.plainLinear(name + (omni ? "mlp.2" : "linear_fc2"), out, merged, true);
  };
  merger(at + "merger.", width);
  const auto taps = tower.keys().integers({"deepstack_visual_indexes"}, 0, 1024);
  for (size_t i = 0; i < taps.size(); ++i)
    merger(numbered(at + (omni ? "merger_list." : "deepstack_merger_list."), static_cast<int64_t>(i)), merged);
}

void addQwen35Parts(InventoryBuilder& builder) {
  addQwen3VlTower(builder);
  addQwenMtp(builder);
}

void addMllamaTower(InventoryBuilder& builder) {
  const Tower tower(builder);
  if (!tower.present()) return;
  const int64_t width = tower({"hidden_size"}, 1280), inner = tower({"intermediate_size"}, 5120),
                patch = tower({"patch_size"}, 14), image = tower({"image_size"}, 560);
  const int64_t positions = (image / patch) * (image / patch) + 1, tiles = std::min<int64_t>(tower({"max_num_tiles"}, 4), 64),
                output = tower({"vision_output_dim"}, 7680);
  const auto ratios = tower.keys().find({"supported_aspect_ratios"});
  const int64_t rows = (ratios && ratios->is_array() ? static_cast<int64_t>(std::min<size_t>(ratios->size(), 255)) : 8) + 1;
  const std::string at = "vision_model.";
  builder.tensor(at + "class_embedding", {width});
  builder.tensor(at + "patch_embedding.weight", {width, 3, patch, patch});
  builder.tensor(at + "gated_positional_embedding.gate", {1});
  builder.tensor(at + "gated_positional_embedding.embedding", {positions, width});
  builder.tensor(at + "gated_positional_embedding.tile_embedding.weight", {rows, tiles * positions * width});
  for (const char* name : {"pre_tile_positional_embedding.", "post_tile_positional_embedding."}) {
    builder.tensor(at + name + "gate", {1});
    builder.tensor(at + name + "embedding.weight", {rows, tiles * width});
  }
  builder.layerNorm(at + "layernorm_pre", width, true);
  builder.layerNorm(at + "layernorm_post", width, true);
  const auto blocks = [&](const std::string& name, int64_t count, bool gated) {
    for (int64_t i = 0; i < count; ++i) {
      const std::string layer = numbered(at + name, i);
      for (const char* projection : {"q_proj", "k_proj", "v_proj", "o_proj"})
        builder.plainLinear(layer + "self_attn." + projection, width, width, false);
      builder.plainLinear(layer + "mlp.fc1", inner, width, true);
      builder.plainLinear(layer + "mlp.fc2", width, inner, true);
      builder.layerNorm(layer + "input_layernorm", width, true);
      builder.layerNorm(layer + "post_attention_layernorm", width, true);
      if (gated) builder.tensor(layer + "gate_attn", {1});
      if (gated) builder.tensor(layer + "gate_ffn", {1});
    }
  };
  blocks("transformer.layers.", tower({"num_hidden_layers"}, 32), false);
  blocks("global_transformer.layers.", tower({"num_global_layers"}, 8), true);
  builder.plainLinear("multi_modal_projector", builder.config().hiddenSize, output, true);
}

void addLlama4Tower(InventoryBuilder& builder) {
  const Tower tower(builder);
  if (!tower.present()) return;
  const int64_t width = tower({"hidden_size"}, 1408), inner = tower({"intermediate_size"}, 5632),
                patch = tower({"patch_size"}, 14), image = tower({"image_size"}, 336);
  const int64_t positions = (image / patch) * (image / patch) + 1, projected = tower({"projector_input_dim"}, 4096),
                output = tower({"projector_output_dim"}, 4096);
  const std::string at = "vision_model.";
  builder.tensor(at + "class_embedding", {width});
  builder.tensor(at + "positional_embedding_vlm", {positions, width});
  builder.tensor(at + "patch_embedding.linear.weight", {width, 3 * patch * patch});
  builder.layerNorm(at + "layernorm_pre", width, true);
  builder.layerNorm(at + "layernorm_post", width, true);
  for (int64_t i = 0; i < tower({"num_hidden_layers"}, 34); ++i) {
    const std::string layer = numbered(at + "model.layers.", i);
    for (const char* projection : {"q_proj", "k_proj", "v_proj", "o_proj"})
      builder.plainLinear(layer + "self_attn." + projection, width, width, true);
    builder.plainLinear(layer + "mlp.fc1", inner, width, true);
    builder.plainLinear(layer + "mlp.fc2", width, inner, true);
    builder.layerNorm(layer + "input_layernorm", width, true);
    builder.layerNorm(layer + "post_attention_layernorm", width, true);
  }
  builder.plainLinear(at + "vision_adapter.mlp.fc1", projected, inner, false);
  builder.plainLinear(at + "vision_adapter.mlp.fc2", output, projected, false);
  builder.plainLinear("multi_modal_projector.linear_1", builder.config().hiddenSize, tower({"vision_output_dim"}, 4096), false);
}

namespace {

void addGemma4Tower(InventoryBuilder& builder) {
  const Tower tower(builder);
  if (!tower.present()) return;
  const int64_t width = tower({"hidden_size"}, 1152), inner = tower({"intermediate_size"}, 4304),
                patch = tower({"patch_size"}, 16);
  const int64_t heads = tower({"num_attention_heads"}, 16), kvHeads = tower({"num_key_value_heads"}, heads),
                dim = tower({"head_dim"}, 72);
  const std::string at = "model.vision_tower.";
  builder.tensor(at + "patch_embedder.position_embedding_table", {2, tower({"position_embedding_size"}, 10240), width});
  builder.tensor(at + "patch_embedder.input_proj.weight", {width, 3 * patch * patch});
  for (int64_t i = 0; i < tower({"num_hidden_layers"}, 27); ++i) {
    const std::string layer = numbered(at + "encoder.layers.", i);
    builder.plainLinear(layer + "self_attn.q_proj.linear", heads * dim, width, false);
    builder.plainLinear(layer + "self_attn.k_proj.linear", kvHeads * dim, width, false);
    builder.plainLinear(layer + "self_attn.v_proj.linear", kvHeads * dim, width, false);
    builder.plainLinear(layer + "self_attn.o_proj.linear", width, heads * dim, false);
    for (const char* norm : {"self_attn.q_norm", "self_attn.k_norm"}) builder.layerNorm(layer + norm, dim, false);
    for (const char* up : {"gate_proj", "up_proj"}) builder.plainLinear(layer + "mlp." + up + ".linear", inner, width, false);
    builder.plainLinear(layer + "mlp.down_proj.linear", width, inner, false);
    for (const char* norm :
         {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"})
      builder.layerNorm(layer + norm, width, false);
  }
  if (tower.keys().flag({"standardize"}).value_or(false))
    for (const char* name : {"std_bias", "std_scale"}) builder.tensor(at + name, {width});
  builder.tensor("model.embed_vision.embedding_projection.weight", {builder.config().hiddenSize, width});
}

}  // namespace

void writeLayerInputs(InventoryBuilder& builder, const LayerSpec&, int layer, const std::string& at) {
  const int64_t hidden = builder.config().hiddenSize,
                width = builder.keys().integer({"hidden_size_per_layer_input"}, 0, kMostWidth).value_or(0);
  if (width == 0) return;
  builder.tensor(at + "per_layer_input_gate.weight", {width, hidden}, layer);
  builder.tensor(at + "per_layer_projection.weight", {hidden, width}, layer);
  builder.tensor(at + "post_per_layer_input_norm.weight", {hidden}, layer);
}

void addLayerEmbeddings(InventoryBuilder& builder) {
  const ModelConfig& config = builder.config();
  const int64_t width = builder.keys().integer({"hidden_size_per_layer_input"}, 0, kMostWidth).value_or(0);
  if (width == 0) return;
  const int64_t rows = builder.keys().integer({"vocab_size_per_layer_input"}, 1, 1 << 26).value_or(config.vocabSize),
                all = config.layerCount() * width;
  builder.tensor(builder.prefix() + "embed_tokens_per_layer.weight", {rows, all});
  builder.tensor(builder.prefix() + "per_layer_model_projection.weight", {all, config.hiddenSize});
  builder.tensor(builder.prefix() + "per_layer_projection_norm.weight", {width});
}

void addGemma4Parts(InventoryBuilder& builder) {
  addLayerEmbeddings(builder);
  addGemma4Tower(builder);
}

void addMoonVitTower(InventoryBuilder& builder) {
  const Tower tower(builder);
  if (!tower.present()) return;
  const int64_t width = tower({"hidden_size", "vt_hidden_size"}, 1152),
                inner = tower({"intermediate_size", "vt_intermediate_size"}, 4304), patch = tower({"patch_size"}, 14);
  const int64_t merge = 2, merged = width * merge * merge;
  builder.tensor("vision_tower.patch_embed.proj.weight", {width, 3, patch, patch});
  builder.tensor("vision_tower.patch_embed.proj.bias", {width});
  builder.tensor("vision_tower.patch_embed.pos_emb.weight",
                 {tower({"init_pos_emb_height"}, 64), tower({"init_pos_emb_width"}, 64), width});
  for (int64_t i = 0; i < tower({"num_hidden_layers", "vt_num_hidden_layers"}, 27); ++i) {
    const std::string block = numbered("vision_tower.encoder.blocks.", i);
    builder.layerNorm(block + "norm0", width, true);
    builder.layerNorm(block + "norm1", width, true);
    builder.plainLinear(block + "attn.wqkv", 3 * width, width, true);
    builder.plainLinear(block + "attn.wo", width, width, true);
    builder.plainLinear(block + "mlp.fc0", inner, width, true);
    builder.plainLinear(block + "mlp.fc1", width, inner, true);
  }
  builder.layerNorm("vision_tower.encoder.final_layernorm", width, true);
  builder.layerNorm("mm_projector.pre_norm", width, true);
  builder.plainLinear("mm_projector.proj.0", merged, merged, true);
  builder.plainLinear("mm_projector.proj.2", builder.config().hiddenSize, merged, true);
}

// The rotary frequencies that ChatGLM's checkpoints carry.
void addChatGlmFrequencies(InventoryBuilder& builder) {
  const InventoryBuilder::Unloaded scope(builder);
  builder.tensor("transformer.rotary_pos_emb.inv_freq", {builder.config().rope.rotaryDim / 2});
}

}  // namespace headroom
