// SPDX-License-Identifier: Apache-2.0
// Options after defaults, for each engine; what cannot be honoured is refused by name.
#include "core/launch/evaluator.h"
#include "core/memory/cuda_memory.h"
#include "core/memory/cuda_types.h"
#include "core/memory/sglang_memory.h"
#include "core/memory/vllm_memory.h"

#include <algorithm>
#include <map>

namespace headroom {
namespace {

constexpr double kUtilization = 0.9;
constexpr int64_t kLeastModelLen = 256;
constexpr int64_t kUnknownPositions = 4096;  // where a model names no limit

bool isComputeType(DType dtype) { return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16; }

Status checkCommon(const ModelSource& model, const Machine& machine, const PlanOptions& options) {
  if (machine.gpus.empty()) return failure("GPUs", "none", "at least one");
  if (model.config.layers.empty()) return failure(model.config.name, "a model without layers", "a decoder");
  if (options.gpuMemoryUtilization && !(*options.gpuMemoryUtilization > 0 && *options.gpuMemoryUtilization <= 1)) {
    return failure("--gpu-memory-utilization", fmt::format("{:g}", *options.gpuMemoryUtilization), "more than 0 and at most 1");
  }
  const EngineKind kind = options.engine.kind;
  const bool cutsExperts = kind == EngineKind::Headroom || kind == EngineKind::LlamaCpp || kind == EngineKind::LmDeploy;
  if (cutsExperts && (options.expertParallel || options.attentionDataParallel)) {
    return failure(options.expertParallel ? "--expert-parallel" : "--attention-data-parallel", std::string(engineName(options.engine.kind)),
                   "an engine that deals whole experts", "plan with --engine vllm, sglang or tensorrt-llm");
  }
  if (options.expertParallel && std::none_of(model.config.layers.begin(), model.config.layers.end(), [](const LayerSpec& layer) {
        return layer.ffn == FfnKind::MixtureOfExperts;
      }))
    return failure("--expert-parallel", model.config.name + ", which has no experts", "a mixture of experts", "leave it out");
  if (options.attentionDataParallel && options.engine.kind == EngineKind::Vllm)
    return failure("--attention-data-parallel", "vllm", "sglang or tensorrt-llm",
                   "leave it out: vLLM's replicas of expert models always share one set of experts");
  constexpr int64_t kMost = int64_t(1) << 30;
  const std::pair<const char*, std::optional<int64_t>> counts[] = {{"--max-model-len", options.maxModelLen},
                                                                   {"--max-num-seqs", options.maxNumSeqs},
                                                                   {"--max-num-batched-tokens", options.maxNumBatchedTokens},
                                                                   {"--concurrency", options.concurrency}};
  for (const auto& [name, value] : counts) {
    if (value && (*value < 1 || *value > kMost)) return failure(name, std::to_string(*value), fmt::format("1 to {}", kMost));
  }
  for (const auto& [name, value] : {std::pair{"--input-len", options.inputLen}, std::pair{"--output-len", options.outputLen}}) {
    if (value && (*value < 0 || *value > kMost)) return failure(name, std::to_string(*value), fmt::format("0 to {}", kMost));
  }
  return {};
}

int64_t positionsOf(const ModelConfig& config) {
  return config.maxPositionEmbeddings > 0 ? config.maxPositionEmbeddings : kUnknownPositions;
}

Status checkLength(const ModelConfig& config, const PlanOptions& options) {
  const int64_t most = config.maxPositionEmbeddings;
  if (options.maxModelLen && most > 0 && *options.maxModelLen > most) {
    return failure("--max-model-len", std::to_string(*options.maxModelLen),
                   fmt::format("at most {} (the model's positions)", most));
  }
  return {};
}

bool blockQuantized(const CondensedModel& model) {
  const std::vector<TensorEntry>& tensors = model.model().inventory.tensors;
  return std::any_of(tensors.begin(), tensors.end(), [](const TensorEntry& tensor) {
    return tensor.loaded && tensor.layer >= 0 && isBlockQuantized(tensor.dtype);
  });
}

// Tokens of one sequence that fit beside weights and activations on a layout; negative when these alone do not fit.
int64_t tokensThatFit(const ModelSource& model, const Machine& machine, const ResolvedOptions& options,
                      const ParallelLayout& layout) {
  EngineLimits limits = engineLimits(options);
  std::map<int, int> ranksOnGpu;
  for (const RankSlice& rank : layout.ranks) ++ranksOnGpu[rank.gpu];
  struct RankRoom {
    Bytes beforeActivations, block;
  };
  std::vector<RankRoom> rooms;  // weights are summed once
  for (const RankSlice& rank : layout.ranks) {
    if (rank.gpu < 0 || rank.gpu >= machine.size()) return -1;
    const Bytes budget = machine.gpus[rank.gpu].budget(options.gpuMemoryUtilization);
    rooms.push_back({Bytes(budget.count() / ranksOnGpu[rank.gpu]) - weightBytes(model, rank, layout.tp, limits.computeDType) -
                         graphBytes(model.config, rank, limits) - cudaRuntime(model.config, rank, layout.tp, limits).total(),
                     kvBytesPerBlock(model.config, rank, limits)});
  }
  // Blocks that the tightest rank has room for when the engine is sized for `length`; negative when not even its buffers fit.
  auto blocksAt = [&](int64_t length) {
    limits.maxModelLen = length;
    int64_t blocks = ceilDiv(options.maxModelLen, limits.blockTokens);
    for (size_t i = 0; i < rooms.size(); ++i) {
      const Bytes room =
          rooms[i].beforeActivations - activationBytes(model.config, layout.ranks[i], layout.tp, layout.pp, limits);
      if (room.count() < 0) return int64_t{-1};
      if (rooms[i].block.count() > 0) blocks = std::min(blocks, room / rooms[i].block);
    }
    return blocks;
  };
  const int64_t least = std::min<int64_t>(options.maxModelLen, kLeastModelLen);
  int64_t good = least / limits.blockTokens, bad = ceilDiv(options.maxModelLen, limits.blockTokens) + 1;
  if (blocksAt(least) < ceilDiv(least, limits.blockTokens)) return -1;
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (blocksAt(middle * limits.blockTokens) >= middle ? good : bad) = middle;
  }
  return std::max(least, std::min(options.maxModelLen, good * limits.blockTokens));
}

}  // namespace

