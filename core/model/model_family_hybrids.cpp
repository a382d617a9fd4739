// SPDX-License-Identifier: Apache-2.0
// The third part of the table of model families: those whose layers are of several kinds or made in ways of their own. Shapes
// follow the model classes of Hugging Face Transformers; the engine does not run them yet.
#include "core/model/inventory_extras.h"
#include "core/model/inventory_part.h"
#include "core/model/model_family.h"

#include <algorithm>
#include <array>

namespace headroom {
namespace {

// Adds tensors of one layer that no role names.
class LayerTensors {
 public:
  LayerTensors(InventoryBuilder& builder, int layer, std::string at) : m_builder(builder), m_layer(layer), m_at(std::move(at)) {}
  // A matrix; `dim`: the dimension that follows `segments`, -1 for none.
  void linear(std::string_view module, int64_t out, int64_t in, int dim = -1, std::vector<SplitSegment> segments = {},
              bool bias = false) {
    m_builder.linear({.module = fmt::format("{}{}", m_at, module),
                      .out = out,
                      .in = in,
                      .bias = bias,
                      .layer = m_layer,
                      .splitDim = dim,
                      .segments = std::move(segments)});
  }
  // A matrix whose role tells its split.
  void linear(TensorRole role, TensorRole biasRole, std::string_view module, int64_t out, int64_t in, bool bias = false) {
    m_builder.linear({.module = fmt::format("{}{}", m_at, module),
                      .out = out,
                      .in = in,
                      .role = role,
                      .biasRole = biasRole,
                      .bias = bias,
                      .layer = m_layer});
  }
  void plain(std::string_view name, std::vector<int64_t> shape, std::vector<SplitSegment> segments = {}) {
    TensorEntry& entry = m_builder.tensor(fmt::format("{}{}", m_at, name), std::move(shape), m_layer);
    if (segments.empty()) return;
    entry.splitDim = 0;
    entry.segments = std::move(segments);
  }

