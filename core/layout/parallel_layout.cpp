// SPDX-License-Identifier: Apache-2.0
// Headroom's own layouts: how heads, columns, vocabulary and layers are dealt to ranks.
#include "core/layout/parallel_layout.h"

#include "core/layout/condensed_model.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace headroom {
namespace {

// Widths above this many pieces of kWideColumns a rank are cut at multiples of it, which suits vector registers and cache lines.
constexpr int64_t kWideColumns = 32;
constexpr int64_t kWidePieces = 4;

// Elements along the split dimension that stand in one quantization block, over the tensors that `wanted` selects.
template <class Wanted>
int64_t blockGranule(const TensorInventory& inventory, Wanted wanted) {
  int64_t granule = 1;
  for (const TensorEntry& tensor : inventory.tensors) {
    if (!tensor.loaded || tensor.splitDim < 0 || tensor.splitDim + 1 != static_cast<int>(tensor.shape.size())) continue;
    if (tensor.shape.size() < 2 || !wanted(tensor)) continue;
    granule = std::lcm(granule, dtypeInfo(tensor.dtype).blockElements);
  }
  return granule;
}

struct HeadSplit {
  std::vector<Range> q, kv;
};

std::vector<Range> kvHeadsReadBy(const std::vector<Range>& q, int64_t group) {
  std::vector<Range> kv;
  for (Range range : q) kv.push_back({range.begin / group, ceilDiv(range.end, group)});
  return kv;
}

// Deals query heads to more ranks than there are KV heads. Ranks keep within one KV head where that makes no rank larger.
std::vector<Range> cutGroups(int64_t qHeads, int64_t kvHeads, int tp, int64_t granule) {
  const int64_t group = qHeads / kvHeads;
  std::vector<Range> plain = splitRange(qHeads, tp, granule);
  if (group % granule != 0) return plain;
  std::vector<Range> aligned;
  int64_t head = 0;
  for (Range ranks : splitRange(tp, static_cast<int>(kvHeads))) {
    for (Range part : splitRange(group, static_cast<int>(ranks.size()), granule))
      aligned.push_back({head + part.begin, head + part.end});
    head += group;
  }
  auto largest = [](const std::vector<Range>& ranges) {
    int64_t size = 0;
    for (Range range : ranges) size = std::max(size, range.size());
    return size;
  };
  auto smallest = [](const std::vector<Range>& ranges) {
    int64_t size = ranges.front().size();
    for (Range range : ranges) size = std::min(size, range.size());
    return size;
  };
  return largest(aligned) <= largest(plain) && smallest(aligned) > 0 ? aligned : plain;
}

// `block`: elements of o_proj's input that must stay together.
Result<HeadSplit> splitHeads(const ModelConfig& config, int64_t block, int tp) {
  const std::string where = fmt::format("tensor-parallel size {}", tp);
  const int64_t qHeads = config.qHeads, kvHeads = std::max<int64_t>(1, config.kvHeads);
  if (qHeads == 0) {  // no attention layer: nothing to deal
    return HeadSplit{std::vector<Range>(tp), std::vector<Range>(tp)};
  }
  if (tp > qHeads) {
    return failure(where, fmt::format("{} query heads", qHeads), "at most one rank a head",
                   fmt::format("use TP={} or fewer, or pipeline stages", qHeads));
  }
  // Heads that must stay together so that no block of o_proj's input is cut.
  const int64_t width =
      config.layers.empty() || config.layers.front().vHeadDim == 0 ? config.headDim : config.layers.front().vHeadDim;
  const int64_t headGranule = width > 0 ? block / std::gcd(block, width) : 1;
  if (ceilDiv(qHeads, headGranule) < tp) {
    return failure(where,
                   fmt::format("{} query heads of {} with o_proj in blocks of {} (heads stay together by {})", qHeads, width,
                               block, headGranule),
                   fmt::format("at most {} ranks", ceilDiv(qHeads, headGranule)),
                   fmt::format("use TP={} or fewer, or pipeline stages", ceilDiv(qHeads, headGranule)));
  }
  const int64_t group = std::max<int64_t>(1, qHeads / kvHeads);
  const int64_t kvGranule = std::lcm(group, headGranule) / group;
  HeadSplit split;
  if (qHeads % kvHeads == 0 && ceilDiv(kvHeads, kvGranule) >= tp) {
    split.kv = splitRange(kvHeads, tp, kvGranule);
    for (Range range : split.kv) split.q.push_back({range.begin * group, range.end * group});
  } else {
    split.q = qHeads % kvHeads == 0 && tp >= kvHeads ? cutGroups(qHeads, kvHeads, tp, headGranule)
                                                     : splitRange(qHeads, tp, headGranule);
    split.kv = kvHeadsReadBy(split.q, group);
  }
  return split;
}

std::vector<Range> splitColumns(int64_t width, int tp, int64_t block) {
  if (width % tp == 0 && width / tp % block == 0) return splitRange(width, tp);
  const bool wide = width / std::lcm(block, kWideColumns) >= tp * kWidePieces;
  return splitRange(width, tp, wide ? std::lcm(block, kWideColumns) : block);
}

bool sameSizes(const std::vector<Range>& ranges) {
  return std::all_of(ranges.begin(), ranges.end(), [&](Range range) { return range.size() == ranges.front().size(); });
}

}  // namespace