EngineLimits engineLimits(const ResolvedOptions& options) {
  EngineLimits limits;
  limits.computeDType = options.dtype;
  limits.kvDType = options.kvCacheDType;
  limits.maxModelLen = options.maxModelLen;
  limits.maxNumSeqs = options.maxNumSeqs;
  limits.maxNumBatchedTokens = options.maxNumBatchedTokens;
  limits.cachedStates = options.maxNumSeqs;  // a conversation that waits for each that runs
  limits.graphs = !options.enforceEager;
  limits.cuda = !options.hostDevices;
  return limits;
}

Result<ResolvedOptions> resolveHeadroomDefaults(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                                                const PlanOptions& options) {
  const ModelConfig& config = model.config;
  if (Status good = checkCommon(model, machine, options); !good) return tl::unexpected(good.error());
  if (Status good = checkLength(config, options); !good) return tl::unexpected(good.error());
  if (options.quantization && (!config.quantization || config.quantization->method != *options.quantization)) {
    return failure("--quantization", *options.quantization, "none: Headroom runs a checkpoint as it is stored",
                   "open a GGUF of the wanted type");
  }
  ResolvedOptions resolved;
  resolved.engine = options.engine;
  resolved.dtype = config.dtype;
  if (blockQuantized(condensed)) resolved.dtype = DType::F16;
  if (!isComputeType(resolved.dtype)) resolved.dtype = DType::BF16;
  if (options.dtype) {
    if (!isComputeType(*options.dtype)) {
      return failure("--dtype", std::string(dtypeName(*options.dtype)), "auto, float32, float16 or bfloat16");
    }
    resolved.dtype = *options.dtype;
  }
  resolved.kvCacheDType = options.kvCacheDType.value_or(resolved.dtype);
  const bool host = machine.isHostOnly();
  if (!isComputeType(resolved.kvCacheDType) && resolved.kvCacheDType != DType::F8E4M3 && resolved.kvCacheDType != DType::F8E5M2 &&
      resolved.kvCacheDType != DType::I8) {
    return failure("--kv-cache-dtype", std::string(dtypeName(resolved.kvCacheDType)),
                   "auto, float32, float16, bfloat16, fp8_e4m3, fp8_e5m2 or int8");
  }
  if (!host && !cudaHoldsCache(resolved.kvCacheDType))
    return failure("--kv-cache-dtype", "int8 on GPUs", std::string("auto, ") + kCudaCacheTypes,
                   "int8 caches run on host devices");
  if (config.quantization) resolved.quantization = config.quantization->method;
  const HeadroomDefaults defaults = headroomDefaults(host);
  resolved.maxNumSeqs = options.maxNumSeqs.value_or(defaults.maxNumSeqs);
  resolved.maxNumBatchedTokens = options.maxNumBatchedTokens.value_or(defaults.maxNumBatchedTokens);
  resolved.gpuMemoryUtilization = options.gpuMemoryUtilization.value_or(defaults.gpuMemoryUtilization);
  resolved.enforceEager = options.enforceEager || host;  // host devices record nothing
  resolved.hostDevices = host;
  resolved.concurrency = options.concurrency;
  resolved.inputLen = options.inputLen.value_or(0);
  resolved.outputLen = options.outputLen.value_or(0);
  resolved.maxModelLen = options.maxModelLen.value_or(positionsOf(config));
  return resolved;
}

