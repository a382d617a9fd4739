// SPDX-License-Identifier: Apache-2.0
#include "core/launch/evaluator.h"

#include "core/memory/sglang_memory.h"
#include "core/memory/tensorrt_memory.h"
#include "core/memory/vllm_memory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headroom {
namespace {

// Less than this share of the GPU left is tight.
constexpr double kTightShare = 0.05;

std::string gibText(Bytes bytes) { return fmt::format("{:.2f}", bytes.gib()); }

std::string budgetText(const GridContext& context, const MachineGpu& gpu, const ReplicaPlan& replica) {
  switch (context.engine) {
    case EngineKind::SgLang:
      return fmt::format("{:.2f} GiB free at start x {:.3f}", sgLangFreeAtStart(gpu, replica.tp * replica.pp).gib(),
                         replica.utilization);
    case EngineKind::LmDeploy:
    case EngineKind::TensorRtLlm:
      return fmt::format("weights and activations, and {:g} of what they leave of {:.2f} GiB", replica.utilization,
                         tensorRtFreeAtStart(gpu).gib());
    case EngineKind::LlamaCpp:
      return fmt::format("{:.2f} GiB - {:.2f} for the CUDA context and a margin", gpu.leftByOthers().gib(),
                         (gpu.leftByOthers() - llamaCppUsable(gpu)).gib());
    case EngineKind::Headroom:
      if (const Bytes left = gpu.leftByOthers();
          static_cast<double>(left.count()) < replica.utilization * static_cast<double>(gpu.totalMemory.count()))
        return fmt::format("{:.2f} GiB - {:.2f} of other processes", gpu.totalMemory.gib(), (gpu.totalMemory - left).gib());
      [[fallthrough]];
    default:
      return fmt::format("{:.2f} GiB x {:g}", gpu.totalMemory.gib(), replica.utilization);
  }
}

// The sums behind a verdict, in words.
Reason fitReason(const GridContext& context, const ReplicaPlan& replica, const PartBytes& part, const MachineGpu& gpu,
                 int64_t requests, Bytes headroom, bool fits) {
  const Bytes budget = budgetOf(context, gpu, replica, part);
  std::string parts = fmt::format("weights {}", gibText(part.weights));
  if (part.activations) parts += fmt::format(" + activations {}", gibText(*part.activations));
  if (part.graphs && part.graphs->count() > 0) parts += fmt::format(" + graphs {}", gibText(*part.graphs));
  if (part.runtime && part.runtime->count() > 0) parts += fmt::format(" + runtime {}", gibText(*part.runtime));
  const bool many = part.unitsNeeded > replica.unitsPerRequest;
  parts +=
      fmt::format(" + KV cache {} for {} request{} of {} tokens", gibText(part.cacheFixed + part.cacheUnit * part.unitsNeeded),
                  many ? requests : 1, many && requests > 1 ? "s" : "", many ? context.tokensPerRequest : context.maxModelLen);
  const std::string sum = fmt::format("GPU {} ({}): {} = {} GiB, budget {} = {} GiB", gpu.index, gpu.spec.name, parts,
                                      gibText(budget - headroom), budgetText(context, gpu, replica), gibText(budget));
  if (!fits) return {"memory.does_not_fit", fmt::format("{}: {} GiB too much", sum, gibText(-headroom)), ""};
  return {"memory.tight", fmt::format("{}: only {} GiB left", sum, gibText(headroom)), ""};
}

// Layers that take the same cache and buffers.
bool sameBuffers(const LayerSpec& a, const LayerSpec& b) {
  return sameKvShape(a, b) && a.qHeads == b.qHeads && a.rope == b.rope && a.localRope == b.localRope && a.ffn == b.ffn &&
         a.intermediateSize == b.intermediateSize && a.latent.kvLoraRank == b.latent.kvLoraRank &&
         a.latent.qkRopeHeadDim == b.latent.qkRopeHeadDim && a.latent.qkNopeHeadDim == b.latent.qkNopeHeadDim &&
         a.latent.vHeadDim == b.latent.vHeadDim && a.latent.qLoraRank == b.latent.qLoraRank && a.moe.experts == b.moe.experts &&
         a.moe.expertsPerToken == b.moe.expertsPerToken && a.moe.expertIntermediate == b.moe.expertIntermediate &&
         a.moe.sharedIntermediate == b.moe.sharedIntermediate;
}

}  // namespace

