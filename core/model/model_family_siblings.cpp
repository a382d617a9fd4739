// SPDX-License-Identifier: Apache-2.0
// The second part of the table of model families: those the planner counts and the engine does not run yet. Shapes follow the
// model classes of Hugging Face Transformers, or the code that comes with the checkpoint.
#include "core/model/inventory_extras.h"
#include "core/model/model_family.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom {
namespace {

SplitSegment queryHeads(const LayerSpec& spec, int64_t perHead) { return {SplitUnit::QHeads, spec.qHeads * perHead, perHead}; }

// ---- decoders after GPT-2 and their like ------------------------------------------------------------------------------------

void adjustOneKvHead(FamilyContext context) {
  ModelConfig& config = context.config;
  config.kvHeads = context.keys.flag({"multi_query"}).value_or(true) ? 1 : config.qHeads;
  for (auto& layer : config.layers) layer.kvHeads = config.kvHeads;
}

// Attention without biases, one norm for both branches, a bias of the head.
void adjustGptJ(FamilyContext context) {
  CheckpointTraits& stored = context.config.checkpoint;
  stored.qkvBias = stored.outputBias = false;
  stored.singleNorm = stored.headBias = true;
}

void adjustGptNeoX(FamilyContext context) {
  CheckpointTraits& stored = context.config.checkpoint;
  stored.qkvBias = stored.outputBias = context.keys.flag({"attention_bias"}).value_or(true);
}

void adjustPhi(FamilyContext context) {
  CheckpointTraits& stored = context.config.checkpoint;
  stored.singleNorm = stored.headBias = true;
  stored.qkNormBias = context.keys.flag({"qk_layernorm"}).value_or(false);
}

// Norms have biases, nothing else.
void adjustNormBias(FamilyContext context) { context.config.checkpoint.normBias = true; }

void adjustStableLm(FamilyContext context) {
  CheckpointTraits& stored = context.config.checkpoint;
  stored.normBias = true;
  stored.qkvBias = context.keys.flag({"use_qkv_bias"}).value_or(false);
  stored.singleNorm = context.keys.flag({"use_parallel_residual"}).value_or(false);
}

// Each head's norm has weights of its own.
void writeStableLmNorms(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  if (!builder.keys().flag({"qk_layernorm"}).value_or(false)) return;
  for (int64_t head = 0; head < spec.qHeads; ++head)
    builder.tensor(fmt::format("{}self_attn.q_layernorm.norms.{}.weight", at, head), {spec.headDim}, layer);
  for (int64_t head = 0; head < spec.kvHeads; ++head)
    builder.tensor(fmt::format("{}self_attn.k_layernorm.norms.{}.weight", at, head), {spec.headDim}, layer);
}

void adjustPersimmon(FamilyContext context) {
  const bool norms = context.keys.flag({"qk_layernorm"}).value_or(true);
  context.config.decoder.qkNorm = context.config.checkpoint.qkNormBias = norms;
}

void adjustMpt(FamilyContext context) {
  ModelConfig& config = context.config;
  if (const auto ratio = context.keys.number({"expansion_ratio"}, 0.1, 64.0)) {
    config.intermediateSize = static_cast<int64_t>(*ratio * static_cast<double>(config.hiddenSize));
    for (auto& layer : config.layers) layer.intermediateSize = config.intermediateSize;
  }
  if (context.keys.flag({"no_bias"}).value_or(true)) return;
  CheckpointTraits& stored = config.checkpoint;
  stored.qkvBias = stored.outputBias = stored.mlpBias = stored.normBias = true;
}

void adjustOpt(FamilyContext context) {
  if (context.keys.flag({"enable_bias"}).value_or(true)) return;
  CheckpointTraits& stored = context.config.checkpoint;
  stored.qkvBias = stored.outputBias = stored.mlpBias = false;
}

// ---- Llama's nearer kin -----------------------------------------------------------------------------------------------------

// q, k and v by one key, the output and the MLP by another.
void adjustInternLm3(FamilyContext context) {
  CheckpointTraits& stored = context.config.checkpoint;
  const bool bias = context.keys.flag({"bias"}).value_or(false);
  stored.qkvBias = context.keys.flag({"qkv_bias"}).value_or(false);
  stored.outputBias = stored.mlpBias = bias;
}

void adjustInternLm(FamilyContext context) {
  CheckpointTraits& stored = context.config.checkpoint;
  stored.qkvBias = stored.outputBias = context.keys.flag({"bias"}).value_or(true);
}

void adjustSeedOss(FamilyContext context) {
  CheckpointTraits& stored = context.config.checkpoint;
  stored.qkvBias = context.keys.flag({"attention_bias"}).value_or(true);
  stored.outputBias = context.keys.flag({"attention_out_bias"}).value_or(false);
  stored.mlpBias = context.keys.flag({"mlp_bias"}).value_or(false);
}

void adjustErnie(FamilyContext context) {
  CheckpointTraits& stored = context.config.checkpoint;
  stored.normBias = false;  // use_bias is of the projections
}

void adjustExaone4(FamilyContext context) {
  for (auto& layer : context.config.layers)
    if (context.keys.has("sliding_window")) layer.rope = layer.attention == AttentionKind::SlidingWindow;
}

// Four parameters of the activation; https://arxiv.org/abs/2411.13010
void writeXielu(InventoryBuilder& builder, const LayerSpec&, int layer, const std::string& at) {
  for (const char* one : {"alpha_p", "alpha_n"}) builder.tensor(fmt::format("{}mlp.act_fn.{}", at, one), {1}, layer);
  for (const char* one : {"beta", "eps"}) builder.tensor(fmt::format("{}mlp.act_fn.{}", at, one), {}, layer);
}

void writeBitNetNorms(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  builder.tensor(at + "self_attn.attn_sub_norm.weight", {builder.config().hiddenSize}, layer);
  builder.tensor(at + "mlp.ffn_sub_norm.weight", {spec.intermediateSize}, layer);
}

void writeHyperClovaNorms(InventoryBuilder& builder, const LayerSpec&, int layer, const std::string& at) {
  if (!builder.keys().flag({"use_post_norm"}).value_or(true)) return;
  for (const char* one : {"post_norm1.weight", "post_norm2.weight"})
    builder.tensor(at + one, {builder.config().hiddenSize}, layer);
}

void writeSinks(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  TensorEntry& sinks = builder.tensor(at + "self_attn.sinks", {spec.qHeads}, layer);
  sinks.splitDim = 0;
  sinks.segments = {queryHeads(spec, 1)};
}

// ---- mixtures of experts ----------------------------------------------------------------------------------------------------

void eachExpertLayer(FamilyContext context, void (*change)(LayerSpec&, const ConfigReader&)) {
  for (auto& layer : context.config.layers)
    if (layer.ffn == FfnKind::MixtureOfExperts) change(layer, context.keys);
}

void adjustRouterBias(FamilyContext context) {
  eachExpertLayer(context, [](LayerSpec& layer, const ConfigReader&) {
    layer.moe.routerBias = layer.moe.biasOnlyChooses = layer.moe.normalizeWeights = true;
    layer.moe.scoring = RouterScoring::Sigmoid;
  });
}

// The first layers are dense, by a key of the family's own.
void makeDense(ModelConfig& config, int64_t layers) {
  for (int64_t i = 0; i < std::min(layers, config.layerCount()); ++i) {
    config.layers[static_cast<size_t>(i)].ffn = FfnKind::Dense;
    config.layers[static_cast<size_t>(i)].moe = {};
  }
}

void adjustAfmoe(FamilyContext context) {
  adjustRouterBias(context);
  makeDense(context.config, context.keys.integer({"num_dense_layers"}, 0, 1024).value_or(1));
}

// Gates of the heads' outputs.
void writeAfmoeGate(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  builder.linear({.module = at + "self_attn.gate_proj",
                  .out = spec.qHeads * spec.headDim,
                  .in = builder.config().hiddenSize,
                  .layer = layer,
                  .splitDim = 0,
                  .segments = {queryHeads(spec, spec.headDim)}});
}

// Layers from moe_layer_start_index to moe_layer_end_index, every moe_layer_interval-th.
void adjustErnieMoe(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  const auto first = [&](std::string_view key, int64_t otherwise) {
    const auto* value = keys.find({key});  // one for each modality in the models with images
    if (value && value->is_array()) {
      const auto list = keys.integers({key}, -1, 1024);
      return list.empty() ? otherwise : list.front();
    }
    return keys.integer({key}, -1, 1024).value_or(otherwise);
  };
  const int64_t begin = first("moe_layer_start_index", 1), interval = std::max<int64_t>(1, first("moe_layer_interval", 1));
  int64_t end = first("moe_layer_end_index", -1);
  if (end < 0) end = config.layerCount() - 1;
  for (int64_t i = 0; i < config.layerCount(); ++i) {
    LayerSpec& layer = config.layers[static_cast<size_t>(i)];
    if ((i + 1) % interval == 0 && i >= begin && i <= end) {
      layer.moe.routerBias = layer.moe.biasOnlyChooses = layer.moe.normalizeWeights = true;
      continue;
    }
    layer.ffn = FfnKind::Dense;
    layer.moe = {};
  }
  config.checkpoint.normBias = false;
}

// Experts of images beside those of the text, fewer columns wide. Lists hold one value for each of the two.
void writeErnieImageExperts(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  if (spec.ffn != FfnKind::MixtureOfExperts) return;
  const ConfigReader& keys = builder.keys();
  const auto second = [&](std::string_view key, int64_t most, int64_t otherwise) {
    const auto* value = keys.find({key});
    if (!value || !value->is_array()) return otherwise;
    const auto list = keys.integers({key}, 1, most);
    return list.size() > 1 ? list[1] : otherwise;
  };
  const int64_t hidden = builder.config().hiddenSize, experts = second("moe_num_experts", 4096, spec.moe.experts),
                width = second("moe_intermediate_size", 1 << 20, spec.moe.expertIntermediate);
  builder.tensor(at + "mlp.gate.weight_1", {experts, hidden}, layer).dtype = DType::F32;
  builder.tensor(at + "mlp.gate.e_score_correction_bias_1", {experts}, layer).dtype = DType::F32;
  const SplitSegment columns{SplitUnit::ExpertColumns, width, 1};
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    const bool down = std::string_view(name) == "down_proj";
    builder.linear({.module = fmt::format("{}mlp.image_experts.*.{}", at, name),
                    .out = down ? hidden : width,
                    .in = down ? width : hidden,
                    .layer = layer,
                    .experts = experts,
                    .splitDim = down ? 1 : 0,
                    .segments = {columns}});
  }
}