HeadroomDefaults headroomDefaults(bool hostDevices) {
  return hostDevices ? HeadroomDefaults{16, 512, kUtilization} : HeadroomDefaults{256, 2048, kUtilization};
}

Result<ResolvedOptions> resolveHeadroomOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options,
                                               const ParallelLayout* layout) {
  const CondensedModel condensed(model);
  Result<ResolvedOptions> resolved = resolveHeadroomDefaults(model, condensed, machine, options);
  if (!resolved || options.maxModelLen) return resolved;
  // The model's own length, or what fits of it.
  if (layout) {
    const int64_t fits = tokensThatFit(model, machine, *resolved, *layout);
    if (fits > 0) resolved->maxModelLen = std::min(resolved->maxModelLen, fits);
  } else {
    makeHeadroomEvaluator(model, condensed, machine, *resolved, false);
  }
  return resolved;
}

namespace {

// Options that vLLM, SGLang and TensorRT-LLM share: types and length.
Result<ResolvedOptions> resolveServerOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options) {
  const ModelConfig& config = model.config;
  if (Status good = checkCommon(model, machine, options); !good) return tl::unexpected(good.error());
  if (Status good = checkLength(config, options); !good) return tl::unexpected(good.error());
  ResolvedOptions resolved;
  resolved.engine = options.engine;
  resolved.dtype = config.dtype == DType::F32 ? DType::F16 : config.dtype;  // auto: half for float checkpoints
  if (!isComputeType(resolved.dtype)) resolved.dtype = DType::BF16;
  if (options.dtype) {
    if (!isComputeType(*options.dtype))
      return failure("--dtype", std::string(dtypeName(*options.dtype)), "auto, float32, float16 or bfloat16");
    resolved.dtype = *options.dtype;
  }
  resolved.kvCacheDType = options.kvCacheDType.value_or(resolved.dtype);
  if (!isComputeType(resolved.kvCacheDType) && resolved.kvCacheDType != DType::F8E4M3 && resolved.kvCacheDType != DType::F8E5M2) {
    return failure("--kv-cache-dtype", std::string(dtypeName(resolved.kvCacheDType)),
                   "auto, bfloat16, float16, fp8, fp8_e4m3 or fp8_e5m2");
  }
  if (config.quantization) resolved.quantization = config.quantization->method;
  if (options.quantization) {
    const bool own = config.quantization.has_value();
    // int8 is planned as a checkpoint in 8-bit weights would be.
    if (!own && *options.quantization != "fp8" && *options.quantization != "int8") {
      return failure("--quantization", *options.quantization, "fp8 or int8", "or open a checkpoint that is quantized so");
    }
    if (!own) resolved.quantization = *options.quantization;
  }
  resolved.maxModelLen = options.maxModelLen.value_or(positionsOf(config));
  resolved.enforceEager = options.enforceEager;
  resolved.concurrency = options.concurrency;
  resolved.inputLen = options.inputLen.value_or(0);
  resolved.outputLen = options.outputLen.value_or(0);
  resolved.expertParallel = options.expertParallel;
  resolved.attentionDataParallel = options.attentionDataParallel;
  return resolved;
}

}  // namespace

