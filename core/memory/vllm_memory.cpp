// SPDX-License-Identifier: Apache-2.0
#include "core/memory/vllm_memory.h"

#include "core/memory/held_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace headroom {
namespace {

constexpr EngineVersion kAlways{0, 0, 0}, kEver{1000, 0, 0};
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

Bytes gib(double value) { return Bytes(static_cast<int64_t>(value * kGiB)); }

int64_t elementBytes(DType dtype) { return dtypeInfo(dtype).blockBytes; }

Bytes smallestMemory(const Machine& machine) {
  Bytes least = machine.gpus.empty() ? Bytes() : machine.gpus.front().totalMemory;
  for (const MachineGpu& gpu : machine.gpus) least = std::min(least, gpu.totalMemory);
  return least;
}

bool isA100(const Machine& machine) {
  return !machine.gpus.empty() && machine.gpus.front().spec.name.find("A100") != std::string::npos;
}

int64_t vHeadDimOf(const LayerSpec& layer) { return layer.vHeadDim > 0 ? layer.vHeadDim : layer.headDim; }

// Tokens in flight that a window group is charged beside its window.
int64_t inFlightTokens(const VllmLimits& limits, int pp) {
  const int64_t batches =
      limits.version >= EngineVersion{0, 32, 0} ? pp + 1 : (pp > 1 ? pp : (limits.version >= EngineVersion{0, 14, 0} ? 2 : 1));
  return batches * limits.maxNumBatchedTokens;
}

constexpr int64_t kBlockTokens = 16;
constexpr EngineVersion kStatesAligned{0, 21, 0};     // prefix caching with recurrent layers: states at block ends
constexpr EngineVersion kTokensByRequests{0, 21, 0};  // the logged tokens: concurrency x length, for groups of several kinds

// What one layer keeps, on one rank.
struct LayerCache {
  enum class Kind : uint8_t { Full, Window, Chunked, State };
  Kind kind = Kind::Full;
  bool latent = false;
  int64_t window = 0;
  int64_t perToken = 0;  // bytes of a token
  int64_t state = 0;     // bytes of a request's state
  bool second = false;   // Mamba 2
  friend bool operator==(const LayerCache&, const LayerCache&) = default;
};

int64_t stateBytes(const RecurrentState& state, const VllmLimits& limits, int tp) {
  const int64_t element = elementBytes(limits.dtype);
  const int64_t channels = ceilDiv(state.channels, tp) + (state.groups > 0 ? ceilDiv(state.groups, tp) * state.groupChannels : 0);
  return channels * state.taps * element + ceilDiv(state.elements, tp) * (state.exact ? 4 : element);
}

LayerCache stateOf(const LayerSpec& layer, const VllmLimits& limits, int tp) {
  LayerCache cache;
  cache.kind = LayerCache::Kind::State;
  cache.state = stateBytes(layer.recurrent, limits, tp);
  cache.second = layer.recurrent.second;
  return cache;
}

// Empty for a layer without a cache. An indexer's keys are a cache of their own in the same layer: 8-bit, a 32-bit scale for
// every 128.
std::optional<LayerCache> cacheOf(const ModelConfig& config, const LayerSpec& layer, const VllmLimits& limits, int tp) {
  LayerCache cache;
  if (layer.sharesKv) return std::nullopt;
  const int64_t element = elementBytes(limits.kvDType);
  switch (layer.attention) {
    case AttentionKind::SlidingWindow:
      cache.kind = LayerCache::Kind::Window;
      cache.window = layer.window;
      break;
    case AttentionKind::ChunkedWindow:
      cache.kind = LayerCache::Kind::Chunked;
      cache.window = layer.window;
      break;
    case AttentionKind::Full:
    case AttentionKind::CrossAttention:
      break;
    case AttentionKind::Latent:
      // MiniCPM 3 is run with ordinary heads, values padded to the width of the keys.
      if (config.modelType == "minicpm3") {
        cache.perToken = ceilDiv(layer.qHeads, tp) * 2 * layer.headDim * element;
        return cache;
      }
      // One latent for all heads, on every rank. With 8 bits a sparse model keeps its rotary part in 16 and 32-bit scales.
      cache.latent = true;
      cache.perToken = (layer.latent.kvLoraRank + layer.latent.qkRopeHeadDim) * element;
      if (layer.indexDim > 0 && element == 1)
        cache.perToken = layer.latent.kvLoraRank + layer.latent.kvLoraRank / 128 * 4 + 2 * layer.latent.qkRopeHeadDim;
      return cache;
    case AttentionKind::LinearAttention:
    case AttentionKind::Mamba:
    case AttentionKind::ShortConvolution:
      cache = stateOf(layer, limits, tp);
      if (cache.state == 0) return std::nullopt;
      return cache;
    default:
      return std::nullopt;
  }
  cache.perToken = vllmKvHeads(layer, tp) * (layer.headDim + vHeadDimOf(layer)) * element;
  return cache;
}

struct KvGroups {
  struct Group {
    LayerCache cache;
    int64_t blockTokens = kBlockTokens;
  };
  int64_t blockBytes = 0;  // of one block of a group
  std::vector<Group> groups;
};

// Layers with the same cache form groups of one size, so that a block of any group takes the same bytes.
KvGroups groupsOf(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage) {
  struct Bucket {
    LayerCache cache;
    int64_t layers = 0;
  };
  std::vector<Bucket> buckets;
  int64_t indexed = 0;
  for (int64_t i = stage.layers.begin; i < stage.layers.end; ++i) {
    const LayerSpec& layer = config.layers[static_cast<size_t>(i)];
    const auto add = [&](const LayerCache& cache) {
      auto found = std::find_if(buckets.begin(), buckets.end(), [&](const Bucket& bucket) { return bucket.cache == cache; });
      if (found == buckets.end()) found = buckets.insert(buckets.end(), {cache, 0});
      ++found->layers;
    };
    if (layer.mambaBeside) add(stateOf(layer, limits, stage.tp));
    const std::optional<LayerCache> cache = cacheOf(config, layer, limits, stage.tp);
    if (!cache) continue;
    if (layer.attention == AttentionKind::Latent && layer.indexDim > 0)
      indexed += layer.indexDim + ceilDiv(layer.indexDim, 128) * 4;
    add(*cache);
  }
  KvGroups result;
  if (buckets.empty()) return result;
  const bool allFull = std::all_of(buckets.begin(), buckets.end(),
                                   [](const Bucket& bucket) { return bucket.cache.kind == LayerCache::Kind::Full; });
  if (allFull) {
    // One group, whatever the widths. Sparse latent attention has blocks of 64 tokens.
    KvGroups::Group group{buckets.front().cache, indexed > 0 ? int64_t{64} : kBlockTokens};
    int64_t perToken = indexed;
    for (const Bucket& bucket : buckets) perToken += bucket.layers * bucket.cache.perToken;
    result.blockBytes = perToken * group.blockTokens;
    result.groups.push_back(group);
    return result;
  }
  // Attention blocks grow until one holds a recurrent layer's state; then all pages to the largest.
  int64_t state = 0, narrowest = 0, widest = 0, attentionTokens = kBlockTokens;
  for (const Bucket& bucket : buckets) {
    state = std::max(state, bucket.cache.state);
    if (bucket.cache.perToken == 0) continue;
    narrowest = narrowest == 0 ? bucket.cache.perToken : std::min(narrowest, bucket.cache.perToken);
    widest = std::max(widest, bucket.cache.perToken);
  }
  if (narrowest > 0 && state > 0) attentionTokens = std::max(attentionTokens, roundUp(ceilDiv(state, narrowest), kBlockTokens));
  const int64_t page = widest > 0 ? widest * attentionTokens : state;
  int64_t smallest = std::numeric_limits<int64_t>::max(), largest = 0;
  for (const Bucket& bucket : buckets) {
    smallest = std::min(smallest, bucket.layers);
    largest = std::max(largest, bucket.layers);
  }
  // The smallest bucket, or the largest where they are close; buckets are filled up to a multiple.
  const int64_t groupSize = 2 * largest < 3 * smallest ? largest : smallest;
  result.blockBytes = page * groupSize;
  for (const Bucket& bucket : buckets) {
    const int64_t tokens = bucket.cache.perToken > 0 ? attentionTokens * (widest / bucket.cache.perToken) : attentionTokens;
    for (int64_t group = 0; group < ceilDiv(bucket.layers, groupSize); ++group) result.groups.push_back({bucket.cache, tokens});
  }
  return result;
}

int64_t requestBlocks(const KvGroups& groups, const VllmLimits& limits, int pp, int64_t tokens) {
  int64_t blocks = 0;
  for (const KvGroups::Group& group : groups.groups) {
    switch (group.cache.kind) {
      case LayerCache::Kind::Full:
        blocks += ceilDiv(tokens, group.blockTokens);
        break;
      case LayerCache::Kind::Chunked:
        blocks += ceilDiv(std::min(group.cache.window + inFlightTokens(limits, pp), tokens), group.blockTokens);
        break;
      case LayerCache::Kind::Window:
        blocks += ceilDiv(std::min(group.cache.window - 1 + inFlightTokens(limits, pp), tokens), group.blockTokens) + 1;
        break;
      case LayerCache::Kind::State:
        // The running state, and one at a block's end that another request may start from; Mamba 2 keeps one more.
        blocks += limits.version < kStatesAligned ? 1 : group.cache.second ? 3 : 2;
        break;
    }
  }
  return blocks;
}

}  // namespace