std::vector<Range> splitRange(int64_t units, int parts, int64_t granule) {
  expects(parts > 0 && granule > 0 && units >= 0, "splitRange needs parts and a granule");
  const int64_t granules = ceilDiv(units, granule), base = granules / parts, extra = granules % parts;
  std::vector<Range> ranges;
  ranges.reserve(parts);
  int64_t at = 0;
  for (int part = 0; part < parts; ++part) {
    const int64_t end = std::min(units, at + (base + (part < extra ? 1 : 0)) * granule);
    ranges.push_back({at, end});
    at = end;
  }
  return ranges;
}

int64_t columnGranule(const TensorInventory& inventory) {
  return blockGranule(inventory, [](const TensorEntry&) { return true; });
}

std::vector<Range> balanceStages(const std::vector<int64_t>& layerBytes, int64_t firstExtra, int64_t lastExtra, int stages) {
  const int layers = static_cast<int>(layerBytes.size());
  expects(stages >= 1 && stages <= layers, "every stage needs a layer");
  std::vector<int64_t> sum(layers + 1, 0);  // bytes before a layer
  for (int layer = 0; layer < layers; ++layer) sum[layer + 1] = sum[layer] + layerBytes[layer];
  auto bytesOf = [&](int begin, int end) {
    return sum[end] - sum[begin] + (begin == 0 ? firstExtra : 0) + (end == layers ? lastExtra : 0);
  };

  // Fewest stages for the layers from `begin` on, each at most `limit`; more than `stages` when impossible. `fullest` is then the
  // fullest of these stages, `wider` the least limit at which a stage would take one layer more.
  std::vector<int> needed(layers + 1, 0);
  int64_t fullest = 0, wider = 0;
  auto fillNeeded = [&](int64_t limit) {
    int begin = layers;
    fullest = 0;
    wider = std::numeric_limits<int64_t>::max();
    for (int count = 1; begin > 0; ++count) {
      int first = begin;
      // The last stage carries lastExtra, the first firstExtra.
      while (first > 0 && bytesOf(first - 1, begin) <= limit) --first;
      if (first > 0) wider = std::min(wider, bytesOf(first - 1, begin));
      if (first == begin) {  // one layer alone is too much
        for (int layer = begin - 1; layer >= 0; --layer) needed[layer] = stages + 1;
        return;
      }
      fullest = std::max(fullest, bytesOf(first, begin));
      for (int layer = first; layer < begin; ++layer) needed[layer] = count;
      begin = first;
    }
  };
  int64_t low = 0, high = sum[layers] + firstExtra + lastExtra;
  for (int layer = 0; layer < layers; ++layer) low = std::max(low, bytesOf(layer, layer + 1));
  low = std::max(low, high / stages) - 1;  // infeasible or untried
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    fillNeeded(middle);
    if (needed[0] <= stages)
      high = std::max(fullest, low + 1);
    else
      low = std::min(wider, high) - 1;
  }
  fillNeeded(high);

  std::vector<Range> ranges;
  int begin = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const int left = stages - stage;
    if (left == 1) {
      ranges.push_back({begin, layers});
      break;
    }
    const double share = static_cast<double>(bytesOf(begin, layers)) / left;
    int end = begin + 1;
    auto allowed = [&](int candidate) { return candidate <= layers - (left - 1) && bytesOf(begin, candidate) <= high; };
    while (allowed(end + 1) && (needed[end] > left - 1 || bytesOf(begin, end + 1) - share <= share - bytesOf(begin, end))) ++end;
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

