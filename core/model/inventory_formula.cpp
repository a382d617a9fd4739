// SPDX-License-Identifier: Apache-2.0
// The inventory by formula: what a checkpoint of the configuration's family stores, tensor by tensor. Layers are described here
// by their kinds; what stands outside them (towers, prediction layers) is in inventory_extras.cpp.
#include "core/model/inventory_builder.h"
#include "core/model/inventory_extras.h"
#include "core/model/recurrent_state.h"

namespace headroom {
namespace {

class LayerWriter {
 public:
  LayerWriter(InventoryBuilder& builder, const LayerSpec& spec, int layer, std::string at)
      : m_builder(builder),
        m_config(builder.config()),
        m_names(layer % 2 == 1 && builder.family().secondNames ? *builder.family().secondNames : builder.names()),
        m_spec(spec),
        m_layer(layer),
        m_at(std::move(at)) {}

  void write() {
    if (m_builder.family().ownLayers) return m_builder.family().layerExtras(m_builder, m_spec, m_layer, m_at);
    writeNorms();
    writeAttention();
    if (m_spec.mambaBeside) writeMamba2();
    if (m_spec.ffn == FfnKind::Dense) writeMlp();
    if (m_spec.ffn == FfnKind::MixtureOfExperts) writeExperts();
    if (m_builder.family().layerExtras) m_builder.family().layerExtras(m_builder, m_spec, m_layer, m_at);
  }

  // Mamba 2 (https://arxiv.org/abs/2405.21060).
  void writeMamba2() {
    const ConfigReader& keys = m_builder.keys();
    const int64_t hidden = m_config.hiddenSize,
                  heads = keys.integer({"mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads"}, 1, 65536).value_or(1),
                  dim = keys.integer({"mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim"}, 1, 8192).value_or(64);
    const int64_t groups = keys.integer({"n_groups", "mamba_n_groups", "mamba_ngroups"}, 1, 4096).value_or(8),
                  state = keys.integer({"ssm_state_size", "mamba_d_state", "state_size"}, 1, 8192).value_or(128);
    const int64_t kernel = keys.integer({"conv_kernel", "mamba_d_conv"}, 1, 64).value_or(4), inner = heads * dim;
    const bool ownLayers = m_builder.family().ownLayers;
    const bool bias =
        keys.flag({"mamba_proj_bias", m_config.modelType == "mamba2" ? "use_bias" : "add_bias_linear"}).value_or(false);
    const SplitSegment headRows{SplitUnit::QHeads, inner, dim}, groupRows{SplitUnit::QHeads, groups * state, state},
        perHead{SplitUnit::QHeads, heads, 1};
    const std::string_view at = mambaAt();
    splitLinear(at, "in_proj", 2 * inner + 2 * groups * state + heads, hidden, 0,
                {headRows, headRows, groupRows, groupRows, perHead}, bias);
    plain(at, "conv1d.weight", {inner + 2 * groups * state, 1, kernel}, {headRows, groupRows, groupRows});
    if (keys.flag({"use_conv_bias", "mamba_conv_bias"}).value_or(true))
      plain(at, "conv1d.bias", {inner + 2 * groups * state}, {headRows, groupRows, groupRows});
    for (const char* one : {"A_log", "D", "dt_bias"}) plain(at, one, {heads}, {perHead});
    if (keys.flag({"mamba_rms_norm"}).value_or(!m_spec.mambaBeside || ownLayers)) plain(at, "norm.weight", {inner}, {headRows});
    const bool outBias = m_spec.mambaBeside && !ownLayers ? keys.flag({"projectors_bias"}).value_or(false) : bias;
    splitLinear(at, "out_proj", hidden, inner, 1, {headRows}, outBias);
  }

 private:
  std::string name(std::string_view part, std::string_view module) const { return fmt::format("{}{}{}", m_at, part, module); }

  void norm(TensorRole role, TensorRole biasRole, std::string_view module) {
    m_builder.tensor(role, name(module, ".weight"), {m_config.hiddenSize}, m_layer);
    if (m_config.checkpoint.normBias) m_builder.tensor(biasRole, name(module, ".bias"), {m_config.hiddenSize}, m_layer);
  }