const std::vector<VllmConstant>& vllmConstants() {
  static const std::vector<VllmConstant> table{
      {"utilization", kAlways, {0, 21, 0}, 0.90, "vLLM's default"},
      {"utilization", {0, 21, 0}, kEver, 0.92, "vLLM's default since it counts CUDA graphs"},
      // Copies of the logits in the profile run: x sequences x vocabulary x 4 bytes.
      {"logits_copies", kAlways, {0, 8, 0}, 3.72, "taken from 0.17 and later: V0 profiles no sampler of that size"},
      {"logits_copies",
       {0, 8, 0},
       {0, 17, 0},
       9.6,
       "start-up logs of 0.11 and 0.15, vocabularies of 128k to 201k; V1's sampler since 0.8"},
      {"logits_copies", {0, 17, 0}, {0, 27, 0}, 3.72, "start-up logs of 0.17 and 0.19, vocabularies of 100k to 256k"},
      {"logits_copies",
       {0, 27, 0},
       kEver,
       0.5,
       "one 16-bit copy: the sampler pass is left out when no request needs it (read; 0.27 logs agree)"},
      // Beside the logits: x batched tokens x hidden x element.
      {"hidden_copies", kAlways, kEver, 1.12, "start-up logs of 0.19"},
      // One layer's body: x batched tokens x (3 x columns / TP + this x hidden) x element.
      {"body_hidden_copies", kAlways, kEver, 4.5, "start-up logs of models with small vocabularies"},
      // Outside the allocator, GiB.
      {"growth_one_gpu", kAlways, {0, 18, 0}, 0.13, "start-up logs of 0.11 and 0.17"},
      {"growth_one_gpu", {0, 18, 0}, kEver, 0.25, "start-up logs of 0.19"},
      {"growth_nvlink", kAlways, {0, 18, 0}, 0.54, "start-up logs of 0.11, TP 2"},
      {"growth_nvlink", {0, 18, 0}, kEver, 1.95, "start-up logs of 0.19, TP 2 and 4 on NVLink: beside what each rank adds"},
      {"growth_nvlink_rank", kAlways, {0, 18, 0}, 0.0, "no log tells"},
      {"growth_nvlink_rank", {0, 18, 0}, kEver, 0.065, "start-up logs of 0.19, TP 2 and 4 on NVLink"},
      {"growth_pcie", kAlways, kEver, 0.3, "start-up logs, TP 2 to 16 on PCIe"},
      // Without the custom all-reduce, which more than two cards on PCIe do not get, NCCL's buffers stand in.
      {"growth_pcie_many", kAlways, {0, 21, 0}, 0.3, "start-up logs of V0, TP 4 to 16 on PCIe"},
      {"growth_pcie_many", {0, 21, 0}, kEver, 1.7, "start-up log of 0.27, TP 4 on PCIe"},
      {"growth_stages", kAlways, kEver, 0.07, "start-up logs with PP alone"},
      {"load_slack", kAlways, kEver, 0.06, "start-up logs of 0.11 to 0.27, TP 2 and 4: weights as printed beyond the parameters"},
      // What stands on a card when the free memory is read, GiB: the CUDA context, and with several ranks their communicators.
      {"context_one_gpu", kAlways, kEver, 0.51, "start-up logs of 0.19, H100"},
      {"context_nvlink", kAlways, kEver, 1.54, "start-up logs of 0.19, TP 2 and 4 on NVLink"},
      {"context_pcie", kAlways, kEver, 0.96, "start-up log of 0.27, TP 4 on PCIe"},
      // CUDA graphs at 512 captured rows, GiB.
      {"graphs_one_gpu", kAlways, kEver, 0.84, "start-up logs of 0.19, H100"},
      {"graphs_tp", kAlways, kEver, 1.65, "start-up logs of 0.19, H100, TP 2 and 4"},
      {"graphs_pcie", kAlways, kEver, 0.45, "start-up logs of 0.27, TP 2 and 4 on PCIe"},
  };
  return table;
}

