// SPDX-License-Identifier: Apache-2.0
// Normalizes config.json over the families: common keys with their aliases here, what only the family's code knows from its row
// in model_family.cpp. Every assumption goes into warnings.
#include "core/model/model_config.h"

#include "core/model/config_reader.h"
#include "core/model/engine_support.h"
#include "core/model/inventory_extras.h"
#include "core/model/model_family.h"
#include "core/model/recurrent_state.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom {
namespace {

// Bounds that keep every product of sizes within 63 bits.
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHidden = 1 << 17;
constexpr int64_t kMaxIntermediate = 1 << 20;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 8192;
constexpr int64_t kMaxVocabulary = 1 << 26;
constexpr int64_t kMaxExperts = 4096;
constexpr int64_t kMaxContext = int64_t{1} << 40;

constexpr ModelFamily kUnknownFamily{.modelTypes = "", .architecture = ""};

std::string architectureOf(const ConfigReader& keys, const ModelFamily& family) {
  const auto names = keys.texts({"architectures"});
  return names.empty() ? std::string(family.architecture) : names.front();
}

DType dtypeOf(const ConfigReader& keys, ModelConfig& config) {
  const auto name = keys.text({"torch_dtype", "dtype"});
  if (!name) {
    config.warnings.push_back("dtype is not given: bfloat16 is assumed");
    return DType::BF16;
  }
  if (const auto dtype = parseDType(*name)) return *dtype;
  keys.fail("torch_dtype", *name, "a dtype such as \"bfloat16\"");
  return DType::BF16;
}

std::optional<Activation> activationOf(std::string_view name) {
  if (name == "silu" || name == "swish" || name == "swiglu") return Activation::Silu;
  if (name == "gelu") return Activation::Gelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast" || name == "geglu" || name == "gegelu")
    return Activation::GeluTanh;
  if (name == "relu2") return Activation::Relu2;
  return std::nullopt;
}

// Files of several parts leave out what the language model's class takes by itself; others are complete, or damaged.
bool hasSeveralParts(const nlohmann::json& raw) {
  constexpr std::array kParts = {"text_config", "llm_config", "language_config", "thinker_config"};
  return std::any_of(kParts.begin(), kParts.end(), [&](const char* part) { return raw.contains(part); });
}

// Sizes of the configuration: required, unless the family's class has a default, which is then named in a warning.
class SizeReader {
 public:
  SizeReader(const ConfigReader& keys, const ModelFamily& family, ModelConfig& config)
      : m_keys(keys), m_sizes(family.sizes && hasSeveralParts(config.raw) ? *family.sizes : ClassSizes{}), m_config(config) {}

  int64_t operator()(ConfigReader::Keys names, int64_t most, int64_t ClassSizes::*classDefault) {
    const auto value = m_keys.integer(names, 1, most);
    if (value || m_keys.find(names)) return value.value_or(1);
    if (const int64_t taken = m_sizes.*classDefault; taken > 0) return note(*names.begin(), taken);
    m_keys.fail(Error{fmt::format("{}: {}", m_keys.where(), *names.begin()), "no such key",
                      fmt::format("an integer from 1 to {}", most), "is this a language model's config.json?"});
    return 1;
  }
  const ClassSizes& defaults() const { return m_sizes; }

 private:
  int64_t note(std::string_view key, int64_t taken) {
    m_config.warnings.push_back(fmt::format("{} is not given: the class default {} is taken", key, taken));
    return taken;
  }