Result<ResolvedOptions> resolveVllmOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options) {
  Result<ResolvedOptions> resolved = resolveServerOptions(model, machine, options);
  if (!resolved) return resolved;
  const EngineVersion version = versionOf(options.engine);
  if (resolved->engine.version.empty()) resolved->engine.version = fmt::format("{}.{}", version.major, version.minor);
  // A checkpoint that was calibrated for an 8-bit cache gets one, where versions look at that.
  constexpr EngineVersion kCacheByCheckpoint{0, 12, 0};
  if (!options.kvCacheDType && model.config.kvCacheDType && version >= kCacheByCheckpoint)
    resolved->kvCacheDType = *model.config.kvCacheDType;
  if (const int64_t length = vllmDefaultModelLen(model.config); !options.maxModelLen && length > 0)
    resolved->maxModelLen = length;
  resolved->maxNumSeqs = options.maxNumSeqs.value_or(vllmDefaultMaxNumSeqs(version, machine));
  resolved->maxNumBatchedTokens = options.maxNumBatchedTokens.value_or(
      vllmDefaultBatchedTokens(version, machine, resolved->maxModelLen, resolved->maxNumSeqs));
  resolved->gpuMemoryUtilization = options.gpuMemoryUtilization.value_or(vllmDefaultUtilization(version));
  return resolved;
}

Result<ResolvedOptions> resolveSgLangOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options) {
  Result<ResolvedOptions> resolved = resolveServerOptions(model, machine, options);
  if (!resolved) return resolved;
  const EngineVersion version = versionOf(options.engine);
  if (resolved->engine.version.empty())
    resolved->engine.version = fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
  resolved->maxNumSeqs = options.maxNumSeqs.value_or(sgLangGraphBatch(machine, machine.size()));
  resolved->maxNumBatchedTokens = options.maxNumBatchedTokens.value_or(sgLangChunk(machine));
  // Its default depends on the layout; this one is for all GPUs in one TP group.
  resolved->gpuMemoryUtilization = options.gpuMemoryUtilization.value_or(sgLangStaticFraction(machine, machine.size(), 1, version, options.maxNumBatchedTokens));
  return resolved;
}

Result<ResolvedOptions> resolveTensorRtOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options) {
  Result<ResolvedOptions> resolved = resolveServerOptions(model, machine, options);
  if (!resolved) return resolved;
  if (resolved->engine.version.empty()) resolved->engine.version = "1.0";
  // trtllm-serve takes the type that the checkpoint names.
  const DType own = isComputeType(model.config.dtype) ? model.config.dtype : resolved->dtype;
  if (options.dtype && *options.dtype != own)
    return failure("--dtype", std::string(dtypeName(*options.dtype)), fmt::format("{}, the checkpoint's own", dtypeName(own)),
                   "trtllm-serve has no option for it");
  constexpr int64_t kSequences = 2048, kBatchedTokens = 8192;
  resolved->maxNumSeqs = options.maxNumSeqs.value_or(kSequences);
  resolved->maxNumBatchedTokens = options.maxNumBatchedTokens.value_or(kBatchedTokens);
  resolved->gpuMemoryUtilization = options.gpuMemoryUtilization.value_or(kUtilization);
  return resolved;
}