Bytes budgetOf(const GridContext& context, const MachineGpu& gpu, const ReplicaPlan& replica, const PartBytes& part) {
  const double total = static_cast<double>(gpu.totalMemory.count());
  switch (context.engine) {
    case EngineKind::Headroom:
      return gpu.budget(replica.utilization);
    case EngineKind::Vllm:
      return Bytes(static_cast<int64_t>(std::ceil(total * replica.utilization)));
    case EngineKind::SgLang:
      return Bytes(static_cast<int64_t>(static_cast<double>(sgLangFreeAtStart(gpu, replica.tp * replica.pp).count()) *
                                        replica.utilization));
    case EngineKind::LmDeploy:
    case EngineKind::TensorRtLlm: {
      const Bytes left = tensorRtFreeAtStart(gpu) - part.taken();
      return part.taken() +
             (left.count() > 0 ? Bytes(static_cast<int64_t>(static_cast<double>(left.count()) * replica.utilization)) : left);
    }
    case EngineKind::LlamaCpp:
      return llamaCppUsable(gpu);
  }
  return {};
}

int64_t tokensPerRequest(const ResolvedOptions& options) {
  const int64_t asked = options.inputLen + options.outputLen;
  return asked > 0 ? asked : options.maxModelLen;
}

int64_t requestsPerReplica(const ResolvedOptions& options, int dp) {
  return ceilDiv(std::max<int64_t>(1, options.concurrency), dp);
}

bool areAlike(const Machine& machine, const ResolvedOptions& options) {
  // What an engine may take of a card.
  const auto limit = [&](const MachineGpu& gpu) {
    switch (options.engine.kind) {
      case EngineKind::Headroom:
        return gpu.budget(options.gpuMemoryUtilization);
      case EngineKind::Vllm:
        return gpu.totalMemory;
      default:
        return gpu.leftByOthers();
    }
  };
  return std::all_of(machine.gpus.begin(), machine.gpus.end(), [&](const MachineGpu& gpu) {
    const MachineGpu& first = machine.gpus.front();
    return gpu.totalMemory == first.totalMemory && gpu.spec.name == first.spec.name && limit(gpu) == limit(first);
  });
}

std::vector<int> gpuOrder(const Machine& machine) {
  std::vector<int> order(machine.gpus.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return machine.gpus[a].totalMemory > machine.gpus[b].totalMemory; });
  return order;
}

MatrixFormat matrixFormatOf(const ModelConfig& config, const ResolvedOptions& options) {
  const std::string& method = options.quantization;
  if (method == "fp8" || method == "fbgemm_fp8") {
    return config.quantization && config.quantization->weightBlock.size() == 2 ? MatrixFormat::Fp8Blocks : MatrixFormat::Fp8;
  }
  if (config.quantization && config.quantization->bits == 8 && (method == "compressed-tensors" || method == "modelopt"))
    return MatrixFormat::Fp8;
  if (!method.empty()) return MatrixFormat::PackedWeights;
  return options.dtype == DType::F32 ? MatrixFormat::ThirtyTwoBit : MatrixFormat::SixteenBit;
}

LayoutEvaluator::LayoutEvaluator(const ModelSource& model, const CondensedModel& condensed, const Machine& machine,
                                 const ResolvedOptions& options)
    : m_model(model), m_condensed(condensed), m_machine(machine), m_options(options), m_context(std::make_shared<GridContext>()) {
  GridContext& context = *m_context;
  context.engine = options.engine.kind;
  context.version = versionOf(options.engine);
  context.order = gpuOrder(machine);
  context.gpus = machine.gpus;
  context.alike = areAlike(machine, options);
  context.maxModelLen = options.maxModelLen;
  context.tokensPerRequest = headroom::tokensPerRequest(options);
  context.layers = model.config.layerCount();
  context.positions = model.config.maxPositionEmbeddings;
  context.concurrency = std::max<int64_t>(1, options.concurrency);
  context.quantized = model.config.quantization.has_value();
  const std::vector<LayerSpec>& layers = model.config.layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto found =
        std::find_if(m_kindLayer.begin(), m_kindLayer.end(), [&](size_t known) { return sameBuffers(layers[known], layers[i]); });
    m_kindOf.push_back(static_cast<int>(found - m_kindLayer.begin()));
    if (found == m_kindLayer.end()) m_kindLayer.push_back(i);
  }
}

