// SPDX-License-Identifier: Apache-2.0
// A layout is data: replicas x stages x ranks, each rank with a GPU, a layer range and its ranges of heads, columns,
// experts and vocabulary. Even splits are one way to fill it in; the engine runs whatever it says.
#pragma once

#include "core/hardware/machine.h"
#include "core/model/tensor_inventory.h"

#include <functional>
#include <optional>
#include <vector>

namespace headroom {

class CondensedModel;

struct RankSlice {
  int rank = 0;  // replica * pp * tp + stage * tp + tpRank
  int replica = 0, stage = 0, tpRank = 0;
  int gpu = 0;  // index into Machine::gpus
  Range layers;
  // Ranges in ModelConfig's own units (qHeads, kvHeads, intermediateSize, experts, vocabSize). kvHeads covers exactly the heads
  // that the qHeads range reads, so neighbours may hold a KV head twice.
  Range qHeads, kvHeads, mlpColumns, experts, vocabulary;
  bool embeds = false;    // first stage: holds the token embedding
  bool projects = false;  // last stage: holds the final norm and the LM head
  // Where a layer's widths differ from ModelConfig's own (shared experts, irregular layers), its ranges are scaled; their
  // boundaries stay multiples of this, so that no quantization block is cut.
  int64_t columnGranule = 1;
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

// Headroom's own layout: any tp up to the query heads, any pp up to the layers. Even where everything divides (heads, KV heads,
// columns), else uneven: KV-head groups are kept whole while tp <= kvHeads, query heads are cut otherwise. Stages are balanced by
// bytes. `gpus` names the GPU of each rank (empty: 0, 1, 2, …). Errors tell which number does not allow it ("10 ranks for 9 query
// heads").
Result<ParallelLayout> makeHeadroomLayout(const ModelSource& model, int tp, int pp, int dp, const std::vector<int>& gpus = {});

// Ranges of one stage's layers, balanced by bytes: `layerBytes` of each layer, plus what the first and the last stage hold
// besides. Minimizes the fullest stage, then evens out the others. Every stage gets at least one layer; stages <= layers.
std::vector<Range> balanceStages(const std::vector<int64_t>& layerBytes, int64_t firstExtra, int64_t lastExtra, int stages);

// makeHeadroomLayout for many sizes of one model: looks at the tensors once. The model must outlive it.
class HeadroomSplitter {
 public:
  explicit HeadroomSplitter(const ModelSource& model);
  explicit HeadroomSplitter(const CondensedModel& model);
  // Whether the query heads can be dealt to `tp` ranks.
  Status check(int tp) const;
  Result<ParallelLayout> layout(int tp, int pp, int dp, const std::vector<int>& gpus = {}) const;
  // Layers of each stage, as layout() deals them. pp <= layers.
  std::vector<Range> stages(int pp) const;

 private:
  HeadroomSplitter(const ModelConfig& config, const TensorInventory& inventory, const std::function<int64_t(const TensorEntry&)>& count);

  const ModelConfig& m_config;
  int64_t m_headBlock = 1;    // elements of o_proj's input in one quantization block
  int64_t m_columnBlock = 1;  // the same of down_proj's and the experts' inputs
  std::vector<int64_t> m_layerBytes;
  int64_t m_embeddingBytes = 0, m_headBytes = 0, m_experts = 0;
};

// Whether the layout fits the model: layers, heads, columns and vocabulary are covered exactly once, KV heads as the query heads
// read them.
Status checkLayout(const ParallelLayout& layout, const ModelSource& model);

nlohmann::json layoutToJson(const ParallelLayout& layout);
// Reads what layoutToJson writes, one entry of a plan's "layouts", or a whole plan (its recommended layout).
Result<ParallelLayout> layoutFromJson(const nlohmann::json& json, const std::string& where);

// The rank's heads of one layer: its own ranges, scaled where the layer has other counts than ModelConfig.
Range qHeadsOfLayer(const ModelConfig& config, const RankSlice& rank, const LayerSpec& layer);
Range kvHeadsOfLayer(const ModelConfig& config, const RankSlice& rank, const LayerSpec& layer);

// The piece of a tensor that a rank holds: ranges along `dim`, in logical elements, to be laid one behind the other. Whole: dim
// -1.
struct TensorSlice {
  int dim = -1;
  std::vector<Range> ranges;
};
// Empty: the rank does not hold the tensor, or nothing of it (an empty range of columns). With tieWordEmbeddings the last stage
// holds the token embedding too, as its LM head; an inventory with a loaded LmHead must therefore say tieWordEmbeddings = false.
// The only place that decides; planner and loader both call it.
std::optional<TensorSlice> sliceOf(const TensorEntry& tensor, const ModelConfig& config, const RankSlice& rank, int tp);

}  // namespace headroom
