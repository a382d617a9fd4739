// SPDX-License-Identifier: Apache-2.0
// The table of model families. Defaults are those of each family's configuration class in Hugging Face Transformers.
#include "core/model/model_family.h"

#include "core/model/inventory_extras.h"

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
  if (context.keys.object("rope_parameters").has("sliding_attention")) return;
  config.localRope.theta = context.keys.number({"rope_local_base_freq"}, 1, 1e12).value_or(10000.0);
  config.localRope.scaling = RopeScaling::None;
  config.localRope.factor = 1.0;
  for (auto& layer : config.layers) layer.localRope = layer.attention == AttentionKind::SlidingWindow;
}

// Scaling is for the layers with full attention.
void adjustOlmo3(FamilyContext context) {
  ModelConfig& config = context.config;
  if (config.rope.scaling == RopeScaling::None) return;
  for (auto& layer : config.layers) layer.localRope = layer.attention == AttentionKind::SlidingWindow;
}

void adjustSmolLm3(FamilyContext context) {
  ModelConfig& config = context.config;
  const auto rotates = context.keys.integers({"no_rope_layers"}, 0, 1);
  const int64_t interval = context.keys.integer({"no_rope_layer_interval"}, 1, 100000).value_or(4);
  for (size_t i = 0; i < config.layers.size(); ++i)
    config.layers[i].rope =
        rotates.empty() ? (static_cast<int64_t>(i) + 1) % interval != 0 : i < rotates.size() && rotates[i] == 1;
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

// The weights of the chosen experts sum to 1: softmax over their logits alone.
void adjustChosenSoftmax(FamilyContext context) {
  for (auto& layer : context.config.layers) layer.moe.normalizeWeights = true;
}

void adjustGraniteMoe(FamilyContext context) {
  adjustGranite(context);
  adjustChosenSoftmax(context);
}

// Every layer has the same keys under names of their own for the windowed layers.
void adjustMimoV2(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  auto pattern = keys.integers({"hybrid_layer_pattern"}, 0, 1);
  if (pattern.empty())
    for (const auto& layer : config.layers) pattern.push_back(layer.attention == AttentionKind::SlidingWindow);
  const int64_t window = keys.integer({"sliding_window"}, 1, 1 << 30).value_or(128);
  const int64_t valueDim = keys.integer({"v_head_dim"}, 1, 8192).value_or(config.headDim);
  const bool windowSinks = keys.flag({"add_swa_attention_sink_bias"}).value_or(!keys.has("hybrid_layer_pattern")),
             fullSinks = keys.flag({"add_full_attention_sink_bias"}).value_or(false);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    layer.vHeadDim = valueDim;
    const bool windowed = i < pattern.size() && pattern[i] == 1;
    layer.attention = windowed ? AttentionKind::SlidingWindow : AttentionKind::Full;
    layer.window = windowed ? window : 0;
    layer.localRope = windowed;
    layer.sinks = windowed ? windowSinks : fullSinks;
    layer.moe.routerBias =
        layer.ffn == FfnKind::MixtureOfExperts && keys.text({"topk_method"}).value_or("noaux_tc") == "noaux_tc";
    if (!windowed) continue;
    layer.qHeads = keys.integer({"swa_num_attention_heads"}, 1, 4096).value_or(layer.qHeads);
    layer.kvHeads =
        keys.integer({"swa_num_key_value_heads"}, 1, 4096).value_or(keys.has("hybrid_layer_pattern") ? layer.kvHeads : 8);
    layer.headDim = keys.integer({"swa_head_dim"}, 1, 8192).value_or(layer.headDim);
    layer.vHeadDim = keys.integer({"swa_v_head_dim"}, 1, 8192).value_or(layer.vHeadDim);
  }
  config.localRope.theta = keys.number({"swa_rope_theta"}, 1, 1e12).value_or(10000.0);
  config.decoder.attentionSinks = windowSinks || fullSinks;
}

void adjustGptOss(FamilyContext context) {
  context.config.decoder.attentionSinks = true;
  context.config.checkpoint.expertBias = true;
  for (auto& layer : context.config.layers) {
    layer.sinks = true;
    layer.moe.routerBias = true;
    layer.moe.normalizeWeights = true;
    layer.moe.swigluLimit = context.keys.number({"swiglu_limit"}, 1e-6, 1e9).value_or(7.0);
  }
}

void adjustLlama4(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  const auto rotates = keys.integers({"no_rope_layers"}, 0, 1);
  const int64_t interval = keys.integer({"nope_layer_interval"}, 1, 100000).value_or(4),
                chunk = keys.integer({"attention_chunk_size"}, 1, 1 << 30).value_or(8192);
  const int64_t denseWidth = keys.integer({"intermediate_size_mlp"}, 1, 1 << 20).value_or(config.intermediateSize);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    layer.rope = rotates.size() > i ? rotates[i] == 1 : (static_cast<int64_t>(i) + 1) % interval != 0;
    layer.attention = layer.rope ? AttentionKind::ChunkedWindow : AttentionKind::Full;
    layer.window = layer.rope ? chunk : 0;
    layer.intermediateSize = denseWidth;
    if (layer.ffn == FfnKind::MixtureOfExperts)
      layer.moe.sharedExperts = 1, layer.moe.sharedIntermediate = layer.moe.expertIntermediate;
    layer.moe.scoring = RouterScoring::Sigmoid;
    layer.moe.weightsOnInput = true;
  }
  config.decoder.qkNorm = false;
  config.decoder.plainQkNorm = keys.flag({"use_qk_norm"}).value_or(true);
  // The key's class default is true; checkpoints give it as a number.
  const bool tuned = keys.find({"attn_temperature_tuning"}) && keys.find({"attn_temperature_tuning"})->is_number()
                         ? keys.find({"attn_temperature_tuning"})->get<double>() != 0
                         : keys.flag({"attn_temperature_tuning"}).value_or(true);
  if (!tuned) return;
  config.decoder.positionScale = keys.number({"attn_scale"}, 0, 1e9).value_or(0.1);
  config.decoder.positionFloor = keys.number({"floor_scale"}, 1, 1e12).value_or(8192.0);
}

