// SPDX-License-Identifier: Apache-2.0
#include "core/model/tensor_split.h"

#include <algorithm>

namespace headroom {
namespace {

struct Split {
  int dim = -1;
  std::vector<SplitSegment> segments;
};

Split rows(SplitUnit unit, int64_t count, int64_t elementsPerUnit) {
  return {0, {{unit, count * elementsPerUnit, elementsPerUnit}}};
}

Split columns(SplitUnit unit, int64_t count, int64_t elementsPerUnit) {
  return {1, {{unit, count * elementsPerUnit, elementsPerUnit}}};
}

// Everything follows the key heads: a value head stays with the key head that it shares.
Split splitOfLinearAttention(TensorRole role, const LinearAttention& linear) {
  if (linear.keyHeads == 0) return {};
  const int64_t shared = std::max<int64_t>(1, linear.valueHeads / linear.keyHeads);
  const SplitSegment keys{SplitUnit::QHeads, linear.keyHeads * linear.keyDim, linear.keyDim},
      values{SplitUnit::QHeads, linear.keyHeads * shared * linear.valueDim, shared * linear.valueDim};
  switch (role) {
    case TensorRole::LinearQkvz:
      return rows(SplitUnit::QHeads, linear.keyHeads, 2 * linear.keyDim + 2 * shared * linear.valueDim);
    case TensorRole::LinearQkv:
    case TensorRole::LinearConvolution:
      return {0, {keys, keys, values}};
    case TensorRole::LinearZ:
      return {0, {values}};
    case TensorRole::LinearBetaAlpha:
      return rows(SplitUnit::QHeads, linear.keyHeads, 2 * shared);
    case TensorRole::LinearOut:
      return {1, {values}};
    default:
      return rows(SplitUnit::QHeads, linear.keyHeads, shared);
  }
}

Split splitOfRole(TensorRole role, const ModelConfig& config, const LayerSpec& layer) {
  const MoeParameters& moe = layer.moe;
  switch (role) {
    case TensorRole::TokenEmbedding:
    case TensorRole::LmHead:
    case TensorRole::LmHeadBias:
      return rows(SplitUnit::Vocabulary, config.vocabSize, 1);
    case TensorRole::Q:
    case TensorRole::QBias:
      return rows(SplitUnit::QHeads, layer.qHeads, layer.headDim * (config.checkpoint.queryGate ? 2 : 1));
    case TensorRole::KvUp:
      return rows(SplitUnit::QHeads, layer.qHeads, layer.latent.qkNopeHeadDim + layer.latent.vHeadDim);
    case TensorRole::KeyUp:
    case TensorRole::ValueUp:
      return rows(SplitUnit::QHeads, layer.qHeads, 1);
    case TensorRole::LinearQkvz:
    case TensorRole::LinearQkv:
    case TensorRole::LinearZ:
    case TensorRole::LinearBetaAlpha:
    case TensorRole::LinearBeta:
    case TensorRole::LinearAlpha:
    case TensorRole::LinearConvolution:
    case TensorRole::LinearTimeBias:
    case TensorRole::LinearDecay:
    case TensorRole::LinearOut:
      return splitOfLinearAttention(role, layer.linear);
    case TensorRole::K:
    case TensorRole::KBias:
      return rows(SplitUnit::KvHeads, layer.kvHeads, layer.headDim);
    case TensorRole::V:
    case TensorRole::VBias:
      return rows(SplitUnit::KvHeads, layer.kvHeads, layer.vHeadDim);
    case TensorRole::O:
      return columns(SplitUnit::QHeads, layer.qHeads, layer.vHeadDim);
    case TensorRole::Qkv:
    case TensorRole::QkvBias:
      return {0,
              {{SplitUnit::QHeads, layer.qHeads * layer.headDim, layer.headDim},
               {SplitUnit::KvHeads, layer.kvHeads * layer.headDim, layer.headDim},
               {SplitUnit::KvHeads, layer.kvHeads * layer.vHeadDim, layer.vHeadDim}}};
    case TensorRole::QNorm:
      return config.decoder.qkNormFullWidth ? rows(SplitUnit::QHeads, layer.qHeads, layer.headDim) : Split{};
    case TensorRole::KNorm:
      return config.decoder.qkNormFullWidth ? rows(SplitUnit::KvHeads, layer.kvHeads, layer.headDim) : Split{};
    case TensorRole::Sinks:
      return rows(SplitUnit::QHeads, layer.qHeads, 1);
    case TensorRole::Gate:
    case TensorRole::Up:
    case TensorRole::GateBias:
    case TensorRole::UpBias:
      return rows(SplitUnit::MlpColumns, layer.intermediateSize, 1);
    case TensorRole::Down:
      return columns(SplitUnit::MlpColumns, layer.intermediateSize, 1);
    case TensorRole::GateUp:
      return {0, {{SplitUnit::MlpColumns, layer.intermediateSize, 1}, {SplitUnit::MlpColumns, layer.intermediateSize, 1}}};
    case TensorRole::ExpertGate:
    case TensorRole::ExpertUp:
      return rows(SplitUnit::ExpertColumns, moe.expertIntermediate, 1);
    case TensorRole::ExpertDown:
      return columns(SplitUnit::ExpertColumns, moe.expertIntermediate, 1);
    case TensorRole::ExpertGateUp:
      return {0, {{SplitUnit::ExpertColumns, moe.expertIntermediate, 1}, {SplitUnit::ExpertColumns, moe.expertIntermediate, 1}}};
    case TensorRole::ExpertGateBias:
    case TensorRole::ExpertUpBias:
      return columns(SplitUnit::ExpertColumns, moe.expertIntermediate, 1);
    case TensorRole::SharedGate:
    case TensorRole::SharedUp:
      return rows(SplitUnit::SharedColumns, moe.sharedIntermediate, 1);
    case TensorRole::SharedDown:
      return columns(SplitUnit::SharedColumns, moe.sharedIntermediate, 1);
    default:
      return {};
  }
}

bool isExpertMatrix(TensorRole role) {
  return role == TensorRole::ExpertGate || role == TensorRole::ExpertUp || role == TensorRole::ExpertDown ||
         role == TensorRole::ExpertGateUp;
}

struct Suffix {
  std::string_view text;
  TensorRole role;
};

// What follows "layers.N."; the checkpoints of the families that share Llama's names.
constexpr Suffix kLayerNames[] = {
    {"self_attn.q_proj.weight", TensorRole::Q},
    {"self_attn.k_proj.weight", TensorRole::K},
    {"self_attn.v_proj.weight", TensorRole::V},
    {"self_attn.o_proj.weight", TensorRole::O},
    {"self_attn.q_proj.bias", TensorRole::QBias},
    {"self_attn.k_proj.bias", TensorRole::KBias},
    {"self_attn.v_proj.bias", TensorRole::VBias},
    {"self_attn.o_proj.bias", TensorRole::OBias},
    {"self_attn.q_norm.weight", TensorRole::QNorm},
    {"self_attn.k_norm.weight", TensorRole::KNorm},
    {"self_attn.q_a_proj.weight", TensorRole::QLatent},
    {"self_attn.q_a_layernorm.weight", TensorRole::QLatentNorm},
    {"self_attn.q_b_proj.weight", TensorRole::Q},
    {"self_attn.kv_a_proj_with_mqa.weight", TensorRole::KvLatent},
    {"self_attn.kv_a_layernorm.weight", TensorRole::KvLatentNorm},
    {"self_attn.kv_b_proj.weight", TensorRole::KvUp},
    {"linear_attn.in_proj_qkvz.weight", TensorRole::LinearQkvz},
    {"linear_attn.in_proj_qkv.weight", TensorRole::LinearQkv},
    {"linear_attn.in_proj_z.weight", TensorRole::LinearZ},
    {"linear_attn.in_proj_ba.weight", TensorRole::LinearBetaAlpha},
    {"linear_attn.in_proj_b.weight", TensorRole::LinearBeta},
    {"linear_attn.in_proj_a.weight", TensorRole::LinearAlpha},
    {"linear_attn.conv1d.weight", TensorRole::LinearConvolution},
    {"linear_attn.dt_bias", TensorRole::LinearTimeBias},
    {"linear_attn.A_log", TensorRole::LinearDecay},
    {"linear_attn.norm.weight", TensorRole::LinearNorm},
    {"linear_attn.out_proj.weight", TensorRole::LinearOut},
    {"self_attn.qkv_proj.weight", TensorRole::Qkv},
    {"self_attn.qkv_proj.bias", TensorRole::QkvBias},
    {"self_attn.sinks", TensorRole::Sinks},
    {"mlp.gate_proj.weight", TensorRole::Gate},
    {"mlp.up_proj.weight", TensorRole::Up},
    {"mlp.down_proj.weight", TensorRole::Down},
    {"mlp.gate_up_proj.weight", TensorRole::GateUp},
    {"mlp.gate_proj.bias", TensorRole::GateBias},
    {"mlp.up_proj.bias", TensorRole::UpBias},
    {"mlp.down_proj.bias", TensorRole::DownBias},
    {"mlp.gate.weight", TensorRole::Router},
    {"mlp.router.weight", TensorRole::Router},
    {"mlp.router.bias", TensorRole::RouterBias},
    {"block_sparse_moe.gate.weight", TensorRole::Router},
    {"mlp.gate.e_score_correction_bias", TensorRole::RouterBias},
    {"block_sparse_moe.e_score_correction_bias", TensorRole::RouterBias},
    {"mlp.shared_experts.gate_proj.weight", TensorRole::SharedGate},
    {"mlp.shared_experts.up_proj.weight", TensorRole::SharedUp},
    {"mlp.shared_experts.down_proj.weight", TensorRole::SharedDown},
    {"mlp.shared_expert.gate_proj.weight", TensorRole::SharedGate},
    {"mlp.shared_expert.up_proj.weight", TensorRole::SharedUp},
    {"mlp.shared_expert.down_proj.weight", TensorRole::SharedDown},
    {"mlp.shared_expert_gate.weight", TensorRole::SharedRouter},
};

// What follows "experts.N.".
constexpr Suffix kExpertNames[] = {
    {"gate_proj.weight", TensorRole::ExpertGate}, {"up_proj.weight", TensorRole::ExpertUp},
    {"down_proj.weight", TensorRole::ExpertDown}, {"w1.weight", TensorRole::ExpertGate},
    {"w3.weight", TensorRole::ExpertUp},          {"w2.weight", TensorRole::ExpertDown},
};

constexpr Suffix kOuterNames[] = {
    {"embed_tokens.weight", TensorRole::TokenEmbedding},
    {"lm_head.weight", TensorRole::LmHead},
    {"lm_head.bias", TensorRole::LmHeadBias},
    {"norm.weight", TensorRole::FinalNorm},
    {"norm.bias", TensorRole::FinalNormBias},
};

// What follows "blk.N." in GGUF files.
constexpr Suffix kGgufLayerNames[] = {
    {"attn_norm.weight", TensorRole::AttentionNorm},
    {"attn_norm.bias", TensorRole::AttentionNormBias},
    {"attn_q.weight", TensorRole::Q},
    {"attn_k.weight", TensorRole::K},
    {"attn_v.weight", TensorRole::V},
    {"attn_output.weight", TensorRole::O},
    {"attn_q.bias", TensorRole::QBias},
    {"attn_k.bias", TensorRole::KBias},
    {"attn_v.bias", TensorRole::VBias},
    {"attn_output.bias", TensorRole::OBias},
    {"attn_q_a.weight", TensorRole::QLatent},
    {"attn_q_a_norm.weight", TensorRole::QLatentNorm},
    {"attn_q_b.weight", TensorRole::Q},
    {"attn_kv_a_mqa.weight", TensorRole::KvLatent},
    {"attn_kv_a_norm.weight", TensorRole::KvLatentNorm},
    {"attn_kv_b.weight", TensorRole::KvUp},
    {"attn_k_b.weight", TensorRole::KeyUp},
    {"attn_v_b.weight", TensorRole::ValueUp},
    {"attn_qkv.weight", TensorRole::Qkv},
    {"attn_qkv.bias", TensorRole::QkvBias},
    {"attn_q_norm.weight", TensorRole::QNorm},
    {"attn_k_norm.weight", TensorRole::KNorm},
    {"attn_sinks.weight", TensorRole::Sinks},
    {"post_attention_norm.weight", TensorRole::PostAttentionNorm},
    {"ffn_norm.weight", TensorRole::FfnNorm},
    {"ffn_norm.bias", TensorRole::FfnNormBias},
    {"post_ffw_norm.weight", TensorRole::PostFfnNorm},
    {"ffn_gate.weight", TensorRole::Gate},
    {"ffn_up.weight", TensorRole::Up},
    {"ffn_down.weight", TensorRole::Down},
    {"ffn_gate.bias", TensorRole::GateBias},
    {"ffn_up.bias", TensorRole::UpBias},
    {"ffn_down.bias", TensorRole::DownBias},
    {"ffn_gate_inp.weight", TensorRole::Router},
    {"ffn_gate_inp.bias", TensorRole::RouterBias},
    {"exp_probs_b.bias", TensorRole::RouterBias},
    {"ffn_gate_exps.weight", TensorRole::ExpertGate},
    {"ffn_up_exps.weight", TensorRole::ExpertUp},
    {"ffn_down_exps.weight", TensorRole::ExpertDown},
    {"ffn_gate_exps.bias", TensorRole::ExpertGateBias},
    {"ffn_up_exps.bias", TensorRole::ExpertUpBias},
    {"ffn_down_exps.bias", TensorRole::ExpertDownBias},
    {"ffn_gate_shexp.weight", TensorRole::SharedGate},
    {"ffn_up_shexp.weight", TensorRole::SharedUp},
    {"ffn_down_shexp.weight", TensorRole::SharedDown},
    {"ffn_gate_inp_shexp.weight", TensorRole::SharedRouter},
};

constexpr Suffix kGgufOuterNames[] = {
    {"token_embd.weight", TensorRole::TokenEmbedding}, {"output.weight", TensorRole::LmHead},
    {"output.bias", TensorRole::LmHeadBias},           {"output_norm.weight", TensorRole::FinalNorm},
    {"output_norm.bias", TensorRole::FinalNormBias},   {"rope_freqs.weight", TensorRole::RopeFrequencies},
};

template <size_t N>
TensorRole roleIn(const Suffix (&table)[N], std::string_view text) {
  for (const auto& row : table)
    if (row.text == text) return row.role;
  return TensorRole::Other;
}

// Takes "<digits>." off the front.
std::optional<int> takeIndex(std::string_view& text) {
  size_t end = 0;
  int value = 0;
  while (end < text.size() && end < 6 && text[end] >= '0' && text[end] <= '9') value = value * 10 + (text[end++] - '0');
  if (end == 0 || end >= text.size() || text[end] != '.') return std::nullopt;
  text.remove_prefix(end + 1);
  return value;
}

// The norms of a layer have other meanings where there are four of them, or where they stand behind the branches.
TensorRole normRole(std::string_view name, const ModelConfig& config) {
  const bool bias = name.ends_with(".bias");
  const std::string_view base = name.substr(0, name.rfind('.'));
  const bool before = config.decoder.preNorm, after = config.decoder.postNorm;
  if (base == "input_layernorm") return bias ? TensorRole::AttentionNormBias : TensorRole::AttentionNorm;
  if (base == "pre_feedforward_layernorm") return bias ? TensorRole::FfnNormBias : TensorRole::FfnNorm;
  if (base == "post_feedforward_layernorm" || base == "post_mlp_layernorm") return TensorRole::PostFfnNorm;
  if (base == "post_self_attn_layernorm") return TensorRole::PostAttentionNorm;
  if (base != "post_attention_layernorm") return TensorRole::Other;
  // GLM-4 has four norms and calls the one before the MLP post_attention_layernorm.
  const bool beforeMlp = before && (!after || config.modelType == "glm4");
  if (!beforeMlp) return TensorRole::PostAttentionNorm;
  return bias ? TensorRole::FfnNormBias : TensorRole::FfnNorm;
}

}  // namespace

bool assignSplit(TensorEntry& entry, const ModelConfig& config) {
  static const LayerSpec kNoLayer;
  const bool inside = entry.layer >= 0 && entry.layer < config.layerCount();
  Split split = splitOfRole(entry.role, config, inside ? config.layers[static_cast<size_t>(entry.layer)] : kNoLayer);
  entry.splitDim = -1;
  entry.segments.clear();
  if (split.dim < 0) return true;
  // One entry for all experts of a layer has their number in front.
  if (isExpertMatrix(entry.role) && entry.shape.size() == 3) ++split.dim;
  // Tables may have more rows than the vocabulary.
  if (split.segments.front().unit == SplitUnit::Vocabulary && !entry.shape.empty() && entry.shape[0] > config.vocabSize)
    split.segments.front().elements = entry.shape[0];
  int64_t sum = 0;
  for (const auto& segment : split.segments) sum += segment.elements;
  if (split.dim >= static_cast<int>(entry.shape.size()) || entry.shape[static_cast<size_t>(split.dim)] != sum) return false;
  entry.splitDim = split.dim;
  entry.segments = std::move(split.segments);
  return true;
}

TensorName readTensorName(std::string_view name, const ModelConfig& config) {
  TensorName result;
  if (constexpr std::string_view kThinker = "thinker."; name.starts_with(kThinker)) name.remove_prefix(kThinker.size());
  const size_t at = name.find("layers.");
  if (at == std::string_view::npos) {
    for (std::string_view prefix : {"language_model.", "model.", "language_model.", "model."})
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    result.role = roleIn(kOuterNames, name);
    return result;
  }
  std::string_view rest = name.substr(at + 7);
  const std::string_view before = name.substr(0, at);
  const bool languageModel =
      before.empty() || before == "model." || before == "language_model.model." || before == "model.language_model.";
  const auto layer = takeIndex(rest);
  if (!layer || !languageModel) return result;
  result.layer = *layer;
  if (const size_t experts = rest.find("experts.");
      experts != std::string_view::npos && rest.substr(0, experts).find("shared") == std::string_view::npos) {
    std::string_view inner = rest.substr(experts + 8);
    if (const auto expert = takeIndex(inner)) {
      result.expert = *expert;
      result.role = roleIn(kExpertNames, inner);
      return result;
    }
  }
  result.role = roleIn(kLayerNames, rest);
  if (result.role == TensorRole::Other) result.role = normRole(rest, config);
  return result;
}

TensorName readGgufTensorName(std::string_view name, const ModelConfig& config) {
  TensorName result;
  if (!name.starts_with("blk.")) {
    result.role = roleIn(kGgufOuterNames, name);
    return result;
  }
  name.remove_prefix(4);
  const auto layer = takeIndex(name);
  if (!layer) return result;
  result.layer = *layer;
  result.role = roleIn(kGgufLayerNames, name);
  // Files of gpt-oss and GLM-4 MoE name the norm before the MLP after its place.
  if (result.role == TensorRole::PostAttentionNorm && !config.decoder.postNorm) result.role = TensorRole::FfnNorm;
  return result;
}

}  // namespace headroom
