// SPDX-License-Identifier: Apache-2.0
#include "core/memory/sglang_memory.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr double kMiB = 1024.0 * 1024.0, kGiB = 1024.0 * kMiB;
constexpr double kWindowPoolShare = 0.8;  // swa_full_tokens_ratio

Bytes smallest(const Machine& machine) {
  Bytes least = machine.gpus.empty() ? Bytes() : machine.gpus.front().totalMemory;
  for (const MachineGpu& gpu : machine.gpus) least = std::min(least, gpu.totalMemory);
  return least;
}

}  // namespace

Bytes sgLangFreeAtStart(const MachineGpu& gpu, int ranks) {
  // Start-up logs: 0.5 GiB for one GPU, 0.5 to 0.65 on PCIe with two, 2.1 with several on NVLink.
  double context = 0.5;
  if (ranks > 1) context = gpu.spec.link == LinkKind::NvLink ? 2.1 : 0.6;
  return gpu.leftByOthers() - Bytes(static_cast<int64_t>(context * kGiB));
}

int64_t sgLangChunk(const Machine& machine) {
  const Bytes memory = smallest(machine);
  if (memory < 35_GiB) return 2048;
  if (memory < 60_GiB) return 4096;
  return memory < 160_GiB ? 8192 : 16384;
}

int64_t sgLangGraphBatch(const Machine& machine, int tp) {
  const Bytes memory = smallest(machine);
  if (memory < 20_GiB) return 8;
  if (memory < 35_GiB) return tp >= 4 ? 80 : 24;
  if (memory < 60_GiB) return tp >= 4 ? 160 : 32;
  if (memory < 160_GiB) return tp >= 4 ? 512 : 256;
  return 512;
}

double sgLangStaticFraction(const Machine& machine, int tp, int pp, EngineVersion version, std::optional<int64_t> chunk) {
  if (version < EngineVersion{0, 4, 9}) {
    // Its table of 0.2 to 0.4; eight ranks had 0.83 before 0.4.
    if (tp >= 16) return 0.79;
    if (tp >= 8) return version < EngineVersion{0, 4, 0} ? 0.83 : 0.81;
    return tp >= 4 ? 0.85 : tp >= 2 ? 0.87 : 0.88;
  }
  const double capacity = static_cast<double>(smallest(machine).count()) / kMiB;
  double reserved = 512 + 1.5 * static_cast<double>(std::max<int64_t>(chunk.value_or(sgLangChunk(machine)), 2048)) +
                    2.0 * static_cast<double>(sgLangGraphBatch(machine, tp)) + 128.0 * tp * pp;
  if (capacity > 60.0 * 1024) reserved = std::max(reserved, 10.0 * 1024);
  return std::max(0.0, (capacity - reserved) / capacity);
}

Bytes sgLangTokenBytes(const ModelConfig& config, Range layers, int tp, DType kvDType) {
  const DTypeInfo& type = dtypeInfo(kvDType);
  int64_t full = 0, windowed = 0;  // elements
  for (int64_t i = layers.begin; i < layers.end; ++i) {
    const LayerSpec& layer = config.layers[i];
    if (layer.sharesKv) continue;
    const int64_t heads = std::max<int64_t>(1, layer.kvHeads / tp),
                  width = heads * (layer.headDim + (layer.vHeadDim > 0 ? layer.vHeadDim : layer.headDim));
    switch (layer.attention) {
      case AttentionKind::Full:
      case AttentionKind::ChunkedWindow:
        full += width;
        break;
      case AttentionKind::SlidingWindow:
        windowed += width;
        break;
      case AttentionKind::Latent:  // one latent for all heads, on every rank
        full += layer.latent.kvLoraRank + layer.latent.qkRopeHeadDim;
        break;
      default:
        break;
    }
  }
  const double elements = static_cast<double>(full) + (full > 0 ? kWindowPoolShare : 1.0) * static_cast<double>(windowed);
  return Bytes(static_cast<int64_t>(elements * static_cast<double>(type.blockBytes) / static_cast<double>(type.blockElements)));
}

Bytes sgLangRotaryCache(const ModelConfig& config) {
  // 32-bit cosines and sines of half the rotated elements each.
  return Bytes(config.maxPositionEmbeddings * config.rope.rotaryDim * 4);
}

}  // namespace headroom
