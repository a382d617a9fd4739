// SPDX-License-Identifier: Apache-2.0
// The rules below are what vLLM 0.32's own model classes built for some hundred configurations; older versions and SGLang, whose
// classes descend from them, are taken to be alike.
#include "core/memory/held_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

namespace headroom {
namespace {

constexpr int64_t kVocabularyPadding = 64;
constexpr EngineVersion kTransformersBackend{0, 32, 0};

// Classes that build parts of the ends on every stage, not only where they are used.
struct Ends {
  std::string_view architecture;
  bool embedding = true, norm = true, head = true;
};
constexpr Ends kEndsOnEveryStage[] = {
    {"CohereForCausalLM"},
    {"Cohere2ForCausalLM"},
    {"Lfm2ForCausalLM", true, false, true},
    {"Lfm2MoeForCausalLM", true, false, true},
    {"Qwen2MoeForCausalLM"},
    {"Qwen3MoeForCausalLM"},
    {"Qwen3NextForCausalLM", true, false, true},
    {"Qwen3_5ForConditionalGeneration", true, false, false},
    {"Qwen3_5MoeForConditionalGeneration", true, false, false},
    {"ChatGLMModel"},
    {"ChatGLMForConditionalGeneration"},
    {"JambaForCausalLM"},
    {"GemmaForCausalLM"},
    {"Gemma2ForCausalLM"},
    {"Gemma3ForCausalLM"},
    {"Gemma3ForConditionalGeneration"},
    {"Gemma4ForCausalLM"},
    {"Gemma4ForConditionalGeneration"},
    {"GraniteMoeForCausalLM"},
    {"InternLM2ForCausalLM"},
    {"PhiMoEForCausalLM"},
    {"MixtralForCausalLM"},
    {"NemotronHForCausalLM"},
    {"GptOssForCausalLM"},
    {"MiniCPM3ForCausalLM"},
    {"MiniCPMForCausalLM"},
    {"FalconForCausalLM"},
};

// Families whose routers stand in 32 bits.
constexpr std::array<std::string_view, 6> kRouter32{"minimax_m2", "mimo_v2_flash", "glm4_moe",
                                                    "glm4v_moe",  "ernie4_5_moe",  "step3p5"};
// Families that run on the engine's generic backend: what no plan divides stands whole on every rank.
constexpr std::array<std::string_view, 10> kGeneric{"mllama",  "mllama_text_model", "olmo",     "olmo2", "olmo3",
                                                    "smollm3", "starcoder2",        "gpt_neox", "phi",   "seed_oss"};
// Families whose towers are not divided.
constexpr std::array<std::string_view, 4> kWholeTowers{"mllama", "mllama_text_model", "gemma4", "gemma4_text"};

template <size_t N>
bool lists(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool endsWithAny(std::string_view text, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view suffix) { return text.ends_with(suffix); });
}

bool isLayerMatrix(const TensorEntry& tensor) {
  switch (tensor.role) {
    case TensorRole::Q:
    case TensorRole::K:
    case TensorRole::V:
    case TensorRole::O:
    case TensorRole::Qkv:
    case TensorRole::Gate:
    case TensorRole::Up:
    case TensorRole::Down:
    case TensorRole::GateUp:
    case TensorRole::ExpertGate:
    case TensorRole::ExpertUp:
    case TensorRole::ExpertDown:
    case TensorRole::ExpertGateUp:
    case TensorRole::SharedGate:
    case TensorRole::SharedUp:
    case TensorRole::SharedDown:
      return tensor.shape.size() >= 2;
    default:
      return false;
  }
}

bool isExpert(const TensorEntry& tensor) {
  switch (tensor.role) {
    case TensorRole::ExpertGate:
    case TensorRole::ExpertUp:
    case TensorRole::ExpertDown:
    case TensorRole::ExpertGateUp:
      return true;
    default: {
      const size_t at = tensor.name.find("experts.");
      return at != std::string::npos && (at == 0 || tensor.name[at - 1] == '.');
    }
  }
}

// The split of a tower's tensor by its place in a block: column-parallel first matrices with their biases, row-parallel second
// ones. 0: rows, 1: columns.
std::optional<int> towerSplit(const TensorEntry& tensor, const ModelConfig& config) {
  const size_t dot = tensor.name.rfind('.');
  if (tensor.layer >= 0 || tensor.role != TensorRole::Other || dot == std::string::npos) return std::nullopt;
  const std::string_view module = std::string_view(tensor.name).substr(0, dot);
  const bool weight = tensor.name.ends_with(".weight"), bias = tensor.name.ends_with(".bias");
  if (!weight && !bias) return std::nullopt;
  const bool kimi = module.find("encoder.blocks.") != std::string_view::npos;
  if (kimi && module.ends_with("mlp.fc1")) return weight ? std::optional<int>(1) : std::nullopt;
  if (endsWithAny(module, {"attn.qkv", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "attention.q_proj",
                           "attention.k_proj", "attention.v_proj", "attn.wqkv", "mlp.fc0", "mlp.fc1", "linear_fc1",
                           "mlp.gate_proj", "mlp.up_proj", "feed_forward.gate_proj", "feed_forward.up_proj", "merger.mlp.0",
                           "patch_embedding.linear", "multi_modal_projector.linear_1"}))
    return weight || bias ? std::optional<int>(0) : std::nullopt;
  const bool second = endsWithAny(module, {"attn.proj", "self_attn.out_proj", "self_attn.o_proj", "attention.o_proj", "attn.wo",
                                           "mlp.fc2", "linear_fc2", "mlp.down_proj", "feed_forward.down_proj", "merger.mlp.2"}) ||
                      (module.ends_with("multi_modal_projector.linear_2") && !config.modelType.starts_with("llama4"));
  return second && weight ? std::optional<int>(1) : std::nullopt;
}

// One model's tensors, one after another, as an engine holds them.
class Holder {
 public:
  Holder(const ModelSource& model, const HeldWeightsOptions& options)
      : m_config(model.config),
        m_options(options),
        m_quantized(model.config.quantization.has_value()),
        m_serves(options.engine == EngineKind::Vllm || options.engine == EngineKind::SgLang),
        m_generic(options.engine == EngineKind::Vllm && options.version >= kTransformersBackend &&
                  vllmUsesGenericBackend(model.config)),
        m_router32(m_serves && lists(kRouter32, model.config.modelType)),
        m_wholeTowers(lists(kWholeTowers, model.config.modelType) || m_generic) {}