double vllmConstant(std::string_view name, EngineVersion version) {
  for (const VllmConstant& constant : vllmConstants()) {
    if (constant.name == name && version >= constant.from && version < constant.before) return constant.value;
  }
  expects(false, "a constant for every version");
  return 0;
}

double vllmDefaultUtilization(EngineVersion version) { return vllmConstant("utilization", version); }

int64_t vllmDefaultMaxNumSeqs(EngineVersion version, const Machine& machine) {
  if (version < EngineVersion{0, 8, 3}) return 256;
  return smallestMemory(machine) >= 70_GiB && !isA100(machine) ? 1024 : 256;
}

int64_t vllmDefaultBatchedTokens(EngineVersion version, const Machine& machine, int64_t maxModelLen, int64_t maxNumSeqs) {
  if (version < EngineVersion{0, 8, 0})
    return maxModelLen > 32768 ? 512 : std::max<int64_t>(2048, maxModelLen);  // V0: whole prompts
  int64_t tokens = 2048;
  const Bytes memory = smallestMemory(machine);
  if (memory >= 70_GiB && !isA100(machine)) tokens = 8192;
  if (memory >= 160_GiB && version >= EngineVersion{0, 30, 0}) tokens = 16384;
  return std::min(tokens, maxNumSeqs * maxModelLen);
}