 private:
  InventoryBuilder& m_builder;
  int m_layer;
  std::string m_at;
};

// ---- LongCat-Flash ----------------------------------------------------------------------------------------------------------

// A layer of the checkpoint is two attentions with an MLP each, and experts beside the first MLP
// (https://arxiv.org/abs/2509.01322). Each attention keeps a cache of its own, so each is a layer here.
void adjustLongcat(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  // num_hidden_layers, where it is written, counts the attentions.
  const auto pairs = static_cast<size_t>(keys.has("num_layers") ? keys.integer({"num_layers"}, 1, 1024).value_or(1)
                                                                : std::max<int64_t>(1, config.layerCount() / 2));
  LayerSpec first = config.layers.front();
  LayerSpec second = first;
  second.ffn = FfnKind::Dense;
  second.moe = {};
  if (first.ffn == FfnKind::MixtureOfExperts) {
    first.moe.routerBias = first.moe.biasOnlyChooses = true;
    first.moe.sharedExperts = 1;
    first.moe.sharedIntermediate = config.intermediateSize;
  }
  config.layers.clear();
  for (size_t i = 0; i < pairs; ++i) config.layers.insert(config.layers.end(), {first, second});
  config.warnings.push_back(
      "each layer is counted as two, one for each of its attentions: engines divide stages between whole layers");
  if (config.checkpoint.mtpLayers > 0) config.warnings.push_back("prediction layers are not counted");
}

// ---- Zamba 2 ----------------------------------------------------------------------------------------------------------------

// Mamba 2 in every layer; before some of them one of a few transformer blocks, which those layers share
// (https://arxiv.org/abs/2411.15242). Each has a cache of its own all the same.
void adjustZamba2(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  const auto types = keys.texts({"layers_block_type"});
  const auto hybrids = keys.integers({"hybrid_layer_ids"}, 0, 1023);
  // The block reads the layer's input beside the embedding.
  config.headDim =
      keys.integer({"attention_head_dim"}, 1, 8192).value_or(std::max<int64_t>(1, 2 * config.hiddenSize / config.qHeads));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    const bool hybrid = i < types.size() ? types[i] == "hybrid"
                                         : std::find(hybrids.begin(), hybrids.end(), static_cast<int64_t>(i)) != hybrids.end();
    layer.headDim = layer.vHeadDim = config.headDim;
    layer.rope = hybrid && keys.flag({"use_mem_rope"}).value_or(false);
    layer.mambaBeside = hybrid;
    if (hybrid) continue;
    layer.attention = AttentionKind::Mamba;
    layer.ffn = FfnKind::None;
  }
  config.warnings.push_back("blocks that several layers share are counted once, with the first of these layers");
}

void writeZamba2(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  const ModelConfig& config = builder.config();
  const ConfigReader& keys = builder.keys();
  const int64_t hidden = config.hiddenSize;
  const std::string mixer = spec.mambaBeside ? at + "mamba_decoder." : at;
  builder.tensor(mixer + "input_layernorm.weight", {hidden}, layer);
  writeMamba2(builder, spec, layer, mixer);
  if (!spec.mambaBeside) return;
  LayerTensors own(builder, layer, at);
  own.linear("linear", hidden, hidden);
  // The first layers that use a block hold it; the others add their adapters to it.
  std::vector<int> users;
  for (int i = 0; i <= layer; ++i)
    if (config.layers[static_cast<size_t>(i)].mambaBeside) users.push_back(i);
  const auto use = static_cast<int64_t>(users.size()) - 1;
  const int64_t blocks = keys.integer({"num_mem_blocks"}, 1, 64).value_or(1),
                rank = keys.integer({"adapter_rank"}, 1, 65536).value_or(128), inner = spec.intermediateSize, wide = 2 * hidden;
  LayerTensors block(builder, layer,
                     fmt::format("{}{}{}.shared_transformer.", builder.prefix(), builder.names().layers,
                                 users[static_cast<size_t>(use % blocks)]));
  const bool bias = keys.flag({"add_bias_linear"}).value_or(false);
  if (use < blocks) {
    const int64_t q = spec.qHeads * spec.headDim, kv = spec.kvHeads * spec.headDim;
    block.plain("input_layernorm.weight", {wide});
    block.linear(TensorRole::Q, TensorRole::Other, "self_attn.q_proj", q, wide);
    block.linear(TensorRole::K, TensorRole::Other, "self_attn.k_proj", kv, wide);
    block.linear(TensorRole::V, TensorRole::Other, "self_attn.v_proj", kv, wide);
    block.linear(TensorRole::O, TensorRole::Other, "self_attn.o_proj", hidden, q);
    block.plain("pre_ff_layernorm.weight", {hidden});
    block.linear(TensorRole::GateUp, TensorRole::Other, "feed_forward.gate_up_proj", 2 * inner, hidden, bias);
    block.linear(TensorRole::Down, TensorRole::DownBias, "feed_forward.down_proj", hidden, inner, bias);
  }
  const auto adapter = [&](std::string_view name, int64_t in, int64_t out) {
    block.linear(fmt::format("{}.{}.0", name, use), rank, in);
    block.linear(fmt::format("{}.{}.1", name, use), out, rank);
  };
  adapter("feed_forward.gate_up_proj_adapter_list", hidden, 2 * inner);
  if (!keys.flag({"use_shared_attention_adapter"}).value_or(false)) return;
  for (const char* one : {"q", "k", "v"}) adapter(fmt::format("self_attn.linear_{}_adapter_list", one), wide, wide);
}

// ---- OLMo Hybrid ------------------------------------------------------------------------------------------------------------

// Gated delta nets in three of four layers, with q, k and v apart; https://arxiv.org/abs/2412.06464
LinearAttention olmoDelta(const ConfigReader& keys, const ModelConfig& config) {
  LinearAttention net;
  net.keyHeads = keys.integer({"linear_num_key_heads"}, 1, 4096).value_or(config.qHeads);
  net.valueHeads = keys.integer({"linear_num_value_heads"}, 1, 4096).value_or(config.qHeads);
  net.keyDim =
      keys.integer({"linear_key_head_dim"}, 1, 8192).value_or(std::max<int64_t>(1, config.hiddenSize * 3 / 4 / net.keyHeads));
  net.valueDim = keys.integer({"linear_value_head_dim"}, 1, 8192).value_or(2 * net.keyDim);
  net.kernel = keys.integer({"linear_conv_kernel_dim"}, 1, 64).value_or(4);
  return net;
}

void adjustOlmoHybrid(FamilyContext context) {
  ModelConfig& config = context.config;
  const bool told = !context.keys.texts({"layer_types"}).empty();
  const LinearAttention net = olmoDelta(context.keys, config);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    if (!told && i % 4 != 3) layer.attention = AttentionKind::LinearAttention;
    if (layer.attention != AttentionKind::LinearAttention) continue;
    layer.rope = false;
    layer.recurrent.taps = net.kernel - 1;
    layer.recurrent.channels = net.channels();
    layer.recurrent.elements = net.valueHeads * net.keyDim * net.valueDim;
  }
}