void adjustMllama(FamilyContext context) {
  ModelConfig& config = context.config;
  config.checkpoint.additionalEmbeddings = 8;
  for (int64_t at : context.keys.integers({"cross_attention_layers"}, 0, 1023))
    if (at < config.layerCount()) config.layers[static_cast<size_t>(at)].attention = AttentionKind::CrossAttention;
}

// Full attention in every full_attention_interval-th layer, where layer_types is silent.
void adjustQwenHybrid(FamilyContext context) {
  ModelConfig& config = context.config;
  const int64_t interval = context.keys.integer({"full_attention_interval"}, 1, 1024).value_or(4);
  if (!context.keys.has("layer_types"))
    for (size_t i = 0; i < config.layers.size(); ++i)
      if ((static_cast<int64_t>(i) + 1) % interval != 0) config.layers[i].attention = AttentionKind::LinearAttention;
  config.checkpoint.queryGate = context.keys.flag({"attn_output_gate"}).value_or(true);
  LinearAttention linear;
  linear.keyHeads = context.keys.integer({"linear_num_key_heads"}, 1, 4096).value_or(16);
  linear.valueHeads = context.keys.integer({"linear_num_value_heads"}, 1, 4096).value_or(32);
  linear.keyDim = context.keys.integer({"linear_key_head_dim"}, 1, 8192).value_or(128);
  linear.valueDim = context.keys.integer({"linear_value_head_dim"}, 1, 8192).value_or(128);
  linear.kernel = context.keys.integer({"linear_conv_kernel_dim"}, 1, 64).value_or(4);
  if (linear.valueHeads % linear.keyHeads != 0)
    context.keys.fail("linear_num_value_heads", linear.valueHeads,
                      fmt::format("a multiple of the {} key heads", linear.keyHeads));
  for (auto& layer : config.layers)
    if (layer.attention == AttentionKind::LinearAttention) layer.linear = linear;
  if (config.modelType != "qwen3_next") return;
  config.checkpoint.mtpLayers = 1;
  config.warnings.push_back(
      "one multi-token prediction layer is counted, as published checkpoints hold it; config.json does not name it");
}

void adjustJamba(FamilyContext context) {
  ModelConfig& config = context.config;
  const int64_t period = context.keys.integer({"attn_layer_period"}, 1, 1024).value_or(8),
                offset = context.keys.integer({"attn_layer_offset"}, 0, 1024).value_or(4);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    layer.rope = false;
    if (static_cast<int64_t>(i) % period != offset % period) layer.attention = AttentionKind::Mamba;
  }
}

// M: Mamba, *: attention, E: experts, -: MLP; each alone in its layer.
void adjustNemotronH(FamilyContext context) {
  ModelConfig& config = context.config;
  std::string pattern = context.keys.text({"hybrid_override_pattern"}).value_or("");
  if (pattern.empty())
    for (const std::string& kind : context.keys.texts({"layers_block_type"}))
      pattern += kind == "moe" ? 'E' : kind == "mlp" ? '-' : kind == "full_attention" || kind == "attention" ? '*' : 'M';
  if (pattern.size() != config.layers.size())
    return context.keys.fail("hybrid_override_pattern", pattern.size(),
                             fmt::format("one letter for each of the {} layers", config.layerCount()));
  const LayerSpec like = config.layers.front();
  for (size_t i = 0; i < pattern.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    const MoeParameters moe = like.moe;
    layer.attention = pattern[i] == '*' ? AttentionKind::Full : pattern[i] == 'M' ? AttentionKind::Mamba : AttentionKind::None;
    layer.ffn = pattern[i] == 'E' ? FfnKind::MixtureOfExperts : pattern[i] == '-' ? FfnKind::Dense : FfnKind::None;
    layer.moe = pattern[i] == 'E' ? moe : MoeParameters{};
    layer.rope = false;
  }
}

void adjustLfm2(FamilyContext context) {
  ModelConfig& config = context.config;
  if (context.keys.has("full_attn_idxs") && !context.keys.has("layer_types")) {
    for (auto& layer : config.layers) layer.attention = AttentionKind::ShortConvolution;
    for (int64_t at : context.keys.integers({"full_attn_idxs"}, 0, 1023))
      if (at < config.layerCount()) config.layers[static_cast<size_t>(at)].attention = AttentionKind::Full;
  }
  int64_t width = context.keys.integer({"block_ff_dim", "intermediate_size"}, 1, 1 << 20).value_or(config.intermediateSize);
  if (context.keys.flag({"block_auto_adjust_ff_dim"}).value_or(true)) {
    width = 2 * width / 3;
    const double multiplier = context.keys.number({"block_ffn_dim_multiplier"}, 1e-3, 1e3).value_or(1.0);
    width = roundUp(static_cast<int64_t>(multiplier * static_cast<double>(width)),
                    context.keys.integer({"block_multiple_of"}, 1, 1 << 16).value_or(256));
  }
  config.intermediateSize = width;
  for (auto& layer : config.layers) layer.intermediateSize = width;
  config.decoder.qkNorm = true;
}