  // Bytes of the whole tensor; 0: the engine has no such parameter.
  int64_t bytesOf(const TensorEntry& tensor) const {
    const int64_t element = dtypeInfo(m_options.dtype).blockBytes, elements = tensor.elements();
    if (m_serves && !isHeld(tensor)) return 0;
    if (m_serves && (isThirtyTwoBit(tensor) || tensor.name.ends_with("gate.tid2eid"))) return 4 * elements;
    const bool online = !m_quantized && (m_options.quantization == "fp8" || m_options.quantization == "int8");
    if (online && isLayerMatrix(tensor) && isFloating(tensor.dtype)) return elements;
    if (m_serves && m_quantized && tensor.name.ends_with("indexer.wk.weight")) return elements * element;
    if (m_quantized && tensor.name.ends_with("weight_shape")) return shapeBytes(tensor);
    if (isFloating(tensor.dtype) && !m_quantized) return elements * element;
    if (m_quantized && isFloating(tensor.dtype) && tensor.dtype != DType::F32) {
      // Scales of rows are 32-bit in the classes for 8-bit weights; those of groups have the parameters' type.
      if (m_serves && m_config.quantization->method == "compressed-tensors" && tensor.name.ends_with("weight_scale") &&
          m_config.quantization->bits == 8)
        return 4 * elements;
      if (tensor.shape.size() > 1) return elements * element;
    }
    return tensor.storedBytes().count();
  }

