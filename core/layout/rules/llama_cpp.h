// SPDX-License-Identifier: Apache-2.0
// How llama.cpp deals layers (-sm layer) and heads and columns (-sm tensor) to devices. Read from its source, 2026-08.
#pragma once

#include "core/layout/rules/engine_rules.h"

namespace headroom {

// Layers of each device by its share (any unit, e.g. free memory): a layer stands on the first device whose cumulative share is
// more than layer / (layers + 1); the output layer counts as one more, and stands on the last.
std::vector<Range> llamaCppLayers(int64_t layers, const std::vector<double>& shares);

// Pieces of one layer in tensor mode. Heads and columns are cut at whole granules; boundaries are floored, and which device takes
// which piece rotates with the layer.
struct LlamaCppGranules {
  int64_t kvUnits = 0;      // pieces of attention that can be dealt
  int64_t kvHeadsEach = 1;  // KV heads of one
  int64_t columnUnits = 0, columnsEach = 1;
};
LlamaCppGranules llamaCppGranules(const ModelSource& model, const LayerSpec& layer);
// Units of `units` that the device holds in a layer.
Range llamaCppPiece(int64_t units, int devices, int device, int64_t layer);

}  // namespace headroom