// Lists hold one value a layer.
void adjustHunyuanMoe(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  const auto valueAt = [&](std::initializer_list<std::string_view> names, size_t layer, int64_t otherwise) {
    const auto* value = keys.find(names);
    if (!value) return otherwise;
    if (!value->is_array()) return keys.integer(names, 0, 1 << 20).value_or(otherwise);
    const auto list = keys.integers(names, 0, 1 << 20);
    return layer < list.size() ? list[layer] : otherwise;
  };
  const bool sharedToo = keys.flag({"use_mixed_mlp_moe"}).value_or(true);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    if (layer.ffn != FfnKind::MixtureOfExperts) continue;
    layer.moe.expertIntermediate = valueAt({"moe_intermediate_size"}, i, config.intermediateSize);
    layer.moe.expertsPerToken = valueAt({"moe_topk", "num_experts_per_tok"}, i, 1);
    layer.moe.sharedExperts = sharedToo ? valueAt({"num_shared_expert"}, i, 1) : 0;
    layer.moe.sharedIntermediate = layer.moe.sharedExperts * config.intermediateSize;
    layer.moe.normalizeWeights = true;
  }
  makeDense(config, keys.integer({"moe_layer_num_skipped"}, 0, 1024).value_or(0));
  config.decoder.qkNorm = keys.flag({"use_qk_norm"}).value_or(true);
  // Layers between those that make keys and values use the last ones.
  if (keys.flag({"use_cla"}).value_or(false))
    config.warnings.push_back("keys and values shared between layers (use_cla) are not counted as shared");
}