// Layers described one by one; https://huggingface.co/nvidia/Llama-3_3-Nemotron-Super-49B-v1
void adjustNemotronNas(FamilyContext context) {
  ModelConfig& config = context.config;
  const auto* blocks = context.keys.find({"block_configs"});
  if (!blocks || !blocks->is_array() || blocks->size() != config.layers.size())
    return context.keys.fail("block_configs", blocks ? nlohmann::json(blocks->size()) : nlohmann::json(nullptr),
                             fmt::format("one entry for each of the {} layers", config.layerCount()));
  std::optional<Error> error;
  int64_t kvHeads = 0;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    const ConfigReader block((*blocks)[i], fmt::format("{}: block_configs[{}]", context.keys.where(), i), error);
    const ConfigReader attention = block.object("attention"), ffn = block.object("ffn");
    const int64_t group = attention.integer({"n_heads_in_group"}, 1, 4096).value_or(0);
    const bool linear =
        attention.flag({"replace_with_linear"}).value_or(false) || ffn.flag({"replace_with_linear"}).value_or(false);
    if (linear) config.missingInEngine.push_back("branches replaced by a linear layer");
    if (attention.flag({"no_op"}).value_or(false) || group == 0)
      layer.attention = AttentionKind::None;
    else
      layer.kvHeads = std::max<int64_t>(1, layer.qHeads / group);
    if (layer.attention == AttentionKind::Full && kvHeads == 0) kvHeads = layer.kvHeads;
    if (ffn.flag({"no_op"}).value_or(false)) layer.ffn = FfnKind::None;
    const double multiplier = ffn.number({"ffn_mult"}, 1e-3, 64.0).value_or(0.0);
    layer.intermediateSize = roundUp(static_cast<int64_t>(2.0 * multiplier * static_cast<double>(config.hiddenSize) / 3.0), 256);
    if (layer.ffn == FfnKind::Dense && layer.intermediateSize == 0)
      block.fail("ffn: ffn_mult", nullptr, "a factor of hidden_size");
    config.intermediateSize = std::max(config.intermediateSize, layer.intermediateSize);
  }
  if (error) context.keys.fail(*error);
  if (kvHeads > 0) config.kvHeads = kvHeads;
}

// Head sizes and counts differ by the layer's kind; MoE stands beside a dense MLP in each layer.
void adjustGemma4(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  adjustGemma(context);
  config.decoder.attentionScale = 1.0;
  config.decoder.finalSoftcap = keys.number({"final_logit_softcapping"}, 0, 1e9).value_or(0.0);
  const int64_t globalDim = keys.integer({"global_head_dim"}, 1, 8192).value_or(512),
                globalKv = keys.integer({"num_global_key_value_heads"}, 1, 4096).value_or(config.kvHeads);
  const bool keysAreValues = keys.flag({"attention_k_eq_v"}).value_or(false);
  const int64_t shared = keys.integer({"num_kv_shared_layers"}, 0, 1024).value_or(0);
  const bool wide = shared > 0 && keys.flag({"use_double_wide_mlp"}).value_or(false);
  for (int64_t i = std::max<int64_t>(0, config.layerCount() - shared); i < config.layerCount(); ++i) {
    LayerSpec& layer = config.layers[static_cast<size_t>(i)];
    layer.sharesKv = true;
    if (wide) layer.intermediateSize *= 2;
  }
  for (auto& layer : config.layers) {
    // The dense MLP beside the experts counts as a shared expert.
    if (layer.ffn == FfnKind::MixtureOfExperts)
      layer.moe.sharedExperts = 1, layer.moe.sharedIntermediate = layer.intermediateSize;
    if (layer.attention != AttentionKind::Full) continue;
    layer.headDim = layer.vHeadDim = globalDim;
    layer.kvHeads = keysAreValues ? globalKv : layer.kvHeads;
    layer.valuesAreKeys = keysAreValues;
  }
}

void adjustQwen1(FamilyContext context) {
  ModelConfig& config = context.config;
  config.intermediateSize /= 2;  // the key counts gate and up together
  for (auto& layer : config.layers) layer.intermediateSize = config.intermediateSize;
}

void adjustFalcon(FamilyContext context) {
  ModelConfig& config = context.config;
  const bool groups = context.keys.flag({"new_decoder_architecture"}).value_or(false) || context.keys.has("n_head_kv");
  if (!groups && context.keys.flag({"multi_query"}).value_or(true)) config.kvHeads = 1;
  if (config.intermediateSize == 0) config.intermediateSize = 4 * config.hiddenSize;
  for (auto& layer : config.layers) {
    layer.kvHeads = config.kvHeads;
    layer.intermediateSize = config.intermediateSize;
  }
  config.checkpoint.normBias = true;
  // The large ones norm attention and MLP apart and ship the tied head; the small ones have one norm, if both branches are
  // parallel.
  const bool parallel = context.keys.flag({"parallel_attn"}).value_or(true);
  const int64_t norms = context.keys.integer({"num_ln_in_parallel_attn"}, 1, 2).value_or(groups ? 2 : 1);
  config.checkpoint.singleNorm = parallel && norms == 1;
  config.checkpoint.tiedHeadStored = groups && config.tieWordEmbeddings;
  if (!context.keys.flag({"bias"}).value_or(false))
    config.checkpoint.qkvBias = config.checkpoint.outputBias = config.checkpoint.mlpBias = false;
}

// Its norms have biases, whatever use_bias says of the projections.
void adjustStarcoder2(FamilyContext context) { context.config.checkpoint.normBias = true; }

void adjustPhimoe(FamilyContext context) {
  context.config.checkpoint.normBias = true;
  context.config.checkpoint.headBias = context.keys.flag({"lm_head_bias"}).value_or(false);
}

void adjustPhi3Small(FamilyContext context) {
  CheckpointTraits& checkpoint = context.config.checkpoint;
  checkpoint.qkvBias = checkpoint.outputBias = checkpoint.mlpBias = checkpoint.normBias = true;
  context.config.decoder.embeddingMultiplier = context.keys.number({"mup_embedding_multiplier"}, 1e-9, 1e9).value_or(1.0);
  context.config.decoder.logitsMultiplier = 1.0 / context.keys.number({"mup_width_multiplier"}, 1e-9, 1e9).value_or(1.0);
}