  // Where the engine divides other than the checkpoint's own split tells.
  std::vector<SplitSegment> segmentsOf(const TensorEntry& tensor) const {
    if (!m_serves) return tensor.splitDim < 0 ? std::vector<SplitSegment>{} : tensor.segments;
    if (m_generic && (tensor.role == TensorRole::QNorm || tensor.role == TensorRole::KNorm)) return {};
    if (tensor.layer >= 0 && tensor.layer < m_config.layerCount() &&
        m_config.layers[static_cast<size_t>(tensor.layer)].attention == AttentionKind::CrossAttention) {
      if (tensor.role == TensorRole::Q || tensor.role == TensorRole::O) return {};
      if (tensor.role == TensorRole::K || tensor.role == TensorRole::V)
        return {{SplitUnit::MlpColumns, tensor.segments.front().elements, 1}};
    }
    if (m_config.modelType == "deepseek_v4" && tensor.name.ends_with("sinks")) return {};
    if (m_config.modelType == "deepseek_v4" && tensor.name.find(".self_attn.o_") != std::string::npos &&
        !tensor.segments.empty()) {
      // Divided by columns, not by groups.
      SplitSegment all = tensor.segments.front();
      all.unit = SplitUnit::MlpColumns;
      if (all.weightElements == 0) all.weightElements = all.elements;
      all.weightElementsPerUnit = all.elementsPerUnit = 1;
      return {all};
    }
    if (!m_wholeTowers && tensor.segments.empty()) {
      if (const auto dim = towerSplit(tensor, m_config))
        return {{SplitUnit::MlpColumns, tensor.shape[std::min<size_t>(static_cast<size_t>(*dim), tensor.shape.size() - 1)], 1}};
    }
    return tensor.segments;
  }

  // Units to which a rank's share of an expert's columns is rounded up.
  int64_t expertPadding() const {
    if (!m_serves || !m_quantized || m_config.quantization->method != "mxfp4") return 1;
    return noWiderKernels() ? 64 : 128;
  }
  // Hopper's kernels take smaller blocks where a rank's share of an expert is no whole number of them.
  bool shrinksBlocks() const {
    return m_serves && m_quantized && m_config.quantization->method == "fp8" && m_config.quantization->weightBlock.size() == 2;
  }

  // Columns of the model's width inside packed experts, rounded up where kernels need it.
  int64_t paddedHidden(int64_t hidden) const {
    const bool older = m_options.engine == EngineKind::Vllm && m_options.version < EngineVersion{0, 32, 0};
    return expertPadding() > 1 && (older || !noWiderKernels()) ? roundUp(hidden, 256) : hidden;
  }

  // Parameters that no checkpoint stores, for each layer.
  int64_t extraOfLayer(const LayerSpec& layer) const {
    if (!m_serves) return 0;
    int64_t bytes = 0;
    const bool latent = layer.attention == AttentionKind::Latent;
    const bool cached = layer.attention == AttentionKind::Full || layer.attention == AttentionKind::SlidingWindow ||
                        layer.attention == AttentionKind::ChunkedWindow;
    const std::string& method = m_options.quantization;
    // Scales of queries, keys and values: two 32-bit ones, or three in 32 and three in 16 bits.
    if (m_quantized && cached && method == "fp8") bytes += 8;
    if (m_quantized && (cached || latent) && method.starts_with("modelopt")) bytes += 8;
    if (m_quantized && cached && method == "compressed-tensors") bytes += 18;
    // Nemotron's correction bias, which its files leave out.
    if (layer.ffn == FfnKind::MixtureOfExperts && !layer.moe.routerBias && m_config.modelType == "nemotron_h")
      bytes += 4 * layer.moe.experts;
    return bytes;
  }

  // Gemma 4 shares keys and values in its full layers; the engine allocates both.
  bool needsValues(const TensorEntry& tensor) const {
    return m_serves && tensor.role == TensorRole::K && tensor.layer >= 0 && tensor.layer < m_config.layerCount() &&
           m_config.layers[static_cast<size_t>(tensor.layer)].valuesAreKeys;
  }

 private:
  // Of packed FP4 experts; unknown cards are taken for Hopper.
  bool noWiderKernels() const { return !m_options.computeCapability || static_cast<int>(*m_options.computeCapability) == 9; }

