// SPDX-License-Identifier: Apache-2.0
// Towers that several models share, by vision_config's model_type, and the models of several parts that are built of one, a
// projector and a language model of another family. Shapes follow the model classes of Hugging Face Transformers.
#include "core/model/inventory_extras.h"
#include "core/model/inventory_part.h"

#include <algorithm>
#include <array>

namespace headroom {
namespace {

constexpr int64_t kMostWidth = kMostPartWidth;

using Part = InventoryPart;

// CLIP, SigLIP and Idefics 3 share their layers.
void addClipLayers(InventoryBuilder& builder, const std::string& at, int64_t count, int64_t width, int64_t inner) {
  for (int64_t i = 0; i < count; ++i) {
    const std::string layer = numbered(at, i);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      builder.plainLinear(layer + "self_attn." + name, width, width, true);
    builder.layerNorm(layer + "layer_norm1", width, true);
    builder.layerNorm(layer + "layer_norm2", width, true);
    builder.plainLinear(layer + "mlp.fc1", inner, width, true);
    builder.plainLinear(layer + "mlp.fc2", width, inner, true);
  }
}

void addClip(InventoryBuilder& builder, const Part& tower) {
  const int64_t width = tower({"hidden_size"}, 768), inner = tower({"intermediate_size"}, 3072),
                patch = tower({"patch_size"}, 32), side = tower({"image_size"}, 224) / patch;
  const std::string at = "vision_tower.vision_model.";
  builder.tensor(at + "embeddings.class_embedding", {width});
  builder.tensor(at + "embeddings.patch_embedding.weight", {width, 3, patch, patch});
  builder.tensor(at + "embeddings.position_embedding.weight", {side * side + 1, width});
  builder.layerNorm(at + "pre_layrnorm", width, true);
  addClipLayers(builder, at + "encoder.layers.", tower({"num_hidden_layers"}, 12), width, inner);
  builder.layerNorm(at + "post_layernorm", width, true);
}

void addSiglip(InventoryBuilder& builder, const Part& tower, bool second, bool withHead) {
  const int64_t patch = tower({"patch_size"}, 16), side = tower({"image_size"}, 224) / patch;
  addSiglipEncoder(builder, "vision_tower.vision_model.",
                   {tower({"hidden_size"}, 768), tower({"intermediate_size"}, 3072), tower({"num_hidden_layers"}, 12), patch,
                    second ? tower({"num_patches"}, 256) : side * side, second},
                   withHead);
}

void addPixtral(InventoryBuilder& builder, const Part& tower) {
  const int64_t width = tower({"hidden_size"}, 1024), inner = tower({"intermediate_size"}, 4096),
                patch = tower({"patch_size"}, 16);
  const std::string at = "vision_tower.";
  builder.tensor(at + "patch_conv.weight", {width, 3, patch, patch});
  builder.tensor(at + "ln_pre.weight", {width});
  for (int64_t i = 0; i < tower({"num_hidden_layers"}, 24); ++i) {
    const std::string layer = numbered(at + "transformer.layers.", i);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      builder.plainLinear(layer + "attention." + name, width, width, false);
    for (const char* name : {"gate_proj", "up_proj"}) builder.plainLinear(layer + "feed_forward." + name, inner, width, false);
    builder.plainLinear(layer + "feed_forward.down_proj", width, inner, false);
    for (const char* norm : {"attention_norm", "ffn_norm"}) builder.layerNorm(layer + norm, width, false);
  }
}

// InternVL's tower under the names of Transformers, or (`original`) of its own code, which fuses q, k and v.
void addInternVit(InventoryBuilder& builder, const Part& tower, bool original) {
  const int64_t width = tower({"hidden_size"}, original ? 3200 : 1024),
                inner = tower({"intermediate_size"}, original ? 12800 : 4096), patch = tower.side("patch_size", 14),
                side = tower.side("image_size", 448) / patch;
  const bool layerNorms = (original ? tower.text("norm_type") : tower.text("norm_type")) != "rms_norm";
  const bool bias = tower.flag(original ? "qkv_bias" : "attention_bias", original),
             queryNorm = tower.flag(original ? "qk_normalization" : "use_qk_norm", original);
  const std::string at = original ? "vision_model." : "vision_tower.";
  builder.tensor(at + (original ? "embeddings.class_embedding" : "embeddings.cls_token"), {1, 1, width});
  builder.tensor(at + (original ? "embeddings.position_embedding" : "embeddings.position_embeddings"),
                 {1, side * side + 1, width});
  const std::string embed = at + (original ? "embeddings.patch_embedding" : "embeddings.patch_embeddings.projection");
  builder.tensor(embed + ".weight", {width, 3, patch, patch});
  builder.tensor(embed + ".bias", {width});
  for (int64_t i = 0; i < tower({"num_hidden_layers"}, original ? 48 : 24); ++i) {
    const std::string layer = numbered(at + (original ? "encoder.layers." : "encoder.layer."), i);
    if (original) {
      builder.plainLinear(layer + "attn.qkv", 3 * width, width, bias);
      builder.plainLinear(layer + "attn.proj", width, width, true);
    } else {
      for (const char* name : {"q_proj", "k_proj", "v_proj"})
        builder.plainLinear(layer + "attention." + name, width, width, bias);
      builder.plainLinear(layer + "attention.projection_layer", width, width, true);
    }
    if (queryNorm)
      for (const char* name : {"q_norm", "k_norm"})
        builder.layerNorm(layer + (original ? "attn." : "attention.") + name, width, false);
    builder.plainLinear(layer + "mlp.fc1", inner, width, true);
    builder.plainLinear(layer + "mlp.fc2", width, inner, true);
    for (const char* name : {"norm1", "norm2"}) builder.layerNorm(layer + name, width, layerNorms);
    for (const char* name : {"ls1", "ls2"}) builder.tensor(layer + name, {width});
  }
}

using AddTower = void (*)(InventoryBuilder&, const Part&, bool siglipHead);

// By vision_config's model_type; null: not known.
AddTower towerOfType(std::string_view type) {
  if (type == "clip_vision_model") return [](InventoryBuilder& builder, const Part& tower, bool) { addClip(builder, tower); };
  if (type == "siglip_vision_model" || type.starts_with("idefics3") || type.starts_with("smolvlm"))
    return [](InventoryBuilder& builder, const Part& tower, bool head) { addSiglip(builder, tower, false, head); };
  if (type == "siglip2_vision_model")
    return [](InventoryBuilder& builder, const Part& tower, bool head) { addSiglip(builder, tower, true, head); };
  if (type == "pixtral") return [](InventoryBuilder& builder, const Part& tower, bool) { addPixtral(builder, tower); };
  if (type == "internvl_vision")
    return [](InventoryBuilder& builder, const Part& tower, bool) { addInternVit(builder, tower, false); };
  if (type.starts_with("intern_vit"))
    return [](InventoryBuilder& builder, const Part& tower, bool) { addInternVit(builder, tower, true); };
  return nullptr;
}

// Other kinds of towers are left out; countsVisionTower() tells.
void addTower(InventoryBuilder& builder, bool siglipHead = false) {
  const Part tower(builder, "vision_config");
  if (const AddTower add = towerOfType(tower.text("model_type")))
    add(builder, tower, siglipHead && tower.flag("vision_use_head", true));
}

int64_t towerWidth(InventoryBuilder& builder, int64_t otherwise = 1024) {
  return Part(builder, "vision_config")({"hidden_size"}, otherwise);
}

// Two layers from the tower's width to the language model's.
void addTwoLayers(InventoryBuilder& builder, int64_t in, bool bias) {
  const int64_t hidden = builder.config().hiddenSize;
  builder.plainLinear("multi_modal_projector.linear_1", hidden, in, bias);
  builder.plainLinear("multi_modal_projector.linear_2", hidden, hidden, bias);
}

void addLlava(InventoryBuilder& builder) {
  addTower(builder);
  const auto* layer = builder.keys().find({"vision_feature_layer"});  // features of several layers stand side by side
  const int64_t layers =
      layer && layer->is_array() ? std::max<int64_t>(1, std::min<int64_t>(64, static_cast<int64_t>(layer->size()))) : 1;
  addTwoLayers(builder, layers * towerWidth(builder), builder.keys().flag({"multimodal_projector_bias"}).value_or(true));
}

void addLlavaNext(InventoryBuilder& builder) {
  addLlava(builder);
  builder.tensor("image_newline", {builder.config().hiddenSize});
}

void addMistral3(InventoryBuilder& builder) {
  addTower(builder);
  const int64_t width = towerWidth(builder), merge = builder.keys().integer({"spatial_merge_size"}, 1, 64).value_or(2);
  builder.tensor("multi_modal_projector.norm.weight", {width});
  builder.plainLinear("multi_modal_projector.patch_merger.merging_layer", width, width * merge * merge, false);
  addTwoLayers(builder, width, builder.keys().flag({"multimodal_projector_bias"}).value_or(false));
}

void addInternVl(InventoryBuilder& builder) {
  addTower(builder);
  const int64_t width = towerWidth(builder, 3200), hidden = builder.config().hiddenSize;
  const double ratio = builder.keys().number({"downsample_ratio"}, 0.01, 1.0).value_or(0.5);
  const auto merged = static_cast<int64_t>(static_cast<double>(width) / (ratio * ratio));
  const bool original = Part(builder, "vision_config").text("model_type").starts_with("intern_vit");
  const std::string at = original ? "mlp1." : "multi_modal_projector.";
  builder.layerNorm(at + (original ? "0" : "layer_norm"), merged, true);
  builder.plainLinear(at + (original ? "1" : "linear_1"), hidden, merged, true);
  builder.plainLinear(at + (original ? "3" : "linear_2"), hidden, hidden, true);
}

void addIdefics3(InventoryBuilder& builder) {
  addTower(builder);
  const int64_t width = towerWidth(builder, 1152), scale = builder.keys().integer({"scale_factor"}, 1, 64).value_or(2);
  builder.plainLinear("model.connector.modality_projection.proj", builder.config().hiddenSize, width * scale * scale, false);
}

void addPaliGemma(InventoryBuilder& builder) {
  addTower(builder);
  builder.plainLinear("multi_modal_projector.linear", builder.config().hiddenSize, towerWidth(builder, 1152), true);
}

// Two halves of a gated layer between.
void addCohereVision(InventoryBuilder& builder, bool norm) {
  addTower(builder, true);
  const int64_t width = towerWidth(builder, 1152), hidden = builder.config().hiddenSize,
                factor = builder.keys().integer({"downsample_factor"}, 1, 64).value_or(2), merged = width * factor * factor;
  const int64_t between = builder.keys().integer({"alignment_intermediate_size"}, 2, kMostWidth).value_or(norm ? hidden : 36864);
  if (norm) builder.layerNorm("multi_modal_projector.layernorm", merged, true);
  builder.plainLinear("multi_modal_projector.linear_1", between, merged, true);
  builder.plainLinear("multi_modal_projector.linear_2", hidden, between / 2, true);
}
void addAyaVision(InventoryBuilder& builder) { addCohereVision(builder, true); }
void addCohere2Vision(InventoryBuilder& builder) { addCohereVision(builder, false); }

void addLfm2Vl(InventoryBuilder& builder) {
  addTower(builder, true);
  const int64_t width = towerWidth(builder, 1152), factor = builder.keys().integer({"downsample_factor"}, 1, 64).value_or(2),
                merged = width * factor * factor,
                between = builder.keys().integer({"projector_hidden_size"}, 1, kMostWidth).value_or(2560);
  const bool bias = builder.keys().flag({"projector_bias"}).value_or(true);
  if (builder.keys().flag({"projector_use_layernorm"}).value_or(true))
    builder.layerNorm("multi_modal_projector.layer_norm", merged, true);
  builder.plainLinear("multi_modal_projector.linear_1", between, merged, bias);
  builder.plainLinear("multi_modal_projector.linear_2", builder.config().hiddenSize, between, bias);
}

void addGlm4v(InventoryBuilder& builder) {
  const Part tower(builder, "vision_config");
  if (!tower.present()) return;
  const int64_t width = tower({"hidden_size"}, 1536), out = tower({"out_hidden_size"}, 4096), patch = tower({"patch_size"}, 14),
                merge = tower({"spatial_merge_size"}, 2), side = tower({"image_size"}, 336) / patch,
                between = tower({"intermediate_size"}, 13696);
  const bool bias = tower.flag("attention_bias", false);
  const std::string at = "model.visual.";
  builder.tensor(at + "embeddings.position_embedding.weight", {side * side, width});
  builder.tensor(at + "patch_embed.proj.weight", {width, 3, tower({"temporal_patch_size"}, 2), patch, patch});
  builder.tensor(at + "patch_embed.proj.bias", {width});
  for (int64_t i = 0; i < tower({"depth"}, 24); ++i) {
    const std::string block = numbered(at + "blocks.", i);
    for (const char* norm : {"norm1", "norm2"}) builder.layerNorm(block + norm, width, false);
    builder.plainLinear(block + "attn.qkv", 3 * width, width, bias);
    builder.plainLinear(block + "attn.proj", width, width, false);
    for (const char* name : {"mlp.gate_proj", "mlp.up_proj"}) builder.plainLinear(block + name, out, width, false);
    builder.plainLinear(block + "mlp.down_proj", width, out, false);
  }
  builder.plainLinear(at + "merger.proj", out, out, false);
  builder.layerNorm(at + "merger.post_projection_norm", out, true);
  for (const char* name : {"merger.gate_proj", "merger.up_proj"}) builder.plainLinear(at + name, between, out, false);
  builder.plainLinear(at + "merger.down_proj", out, between, false);
  for (const char* norm : {"post_conv_layernorm", "post_layernorm"}) builder.layerNorm(at + norm, width, false);
  builder.tensor(at + "downsample.weight", {out, width, merge, merge});
  builder.tensor(at + "downsample.bias", {out});
}

// Kimi-VL's tower, with a norm of the tower's own width before the projector.
void addKimiVl(InventoryBuilder& builder) {
  const Part tower(builder, "vision_config");
  if (!tower.present()) return;
  const int64_t width = tower({"hidden_size"}, 1152), inner = tower({"intermediate_size"}, 4304),
                patch = tower({"patch_size"}, 14);
  const int64_t merged = width * 4;
  builder.tensor("vision_tower.patch_embed.proj.weight", {width, 3, patch, patch});
  builder.tensor("vision_tower.patch_embed.proj.bias", {width});
  builder.tensor("vision_tower.patch_embed.pos_emb.weight",
                 {tower({"init_pos_emb_height"}, 64), tower({"init_pos_emb_width"}, 64), width});
  for (int64_t i = 0; i < tower({"num_hidden_layers"}, 27); ++i) {
    const std::string block = numbered("vision_tower.encoder.blocks.", i);
    for (const char* norm : {"norm0", "norm1"}) builder.layerNorm(block + norm, width, true);
    builder.plainLinear(block + "wqkv", 3 * width, width, true);
    builder.plainLinear(block + "wo", width, width, true);
    builder.plainLinear(block + "mlp.fc0", inner, width, true);
    builder.plainLinear(block + "mlp.fc1", width, inner, true);
  }
  builder.layerNorm("vision_tower.encoder.final_layernorm", width, true);
  builder.layerNorm("multi_modal_projector.pre_norm", width, true);
  builder.plainLinear("multi_modal_projector.linear_1", merged, merged, true);
  builder.plainLinear("multi_modal_projector.linear_2", builder.config().hiddenSize, merged, true);
}

// Ovis 2 looks its images up in a table of visual words; https://arxiv.org/abs/2405.20797
void addOvis2(InventoryBuilder& builder) {
  const Part tower(builder, "vision_config");
  const int64_t width = tower({"hidden_size"}, 1024), inner = tower({"intermediate_size"}, 2816),
                patch = tower({"patch_size"}, 14), side = tower({"image_size"}, 224) / patch,
                words = tower({"vocab_size"}, 16384), marks = tower({"num_visual_indicator_tokens"}, 5),
                stride = tower({"hidden_stride"}, 1);
  const bool bias = tower.flag("qkv_bias", false), mlpBias = tower.flag("mlp_bias", false);
  const std::string at = "vision_tower.transformer.";
  builder.tensor(at + "embeddings.patch_embedding.weight", {width, 3, patch, patch});
  builder.tensor(at + "embeddings.patch_embedding.bias", {width});
  builder.tensor(at + "embeddings.position_embedding.weight", {side * side, width});
  builder.layerNorm(at + "embeddings.rms_norm", width, false);
  for (int64_t i = 0; i < tower({"num_hidden_layers"}, 24); ++i) {
    const std::string layer = numbered(at + "encoder.layers.", i);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      builder.plainLinear(layer + "attention." + name, width, width, bias);
    for (const char* name : {"gate_proj", "up_proj"}) builder.plainLinear(layer + "ffn." + name, inner, width, mlpBias);
    builder.plainLinear(layer + "ffn.down_proj", width, inner, mlpBias);
    for (const char* norm : {"rms_norm1", "rms_norm2"}) builder.layerNorm(layer + norm, width, false);
  }
  builder.layerNorm(at + "rms_norm", width, false);
  builder.plainLinear("vision_tower.head_linear", words - marks, width * stride * stride, false);
  builder.layerNorm("vision_tower.head_norm", words - marks, true);
  builder.tensor("visual_embeddings_table.weight", {words, builder.config().hiddenSize});
}

void addDeepseekVl(InventoryBuilder& builder) {
  addTower(builder, true);
  const int64_t hidden = builder.config().hiddenSize;
  builder.plainLinear("aligner.linear1", hidden, towerWidth(builder), true);
  builder.plainLinear("aligner.linear2", hidden, hidden, true);
}

// SigLIP whose patches are merged twice, two by two: inside the tower, after some of its layers, and before the text.
void addMiniCpmV46(InventoryBuilder& builder) {
  const Part tower(builder, "vision_config");
  const int64_t width = tower({"hidden_size"}, 768), inner = tower({"intermediate_size"}, 3072),
                patch = tower.side("patch_size", 16), side = tower.side("image_size", 224) / patch,
                hidden = builder.config().hiddenSize;
  const std::string at = "vision_tower.";
  addSiglipEncoder(builder, at, {width, inner, tower({"num_hidden_layers"}, 12), patch, side * side}, false);
  const int64_t window = tower.side("window_kernel_size", 2), windowWidth = width * window * window;
  for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
    builder.plainLinear(at + "vit_merger.self_attn." + name, width, width, true);
  builder.layerNorm(at + "vit_merger.layer_norm1", width, true);
  builder.layerNorm(at + "vit_merger.pre_norm", windowWidth, true);
  builder.plainLinear(at + "vit_merger.linear_1", inner * window * window, windowWidth, true);
  builder.plainLinear(at + "vit_merger.linear_2", width, inner * window * window, true);
  const int64_t merged = 4 * width, times = builder.keys().integer({"merger_times"}, 1, 16).value_or(1);
  for (int64_t i = 0; i < times; ++i) {
    const std::string step = numbered("merger.mlp.", i);
    builder.layerNorm(step + "pre_norm", merged, true);
    builder.plainLinear(step + "linear_1", merged, merged, true);
    builder.plainLinear(step + "linear_2", i + 1 == times ? hidden : width, merged, true);
  }
}

}  // namespace

// Merges two by two patches, then two frames; https://arxiv.org/abs/2509.22186
void addErnieVlTower(InventoryBuilder& builder) {
  const Part tower(builder, "vision_config");
  if (!tower.present()) return;
  const int64_t width = tower({"hidden_size", "embed_dim"}, 1280), patch = tower({"patch_size"}, 14),
                inner = tower({"intermediate_size"}, width * tower({"mlp_ratio"}, 4)), merge = tower({"spatial_merge_size"}, 2),
                frames = tower({"temporal_merge_size"}, 2), spatial = width * merge * merge, hidden = builder.config().hiddenSize;
  const std::string at = "vision_tower.", join = "resampler_model.";
  builder.plainLinear(at + "patch_embed.proj", width, tower({"in_channels", "in_chans"}, 3) * patch * patch, false);
  for (int64_t i = 0; i < tower({"depth"}, 32); ++i) {
    const std::string block = numbered(at + "blocks.", i);
    for (const char* norm : {"norm1", "norm2"}) builder.layerNorm(block + norm, width, true);
    builder.plainLinear(block + "attn.qkv", 3 * width, width, true);
    builder.plainLinear(block + "attn.proj", width, width, true);
    builder.plainLinear(block + "mlp.fc1", inner, width, true);
    builder.plainLinear(block + "mlp.fc2", width, inner, true);
  }
  builder.layerNorm(at + "ln", width, true);
  for (const auto& [name, in] :
       {std::pair<const char*, int64_t>{"spatial_linear.", spatial}, {"temporal_linear.", spatial * frames}}) {
    builder.plainLinear(join + name + "fc1", spatial, in, true);
    builder.plainLinear(join + name + "fc2", spatial, spatial, true);
    builder.layerNorm(join + name + "ln", spatial, true);
  }
  builder.plainLinear(join + "mlp", hidden, spatial, true);
  builder.layerNorm(join + "after_norm", hidden, false);
}

namespace {

constexpr std::array kWrappers = {
    WrapperFamily{"llava", "llama", addLlava},
    WrapperFamily{"llava_next llava_next_video llava_onevision", "llama", addLlavaNext},
    WrapperFamily{"mistral3", "mistral", addMistral3},
    WrapperFamily{"internvl internvl_chat", "qwen2", addInternVl},
    WrapperFamily{"idefics3 smolvlm", "llama", addIdefics3},
    WrapperFamily{"paligemma", "gemma", addPaliGemma},
    WrapperFamily{"aya_vision", "cohere2", addAyaVision},
    WrapperFamily{"cohere2_vision", "cohere2", addCohere2Vision},
    WrapperFamily{"lfm2_vl lfm2-vl", "lfm2", addLfm2Vl},
    WrapperFamily{"glm4v glm46v", "glm4", addGlm4v, true},
    WrapperFamily{"glm4v_moe", "glm4_moe", addGlm4v, true},
    WrapperFamily{"kimi_vl", "deepseek_v3", addKimiVl, true},
    WrapperFamily{"ovis2", "qwen2", addOvis2, true},
    WrapperFamily{"deepseek_vl", "llama", addDeepseekVl},
    WrapperFamily{"minicpmv4_6 minicpmv4_7", "qwen3_5", addMiniCpmV46, true},
    WrapperFamily{"ernie4_5_moe_vl ernie4_5_vl_moe", "ernie4_5_vl_moe_text", addErnieVlTower, true},
    WrapperFamily{"qwen2_audio", "qwen2", addQwen2Audio, false, true},
    WrapperFamily{"voxtral", "llama", addVoxtral, false, true},
    WrapperFamily{"granite_speech", "granite", addGraniteSpeech, false, true},
    WrapperFamily{"qwen2_5_omni", "qwen2", addQwen25Omni, true, true},
    WrapperFamily{"qwen3_omni_moe", "qwen3_moe", addQwen3Omni, true, true},
    // Towers of these are not counted.
    WrapperFamily{"minicpmv minicpmo ovis", "qwen2", nullptr},
    WrapperFamily{"deepseek_vl_v2", "deepseek_v2", nullptr},
};

}  // namespace

void addSiglipEncoder(InventoryBuilder& builder, const std::string& at, const SiglipSizes& sizes, bool head) {
  const int64_t width = sizes.width, inner = sizes.inner, patch = sizes.patch;
  if (sizes.flatPatches)
    builder.tensor(at + "embeddings.patch_embedding.weight", {width, 3 * patch * patch});
  else
    builder.tensor(at + "embeddings.patch_embedding.weight", {width, 3, patch, patch});
  builder.tensor(at + "embeddings.patch_embedding.bias", {width});
  builder.tensor(at + "embeddings.position_embedding.weight", {sizes.positions, width});
  addClipLayers(builder, at + "encoder.layers.", sizes.layers, width, inner);
  builder.layerNorm(at + "post_layernorm", width, true);
  if (!head) return;
  builder.tensor(at + "head.probe", {1, 1, width});
  builder.tensor(at + "head.attention.in_proj_weight", {3 * width, width});
  builder.tensor(at + "head.attention.in_proj_bias", {3 * width});
  builder.plainLinear(at + "head.attention.out_proj", width, width, true);
  builder.layerNorm(at + "head.layernorm", width, true);
  builder.plainLinear(at + "head.mlp.fc1", inner, width, true);
  builder.plainLinear(at + "head.mlp.fc2", width, inner, true);
}

// OpenAI's CLIP at 336 pixels, without its last layer; https://huggingface.co/allenai/Molmo-7B-D-0924
void addMolmoTower(InventoryBuilder& builder) {
  constexpr int64_t kWidth = 1024, kInner = 4096, kLayers = 23, kPositions = 577, kPatch = 14;
  const std::string at = "model.vision_backbone.image_vit.";
  builder.tensor(at + "class_embedding", {kWidth});
  builder.tensor(at + "positional_embedding", {kPositions, kWidth});
  builder.tensor(at + "patch_embedding.weight", {kWidth, 3 * kPatch * kPatch});
  builder.layerNorm(at + "pre_ln", kWidth, true);
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string block = numbered(at + "transformer.resblocks.", i);
    for (const char* name : {"wq", "wk", "wv", "wo"}) builder.plainLinear(block + "attention." + name, kWidth, kWidth, true);
    builder.plainLinear(block + "feed_forward.w1", kInner, kWidth, true);
    builder.plainLinear(block + "feed_forward.w2", kWidth, kInner, true);
    for (const char* norm : {"attention_norm", "ffn_norm"}) builder.layerNorm(block + norm, kWidth, true);
  }
  // Features of two layers side by side.
  const std::string pool = "model.vision_backbone.image_pooling_2d.";
  for (const char* name : {"wq", "wk", "wv"}) builder.plainLinear(pool + name, kWidth, 2 * kWidth, true);
  builder.plainLinear(pool + "wo", kWidth, kWidth, true);
  const int64_t hidden = builder.config().hiddenSize, between = builder.config().intermediateSize;
  for (const char* name : {"w1", "w3"})
    builder.plainLinear(std::string("model.vision_backbone.image_projector.") + name, between, kWidth, false);
  builder.plainLinear("model.vision_backbone.image_projector.w2", hidden, between, false);
  builder.tensor("model.vision_backbone.pad_embed", {2, 2 * kWidth});
}