Bytes vllmActivationPeak(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage) {
  const double element = static_cast<double>(elementBytes(limits.dtype)),
               tokens = static_cast<double>(limits.maxNumBatchedTokens);
  const double hidden = static_cast<double>(config.hiddenSize);
  int64_t columns = 0;
  double experts = 0;  // buffers of the fused expert kernel
  for (int64_t i = stage.layers.begin; i < stage.layers.end; ++i) {
    const LayerSpec& layer = config.layers[i];
    if (layer.ffn == FfnKind::Dense) columns = std::max(columns, layer.intermediateSize);
    if (layer.ffn != FfnKind::MixtureOfExperts) continue;
    columns = std::max(columns, layer.moe.sharedIntermediate);
    const double width = static_cast<double>(layer.moe.expertIntermediate) / stage.tp;
    experts = std::max(experts,
                       tokens * static_cast<double>(layer.moe.expertsPerToken) * (std::max(2 * width, hidden) + width) * element);
  }
  const double body =
      element * tokens *
          (3.0 * static_cast<double>(columns) / stage.tp + vllmConstant("body_hidden_copies", limits.version) * hidden) +
      (stage.pp > 1 ? 2.0 * tokens * hidden * element : 0.0);
  double peak = body;
  if (stage.projects) {
    const double logits = vllmConstant("logits_copies", limits.version) * static_cast<double>(limits.maxNumSeqs) *
                          static_cast<double>(config.vocabSize) * 4.0;
    peak = std::max(peak, logits + vllmConstant("hidden_copies", limits.version) * tokens * hidden * element);
  }
  // The expert kernel's buffers stand beside the logits' copies, except in versions whose copies outlive them.
  const bool apart = limits.version >= EngineVersion{0, 8, 0} && limits.version < EngineVersion{0, 17, 0};
  return Bytes(static_cast<int64_t>(apart ? std::max(peak, body + experts) : peak + experts));
}