  bool isHeld(const TensorEntry& tensor) const {
    const std::string& name = tensor.name;
    if (m_quantized && name.ends_with(".g_idx") && !m_config.quantization->descAct) return false;
    if (m_quantized && name.ends_with("indexer.wk.weight_scale_inv")) return false;
    // Buffers, not parameters.
    return !endsWithAny(name, {"layer_scalar", "std_bias", "std_scale"});
  }

  bool isThirtyTwoBit(const TensorEntry& tensor) const {
    if (endsWithAny(tensor.name, {"e_score_correction_bias", "A_log", "indexer.k_norm.weight", "indexer.k_norm.bias"}))
      return true;
    if (m_config.modelType == "deepseek_v4" &&
        (tensor.name.find("_hc.") != std::string::npos || tensor.name.find("hc_head.") != std::string::npos ||
         endsWithAny(tensor.name, {"position_bias", "sinks"})))
      return true;
    return m_router32 && tensor.role == TensorRole::Router;
  }

  // The shape that packed checkpoints store beside each weight: of stacked experts two numbers of the parameters' type for each
  // of two matrices.
  int64_t shapeBytes(const TensorEntry& tensor) const {
    if (!isExpert(tensor) && tensor.name.find("experts.") == std::string::npos) return tensor.storedBytes().count();
    if (tensor.name.find("up_proj") != std::string::npos || tensor.name.find("w3") != std::string::npos) return 0;
    return tensor.elements() * dtypeInfo(m_options.dtype).blockBytes;
  }

  const ModelConfig& m_config;
  const HeldWeightsOptions& m_options;
  bool m_quantized, m_serves, m_generic, m_router32, m_wholeTowers;
};

// The model whose tensors the engine builds: by configuration, whatever the files hold. Formats that the engine does not know are
// not there for it.
std::optional<TensorInventory> rebuiltInventory(const ModelSource& model, const HeldWeightsOptions& options, ModelSource& owner) {
  if (!model.config.quantization || !model.config.raw.is_object()) return std::nullopt;
  const bool mlx = model.config.quantization->method == "mlx" && options.engine == EngineKind::Vllm;
  if (mlx) {
    owner.config = model.config;
    owner.config.quantization.reset();
    return inventoryOfConfig(owner.config);
  }
  if (model.origin != ModelSource::Origin::SafetensorsHeaders) return std::nullopt;
  return inventoryOfConfig(model.config);
}

}  // namespace

bool vllmUsesGenericBackend(const ModelConfig& config) { return lists(kGeneric, config.modelType); }