void writeOlmoDelta(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& base) {
  if (spec.attention != AttentionKind::LinearAttention) return;
  const LinearAttention net = olmoDelta(builder.keys(), builder.config());
  const int64_t hidden = builder.config().hiddenSize, k = net.keyHeads * net.keyDim, v = net.valueHeads * net.valueDim;
  const SplitSegment keys{SplitUnit::QHeads, k, net.keyDim}, values{SplitUnit::QHeads, v, net.valueDim},
      heads{SplitUnit::QHeads, net.valueHeads, 1};
  LayerTensors tensors(builder, layer, base + "linear_attn.");
  for (const char* name : {"q_proj", "k_proj"}) tensors.linear(name, k, hidden, 0, {keys});
  for (const char* name : {"v_proj", "g_proj"}) tensors.linear(name, v, hidden, 0, {values});
  for (const char* name : {"a_proj", "b_proj"}) tensors.linear(name, net.valueHeads, hidden, 0, {heads});
  tensors.plain("conv1d.weight", {net.channels(), 1, net.kernel}, {keys, keys, values});
  for (const char* name : {"A_log", "dt_bias"}) tensors.plain(name, {net.valueHeads}, {heads});
  tensors.plain("o_norm.weight", {net.valueDim});
  tensors.linear("o_proj", hidden, v, 1, {values});
}

// ---- RecurrentGemma ---------------------------------------------------------------------------------------------------------

int64_t recurrentWidth(const ConfigReader& keys, const ModelConfig& config) {
  return keys.integer({"lru_width"}, 1, 1 << 17).value_or(config.hiddenSize);
}
int64_t recurrentKernel(const ConfigReader& keys) { return keys.integer({"conv1d_width"}, 1, 64).value_or(4); }

// Griffin: gated linear recurrences, and local attention in every third layer; https://arxiv.org/abs/2402.19427
void adjustRecurrentGemma(FamilyContext context) {
  ModelConfig& config = context.config;
  const ConfigReader& keys = context.keys;
  auto types = keys.texts({"block_types", "_block_types"});
  if (types.empty()) types = {"recurrent", "recurrent", "attention"};
  config.intermediateSize /= 2;  // the key counts gate and up together
  CheckpointTraits& stored = config.checkpoint;
  stored.outputBias = stored.mlpBias = true;
  stored.qkvBias = keys.flag({"attention_bias"}).value_or(false);
  const int64_t window = keys.integer({"attention_window_size"}, 1, 1 << 30).value_or(2048), width = recurrentWidth(keys, config);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    layer.intermediateSize = config.intermediateSize;
    if (types[i % types.size()] == "attention") {
      layer.attention = AttentionKind::SlidingWindow;
      layer.window = window;
      continue;
    }
    layer.attention = AttentionKind::LinearAttention;
    layer.rope = false;
    layer.recurrent.taps = recurrentKernel(keys) - 1;
    layer.recurrent.channels = layer.recurrent.elements = width;
    layer.recurrent.exact = true;
  }
}

void writeRecurrentBlock(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& base) {
  if (spec.attention != AttentionKind::LinearAttention) return;
  const int64_t hidden = builder.config().hiddenSize, width = recurrentWidth(builder.keys(), builder.config()),
                heads = std::max<int64_t>(1, spec.qHeads), each = std::max<int64_t>(1, width / heads);
  const SplitSegment columns{SplitUnit::QHeads, width, each}, byHead{SplitUnit::QHeads, heads, 1};
  const bool divides = width % heads == 0;
  const auto split = [&](const SplitSegment& segment) {
    return divides ? std::vector<SplitSegment>{segment} : std::vector<SplitSegment>{};
  };
  LayerTensors tensors(builder, layer, base + "temporal_block.");
  for (const char* name : {"linear_y", "linear_x"}) tensors.linear(name, width, hidden, divides ? 0 : -1, split(columns), true);
  tensors.linear("linear_out", hidden, width, divides ? 1 : -1, split(columns), true);
  tensors.plain("conv_1d.weight", {width, 1, recurrentKernel(builder.keys())}, split(columns));
  tensors.plain("conv_1d.bias", {width}, split(columns));
  tensors.plain("rg_lru.recurrent_param", {width}, split(columns));
  for (const char* gate : {"rg_lru.input_gate_", "rg_lru.recurrent_gate_"}) {
    tensors.plain(fmt::format("{}weight", gate), {heads, each, each}, split(byHead));
    tensors.plain(fmt::format("{}bias", gate), {heads, each}, split(byHead));
  }
}

// ---- JetMoE -----------------------------------------------------------------------------------------------------------------

// Queries are made by experts too, as many heads at a time as there are KV heads; https://arxiv.org/abs/2404.07413
void adjustJetMoe(FamilyContext context) {
  ModelConfig& config = context.config;
  const int64_t chosen = std::max<int64_t>(1, config.layers.front().moe.expertsPerToken);
  config.qHeads = config.kvHeads * chosen;
  for (auto& layer : config.layers) {
    layer.qHeads = config.qHeads;
    layer.moe.normalizeWeights = true;
  }
}