HeadroomSplitter::HeadroomSplitter(const ModelSource& model)
    : HeadroomSplitter(model.config, model.inventory, [](const TensorEntry&) { return int64_t{1}; }) {}

HeadroomSplitter::HeadroomSplitter(const CondensedModel& model)
    : HeadroomSplitter(model.model().config, model.model().inventory,
                       [&model](const TensorEntry& tensor) { return model.count(tensor); }) {}

HeadroomSplitter::HeadroomSplitter(const ModelConfig& config, const TensorInventory& inventory,
                                   const std::function<int64_t(const TensorEntry&)>& count)
    : m_config(config),
      m_headBlock(blockGranule(inventory, [](const TensorEntry& t) { return t.role == TensorRole::O; })),
      m_columnBlock(blockGranule(inventory, [](const TensorEntry& t) { return t.role != TensorRole::O; })),
      m_layerBytes(config.layers.size(), 0) {
  for (const TensorEntry& tensor : inventory.tensors) {
    if (!tensor.loaded) continue;
    const int64_t bytes = tensor.storedBytes().count() * count(tensor);
    if (tensor.layer >= 0 && tensor.layer < m_config.layerCount()) m_layerBytes[tensor.layer] += bytes;
    if (tensor.role == TensorRole::TokenEmbedding) {
      m_embeddingBytes += bytes;
      if (m_config.tieWordEmbeddings) m_headBytes += bytes;
    }
    if (tensor.role == TensorRole::LmHead) m_headBytes += bytes;
  }
  for (const LayerSpec& layer : m_config.layers) m_experts = std::max(m_experts, layer.moe.experts);
}

Status HeadroomSplitter::check(int tp) const {
  if (Result<HeadSplit> heads = splitHeads(m_config, m_headBlock, tp); !heads) return tl::unexpected(heads.error());
  return {};
}

std::vector<Range> HeadroomSplitter::stages(int pp) const {
  return balanceStages(m_layerBytes, m_embeddingBytes, m_headBytes, pp);
}

Result<ParallelLayout> HeadroomSplitter::layout(int tp, int pp, int dp, const std::vector<int>& gpus) const {
  const ModelConfig& config = m_config;
  if (tp < 1 || pp < 1 || dp < 1) {
    return failure("layout", fmt::format("TP={} PP={} DP={}", tp, pp, dp), "sizes of 1 or more");
  }
  if (pp > config.layerCount()) {
    return failure(fmt::format("pipeline size {}", pp), fmt::format("{} layers", config.layerCount()),
                   "at least one layer a stage", fmt::format("use PP={} or fewer", config.layerCount()));
  }
  const int world = tp * pp * dp;
  if (!gpus.empty() && static_cast<int>(gpus.size()) != world) {
    return failure("layout", fmt::format("{} GPUs", gpus.size()), fmt::format("{} (TP {} x PP {} x DP {})", world, tp, pp, dp));
  }
  Result<HeadSplit> heads = splitHeads(config, m_headBlock, tp);
  if (!heads) return tl::unexpected(heads.error());
  const std::vector<Range> columns = splitColumns(config.intermediateSize, tp, m_columnBlock);
  const std::vector<Range> vocabulary = splitRange(config.vocabSize, tp);
  const std::vector<Range> ranges = stages(pp);

  ParallelLayout layout{tp, pp, dp, sameSizes(heads->q) && sameSizes(heads->kv) && sameSizes(columns), {}};
  layout.ranks.reserve(world);
  for (int replica = 0; replica < dp; ++replica) {
    for (int stage = 0; stage < pp; ++stage) {
      for (int tpRank = 0; tpRank < tp; ++tpRank) {
        RankSlice slice;
        slice.rank = static_cast<int>(layout.ranks.size());
        slice.replica = replica;
        slice.stage = stage;
        slice.tpRank = tpRank;
        slice.gpu = gpus.empty() ? slice.rank : gpus[slice.rank];
        slice.layers = ranges[stage];
        slice.qHeads = heads->q[tpRank];
        slice.kvHeads = heads->kv[tpRank];
        slice.mlpColumns = columns[tpRank];
        slice.experts = {0, m_experts};
        slice.vocabulary = vocabulary[tpRank];
        slice.embeds = stage == 0;
        slice.projects = stage == pp - 1;
        slice.columnGranule = m_columnBlock;
        layout.ranks.push_back(slice);
      }
    }
  }
  return layout;
}