  const ConfigReader& m_keys;
  ClassSizes m_sizes;
  ModelConfig& m_config;
};

int64_t readHeadDim(const ConfigReader& keys, const ClassSizes& defaults, ModelConfig& config) {
  if (const auto dim = keys.integer({"head_dim", "attention_head_dim", "kv_channels"}, 1, kMaxHeadDim)) return *dim;
  if (defaults.headDim > 0) return defaults.headDim;
  if (config.hiddenSize % config.qHeads != 0 && !keys.has("kv_lora_rank"))
    keys.fail("num_attention_heads", config.qHeads,
              fmt::format("a divisor of hidden_size {}, or the key head_dim", config.hiddenSize));
  return std::max<int64_t>(config.hiddenSize / config.qHeads, 1);
}

void readSizes(const ConfigReader& keys, const ModelFamily& family, ModelConfig& config) {
  SizeReader size(keys, family, config);
  config.hiddenSize = size({"hidden_size", "n_embd", "d_model", "dim"}, kMaxHidden, &ClassSizes::hidden);
  int64_t layers = 0;
  if (const auto kinds = keys.texts({"layers_block_type"}); !kinds.empty() && !keys.has("num_hidden_layers"))
    layers = std::min<int64_t>(static_cast<int64_t>(kinds.size()), kMaxLayers);
  else
    layers = size({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, kMaxLayers, &ClassSizes::layers);
  config.layers.resize(static_cast<size_t>(layers));
  config.qHeads =
      family.attentionFree ? 1 : size({"num_attention_heads", "n_head", "n_heads", "num_heads"}, kMaxHeads, &ClassSizes::qHeads);
  if (family.vocabSize > 0 && !keys.has("vocab_size")) {
    config.vocabSize = family.vocabSize;
    config.warnings.push_back(fmt::format("vocab_size is not given: the class default {} is taken", family.vocabSize));
  } else {
    config.vocabSize = size({"embedding_size", "padded_vocab_size", "vocab_size"}, kMaxVocabulary, &ClassSizes::vocabulary);
  }
  // Without the key every query head has its own, except where the class says otherwise and nothing else was given either.
  const int64_t kvDefault =
      size.defaults().kvHeads > 0 && !keys.mentions("num_key_value_heads") && size.defaults().qHeads == config.qHeads
          ? size.defaults().kvHeads
          : config.qHeads;
  config.kvHeads =
      keys.integer({"num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups"}, 1,
                   kMaxHeads)
          .value_or(keys.object("attn_config").integer({"kv_n_heads"}, 1, kMaxHeads).value_or(kvDefault));
  config.headDim = readHeadDim(keys, size.defaults(), config);
  if (config.qHeads % config.kvHeads != 0)
    keys.fail("num_key_value_heads", config.kvHeads, fmt::format("a divisor of the {} query heads", config.qHeads));
  const ConfigReader::Keys widths{"intermediate_size", "ffn_hidden_size", "n_inner", "ff_intermediate_size", "ffn_dim"};
  if (const auto* width = keys.find(widths); width && width->is_array()) {
    // One for each layer; the widest stands for all where one number is asked for.
    for (int64_t one : keys.integers(widths, 1, kMaxIntermediate))
      config.intermediateSize = std::max(config.intermediateSize, one);
  } else {
    config.intermediateSize = keys.integer(widths, 1, kMaxIntermediate).value_or(family.mlpRatio * config.hiddenSize);
    if (config.intermediateSize == 0 && size.defaults().intermediate > 0)
      config.intermediateSize = size(widths, kMaxIntermediate, &ClassSizes::intermediate);
  }
  config.maxPositionEmbeddings = keys.integer({"max_position_embeddings", "seq_length", "n_positions", "max_sequence_length",
                                               "max_seq_len", "model_max_length"},
                                              1, kMaxContext)
                                     .value_or(family.positions);
  if (config.maxPositionEmbeddings == 0)
    config.warnings.push_back("max_position_embeddings is not given: the context length is unknown");
}

void readTokens(const ConfigReader& keys, ModelConfig& config) {
  const auto* eos = keys.find({"eos_token_id"});
  if (eos && eos->is_array()) {
    for (int64_t id : keys.integers({"eos_token_id"}, 0, INT32_MAX)) config.eosTokenIds.push_back(static_cast<int32_t>(id));
  } else if (const auto id = keys.integer({"eos_token_id"}, -1, INT32_MAX); id && *id >= 0) {
    config.eosTokenIds.push_back(static_cast<int32_t>(*id));
  }
  const auto* bos = keys.find({"bos_token_id"});
  if (bos && !bos->is_array())
    if (const auto id = keys.integer({"bos_token_id"}, -1, INT32_MAX); id && *id >= 0)
      config.bosTokenId = static_cast<int32_t>(*id);
}

void readRopeScaling(const ConfigReader& scaling, ModelConfig& config, RopeParameters& rope) {
  const std::string type = scaling.text({"rope_type", "type"}).value_or("default");
  rope.factor = scaling.number({"factor"}, 1e-6, 1e9).value_or(1.0);
  rope.originalContext = scaling.integer({"original_max_position_embeddings"}, 1, kMaxContext).value_or(rope.originalContext);
  if (const auto theta = scaling.number({"rope_theta"}, 1e-3, 1e15)) rope.theta = *theta;
  if (type == "default" || type == "mrope" || type == "proportional") {
    rope.scaling = RopeScaling::None;
  } else if (type == "linear") {
    rope.scaling = RopeScaling::Linear;
  } else if (type == "dynamic") {
    rope.scaling = RopeScaling::Dynamic;
  } else if (type == "llama3") {
    rope.scaling = RopeScaling::Llama3;
    rope.lowFrequencyFactor = scaling.number({"low_freq_factor"}, 1e-6, 1e9).value_or(1.0);
    rope.highFrequencyFactor = scaling.number({"high_freq_factor"}, 1e-6, 1e9).value_or(4.0);
  } else if (type == "yarn") {
    rope.scaling = RopeScaling::Yarn;
    rope.betaFast = scaling.number({"beta_fast"}, 0, 1e9).value_or(32.0);
    rope.betaSlow = scaling.number({"beta_slow"}, 0, 1e9).value_or(1.0);
    rope.mscale = scaling.number({"mscale"}, 0, 1e9).value_or(0.0);
    rope.mscaleAllDim = scaling.number({"mscale_all_dim"}, 0, 1e9).value_or(0.0);
    rope.truncate = scaling.flag({"truncate"}).value_or(true);
  } else if (type == "longrope" || type == "su") {
    rope.scaling = RopeScaling::LongRope;
    rope.shortFactors = scaling.numbers({"short_factor"});
    rope.longFactors = scaling.numbers({"long_factor"});
    for (const auto* factors : {&rope.shortFactors, &rope.longFactors})
      if (static_cast<int64_t>(factors->size()) * 2 != rope.rotaryDim)
        scaling.fail(factors == &rope.shortFactors ? "short_factor" : "long_factor", factors->size(),
                     fmt::format("{} factors, one for each rotated pair", rope.rotaryDim / 2));
  } else {
    config.missingInEngine.push_back(fmt::format("RoPE scaling \"{}\"", type));
    config.warnings.push_back(fmt::format("RoPE scaling \"{}\" is unknown", type));
  }
  rope.attentionFactor = scaling.number({"attention_factor"}, 1e-9, 1e9);
  if (rope.scaling != RopeScaling::None && rope.scaling != RopeScaling::Linear && rope.originalContext == 0) {
    rope.originalContext = config.maxPositionEmbeddings;
    if (rope.scaling != RopeScaling::Dynamic)
      config.warnings.push_back("rope_scaling lacks original_max_position_embeddings: max_position_embeddings is taken");
  }
}

// rope_parameters may hold one object for each layer type.
void readRope(const ConfigReader& keys, const ModelFamily& family, ModelConfig& config) {
  RopeParameters& rope = config.rope;
  rope.style = family.ropeStyle;
  rope.theta = keys.number({"rope_theta", "rotary_emb_base", "rope_base"}, 1e-3, 1e15).value_or(family.ropeTheta);
  const auto parameters = keys.object(keys.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  const bool byLayerType = parameters.has("full_attention") && parameters.find({"full_attention"})->is_object();
  const auto scaling = byLayerType ? parameters.object("full_attention") : parameters;
  const auto partial = scaling.number({"partial_rotary_factor"}, 0.001, 1.0);
  const double fraction =
      partial ? *partial
              : keys.number({"partial_rotary_factor", "rotary_pct", "rope_pct"}, 0.001, 1.0).value_or(family.partialRotary);
  const LayerSpec& first = config.layers.front();
  const int64_t rotated = first.attention == AttentionKind::Latent
                              ? first.latent.qkRopeHeadDim
                              : static_cast<int64_t>(static_cast<double>(config.headDim) * fraction);
  rope.rotaryDim = keys.integer({"rotary_dim"}, 2, kMaxHeadDim).value_or(rotated);
  rope.originalContext = keys.integer({"original_max_position_embeddings"}, 1, kMaxContext).value_or(0);
  if (!scaling.json().empty()) readRopeScaling(scaling, config, rope);
  config.localRope = rope;
  config.localRope.scaling = RopeScaling::None;
  config.localRope.factor = 1.0;
  if (byLayerType && parameters.has("sliding_attention")) {
    const auto local = parameters.object("sliding_attention");
    readRopeScaling(local, config, config.localRope);
    for (auto& layer : config.layers) layer.localRope = layer.attention == AttentionKind::SlidingWindow;
  }
}

// Windows by the family's rule, where layer_types does not say.
void applyWindowRule(const ConfigReader& keys, const ModelFamily& family, ModelConfig& config, int64_t window) {
  const int64_t count = config.layerCount();
  const int64_t firstWindowed = keys.integer({"max_window_layers"}, 0, 1 << 20).value_or(28);
  const int64_t defaultPattern = config.modelType.starts_with("gemma3") ? 6 : 4;
  const int64_t pattern =
      keys.integer({"sliding_window_pattern", "_sliding_window_pattern"}, 1, kMaxLayers).value_or(defaultPattern);
  for (int64_t i = 0; i < count; ++i) {
    bool windowed = false;
    switch (family.window) {
      case WindowRule::None:
        break;
      case WindowRule::AllLayers:
        windowed = true;
        break;
      case WindowRule::FromMaxWindow:
        windowed = keys.flag({"use_sliding_window"}).value_or(false) && i >= firstWindowed;
        break;
      case WindowRule::EveryOther:
        windowed = i % 2 == 0;
        break;
      case WindowRule::AllButEveryNth:
        windowed = (i + 1) % pattern != 0;
        break;
    }
    if (!windowed) continue;
    config.layers[static_cast<size_t>(i)].attention = AttentionKind::SlidingWindow;
    config.layers[static_cast<size_t>(i)].window = window;
  }
}

void readAttentionKinds(const ConfigReader& keys, const ModelFamily& family, ModelConfig& config) {
  for (auto& layer : config.layers) {
    layer.qHeads = config.qHeads;
    layer.kvHeads = config.kvHeads;
    layer.headDim = layer.vHeadDim = config.headDim;
    layer.intermediateSize = config.intermediateSize;
  }
  if (const auto* widths = keys.find({"intermediate_size"}); widths && widths->is_array()) {
    const auto list = keys.integers({"intermediate_size"}, 1, kMaxIntermediate);
    for (size_t i = 0; i < std::min(list.size(), config.layers.size()); ++i) config.layers[i].intermediateSize = list[i];
  }
  const int64_t window = keys.integer({"sliding_window", "sliding_window_size"}, 0, kMaxContext).value_or(0);
  const auto types = keys.texts({"layer_types"});
  if (types.empty()) {
    if (window > 0) applyWindowRule(keys, family, config, window);
    return;
  }
  if (static_cast<int64_t>(types.size()) < config.layerCount())
    return keys.fail("layer_types", types.size(), fmt::format("one entry for each of the {} layers", config.layerCount()));
  std::string unknown;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerSpec& layer = config.layers[i];
    const std::string& type = types[i];
    if (type == "full_attention" || type == "attention" || type == "global") {
      layer.attention = AttentionKind::Full;
    } else if (type == "sliding_attention" || type == "local") {
      layer.attention = window > 0 ? AttentionKind::SlidingWindow : AttentionKind::Full;
      layer.window = window;
    } else if (type == "chunked_attention") {
      layer.attention = AttentionKind::ChunkedWindow;
      layer.window = keys.integer({"attention_chunk_size"}, 1, kMaxContext).value_or(8192);
    } else if (type == "linear_attention") {
      layer.attention = AttentionKind::LinearAttention;
    } else if (type == "conv") {
      layer.attention = AttentionKind::ShortConvolution;
    } else if (type == "mamba") {
      layer.attention = AttentionKind::Mamba;
    } else if (family.lacks.empty() ||
               (type.find("indexed") == std::string::npos && type.find("compressed") == std::string::npos)) {
      // Sparse and compressed kinds are described by the keys of the families that have them.
      unknown = type;
    }
  }
  if (!unknown.empty())
    config.warnings.push_back(fmt::format("layer_types: \"{}\" is unknown: such layers are taken for full attention", unknown));
  if (!unknown.empty()) config.missingInEngine.push_back(fmt::format("layers of the kind \"{}\"", unknown));
}

// Which layers have experts, by whichever key the family places them with.
std::vector<bool> expertLayers(const ConfigReader& keys, int64_t count) {
  std::vector<bool> result(static_cast<size_t>(count), true);
  const auto drop = [&](const auto& isDense) {
    for (int64_t i = 0; i < count; ++i)
      if (isDense(i)) result[static_cast<size_t>(i)] = false;
  };
  if (const auto first = keys.integer({"first_k_dense_replace"}, 0, kMaxLayers)) drop([&](int64_t i) { return i < *first; });
  if (const auto* frequency = keys.find({"moe_layer_freq"}); frequency && frequency->is_array()) {
    const auto list = keys.integers({"moe_layer_freq"}, 0, 1);
    drop([&](int64_t i) { return i < static_cast<int64_t>(list.size()) && list[static_cast<size_t>(i)] == 0; });
  } else if (const auto every = keys.integer({"moe_layer_freq"}, 1, kMaxLayers)) {
    drop([&](int64_t i) { return i % *every != 0; });
  }
  if (const auto step = keys.integer({"decoder_sparse_step", "interleave_moe_layer_step"}, 1, kMaxLayers))
    drop([&](int64_t i) { return (i + 1) % *step != 0; });
  for (int64_t dense : keys.integers({"mlp_only_layers"}, 0, kMaxLayers)) drop([&](int64_t i) { return i == dense; });
  if (const auto types = keys.texts({"mlp_layer_types"}); !types.empty())
    drop([&](int64_t i) { return i < static_cast<int64_t>(types.size()) && types[static_cast<size_t>(i)] != "sparse"; });
  if (const auto period = keys.integer({"expert_layer_period"}, 1, kMaxLayers)) {
    const int64_t offset = keys.integer({"expert_layer_offset"}, 0, kMaxLayers).value_or(0);
    drop([&](int64_t i) { return i % *period != offset % *period; });
  }
  return result;
}

// What the keys tell of the routing; families add what only their code knows.
void readRouting(const ConfigReader& keys, MoeParameters& moe) {
  moe.normalizeWeights = keys.flag({"norm_topk_prob"}).value_or(false);
  moe.weightScale = keys.number({"routed_scaling_factor"}, 1e-9, 1e9).value_or(1.0);
  if (keys.text({"scoring_func"}) == "sigmoid") moe.scoring = RouterScoring::Sigmoid;
  if (keys.text({"topk_method"}) == "greedy") return;  // of all experts, whatever the groups
  moe.groups = keys.integer({"n_group", "num_expert_group"}, 1, kMaxExperts).value_or(1);
  moe.groupsPerToken = keys.integer({"topk_group"}, 1, kMaxExperts).value_or(moe.groups);
  if (moe.experts % moe.groups != 0) keys.fail("n_group", moe.groups, fmt::format("a divisor of the {} experts", moe.experts));
  if (moe.groupsPerToken > moe.groups)
    keys.fail("topk_group", moe.groupsPerToken, fmt::format("at most the {} groups", moe.groups));
  else if (moe.expertsPerToken > moe.experts / moe.groups * moe.groupsPerToken)
    keys.fail(
        "num_experts_per_tok", moe.expertsPerToken,
        fmt::format("at most the {} experts of {} groups", moe.experts / moe.groups * moe.groupsPerToken, moe.groupsPerToken));
}

// A number, or a list of one for each layer or modality of which the first counts; families look at the others.
std::optional<int64_t> firstInteger(const ConfigReader& keys, ConfigReader::Keys names, int64_t least, int64_t most) {
  const auto* value = keys.find(names);
  if (!value || !value->is_array()) return keys.integer(names, least, most);
  const auto list = keys.integers(names, least, most);
  return list.empty() ? std::nullopt : std::optional(list.front());
}

void readExperts(const ConfigReader& keys, ModelConfig& config) {
  MoeParameters moe;
  const ConfigReader nested = keys.object("ffn_config");
  moe.experts = firstInteger(keys, {"num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"}, 0, kMaxExperts)
                    .value_or(nested.integer({"moe_num_experts"}, 0, kMaxExperts).value_or(0));
  if (moe.experts == 0) return;
  moe.expertsPerToken = firstInteger(keys,
                                     {"num_experts_per_tok", "experts_per_token", "moe_top_k", "top_k_experts", "moe_topk",
                                      "moe_k", "num_experts_per_token"},
                                     1, kMaxExperts)
                            .value_or(nested.integer({"moe_top_k"}, 1, kMaxExperts).value_or(0));
  if (moe.expertsPerToken == 0) config.warnings.push_back("the number of experts used for a token is not given");
  if (moe.expertsPerToken > moe.experts)
    keys.fail("num_experts_per_tok", moe.expertsPerToken, fmt::format("at most the {} experts", moe.experts));
  moe.expertIntermediate =
      firstInteger(keys, {"moe_intermediate_size", "expert_ffn_hidden_size"}, 1, kMaxIntermediate)
          .value_or(nested.integer({"ffn_hidden_size"}, 1, kMaxIntermediate).value_or(config.intermediateSize));
  if (moe.expertIntermediate == 0)
    keys.fail(Error{keys.where() + ": moe_intermediate_size", "no such key", "the width of one expert", ""});
  moe.sharedExperts =
      keys.integer({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}, 0, kMaxExperts).value_or(0);
  if (const auto width = keys.integer({"shared_expert_intermediate_size"}, 0, kMaxIntermediate)) {
    moe.sharedIntermediate = *width;
    moe.sharedExperts = *width > 0 ? 1 : 0;
    moe.sharedGate = *width > 0;
  } else {
    moe.sharedIntermediate =
        moe.sharedExperts * keys.integer({"moe_shared_expert_intermediate_size", "share_expert_dim"}, 1, kMaxIntermediate)
                                .value_or(moe.expertIntermediate);
  }
  readRouting(keys, moe);
  const auto placed = expertLayers(keys, config.layerCount());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (!placed[i]) continue;
    config.layers[i].ffn = FfnKind::MixtureOfExperts;
    config.layers[i].moe = moe;
  }
}

void readLatentAttention(const ConfigReader& keys, ModelConfig& config) {
  if (!keys.has("kv_lora_rank")) return;
  const auto required = [&](std::string_view key) {
    const auto value = keys.integer({key}, 1, 1 << 16);
    if (!value && !keys.has(key))
      keys.fail(Error{fmt::format("{}: {}", keys.where(), key), "no such key", "a size, as kv_lora_rank is given", ""});
    return value.value_or(1);
  };
  LatentAttention latent;
  latent.kvLoraRank = required("kv_lora_rank");
  latent.qLoraRank = keys.integer({"q_lora_rank"}, 0, 1 << 16).value_or(0);
  latent.qkNopeHeadDim = required("qk_nope_head_dim");
  latent.qkRopeHeadDim = required("qk_rope_head_dim");
  latent.vHeadDim = keys.integer({"v_head_dim"}, 1, 1 << 16).value_or(std::max<int64_t>(1, config.hiddenSize / config.qHeads));
  config.headDim = latent.qkNopeHeadDim + latent.qkRopeHeadDim;
  for (auto& layer : config.layers) {
    layer.attention = AttentionKind::Latent;
    layer.latent = latent;
    layer.headDim = config.headDim;
    layer.vHeadDim = latent.vHeadDim;
  }
}

void readTraits(const ConfigReader& keys, const ModelFamily& family, ModelConfig& config) {
  DecoderTraits& decoder = config.decoder;
  decoder.norm = family.norm;
  decoder.normEpsilon = keys.number({"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_eps",
                                     "norm_epsilon", "rms_norm_epsilon", "block_norm_eps"},
                                    0, 1)
                            .value_or(family.normEpsilon);
  decoder.normWeightOffset = family.normWeightOffset;
  decoder.gatedMlp = family.gatedMlp;
  decoder.activation = family.activation;
  if (const auto name = keys.text({"hidden_activation", "hidden_act", "activation_function", "mlp_hidden_act"})) {
    if (const auto activation = activationOf(*name))
      decoder.activation = *activation;
    else
      config.missingInEngine.push_back(fmt::format("activation \"{}\"", *name));
  }
  const bool normKey = keys.flag({"use_qk_norm", "qk_layernorm"}).value_or(false);
  decoder.qkNorm = family.qkNorm == QkNormRule::PerHead || (family.qkNorm == QkNormRule::Key && normKey);
  decoder.qkNormFullWidth = family.qkNorm == QkNormRule::FullWidth;
  decoder.preNorm = family.norms != NormPlaces::After;
  decoder.postNorm = family.norms == NormPlaces::After || family.norms == NormPlaces::BeforeAndAfter;
  decoder.parallelBlock = family.norms == NormPlaces::Single;
  config.checkpoint.plainNorms = family.norms == NormPlaces::Weightless;

  CheckpointTraits& checkpoint = config.checkpoint;
  const bool attentionBias = keys.flag({"attention_bias", "qkv_bias", "add_qkv_bias"}).value_or(false);
  checkpoint.qkvBias = (family.bias == BiasRule::AlwaysQkv && keys.flag({"qkv_bias"}).value_or(true)) ||
                       ((family.bias == BiasRule::Key || family.bias == BiasRule::KeyQkv) && attentionBias);
  checkpoint.outputBias = family.bias == BiasRule::Key && attentionBias;
  checkpoint.mlpBias = family.bias == BiasRule::Key && keys.flag({"mlp_bias"}).value_or(false);
  if (family.bias == BiasRule::Always || (family.bias == BiasRule::UseBias && keys.flag({"use_bias", "bias"}).value_or(false)))
    checkpoint.qkvBias = checkpoint.outputBias = checkpoint.mlpBias = checkpoint.normBias = true;
  checkpoint.fusedQkv = family.fusedQkv;
  checkpoint.fusedGateUp = family.fusedGateUp;
}

void readQuantization(const ConfigReader& keys, ModelConfig& config) {
  const char* key = keys.has("quantization_config") ? "quantization_config" : "quantization";
  if (!keys.has(key)) return;
  const auto values = keys.object(key);
  if (values.json().empty()) return;
  QuantizationConfig quantization;
  quantization.raw = values.json();
  quantization.method = values.text({"quant_method"}).value_or("");
  if (quantization.method.empty() && values.has("bits") && values.has("group_size")) quantization.method = "mlx";
  if (quantization.method.empty()) quantization.method = "unknown";
  quantization.bits = static_cast<int>(values.integer({"bits", "w_bit"}, 1, 32).value_or(0));
  quantization.groupSize = values.integer({"group_size", "q_group_size"}, -1, 1 << 20).value_or(0);
  quantization.weightBlock = values.integers({"weight_block_size"}, 1, 1 << 20);
  quantization.descAct = values.flag({"desc_act"}).value_or(false);
  quantization.symmetric = values.flag({"sym"}).value_or(true);
  quantization.zeroPoint = values.flag({"zero_point"}).value_or(false);
  for (const char* list : {"modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "llm_int8_skip_modules"})
    for (auto& name : values.texts({list})) quantization.ignored.push_back(std::move(name));
  if (const auto groups = values.object("config_groups"); !groups.json().empty()) {
    // compressed-tensors describes groups of modules; the first group's weights stand for all.
    const auto first = groups.object(groups.json().begin().key());
    const auto weights = first.object("weights");
    quantization.bits = static_cast<int>(weights.integer({"num_bits"}, 1, 32).value_or(0));
    quantization.groupSize = weights.integer({"group_size"}, -1, 1 << 20).value_or(0);
    quantization.symmetric = weights.flag({"symmetric"}).value_or(true);
    if (groups.json().size() > 1) config.warnings.push_back("quantization_config has several groups: sizes follow the first");
  }
  // modelopt names an algorithm: FP8, NVFP4, W4A8_AWQ …
  if (const auto algorithm = values.text({"quant_algo"})) {
    if (quantization.method == "unknown") quantization.method = "modelopt";
    quantization.bits = algorithm->find("FP4") != std::string::npos || algorithm->starts_with("W4") ? 4 : 8;
  }
  // The cache that a checkpoint was calibrated for.
  const auto scheme = values.object("kv_cache_scheme");
  const bool eightBitCache =
      scheme.integer({"num_bits"}, 1, 32).value_or(0) == 8 && scheme.text({"type"}).value_or("float") == "float";
  const auto cacheAlgorithm = values.text({"kv_cache_quant_algo"});
  if (eightBitCache || (cacheAlgorithm && *cacheAlgorithm == "FP8")) config.kvCacheDType = DType::F8E4M3;
  if (quantization.method == "bitsandbytes" && quantization.bits == 0)
    quantization.bits = values.flag({"load_in_8bit"}).value_or(false) ? 8 : 4;
  constexpr std::array kKnown = {"awq",      "gptq",         "fp8",  "fbgemm_fp8", "mlx", "bitsandbytes", "compressed-tensors",
                                 "modelopt", "modelopt_fp4", "mxfp4"};
  if (std::find(kKnown.begin(), kKnown.end(), quantization.method) == kKnown.end())
    config.warnings.push_back(
        fmt::format("quantization \"{}\" is unknown: sizes are those of the unquantized model", quantization.method));
  if (quantization.method == "fp8" || quantization.method == "fbgemm_fp8") quantization.bits = 8;
  if (quantization.method == "mxfp4") quantization.bits = 4, quantization.groupSize = 32;
  config.quantization = std::move(quantization);
}

// (major, minor) of transformers_version, and whether it is a development version.
struct LibraryVersion {
  int major = 0, minor = 0;
  bool development = false;
};

LibraryVersion libraryVersion(const ConfigReader& keys) {
  LibraryVersion version;
  const auto* value = keys.find({"transformers_version"});
  if (!value || !value->is_string()) return version;
  const std::string text = value->get<std::string>();
  if (std::sscanf(text.c_str(), "%d.%d", &version.major, &version.minor) != 2) return {};
  version.development = text.find("dev") != std::string::npos;
  return version;
}

// Facts that no key tells: what some checkpoints store besides what is needed.
void noteStoredExtras(const ConfigReader& keys, ModelConfig& config) {
  // Qwen3-0.6B and 1.7B ship lm_head.weight, the tied Qwen3-4B does not.
  const bool small =
      (config.hiddenSize == 1024 || config.hiddenSize == 2048) && config.layerCount() == 28 && config.vocabSize == 151936;
  config.checkpoint.tiedHeadStored = config.tieWordEmbeddings && config.modelType == "qwen3" && small;
  const LibraryVersion version = libraryVersion(keys);
  config.checkpoint.inverseFrequencies =
      config.modelType == "llama" && version.major == 4 && (version.minor < 32 || (version.minor == 32 && version.development));
}

// A model of several parts is its language model's family and what stands around it.
const ModelFamily* languageFamilyOf(ModelConfig& config) {
  const WrapperFamily* wrapper = findWrapperFamily(config.modelType);
  std::string type = languageModelType(config.raw);
  if (type.empty() && wrapper) type = wrapper->language;
  const ModelFamily* language = findModelFamily(type);
  if (!language && wrapper) language = findModelFamily(wrapper->language);
  if (!language) return nullptr;
  config.wrapperType = config.modelType;
  config.modelType = std::string(language->modelTypes.substr(0, language->modelTypes.find(' ')));
  if (wrapper) return language;
  config.missingInEngine.push_back(fmt::format("model family \"{}\"", config.wrapperType));
  config.warnings.push_back(fmt::format("model_type \"{}\" is unknown: its language model \"{}\" is counted, other parts are not",
                                        config.wrapperType, type));
  return language;
}

}  // namespace

Result<ModelConfig> parseModelConfig(std::string_view text, const std::string& where) {
  auto parsed = parsePythonJson(text, where);
  if (!parsed) return tl::unexpected(parsed.error());
  std::optional<Error> error;
  ModelConfig config;
  config.raw = std::move(*parsed);
  const nlohmann::json merged = languageModelKeys(config.raw);
  const ConfigReader keys(merged, where, error);

  config.modelType = keys.text({"model_type"}).value_or("");
  const ModelFamily* known = findModelFamily(config.modelType);
  if (!known) known = languageFamilyOf(config);
  const ModelFamily& family = known ? *known : kUnknownFamily;
  if (!known) {
    config.warnings.push_back(
        config.modelType.empty()
            ? std::string("model_type is not given: sizes follow the Llama family's names")
            : fmt::format("model_type \"{}\" is unknown: sizes follow the Llama family's names", config.modelType));
    config.missingInEngine.push_back(config.modelType.empty() ? std::string("an unnamed model family")
                                                              : fmt::format("model family \"{}\"", config.modelType));
  }
  config.architecture = architectureOf(keys, family);
  const auto name = keys.text({"_name_or_path"});
  config.name = name && !name->empty() ? *name : config.architecture;
  config.dtype = dtypeOf(keys, config);
  readSizes(keys, family, config);
  config.tieWordEmbeddings = keys.flag({"tie_word_embeddings"}).value_or(family.tiedByDefault);
  readTokens(keys, config);
  readAttentionKinds(keys, family, config);
  readLatentAttention(keys, config);
  readExperts(keys, config);
  config.checkpoint.mtpLayers = keys.integer({"num_nextn_predict_layers", "mtp_num_hidden_layers"}, 0, 64).value_or(0);
  readTraits(keys, family, config);
  readRope(keys, family, config);
  readQuantization(keys, config);
  noteStoredExtras(keys, config);
  if (!family.lacks.empty()) config.missingInEngine.emplace_back(family.lacks);
  if (family.adjust && !error) family.adjust({keys, family, config});
  readRecurrentStates(keys, config);
  for (const auto& layer : config.layers)
    if (layer.ffn == FfnKind::Dense && layer.intermediateSize == 0 && !error)
      keys.fail(
          Error{where + ": intermediate_size", "no such key", fmt::format("an integer from 1 to {}", kMaxIntermediate), ""});
  // Older files name a tower without describing it, or describe it under a name of their own.
  constexpr std::array kTowerKeys{"mm_vision_tower",         "vision_tower", "vision_encoder", "visual",
                                  "visual_tokenizer_config", "vit_config"};
  const WrapperFamily* wrapper = findWrapperFamily(config.wrapperType);
  const bool described = keys.has("vision_config");
  const bool named = (wrapper && !wrapper->extras) ||
                     std::any_of(kTowerKeys.begin(), kTowerKeys.end(), [&](const char* key) { return keys.has(key); });
  if (described || named) {
    if (family.lacks != "image input") config.missingInEngine.emplace_back("image input");
    if (!described || !countsVisionTower(keys, family, wrapper)) config.warnings.push_back("the vision tower is not counted");
  }
  if (keys.has("audio_config")) {
    config.missingInEngine.emplace_back("audio input");
    if (!countsAudioTower(family, findWrapperFamily(config.wrapperType)))
      config.warnings.push_back("the audio tower is not counted");
  }
  if (keys.has("talker_config")) config.warnings.push_back("the parts that speak are not counted");
  if (error) return tl::unexpected(*error);
  noteMissingInEngine(config);
  return config;
}

}  // namespace headroom