Bytes vllmRotaryCache(const ModelConfig& config, const VllmLimits& limits) {
  const std::string& type = config.modelType;
  // The generic backend computes them anew, layers without rotation need none.
  const bool generic = limits.version >= EngineVersion{0, 32, 0} && vllmUsesGenericBackend(config);
  const bool rotates = std::any_of(config.layers.begin(), config.layers.end(), [](const LayerSpec& layer) {
    return layer.rope && layer.qHeads > 0 && layer.attention != AttentionKind::Mamba && layer.attention != AttentionKind::None;
  });
  if (generic || !rotates) return {};
  const auto positions = static_cast<double>(config.maxPositionEmbeddings);
  // Cosines and sines of every position that the scaling reaches.
  auto table = [&](const RopeParameters& rope, double width) {
    double count = positions;
    if (rope.scaling == RopeScaling::Linear) count *= std::max(1.0, rope.factor);
    if (rope.scaling == RopeScaling::Yarn && rope.originalContext > 0)
      count = static_cast<double>(rope.originalContext) * std::max(1.0, rope.factor);
    if (rope.scaling == RopeScaling::LongRope) count += static_cast<double>(rope.originalContext);
    return count * width;
  };
  const auto element = static_cast<double>(elementBytes(limits.dtype));
  const auto bytes = [](double value) { return Bytes(static_cast<int64_t>(value)); };
  // Sparse latent attention: 32 bits, one table for the heads and one for the indexer.
  if (type == "deepseek_v32") return bytes(table(config.rope, static_cast<double>(config.rope.rotaryDim)) * 8);
  if (type == "deepseek_v4") return bytes(positions * 64 * 8);
  if (type == "gpt_oss") return bytes(table(config.rope, static_cast<double>(config.rope.rotaryDim)) * 4);
  if (type.starts_with("gemma4")) {
    int64_t widths = 0, last = 0;
    for (const LayerSpec& layer : config.layers) {
      if (layer.headDim != last && widths < config.headDim + layer.headDim && (widths == 0 || layer.headDim != config.headDim))
        widths += layer.headDim;
      last = layer.headDim;
    }
    return bytes(positions * static_cast<double>(widths) * element);
  }
  // Positions in three dimensions: four times as many.
  const double dimensions = type == "qwen2_vl" || type == "qwen2_5_vl" ? 4.0 : 1.0;
  const bool local =
      std::any_of(config.layers.begin(), config.layers.end(), [](const LayerSpec& layer) { return layer.localRope; });
  return bytes(dimensions * element *
               (table(config.rope, static_cast<double>(config.rope.rotaryDim)) +
                (local ? table(config.localRope, static_cast<double>(config.localRope.rotaryDim)) : 0.0)));
}

Bytes vllmLatentCopies(const ModelConfig& config, const VllmStage& stage) {
  int64_t elements = 0;
  for (int64_t i = stage.layers.begin; i < stage.layers.end; ++i) {
    const LayerSpec& layer = config.layers[static_cast<size_t>(i)];
    if (layer.attention == AttentionKind::Latent && config.modelType != "minicpm3")
      elements +=
          ceilDiv(layer.qHeads, stage.tp) * (layer.latent.qkNopeHeadDim + layer.latent.vHeadDim) * layer.latent.kvLoraRank;
  }
  return Bytes(2 * elements);
}