// The same CLIP, whole, and two layers behind four patches side by side; https://huggingface.co/microsoft/Phi-3.5-vision-instruct
void addPhi3Tower(InventoryBuilder& builder) {
  constexpr int64_t kWidth = 1024, kInner = 4096, kLayers = 24, kPositions = 577, kPatch = 14;
  const std::string at = "model.vision_embed_tokens.", tower = at + "img_processor.vision_model.";
  builder.tensor(tower + "embeddings.class_embedding", {kWidth});
  builder.tensor(tower + "embeddings.patch_embedding.weight", {kWidth, 3, kPatch, kPatch});
  builder.tensor(tower + "embeddings.position_embedding.weight", {kPositions, kWidth});
  builder.layerNorm(tower + "pre_layrnorm", kWidth, true);
  addClipLayers(builder, tower + "encoder.layers.", kLayers, kWidth, kInner);
  builder.layerNorm(tower + "post_layernorm", kWidth, true);
  builder.tensor(at + "glb_GN", {1, 1, 4 * kWidth});
  builder.tensor(at + "sub_GN", {1, 1, 1, 4 * kWidth});
  const int64_t hidden = builder.config().hiddenSize;
  builder.plainLinear(at + "img_projection.0", hidden, 4 * kWidth, true);
  builder.plainLinear(at + "img_projection.2", hidden, hidden, true);
}

bool countsVisionTower(const ConfigReader& keys, const ModelFamily& family, const WrapperFamily* wrapper) {
  if (!wrapper) {
    // Extras of a family are towers, prediction layers, or other things.
    constexpr std::array<void (*)(InventoryBuilder&), 5> kNoTowers{addDeepseekMtp, addQwenMtp, addNemotronMtp, addDeepseekV4Parts,
                                                                   addChatGlmFrequencies};
    return family.extras != nullptr && std::find(kNoTowers.begin(), kNoTowers.end(), family.extras) == kNoTowers.end() &&
           family.modelTypes.find("gemma3n") == std::string_view::npos;
  }
  if (wrapper->ownTower) return true;
  return wrapper->extras && towerOfType(keys.object("vision_config").text({"model_type"}).value_or("")) != nullptr;
}

std::span<const WrapperFamily> wrapperFamilies() { return kWrappers; }

}  // namespace headroom