void adjustChatGlm(FamilyContext context) {
  ModelConfig& config = context.config;
  if (!context.keys.flag({"multi_query_attention"}).value_or(false)) config.kvHeads = config.qHeads;
  for (auto& layer : config.layers) layer.kvHeads = config.kvHeads;
  const int64_t partial = config.headDim / 2;
  config.rope.rotaryDim = config.localRope.rotaryDim = partial;
  config.rope.theta *= context.keys.number({"rope_ratio"}, 1e-3, 1e9).value_or(1.0);
}

void adjustMiniCpm3(FamilyContext context) {
  DecoderTraits& decoder = context.config.decoder;
  decoder.embeddingMultiplier = context.keys.number({"scale_emb"}, 1e-9, 1e9).value_or(1.0);
  decoder.residualMultiplier =
      context.keys.number({"scale_depth"}, 1e-9, 1e9).value_or(1.0) / std::sqrt(static_cast<double>(context.config.layerCount()));
  decoder.logitsMultiplier =
      context.keys.number({"dim_model_base"}, 1e-9, 1e9).value_or(1.0) / static_cast<double>(context.config.hiddenSize);
}

void adjustMtpEmbeddings(FamilyContext context) { context.config.checkpoint.mtpEmbeddings = true; }

void adjustMiniMax(FamilyContext context) {
  for (auto& layer : context.config.layers) {
    layer.moe.routerBias = context.keys.flag({"use_routing_bias"}).value_or(true);
    layer.moe.biasOnlyChooses = layer.moe.normalizeWeights = true;
    layer.moe.scoring = RouterScoring::Sigmoid;
  }
}

// YaRN also sharpens the softmax; https://arxiv.org/abs/2309.00071, and DeepSeek's own mscale_all_dim.
void adjustLatentScale(FamilyContext context) {
  ModelConfig& config = context.config;
  if (config.rope.scaling == RopeScaling::None || config.rope.mscaleAllDim == 0.0 || config.rope.factor <= 1.0) return;
  const double mscale = 0.1 * config.rope.mscaleAllDim * std::log(config.rope.factor) + 1.0;
  config.decoder.attentionScale = mscale * mscale / std::sqrt(static_cast<double>(config.headDim));
}

// DeepSeek V3's routing without an auxiliary loss; https://arxiv.org/abs/2412.19437
void adjustRouterBias(FamilyContext context) {
  for (auto& layer : context.config.layers) {
    layer.moe.routerBias = layer.ffn == FfnKind::MixtureOfExperts;
    layer.moe.biasOnlyChooses = layer.moe.groupByTopTwo = true;
    layer.moe.normalizeWeights = context.keys.flag({"norm_topk_prob"}).value_or(true);
    layer.moe.scoring = RouterScoring::Sigmoid;
  }
}

void adjustGlm4Moe(FamilyContext context) {
  adjustRouterBias(context);
  context.config.checkpoint.mtpEmbeddings = true;
}

void adjustGlmSparse(FamilyContext context) {
  adjustRouterBias(context);
  const auto types = context.keys.texts({"indexer_types"});
  for (size_t i = 0; i < context.config.layers.size(); ++i)
    context.config.layers[i].indexer = types.size() <= i || types[i] == "full";
}

void adjustDeepseekV3(FamilyContext context) {
  adjustRouterBias(context);
  adjustMtpEmbeddings(context);
  adjustLatentScale(context);
  if (!context.keys.flag({"rope_interleave"}).value_or(true)) context.config.rope.style = RopeStyle::Neox;
}

void adjustDeepseekV32(FamilyContext context) {
  adjustDeepseekV3(context);
  for (auto& layer : context.config.layers) layer.indexer = true;
}

// Attention over compressed tokens; https://huggingface.co/deepseek-ai/DeepSeek-V4-Flash
void adjustDeepseekV4(FamilyContext context) {
  ModelConfig& config = context.config;
  const int64_t hashed = context.keys.integer({"num_hash_layers"}, 0, 1024).value_or(0);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    layer.attention = AttentionKind::Compressed;
    layer.window = context.keys.integer({"sliding_window"}, 1, 1 << 30).value_or(128);
    layer.sinks = true;
    layer.moe.routerBias = static_cast<int64_t>(i) >= hashed;
  }
}

constexpr TensorNames kMixtralNames{.moe = "block_sparse_moe.", .expertGate = "w1", .expertUp = "w3", .expertDown = "w2"};
constexpr TensorNames kMiniMaxNames{.moe = "block_sparse_moe.",
                                    .expertGate = "w1",
                                    .expertUp = "w3",
                                    .expertDown = "w2",
                                    .routerBias = "e_score_correction_bias"};
constexpr TensorNames kQwenMoeNames{.shared = "mlp.shared_expert."};
constexpr TensorNames kQwen35MoeNames{
    .moe = "mlp.", .expertGate = "experts.gate_up_proj", .expertDown = "experts.down_proj", .shared = "mlp.shared_expert."};
constexpr TensorNames kGptOssNames{
    .router = "router", .expertGate = "experts.gate_up_proj", .expertDown = "experts.down_proj", .routerBias = "router.bias"};
constexpr TensorNames kLlama4Names{.head = "language_model.lm_head",
                                   .mlp = "feed_forward.",
                                   .moe = "feed_forward.",
                                   .router = "router",
                                   .expertGate = "experts.gate_up_proj",
                                   .expertDown = "experts.down_proj",
                                   .shared = "feed_forward.shared_expert."};
constexpr TensorNames kGraniteMoeNames{.moe = "block_sparse_moe.",
                                       .router = "router.layer",
                                       .expertGate = "input_linear.weight",
                                       .expertDown = "output_linear.weight"};
constexpr TensorNames kGemma4Names{.moe = "",
                                   .router = "router.proj",
                                   .expertGate = "experts.gate_up_proj",
                                   .expertDown = "experts.down_proj",
                                   .shared = "mlp."};
