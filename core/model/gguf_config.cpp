// SPDX-License-Identifier: Apache-2.0
// GGUF metadata to ModelConfig. Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#include "core/model/gguf_config.h"

#include "core/model/config_reader.h"
#include "core/model/engine_support.h"
#include "core/model/model_family.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace headroom {
namespace {

constexpr int64_t kMaxContext = int64_t{1} << 40;

// Architectures whose decoder is one of the families' of config.json.
struct GgufArchitecture {
  std::string_view name;
  std::string_view modelType;
  RopeStyle ropeStyle;
};

constexpr GgufArchitecture kArchitectures[] = {
    // The converter permutes the rows of q and k, so that neighbours rotate together.
    {"llama", "llama", RopeStyle::Interleaved},
    {"qwen2", "qwen2", RopeStyle::Neox},
    {"qwen3", "qwen3", RopeStyle::Neox},
    {"mistral3", "mistral", RopeStyle::Interleaved},
    {"smollm3", "smollm3", RopeStyle::Interleaved},
    {"gemma", "gemma", RopeStyle::Neox},
    {"gemma2", "gemma2", RopeStyle::Neox},
    {"gemma3", "gemma3_text", RopeStyle::Neox},
    {"phi3", "phi3", RopeStyle::Neox},
    {"olmo2", "olmo2", RopeStyle::Neox},
    {"granite", "granite", RopeStyle::Interleaved},
    {"glm4", "glm4", RopeStyle::Interleaved},
    {"command-r", "cohere", RopeStyle::Interleaved},
    {"cohere2", "cohere2", RopeStyle::Interleaved},
    {"qwen2moe", "qwen2_moe", RopeStyle::Neox},
    {"qwen3moe", "qwen3_moe", RopeStyle::Neox},
    {"gpt-oss", "gpt_oss", RopeStyle::Neox},
    {"deepseek2", "deepseek_v3", RopeStyle::Interleaved},
    {"glm4moe", "glm4_moe", RopeStyle::Neox},
    {"minimax-m2", "minimax_m2", RopeStyle::Neox},
    {"granitemoe", "granitemoe", RopeStyle::Interleaved},
};

const GgufArchitecture* findArchitecture(std::string_view name) {
  for (const auto& row : kArchitectures)
    if (row.name == name) return &row;
  return nullptr;
}

// One value for all layers, or an array with one a layer.
std::vector<int64_t> perLayer(const ConfigReader& keys, const std::string& key, int64_t layers, int64_t otherwise, int64_t most) {
  const auto* value = keys.find({key});
  if (!value || !value->is_array())
    return std::vector<int64_t>(static_cast<size_t>(layers), keys.integer({key}, 0, most).value_or(otherwise));
  auto list = keys.integers({key}, 0, most);
  if (static_cast<int64_t>(list.size()) == layers) return list;
  keys.fail(key, list.size(), fmt::format("one value for each of the {} layers", layers));
  return std::vector<int64_t>(static_cast<size_t>(layers), otherwise);
}

const GgufTensor* findTensor(const GgufHeader& header, std::string_view name) {
  const auto found =
      std::find_if(header.tensors.begin(), header.tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  return found == header.tensors.end() ? nullptr : &*found;
}

bool hasTensor(const GgufHeader& header, std::string_view name) {
  return findTensor(header, name) != nullptr || std::any_of(header.unknownTensors.begin(), header.unknownTensors.end(),
                                                            [&](const auto& tensor) { return tensor.name == name; });
}

int64_t vocabularyOf(const ConfigReader& keys, const std::string& arch, const GgufHeader& header) {
  if (const auto size = keys.integer({arch + ".vocab_size"}, 1, 1 << 26)) return *size;
  if (const auto length = keys.integer({"tokenizer.ggml.tokens.length"}, 1, 1 << 26)) return *length;
  if (const auto* tokens = keys.find({"tokenizer.ggml.tokens"}); tokens && tokens->is_array() && !tokens->empty())
    return static_cast<int64_t>(tokens->size());
  if (const auto* embedding = findTensor(header, "token_embd.weight"); embedding && embedding->shape.size() == 2)
    return embedding->shape[0];
  keys.fail(Error{keys.where(), fmt::format("neither {}.vocab_size nor tokenizer.ggml.tokens", arch),
                  "the size of the vocabulary", ""});
  return 1;
}

// The type most of the matrices' bytes have.
DType mainDType(const GgufHeader& header) {
  std::map<DType, int64_t> bytes;
  for (const auto& tensor : header.tensors) bytes[tensor.dtype] += tensor.bytes.count();
  DType best = DType::F32;
  int64_t most = -1;
  for (const auto& [dtype, count] : bytes)
    if (count > most) best = dtype, most = count;
  return best;
}

void readRope(const ConfigReader& keys, const std::string& arch, const ModelFamily* family, ModelConfig& config) {
  RopeParameters& rope = config.rope;
  rope.theta = keys.number({arch + ".rope.freq_base"}, 1e-3, 1e15).value_or(family ? family->ropeTheta : 10000.0);
  rope.rotaryDim = keys.integer({arch + ".rope.dimension_count"}, 2, 8192).value_or(config.headDim);
  rope.factor = keys.number({arch + ".rope.scaling.factor", arch + ".rope.scale_linear"}, 1e-6, 1e9).value_or(1.0);
  rope.originalContext = keys.integer({arch + ".rope.scaling.original_context_length"}, 1, kMaxContext).value_or(0);
  const std::string type = keys.text({arch + ".rope.scaling.type"}).value_or(rope.factor != 1.0 ? "linear" : "none");
  if (type == "linear") {
    rope.scaling = RopeScaling::Linear;
  } else if (type == "yarn") {
    rope.scaling = RopeScaling::Yarn;
    rope.betaFast = keys.number({arch + ".rope.scaling.yarn_beta_fast"}, 0, 1e9).value_or(32.0);
    rope.betaSlow = keys.number({arch + ".rope.scaling.yarn_beta_slow"}, 0, 1e9).value_or(1.0);
    if (rope.originalContext == 0) rope.originalContext = config.maxPositionEmbeddings;
    rope.truncate = arch != "gpt-oss";
    if (const auto multiplier = keys.number({arch + ".rope.scaling.yarn_log_multiplier"}, 0, 1e9);
        multiplier && rope.factor > 1.0) {
      // DeepSeek: all of YaRN's sharpening stands in the softmax.
      const double mscale = 1.0 + *multiplier * std::log(rope.factor);
      rope.attentionFactor = 1.0;
      config.decoder.attentionScale = mscale * mscale / std::sqrt(static_cast<double>(config.headDim));
    }
  } else if (type == "longrope") {
    rope.scaling = RopeScaling::LongRope;
    rope.attentionFactor = keys.number({arch + ".rope.scaling.attn_factor"}, 1e-9, 1e9);
  } else if (type != "none") {
    config.missingInEngine.push_back(fmt::format("RoPE scaling \"{}\"", type));
  }
  config.localRope = rope;
  config.localRope.scaling = RopeScaling::None;
}

void readTokens(const ConfigReader& keys, ModelConfig& config) {
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (const auto id = keys.integer({key}, 0, UINT32_MAX); id && *id < config.vocabSize) {
      const auto token = static_cast<int32_t>(*id);
      if (std::find(config.eosTokenIds.begin(), config.eosTokenIds.end(), token) == config.eosTokenIds.end())
        config.eosTokenIds.push_back(token);
    }
  if (const auto id = keys.integer({"tokenizer.ggml.bos_token_id"}, 0, UINT32_MAX); id && *id < config.vocabSize)
    config.bosTokenId = static_cast<int32_t>(*id);
}

// What the metadata tells of the experts, and the tensors of the first layer that has them.
MoeParameters readExperts(const ConfigReader& keys, const std::string& arch, const GgufHeader& header, int64_t firstLayer) {
  MoeParameters moe;
  moe.experts = keys.integer({arch + ".expert_count"}, 0, 4096).value_or(0);
  if (moe.experts == 0) return moe;
  moe.expertsPerToken = keys.integer({arch + ".expert_used_count"}, 0, 4096).value_or(0);
  if (moe.expertsPerToken > moe.experts)
    keys.fail(arch + ".expert_used_count", moe.expertsPerToken, fmt::format("at most the {} experts", moe.experts));
  const auto stored = [&](const char* name) { return hasTensor(header, fmt::format("blk.{}.{}", firstLayer, name)); };
  const int64_t gating = keys.integer({arch + ".expert_gating_func"}, 0, 16).value_or(arch == "minimax-m2" ? 2 : 1);
  moe.scoring = gating == 2 ? RouterScoring::Sigmoid : RouterScoring::Softmax;
  moe.normalizeWeights = keys.flag({arch + ".expert_weights_norm"}).value_or(arch != "qwen2moe" && arch != "deepseek2");
  const double scale = keys.number({arch + ".expert_weights_scale"}, 0, 1e9).value_or(1.0);
  moe.weightScale = scale == 0.0 ? 1.0 : scale;
  moe.groups = keys.integer({arch + ".expert_group_count"}, 1, 4096).value_or(1);
  moe.groupsPerToken = keys.integer({arch + ".expert_group_used_count"}, 1, 4096).value_or(moe.groups);
  moe.groupByTopTwo = moe.scoring == RouterScoring::Sigmoid;
  if (moe.experts % moe.groups != 0 || moe.groupsPerToken > moe.groups ||
      moe.expertsPerToken > moe.experts / moe.groups * moe.groupsPerToken)
    keys.fail(arch + ".expert_group_count", moe.groups,
              fmt::format("groups of the {} experts, enough of them for {} a token", moe.experts, moe.expertsPerToken));
  moe.biasOnlyChooses = stored("exp_probs_b.bias");
  moe.routerBias = moe.biasOnlyChooses || stored("ffn_gate_inp.bias");
  moe.sharedGate = stored("ffn_gate_inp_shexp.weight");
  if (arch == "gpt-oss") moe.swigluLimit = 7.0;  // no key: the class's default, which all its checkpoints have
  return moe;
}

// DeepSeek's. The sizes of a head stand under names of their own where the file is made for attention in the latent space.
void readLatentAttention(const ConfigReader& keys, const std::string& arch, ModelConfig& config) {
  LatentAttention latent;
  latent.kvLoraRank = keys.integer({arch + ".attention.kv_lora_rank"}, 1, 1 << 16).value_or(0);
  if (latent.kvLoraRank == 0) return;
  latent.qLoraRank = keys.integer({arch + ".attention.q_lora_rank"}, 0, 1 << 16).value_or(0);
  latent.qkRopeHeadDim = keys.integer({arch + ".rope.dimension_count"}, 2, 8192).value_or(64);
  config.headDim =
      keys.integer({arch + ".attention.key_length_mla", arch + ".attention.key_length"}, 1, 8192).value_or(config.headDim);
  latent.qkNopeHeadDim = config.headDim - latent.qkRopeHeadDim;
  latent.vHeadDim = keys.integer({arch + ".attention.value_length_mla", arch + ".attention.value_length"}, 1, 8192).value_or(128);
  if (latent.qkNopeHeadDim <= 0)
    return keys.fail(arch + ".attention.key_length", config.headDim,
                     fmt::format("more than the {} rotated elements", latent.qkRopeHeadDim));
  for (auto& layer : config.layers) {
    layer.attention = AttentionKind::Latent;
    layer.latent = latent;
    layer.headDim = config.headDim;
    layer.vHeadDim = latent.vHeadDim;
    layer.kvHeads = layer.qHeads;
  }
  config.kvHeads = config.qHeads;
}

void readLayers(const ConfigReader& keys, const std::string& arch, const GgufHeader& header, int64_t count, ModelConfig& config) {
  const auto qHeads = perLayer(keys, arch + ".attention.head_count", count, 0, 4096);
  std::vector<int64_t> kvHeads = qHeads;
  if (keys.has(arch + ".attention.head_count_kv")) kvHeads = perLayer(keys, arch + ".attention.head_count_kv", count, 0, 4096);
  const auto widths = perLayer(keys, arch + ".feed_forward_length", count, 0, 1 << 20);
  const auto attending = std::find_if(qHeads.begin(), qHeads.end(), [](int64_t heads) { return heads > 0; });
  const int64_t heads = attending == qHeads.end() ? 1 : *attending;
  config.headDim =
      keys.integer({arch + ".attention.key_length"}, 1, 8192).value_or(std::max<int64_t>(config.hiddenSize / heads, 1));
  const int64_t valueDim = keys.integer({arch + ".attention.value_length"}, 1, 8192).value_or(config.headDim);
  const int64_t dense = std::min(keys.integer({arch + ".leading_dense_block_count"}, 0, 1024).value_or(0), count - 1);
  const MoeParameters moe = readExperts(keys, arch, header, dense);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    LayerSpec layer;
    layer.qHeads = qHeads[at];
    layer.kvHeads = kvHeads[at];
    layer.headDim = config.headDim;
    layer.vHeadDim = valueDim;
    layer.intermediateSize = widths[at];
    if (layer.qHeads == 0 || layer.kvHeads == 0) layer.attention = AttentionKind::None;
    if (widths[at] == 0) layer.ffn = FfnKind::None;
    if (moe.experts > 0 && i >= dense) {
      layer.ffn = FfnKind::MixtureOfExperts;
      layer.moe = moe;
      layer.moe.expertIntermediate = keys.integer({arch + ".expert_feed_forward_length"}, 1, 1 << 20).value_or(widths[at]);
      layer.moe.sharedExperts = keys.integer({arch + ".expert_shared_count"}, 0, 4096).value_or(0);
      layer.moe.sharedIntermediate = keys.integer({arch + ".expert_shared_feed_forward_length"}, 0, 1 << 20)
                                         .value_or(layer.moe.sharedExperts * layer.moe.expertIntermediate);
    }
    if (layer.attention == AttentionKind::Full && config.qHeads == 0)
      config.qHeads = layer.qHeads, config.kvHeads = layer.kvHeads;
    if (layer.intermediateSize > config.intermediateSize) config.intermediateSize = layer.intermediateSize;
    config.layers.push_back(layer);
  }
  if (config.qHeads == 0) keys.fail(arch + ".attention.head_count", heads, "at least one layer with attention heads");
  for (const auto& layer : config.layers)
    if (layer.attention == AttentionKind::Full && layer.qHeads % layer.kvHeads != 0)
      keys.fail(arch + ".attention.head_count_kv", layer.kvHeads, fmt::format("a divisor of the {} query heads", layer.qHeads));
}

void readWindows(const ConfigReader& keys, const std::string& arch, ModelConfig& config) {
  const int64_t window = keys.integer({arch + ".attention.sliding_window"}, 0, kMaxContext).value_or(0);
  if (window == 0) return;
  const bool mistral = arch == "llama" || arch == "mistral3" || arch == "phi3";
  const int64_t pattern = arch == "gemma3" ? 6 : arch == "gemma2" || arch == "gpt-oss" ? 2 : 4;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (!mistral && (static_cast<int64_t>(i) + 1) % pattern == 0) continue;
    config.layers[i].attention = AttentionKind::SlidingWindow;
    config.layers[i].window = window;
  }
}