// One shared MLP with fused rows beside the experts, or in their place.
void adjustGraniteShared(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  DecoderTraits& decoder = config.decoder;
  decoder.embeddingMultiplier = keys.number({"embedding_multiplier"}, 1e-9, 1e9).value_or(1.0);
  decoder.residualMultiplier = keys.number({"residual_multiplier"}, 1e-9, 1e9).value_or(1.0);
  decoder.logitsMultiplier = 1.0 / keys.number({"logits_scaling"}, 1e-9, 1e9).value_or(1.0);
  decoder.attentionScale = keys.number({"attention_multiplier"}, 1e-9, 1e9).value_or(1.0);
  const int64_t shared = keys.integer({"shared_intermediate_size"}, 0, 1 << 20).value_or(0);
  for (auto& layer : config.layers) {
    if (layer.ffn == FfnKind::MixtureOfExperts) {
      layer.moe.sharedExperts = shared > 0;
      layer.moe.sharedIntermediate = shared;
      layer.moe.normalizeWeights = true;
    } else {
      layer.intermediateSize = shared > 0 ? shared : config.intermediateSize;
    }
    layer.rope = keys.text({"position_embedding_type"}).value_or("rope") != "nope";
  }
  config.checkpoint.fusedGateUp = true;
}

// Layers of Mamba 2 where layer_types says so.
void adjustGraniteHybrid(FamilyContext context) {
  adjustGraniteShared(context);
  for (auto& layer : context.config.layers)
    if (layer.attention == AttentionKind::LinearAttention) layer.attention = AttentionKind::Mamba;
}

void adjustLfm2Moe(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  makeDense(config, keys.integer({"num_dense_layers"}, 0, 1024).value_or(2));
  config.decoder.qkNorm = true;
  const bool bias = keys.flag({"use_expert_bias"}).value_or(true);
  for (auto& layer : config.layers)
    if (layer.ffn == FfnKind::MixtureOfExperts) layer.moe.routerBias = layer.moe.biasOnlyChooses = bias;
}

// ---- Mamba and its mixtures -------------------------------------------------------------------------------------------------

void adjustAllMamba(FamilyContext context) {
  for (auto& layer : context.config.layers) {
    layer.attention = AttentionKind::Mamba;
    layer.ffn = FfnKind::None;
    layer.rope = false;
    layer.qHeads = layer.kvHeads = 0;
  }
}

void adjustBamba(FamilyContext context) {
  ModelConfig& config = context.config;
  const auto attending = context.keys.integers({"attn_layer_indices"}, 0, 1023);
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (std::find(attending.begin(), attending.end(), static_cast<int64_t>(i)) == attending.end())
      config.layers[i].attention = AttentionKind::Mamba;
}

// Attention and a Mamba 2 mixer side by side in every layer.
void adjustFalconH1(FamilyContext context) {
  for (auto& layer : context.config.layers) layer.mambaBeside = true;
}

// ---- kinds of linear attention ----------------------------------------------------------------------------------------------

struct KimiDelta {
  int64_t heads, dim, kernel;
};
KimiDelta kimiDelta(const ConfigReader& keys) {
  const ConfigReader nested = keys.object("linear_attn_config");
  return {
      keys.integer({"linear_num_heads"}, 1, 4096).value_or(nested.integer({"num_heads"}, 1, 4096).value_or(32)),
      keys.integer({"linear_head_dim"}, 1, 8192).value_or(nested.integer({"head_dim"}, 1, 8192).value_or(128)),
      keys.integer({"linear_conv_kernel_dim"}, 1, 64).value_or(nested.integer({"short_conv_kernel_size"}, 1, 64).value_or(4))};
}

// Kimi's delta attention (https://arxiv.org/abs/2510.26692) in most layers, latent attention in the others.
void adjustKimiLinear(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  const auto types = keys.texts({"layer_types"});
  const auto kda = keys.object("linear_attn_config").integers({"kda_layers"}, 1, 1024);  // counted from 1
  const KimiDelta delta = kimiDelta(keys);
  adjustRouterBias(context);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool linear = i < types.size() ? types[i] == "linear_attention"
                                         : std::find(kda.begin(), kda.end(), static_cast<int64_t>(i) + 1) != kda.end();
    LayerSpec& layer = config.layers[i];
    layer.rope = false;
    if (!linear) continue;
    layer.attention = AttentionKind::LinearAttention;
    layer.latent = {};
    layer.recurrent.taps = delta.kernel - 1;
    layer.recurrent.channels = 3 * delta.heads * delta.dim;
    layer.recurrent.elements = delta.heads * delta.dim * delta.dim;
    layer.recurrent.exact = true;
  }
}

void writeKimiDelta(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& base) {
  if (spec.attention != AttentionKind::LinearAttention) return;
  const KimiDelta delta = kimiDelta(builder.keys());
  const int64_t hidden = builder.config().hiddenSize, width = delta.heads * delta.dim;
  const std::string at = base + "self_attn.";
  const SplitSegment heads{SplitUnit::QHeads, width, delta.dim}, perHead{SplitUnit::QHeads, delta.heads, 1};
  const auto add = [&](std::string_view module, int64_t out, int64_t in, int dim, SplitSegment segment) {
    builder.linear({.module = fmt::format("{}{}", at, module),
                    .out = out,
                    .in = in,
                    .layer = layer,
                    .splitDim = dim,
                    .segments = {segment}});
  };
  const auto whole = [&](std::string_view module, int64_t out, int64_t in) {
    builder.linear({.module = fmt::format("{}{}", at, module), .out = out, .in = in, .layer = layer});
  };
  const auto plain = [&](std::string_view name, std::vector<int64_t> shape, SplitSegment segment) {
    TensorEntry& entry = builder.tensor(fmt::format("{}{}", at, name), std::move(shape), layer);
    entry.splitDim = 0;
    entry.segments = {segment};
  };
  for (const char* one : {"q", "k", "v"}) {
    add(fmt::format("{}_proj", one), width, hidden, 0, heads);
    plain(fmt::format("{}_conv1d.weight", one), {width, 1, delta.kernel}, heads);
  }
  for (const char* one : {"f", "g"}) {
    whole(fmt::format("{}_a_proj", one), delta.dim, hidden);
    add(fmt::format("{}_b_proj", one), width, delta.dim, 0, heads);
  }
  add("b_proj", delta.heads, hidden, 0, perHead);
  plain("A_log", {delta.heads}, perHead);
  plain("dt_bias", {width}, heads);
  builder.tensor(at + "o_norm.weight", {delta.dim}, layer);
  add("o_proj", hidden, width, 1, heads);
}