constexpr TensorNames kCohereNames{.ffnNorm = ""};
constexpr TensorNames kFalconNames{.model = "transformer.",
                                   .embedding = "word_embeddings",
                                   .layers = "h.",
                                   .finalNorm = "ln_f",
                                   .attentionNorm = "ln_attn",
                                   .ffnNorm = "ln_mlp",
                                   .attention = "self_attention.",
                                   .o = "dense",
                                   .qkv = "query_key_value",
                                   .up = "dense_h_to_4h",
                                   .down = "dense_4h_to_h"};
constexpr TensorNames kPhi3SmallNames{
    .finalNorm = "final_layernorm", .o = "dense", .qkv = "query_key_value", .gateUp = "up_proj"};
constexpr TensorNames kDbrxNames{.model = "transformer.",
                                 .embedding = "wte",
                                 .layers = "blocks.",
                                 .finalNorm = "norm_f",
                                 .attentionNorm = "norm_attn_norm.norm_1",
                                 .ffnNorm = "norm_attn_norm.norm_2",
                                 .attention = "norm_attn_norm.attn.",
                                 .o = "out_proj",
                                 .qkv = "Wqkv",
                                 .moe = "ffn.",
                                 .router = "router.layer",
                                 .expertGate = "experts.mlp.w1v1",
                                 .expertDown = "experts.mlp.w2"};
constexpr TensorNames kStarcoder2Names{.up = "c_fc", .down = "c_proj"};
constexpr TensorNames kQwen1Names{.model = "transformer.",
                                  .embedding = "wte",
                                  .layers = "h.",
                                  .finalNorm = "ln_f",
                                  .attentionNorm = "ln_1",
                                  .ffnNorm = "ln_2",
                                  .attention = "attn.",
                                  .o = "c_proj",
                                  .qkv = "c_attn",
                                  .gate = "w2",
                                  .up = "w1",
                                  .down = "c_proj"};
constexpr TensorNames kInternLm2Names{.embedding = "tok_embeddings",
                                      .head = "output",
                                      .attentionNorm = "attention_norm",
                                      .ffnNorm = "ffn_norm",
                                      .attention = "attention.",
                                      .o = "wo",
                                      .qkv = "wqkv",
                                      .mlp = "feed_forward.",
                                      .gate = "w1",
                                      .up = "w3",
                                      .down = "w2"};
constexpr TensorNames kBaichuanNames{.qkv = "W_pack"};
constexpr TensorNames kChatGlmNames{.model = "transformer.",
                                    .embedding = "embedding.word_embeddings",
                                    .layers = "encoder.layers.",
                                    .finalNorm = "encoder.final_layernorm",
                                    .head = "transformer.output_layer",
                                    .attention = "self_attention.",
                                    .o = "dense",
                                    .qkv = "query_key_value",
                                    .down = "dense_4h_to_h",
                                    .gateUp = "dense_h_to_4h"};
constexpr TensorNames kJambaNames{.finalNorm = "final_layernorm",
                                  .ffnNorm = "pre_ff_layernorm",
                                  .mlp = "feed_forward.",
                                  .moe = "feed_forward.",
                                  .router = "router"};
constexpr TensorNames kNemotronHNames{.model = "backbone.",
                                      .embedding = "embeddings",
                                      .finalNorm = "norm_f",
                                      .attentionNorm = "norm",
                                      .attention = "mixer.",
                                      .mlp = "mixer.",
                                      .moe = "mixer.",
                                      .shared = "mixer.shared_experts."};
constexpr TensorNames kLfm2Names{.finalNorm = "embedding_norm",
                                 .attentionNorm = "operator_norm",
                                 .ffnNorm = "ffn_norm",
                                 .o = "out_proj",
                                 .qNorm = "q_layernorm",
                                 .kNorm = "k_layernorm",
                                 .mlp = "feed_forward.",
                                 .gate = "w1",
                                 .up = "w3",
                                 .down = "w2"};

// hidden, layers, query heads, KV heads, head width (0: by division), MLP width, vocabulary
constexpr ClassSizes kLlamaSizes{4096, 32, 32, 32, 0, 11008, 32000}, kMistralSizes{4096, 32, 32, 8, 0, 14336, 32000},
    kQwen2Sizes{4096, 32, 32, 32, 0, 22016, 151936}, kQwen3Sizes{4096, 32, 32, 32, 128, 22016, 151936},
    kGemmaSizes{3072, 28, 16, 16, 256, 24576, 256000}, kGemma2Sizes{2304, 26, 8, 4, 256, 9216, 256000},
    kGemma3Sizes{2304, 26, 8, 4, 256, 9216, 262208}, kGlm4Sizes{4096, 40, 32, 2, 128, 13696, 151552},
    kCohereSizes{8192, 40, 64, 64, 0, 22528, 256000}, kLfm2Sizes{2560, 32, 32, 8, 0, 12288, 65536};

