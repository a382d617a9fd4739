// SPDX-License-Identifier: Apache-2.0
// TensorRT-LLM (PyTorch backend 1.x) and llama.cpp: what their start leaves of a GPU, and their buffers. Modelled from their
// sources.
#pragma once

#include "core/hardware/machine.h"
#include "core/model/model_config.h"

namespace headroom {

// TensorRT-LLM: the KV cache takes a share (0.9) of what is free after weights and one dry run.
Bytes tensorRtFreeAtStart(const MachineGpu& gpu);
Bytes tensorRtActivations(const ModelConfig& config, Range layers, int tp, bool projects, int64_t batchedTokens,
                          int64_t sequences, int64_t elementBytes);
Bytes tensorRtTokenBytes(const ModelConfig& config, Range layers, int tp, DType kvDType);

// llama.cpp: what it may fill, after the CUDA context and the margin of 1024 MiB that --fit leaves.
Bytes llamaCppUsable(const MachineGpu& gpu);
// Compute buffer of a device for `microBatch` tokens. Logits of the whole micro-batch stand on the device of the output layer.
Bytes llamaCppComputeBuffer(const ModelConfig& config, int64_t microBatch, int64_t columns, int64_t vocabulary);
// Cache of a token in the full layers, and of the window layers for `sequences` requests of `tokens` tokens; `share` of the KV
// heads.
struct LlamaCppCache {
  Bytes perToken, windows;
};
LlamaCppCache llamaCppCache(const LayerSpec& layer, int64_t kvHeads, DType kvDType, int64_t tokens, int64_t sequences,
                            int64_t microBatch);

}  // namespace headroom