Result<ParallelLayout> makeHeadroomLayout(const ModelSource& model, int tp, int pp, int dp, const std::vector<int>& gpus) {
  return HeadroomSplitter(model).layout(tp, pp, dp, gpus);
}

Status checkLayout(const ParallelLayout& layout, const ModelSource& model) {
  const ModelConfig& config = model.config;
  if (layout.ranks.size() != static_cast<size_t>(layout.worldSize())) {
    return failure("layout", fmt::format("{} ranks", layout.ranks.size()), fmt::format("{}", layout.worldSize()));
  }
  auto covers = [&](const std::string& what, int64_t units, auto rangeOf, int count) -> Status {
    int64_t at = 0;
    for (int index = 0; index < count; ++index) {
      const Range range = rangeOf(index);
      if (range.begin != at || range.end < range.begin) {
        return failure("layout", fmt::format("{} [{}, {}) after {}", what, range.begin, range.end, at),
                       "ranges that follow one another");
      }
      at = range.end;
    }
    if (at != units) return failure("layout", fmt::format("{} up to {}", what, at), fmt::format("{} of this model", units));
    return {};
  };
  const int64_t group = config.kvHeads > 0 ? std::max<int64_t>(1, config.qHeads / config.kvHeads) : 1;
  for (int replica = 0; replica < layout.dp; ++replica) {
    if (Status s = covers(
            "layers", config.layerCount(), [&](int i) { return layout.at(replica, i, 0).layers; }, layout.pp);
        !s)
      return s;
    for (int stage = 0; stage < layout.pp; ++stage) {
      auto at = [&](int i) -> const RankSlice& { return layout.at(replica, stage, i); };
      if (Status s = covers(
              "query heads", config.qHeads, [&](int i) { return at(i).qHeads; }, layout.tp);
          !s)
        return s;
      if (Status s = covers(
              "MLP columns", config.intermediateSize, [&](int i) { return at(i).mlpColumns; }, layout.tp);
          !s)
        return s;
      if (Status s = covers(
              "vocabulary", config.vocabSize, [&](int i) { return at(i).vocabulary; }, layout.tp);
          !s)
        return s;
      for (int i = 0; i < layout.tp; ++i) {
        const RankSlice& rank = at(i);
        if (rank.layers.empty())
          return failure("layout", fmt::format("stage {} without layers", stage), "at least one layer a stage");
        if (!(rank.layers == at(0).layers)) {
          return failure("layout", fmt::format("stage {} with different layers on its ranks", stage), "one layer range a stage");
        }
        const Range kv{rank.qHeads.begin / group, ceilDiv(rank.qHeads.end, group)};
        if (!rank.qHeads.empty() && !(rank.kvHeads == kv)) {
          return failure("layout",
                         fmt::format("rank {}: KV heads [{}, {}) for query heads [{}, {})", rank.rank, rank.kvHeads.begin,
                                     rank.kvHeads.end, rank.qHeads.begin, rank.qHeads.end),
                         fmt::format("[{}, {})", kv.begin, kv.end));
        }
      }
    }
  }
  return {};
}

}  // namespace headroom
