// SPDX-License-Identifier: Apache-2.0
// Dimensions of a rank's activation buffers: workspaceBuffers() sizes them, the engine's Workspace lays its views by the same
// numbers.
#pragma once

#include "core/memory/memory_plan.h"

namespace headroom {

// Messages of hidden states that may wait between two pipeline stages. Two let a stage go on while its successor works.
inline constexpr int64_t kPipelineDepth = 2;

// Elements, not bytes. Activations are F32. A width is the widest over the rank's layers; 0 where the rank has no such part.
struct WorkspaceShape {
  int64_t tokens = 0;             // rows of a step
  int64_t sequences = 0;          // of a step
  int64_t blocksPerSequence = 0;  // columns of the block table
  int64_t logitsRows = 0;         // rows projected at once; more are done in several chunks
  int64_t hidden = 0;
  int64_t q = 0, k = 0, v = 0, attention = 0, mlp = 0;  // columns
  int64_t queryGate = 0;                                // columns of the gate beside the queries
  int64_t queryLatent = 0, latentKey = 0;               // latent attention: columns of the queries' and of the keys' latent
  int64_t latentWork = 0;                               // and elements for some heads at a time in the latent space
  int64_t linearChannels = 0, linearValues = 0, linearHeads = 0;  // columns of linear attention: q, k and v; z; beta
  int64_t stateElements = 0;                                      // of a sequence, in all layers with linear attention
  int64_t stateSlots = 0;  // states held: those of the sequences, then the prefix cache's copies
  bool normSquares = false;                                       // query and key norms run over the heads of several ranks
  bool gated = true;                                              // MLP has a gate beside up
  int64_t experts = 0, expertsPerToken = 0;                       // of the router; 0 where the rank has no expert layer
  int64_t expertScratch = 0;                                      // elements that the experts work in
  bool sharedGate = false;                                        // a shared expert with a gate for each token
  int64_t rotaryDim = 0, localRotaryDim = 0;
  int64_t vocabulary = 0;       // columns of the whole logits; TP rank 0 of the last stage only
  int64_t localVocabulary = 0;  // columns of this rank's own logits; last stage, other TP ranks only
  int64_t pipelineRows = 0;     // hidden states that wait for this stage

  // A (tokens, width) view inside the layer buffer starts at a multiple of 64 bytes.
  int64_t paddedElements(int64_t width) const { return roundUp(tokens * width, 16); }
  // Attention's q, k, v and output, then the MLP's gate and up, then what the experts work in, use the same memory.
  int64_t layerElements() const;
};
// Rows that the last stage projects at once.
int64_t logitsRows(const ModelConfig& config, const EngineLimits& limits);
WorkspaceShape workspaceShape(const ModelConfig& config, const RankSlice& rank, int tp, int pp, const EngineLimits& limits);

// Elements in which latent attention works on `heads` query heads: each a query and a result in the latent space.
inline int64_t latentWork(int64_t tokens, int64_t heads, const LatentAttention& latent) {
  return tokens * heads * (latent.qkRopeHeadDim + 2 * latent.kvLoraRank);
}

// Elements that a layer with linear attention keeps of a sequence, for `keyHeads` of its key heads.
int64_t linearStateElements(const LinearAttention& linear, int64_t keyHeads);
// Whether layers keep a state of each sequence, which no block of a prefix cache has.
bool keepsStates(const ModelConfig& config);

// The heads and columns of one of the rank's layers that it holds.
struct LayerShare {
  Range qHeads, kvHeads, mlpColumns, expertColumns, sharedColumns;
  Range linearKeyHeads;
};
// Elements in which the experts of a layer work: of each token its input, gate, up and result; an expert's tokens come at once.
inline int64_t expertScratch(int64_t tokens, int64_t hidden, int64_t columns) { return 2 * tokens * (hidden + columns); }
LayerShare layerShare(const ModelConfig& config, const LayerSpec& layer, const RankSlice& rank, int tp);

}  // namespace headroom