  void linear(TensorRole role, TensorRole biasRole, std::string_view part, std::string_view module, int64_t out, int64_t in,
              bool bias = false) {
    m_builder.linear(
        {.module = name(part, module), .out = out, .in = in, .role = role, .biasRole = biasRole, .bias = bias, .layer = m_layer});
  }

  // A matrix whose split no role tells.
  void splitLinear(std::string_view part, std::string_view module, int64_t out, int64_t in, int splitDim,
                   std::vector<SplitSegment> segments, bool bias = false) {
    m_builder.linear({.module = name(part, module),
                      .out = out,
                      .in = in,
                      .bias = bias,
                      .layer = m_layer,
                      .splitDim = splitDim,
                      .segments = std::move(segments)});
  }

  void plain(std::string_view part, std::string_view module, std::vector<int64_t> shape,
             std::vector<SplitSegment> segments = {}) {
    TensorEntry& entry = m_builder.tensor(TensorRole::Other, name(part, module), std::move(shape), m_layer);
    if (!segments.empty() && entry.loaded) {
      entry.splitDim = 0;
      entry.segments = std::move(segments);
    }
  }

  void writeNorms() {
    const DecoderTraits& decoder = m_config.decoder;
    if (m_config.checkpoint.plainNorms) return;
    if (m_builder.family().norms == NormPlaces::OnePerMixer)
      return norm(TensorRole::AttentionNorm, TensorRole::AttentionNormBias, m_names.attentionNorm);
    // A layer without a branch has no norm for it either.
    if (m_spec.attention == AttentionKind::None)
      return m_spec.ffn == FfnKind::None ? void() : norm(TensorRole::FfnNorm, TensorRole::FfnNormBias, m_names.ffnNorm);
    if (decoder.preNorm) norm(TensorRole::AttentionNorm, TensorRole::AttentionNormBias, m_names.attentionNorm);
    if (m_config.checkpoint.singleNorm || (decoder.parallelBlock && m_names.ffnNorm.empty())) return;
    if (m_config.modelType == "glm4") {
      norm(TensorRole::PostAttentionNorm, TensorRole::Other, "post_self_attn_layernorm");
      norm(TensorRole::FfnNorm, TensorRole::Other, "post_attention_layernorm");
      return norm(TensorRole::PostFfnNorm, TensorRole::Other, "post_mlp_layernorm");
    }
    if (m_spec.ffn == FfnKind::None) return;
    if (m_config.modelType == "olmo_hybrid" && m_spec.attention == AttentionKind::LinearAttention) {
      norm(TensorRole::AttentionNorm, TensorRole::Other, "input_layernorm");
      return norm(TensorRole::FfnNorm, TensorRole::Other, "post_attention_layernorm");
    }
    if (!decoder.postNorm) return norm(TensorRole::FfnNorm, TensorRole::FfnNormBias, m_names.ffnNorm);
    norm(TensorRole::PostAttentionNorm, TensorRole::Other, "post_attention_layernorm");
    if (decoder.preNorm) norm(TensorRole::FfnNorm, TensorRole::Other, "pre_feedforward_layernorm");
    norm(TensorRole::PostFfnNorm, TensorRole::Other, "post_feedforward_layernorm");
    if (!m_config.modelType.starts_with("gemma4")) return;
    plain("", "layer_scalar", {1});
    if (m_spec.ffn != FfnKind::MixtureOfExperts) return;
    for (const char* one : {"post_feedforward_layernorm_1.weight", "post_feedforward_layernorm_2.weight",
                            "pre_feedforward_layernorm_2.weight", "router.scale"})
      plain("", one, {m_config.hiddenSize});
    plain("", "router.per_expert_scale", {m_spec.moe.experts});
  }