void writeJetMoe(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  const int64_t hidden = builder.config().hiddenSize, width = spec.kvHeads * spec.headDim, experts = spec.moe.experts;
  builder.tensor(at + "mlp.bias", {hidden}, layer);
  LayerTensors attention(builder, layer, at + "self_attention.");
  attention.plain("experts.bias", {hidden});
  attention.plain("experts.input_linear.weight", {experts, width, hidden});
  attention.plain("experts.output_linear.weight", {experts, hidden, width});
  attention.plain("experts.router.layer.weight", {experts, hidden});
  const SplitSegment heads{SplitUnit::KvHeads, width, spec.headDim};
  attention.linear("kv_proj", 2 * width, hidden, 0, {heads, heads});
}

constexpr TensorNames kLongcatFirst{.attentionNorm = "input_layernorm.0",
                                    .ffnNorm = "post_attention_layernorm.0",
                                    .attention = "self_attn.0.",
                                    .mlp = "mlps.0.",
                                    .router = "router.classifier",
                                    .shared = "mlps.0.",
                                    .routerBias = "router.e_score_correction_bias"};
constexpr TensorNames kLongcatSecond{
    .attentionNorm = "input_layernorm.1", .ffnNorm = "post_attention_layernorm.1", .attention = "self_attn.1.", .mlp = "mlps.1."};
constexpr TensorNames kZamba2Names{.finalNorm = "final_layernorm"};
constexpr TensorNames kRecurrentGemmaNames{.finalNorm = "final_norm",
                                           .attentionNorm = "temporal_pre_norm",
                                           .ffnNorm = "channel_pre_norm",
                                           .attention = "temporal_block.",
                                           .mlp = "mlp_block."};
constexpr TensorNames kJetMoeNames{
    .router = "router.layer", .expertGate = "input_linear.weight", .expertDown = "output_linear.weight"};

constexpr std::array kHybrids = {
    ModelFamily{.modelTypes = "longcat_flash",
                .architecture = "LongcatFlashForCausalLM",
                .normEpsilon = 1e-5,
                .ropeStyle = RopeStyle::Interleaved,
                .names = &kLongcatFirst,
                .secondNames = &kLongcatSecond,
                .lacks = "experts that return their input",
                .adjust = adjustLongcat},
    ModelFamily{.modelTypes = "zamba2",
                .architecture = "Zamba2ForCausalLM",
                .bias = BiasRule::Never,
                .tiedByDefault = true,
                .normEpsilon = 1e-5,
                .activation = Activation::Gelu,
                .names = &kZamba2Names,
                .lacks = "blocks that layers share",
                .adjust = adjustZamba2,
                .layerExtras = writeZamba2,
                .ownLayers = true},
    ModelFamily{.modelTypes = "olmo_hybrid",
                .architecture = "OlmoHybridForCausalLM",
                .qkNorm = QkNormRule::FullWidth,
                .norms = NormPlaces::After,
                .lacks = "OLMo Hybrid's layers",
                .adjust = adjustOlmoHybrid,
                .layerExtras = writeOlmoDelta},
    ModelFamily{.modelTypes = "recurrent_gemma",
                .architecture = "RecurrentGemmaForCausalLM",
                .bias = BiasRule::Never,
                .tiedByDefault = true,
                .normWeightOffset = 1.0,
                .activation = Activation::GeluTanh,
                .partialRotary = 0.5,
                .vocabSize = 256000,
                .names = &kRecurrentGemmaNames,
                .lacks = "Griffin's recurrent layers",
                .adjust = adjustRecurrentGemma,
                .layerExtras = writeRecurrentBlock},
    ModelFamily{.modelTypes = "jetmoe",
                .architecture = "JetMoeForCausalLM",
                .bias = BiasRule::Never,
                .tiedByDefault = true,
                .names = &kJetMoeNames,
                .experts = ExpertStyle::FusedRows,
                .lacks = "attention heads as experts",
                .adjust = adjustJetMoe,
                .layerExtras = writeJetMoe,
                .ownAttention = true},
    ModelFamily{.modelTypes = "phi4_multimodal",
                .architecture = "Phi4MultimodalForCausalLM",
                .bias = BiasRule::Never,
                .tiedByDefault = true,
                .normEpsilon = 1e-5,
                .fusedQkv = true,
                .fusedGateUp = true,
                .lacks = "image and audio input",
                .extras = addPhi4Parts},
    ModelFamily{.modelTypes = "phi4mm",
                .architecture = "Phi4MMForCausalLM",
                .bias = BiasRule::Never,
                .tiedByDefault = true,
                .normEpsilon = 1e-5,
                .fusedQkv = true,
                .fusedGateUp = true,
                .lacks = "image and audio input",
                .layerExtras = writePhi4Adapters,
                .extras = addPhi4MmParts},
};

}  // namespace

std::span<const ModelFamily> hybridFamilies() { return kHybrids; }

}  // namespace headroom