HeldWeights::HeldWeights(const ModelSource& original, const TensorInventory& tensors, const HeldWeightsOptions& options,
                         const std::function<int64_t(const TensorEntry&)>& countOf)
    : m_tied(original.config.tieWordEmbeddings) {
  ModelSource owner;
  const std::optional<TensorInventory> rebuilt = rebuiltInventory(original, options, owner);
  const ModelSource& model = owner.config.layers.empty() ? original : owner;
  const ModelConfig& config = model.config;
  const Holder holder(model, options);
  m_padVocabulary = options.engine == EngineKind::Vllm || options.engine == EngineKind::SgLang;
  m_frontOnAll = options.engine == EngineKind::Vllm;
  if (options.engine == EngineKind::Vllm) {
    for (const Ends& ends : kEndsOnEveryStage) {
      if (ends.architecture != config.architecture) continue;
      m_embeddingOnAll = ends.embedding;
      m_normOnAll = ends.norm;
      m_headOnAll = ends.head;
    }
  }

  std::map<SplitClass, int> index;
  std::vector<std::map<int, int64_t>> layers(config.layers.size());
  std::map<int, int64_t> embedding, front, norm, head, everywhere;
  double layerBytes = 0, layerElements = 0, headBytes = 0, headElements = 0;
  auto add = [&](std::map<int, int64_t>& rows, const SplitClass& split, int64_t bytes) {
    const auto [found, isNew] = index.try_emplace(split, static_cast<int>(m_classes.size()));
    if (isNew) m_classes.push_back(split);
    rows[found->second] += bytes;
  };
  for (const TensorEntry& tensor : (rebuilt ? *rebuilt : tensors).tensors) {
    if (!tensor.loaded || tensor.layer >= config.layerCount()) continue;
    std::map<int, int64_t>* rows = &front;
    if (tensor.layer >= 0) {
      rows = &layers[static_cast<size_t>(tensor.layer)];
    } else if (tensor.role == TensorRole::RopeFrequencies) {
      rows = &everywhere;
    } else if (tensor.role == TensorRole::TokenEmbedding) {
      rows = &embedding;
    } else if (tensor.role == TensorRole::FinalNorm || tensor.role == TensorRole::FinalNormBias) {
      rows = &norm;
    } else if (tensor.role == TensorRole::LmHead || tensor.role == TensorRole::LmHeadBias) {
      rows = &head;
    }
    const int64_t count = !rebuilt && countOf ? countOf(tensor) : 1;
    int64_t bytes = holder.bytesOf(tensor) * count;
    if (bytes == 0) continue;
    if (tensor.shape.size() >= 2) {
      (tensor.layer >= 0 ? layerBytes : headBytes) += static_cast<double>(bytes);
      (tensor.layer >= 0 ? layerElements : headElements) += static_cast<double>(tensor.parameters() * count);
    }
    if (holder.needsValues(tensor)) bytes *= 2;
    const std::vector<SplitSegment> segments = holder.segmentsOf(tensor);
    SplitClass split;
    const bool expert = isExpert(tensor);
    if (expert) {
      const LayerSpec* spec = tensor.layer >= 0 ? &config.layers[static_cast<size_t>(tensor.layer)] : nullptr;
      split.experts = spec ? spec->moe.experts : 0;
      // Widths inside packed experts.
      const int64_t padded = holder.paddedHidden(config.hiddenSize);
      if (padded != config.hiddenSize && bytes % config.hiddenSize == 0 && !tensor.name.ends_with("gate_up_proj_bias"))
        bytes = bytes / config.hiddenSize * padded;
    }
    if (segments.empty()) {
      add(*rows, split, bytes);
      continue;
    }
    int64_t total = 0;
    for (const SplitSegment& segment : segments) total += segment.elements;
    for (const SplitSegment& segment : segments) {
      SplitClass piece = split;
      piece.unit = segment.unit;
      piece.elements = segment.elements;
      piece.granule = segment.granule;
      const int64_t weight = segment.weightElements > 0 ? segment.weightElements : segment.elements;
      piece.perUnit = std::max<int64_t>(1, segment.weightElements > 0 ? segment.weightElementsPerUnit : segment.elementsPerUnit);
      piece.units = std::max<int64_t>(1, weight / piece.perUnit);
      if (segment.unit == SplitUnit::ExpertColumns) piece.padding = holder.expertPadding();
      if (segment.unit == SplitUnit::ExpertColumns && segment.granule > 1 && holder.shrinksBlocks())
        piece.otherWidth = config.hiddenSize;
      add(*rows, piece, bytes / total * segment.elements + bytes % total * segment.elements / total);
    }
  }
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    if (const int64_t bytes = holder.extraOfLayer(config.layers[layer]); bytes > 0) add(layers[layer], SplitClass{}, bytes);
  }
  if (layerElements > 0) m_layerBytesPerElement = layerBytes / layerElements;
  if (headElements > 0) m_headBytesPerElement = headBytes / headElements;

  auto rowsOf = [](const std::map<int, int64_t>& sums) { return Rows(sums.begin(), sums.end()); };
  m_embedding = rowsOf(embedding);
  m_front = rowsOf(front);
  m_norm = rowsOf(norm);
  m_head = rowsOf(head);
  m_everywhere = rowsOf(everywhere);
  for (const auto& layer : layers) {
    const Rows rows = rowsOf(layer);
    const auto found = std::find(m_kinds.begin(), m_kinds.end(), rows);
    m_kindOfLayer.push_back(static_cast<int>(found - m_kinds.begin()));
    if (found == m_kinds.end()) m_kinds.push_back(rows);
  }
  m_kindCountBefore.assign(m_kinds.size(), std::vector<int>(layers.size() + 1, 0));
  for (size_t kind = 0; kind < m_kinds.size(); ++kind) {
    for (size_t layer = 0; layer < layers.size(); ++layer)
      m_kindCountBefore[kind][layer + 1] = m_kindCountBefore[kind][layer] + (m_kindOfLayer[layer] == static_cast<int>(kind));
  }
}