  void writeAttention() {
    if (m_builder.family().ownAttention) return;
    switch (m_spec.attention) {
      case AttentionKind::Full:
      case AttentionKind::SlidingWindow:
      case AttentionKind::ChunkedWindow:
        return writeHeads(m_names.attention);
      case AttentionKind::CrossAttention:
        writeHeads("cross_attn.");
        plain("", "cross_attn_attn_gate", {1});
        return plain("", "cross_attn_mlp_gate", {1});
      case AttentionKind::Latent:
        return writeLatent();
      case AttentionKind::LinearAttention:
        // Other kinds are written by their families.
        return m_spec.linear.keyHeads > 0 ? writeGatedDeltaNet() : void();
      case AttentionKind::Mamba:
        return describesMamba2(m_builder.keys()) ? writeMamba2() : writeMamba1();
      case AttentionKind::ShortConvolution:
        return writeShortConvolution();
      case AttentionKind::Compressed:
        return writeCompressed();
      case AttentionKind::None:
        return;
    }
  }

  void writeHeads(std::string_view at) {
    const int64_t hidden = m_config.hiddenSize;
    const int64_t q = m_spec.qHeads * m_spec.headDim, k = m_spec.kvHeads * m_spec.headDim, v = m_spec.kvHeads * m_spec.vHeadDim;
    const CheckpointTraits& stored = m_config.checkpoint;
    if (stored.fusedQkv) {
      linear(TensorRole::Qkv, TensorRole::QkvBias, at, m_names.qkv, q + k + v, hidden, stored.qkvBias);
    } else {
      linear(TensorRole::Q, TensorRole::QBias, at, m_names.q, stored.queryGate ? 2 * q : q, hidden, stored.qkvBias);
      if (!m_spec.sharesKv) linear(TensorRole::K, TensorRole::KBias, at, m_names.k, k, hidden, stored.qkvBias);
      if (!m_spec.valuesAreKeys && !m_spec.sharesKv)
        linear(TensorRole::V, TensorRole::VBias, at, m_names.v, v, hidden, stored.qkvBias);
    }
    linear(TensorRole::O, TensorRole::OBias, at, m_names.o, hidden, m_spec.qHeads * m_spec.vHeadDim, stored.outputBias);
    const bool fullWidth = m_config.decoder.qkNormFullWidth;
    if (m_config.decoder.qkNorm || fullWidth || m_spec.attention == AttentionKind::CrossAttention) {
      // Cohere norms each head with weights of its own.
      const bool ownWeights = m_config.modelType == "cohere";
      const auto shape = [&](int64_t width, int64_t heads) {
        return ownWeights ? std::vector<int64_t>{heads, m_spec.headDim}
                          : std::vector<int64_t>{fullWidth ? width : m_spec.headDim};
      };
      m_builder.tensor(ownWeights ? TensorRole::Other : TensorRole::QNorm, fmt::format("{}{}{}.weight", m_at, at, m_names.qNorm),
                       shape(q, m_spec.qHeads), m_layer);
      if (!m_spec.sharesKv)
        m_builder.tensor(ownWeights ? TensorRole::Other : TensorRole::KNorm,
                         fmt::format("{}{}{}.weight", m_at, at, m_names.kNorm), shape(k, m_spec.kvHeads), m_layer);
      if (stored.qkNormBias)
        for (const std::string_view one : {m_names.qNorm, m_names.kNorm})
          plain(at, fmt::format("{}.bias", one), {m_spec.headDim});
    }
    if (m_spec.sinks)
      m_builder.tensor(TensorRole::Sinks,
                       fmt::format("{}{}{}", m_at, at, m_config.modelType == "mimo_v2_flash" ? "attention_sink_bias" : "sinks"),
                       {m_spec.qHeads}, m_layer);
    if (stored.inverseFrequencies) {
      TensorEntry& entry = m_builder.tensor(TensorRole::Other, name(at, "rotary_emb.inv_freq"), {m_spec.headDim / 2}, m_layer);
      entry.dtype = DType::F32;
      entry.loaded = false;
    }
  }