constexpr std::array kFamilies = {
    ModelFamily{.modelTypes = "llama", .architecture = "LlamaForCausalLM", .sizes = &kLlamaSizes},
    ModelFamily{.modelTypes = "mistral ministral",
                .architecture = "MistralForCausalLM",
                .bias = BiasRule::Never,
                .window = WindowRule::AllLayers,
                .sizes = &kMistralSizes},
    ModelFamily{.modelTypes = "ministral3",
                .architecture = "Ministral3ForCausalLM",
                .bias = BiasRule::Never,
                .window = WindowRule::AllLayers,
                .normEpsilon = 1e-5},
    ModelFamily{.modelTypes = "qwen2",
                .architecture = "Qwen2ForCausalLM",
                .bias = BiasRule::AlwaysQkv,
                .window = WindowRule::FromMaxWindow,
                .sizes = &kQwen2Sizes},
    ModelFamily{.modelTypes = "qwen3",
                .architecture = "Qwen3ForCausalLM",
                .qkNorm = QkNormRule::PerHead,
                .window = WindowRule::FromMaxWindow,
                .sizes = &kQwen3Sizes},
    ModelFamily{.modelTypes = "smollm3",
                .architecture = "SmolLM3ForCausalLM",
                .window = WindowRule::FromMaxWindow,
                .tiedByDefault = true,
                .ropeTheta = 2000000.0,
                .adjust = adjustSmolLm3},
    ModelFamily{.modelTypes = "mimo",
                .architecture = "MiMoForCausalLM",
                .bias = BiasRule::AlwaysQkv,
                .window = WindowRule::FromMaxWindow},
    ModelFamily{.modelTypes = "gemma",
                .architecture = "GemmaForCausalLM",
                .tiedByDefault = true,
                .normWeightOffset = 1.0,
                .activation = Activation::GeluTanh,
                .vocabSize = 256000,
                .sizes = &kGemmaSizes,
                .adjust = adjustGemma},
    ModelFamily{.modelTypes = "gemma2",
                .architecture = "Gemma2ForCausalLM",
                .norms = NormPlaces::BeforeAndAfter,
                .window = WindowRule::EveryOther,
                .tiedByDefault = true,
                .normWeightOffset = 1.0,
                .activation = Activation::GeluTanh,
                .vocabSize = 256000,
                .sizes = &kGemma2Sizes,
                .adjust = adjustGemma2},
    ModelFamily{.modelTypes = "gemma3_text gemma3",
                .architecture = "Gemma3ForCausalLM",
                .qkNorm = QkNormRule::PerHead,
                .norms = NormPlaces::BeforeAndAfter,
                .window = WindowRule::AllButEveryNth,
                .tiedByDefault = true,
                .normWeightOffset = 1.0,
                .activation = Activation::GeluTanh,
                .ropeTheta = 1000000.0,
                .vocabSize = 262208,
                .positions = 131072,
                .sizes = &kGemma3Sizes,
                .adjust = adjustGemma3,
                .extras = addSiglipTower},
    ModelFamily{.modelTypes = "phi3",
                .architecture = "Phi3ForCausalLM",
                .bias = BiasRule::Never,
                .window = WindowRule::AllLayers,
                .normEpsilon = 1e-5,
                .fusedQkv = true,
                .fusedGateUp = true},
    ModelFamily{.modelTypes = "olmo2",
                .architecture = "Olmo2ForCausalLM",
                .qkNorm = QkNormRule::FullWidth,
                .norms = NormPlaces::After,
                .normEpsilon = 1e-5},
    ModelFamily{.modelTypes = "olmo3",
                .architecture = "Olmo3ForCausalLM",
                .qkNorm = QkNormRule::FullWidth,
                .norms = NormPlaces::After,
                .window = WindowRule::AllButEveryNth,
                .normEpsilon = 1e-5,
                .ropeTheta = 500000.0,
                .adjust = adjustOlmo3},
    ModelFamily{.modelTypes = "granite", .architecture = "GraniteForCausalLM", .adjust = adjustGranite},
    ModelFamily{.modelTypes = "glm4 glm4v_text glm_ocr_text",
                .architecture = "Glm4ForCausalLM",
                .bias = BiasRule::KeyQkv,
                .norms = NormPlaces::BeforeAndAfter,
                .fusedGateUp = true,
                .partialRotary = 0.5,
                .ropeStyle = RopeStyle::Interleaved,
                .sizes = &kGlm4Sizes},
    ModelFamily{.modelTypes = "glm",
                .architecture = "GlmForCausalLM",
                .bias = BiasRule::KeyQkv,
                .fusedGateUp = true,
                .partialRotary = 0.5,
                .ropeStyle = RopeStyle::Interleaved},
    ModelFamily{.modelTypes = "cohere",
                .architecture = "CohereForCausalLM",
                .qkNorm = QkNormRule::Key,
                .norms = NormPlaces::Single,
                .tiedByDefault = true,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .ropeStyle = RopeStyle::Interleaved,
                .ropeTheta = 500000.0,
                .sizes = &kCohereSizes,
                .names = &kCohereNames,
                .adjust = adjustCohere},
    ModelFamily{.modelTypes = "cohere2",
                .architecture = "Cohere2ForCausalLM",
                .norms = NormPlaces::Single,
                .window = WindowRule::AllButEveryNth,
                .tiedByDefault = true,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .ropeStyle = RopeStyle::Interleaved,
                .sizes = &kCohereSizes,
                .names = &kCohereNames,
                .adjust = adjustCohere},
    ModelFamily{.modelTypes = "mixtral",
                .architecture = "MixtralForCausalLM",
                .bias = BiasRule::Never,
                .window = WindowRule::AllLayers,
                .normEpsilon = 1e-5,
                .ropeTheta = 1000000.0,
                .names = &kMixtralNames,
                .adjust = adjustChosenSoftmax},
    ModelFamily{.modelTypes = "qwen2_moe",
                .architecture = "Qwen2MoeForCausalLM",
                .bias = BiasRule::AlwaysQkv,
                .window = WindowRule::FromMaxWindow,
                .names = &kQwenMoeNames},
    ModelFamily{.modelTypes = "qwen3_moe",
                .architecture = "Qwen3MoeForCausalLM",
                .qkNorm = QkNormRule::PerHead,
                .window = WindowRule::FromMaxWindow},
    ModelFamily{.modelTypes = "qwen3_next",
                .architecture = "Qwen3NextForCausalLM",
                .qkNorm = QkNormRule::PerHead,
                .normWeightOffset = 1.0,
                .partialRotary = 0.25,
                .names = &kQwenMoeNames,
                .adjust = adjustQwenHybrid,
                .extras = addQwenMtp},
    ModelFamily{.modelTypes = "qwen3_5 qwen3_5_text",
                .architecture = "Qwen3_5ForConditionalGeneration",
                .qkNorm = QkNormRule::PerHead,
                .normWeightOffset = 1.0,
                .partialRotary = 0.25,
                .adjust = adjustQwenHybrid,
                .extras = addQwen35Parts},
    ModelFamily{.modelTypes = "qwen3_5_moe qwen3_5_moe_text",
                .architecture = "Qwen3_5MoeForConditionalGeneration",
                .qkNorm = QkNormRule::PerHead,
                .normWeightOffset = 1.0,
                .partialRotary = 0.25,
                .names = &kQwen35MoeNames,
                .experts = ExpertStyle::FusedRows,
                .adjust = adjustQwenHybrid,
                .extras = addQwen35Parts},
    ModelFamily{.modelTypes = "qwen2_vl",
                .architecture = "Qwen2VLForConditionalGeneration",
                .bias = BiasRule::AlwaysQkv,
                .window = WindowRule::FromMaxWindow,
                .ropeTheta = 1000000.0,
                .lacks = "image input",
                .extras = addQwen2VlTower},
    ModelFamily{.modelTypes = "qwen2_5_vl",
                .architecture = "Qwen2_5_VLForConditionalGeneration",
                .bias = BiasRule::AlwaysQkv,
                .window = WindowRule::FromMaxWindow,
                .ropeTheta = 1000000.0,
                .lacks = "image input",
                .extras = addQwen25VlTower},
    ModelFamily{.modelTypes = "qwen3_vl qwen3_vl_text",
                .architecture = "Qwen3VLForConditionalGeneration",
                .qkNorm = QkNormRule::PerHead,
                .ropeTheta = 500000.0,
                .lacks = "image input",
                .extras = addQwen3VlTower},
    ModelFamily{.modelTypes = "qwen3_vl_moe qwen3_vl_moe_text",
                .architecture = "Qwen3VLMoeForConditionalGeneration",
                .qkNorm = QkNormRule::PerHead,
                .ropeTheta = 500000.0,
                .lacks = "image input",
                .extras = addQwen3VlTower},
    ModelFamily{.modelTypes = "qwen",
                .architecture = "QWenLMHeadModel",
                .bias = BiasRule::AlwaysQkv,
                .fusedQkv = true,
                .names = &kQwen1Names,
                .lacks = "the first Qwen's attention scaling",
                .adjust = adjustQwen1},
    ModelFamily{.modelTypes = "deepseek_v2",
                .architecture = "DeepseekV2ForCausalLM",
                .ropeStyle = RopeStyle::Interleaved,
                .adjust = adjustLatentScale},
    ModelFamily{.modelTypes = "deepseek_v3 kimi_k2",
                .architecture = "DeepseekV3ForCausalLM",
                .ropeStyle = RopeStyle::Interleaved,
                .adjust = adjustDeepseekV3,
                .extras = addDeepseekMtp},
    ModelFamily{.modelTypes = "kimi_k25",
                .architecture = "KimiK25ForConditionalGeneration",
                .ropeStyle = RopeStyle::Interleaved,
                .lacks = "image input",
                .adjust = adjustDeepseekV3,
                .extras = addMoonVitTower},
    ModelFamily{.modelTypes = "deepseek_v32",
                .architecture = "DeepseekV32ForCausalLM",
                .ropeStyle = RopeStyle::Interleaved,
                .lacks = "sparse attention",
                .adjust = adjustDeepseekV32,
                .extras = addDeepseekMtp},
    ModelFamily{.modelTypes = "glm_moe_dsa",
                .architecture = "GlmMoeDsaForCausalLM",
                .ropeStyle = RopeStyle::Interleaved,
                .lacks = "sparse attention",
                .adjust = adjustGlmSparse,
                .extras = addDeepseekMtp},
    ModelFamily{.modelTypes = "glm4_moe glm4v_moe_text",
                .architecture = "Glm4MoeForCausalLM",
                .bias = BiasRule::KeyQkv,
                .qkNorm = QkNormRule::Key,
                .partialRotary = 0.5,
                .adjust = adjustGlm4Moe,
                .extras = addDeepseekMtp},
    ModelFamily{.modelTypes = "glm4_moe_lite",
                .architecture = "Glm4MoeLiteForCausalLM",
                .adjust = adjustRouterBias,
                .extras = addDeepseekMtp},
    ModelFamily{.modelTypes = "minimax_m2",
                .architecture = "MiniMaxM2ForCausalLM",
                .bias = BiasRule::Never,
                .qkNorm = QkNormRule::FullWidth,
                .ropeTheta = 5000000.0,
                .names = &kMiniMaxNames,
                .adjust = adjustMiniMax},
    ModelFamily{.modelTypes = "mimo_v2_flash",
                .architecture = "MiMoV2FlashForCausalLM",
                .bias = BiasRule::KeyQkv,
                .lacks = "MiMo V2's attention",
                .adjust = adjustMimoV2},
    ModelFamily{.modelTypes = "gpt_oss",
                .architecture = "GptOssForCausalLM",
                .window = WindowRule::EveryOther,
                .normEpsilon = 1e-5,
                .ropeTheta = 150000.0,
                .names = &kGptOssNames,
                .experts = ExpertStyle::FusedColumns,
                .adjust = adjustGptOss},
    ModelFamily{.modelTypes = "llama4 llama4_text",
                .architecture = "Llama4ForConditionalGeneration",
                .normEpsilon = 1e-5,
                .ropeStyle = RopeStyle::Interleaved,
                .ropeTheta = 500000.0,
                .vocabSize = 202048,
                .names = &kLlama4Names,
                .experts = ExpertStyle::FusedColumns,
                .adjust = adjustLlama4,
                .extras = addLlama4Tower},
    ModelFamily{.modelTypes = "mllama mllama_text_model",
                .architecture = "MllamaForConditionalGeneration",
                .bias = BiasRule::Never,
                .ropeTheta = 500000.0,
                .vocabSize = 128256,
                .lacks = "image input",
                .adjust = adjustMllama,
                .extras = addMllamaTower},
    ModelFamily{.modelTypes = "gemma4 gemma4_text",
                .architecture = "Gemma4ForConditionalGeneration",
                .qkNorm = QkNormRule::PerHead,
                .norms = NormPlaces::BeforeAndAfter,
                .window = WindowRule::AllButEveryNth,
                .tiedByDefault = true,
                .activation = Activation::GeluTanh,
                .ropeTheta = 1000000.0,
                .vocabSize = 262144,
                .names = &kGemma4Names,
                .experts = ExpertStyle::FusedRows,
                .lacks = "Gemma 4's layers",
                .adjust = adjustGemma4,
                .layerExtras = writeLayerInputs,
                .extras = addGemma4Parts},
    ModelFamily{.modelTypes = "granitemoe",
                .architecture = "GraniteMoeForCausalLM",
                .names = &kGraniteMoeNames,
                .experts = ExpertStyle::FusedRows,
                .adjust = adjustGraniteMoe},
    ModelFamily{.modelTypes = "phimoe",
                .architecture = "PhiMoEForCausalLM",
                .window = WindowRule::AllLayers,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .ropeTheta = 1000000.0,
                .names = &kMixtralNames,
                .lacks = "sparse mixer routing",
                .adjust = adjustPhimoe},
    ModelFamily{.modelTypes = "jamba",
                .architecture = "JambaForCausalLM",
                .bias = BiasRule::Never,
                .names = &kJambaNames,
                .adjust = adjustJamba},
    ModelFamily{.modelTypes = "nemotron_h",
                .architecture = "NemotronHForCausalLM",
                .norms = NormPlaces::OnePerMixer,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::Relu2,
                .names = &kNemotronHNames,
                .adjust = adjustNemotronH,
                .extras = addNemotronMtp},
    ModelFamily{
        .modelTypes = "nemotron-nas deci", .architecture = "DeciLMForCausalLM", .normEpsilon = 1e-5, .adjust = adjustNemotronNas},
    ModelFamily{.modelTypes = "lfm2",
                .architecture = "Lfm2ForCausalLM",
                .bias = BiasRule::Never,
                .tiedByDefault = true,
                .normEpsilon = 1e-5,
                .ropeTheta = 1000000.0,
                .sizes = &kLfm2Sizes,
                .names = &kLfm2Names,
                .adjust = adjustLfm2},
    ModelFamily{.modelTypes = "falcon RefinedWeb RefinedWebModel",
                .architecture = "FalconForCausalLM",
                .bias = BiasRule::UseBias,
                .norms = NormPlaces::Single,
                .tiedByDefault = true,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::Gelu,
                .fusedQkv = true,
                .positions = 2048,
                .names = &kFalconNames,
                .adjust = adjustFalcon},
    ModelFamily{.modelTypes = "starcoder2",
                .architecture = "Starcoder2ForCausalLM",
                .bias = BiasRule::UseBias,
                .window = WindowRule::AllLayers,
                .tiedByDefault = true,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .gatedMlp = false,
                .activation = Activation::GeluTanh,
                .names = &kStarcoder2Names,
                .adjust = adjustStarcoder2},
    ModelFamily{.modelTypes = "internlm2",
                .architecture = "InternLM2ForCausalLM",
                .bias = BiasRule::Never,
                .fusedQkv = true,
                .names = &kInternLm2Names,
                .lacks = "InternLM2's order of the fused rows"},
    ModelFamily{.modelTypes = "baichuan",
                .architecture = "BaichuanForCausalLM",
                .bias = BiasRule::Never,
                .fusedQkv = true,
                .names = &kBaichuanNames,
                .lacks = "Baichuan's normalized head"},
    ModelFamily{.modelTypes = "chatglm",
                .architecture = "ChatGLMModel",
                .bias = BiasRule::KeyQkv,
                .normEpsilon = 1e-5,
                .fusedQkv = true,
                .fusedGateUp = true,
                .ropeStyle = RopeStyle::Interleaved,
                .names = &kChatGlmNames,
                .lacks = "ChatGLM's rotary layout",
                .adjust = adjustChatGlm,
                .extras = addChatGlmFrequencies},
    ModelFamily{.modelTypes = "phi3small",
                .architecture = "Phi3SmallForCausalLM",
                .bias = BiasRule::Never,
                .tiedByDefault = true,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .activation = Activation::GeluTanh,
                .fusedQkv = true,
                .fusedGateUp = true,
                .ropeTheta = 1000000.0,
                .vocabSize = 100352,
                .names = &kPhi3SmallNames,
                .lacks = "block-sparse attention",
                .adjust = adjustPhi3Small},
    ModelFamily{.modelTypes = "dbrx",
                .architecture = "DbrxForCausalLM",
                .bias = BiasRule::Never,
                .norm = NormKind::LayerNorm,
                .normEpsilon = 1e-5,
                .fusedQkv = true,
                .ropeTheta = 500000.0,
                .names = &kDbrxNames,
                .experts = ExpertStyle::FusedRows,
                .lacks = "DBRX's layers"},
    ModelFamily{.modelTypes = "deepseek_v4",
                .architecture = "DeepseekV4ForCausalLM",
                .bias = BiasRule::Never,
                .ropeStyle = RopeStyle::Interleaved,
                .lacks = "several residual streams",
                .adjust = adjustDeepseekV4,
                .extras = addDeepseekV4Parts},
    ModelFamily{.modelTypes = "minicpm3",
                .architecture = "MiniCPM3ForCausalLM",
                .tiedByDefault = true,
                .lacks = "MiniCPM3's layers",
                .adjust = adjustMiniCpm3},
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
  if (modelType.empty()) return nullptr;
  for (const std::span<const ModelFamily> table : {std::span<const ModelFamily>(kFamilies), siblingFamilies(), hybridFamilies()})
    for (const auto& family : table)
      if (listsWord(family.modelTypes, modelType)) return &family;
  return nullptr;
}

const WrapperFamily* findWrapperFamily(std::string_view modelType) {
  if (modelType.empty()) return nullptr;
  for (const auto& wrapper : wrapperFamilies())
    if (listsWord(wrapper.modelTypes, modelType)) return &wrapper;
  return nullptr;
}

}  // namespace headroom