Bytes vllmRuntimeGrowth(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage, const GpuSpec& gpu) {
  double growth = vllmConstant("growth_one_gpu", limits.version);
  if (stage.tp > 1 && gpu.link == LinkKind::NvLink)
    growth = vllmConstant("growth_nvlink", limits.version) + stage.tp * vllmConstant("growth_nvlink_rank", limits.version);
  else if (stage.tp > 1)
    growth = vllmConstant(stage.tp > 2 ? "growth_pcie_many" : "growth_pcie", limits.version);
  if (stage.tp > 1) growth += vllmConstant("load_slack", limits.version);
  if (stage.tp == 1 && stage.pp > 1) growth += vllmConstant("growth_stages", limits.version);
  return gib(growth) + vllmRotaryCache(config, limits) + vllmLatentCopies(config, stage);
}

bool vllmChecksFreeMemory(EngineVersion version) { return version >= EngineVersion{0, 9, 1}; }

Bytes vllmFreeAtStart(const MachineGpu& gpu, int ranks, EngineVersion version) {
  const char* kind = ranks == 1 ? "context_one_gpu" : gpu.spec.link == LinkKind::NvLink ? "context_nvlink" : "context_pcie";
  return gpu.leftByOthers() - gib(vllmConstant(kind, version));
}

bool vllmChargesGraphs(EngineVersion version) { return version >= EngineVersion{0, 21, 0}; }

Bytes vllmGraphs(const VllmLimits& limits, const VllmStage& stage, const GpuSpec& gpu) {
  if (limits.enforceEager) return {};
  // Captured batch sizes: 1, 2, 4, then steps of 8 up to 256 and of 16 up to 512, at most twice the sequences.
  const int64_t most = std::min<int64_t>(512, 2 * limits.maxNumSeqs);
  auto captures = [](int64_t rows) {
    return static_cast<double>(3 + std::min<int64_t>(rows, 256) / 8 + std::max<int64_t>(0, rows - 256) / 16);
  };
  const char* kind = stage.tp == 1 ? "graphs_one_gpu" : gpu.link == LinkKind::NvLink ? "graphs_tp" : "graphs_pcie";
  const double base = vllmConstant(kind, limits.version);
  return gib(base * captures(most) / captures(512));
}

int64_t vllmKvHeads(const LayerSpec& layer, int tp) { return std::max<int64_t>(1, layer.kvHeads / tp); }

VllmKvShape vllmKvShape(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage) {
  VllmKvShape shape;
  const KvGroups groups = groupsOf(config, limits, stage);
  shape.blockBytes = Bytes(groups.blockBytes);
  shape.blocksPerRequest = requestBlocks(groups, limits, stage.pp, limits.maxModelLen);
  shape.groups = std::max<int64_t>(1, static_cast<int64_t>(groups.groups.size()));
  shape.blockTokens = groups.groups.empty() ? kBlockTokens : groups.groups.front().blockTokens;
  for (const KvGroups::Group& group : groups.groups) shape.blockTokens = std::min(shape.blockTokens, group.blockTokens);
  shape.uniform = limits.version < kTokensByRequests ||
                  (groups.groups.size() == 1 && groups.groups.front().cache.kind == LayerCache::Kind::Full);
  return shape;
}

int64_t vllmBlocksFor(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage, int64_t tokens) {
  return requestBlocks(groupsOf(config, limits, stage), limits, stage.pp, tokens);
}

int64_t vllmDefaultModelLen(const ModelConfig& config) {
  // Long rotary factors change short prompts too, so their use must be asked for; dynamic ones lengthen by themselves.
  if (config.rope.scaling == RopeScaling::LongRope && config.rope.originalContext > 0) return config.rope.originalContext;
  if (config.rope.scaling == RopeScaling::Dynamic && config.rope.factor > 1.0)
    return static_cast<int64_t>(static_cast<double>(config.maxPositionEmbeddings) * config.rope.factor);
  return config.maxPositionEmbeddings;
}

}  // namespace headroom