  // DeepSeek's latent attention, with the indexer of its sparse variant.
  void writeLatent() {
    const LatentAttention& latent = m_spec.latent;
    const int64_t hidden = m_config.hiddenSize, heads = m_spec.qHeads, qk = latent.qkNopeHeadDim + latent.qkRopeHeadDim;
    const std::string_view at = m_names.attention;
    const bool bias = m_config.checkpoint.qkvBias;
    if (latent.qLoraRank > 0) {
      linear(TensorRole::QLatent, TensorRole::Other, at, "q_a_proj", latent.qLoraRank, hidden, bias);
      m_builder.tensor(TensorRole::QLatentNorm, name(at, "q_a_layernorm.weight"), {latent.qLoraRank}, m_layer);
      linear(TensorRole::Q, TensorRole::Other, at, "q_b_proj", heads * qk, latent.qLoraRank);
    } else {
      linear(TensorRole::Q, TensorRole::Other, at, "q_proj", heads * qk, hidden);
    }
    linear(TensorRole::KvLatent, TensorRole::Other, at, "kv_a_proj_with_mqa", latent.kvLoraRank + latent.qkRopeHeadDim, hidden,
           bias);
    m_builder.tensor(TensorRole::KvLatentNorm, name(at, "kv_a_layernorm.weight"), {latent.kvLoraRank}, m_layer);
    linear(TensorRole::KvUp, TensorRole::Other, at, "kv_b_proj", heads * (latent.qkNopeHeadDim + latent.vHeadDim),
           latent.kvLoraRank);
    linear(TensorRole::O, TensorRole::OBias, at, m_names.o, hidden, heads * latent.vHeadDim, bias);
    if (!m_spec.indexer) return;
    const int64_t dim = m_builder.keys().integer({"index_head_dim"}, 1, 8192).value_or(128),
                  indexHeads = m_builder.keys().integer({"index_n_heads"}, 1, 4096).value_or(64);
    linear(TensorRole::Other, TensorRole::Other, at, "indexer.wq_b", indexHeads * dim, latent.qLoraRank);
    linear(TensorRole::Other, TensorRole::Other, at, "indexer.wk", dim, hidden);
    plain(at, "indexer.k_norm.weight", {dim});
    plain(at, "indexer.k_norm.bias", {dim});
    plain(at, "indexer.weights_proj.weight", {indexHeads, hidden});
  }

  // DeepSeek V4: one key-value head that serves as both, tokens compressed 4 or 128 to one, several residual streams.
  void writeCompressed() {
    const ConfigReader& keys = m_builder.keys();
    const int64_t hidden = m_config.hiddenSize, heads = m_spec.qHeads, dim = m_spec.headDim;
    const int64_t qRank = keys.integer({"q_lora_rank"}, 1, 1 << 16).value_or(1024);
    const int64_t groups = keys.integer({"o_groups"}, 1, 4096).value_or(8),
                  oRank = keys.integer({"o_lora_rank"}, 1, 1 << 16).value_or(1024);
    const std::string_view at = m_names.attention;
    linear(TensorRole::Other, TensorRole::Other, at, "q_a_proj", qRank, hidden);
    plain(at, "q_a_norm.weight", {qRank});
    splitLinear(at, "q_b_proj", heads * dim, qRank, 0, {{SplitUnit::QHeads, heads * dim, dim}});
    linear(TensorRole::Other, TensorRole::Other, at, "kv_proj", dim, hidden);
    plain(at, "kv_norm.weight", {dim});
    splitLinear(at, "o_a_proj", groups * oRank, std::max<int64_t>(1, heads * dim / groups), 0,
                {{SplitUnit::QHeads, groups * oRank, oRank}});
    splitLinear(at, "o_b_proj", hidden, groups * oRank, 1, {{SplitUnit::QHeads, groups * oRank, oRank}});
    plain(at, "sinks", {heads}, {{SplitUnit::QHeads, heads, 1}});
    const int64_t streams = keys.integer({"hc_mult"}, 1, 64).value_or(4);
    for (const std::string_view one : {"attn_hc.", "ffn_hc."}) {
      plain(one, "fn", {(2 + streams) * streams, streams * hidden});
      plain(one, "base", {(2 + streams) * streams});
      plain(one, "scale", {3});
    }
    const auto ratios = keys.integers({"compress_ratios"}, 0, 1 << 20);
    const bool ownLayer = m_layer < m_config.layerCount() && static_cast<size_t>(m_layer) < ratios.size();
    if (const int64_t ratio = ownLayer ? ratios[static_cast<size_t>(m_layer)] : 0; ratio > 0) writeCompressor(ratio, qRank);
    const int64_t hashed = keys.integer({"num_hash_layers"}, 0, 1024).value_or(0);
    if (m_layer < hashed) {
      TensorEntry& table =
          m_builder.tensor(name(m_names.moe, "gate.tid2eid"), {m_config.vocabSize, m_spec.moe.expertsPerToken}, m_layer);
      table.dtype = DType::I64;
    }
  }

