// SPDX-License-Identifier: Apache-2.0
// A layout is data: replicas x stages x ranks, each rank with a GPU, a layer range and its ranges of heads, columns,
// experts and vocabulary. Even splits are one way to fill it in; the engine runs whatever it says.
#pragma once

#include "core/hardware/machine.h"
#include "core/model/tensor_inventory.h"

#include <optional>
#include <vector>

namespace headroom {

struct RankSlice {
  int rank = 0;     // replica * pp * tp + stage * tp + tpRank
  int replica = 0, stage = 0, tpRank = 0;
  int gpu = 0;      // index into Machine::gpus
  Range layers;
  // Ranges in ModelConfig's own units (qHeads, kvHeads, intermediateSize, experts, vocabSize). kvHeads covers exactly the heads that
  // the qHeads range reads, so neighbours may hold a KV head twice.
  Range qHeads, kvHeads, mlpColumns, experts, vocabulary;
  bool embeds = false;    // first stage: holds the token embedding
  bool projects = false;  // last stage: holds the final norm and the LM head
};

struct ParallelLayout {
  int tp = 1, pp = 1, dp = 1;
  bool even = true;
  std::vector<RankSlice> ranks;  // ordered by rank
  int worldSize() const { return tp * pp * dp; }
  const RankSlice& at(int replica, int stage, int tpRank) const { return ranks[(replica * pp + stage) * tp + tpRank]; }
};

// Splits `units` into `parts` contiguous ranges, the larger ones first; sizes differ by `granule` at most.
std::vector<Range> splitRange(int64_t units, int parts, int64_t granule = 1);

// The columns granule at which a rank may cut MLP columns and heads without splitting a quantization block.
int64_t columnGranule(const TensorInventory& inventory);

// Headroom's own layout: any tp up to the query heads, any pp up to the layers. Even where everything divides (heads, KV heads, columns),
// else uneven: KV-head groups are kept whole while tp <= kvHeads, query heads are cut otherwise. Stages are balanced by bytes.
// `gpus` names the GPU of each rank (empty: 0, 1, 2, …). Errors tell which number does not allow it ("10 ranks for 9 query heads").
Result<ParallelLayout> makeHeadroomLayout(const ModelSource& model, int tp, int pp, int dp, const std::vector<int>& gpus = {});

nlohmann::json layoutToJson(const ParallelLayout& layout);
Result<ParallelLayout> layoutFromJson(const nlohmann::json& json, const std::string& where);

// The piece of a tensor that a rank holds: ranges along `dim`, in logical elements, to be laid one behind the other. Whole: dim -1.
struct TensorSlice {
  int dim = -1;
  std::vector<Range> ranges;
};
// Empty: the rank does not hold the tensor. The only place that decides; planner and loader both call it.
std::optional<TensorSlice> sliceOf(const TensorEntry& tensor, const ModelConfig& config, const RankSlice& rank, int tp);

}  // namespace headroom