// Stored elements of the split that TP rank 0 holds.
int64_t HeldWeights::heldOf(const SplitClass& split, const Shards& shards) const {
  int64_t units = split.units;
  const int64_t attention = shards.attention > 0 ? shards.attention : shards.tp;
  switch (split.unit) {
    case SplitUnit::QHeads:
    case SplitUnit::KvHeads:
      units = ceilDiv(units, attention);
      break;
    case SplitUnit::MlpColumns:
    case SplitUnit::SharedColumns:
      units = ceilDiv(units, shards.tp);
      break;
    case SplitUnit::ExpertColumns:
      units = ceilDiv(units, shards.experts);
      break;
    case SplitUnit::Vocabulary:
      units = ceilDiv(m_padVocabulary ? roundUp(units, kVocabularyPadding) : units, shards.tp);
      break;
    case SplitUnit::Experts:
      units = ceilDiv(units, shards.expertGroups);
      break;
    case SplitUnit::Replicated:
      return split.elements;
  }
  units = roundUp(units, split.padding);
  return ceilDiv(units * split.perUnit, split.granule);
}

int64_t HeldWeights::sum(const Rows& rows, const std::vector<double>& held) const {
  int64_t total = 0;
  for (const auto& [index, bytes] : rows) total += std::llround(static_cast<double>(bytes) * held[static_cast<size_t>(index)]);
  return total;
}

HeldWeights::Shares HeldWeights::sharesOf(const Shards& shards) const {
  std::vector<double> held;
  held.reserve(m_classes.size());
  for (const SplitClass& split : m_classes) {
    double share = static_cast<double>(heldOf(split, shards)) / static_cast<double>(split.elements);
    if (const int64_t rest = ceilDiv(split.units, shards.experts) * split.perUnit % split.granule;
        split.otherWidth > 0 && rest != 0) {
      const int64_t mine = ceilDiv(split.units, shards.experts) * split.perUnit,
                    block = std::gcd(std::gcd(split.granule, mine), split.otherWidth);
      share =
          static_cast<double>(mine / block) * static_cast<double>(split.granule / block) / static_cast<double>(split.elements);
    }
    if (split.experts > 0 && split.unit != SplitUnit::Experts)
      share *= static_cast<double>(ceilDiv(split.experts, shards.expertGroups)) / static_cast<double>(split.experts);
    held.push_back(share);
  }
  Shares shares;
  shares.kindBytes.reserve(m_kinds.size());
  for (const Rows& rows : m_kinds) shares.kindBytes.push_back(sum(rows, held));
  shares.embedding = sum(m_embedding, held);
  shares.front = sum(m_front, held);
  shares.norm = sum(m_norm, held);
  shares.head = sum(m_head, held);
  shares.everywhere = sum(m_everywhere, held);
  return shares;
}

Bytes HeldWeights::stageBytes(const Shares& shares, Range layers, bool first, bool last) const {
  int64_t total = shares.everywhere;
  for (size_t kind = 0; kind < m_kinds.size(); ++kind)
    total += shares.kindBytes[kind] * (m_kindCountBefore[kind][static_cast<size_t>(layers.end)] -
                                       m_kindCountBefore[kind][static_cast<size_t>(layers.begin)]);
  if (first || m_embeddingOnAll || (last && m_tied)) total += shares.embedding;
  if (first || m_frontOnAll) total += shares.front;
  if (last || m_normOnAll) total += shares.norm;
  if (last || m_headOnAll) total += shares.head;
  return Bytes(total);
}

std::vector<int64_t> HeldWeights::layerBytes(const Shares& shares) const {
  std::vector<int64_t> bytes;
  bytes.reserve(m_kindOfLayer.size());
  for (int kind : m_kindOfLayer) bytes.push_back(shares.kindBytes[static_cast<size_t>(kind)]);
  return bytes;
}

}  // namespace headroom
