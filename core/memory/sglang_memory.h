// SPDX-License-Identifier: Apache-2.0
// SGLang's memory: a static share of what is free at its start holds weights and KV cache, the rest everything else. Read from
// its source (0.5.9); its examples and start-up logs agree.
#pragma once

#include "core/hardware/machine.h"
#include "core/layout/rules/engine_rules.h"
#include "core/model/model_config.h"

namespace headroom {

// Free memory of a GPU when SGLang loads: the CUDA context, and NCCL's buffers of several ranks, are there before.
Bytes sgLangFreeAtStart(const MachineGpu& gpu, int ranks);

// Prompt tokens that are read at once and the largest captured batch, by the smallest GPU.
int64_t sgLangChunk(const Machine& machine);
int64_t sgLangGraphBatch(const Machine& machine, int tp);
// --mem-fraction-static where it is not given: of the TP size alone before 0.4.9, of the memory and what runs on it since.
double sgLangStaticFraction(const Machine& machine, int tp, int pp, EngineVersion version = {0, 5, 9},
                            std::optional<int64_t> chunk = {});

// Bytes of one token in the layers of a stage. Window layers have a pool of 0.8 of the full layers' tokens.
Bytes sgLangTokenBytes(const ModelConfig& config, Range layers, int tp, DType kvDType);
// Cosines and sines of every position, on every rank.
Bytes sgLangRotaryCache(const ModelConfig& config);

}  // namespace headroom
