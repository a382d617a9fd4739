// SPDX-License-Identifier: Apache-2.0
// Weights, KV cache and block counts of Headroom's engine, rank by rank.
#include "core/memory/memory_plan.h"

#include "core/memory/cuda_memory.h"
#include "core/memory/kv_cache_size.h"

#include <algorithm>
#include <limits>
#include <map>

namespace headroom {

DType loadedDType(const TensorEntry& tensor, DType computeDType) {
  if (!isFloating(tensor.dtype)) return tensor.dtype;  // blocks and packed numbers stay as they are
  if (tensor.shape.size() < 2) return DType::F32;
  switch (tensor.role) {  // one bias for each expert, a few weights for each channel
    case TensorRole::LinearConvolution:
    case TensorRole::ExpertGateBias:
    case TensorRole::ExpertUpBias:
    case TensorRole::ExpertDownBias:
    case TensorRole::ExpertGateUpBias:
      return DType::F32;
    default:
      return computeDType;
  }
}

Bytes loadedBytes(const TensorEntry& tensor, const ModelConfig& config, const RankSlice& rank, int tp, DType computeDType) {
  const std::optional<TensorSlice> slice = sliceOf(tensor, config, rank, tp);
  if (!slice) return {};
  const DType dtype = loadedDType(tensor, computeDType);
  // Rows are stored one after another; the last dimension is the one that blocks lie along.
  int64_t rows = 1, rowElements = tensor.shape.empty() ? 1 : tensor.shape.back();
  for (size_t dim = 0; dim + 1 < tensor.shape.size(); ++dim) rows *= tensor.shape[dim];
  if (slice->dim >= 0) {
    int64_t held = 0;
    for (Range range : slice->ranges) held += range.size();
    if (slice->dim + 1 == static_cast<int>(tensor.shape.size()))
      rowElements = held;
    else
      rows = rows / tensor.shape[slice->dim] * held;
  }
  return storageBytes(dtype, rowElements) * rows;
}

Bytes loadedBytes(const TensorEntry& tensor, DType computeDType) {
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  return row == 0 ? Bytes() : storageBytes(loadedDType(tensor, computeDType), row) * (tensor.elements() / row);
}

Bytes weightBytes(const ModelSource& model, const RankSlice& rank, int tp, DType computeDType) {
  Bytes sum;
  for (const TensorEntry& tensor : model.inventory.tensors) sum += loadedBytes(tensor, model.config, rank, tp, computeDType);
  return sum;
}

Bytes kvBytesPerBlock(const ModelConfig& config, const RankSlice& rank, const EngineLimits& limits) {
  Bytes bytes;
  for (int64_t index = rank.layers.begin; index < rank.layers.end; ++index) {
    const LayerSpec& layer = config.layers[index];
    if (layer.sharesKv) continue;
    switch (layer.attention) {
      case AttentionKind::Full:
      case AttentionKind::SlidingWindow:
      case AttentionKind::ChunkedWindow: {
        bytes += kvCacheBytes(limits.kvDType, limits.blockTokens, kvHeadsOfLayer(config, rank, layer).size(), layer.headDim,
                              layer.vHeadDim > 0 ? layer.vHeadDim : layer.headDim);
        break;
      }
      case AttentionKind::Latent:
        bytes += kvCacheBytes(limits.kvDType, limits.blockTokens, 1, layer.latent.kvLoraRank + layer.latent.qkRopeHeadDim, 0);
        break;
      default:
        break;  // states of fixed size, not a cache by token
    }
  }
  return bytes;
}

std::vector<int64_t> graphBatches(const EngineLimits& limits) {
  constexpr int64_t kMost = 256;
  std::vector<int64_t> batches;
  if (!limits.graphs) return batches;
  const int64_t most = std::min({kMost, limits.maxNumSeqs, limits.maxNumBatchedTokens});
  batches.reserve(24);
  for (int64_t batch = 1; batch < most; batch += batch < 8 ? batch : batch < 64 ? 8 : 16) batches.push_back(batch);
  if (most > 0) batches.push_back(most);
  return batches;
}

Bytes graphBytes(const ModelConfig& config, const RankSlice& rank, const EngineLimits& limits) {
  constexpr Bytes kLaunchBytes(2048);  // of one recorded launch
  constexpr int64_t kLaunchesOfStep = 16, kLaunchesOfLayer = 48, kMoreOfLatent = 24, kMoreOfLatentHead = 4, kMoreOfExperts = 24;
  int64_t launches = kLaunchesOfStep;
  for (int64_t index = rank.layers.begin; index < rank.layers.end; ++index) {
    const LayerSpec& layer = config.layers[index];
    launches += kLaunchesOfLayer;
    if (layer.attention == AttentionKind::Latent)
      launches += kMoreOfLatent + kMoreOfLatentHead * qHeadsOfLayer(config, rank, layer).size();
    if (layer.ffn == FfnKind::MixtureOfExperts) launches += kMoreOfExperts;
  }
  return kLaunchBytes * (launches * static_cast<int64_t>(graphBatches(limits).size()));
}

Result<EngineMemoryPlan> planEngineMemory(const ModelSource& model, const ParallelLayout& layout, const Machine& machine,
                                          const EngineLimits& limits, double utilization) {
  std::map<int, int> ranksOnGpu;
  for (const RankSlice& rank : layout.ranks) {
    if (rank.gpu < 0 || rank.gpu >= machine.size()) {
      return failure(fmt::format("rank {}", rank.rank), fmt::format("GPU {}", rank.gpu),
                     fmt::format("0 to {}", machine.size() - 1));
    }
    ++ranksOnGpu[rank.gpu];
  }
  EngineMemoryPlan plan;
  int64_t blocks = std::numeric_limits<int64_t>::max();
  const RankSlice* tightest = nullptr;
  std::vector<Bytes> perBlock, room;
  for (const RankSlice& rank : layout.ranks) {
    RankMemory memory;
    memory.weights = weightBytes(model, rank, layout.tp, limits.computeDType);
    memory.activations = activationBytes(model.config, rank, layout.tp, layout.pp, limits);
    memory.graphs = graphBytes(model.config, rank, limits);
    memory.runtime = cudaRuntime(model.config, rank, layout.tp, limits).total();
    const MachineGpu& gpu = machine.gpus[rank.gpu];
    const Bytes budget(gpu.budget(utilization).count() / ranksOnGpu[rank.gpu]);
    room.push_back(budget - memory.total());
    perBlock.push_back(kvBytesPerBlock(model.config, rank, limits));
    plan.ranks.push_back(memory);
    if (perBlock.back().count() == 0) continue;  // no cache here, nothing to fill
    const int64_t fit = room.back().count() <= 0 ? -1 : room.back() / perBlock.back();
    if (fit < blocks) {
      blocks = fit;
      tightest = &rank;
    }
  }
  const int64_t needed = ceilDiv(limits.maxModelLen, limits.blockTokens);
  if (tightest == nullptr) blocks = needed * std::max<int64_t>(1, limits.maxNumSeqs);
  for (size_t i = 0; i < room.size(); ++i) {
    if (room[i].count() < 0 && (tightest == nullptr || perBlock[i].count() == 0)) {
      tightest = &layout.ranks[i];
      blocks = -1;
    }
  }
  if (blocks < needed) {
    const size_t i = static_cast<size_t>(tightest - layout.ranks.data());
    const MachineGpu& gpu = machine.gpus[tightest->gpu];
    const Bytes cache = perBlock[i] * needed;
    const RankMemory& planned = plan.ranks[i];
    const Bytes fixed = planned.total(), have = room[i] + fixed;
    // MiB for small devices, so that no part prints as 0.00.
    const bool small = have < 4_GiB && gpu.totalMemory < 4_GiB;
    auto amount = [&](Bytes bytes) { return fmt::format("{:.{}f}", bytes.gib() * (small ? 1024 : 1), small ? 1 : 2); };
    const char* unit = small ? "MiB" : "GiB";
    return failure(
        fmt::format("rank {} (stage {}, GPU {})", tightest->rank, tightest->stage, gpu.index),
        fmt::format("a budget of {} {} ({}{})", amount(have), unit,
                    static_cast<double>(gpu.leftByOthers().count()) < utilization * static_cast<double>(gpu.totalMemory.count())
                        ? fmt::format("what other processes leave of {} {}", amount(gpu.totalMemory), unit)
                        : fmt::format("{:g} x {} {}", utilization, amount(gpu.totalMemory), unit),
                    ranksOnGpu[tightest->gpu] > 1 ? fmt::format(" for {} ranks", ranksOnGpu[tightest->gpu]) : ""),
        fmt::format("{} {} (weights {} + activations {}{}{} + {} for one sequence of {} tokens)", amount(fixed + cache), unit,
                    amount(planned.weights), amount(planned.activations),
                    planned.graphs.count() > 0 ? " + graphs " + amount(planned.graphs) : std::string(),
                    planned.runtime.count() > 0 ? " + runtime " + amount(planned.runtime) : std::string(), amount(cache),
                    limits.maxModelLen),
        "lower the maximum length, give the device more memory, or use more ranks");
  }
  plan.kvBlocks = blocks;
  for (size_t i = 0; i < plan.ranks.size(); ++i) plan.ranks[i].kvCache = perBlock[i] * blocks;
  return plan;
}

}  // namespace headroom