void LayoutEvaluator::countByKind(Range layers, std::vector<int64_t>& count) const {
  count.assign(m_kindLayer.size(), 0);
  for (int64_t layer = layers.begin; layer < layers.end; ++layer) ++count[m_kindOf[layer]];
}

bool LayoutEvaluator::sameKinds(Range a, Range b) const {
  if (a.size() != b.size()) return false;
  if (std::equal(m_kindOf.begin() + a.begin, m_kindOf.begin() + a.end, m_kindOf.begin() + b.begin)) return true;
  return layersByKind(a) == layersByKind(b);
}

int LayoutEvaluator::SameStages::find(int stage) {
  const bool first = stage == 0, last = stage + 1 == m_replica.pp;
  if (first || last) return stage;
  const Range layers = m_replica.stages[stage];
  for (const int earlier : m_seen) {
    if (m_evaluator.sameKinds(m_replica.stages[earlier], layers)) return earlier;
  }
  m_seen.push_back(stage);
  return stage;
}

WeightTable LayoutEvaluator::weightTable(const std::function<int64_t(const TensorEntry&)>& bytesOf) const {
  return WeightTable(m_condensed.model(), [&](const TensorEntry& tensor) { return bytesOf(tensor) * m_condensed.count(tensor); });
}

void LayoutEvaluator::meanBytes(const std::function<int64_t(const TensorEntry&)>& bytesOf) {
  int64_t layerBytes = 0, layerElements = 0, headBytes = 0, headElements = 0;
  for (const TensorEntry& tensor : m_condensed.model().inventory.tensors) {
    if (!tensor.loaded || tensor.shape.size() < 2) continue;
    const int64_t count = m_condensed.count(tensor);
    (tensor.layer >= 0 ? layerBytes : headBytes) += bytesOf(tensor) * count;
    (tensor.layer >= 0 ? layerElements : headElements) += tensor.parameters() * count;
  }
  if (layerElements > 0) m_layerBytesPerElement = static_cast<double>(layerBytes) / static_cast<double>(layerElements);
  if (headElements > 0) m_headBytesPerElement = static_cast<double>(headBytes) / static_cast<double>(headElements);
}

LayoutPlan LayoutEvaluator::evaluate(int tp, int pp, int dp) {
  LayoutPlan plan;
  plan.tp = tp;
  plan.pp = pp;
  plan.dp = dp;
  Acceptance acceptance = accept(tp, pp, dp);
  plan.even = acceptance.even;
  if (acceptance.refusal) {
    plan.reasons = std::move(*acceptance.refusal);
    return plan;
  }
  plan.warnings = std::move(acceptance.warnings);
  const int64_t requests = requestsPerReplica(m_options, dp);
  bool measured = false;
  const std::shared_ptr<const ReplicaPlan> twin = corrected(replica(tp, pp, dp, requests), measured);
  plan.even = twin->even;
  plan.ep = twin->ep;
  plan.sharedExperts = twin->sharedExperts;
  const int64_t blocks = fillMemory(plan, twin, requests);
  if (measured) plan.memoryProvenance = Provenance::MeasuredHere;
  if (plan.verdict != Verdict::DoesNotFit || plan.kvTokens.value_or(0) > 0) {
    predict(plan, *twin, requests, blocks);
  } else {
    plan.predicted.source = "unknown: the weights do not fit";
  }
  return plan;
}

std::shared_ptr<const ReplicaPlan> LayoutEvaluator::corrected(const std::shared_ptr<const ReplicaPlan>& replica, bool& measured) {
  const auto& all = m_options.corrections;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const MemoryCorrection& one) { return one.severalRanks == (replica->tp > 1); });
  measured = found != all.end();
  if (!measured) return replica;
  auto& known = m_corrected[replica.get()];
  if (known) return known;
  auto made = std::make_shared<ReplicaPlan>(*replica);
  for (PartBytes& part : made->parts) {
    part.weights += found->weights;
    if (part.activations) *part.activations += found->activations;
    if (part.graphs) *part.graphs += found->graphs;
    part.runtime = part.runtime.value_or(Bytes()) + found->runtime;
  }
  known = std::move(made);
  return known;
}