  // Compression 4 to 1 overlaps, so it makes twice the width, and selects tokens by an indexer.
  void writeCompressor(int64_t ratio, int64_t qRank) {
    const ConfigReader& keys = m_builder.keys();
    const int64_t hidden = m_config.hiddenSize, dim = m_spec.headDim, width = ratio == 4 ? 2 : 1;
    const auto compressor = [&](const std::string& at, int64_t out) {
      plain(at, "position_bias", {ratio, width * out});
      plain(at, "kv_proj.weight", {width * out, hidden});
      plain(at, "gate_proj.weight", {width * out, hidden});
      plain(at, "kv_norm.weight", {out});
    };
    const std::string at = fmt::format("{}compressor.", m_names.attention);
    compressor(at, dim);
    if (ratio != 4) return;
    const int64_t indexDim = keys.integer({"index_head_dim"}, 1, 8192).value_or(128),
                  indexHeads = keys.integer({"index_n_heads"}, 1, 4096).value_or(64);
    compressor(at + "indexer.", indexDim);
    linear(TensorRole::Other, TensorRole::Other, at, "indexer.q_b_proj", indexHeads * indexDim, qRank);
    plain(at, "indexer.weights_proj.weight", {indexHeads, hidden});
  }

  // Qwen3-Next and Qwen3.5.
  void writeGatedDeltaNet() {
    const LinearAttention& net = m_spec.linear;
    const int64_t hidden = m_config.hiddenSize, k = net.keyHeads * net.keyDim, v = net.valueHeads * net.valueDim;
    const std::string_view at = "linear_attn.";
    const auto add = [&](TensorRole role, std::string_view module, int64_t out, int64_t in) {
      linear(role, TensorRole::Other, at, module, out, in);
    };
    if (m_config.modelType == "qwen3_next") {
      add(TensorRole::LinearQkvz, "in_proj_qkvz", 2 * k + 2 * v, hidden);
      add(TensorRole::LinearBetaAlpha, "in_proj_ba", 2 * net.valueHeads, hidden);
    } else {
      add(TensorRole::LinearQkv, "in_proj_qkv", 2 * k + v, hidden);
      add(TensorRole::LinearZ, "in_proj_z", v, hidden);
      add(TensorRole::LinearBeta, "in_proj_b", net.valueHeads, hidden);
      add(TensorRole::LinearAlpha, "in_proj_a", net.valueHeads, hidden);
    }
    m_builder.tensor(TensorRole::LinearConvolution, name(at, "conv1d.weight"), {net.channels(), 1, net.kernel}, m_layer);
    m_builder.tensor(TensorRole::LinearTimeBias, name(at, "dt_bias"), {net.valueHeads}, m_layer);
    m_builder.tensor(TensorRole::LinearDecay, name(at, "A_log"), {net.valueHeads}, m_layer);
    m_builder.tensor(TensorRole::LinearNorm, name(at, "norm.weight"), {net.valueDim}, m_layer);
    add(TensorRole::LinearOut, "out_proj", hidden, v);
  }

  // Mixers stand alone in their layers, or beside the attention of others.
  std::string_view mambaAt() const {
    return m_builder.family().norms == NormPlaces::OnePerMixer ? m_names.attention : std::string_view("mamba.");
  }