void readTraits(const ConfigReader& keys, const std::string& arch, const ModelFamily* family, const GgufHeader& header,
                ModelConfig& config) {
  DecoderTraits& decoder = config.decoder;
  if (family) {
    decoder.norm = family->norm;
    decoder.activation = family->activation;
    decoder.gatedMlp = family->gatedMlp;
    decoder.qkNormFullWidth = family->qkNorm == QkNormRule::FullWidth;
    decoder.preNorm = family->norms != NormPlaces::After;
    decoder.postNorm = family->norms == NormPlaces::After || family->norms == NormPlaces::BeforeAndAfter;
    decoder.parallelBlock = family->norms == NormPlaces::Single;
    // The converter has added Gemma's one to the norm weights.
  }
  decoder.normEpsilon = keys.number({arch + ".attention.layer_norm_rms_epsilon", arch + ".attention.layer_norm_epsilon"}, 0, 1)
                            .value_or(family ? family->normEpsilon : 1e-5);
  decoder.qkNorm = hasTensor(header, "blk.0.attn_q_norm.weight") && !decoder.qkNormFullWidth;
  decoder.attentionSinks = hasTensor(header, "blk.0.attn_sinks.weight");
  decoder.attentionSoftcap = keys.number({arch + ".attn_logit_softcapping"}, 0, 1e9).value_or(0.0);
  decoder.finalSoftcap = keys.number({arch + ".final_logit_softcapping"}, 0, 1e9).value_or(0.0);
  decoder.attentionScale = keys.number({arch + ".attention.scale"}, 0, 1e9).value_or(0.0);
  decoder.embeddingMultiplier =
      keys.number({arch + ".embedding_scale"}, 1e-9, 1e9)
          .value_or(arch.starts_with("gemma") ? std::sqrt(static_cast<double>(config.hiddenSize)) : 1.0);
  decoder.residualMultiplier = keys.number({arch + ".residual_scale"}, 1e-9, 1e9).value_or(1.0);
  const double logitScale = keys.number({arch + ".logit_scale"}, 1e-9, 1e9).value_or(1.0);
  decoder.logitsMultiplier = arch.starts_with("granite") ? 1.0 / logitScale : logitScale;
  CheckpointTraits& checkpoint = config.checkpoint;
  checkpoint.qkvBias = hasTensor(header, "blk.0.attn_q.bias") || hasTensor(header, "blk.0.attn_qkv.bias");
  checkpoint.outputBias = hasTensor(header, "blk.0.attn_output.bias");
  checkpoint.mlpBias = hasTensor(header, "blk.0.ffn_down.bias");
  checkpoint.normBias = hasTensor(header, "blk.0.attn_norm.bias");
  checkpoint.fusedQkv = hasTensor(header, "blk.0.attn_qkv.weight");
}

}  // namespace

