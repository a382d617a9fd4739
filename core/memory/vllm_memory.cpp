// SPDX-License-Identifier: Apache-2.0
#include "core/memory/vllm_memory.h"

#include <algorithm>
#include <cmath>
#include <map>

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

// Bytes of one block of one layer on a rank; 0 for layers without a cache by token.
int64_t pageBytes(const LayerSpec& layer, const VllmLimits& limits, int tp, int64_t blockTokens) {
  switch (layer.attention) {
    case AttentionKind::Full:
    case AttentionKind::SlidingWindow:
    case AttentionKind::ChunkedWindow:
      return vllmKvHeads(layer, tp) * (layer.headDim + vHeadDimOf(layer)) * blockTokens * elementBytes(limits.kvDType);
    case AttentionKind::Latent:  // one latent for all heads, on every rank
      return (layer.latent.kvLoraRank + layer.latent.qkRopeHeadDim) * blockTokens * elementBytes(limits.kvDType);
    default:
      return 0;
  }
}

// Tokens in flight that a window group is charged beside its window.
int64_t inFlightTokens(const VllmLimits& limits, int pp) {
  const int64_t batches =
      limits.version >= EngineVersion{0, 32, 0} ? pp + 1 : (pp > 1 ? pp : (limits.version >= EngineVersion{0, 14, 0} ? 2 : 1));
  return batches * limits.maxNumBatchedTokens;
}

struct KvGroups {
  int64_t groupSize = 0;  // layers of one group
  int64_t page = 0;       // bytes of a block of one layer
  struct Group {
    int64_t window = 0;  // 0: full attention
    bool chunked = false;
  };
  std::vector<Group> groups;
};

KvGroups groupsOf(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage, int64_t blockTokens) {
  std::map<std::pair<int64_t, bool>, int64_t> layersByWindow;
  KvGroups result;
  for (int64_t i = stage.layers.begin; i < stage.layers.end; ++i) {
    const LayerSpec& layer = config.layers[i];
    const int64_t page = pageBytes(layer, limits, stage.tp, blockTokens);
    if (page == 0) continue;
    result.page = std::max(result.page, page);
    const bool windowed = layer.attention == AttentionKind::SlidingWindow || layer.attention == AttentionKind::ChunkedWindow;
    layersByWindow[{windowed ? layer.window : 0, layer.attention == AttentionKind::ChunkedWindow}] += 1;
  }
  if (layersByWindow.empty()) return result;
  int64_t smallest = std::numeric_limits<int64_t>::max(), largest = 0;
  for (const auto& [window, count] : layersByWindow) {
    smallest = std::min(smallest, count);
    largest = std::max(largest, count);
  }
  // The smallest bucket, or the largest where they are close; buckets are filled up to a multiple.
  result.groupSize = 2 * largest < 3 * smallest ? largest : smallest;
  for (const auto& [window, count] : layersByWindow) {
    for (int64_t group = 0; group < ceilDiv(count, result.groupSize); ++group)
      result.groups.push_back({window.first, window.second});
  }
  return result;
}

int64_t requestBlocks(const KvGroups& groups, const VllmLimits& limits, int pp, int64_t tokens, int64_t blockTokens) {
  int64_t blocks = 0;
  for (const KvGroups::Group& group : groups.groups) {
    if (group.window == 0)
      blocks += ceilDiv(tokens, blockTokens);
    else if (group.chunked)
      blocks += ceilDiv(std::min(group.window + inFlightTokens(limits, pp), tokens), blockTokens);
    else
      blocks += ceilDiv(std::min(group.window - 1 + inFlightTokens(limits, pp), tokens), blockTokens) + 1;
  }
  return blocks;
}

constexpr int64_t kBlockTokens = 16;

}  // namespace

const std::vector<VllmConstant>& vllmConstants() {
  static const std::vector<VllmConstant> table{
      {"utilization", kAlways, {0, 21, 0}, 0.90, "vLLM's default"},
      {"utilization", {0, 21, 0}, kEver, 0.92, "vLLM's default since it counts CUDA graphs"},
      // Copies of the logits in the profile run: x sequences x vocabulary x 4 bytes.
      {"logits_copies", kAlways, {0, 12, 0}, 3.72, "start-up logs of 0.11"},
      {"logits_copies", {0, 12, 0}, {0, 17, 0}, 9.6, "start-up logs of 0.15"},
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
      {"growth_nvlink", {0, 18, 0}, kEver, 2.1, "start-up logs of 0.19, TP 2 and 4 on NVLink"},
      {"growth_pcie", kAlways, kEver, 0.3, "start-up logs, TP 2 to 16 on PCIe"},
      {"growth_stages", kAlways, kEver, 0.07, "start-up logs with PP alone"},
      // CUDA graphs at 512 captured rows, GiB.
      {"graphs_one_gpu", kAlways, kEver, 0.84, "start-up logs of 0.19, H100"},
      {"graphs_tp", kAlways, kEver, 1.65, "start-up logs of 0.19, H100, TP 2 and 4"},
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
  return Bytes(static_cast<int64_t>(peak + experts));
}

Bytes vllmRuntimeGrowth(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage, const GpuSpec& gpu) {
  double growth = vllmConstant("growth_one_gpu", limits.version);
  if (stage.tp > 1) growth = vllmConstant(gpu.link == LinkKind::NvLink ? "growth_nvlink" : "growth_pcie", limits.version);
  if (stage.tp == 1 && stage.pp > 1) growth += vllmConstant("growth_stages", limits.version);
  // Cosines and sines of every position, on every rank.
  const double rotary = static_cast<double>(config.maxPositionEmbeddings) * static_cast<double>(config.rope.rotaryDim) *
                        static_cast<double>(elementBytes(limits.dtype));
  return gib(growth) + Bytes(static_cast<int64_t>(rotary));
}

bool vllmChargesGraphs(EngineVersion version) { return version >= EngineVersion{0, 21, 0}; }

Bytes vllmGraphs(const VllmLimits& limits, const VllmStage& stage, const GpuSpec& gpu) {
  if (limits.enforceEager) return {};
  // Captured batch sizes: 1, 2, 4, then steps of 8 up to 256 and of 16 up to 512, at most twice the sequences.
  const int64_t most = std::min<int64_t>(512, 2 * limits.maxNumSeqs);
  auto captures = [](int64_t rows) {
    return static_cast<double>(3 + std::min<int64_t>(rows, 256) / 8 + std::max<int64_t>(0, rows - 256) / 16);
  };
  const double base = vllmConstant(stage.tp > 1 && gpu.link == LinkKind::NvLink ? "graphs_tp" : "graphs_one_gpu", limits.version);
  return gib(base * captures(most) / captures(512));
}

int64_t vllmKvHeads(const LayerSpec& layer, int tp) { return std::max<int64_t>(1, layer.kvHeads / tp); }

VllmKvShape vllmKvShape(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage) {
  VllmKvShape shape;
  shape.blockTokens = kBlockTokens;
  const KvGroups groups = groupsOf(config, limits, stage, kBlockTokens);
  shape.blockBytes = Bytes(groups.page * groups.groupSize);
  shape.blocksPerRequest = requestBlocks(groups, limits, stage.pp, limits.maxModelLen, kBlockTokens);
  shape.uniform = groups.groups.size() == 1 && groups.groups.front().window == 0;
  return shape;
}

int64_t vllmBlocksFor(const ModelConfig& config, const VllmLimits& limits, const VllmStage& stage, int64_t tokens) {
  return requestBlocks(groupsOf(config, limits, stage, kBlockTokens), limits, stage.pp, tokens, kBlockTokens);
}

}  // namespace headroom