Result<ResolvedOptions> resolveLmDeployOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options) {
  Result<ResolvedOptions> resolved = resolveServerOptions(model, machine, options);
  if (!resolved) return resolved;
  if (resolved->engine.version.empty()) resolved->engine.version = "0.16";
  if (!isComputeType(resolved->kvCacheDType))
    return failure("--kv-cache-dtype", std::string(dtypeName(resolved->kvCacheDType)), "auto, float16 or bfloat16",
                   "TurboMind's smaller caches are 8-bit and 4-bit integers, which are not planned");
  constexpr int64_t kBatch = 256, kPrefillTokens = 8192;  // max_batch_size of large GPUs, max_prefill_token_num
  constexpr double kCacheShare = 0.8;                     // cache_max_entry_count: of what weights leave
  resolved->maxNumSeqs = options.maxNumSeqs.value_or(kBatch);
  resolved->maxNumBatchedTokens = options.maxNumBatchedTokens.value_or(kPrefillTokens);
  resolved->gpuMemoryUtilization = options.gpuMemoryUtilization.value_or(kCacheShare);
  return resolved;
}

Result<ResolvedOptions> resolveLlamaCppOptions(const ModelSource& model, const Machine& machine, const PlanOptions& options) {
  const ModelConfig& config = model.config;
  if (Status good = checkCommon(model, machine, options); !good) return tl::unexpected(good.error());
  if (Status good = checkLength(config, options); !good) return tl::unexpected(good.error());
  if (options.gpuMemoryUtilization) {
    return failure("--gpu-memory-utilization", fmt::format("{:g}", *options.gpuMemoryUtilization),
                   "nothing: llama.cpp takes what it needs and leaves a margin of 1024 MiB");
  }
  if (options.maxNumSeqs) {
    return failure("--max-num-seqs", std::to_string(*options.maxNumSeqs), "nothing: llama.cpp's slots are the requests at once",
                   "--concurrency is their number");
  }
  if (options.quantization && (!config.quantization || config.quantization->method != *options.quantization)) {
    return failure("--quantization", *options.quantization, "none: llama.cpp runs a GGUF as it is stored",
                   "open a GGUF of the wanted type");
  }
  ResolvedOptions resolved;
  resolved.engine = options.engine;
  resolved.dtype = isComputeType(config.dtype) ? config.dtype : DType::BF16;
  if (options.dtype) {
    if (!isComputeType(*options.dtype))
      return failure("--dtype", std::string(dtypeName(*options.dtype)), "auto, float32, float16 or bfloat16");
    resolved.dtype = *options.dtype;
  }
  resolved.kvCacheDType = options.kvCacheDType.value_or(DType::F16);
  const bool blocks =
      resolved.kvCacheDType == DType::Q8_0 || resolved.kvCacheDType == DType::Q4_0 || resolved.kvCacheDType == DType::Q4_1;
  if (!isComputeType(resolved.kvCacheDType) && !blocks) {
    return failure("--kv-cache-dtype", std::string(dtypeName(resolved.kvCacheDType)),
                   "auto, float32, float16, bfloat16, q8_0, q4_0 or q4_1");
  }
  if (config.quantization) resolved.quantization = config.quantization->method;
  constexpr int64_t kMicroBatch = 512;
  resolved.maxModelLen = options.maxModelLen.value_or(positionsOf(config));
  resolved.maxNumSeqs = std::max<int64_t>(1, options.concurrency);
  resolved.maxNumBatchedTokens = options.maxNumBatchedTokens.value_or(kMicroBatch);
  resolved.gpuMemoryUtilization = 1;
  resolved.enforceEager = options.enforceEager;
  resolved.concurrency = options.concurrency;
  resolved.inputLen = options.inputLen.value_or(0);
  resolved.outputLen = options.outputLen.value_or(0);
  return resolved;
}

}  // namespace headroom