// Lightning attention (https://arxiv.org/abs/2501.08313) where attn_type_list has a 0.
void adjustMiniMax01(FamilyContext context) {
  ModelConfig& config = context.config;
  const auto kinds = context.keys.integers({"attn_type_list"}, 0, 1);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    layer.moe.normalizeWeights = true;
    if (i < kinds.size()) layer.attention = kinds[i] == 0 ? AttentionKind::LinearAttention : AttentionKind::Full;
    if (layer.attention != AttentionKind::LinearAttention) continue;
    layer.recurrent.elements = layer.qHeads * layer.headDim * layer.headDim;
    layer.recurrent.exact = true;
  }
}

void writeLightning(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& base) {
  if (spec.attention != AttentionKind::LinearAttention) return;
  const int64_t hidden = builder.config().hiddenSize, width = spec.qHeads * spec.headDim;
  const std::string at = base + "self_attn.";
  const SplitSegment heads = queryHeads(spec, spec.headDim);
  builder.linear({.module = at + "qkv_proj",
                  .out = 3 * width,
                  .in = hidden,
                  .layer = layer,
                  .splitDim = 0,
                  .segments = {heads, heads, heads}});
  builder.linear({.module = at + "output_gate", .out = width, .in = hidden, .layer = layer, .splitDim = 0, .segments = {heads}});
  builder.linear({.module = at + "out_proj", .out = hidden, .in = width, .layer = layer, .splitDim = 1, .segments = {heads}});
  TensorEntry& norm = builder.tensor(at + "norm.weight", {width}, layer);
  norm.splitDim = 0;
  norm.segments = {heads};
}

// ---- layers with much of their own ------------------------------------------------------------------------------------------

// Gates of whole heads, and other head counts under a window.
void adjustStep3p5(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  const ConfigReader window = keys.object("attention_other_setting");
  const auto heads = keys.integer({"num_sliding_attention_heads"}, 1, 4096);
  const auto types = keys.texts({"layer_types"});
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    if (layer.ffn == FfnKind::MixtureOfExperts) {
      layer.moe.routerBias = layer.moe.biasOnlyChooses = keys.flag({"use_moe_router_bias"}).value_or(true);
      layer.moe.scoring = RouterScoring::Sigmoid;
    }
    if (i >= types.size() || types[i] != "sliding_attention") continue;
    layer.qHeads = heads.value_or(window.integer({"num_attention_heads"}, 1, 4096).value_or(layer.qHeads));
    layer.kvHeads = window.integer({"num_attention_groups"}, 1, 4096).value_or(layer.kvHeads);
  }
}

void writeHeadGate(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  builder.linear({.module = at + "self_attn.g_proj",
                  .out = spec.qHeads,
                  .in = builder.config().hiddenSize,
                  .layer = layer,
                  .splitDim = 0,
                  .segments = {queryHeads(spec, 1)}});
}

// Several residual streams and low-rank side paths; https://ai.google.dev/gemma/docs/gemma-3n
void adjustGemma3n(FamilyContext context) {
  ModelConfig& config = context.config;
  const int64_t shared = context.keys.integer({"num_kv_shared_layers"}, 0, 1024).value_or(0);
  for (int64_t i = std::max<int64_t>(0, config.layerCount() - shared); i < config.layerCount(); ++i)
    config.layers[static_cast<size_t>(i)].sharesKv = true;
}

void writeGemma3nParts(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  const ConfigReader& keys = builder.keys();
  const int64_t hidden = builder.config().hiddenSize, streams = keys.integer({"altup_num_inputs"}, 1, 64).value_or(4),
                rank = keys.integer({"laurel_rank"}, 1, 8192).value_or(64);
  builder.tensor(at + "altup.correct_output_scale", {hidden}, layer);
  builder.tensor(at + "altup.correction_coefs.weight", {streams, streams}, layer);
  builder.tensor(at + "altup.prediction_coefs.weight", {streams * streams, streams}, layer);
  builder.tensor(at + "altup.modality_router.weight", {streams, hidden}, layer);
  builder.tensor(at + "altup.router_norm.weight", {hidden}, layer);
  builder.tensor(at + "laurel.linear_left.weight", {rank, hidden}, layer);
  builder.tensor(at + "laurel.linear_right.weight", {hidden, rank}, layer);
  builder.tensor(at + "laurel.post_laurel_norm.weight", {hidden}, layer);
  writeLayerInputs(builder, spec, layer, at);
}

void addGemma3nParts(InventoryBuilder& builder) {
  addLayerEmbeddings(builder);
  const int64_t hidden = builder.config().hiddenSize, streams = builder.keys().integer({"altup_num_inputs"}, 1, 64).value_or(4);
  for (const char* one : {"altup_projections", "altup_unembed_projections"})
    for (int64_t i = 0; i + 1 < streams; ++i)
      builder.tensor(fmt::format("{}{}.{}.weight", builder.prefix(), one, i), {hidden, hidden});
}

// The key counts gate and up together; 128 more embeddings for images.
void adjustMolmo(FamilyContext context) {
  ModelConfig& config = context.config;
  config.intermediateSize /= 2;
  for (auto& layer : config.layers) layer.intermediateSize = config.intermediateSize;
  config.checkpoint.additionalEmbeddings = context.keys.integer({"additional_vocab_size"}, 0, 1 << 20).value_or(128);
  config.tieWordEmbeddings = context.keys.flag({"weight_tying"}).value_or(config.tieWordEmbeddings);
}

// ---- extras outside the layers ----------------------------------------------------------------------------------------------

void addLearnedPositions(InventoryBuilder& builder) {
  builder.tensor("transformer.wpe.weight", {builder.config().maxPositionEmbeddings, builder.config().hiddenSize});
}

void addOptPositions(InventoryBuilder& builder) {
  const ModelConfig& config = builder.config();
  builder.tensor("model.decoder.embed_positions.weight", {config.maxPositionEmbeddings + 2, config.hiddenSize});
}

void addEmbeddingNorm(InventoryBuilder& builder) {
  builder.layerNorm("transformer.word_embeddings_layernorm", builder.config().hiddenSize, true);
}

constexpr TensorNames kGpt2Names{.model = "transformer.",
                                 .embedding = "wte",
                                 .layers = "h.",
                                 .finalNorm = "ln_f",
                                 .attentionNorm = "ln_1",
                                 .ffnNorm = "ln_2",
                                 .attention = "attn.",
                                 .o = "c_proj",
                                 .qkv = "c_attn",
                                 .up = "c_fc",
                                 .down = "c_proj"};