int64_t LayoutEvaluator::fillMemory(LayoutPlan& plan, const std::shared_ptr<const ReplicaPlan>& twin, int64_t requests) {
  const GridContext& context = *m_context;
  const ReplicaPlan& replica = *twin;
  const int ranksEach = replica.tp * replica.pp;
  std::optional<Bytes> least;
  const PartBytes* tightest = nullptr;
  int tightestGpu = 0;
  int64_t blocks = std::numeric_limits<int64_t>::max(), mostNeeded = 0;
  auto look = [&](const PartBytes& part, int gpuIndex) {
    const Bytes room = budgetOf(context, context.gpus[gpuIndex], replica, part) - part.taken();
    const Bytes left = room - part.cacheUnit * part.unitsNeeded;
    if (!least || left < *least) {
      least = left;
      tightest = &part;
      tightestGpu = gpuIndex;
    }
    mostNeeded = std::max(mostNeeded, part.unitsNeeded);
    if (part.cacheUnit.count() > 0) blocks = std::min(blocks, std::max<int64_t>(0, room.count()) / part.cacheUnit.count());
  };
  if (context.alike) {  // each kind of rank once, at the first rank of the kind
    for (int stage = 0; stage < replica.pp; ++stage) {
      for (int kind = 0; kind < replica.classes; ++kind)
        look(replica.parts[stage * replica.classes + kind], context.order[stage * replica.tp + replica.firstRankOf(kind)]);
    }
  } else {
    for (int rank = 0; rank < ranksEach * plan.dp; ++rank) {
      const int twinRank = rank % ranksEach;
      look(replica.part(twinRank / replica.tp, twinRank % replica.tp), context.order[rank]);
    }
  }
  if (blocks == std::numeric_limits<int64_t>::max()) blocks = context.engine == EngineKind::Headroom ? mostNeeded : 0;
  Bytes cache;
  for (int stage = 0; stage < replica.pp; ++stage) {
    for (int kind = 0; kind < replica.classes; ++kind) {
      const PartBytes& part = replica.parts[stage * replica.classes + kind];
      cache += (part.cacheFixed + part.cacheUnit * blocks) * replica.rankCountOf(kind);
    }
  }
  plan.kvCache = cache;
  plan.maxConcurrency = static_cast<double>(blocks) / static_cast<double>(std::max<int64_t>(1, replica.unitsPerRequest));
  plan.kvTokens = replica.tokensByUnits ? blocks / replica.unitGroups * replica.unitTokens
                                        : static_cast<int64_t>(*plan.maxConcurrency * static_cast<double>(context.maxModelLen));
  plan.memoryProvenance = m_memoryProvenance;
  plan.headroom = least;
  const MachineGpu& gpu = context.gpus[tightestGpu];
  plan.limitingGpu = gpu.index;
  plan.verdict = Verdict::Fits;
  if (least->count() < 0) {
    plan.verdict = Verdict::DoesNotFit;
  } else if (static_cast<double>(least->count()) <
             kTightShare * replica.utilization * static_cast<double>(gpu.totalMemory.count())) {
    plan.verdict = Verdict::Tight;
  }
  const auto details = std::make_shared<LayoutDetails>();
  details->context = m_context;
  details->replica = twin;
  details->dp = plan.dp;
  details->requests = requests;
  details->blocks = blocks;
  details->tightest = tightest;
  details->tightestGpu = tightestGpu;
  details->left = *least;
  if (plan.verdict != Verdict::Fits) plan.reasons = LazyList<Reason>::standingIn(details, &LayoutDetails::reasons);
  plan.ranks = LazyList<RankPlan>::standingIn(details, &LayoutDetails::ranks);
  plan.answers = LazyList<LayoutAnswers>::standingIn(details, &LayoutDetails::answers);
  plan.contextSeries = LazyList<ContextPoint>::standingIn(details, &LayoutDetails::series);
  if (twin->costs) plan.partition = LazyList<PartitionAdvice>::standingIn(details, &LayoutDetails::partition);
  plan.waste = LazyList<WasteItem>::standingIn(details, &LayoutDetails::waste);
  checkFreeAtStart(plan, replica);
  return blocks;
}

