// SPDX-License-Identifier: Apache-2.0
// The pieces that sliceOf is made of, for sums over many layouts (core/memory/weight_table.h). Loaders call sliceOf.
#pragma once

#include "core/layout/parallel_layout.h"

namespace headroom {

// The units of a split dimension that a rank holds, of `units` in all; for KV heads the layer's own head counts decide.
Range heldUnits(SplitUnit unit, int64_t units, int64_t layerQHeads, int64_t layerKvHeads, const ModelConfig& config,
                const RankSlice& rank, int tp);
// Whether a stage with these layers holds the tensor at all.
bool stageHolds(const TensorEntry& tensor, const ModelConfig& config, bool embeds, bool projects, Range layers);
// The bias of a row-parallel product is added once, after the sum over ranks: TP rank 0 holds it alone.
bool onlyFirstTpRank(TensorRole role);

}  // namespace headroom