  // Mamba (https://arxiv.org/abs/2312.00752); Jamba norms what the state reads.
  void writeMamba1() {
    const ConfigReader& keys = m_builder.keys();
    const int64_t hidden = m_config.hiddenSize, inner = hidden * keys.integer({"mamba_expand", "expand"}, 1, 64).value_or(2);
    const int64_t state = keys.integer({"mamba_d_state", "state_size"}, 1, 8192).value_or(16),
                  kernel = keys.integer({"mamba_d_conv", "conv_kernel"}, 1, 64).value_or(4);
    const auto* given = keys.find({"mamba_dt_rank", "time_step_rank"});  // or "auto"
    const int64_t rank = given && given->is_number() ? keys.integer({"mamba_dt_rank", "time_step_rank"}, 1, 65536).value_or(1)
                                                     : ceilDiv(hidden, 16);
    const SplitSegment columns{SplitUnit::MlpColumns, inner, 1};
    const bool bias = keys.flag({"mamba_proj_bias", "use_bias"}).value_or(false);
    const std::string_view at = mambaAt();
    splitLinear(at, "in_proj", 2 * inner, hidden, 0, {columns, columns}, bias);
    plain(at, "conv1d.weight", {inner, 1, kernel}, {columns});
    if (keys.flag({"mamba_conv_bias", "use_conv_bias"}).value_or(true)) plain(at, "conv1d.bias", {inner}, {columns});
    splitLinear(at, "x_proj", rank + 2 * state, inner, 1, {columns});
    splitLinear(at, "dt_proj", inner, rank, 0, {columns}, true);
    plain(at, "A_log", {inner, state}, {columns});
    plain(at, "D", {inner}, {columns});
    splitLinear(at, "out_proj", hidden, inner, 1, {columns}, bias);
    if (m_config.modelType != "jamba") return;
    plain(at, "dt_layernorm.weight", {rank});
    plain(at, "b_layernorm.weight", {state});
    plain(at, "c_layernorm.weight", {state});
  }

  // LFM2.
  void writeShortConvolution() {
    const int64_t hidden = m_config.hiddenSize, kernel = m_builder.keys().integer({"conv_L_cache"}, 1, 64).value_or(3);
    const SplitSegment columns{SplitUnit::MlpColumns, hidden, 1};
    splitLinear("conv.", "in_proj", 3 * hidden, hidden, 0, {columns, columns, columns});
    plain("conv.", "conv.weight", {hidden, 1, kernel}, {columns});
    splitLinear("conv.", "out_proj", hidden, hidden, 1, {columns});
  }

  void writeMlp() {
    const int64_t hidden = m_config.hiddenSize, width = m_spec.intermediateSize;
    const bool bias = m_config.checkpoint.mlpBias;
    const std::string_view at = m_names.mlp;
    if (m_config.checkpoint.fusedGateUp) {
      m_builder.linear(
          {.module = name(at, m_names.gateUp), .out = 2 * width, .in = hidden, .role = TensorRole::GateUp, .layer = m_layer});
      if (bias)
        plain(at, fmt::format("{}.bias", m_names.gateUp), {2 * width},
              {{SplitUnit::MlpColumns, width, 1}, {SplitUnit::MlpColumns, width, 1}});
    } else {
      if (m_config.decoder.gatedMlp) linear(TensorRole::Gate, TensorRole::GateBias, at, m_names.gate, width, hidden, bias);
      linear(TensorRole::Up, TensorRole::UpBias, at, m_names.up, width, hidden, bias);
    }
    linear(TensorRole::Down, TensorRole::DownBias, at, m_names.down, hidden, width, bias);
  }

  void expertLinear(TensorRole role, std::string_view module, int64_t out, int64_t in) {
    m_builder.linear({.module = fmt::format("{}{}experts.*.{}", m_at, m_names.moe, module),
                      .out = out,
                      .in = in,
                      .role = role,
                      .layer = m_layer,
                      .experts = m_spec.moe.experts});
  }

