// SPDX-License-Identifier: Apache-2.0
// The list of activation buffers of a rank: one truth for the plan and for the engine.
#include "core/memory/workspace.h"

#include "core/layout/split_units.h"
#include "core/memory/cuda_memory.h"

#include <algorithm>

namespace headroom {
namespace {

// Logits of one chunk stay below this, so that prompt logprobs of a long prompt do not need a (tokens, vocabulary) buffer.
constexpr Bytes kLogitsChunk = 32_MiB;
constexpr int64_t kLeastLogitsRows = 16;
// Latent attention takes as many heads at a time as fit in this, one at least.
constexpr int64_t kLatentWork = (64_MiB).count() / 4;

bool hasAttention(const LayerSpec& layer) {
  return layer.qHeads > 0 && layer.attention != AttentionKind::None && layer.attention != AttentionKind::LinearAttention;
}

}  // namespace

int64_t linearStateElements(const LinearAttention& linear, int64_t keyHeads) {
  const int64_t valueHeads = keyHeads * (linear.valueHeads / linear.keyHeads);
  const int64_t channels = 2 * keyHeads * linear.keyDim + valueHeads * linear.valueDim;
  return (linear.kernel - 1) * channels + valueHeads * linear.keyDim * linear.valueDim;
}

bool keepsStates(const ModelConfig& config) {
  return std::any_of(config.layers.begin(), config.layers.end(),
                     [](const LayerSpec& layer) { return layer.attention == AttentionKind::LinearAttention; });
}

LayerShare layerShare(const ModelConfig& config, const LayerSpec& layer, const RankSlice& rank, int tp) {
  LayerShare share;
  if (hasAttention(layer)) {
    share.qHeads = qHeadsOfLayer(config, rank, layer);
    share.kvHeads = kvHeadsOfLayer(config, rank, layer);
  }
  if (layer.attention == AttentionKind::LinearAttention && layer.linear.keyHeads > 0)
    share.linearKeyHeads = heldUnits(SplitUnit::QHeads, layer.linear.keyHeads, layer.qHeads, layer.kvHeads, config, rank, tp);
  auto columns = [&](SplitUnit unit, int64_t width) {
    return width > 0 ? heldUnits(unit, width, layer.qHeads, layer.kvHeads, config, rank, tp) : Range{};
  };
  if (layer.ffn == FfnKind::Dense) share.mlpColumns = columns(SplitUnit::MlpColumns, layer.intermediateSize);
  if (layer.ffn == FfnKind::MixtureOfExperts) {
    share.expertColumns = columns(SplitUnit::ExpertColumns, layer.moe.expertIntermediate);
    share.sharedColumns = columns(SplitUnit::SharedColumns, layer.moe.sharedIntermediate);
  }
  return share;
}

int64_t WorkspaceShape::layerElements() const {
  const int64_t attentionElements = paddedElements(q) + paddedElements(k) + paddedElements(v) + paddedElements(attention) +
                                    paddedElements(queryGate) + paddedElements(queryLatent) + paddedElements(latentKey) +
                                    roundUp(latentWork, 16);
  const int64_t linearElements = paddedElements(linearChannels) + paddedElements(linearValues) + paddedElements(2 * linearHeads);
  return std::max({attentionElements, linearElements, paddedElements(mlp) * (gated ? 2 : 1), roundUp(expertScratch, 16)});
}

int64_t logitsRows(const ModelConfig& config, const EngineLimits& limits) {
  const int64_t fitting = kLogitsChunk / (config.vocabSize * 4_B);
  const int64_t wanted = std::max(limits.maxNumSeqs, kLeastLogitsRows);
  return std::min(std::clamp(fitting, kLeastLogitsRows, wanted), limits.maxNumBatchedTokens);
}

WorkspaceShape workspaceShape(const ModelConfig& config, const RankSlice& rank, int tp, int pp, const EngineLimits& limits) {
  WorkspaceShape shape;
  shape.tokens = limits.maxNumBatchedTokens;
  shape.sequences = limits.maxNumSeqs;
  shape.blocksPerSequence = ceilDiv(limits.maxModelLen, limits.blockTokens);
  shape.hidden = config.hiddenSize;
  shape.gated = config.decoder.gatedMlp;
  for (int64_t i = rank.layers.begin; i < rank.layers.end; ++i) {
    const LayerSpec& layer = config.layers[i];
    const LayerShare share = layerShare(config, layer, rank, tp);
    if (hasAttention(layer)) {
      shape.q = std::max(shape.q, share.qHeads.size() * layer.headDim);
      if (config.checkpoint.queryGate) shape.queryGate = shape.q;
      if (layer.attention == AttentionKind::Latent) {
        const LatentAttention& latent = layer.latent;
        shape.queryLatent = std::max(shape.queryLatent, latent.qLoraRank);
        shape.latentKey = std::max(shape.latentKey, latent.kvLoraRank + latent.qkRopeHeadDim);
        const int64_t least = latentWork(shape.tokens, 1, latent), all = latentWork(shape.tokens, share.qHeads.size(), latent);
        shape.latentWork = std::max(shape.latentWork, std::min(all, std::max(least, kLatentWork)));
      } else {
        shape.k = std::max(shape.k, share.kvHeads.size() * layer.headDim);
        shape.v = std::max(shape.v, share.kvHeads.size() * layer.vHeadDim);
      }
      shape.attention = std::max(shape.attention, share.qHeads.size() * layer.vHeadDim);
      if (layer.rope && layer.localRope) shape.localRotaryDim = config.localRope.rotaryDim;
      if (layer.rope && !layer.localRope) shape.rotaryDim = config.rope.rotaryDim;
    }
    if (const int64_t keyHeads = share.linearKeyHeads.size(); keyHeads > 0) {
      const LinearAttention& linear = layer.linear;
      const int64_t valueHeads = keyHeads * (linear.valueHeads / linear.keyHeads);
      shape.linearHeads = std::max(shape.linearHeads, valueHeads);
      shape.linearValues = std::max(shape.linearValues, valueHeads * linear.valueDim);
      shape.linearChannels = std::max(shape.linearChannels, 2 * keyHeads * linear.keyDim + valueHeads * linear.valueDim);
      shape.stateElements += linearStateElements(linear, keyHeads);
    }
    if (layer.ffn == FfnKind::Dense) shape.mlp = std::max(shape.mlp, share.mlpColumns.size());
    if (layer.ffn != FfnKind::MixtureOfExperts) continue;
    shape.experts = std::max(shape.experts, layer.moe.experts);
    shape.expertsPerToken = std::max(shape.expertsPerToken, layer.moe.expertsPerToken);
    if (!share.expertColumns.empty())
      shape.expertScratch = std::max(shape.expertScratch, expertScratch(shape.tokens, shape.hidden, share.expertColumns.size()));
    shape.mlp = std::max(shape.mlp, share.sharedColumns.size());
    shape.sharedGate = shape.sharedGate || layer.moe.sharedGate;
  }
  if (shape.stateElements > 0) shape.stateSlots = limits.maxNumSeqs + limits.cachedStates;
  shape.normSquares = tp > 1 && config.decoder.qkNormFullWidth;
  if (rank.projects) {
    shape.logitsRows = logitsRows(config, limits);
    shape.vocabulary = rank.tpRank == 0 ? config.vocabSize : 0;
    shape.localVocabulary = tp > 1 && rank.tpRank > 0 ? rank.vocabulary.size() : 0;
  }
  if (pp > 1 && rank.stage > 0) shape.pipelineRows = kPipelineDepth * shape.tokens;
  return shape;
}

namespace {

// list(name, elements, bytes of one) for each buffer; one of no elements is not there.
template <class List>
void eachBuffer(const ModelConfig& config, const RankSlice& rank, int tp, int pp, const EngineLimits& limits, const List& list) {
  const WorkspaceShape shape = workspaceShape(config, rank, tp, pp, limits);
  constexpr Bytes kIndex = 4_B, kFloat = 4_B, kDouble = 8_B;
  list("token_ids", rank.embeds ? shape.tokens : 0, kIndex);
  list("positions", shape.tokens, kIndex);
  list("slots", shape.tokens, kIndex);
  list("sequence_start", shape.sequences + 1, kIndex);
  list("context_length", shape.sequences, kIndex);
  list("block_table", shape.sequences * shape.blocksPerSequence, kIndex);
  list("logits_rows", shape.logitsRows, kIndex);
  list("rope_frequencies", (shape.rotaryDim + shape.localRotaryDim) / 2, kDouble);
  list("rope_angles", shape.tokens * shape.rotaryDim, kFloat);
  list("local_rope_angles", shape.tokens * shape.localRotaryDim, kFloat);
  list("hidden", shape.tokens * shape.hidden, kFloat);
  list("normed", shape.tokens * shape.hidden, kFloat);
  list("branch", shape.tokens * shape.hidden, kFloat);
  list("layer", shape.layerElements(), kFloat);
  list("state_slots", shape.stateElements > 0 ? shape.sequences : 0, kIndex);
  list("state_copies", shape.stateElements > 0 && limits.cachedStates > 0 ? shape.sequences : 0, kIndex);
  list("linear_state", shape.stateSlots * shape.stateElements, kFloat);
  list("norm_squares", shape.normSquares ? 2 * shape.tokens : 0, kFloat);
  list("router_logits", shape.tokens * shape.experts, kFloat);
  list("expert_ids", shape.tokens * shape.expertsPerToken, kIndex);
  list("expert_weights", shape.tokens * shape.expertsPerToken, kFloat);
  list("shared_gate", shape.sharedGate ? shape.tokens : 0, kFloat);
  list("last_hidden", shape.logitsRows * shape.hidden, kFloat);
  list("logits", shape.logitsRows * shape.vocabulary, kFloat);
  list("local_logits", shape.logitsRows * shape.localVocabulary, kFloat);
  list("pipeline_in", shape.pipelineRows * shape.hidden, kFloat);
  list("scratch", cudaScratchBytes(config, shape, limits).count(), 1_B);
}

}  // namespace

std::vector<WorkspaceBuffer> workspaceBuffers(const ModelConfig& config, const RankSlice& rank, int tp, int pp,
                                              const EngineLimits& limits) {
  std::vector<WorkspaceBuffer> buffers;
  eachBuffer(config, rank, tp, pp, limits, [&](const char* name, int64_t elements, Bytes each) {
    if (elements > 0) buffers.push_back({name, each * elements});
  });
  return buffers;
}

Bytes activationBytes(const ModelConfig& config, const RankSlice& rank, int tp, int pp, const EngineLimits& limits) {
  Bytes sum;
  eachBuffer(config, rank, tp, pp, limits,
             [&](const char*, int64_t elements, Bytes each) { sum += each * std::max<int64_t>(elements, 0); });
  return sum;
}

}  // namespace headroom
