// SPDX-License-Identifier: Apache-2.0
// Speed of a layout from memory bandwidth, compute and links: each kernel takes a fixed start, and moves its bytes and does its
// arithmetic at the shares of the peaks that timed kernels of its GPU generation reach.
#pragma once

#include "core/hardware/machine.h"
#include "core/layout/rules/engine_rules.h"
#include "core/model/model_config.h"

#include <optional>
#include <string>
#include <vector>

namespace headroom {

// How matrices are held, as far as speed goes.
enum class MatrixFormat : uint8_t { SixteenBit, ThirtyTwoBit, Fp8, Fp8Blocks, PackedWeights /* fewer bits, 16-bit arithmetic */ };

// Layers that a step takes the same time in.
struct LayerGroup {
  const LayerSpec* layer = nullptr;  // one of them
  int64_t count = 0;
};

struct RooflineQuestion {
  const ModelConfig* config = nullptr;
  std::vector<LayerGroup> layers;  // all layers of the model
  int tp = 1;
  int64_t stages = 1;  // of the pipeline
  // Of the rank with the most: shares of 1 for even layouts are 1/tp.
  double qShare = 1, kvShare = 1, columnShare = 1, vocabularyShare = 1;
  MatrixFormat format = MatrixFormat::SixteenBit;
  double layerBytesPerElement = 2, headBytesPerElement = 2, kvBytesPerElement = 2;
  const GpuSpec* gpu = nullptr;  // the slowest of the machine
  EngineKind engine = EngineKind::Headroom;
  EngineVersion version;
  int64_t concurrency = 1;  // clients of one replica; each sends its next request when the last is answered
  int64_t running = 1;      // requests that its KV cache holds at once; the others wait for a place
  int64_t inputLen = 1, outputLen = 1;
};

struct RooflineAnswer {
  std::optional<double> decodeTokensPerSecond, throughputTokensPerSecond, itlMs, prefillTokensPerSecond, ttftMs;
  std::optional<double> itlError, ttftError;  // shares within which nine of ten timed cases of the model's kind lie
  std::string source;
};

RooflineAnswer predictSpeed(const RooflineQuestion& question);

}  // namespace headroom