  void writeExperts() {
    const MoeParameters& moe = m_spec.moe;
    const int64_t hidden = m_config.hiddenSize, width = moe.expertIntermediate, experts = moe.experts;
    // Nemotron-H's experts may work in a smaller space.
    const int64_t latent = m_builder.keys().integer({"moe_latent_size"}, 1, 1 << 17).value_or(hidden);
    // LongCat routes to experts too that return what they are given and have no weights.
    const int64_t routed = experts + m_builder.keys().integer({"zero_expert_num"}, 0, 4096).value_or(0);
    m_builder.tensor(TensorRole::Router, fmt::format("{}{}{}.weight", m_at, m_names.moe, m_names.router), {routed, hidden},
                     m_layer);
    if (moe.routerBias) {
      TensorEntry& bias = m_builder.tensor(TensorRole::RouterBias, name(m_names.moe, m_names.routerBias), {routed}, m_layer);
      if (m_names.routerBias.ends_with("correction_bias")) bias.dtype = DType::F32;
    }
    if (latent != hidden) {
      linear(TensorRole::Other, TensorRole::Other, m_names.moe, "fc1_latent_proj", latent, hidden);
      linear(TensorRole::Other, TensorRole::Other, m_names.moe, "fc2_latent_proj", hidden, latent);
    }
    const bool quantized = m_config.quantization && m_config.quantization->method != "gguf";
    if (m_builder.family().experts == ExpertStyle::PerExpert || (quantized && m_config.quantization->method != "mxfp4")) {
      if (m_config.decoder.gatedMlp) expertLinear(TensorRole::ExpertGate, m_names.expertGate, width, latent);
      expertLinear(TensorRole::ExpertUp, m_names.expertUp, width, latent);
      expertLinear(TensorRole::ExpertDown, m_names.expertDown, latent, width);
    } else {
      writeFusedExperts(quantized);
    }
    if (moe.sharedIntermediate > 0) {
      if (m_config.checkpoint.fusedGateUp) {
        const SplitSegment columns{SplitUnit::SharedColumns, moe.sharedIntermediate, 1};
        splitLinear(m_names.shared, m_names.gateUp, 2 * moe.sharedIntermediate, hidden, 0, {columns, columns});
      } else if (m_config.decoder.gatedMlp) {
        linear(TensorRole::SharedGate, TensorRole::Other, m_names.shared, m_names.gate, moe.sharedIntermediate, hidden);
      }
      if (!m_config.checkpoint.fusedGateUp)
        linear(TensorRole::SharedUp, TensorRole::Other, m_names.shared, m_names.up, moe.sharedIntermediate, hidden);
      linear(TensorRole::SharedDown, TensorRole::Other, m_names.shared, m_names.down, hidden, moe.sharedIntermediate);
      if (moe.sharedGate)
        m_builder.tensor(TensorRole::SharedRouter, name(m_names.moe, "shared_expert_gate.weight"), {1, hidden}, m_layer);
    }
  }

  // One tensor for all experts of the layer. Rows of gate and up alternate in gpt-oss.
  void writeFusedExperts(bool mxfp4) {
    const MoeParameters& moe = m_spec.moe;
    const int64_t hidden = m_config.hiddenSize, width = moe.expertIntermediate, experts = moe.experts;
    const bool alternating = m_config.modelType == "gpt_oss";
    const std::vector<SplitSegment> pairs{{SplitUnit::ExpertColumns, 2 * width, 2}},
        halves{{SplitUnit::ExpertColumns, width, 1}, {SplitUnit::ExpertColumns, width, 1}};
    const auto& gateUpRows = alternating ? pairs : halves;
    const auto add = [&](TensorRole role, std::string_view module, std::vector<int64_t> shape, int splitDim,
                         std::vector<SplitSegment> segments, DType dtype, std::optional<int64_t> logical = std::nullopt) {
      TensorEntry& entry =
          m_builder.tensor(TensorRole::Other, fmt::format("{}{}{}", m_at, m_names.moe, module), std::move(shape), m_layer);
      entry.dtype = dtype;
      entry.logicalParameters = logical;
      if (!entry.loaded) return;
      entry.role = role;
      entry.splitDim = splitDim;
      entry.segments = std::move(segments);
    };
    const DType plainType = m_config.dtype;
    const std::string_view gateUp = m_names.expertGate, down = m_names.expertDown;
    const bool columns = m_builder.family().experts == ExpertStyle::FusedColumns;
    if (mxfp4) {
      const std::string up(gateUp), out(down);
      const std::vector<SplitSegment> blocks{{SplitUnit::ExpertColumns, ceilDiv(width, 32), 1, 32, width, 1}};
      add(TensorRole::ExpertGateUp, up + "_blocks", {experts, 2 * width, ceilDiv(hidden, 32), 16}, 1, gateUpRows, DType::U8,
          experts * 2 * width * hidden);
      add(TensorRole::Other, up + "_scales", {experts, 2 * width, ceilDiv(hidden, 32)}, 1, gateUpRows, DType::U8, 0);
      add(TensorRole::ExpertDown, out + "_blocks", {experts, hidden, ceilDiv(width, 32), 16}, 2, blocks, DType::U8,
          experts * hidden * width);
      add(TensorRole::Other, out + "_scales", {experts, hidden, ceilDiv(width, 32)}, 2, blocks, DType::U8, 0);
    } else if (columns) {
      add(TensorRole::ExpertGateUp, gateUp, {experts, hidden, 2 * width}, 2, gateUpRows, plainType);
      add(TensorRole::ExpertDown, down, {experts, width, hidden}, 1, {{SplitUnit::ExpertColumns, width, 1}}, plainType);
    } else {
      add(TensorRole::ExpertGateUp, gateUp, {experts, 2 * width, hidden}, 1, gateUpRows, plainType);
      add(TensorRole::ExpertDown, down, {experts, hidden, width}, 2, {{SplitUnit::ExpertColumns, width, 1}}, plainType);
    }
    if (!m_config.checkpoint.expertBias) return;
    add(TensorRole::ExpertGateUpBias, std::string(gateUp) + "_bias", {experts, 2 * width}, 1, gateUpRows, plainType);
    add(TensorRole::ExpertDownBias, std::string(down) + "_bias", {experts, hidden}, -1, {}, plainType);
  }