std::vector<Reason> LayoutDetails::fitReasons() const {
  const bool fits = left.count() >= 0;
  Reason reason = fitReason(*context, *replica, *tightest, context->gpus[tightestGpu], requests, left, fits);
  if (!fits) reason.fix = fix();
  return {std::move(reason)};
}

std::vector<RankPlan> LayoutDetails::rankPlans() const {
  const int each = replica->tp * replica->pp;
  std::vector<RankPlan> made(static_cast<size_t>(each) * dp);
  for (size_t i = 0; i < made.size(); ++i) {
    const int within = static_cast<int>(i) % each, stage = within / replica->tp, tpRank = within % replica->tp;
    const PartBytes& part = replica->part(stage, tpRank);
    RankPlan& rank = made[i];
    rank.slice = (*replica->tpSlices)[tpRank];
    rank.slice.rank = static_cast<int>(i);
    rank.slice.replica = static_cast<int>(i) / each;
    rank.slice.stage = stage;
    rank.slice.tpRank = tpRank;
    rank.slice.gpu = context->order[i];
    rank.slice.layers = replica->stages[stage];
    rank.slice.embeds = stage == 0;
    rank.slice.projects = stage == replica->pp - 1;
    const MachineGpu& gpu = context->gpus[rank.slice.gpu];
    rank.weights = part.weights;
    rank.activations = part.activations;
    rank.graphs = part.graphs;
    rank.runtime = part.runtime;
    if (gpu.spec.hostDevice && context->engine == EngineKind::Headroom) rank.graphs = rank.runtime = Bytes();
    rank.kvCache = part.cacheFixed + part.cacheUnit * blocks;
    rank.budget = budgetOf(*context, gpu, *replica, part);
    rank.headroom = *rank.budget - part.taken() - part.cacheUnit * part.unitsNeeded;
  }
  return made;
}

void LayoutEvaluator::checkFreeAtStart(LayoutPlan& plan, const ReplicaPlan& replica) const {
  const GridContext& context = *m_context;
  if (context.engine != EngineKind::Vllm || !vllmChecksFreeMemory(context.version)) return;
  const int ranksEach = replica.tp * replica.pp;
  for (int rank = 0; rank < ranksEach * plan.dp; ++rank) {
    const MachineGpu& gpu = context.gpus[context.order[rank]];
    if (!gpu.usedByOthers) continue;
    const int within = rank % ranksEach;
    const Bytes free = vllmFreeAtStart(gpu, ranksEach, context.version);
    const Bytes wanted = budgetOf(context, gpu, replica, replica.part(within / replica.tp, within % replica.tp));
    if (free >= wanted) continue;
    const double total = static_cast<double>(gpu.totalMemory.count());
    const double share = std::floor(static_cast<double>(free.count()) / total * 100) / 100;
    const bool fitsInIt = share > 0 && *plan.headroom >= wanted - Bytes(static_cast<int64_t>(total * share));
    Reason reason{
        "vllm.free_memory",
        fmt::format(
            "GPU {} ({}): about {:.2f} of {:.2f} GiB are free at the start, less than {:g} of the whole; vLLM stops with: "
            "\"Free memory on device ({:.2f}/{:.2f} GiB) on startup is less than desired GPU memory utilization ({:g}, "
            "{:.2f} GiB)\"",
            gpu.index, gpu.spec.name, free.gib(), gpu.totalMemory.gib(), replica.utilization, free.gib(), gpu.totalMemory.gib(),
            replica.utilization, wanted.gib()),
        fmt::format("end other programs on GPU {}", gpu.index)};
    if (fitsInIt) reason.fix = fmt::format("--gpu-memory-utilization {:.2f}, or {}", share, reason.fix);
    plan.verdict = Verdict::DoesNotFit;
    plan.headroom = std::min(*plan.headroom, free - wanted);
    plan.limitingGpu = gpu.index;
    plan.reasons = LazyList<Reason>(std::vector<Reason>{std::move(reason)});
    return;
  }
}