constexpr TensorNames kGptJNames{.model = "transformer.",
                                 .embedding = "wte",
                                 .layers = "h.",
                                 .finalNorm = "ln_f",
                                 .attentionNorm = "ln_1",
                                 .attention = "attn.",
                                 .o = "out_proj",
                                 .up = "fc_in",
                                 .down = "fc_out"};
constexpr TensorNames kGptNeoXNames{.model = "gpt_neox.",
                                    .embedding = "embed_in",
                                    .finalNorm = "final_layer_norm",
                                    .head = "embed_out",
                                    .attention = "attention.",
                                    .o = "dense",
                                    .qkv = "query_key_value",
                                    .up = "dense_h_to_4h",
                                    .down = "dense_4h_to_h"};
constexpr TensorNames kBloomNames{.model = "transformer.",
                                  .embedding = "word_embeddings",
                                  .layers = "h.",
                                  .finalNorm = "ln_f",
                                  .attention = "self_attention.",
                                  .o = "dense",
                                  .qkv = "query_key_value",
                                  .up = "dense_h_to_4h",
                                  .down = "dense_4h_to_h"};
constexpr TensorNames kOptNames{.model = "model.decoder.",
                                .finalNorm = "final_layer_norm",
                                .attentionNorm = "self_attn_layer_norm",
                                .ffnNorm = "final_layer_norm",
                                .o = "out_proj",
                                .mlp = "",
                                .up = "fc1",
                                .down = "fc2"};
constexpr TensorNames kMptNames{.model = "transformer.",
                                .embedding = "wte",
                                .layers = "blocks.",
                                .finalNorm = "norm_f",
                                .attentionNorm = "norm_1",
                                .ffnNorm = "norm_2",
                                .attention = "attn.",
                                .o = "out_proj",
                                .qkv = "Wqkv",
                                .mlp = "ffn."};
constexpr TensorNames kPhiNames{
    .finalNorm = "final_layernorm", .o = "dense", .qNorm = "q_layernorm", .kNorm = "k_layernorm", .up = "fc1", .down = "fc2"};
constexpr TensorNames kPersimmonNames{.finalNorm = "final_layernorm",
                                      .o = "dense",
                                      .qkv = "query_key_value",
                                      .qNorm = "q_layernorm",
                                      .kNorm = "k_layernorm",
                                      .up = "dense_h_to_4h",
                                      .down = "dense_4h_to_h"};
constexpr TensorNames kExaoneNames{.model = "transformer.",
                                   .embedding = "wte",
                                   .layers = "h.",
                                   .finalNorm = "ln_f",
                                   .attentionNorm = "ln_1",
                                   .ffnNorm = "ln_2",
                                   .attention = "attn.attention.",
                                   .o = "out_proj",
                                   .gate = "c_fc_0",
                                   .up = "c_fc_1",
                                   .down = "c_proj"};
constexpr TensorNames kApertusNames{.attentionNorm = "attention_layernorm", .ffnNorm = "feedforward_layernorm"};
constexpr TensorNames kHunyuanNames{
    .qNorm = "query_layernorm", .kNorm = "key_layernorm", .router = "gate.wg", .shared = "mlp.shared_mlp."};
constexpr TensorNames kErnieNames{.routerBias = "moe_statics.e_score_correction_bias"};
constexpr TensorNames kHyV3Names{.routerBias = "e_score_correction_bias"};
constexpr TensorNames kAfmoeNames{.router = "router.gate", .routerBias = "expert_bias"};
constexpr TensorNames kGraniteSharedNames{.mlp = "shared_mlp.",
                                          .down = "output_linear",
                                          .gateUp = "input_linear",
                                          .moe = "block_sparse_moe.",
                                          .router = "router.layer",
                                          .expertGate = "input_linear.weight",
                                          .expertDown = "output_linear.weight",
                                          .shared = "shared_mlp."};
constexpr TensorNames kLfm2MoeNames{.finalNorm = "embedding_norm",
                                    .attentionNorm = "operator_norm",
                                    .ffnNorm = "ffn_norm",
                                    .o = "out_proj",
                                    .qNorm = "q_layernorm",
                                    .kNorm = "k_layernorm",
                                    .mlp = "feed_forward.",
                                    .gate = "w1",
                                    .up = "w3",
                                    .down = "w2",
                                    .moe = "feed_forward.",
                                    .expertGate = "w1",
                                    .expertUp = "w3",
                                    .expertDown = "w2",
                                    .routerBias = "expert_bias"};
constexpr TensorNames kBailingNames{.embedding = "word_embeddings",
                                    .attention = "attention.",
                                    .o = "dense",
                                    .qkv = "query_key_value",
                                    .qNorm = "query_layernorm",
                                    .kNorm = "key_layernorm",
                                    .routerBias = "gate.expert_bias"};
constexpr TensorNames kLongNames{.moe = "block_sparse_moe.", .expertGate = "w1", .expertUp = "w3", .expertDown = "w2"};
constexpr TensorNames kFalconH1Names{.finalNorm = "final_layernorm", .ffnNorm = "pre_ff_layernorm", .mlp = "feed_forward."};
constexpr TensorNames kKimiLinearNames{.moe = "block_sparse_moe.",
                                       .expertGate = "w1",
                                       .expertUp = "w3",
                                       .expertDown = "w2",
                                       .shared = "block_sparse_moe.shared_experts."};
constexpr TensorNames kStepNames{.moe = "moe.", .shared = "share_expert.", .routerBias = "router_bias"};
constexpr TensorNames kMolmoNames{.model = "model.transformer.",
                                  .embedding = "wte",
                                  .layers = "blocks.",
                                  .finalNorm = "ln_f",
                                  .head = "model.transformer.ff_out",
                                  .attentionNorm = "attn_norm",
                                  .ffnNorm = "ff_norm",
                                  .attention = "",
                                  .o = "attn_out",
                                  .qkv = "att_proj",
                                  .mlp = "",
                                  .down = "ff_out",
                                  .gateUp = "ff_proj"};
constexpr ClassSizes kGemma3nSizes{2048, 35, 8, 2, 256, 16384, 262400};
constexpr TensorNames kMambaNames{
    .model = "backbone.", .embedding = "embeddings", .finalNorm = "norm_f", .attentionNorm = "norm", .attention = "mixer."};
