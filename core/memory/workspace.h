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
  bool gated = true;                                    // MLP has a gate beside up
  int64_t rotaryDim = 0, localRotaryDim = 0;
  int64_t vocabulary = 0;       // columns of the whole logits; TP rank 0 of the last stage only
  int64_t localVocabulary = 0;  // columns of this rank's own logits; last stage, other TP ranks only
  int64_t pipelineRows = 0;     // hidden states that wait for this stage

  // A (tokens, width) view inside the layer buffer starts at a multiple of 64 bytes.
  int64_t paddedElements(int64_t width) const { return roundUp(tokens * width, 16); }
  // Attention's q, k, v and output, then the MLP's gate and up, use the same memory.
  int64_t layerElements() const;
};
WorkspaceShape workspaceShape(const ModelConfig& config, const RankSlice& rank, int tp, int pp, const EngineLimits& limits);

// The heads and columns of one of the rank's layers that it holds.
struct LayerShare {
  Range qHeads, kvHeads, mlpColumns;
};
LayerShare layerShare(const ModelConfig& config, const LayerSpec& layer, const RankSlice& rank, int tp);

}  // namespace headroom
