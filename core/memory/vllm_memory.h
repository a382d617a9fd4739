// SPDX-License-Identifier: Apache-2.0
// vLLM's memory by version: what its start-up takes from each GPU and what is left for the KV cache.
#pragma once

#include "core/layout/rules/engine_rules.h"

#include <optional>
#include <string>

namespace headroom {

struct VllmLimits {
  EngineVersion version;
  DType dtype = DType::BF16, kvDType = DType::BF16;
  int64_t maxModelLen = 0, maxNumSeqs = 0, maxNumBatchedTokens = 0;
  double utilization = 0.92;
  bool enforceEager = false;
};

// One row a constant: what it is, where it holds, where it comes from.
struct VllmConstant {
  std::string_view name;
  EngineVersion from, before;  // versions [from, before)
  double value;
  std::string_view source;
};
const std::vector<VllmConstant>& vllmConstants();
// The constant of that name for the version.
double vllmConstant(std::string_view name, EngineVersion version);

// Defaults of the server, by the smallest GPU and version.
double vllmDefaultUtilization(EngineVersion version);
int64_t vllmDefaultMaxNumSeqs(EngineVersion version, const Machine& machine);
int64_t vllmDefaultBatchedTokens(EngineVersion version, const Machine& machine, int64_t maxModelLen, int64_t maxNumSeqs);

struct VllmStage {
  int tp = 1, pp = 1;
  Range layers;
  bool projects = false;
};

// Bytes of activations at their peak in the profile run, of one rank.
Bytes vllmActivationPeak(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage);
// Growth outside the allocator (NCCL buffers, workspaces) and tensors outside the parameters (the rotary cache).
Bytes vllmRuntimeGrowth(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage, const GpuSpec& gpu);
// The parts of it that the model alone decides: the rotary tables on every rank, undivided, and the 16-bit copies of two latent
// projections that stand beside the loaded ones.
Bytes vllmRotaryCache(const ModelConfig& config, const VllmLimits& limits);
Bytes vllmLatentCopies(const ModelConfig& config, const VllmStage& stage);
// CUDA graphs; charged to the budget from 0.21 on, left to the slack outside the budget before.
Bytes vllmGraphs(const VllmLimits& limits, const VllmStage& stage, const GpuSpec& gpu);
bool vllmChargesGraphs(EngineVersion version);

// From this version on vLLM does not start when less of a card is free than its share of the whole, whatever the model needs.
bool vllmChecksFreeMemory(EngineVersion version);
// What is free then: all but what other processes hold, less the CUDA context and the communicators of `ranks` ranks.
Bytes vllmFreeAtStart(const MachineGpu& gpu, int ranks, EngineVersion version);

// Context that the server takes where none is asked for.
int64_t vllmDefaultModelLen(const ModelConfig& config);

// KV heads that one rank holds.
int64_t vllmKvHeads(const LayerSpec& layer, int tp);

// The KV cache of one rank in vLLM's terms. Layers with the same cache form groups; a block of every group's size is taken at
// once.
struct VllmKvShape {
  Bytes blockBytes;              // of one block in all layers of a group position
  int64_t blocksPerRequest = 0;  // one request of maxModelLen
  int64_t blockTokens = 16;      // the least over the groups
  int64_t groups = 1;
  bool uniform = true;  // logged tokens = blocks / groups x blockTokens; else concurrency x maxModelLen
};
VllmKvShape vllmKvShape(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage);
// Blocks that a request of `tokens` tokens takes.
int64_t vllmBlocksFor(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage, int64_t tokens);

}  // namespace headroom
