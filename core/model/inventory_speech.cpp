// SPDX-License-Identifier: Apache-2.0
// Encoders of speech and sound, and the models around a language model that hear: their encoder, what joins it to the text, and
// the tower for images where there is one too. Shapes follow the model classes of Hugging Face Transformers.
#include "core/model/inventory_extras.h"
#include "core/model/inventory_part.h"

namespace headroom {
namespace {

void addConvolution(InventoryBuilder& builder, const std::string& name, std::vector<int64_t> shape, bool bias = true) {
  const int64_t out = shape.front();
  builder.tensor(name + ".weight", std::move(shape));
  if (bias) builder.tensor(name + ".bias", {out});
}

// Whisper's encoder layers; https://arxiv.org/abs/2212.04356
void addWhisperLayers(InventoryBuilder& builder, const std::string& at, int64_t count, int64_t width, int64_t inner,
                      bool keyBias) {
  for (int64_t i = 0; i < count; ++i) {
    const std::string layer = numbered(at, i);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      builder.plainLinear(layer + "self_attn." + name, width, width, keyBias || std::string_view(name) != "k_proj");
    builder.plainLinear(layer + "fc1", inner, width, true);
    builder.plainLinear(layer + "fc2", width, inner, true);
    for (const char* norm : {"self_attn_layer_norm", "final_layer_norm"}) builder.layerNorm(layer + norm, width, true);
  }
}

// Two convolutions over the spectrum before them.
void addWhisperStem(InventoryBuilder& builder, const std::string& at, const InventoryPart& audio, int64_t width) {
  addConvolution(builder, at + "conv1", {width, audio({"num_mel_bins"}, 128), 3});
  addConvolution(builder, at + "conv2", {width, width, 3});
}

void addWhisperEncoder(InventoryBuilder& builder, const InventoryPart& audio, int64_t width, int64_t inner, int64_t layers) {
  const std::string at = "audio_tower.";
  addWhisperStem(builder, at, audio, width);
  builder.tensor(at + "embed_positions.weight", {audio({"max_source_positions"}, 1500), width});
  addWhisperLayers(builder, at + "layers.", layers, width, inner, false);
  builder.layerNorm(at + "layer_norm", width, true);
}

// SigLIP with two layers behind it, and a conformer with two projections: of speech, and of speech beside images;
// https://arxiv.org/abs/2503.01743
void addPhi4Vision(InventoryBuilder& builder) {
  const InventoryPart vision(builder, "vision_config");
  const int64_t hidden = builder.config().hiddenSize, width = vision({"hidden_size"}, 1152),
                inner = vision({"intermediate_size"}, 4304), patch = vision.side("patch_size", 14),
                side = vision.side("image_size", 448) / patch;
  const std::string at = "model.embed_tokens_extend.image_embed.";
  addSiglipEncoder(builder, at + "img_processor.", {width, inner, vision({"num_hidden_layers"}, 27), patch, side * side}, true);
  builder.plainLinear(at + "img_projection_up", hidden, width, true);
  builder.plainLinear(at + "img_projection_down", hidden, hidden, true);
  builder.tensor(at + "global_img_feature_extensor", {1, 1, width});
  builder.tensor(at + "sub_img_feature_extensor", {1, 1, 1, width});
}

// `reach`: distances of the attention's bias where the file is silent.
void addPhi4Conformer(InventoryBuilder& builder, const std::string& at, const InventoryPart& audio, int64_t reach) {
  const int64_t width = audio({"hidden_size"}, 1024), inner = audio({"intermediate_size"}, 1536),
                heads = audio({"num_attention_heads"}, 16), kernel = audio({"kernel_size"}, 3),
                point = audio({"ext_pw_out_channel"}, 1024), depth = audio({"depthwise_separable_out_channel"}, 1024),
                multiplier = audio({"depthwise_multiplier"}, 1), bins = audio({"input_size"}, 80),
                channels = audio({"nemo_conv_channels"}, 1024), reduction = audio({"time_reduction"}, 8);
  for (const char* name : {"encoder_embedding.global_mean", "encoder_embedding.global_invstd"}) builder.tensor(at + name, {bins});
  // A plain convolution, then pairs along and across the channels, each halving time and spectrum.
  addConvolution(builder, at + "embed.conv.0", {channels, 1, 3, 3});
  int64_t place = 2, left = ceilDiv(bins, 2);
  for (int64_t factor = 4; factor <= reduction; factor *= 2, place += 3, left = ceilDiv(left, 2)) {
    addConvolution(builder, fmt::format("{}embed.conv.{}", at, place), {channels, 1, 3, 3});
    addConvolution(builder, fmt::format("{}embed.conv.{}", at, place + 1), {channels, channels, 1, 1});
  }
  builder.plainLinear(at + "embed.out", width, channels * left, true);
  // One bias a distance, and one of the other direction where the two differ.
  const int64_t distances = audio({"bias_max_distance"}, reach) * (audio.flag("bias_symmetric", false) ? 1 : 2);
  builder.tensor(at + "relative_attention_bias_layer.bias_values.weight", {distances, heads});
  for (int64_t i = 0; i < audio({"num_blocks"}, 24); ++i) {
    const std::string layer = numbered(at + "encoders.", i);
    for (const char* part : {"feed_forward_in.", "feed_forward_out."}) {
      builder.layerNorm(layer + part + "layer_norm", width, true);
      builder.plainLinear(layer + part + "gate_up_proj", 2 * inner, width, true);
      builder.plainLinear(layer + part + "down_proj", width, inner, true);
    }
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      builder.plainLinear(layer + "self_attn." + name, width, width, true);
    const std::string conv = layer + "conv.";
    builder.layerNorm(conv + "layer_norm", width, true);
    addConvolution(builder, conv + "glu.ext_pw_conv_1d", {2 * point, width, 1});
    for (const char* name : {"glu.b1", "glu.b2"}) builder.tensor(conv + name, {1, point, 1});
    addConvolution(builder, conv + "dw_sep_conv_1d.dw_conv", {width * multiplier, 1, kernel});
    addConvolution(builder, conv + "dw_sep_conv_1d.pw_conv", {depth, width * multiplier, 1});
    addConvolution(builder, conv + "ext_pw_conv_1d", {point, width, 1});
    for (const char* norm : {"layer_norm_att", "layer_norm"}) builder.layerNorm(layer + norm, width, true);
  }
}

}  // namespace

void addQwen2Audio(InventoryBuilder& builder) {
  const InventoryPart audio(builder, "audio_config");
  const int64_t width = audio({"d_model"}, 1280);
  addWhisperEncoder(builder, audio, width, audio({"encoder_ffn_dim"}, 5120), audio({"encoder_layers"}, 32));
  builder.plainLinear("multi_modal_projector.linear", builder.config().hiddenSize, width, true);
}

// Four frames side by side go into the projector.
void addVoxtral(InventoryBuilder& builder) {
  const InventoryPart audio(builder, "audio_config");
  const int64_t inner = audio({"intermediate_size"}, 5120), hidden = builder.config().hiddenSize;
  addWhisperEncoder(builder, audio, audio({"hidden_size"}, 1280), inner, audio({"num_hidden_layers"}, 32));
  builder.plainLinear("multi_modal_projector.linear_1", hidden, inner, false);
  builder.plainLinear("multi_modal_projector.linear_2", hidden, hidden, false);
}

// What hears and sees; what speaks (talker, vocoder) stands outside the language model and is not loaded by servers of text.
void addQwen25Omni(InventoryBuilder& builder) {
  const InventoryPart audio(builder, "audio_config");
  const int64_t width = audio({"d_model"}, 1280), out = audio({"output_dim"}, 3584);
  const std::string at = "thinker.audio_tower.";
  addWhisperStem(builder, at, audio, width);
  builder.tensor(at + "audio_bos_eos_token.weight", {2, out});
  addWhisperLayers(builder, at + "layers.", audio({"encoder_layers"}, 32), width, audio({"encoder_ffn_dim"}, 5120), false);
  builder.layerNorm(at + "ln_post", width, true);
  builder.plainLinear(at + "proj", out, width, true);
  addQwen25VlTower(builder);
}

void addQwen3Omni(InventoryBuilder& builder) {
  const InventoryPart audio(builder, "audio_config");
  const int64_t width = audio({"d_model"}, 1280), channels = audio({"downsample_hidden_size"}, 480),
                bins = audio({"num_mel_bins"}, 128);
  const std::string at = "thinker.audio_tower.";
  addConvolution(builder, at + "conv2d1", {channels, 1, 3, 3});
  for (const char* name : {"conv2d2", "conv2d3"}) addConvolution(builder, at + name, {channels, channels, 3, 3});
  builder.plainLinear(at + "conv_out", width, channels * ceilDiv(ceilDiv(ceilDiv(bins, 2), 2), 2), false);
  addWhisperLayers(builder, at + "layers.", audio({"encoder_layers"}, 32), width, audio({"encoder_ffn_dim"}, 5120), true);
  builder.layerNorm(at + "ln_post", width, true);
  builder.plainLinear(at + "proj1", width, width, true);
  builder.plainLinear(at + "proj2", audio({"output_dim"}, 3584), width, true);
  addQwen3VlTower(builder);
}

namespace {
void addPhi4Senses(InventoryBuilder& builder, int64_t reach) {
  addPhi4Vision(builder);
  const InventoryPart audio(builder, "audio_config");
  const int64_t hidden = builder.config().hiddenSize, features = audio({"hidden_size"}, 1024) * audio({"downsample_rate"}, 1);
  const std::string at = "model.embed_tokens_extend.audio_embed.";
  addPhi4Conformer(builder, at + "encoder.", audio, reach);
  for (const char* kind : {"speech", "vision_speech"}) {
    builder.plainLinear(fmt::format("{}up_proj_for_{}", at, kind), hidden, features, true);
    builder.plainLinear(fmt::format("{}down_proj_for_{}", at, kind), hidden, hidden, true);
  }
}
}  // namespace

void addPhi4Parts(InventoryBuilder& builder) { addPhi4Senses(builder, 1000); }
// As Microsoft publishes it: https://huggingface.co/microsoft/Phi-4-multimodal-instruct
void addPhi4MmParts(InventoryBuilder& builder) { addPhi4Senses(builder, 500); }

// Low-rank adapters of the language model, one set for images and one for speech; servers leave them out or treat them as LoRA.
void writePhi4Adapters(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  const InventoryBuilder::Unloaded scope(builder);
  const int64_t hidden = builder.config().hiddenSize, q = spec.qHeads * spec.headDim, kv = spec.kvHeads * spec.headDim;
  const struct {
    const char* module;
    int64_t out, in;
  } adapted[] = {{"self_attn.qkv_proj", q + 2 * kv, hidden},
                 {"self_attn.o_proj", hidden, q},
                 {"mlp.gate_up_proj", 2 * spec.intermediateSize, hidden},
                 {"mlp.down_proj", hidden, spec.intermediateSize}};
  for (const auto& [sense, rank] : {std::pair("vision", InventoryPart(builder, "vision_lora")({"r"}, 256)),
                                    std::pair("speech", InventoryPart(builder, "speech_lora")({"r"}, 320))})
    for (const auto& [module, out, in] : adapted) {
      builder.tensor(fmt::format("{}{}.lora_A.{}.weight", at, module, sense), {rank, in}, layer);
      builder.tensor(fmt::format("{}{}.lora_B.{}.weight", at, module, sense), {out, rank}, layer);
    }
}

// A conformer, and a query transformer between it and the text; https://arxiv.org/abs/2505.08699
void addGraniteSpeech(InventoryBuilder& builder) {
  const InventoryPart audio(builder, "encoder_config"), projector(builder, "projector_config");
  const int64_t width = audio({"hidden_dim"}, 1024), inner = width * audio({"feedforward_mult"}, 4),
                heads = audio({"num_heads"}, 8), dim = audio({"dim_head"}, std::max<int64_t>(1, width / heads)),
                wide = width * audio({"conv_expansion_factor"}, 2), kernel = audio({"conv_kernel_size"}, 15),
                out = audio({"output_dim"}, 42);
  builder.plainLinear("encoder.input_linear", width, audio({"input_dim"}, 160), true);
  for (int64_t i = 0; i < audio({"num_layers"}, 10); ++i) {
    const std::string layer = numbered("encoder.layers.", i);
    for (const char* part : {"ff1.", "ff2."}) {
      builder.layerNorm(layer + part + "pre_norm", width, true);
      builder.plainLinear(layer + part + "up_proj", inner, width, true);
      builder.plainLinear(layer + part + "down_proj", width, inner, true);
    }
    builder.layerNorm(layer + "attn.pre_norm", width, true);
    builder.plainLinear(layer + "attn.to_q", heads * dim, width, false);
    builder.plainLinear(layer + "attn.to_kv", 2 * heads * dim, width, false);
    builder.plainLinear(layer + "attn.to_out", width, heads * dim, true);
    builder.tensor(layer + "attn.rel_pos_emb.weight", {2 * audio({"max_pos_emb"}, 512) + 1, dim});
    builder.layerNorm(layer + "conv.norm", width, true);
    addConvolution(builder, layer + "conv.up_conv", {2 * wide, width, 1});
    addConvolution(builder, layer + "conv.depth_conv.conv", {wide, 1, kernel}, false);
    builder.layerNorm(layer + "conv.batch_norm", wide, true);
    for (const char* running : {"running_mean", "running_var"}) builder.tensor(layer + "conv.batch_norm." + running, {wide});
    builder.tensor(layer + "conv.batch_norm.num_batches_tracked", {});
    addConvolution(builder, layer + "conv.down_conv", {width, wide, 1});
    builder.layerNorm(layer + "post_norm", width, true);
  }
  builder.plainLinear("encoder.out", out, width, true);
  builder.plainLinear("encoder.out_mid", width, out, true);

  const int64_t hidden = builder.config().hiddenSize, query = projector({"hidden_size"}, 768),
                seen = projector({"encoder_hidden_size"}, 1408), between = projector({"intermediate_size"}, 3072),
                every = projector({"cross_attention_frequency"}, 2);
  const int64_t window = builder.keys().integer({"window_size"}, 1, 1 << 16).value_or(15),
                rate = builder.keys().integer({"downsample_rate"}, 1, 1 << 16).value_or(5);
  builder.tensor("projector.query", {1, std::max<int64_t>(1, window / rate), query});
  builder.layerNorm("projector.qformer.layernorm", query, true);
  for (int64_t i = 0; i < projector({"num_hidden_layers"}, 12); ++i) {
    const std::string layer = numbered("projector.qformer.encoder.layer.", i);
    const auto attention = [&](const std::string& at, int64_t from) {
      builder.plainLinear(at + "attention.query", query, query, true);
      for (const char* name : {"attention.key", "attention.value"}) builder.plainLinear(at + name, query, from, true);
      builder.plainLinear(at + "output.dense", query, query, true);
      builder.layerNorm(at + "output.LayerNorm", query, true);
    };
    attention(layer + "attention.", query);
    if (i % every == 0) attention(layer + "crossattention.", seen);
    builder.plainLinear(layer + "intermediate_query.dense", between, query, true);
    builder.plainLinear(layer + "output_query.dense", query, between, true);
    builder.layerNorm(layer + "output_query.LayerNorm", query, true);
  }
  builder.plainLinear("projector.linear", hidden, query, true);
}

bool countsAudioTower(const ModelFamily& family, const WrapperFamily* wrapper) {
  if (wrapper) return wrapper->hears;
  return family.extras == addPhi4Parts || family.extras == addPhi4MmParts;
}

}  // namespace headroom