constexpr TensorNames kBambaNames{.finalNorm = "final_layernorm", .ffnNorm = "pre_ff_layernorm", .mlp = "feed_forward."};

constexpr std::array kSiblings = {
    // After GPT-2.
    ModelFamily{.modelTypes = "gpt2",
                .architecture = "GPT2LMHeadModel",
                .bias = BiasRule::Always,
                .tiedByDefault = true,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::GeluTanh,
                .fusedQkv = true,
                .positions = 1024,
                .mlpRatio = 4,
                .names = &kGpt2Names,
                .lacks = "learned positions",
                .extras = addLearnedPositions},
    ModelFamily{.modelTypes = "gpt_bigcode",
                .architecture = "GPTBigCodeForCausalLM",
                .bias = BiasRule::Always,
                .tiedByDefault = true,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::GeluTanh,
                .fusedQkv = true,
                .positions = 1024,
                .mlpRatio = 4,
                .names = &kGpt2Names,
                .lacks = "learned positions",
                .adjust = adjustOneKvHead,
                .extras = addLearnedPositions},
    ModelFamily{.modelTypes = "gptj",
                .architecture = "GPTJForCausalLM",
                .bias = BiasRule::Always,
                .norms = NormPlaces::Single,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::GeluTanh,
                .ropeStyle = RopeStyle::Interleaved,
                .positions = 2048,
                .mlpRatio = 4,
                .names = &kGptJNames,
                .lacks = "GPT-J's layers",
                .adjust = adjustGptJ},
    ModelFamily{.modelTypes = "gpt_neox",
                .architecture = "GPTNeoXForCausalLM",
                .bias = BiasRule::Always,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::Gelu,
                .fusedQkv = true,
                .partialRotary = 0.25,
                .positions = 2048,
                .mlpRatio = 4,
                .names = &kGptNeoXNames,
                .lacks = "GPT-NeoX's layers",
                .adjust = adjustGptNeoX},
    ModelFamily{.modelTypes = "bloom",
                .architecture = "BloomForCausalLM",
                .bias = BiasRule::Always,
                .tiedByDefault = true,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::GeluTanh,
                .fusedQkv = true,
                .positions = 2048,
                .mlpRatio = 4,
                .names = &kBloomNames,
                .lacks = "attention with linear biases",
                .extras = addEmbeddingNorm},
    ModelFamily{.modelTypes = "opt",
                .architecture = "OPTForCausalLM",
                .bias = BiasRule::Always,
                .tiedByDefault = true,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::Gelu,
                .positions = 2048,
                .names = &kOptNames,
                .lacks = "learned positions",
                .adjust = adjustOpt,
                .extras = addOptPositions},
    ModelFamily{.modelTypes = "mpt",
                .architecture = "MPTForCausalLM",
                .bias = BiasRule::Never,
                .tiedByDefault = true,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::Gelu,
                .fusedQkv = true,
                .positions = 2048,
                .mlpRatio = 4,
                .names = &kMptNames,
                .lacks = "attention with linear biases",
                .adjust = adjustMpt},
    ModelFamily{.modelTypes = "phi",
                .architecture = "PhiForCausalLM",
                .bias = BiasRule::Always,
                .qkNorm = QkNormRule::Key,
                .norms = NormPlaces::Single,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::GeluTanh,
                .partialRotary = 0.5,
                .positions = 2048,
                .names = &kPhiNames,
                .lacks = "Phi's layers",
                .adjust = adjustPhi},
    ModelFamily{.modelTypes = "stablelm stablelm_epoch",
                .architecture = "StableLmForCausalLM",
                .bias = BiasRule::Never,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .partialRotary = 0.25,
                .lacks = "StableLM's layers",
                .adjust = adjustStableLm,
                .layerExtras = writeStableLmNorms},
    ModelFamily{.modelTypes = "persimmon",
                .architecture = "PersimmonForCausalLM",
                .bias = BiasRule::Always,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::Relu2,
                .fusedQkv = true,
                .partialRotary = 0.5,
                .names = &kPersimmonNames,
                .lacks = "Persimmon's layers",
                .adjust = adjustPersimmon},
    ModelFamily{.modelTypes = "nemotron",
                .architecture = "NemotronForCausalLM",
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .normWeightOffset = 1.0,
                .gatedMlp = false,
                .activation = Activation::Relu2,
                .partialRotary = 0.5,
                .lacks = "Nemotron's layers",
                .adjust = adjustNormBias},
    ModelFamily{.modelTypes = "jais2",
                .architecture = "Jais2ForCausalLM",
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::Relu2,
                .lacks = "Jais 2's layers",
                .adjust = adjustNormBias},
    ModelFamily{.modelTypes = "orion",
                .architecture = "OrionForCausalLM",
                .bias = BiasRule::Never,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .lacks = "Orion's layers",
                .adjust = adjustNormBias},
    // Llama's nearer kin.
    ModelFamily{.modelTypes = "olmo",
                .architecture = "OlmoForCausalLM",
                .norms = NormPlaces::Weightless,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .lacks = "norms without weights"},
    ModelFamily{.modelTypes = "internlm",
                .architecture = "InternLMForCausalLM",
                .bias = BiasRule::Never,
                .lacks = "InternLM's layers",
                .adjust = adjustInternLm},
    ModelFamily{.modelTypes = "internlm3",
                .architecture = "InternLM3ForCausalLM",
                .bias = BiasRule::Never,
                .normEpsilon = 1e-5,
                .lacks = "InternLM3's layers",
                .adjust = adjustInternLm3},
    ModelFamily{.modelTypes = "yi aquila xverse solar iquestcoder",
                .architecture = "LlamaForCausalLM",
                .bias = BiasRule::Never,
                .lacks = "this variety of Llama (not tried)"},
    ModelFamily{.modelTypes = "minicpm",
                .architecture = "MiniCPMForCausalLM",
                .bias = BiasRule::Never,
                .tiedByDefault = true,
                .normEpsilon = 1e-5,
                .lacks = "MiniCPM's layers"},
    ModelFamily{.modelTypes = "exaone",
                .architecture = "ExaoneForCausalLM",
                .bias = BiasRule::Never,
                .normEpsilon = 1e-5,
                .names = &kExaoneNames,
                .lacks = "EXAONE's layers"},
    ModelFamily{.modelTypes = "exaone4",
                .architecture = "Exaone4ForCausalLM",
                .bias = BiasRule::Never,
                .qkNorm = QkNormRule::PerHead,
                .norms = NormPlaces::After,
                .window = WindowRule::AllButEveryNth,
                .normEpsilon = 1e-5,
                .lacks = "EXAONE 4's layers",
                .adjust = adjustExaone4},
    ModelFamily{.modelTypes = "seed_oss",
                .architecture = "SeedOssForCausalLM",
                .bias = BiasRule::Never,
                .lacks = "Seed-OSS's layers",
                .adjust = adjustSeedOss},
    ModelFamily{.modelTypes = "arcee",
                .architecture = "ArceeForCausalLM",
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::Relu2,
                .lacks = "Arcee's layers"},
    ModelFamily{.modelTypes = "apertus",
                .architecture = "ApertusForCausalLM",
                .qkNorm = QkNormRule::PerHead,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .names = &kApertusNames,
                .lacks = "the activation xIELU",
                .layerExtras = writeXielu},
    ModelFamily{.modelTypes = "bitnet",
                .architecture = "BitNetForCausalLM",
                .normEpsilon = 1e-5,
                .activation = Activation::Relu2,
                .lacks = "BitNet's layers",
                .layerExtras = writeBitNetNorms},
    ModelFamily{.modelTypes = "helium",
                .architecture = "HeliumForCausalLM",
                .ropeStyle = RopeStyle::Interleaved,
                .lacks = "Helium's layers"},
    ModelFamily{.modelTypes = "cwm", .architecture = "CwmForCausalLM", .normEpsilon = 1e-5, .lacks = "CWM's layers"},
    ModelFamily{.modelTypes = "ernie4_5",
                .architecture = "Ernie4_5ForCausalLM",
                .bias = BiasRule::UseBias,
                .tiedByDefault = true,
                .normEpsilon = 1e-5,
                .ropeStyle = RopeStyle::Interleaved,
                .lacks = "ERNIE 4.5's layers",
                .adjust = adjustErnie},
    ModelFamily{.modelTypes = "hunyuan_v1_dense",
                .architecture = "HunYuanDenseV1ForCausalLM",
                .qkNorm = QkNormRule::PerHead,
                .normEpsilon = 1e-5,
                .names = &kHunyuanNames,
                .lacks = "Hunyuan's layers"},
    ModelFamily{.modelTypes = "hyperclovax",
                .architecture = "HyperCLOVAXForCausalLM",
                .lacks = "HyperCLOVA X's layers",
                .layerExtras = writeHyperClovaNorms},
    ModelFamily{.modelTypes = "granite_swa",
                .architecture = "GraniteSWAForCausalLM",
                .tiedByDefault = true,
                .lacks = "Granite's windows",
                .layerExtras = writeSinks},
    ModelFamily{.modelTypes = "vaultgemma",
                .architecture = "VaultGemmaForCausalLM",
                .tiedByDefault = true,
                .activation = Activation::GeluTanh,
                .vocabSize = 256000,
                .lacks = "VaultGemma's layers"},
    ModelFamily{.modelTypes = "youtu",
                .architecture = "YoutuForCausalLM",
                .tiedByDefault = true,
                .ropeStyle = RopeStyle::Interleaved,
                .lacks = "Youtu's layers"},
    // Mixtures of experts.
    ModelFamily{.modelTypes = "olmoe",
                .architecture = "OlmoeForCausalLM",
                .qkNorm = QkNormRule::FullWidth,
                .normEpsilon = 1e-5,
                .lacks = "OLMoE's layers"},
    ModelFamily{.modelTypes = "flex_olmo",
                .architecture = "FlexOlmoForCausalLM",
                .qkNorm = QkNormRule::FullWidth,
                .norms = NormPlaces::After,
                .lacks = "FlexOlmo's layers"},
    ModelFamily{.modelTypes = "deepseek", .architecture = "DeepseekForCausalLM", .lacks = "the first DeepSeek MoE's layers"},
    ModelFamily{.modelTypes = "dots1",
                .architecture = "Dots1ForCausalLM",
                .qkNorm = QkNormRule::PerHead,
                .lacks = "dots.llm1's layers",
                .adjust = adjustRouterBias},
    ModelFamily{.modelTypes = "solar_open",
                .architecture = "SolarOpenForCausalLM",
                .bias = BiasRule::KeyQkv,
                .normEpsilon = 1e-5,
                .lacks = "Solar Open's layers",
                .adjust = adjustRouterBias},
    ModelFamily{.modelTypes = "exaone_moe",
                .architecture = "ExaoneMoeForCausalLM",
                .bias = BiasRule::Never,
                .qkNorm = QkNormRule::PerHead,
                .window = WindowRule::AllButEveryNth,
                .normEpsilon = 1e-5,
                .lacks = "EXAONE MoE's layers",
                .adjust = adjustRouterBias},
    ModelFamily{.modelTypes = "hy_v3",
                .architecture = "HYV3ForCausalLM",
                .qkNorm = QkNormRule::PerHead,
                .normEpsilon = 1e-5,
                .names = &kHyV3Names,
                .lacks = "Hunyuan 3's layers",
                .adjust = adjustRouterBias},
    ModelFamily{.modelTypes = "hunyuan_v1_moe hunyuan",
                .architecture = "HunYuanMoEV1ForCausalLM",
                .normEpsilon = 1e-5,
                .names = &kHunyuanNames,
                .lacks = "Hunyuan's layers",
                .adjust = adjustHunyuanMoe},
    ModelFamily{.modelTypes = "ernie4_5_moe",
                .architecture = "Ernie4_5_MoeForCausalLM",
                .bias = BiasRule::UseBias,
                .tiedByDefault = true,
                .normEpsilon = 1e-5,
                .ropeStyle = RopeStyle::Interleaved,
                .names = &kErnieNames,
                .lacks = "ERNIE 4.5's layers",
                .adjust = adjustErnieMoe},
    ModelFamily{.modelTypes = "ernie4_5_vl_moe_text",
                .architecture = "Ernie4_5_VLMoeForConditionalGeneration",
                .bias = BiasRule::UseBias,
                .tiedByDefault = true,
                .normEpsilon = 1e-5,
                .ropeStyle = RopeStyle::Interleaved,
                .names = &kErnieNames,
                .lacks = "ERNIE 4.5's layers",
                .adjust = adjustErnieMoe,
                .layerExtras = writeErnieImageExperts},
    ModelFamily{.modelTypes = "afmoe",
                .architecture = "AfmoeForCausalLM",
                .bias = BiasRule::Never,
                .qkNorm = QkNormRule::PerHead,
                .norms = NormPlaces::BeforeAndAfter,
                .normEpsilon = 1e-5,
                .names = &kAfmoeNames,
                .lacks = "Trinity's layers",
                .adjust = adjustAfmoe,
                .layerExtras = writeAfmoeGate},
    ModelFamily{.modelTypes = "bailing_moe",
                .architecture = "BailingMoeForCausalLM",
                .bias = BiasRule::Never,
                .fusedQkv = true,
                .names = &kBailingNames,
                .lacks = "Ling's layers"},
    ModelFamily{.modelTypes = "bailing_moe_v2",
                .architecture = "BailingMoeV2ForCausalLM",
                .bias = BiasRule::Never,
                .qkNorm = QkNormRule::PerHead,
                .fusedQkv = true,
                .partialRotary = 0.5,
                .names = &kBailingNames,
                .lacks = "Ling's layers",
                .adjust = adjustRouterBias},
    ModelFamily{.modelTypes = "granitemoeshared",
                .architecture = "GraniteMoeSharedForCausalLM",
                .names = &kGraniteSharedNames,
                .experts = ExpertStyle::FusedRows,
                .lacks = "Granite's shared experts",
                .adjust = adjustGraniteShared},
    ModelFamily{.modelTypes = "granitemoe_swa",
                .architecture = "GraniteMoeSWAForCausalLM",
                .names = &kGraniteSharedNames,
                .experts = ExpertStyle::FusedRows,
                .lacks = "Granite's windows",
                .adjust = adjustGraniteShared,
                .layerExtras = writeSinks},
    ModelFamily{.modelTypes = "granitemoehybrid",
                .architecture = "GraniteMoeHybridForCausalLM",
                .names = &kGraniteSharedNames,
                .experts = ExpertStyle::FusedRows,
                .lacks = "Granite's shared experts",
                .adjust = adjustGraniteHybrid},
    ModelFamily{.modelTypes = "lfm2_moe",
                .architecture = "Lfm2MoeForCausalLM",
                .bias = BiasRule::Never,
                .tiedByDefault = true,
                .normEpsilon = 1e-5,
                .names = &kLfm2MoeNames,
                .lacks = "LFM2's experts",
                .adjust = adjustLfm2Moe},
    // Mamba.
    ModelFamily{.modelTypes = "mamba falcon_mamba",
                .architecture = "MambaForCausalLM",
                .norms = NormPlaces::OnePerMixer,
                .tiedByDefault = true,
                .normEpsilon = 1e-5,
                .attentionFree = true,
                .names = &kMambaNames,
                .adjust = adjustAllMamba},
    ModelFamily{.modelTypes = "mamba2",
                .architecture = "Mamba2ForCausalLM",
                .norms = NormPlaces::OnePerMixer,
                .normEpsilon = 1e-5,
                .attentionFree = true,
                .names = &kMambaNames,
                .adjust = adjustAllMamba},
    ModelFamily{.modelTypes = "bamba",
                .architecture = "BambaForCausalLM",
                .normEpsilon = 1e-5,
                .names = &kBambaNames,
                .adjust = adjustBamba},
    ModelFamily{.modelTypes = "falcon_h1",
                .architecture = "FalconH1ForCausalLM",
                .normEpsilon = 1e-5,
                .names = &kFalconH1Names,
                .lacks = "attention and Mamba side by side",
                .adjust = adjustFalconH1},
    ModelFamily{.modelTypes = "kimi_linear",
                .architecture = "KimiLinearForCausalLM",
                .normEpsilon = 1e-5,
                .names = &kKimiLinearNames,
                .lacks = "Kimi's delta attention",
                .adjust = adjustKimiLinear,
                .layerExtras = writeKimiDelta},
    ModelFamily{.modelTypes = "minimax minimax_text_01 minimax_m1",
                .architecture = "MiniMaxText01ForCausalLM",
                .bias = BiasRule::Never,
                .normEpsilon = 1e-5,
                .names = &kLongNames,
                .lacks = "lightning attention",
                .adjust = adjustMiniMax01,
                .layerExtras = writeLightning},
    ModelFamily{.modelTypes = "step3p5 step3p7",
                .architecture = "Step3p5ForCausalLM",
                .bias = BiasRule::Never,
                .qkNorm = QkNormRule::PerHead,
                .normEpsilon = 1e-5,
                .normWeightOffset = 1.0,
                .names = &kStepNames,
                .lacks = "Step 3.5's layers",
                .adjust = adjustStep3p5,
                .layerExtras = writeHeadGate,
                .extras = addDeepseekMtp},
    ModelFamily{.modelTypes = "gemma3n_text gemma3n",
                .architecture = "Gemma3nForConditionalGeneration",
                .qkNorm = QkNormRule::PerHead,
                .norms = NormPlaces::BeforeAndAfter,
                .tiedByDefault = true,
                .activation = Activation::GeluTanh,
                .vocabSize = 262400,
                .positions = 32768,
                .sizes = &kGemma3nSizes,
                .lacks = "Gemma 3n's layers",
                .adjust = adjustGemma3n,
                .layerExtras = writeGemma3nParts,
                .extras = addGemma3nParts},
    ModelFamily{.modelTypes = "molmo",
                .architecture = "MolmoForCausalLM",
                .bias = BiasRule::KeyQkv,
                .normEpsilon = 1e-5,
                .fusedQkv = true,
                .fusedGateUp = true,
                .positions = 4096,
                .names = &kMolmoNames,
                .lacks = "image input",
                .adjust = adjustMolmo,
                .extras = addMolmoTower},
    ModelFamily{.modelTypes = "phi3_v",
                .architecture = "Phi3VForCausalLM",
                .bias = BiasRule::Never,
                .normEpsilon = 1e-5,
                .fusedQkv = true,
                .fusedGateUp = true,
                .lacks = "image input",
                .extras = addPhi3Tower},
};

}  // namespace

std::span<const ModelFamily> siblingFamilies() { return kSiblings; }

}  // namespace headroom