Result<ModelConfig> configOfGguf(const GgufHeader& header, const std::string& where) {
  std::optional<Error> error;
  const ConfigReader keys(header.metadata, where, error);
  const std::string arch = keys.text({"general.architecture"}).value_or("");
  if (arch.empty() && !error)
    return failure(where, "no general.architecture in the metadata", "the architecture's name",
                   "is this a model, or a part of one?");
  const std::string type = keys.text({"general.type"}).value_or("model");
  if (arch == "clip" || type == "mmproj")
    return failure(where, "the image or audio part of a model", "a language model", "open the GGUF file beside it");
  if (type == "adapter") return failure(where, "an adapter (LoRA)", "a language model", "open the model that it was trained for");
  if (type == "imatrix" || arch == "imatrix") return failure(where, "an importance matrix", "a language model");

  ModelConfig config;
  const GgufArchitecture* known = findArchitecture(arch);
  const ModelFamily* family = known ? findModelFamily(known->modelType) : nullptr;
  config.modelType = arch;
  config.architecture = family ? std::string(family->architecture) : arch;
  config.name = keys.text({"general.name", "general.basename"}).value_or("");
  if (!known) {
    config.warnings.push_back(fmt::format("architecture \"{}\" is unknown: the common keys are read", arch));
    config.missingInEngine.push_back(fmt::format("architecture \"{}\"", arch));
  }
  const auto required = [&](const std::string& key, int64_t most) {
    const auto value = keys.integer({key}, 1, most);
    if (!value && !keys.find({key}))
      keys.fail(Error{where, "no metadata key " + key, fmt::format("an integer from 1 to {}", most), ""});
    return value.value_or(1);
  };
  config.hiddenSize = required(arch + ".embedding_length", 1 << 17);
  const int64_t blocks = required(arch + ".block_count", 1024);
  // GLM-4 MoE counts its prediction layers, which stand behind the decoder's.
  const int64_t layers = std::max<int64_t>(1, blocks - keys.integer({arch + ".nextn_predict_layers"}, 0, 64).value_or(0));
  config.maxPositionEmbeddings = keys.integer({arch + ".context_length"}, 1, kMaxContext).value_or(0);
  config.vocabSize = vocabularyOf(keys, arch, header);
  config.dtype = mainDType(header);
  config.tieWordEmbeddings = !hasTensor(header, "output.weight");
  config.rope.style = known ? known->ropeStyle : RopeStyle::Neox;
  if (error) return tl::unexpected(*error);
  readLayers(keys, arch, header, layers, config);
  readLatentAttention(keys, arch, config);
  readWindows(keys, arch, config);
  readTraits(keys, arch, family, header, config);
  readRope(keys, arch, family, config);
  readTokens(keys, config);
  if (error) return tl::unexpected(*error);
  if (arch == "smollm3")
    for (size_t i = 0; i < config.layers.size(); ++i) config.layers[i].rope = (i + 1) % 4 != 0;
  if (isBlockQuantized(config.dtype)) {
    config.quantization.emplace();
    config.quantization->method = "gguf";
  }
  noteMissingInEngine(config);
  return config;
}

}  // namespace headroom
