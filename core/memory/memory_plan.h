// SPDX-License-Identifier: Apache-2.0
// Bytes of one rank of Headroom's engine. The planner shows them, the engine allocates exactly them.
#pragma once

#include "core/layout/parallel_layout.h"

#include <string>
#include <vector>

namespace headroom {

// What the engine is sized for.
struct EngineLimits {
  DType computeDType = DType::F32;  // F32: exact; BF16, F16: weights of this type, activations may be rounded
  DType kvDType = DType::F32;       // F32, F16, BF16, F8E4M3, F8E5M2 or I8
  int64_t maxModelLen = 0;          // tokens of one sequence, prompt and answer
  int64_t maxNumSeqs = 0;           // sequences in one step
  int64_t maxNumBatchedTokens = 0;  // tokens in one step
  int64_t blockTokens = 16;         // tokens of a KV block
  int64_t cachedStates = 0;         // copies of states of linear attention that the prefix cache keeps; other models have none
  bool graphs = false;              // steps that only generate are recorded as CUDA graphs and replayed
  bool cuda = false;                // ranks run on CUDA devices, which take memory to work in (cuda_memory.h)
};

// Sequences of the steps that are recorded, ascending: a step of fewer runs as the next of these. Empty without graphs.
std::vector<int64_t> graphBatches(const EngineLimits& limits);
// What the driver takes for the recorded steps of a rank, by the most launches a layer has. An estimate: the driver says nothing
// of the size of a graph before it is made, so the engine shows what it measured beside it.
Bytes graphBytes(const ModelConfig& config, const RankSlice& rank, const EngineLimits& limits);

// Type in which Headroom holds a tensor: block-quantized types as stored; vectors (norms, biases) F32; other floating matrices in
// computeDType. A GGUF's floating matrices follow the same rule.
DType loadedDType(const TensorEntry& tensor, DType computeDType);
// Bytes of this rank's slice as loaded (0 when it does not hold the tensor). No padding: packed forms keep the size.
Bytes loadedBytes(const TensorEntry& tensor, const ModelConfig& config, const RankSlice& rank, int tp, DType computeDType);
// Bytes of the whole tensor as loaded.
Bytes loadedBytes(const TensorEntry& tensor, DType computeDType);
// Sum over the inventory. A tied head counts once on a stage that both embeds and projects.
Bytes weightBytes(const ModelSource& model, const RankSlice& rank, int tp, DType computeDType);

// K and V of one block in all layers of the rank.
Bytes kvBytesPerBlock(const ModelConfig& config, const RankSlice& rank, const EngineLimits& limits);

// Activation buffers of a rank, allocated once. The engine's workspace is built from this very list.
struct WorkspaceBuffer {
  std::string name;
  Bytes bytes;
};
std::vector<WorkspaceBuffer> workspaceBuffers(const ModelConfig& config, const RankSlice& rank, int tp, int pp,
                                              const EngineLimits& limits);
Bytes activationBytes(const ModelConfig& config, const RankSlice& rank, int tp, int pp, const EngineLimits& limits);

struct RankMemory {
  Bytes weights, kvCache, activations, graphs;
  Bytes runtime;  // beside these: cuda_memory.h
  Bytes total() const { return weights + kvCache + activations + graphs + runtime; }
};

struct EngineMemoryPlan {
  std::vector<RankMemory> ranks;  // by rank
  int64_t kvBlocks = 0;           // of one replica: the least over its ranks; every rank allocates exactly this many
};

// Fills each device's budget (memory x utilization) with KV blocks after weights and activations. Error when one sequence of
// maxModelLen does not fit: names the rank, what is needed and what is there.
Result<EngineMemoryPlan> planEngineMemory(const ModelSource& model, const ParallelLayout& layout, const Machine& machine,
                                          const EngineLimits& limits, double utilization);

}  // namespace headroom