void LayoutEvaluator::predict(LayoutPlan& plan, const ReplicaPlan& replica, int64_t requests, int64_t blocks) {
  const ModelConfig& config = m_model.config;
  const ResolvedOptions& options = m_options;
  const GridContext& context = *m_context;
  int slowest = context.order.front();
  if (!context.alike) {
    for (int rank = 0; rank < plan.tp * plan.pp * plan.dp; ++rank) {
      auto bandwidth = [&](int gpu) { return context.gpus[gpu].spec.bandwidthGBs.value_or(0); };
      if (bandwidth(context.order[rank]) < bandwidth(slowest)) slowest = context.order[rank];
    }
  }
  // Without a load that was asked for: a prompt and an answer of everyday length.
  constexpr int64_t kEverydayPrompt = 1024, kEverydayAnswer = 256;
  const bool given = options.inputLen + options.outputLen > 0;
  const int64_t inputLen =
      given ? std::max<int64_t>(1, options.inputLen) : std::min(kEverydayPrompt, std::max<int64_t>(1, options.maxModelLen / 2));
  const int64_t outputLen =
      given ? std::max<int64_t>(1, options.outputLen) : std::min(kEverydayAnswer, std::max<int64_t>(1, options.maxModelLen / 2));
  // Requests that run at once hold half of their answers on average.
  int64_t running = requests;
  if (options.maxNumSeqs > 0 && options.engine.kind != EngineKind::SgLang)  // SGLang's is what it captures, not a limit
    running = std::min(running, options.maxNumSeqs);
  if (blocks > 0) {
    const auto held = [&](int64_t many) { return blocksFor(replica, inputLen + ceilDiv(outputLen, 2), many) <= blocks; };
    if (!held(running)) running = largestNumber(running, held);
    if (running == 0) {
      plan.predicted.source = "unknown: the KV cache does not hold one request";
      return;
    }
  }
  const auto [found, isNew] = m_predictions.try_emplace({plan.tp, plan.pp, requests, running, slowest});
  if (isNew) {
    RooflineQuestion question;
    question.config = &config;
    question.tp = plan.tp;
    question.stages = replica.pp;
    question.layers.resize(m_kindLayer.size());
    for (size_t kind = 0; kind < m_kindLayer.size(); ++kind) question.layers[kind].layer = &config.layers[m_kindLayer[kind]];
    for (const int kind : m_kindOf) ++question.layers[kind].count;
    int64_t q = 0, kv = 0, columns = 0, vocabulary = 0;
    for (const RankSlice& slice : *replica.tpSlices) {
      q = std::max(q, slice.qHeads.size());
      kv = std::max(kv, slice.kvHeads.size());
      columns = std::max(columns, slice.mlpColumns.size());
      vocabulary = std::max(vocabulary, slice.vocabulary.size());
    }
    auto share = [&](int64_t held, int64_t all) {
      return all > 0 && held > 0 ? static_cast<double>(held) / static_cast<double>(all) : 1.0 / plan.tp;
    };
    question.qShare = share(q, config.qHeads);
    question.kvShare = share(kv, config.kvHeads);
    question.columnShare = share(columns, config.intermediateSize);
    question.vocabularyShare = share(vocabulary, config.vocabSize);
    question.format = matrixFormatOf(config, options);
    question.layerBytesPerElement = m_layerBytesPerElement;
    question.headBytesPerElement = m_headBytesPerElement;
    const DTypeInfo& kvType = dtypeInfo(options.kvCacheDType);
    question.kvBytesPerElement = static_cast<double>(kvType.blockBytes) / static_cast<double>(kvType.blockElements);
    if (options.kvCacheDType == DType::I8 && config.headDim > 0)  // a scale beside each head
      question.kvBytesPerElement += 4.0 / static_cast<double>(config.headDim);
    question.gpu = &context.gpus[slowest].spec;
    question.engine = options.engine.kind;
    question.version = versionOf(options.engine);
    question.concurrency = requests;
    question.running = running;
    question.inputLen = inputLen;
    question.outputLen = outputLen;
    const RooflineAnswer answer = predictSpeed(question);
    found->second = {answer.decodeTokensPerSecond,
                     answer.throughputTokensPerSecond,
                     answer.itlMs,
                     answer.prefillTokensPerSecond,
                     answer.ttftMs,
                     answer.source,
                     answer.itlError,
                     answer.ttftError};
  }
  plan.predicted = found->second;
  if (plan.predicted.throughputTokensPerSecond) {
    *plan.predicted.throughputTokensPerSecond *=
        static_cast<double>(std::min<int64_t>(plan.dp, std::max<int64_t>(1, options.concurrency)));
  }
}

}  // namespace headroom