  InventoryBuilder& m_builder;
  const ModelConfig& m_config;
  const TensorNames& m_names;
  const LayerSpec& m_spec;
  int m_layer;
  std::string m_at;
};

// Embedding and head; MLX quantizes them too.
void writeTable(InventoryBuilder& builder, TensorRole role, const std::string& module) {
  const ModelConfig& config = builder.config();
  if (config.quantization && config.quantization->method == "mlx")
    builder.linear({.module = module, .out = config.vocabSize, .in = config.hiddenSize, .role = role});
  else
    builder.tensor(
        role, module + ".weight",
        {role == TensorRole::TokenEmbedding ? config.vocabSize + config.checkpoint.additionalEmbeddings : config.vocabSize,
         config.hiddenSize});
}

}  // namespace

void writeMamba2(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  LayerWriter(builder, spec, layer, at).writeMamba2();
}

void writeLayer(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at) {
  LayerWriter(builder, spec, layer, at).write();
}

TensorInventory inventoryOfConfig(const ModelConfig& config) {
  InventoryBuilder builder(config);
  const TensorNames& names = builder.names();
  writeTable(builder, TensorRole::TokenEmbedding, builder.prefix() + std::string(names.embedding));
  for (int layer = 0; layer < static_cast<int>(config.layerCount()); ++layer)
    writeLayer(builder, config.layers[static_cast<size_t>(layer)], layer,
               fmt::format("{}{}{}.", builder.prefix(), names.layers, builder.family().secondNames ? layer / 2 : layer));
  const std::string norm = builder.prefix() + std::string(names.finalNorm);
  if (!config.checkpoint.plainNorms) builder.tensor(TensorRole::FinalNorm, norm + ".weight", {config.hiddenSize});
  if (config.checkpoint.normBias) builder.tensor(TensorRole::FinalNormBias, norm + ".bias", {config.hiddenSize});
  if (!config.tieWordEmbeddings) {
    writeTable(builder, TensorRole::LmHead, builder.outer() + std::string(names.head));
  } else if (config.checkpoint.tiedHeadStored) {
    builder.tensor(TensorRole::LmHead, std::string(names.head) + ".weight", {config.vocabSize, config.hiddenSize}).loaded = false;
  }
  if (config.checkpoint.headBias) builder.tensor(TensorRole::LmHeadBias, std::string(names.head) + ".bias", {config.vocabSize});
  if (builder.family().extras) builder.family().extras(builder);
  if (const WrapperFamily* wrapper = findWrapperFamily(config.wrapperType); wrapper && wrapper->extras) wrapper->extras(builder);
  return builder.take();
}

}  // namespace headroom
