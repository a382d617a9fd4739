// SPDX-License-Identifier: Apache-2.0
// A thread a rank. What a rank's peers may still write into (its buffers) is freed only after all threads have ended.
#include "engine/model/rank_group.h"

#include "core/memory/cuda_memory.h"
#include "core/memory/cuda_types.h"
#include "engine/model/decoder.h"
#include "engine/model/fault_injection.h"
#include "engine/model/step_feed.h"
#include "engine/parallel/local_communicator.h"

#include <pthread.h>

#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

namespace headroom::engine {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(50);

// Figures that other threads read while the rank works.
struct RankFigures {
  std::atomic<int64_t> loadDone{0}, loadTotal{0}, weights{0}, kvCache{0}, activations{0}, graphs{0}, deviceUsed{0};
};

}  // namespace

struct RankGroup::Impl {
  // One rank. Members are made on its thread and destroyed after all threads have ended, the backend last.
  struct Rank {
    const RankSlice* slice = nullptr;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Communicator> communicator;
    PipelineLink* fromPrevious = nullptr;
    PipelineLink* toNext = nullptr;
    RankWeights weights;
    KvCache cache;
    Workspace workspace;
    RankFigures figures;
    std::thread thread;
  };

  Impl(const ModelSource& model, const ParallelLayout& layout, int replica, const Machine& machine, const EngineLimits& limits,
       const EngineMemoryPlan& memory, const RankGroupOptions& options, LogitsConsumer& consumer, Callbacks callbacks)
      : model(model),
        layout(layout),
        machine(machine),
        limits(limits),
        memory(memory),
        options(options),
        consumer(consumer),
        callbacks(std::move(callbacks)),
        fault(Fault::fromEnvironment()),
        ranks(static_cast<size_t>(layout.tp * layout.pp)),
        feed(layout.tp * layout.pp, layout.pp, options.spin),
        readyGate(layout.tp * layout.pp, false) {
    if (this->options.threads <= 0) this->options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    connect(replica);
    for (size_t i = 0; i < ranks.size(); ++i)
      ranks[i].thread = std::thread([this, i] { runRank(ranks[i], static_cast<int>(i)); });
  }

  ~Impl() {
    stopping.store(true, std::memory_order_release);
    wakeAll(Error{"ranks", "a request to stop", {}, {}});
    for (Rank& rank : ranks) {
      if (rank.thread.joinable()) rank.thread.join();
    }
  }

  // Communicators within each stage, links between neighbours.
  void connect(int replica) {
    for (int stage = 0; stage < layout.pp; ++stage) {
      auto communicators = makeCommunicators(replica, stage);
      for (int tpRank = 0; tpRank < layout.tp; ++tpRank) {
        Rank& rank = ranks[static_cast<size_t>(stage * layout.tp + tpRank)];
        rank.slice = &layout.at(replica, stage, tpRank);
        rank.communicator = std::move(communicators[static_cast<size_t>(tpRank)]);
        if (stage == 0) continue;
        links.push_back(makeLink());
        rank.fromPrevious = links.back().get();
        ranks[static_cast<size_t>((stage - 1) * layout.tp + tpRank)].toNext = links.back().get();
      }
    }
  }

  std::vector<std::unique_ptr<Communicator>> makeCommunicators(int replica, int stage) const {
    if (!usesCuda()) return makeLocalCommunicators(layout.tp, options.spin);
    std::vector<int> devices;
    for (int tpRank = 0; tpRank < layout.tp; ++tpRank) devices.push_back(layout.at(replica, stage, tpRank).gpu);
    std::string why;
    return options.cuda->makeCommunicators(devices, why);
  }
  std::unique_ptr<PipelineLink> makeLink() const {
    if (!usesCuda()) return std::make_unique<LocalPipelineLink>(static_cast<int>(kPipelineDepth), options.spin);
    return options.cuda->makeLink(static_cast<int>(kPipelineDepth));
  }
  bool usesCuda() const { return options.device == DeviceKind::Cuda && options.cuda; }

  std::string nameOf(const Rank& rank) const {
    return fmt::format("rank {} (stage {}, TP rank {}) on {}", rank.slice->rank, rank.slice->stage, rank.slice->tpRank,
                       deviceOf(rank));
  }
  std::string deviceOf(const Rank& rank) const {
    return fmt::format("{}:{}", options.device == DeviceKind::Cpu ? "cpu" : "cuda", rank.slice->gpu);
  }

  // Wakes every wait of every rank, for good.
  void wakeAll(const Error& reason) {
    stopped.store(true, std::memory_order_release);
    for (Rank& rank : ranks) rank.communicator->abort(reason);
    for (const auto& link : links) link->abort(reason);
    readyGate.abort();
    feed.close();
  }

  // The first failure is told; what the woken peers say after it is not.
  void fail(const Error& reason) {
    {
      std::lock_guard lock(failureMutex);
      if (failed) return;
      failed = true;
    }
    wakeAll(reason);
    if (!stopping.load(std::memory_order_acquire) && callbacks.failed) callbacks.failed(reason);
  }

  void runRank(Rank& rank, int reader) {
    pthread_setname_np(pthread_self(), fmt::format("rank {}", rank.slice->rank).substr(0, 15).c_str());
    Status status;
    try {
      status = loadAndServe(rank, reader);
    } catch (const std::bad_alloc&) {
      status = failure("", "no host memory left", "enough memory for this rank",
                       "lower the maximum length or the batch, or use fewer ranks");
    } catch (const std::exception& error) {
      status = failure("", fmt::format("an exception: {}", error.what()));
    }
    if (status) return;
    Error reason = status.error();
    reason.where = reason.where.empty() ? nameOf(rank) : nameOf(rank) + ": " + reason.where;
    fail(reason);
  }

  Status loadAndServe(Rank& rank, int reader) {
    if (Status status = load(rank); !status) return status;
    const bool last = rank.slice->stage == layout.pp - 1 && rank.slice->tpRank == 0;
    Decoder decoder({model, layout, *rank.slice, limits, *rank.backend, *rank.communicator, rank.fromPrevious, rank.toNext,
                     last ? &consumer : nullptr, &stopped},
                    rank.weights, rank.cache, rank.workspace);
    if (Status status = rank.backend->sync(); !status) return status;
    if (rank.backend->records()) {
      // Ranks meet in its sums: none waits there for one that still loads.
      if (!readyGate.arriveAndWait()) return {};
      if (Status status = decoder.prepare(); !status) return status;
      note(rank.figures.graphs, rank.backend->recordedBytes(), rank);
    }
    if (ready.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<int>(ranks.size()) && callbacks.loaded)
      callbacks.loaded();
    if (!readyGate.arriveAndWait()) return {};
    for (int64_t step = 0; const SharedStepPlan plan = feed.take(reader); ++step) {
      if (fault && fault->step == step) {
        if (Status status = strike(rank); !status) return status;
      }
      if (Status status = decoder.run(plan); !status) return status;
    }
    return {};
  }

  Status strike(const Rank& rank) const { return fault->rank == rank.slice->rank ? fault->strike(stopped) : Status{}; }

  Status load(Rank& rank) {
    if (Status status = checkSupported(); !status) return status;
    if (Status status = makeBackend(rank); !status) return status;
    if (fault && fault->step < 0) {
      if (Status status = strike(rank); !status) return status;
    }
    // Loading works in the buffers' memory.
    Result<Workspace> workspace = Workspace::allocate(model.config, *rank.slice, layout.tp, layout.pp, limits, *rank.backend);
    if (!workspace) return tl::unexpected(workspace.error());
    rank.workspace = std::move(*workspace);
    note(rank.figures.activations, rank.workspace.allocated(), rank);
    Result<RankWeights> weights = loadWeights(rank);
    if (!weights) return tl::unexpected(weights.error());
    rank.weights = std::move(*weights);
    note(rank.figures.weights, rank.weights.allocated, rank);
    Result<KvCache> cache = KvCache::allocate(model.config, *rank.slice, limits, memory.kvBlocks, *rank.backend);
    if (!cache) return tl::unexpected(cache.error());
    rank.cache = std::move(*cache);
    note(rank.figures.kvCache, rank.cache.allocated(), rank);
    if (rank.fromPrevious) {
      const WorkspaceShape& shape = rank.workspace.shape();
      rank.fromPrevious->setSlots(rank.workspace.view("pipeline_in", DType::F32, shape.pipelineRows, shape.hidden));
    }
    return {};
  }

  Status checkSupported() const {
    if (options.device == DeviceKind::Cuda && !options.cuda) return failure("device", "no CUDA module", "an open CUDA module");
    if (const TensorEntry* other = usesCuda() ? heldByNoCudaDevice(model, limits.computeDType) : nullptr)
      return failure(other->name,
                     fmt::format("element type {} on CUDA devices", dtypeName(loadedDType(*other, limits.computeDType))),
                     kCudaTypes, "open the model in another quantization, or use --device cpu");
    if (usesCuda() && !cudaHoldsCache(limits.kvDType))
      return failure("--kv-cache-dtype", std::string(dtypeName(limits.kvDType)) + " on CUDA devices", kCudaCacheTypes);
    if (!model.config.missingInEngine.empty())
      return failure(model.config.name, fmt::format("{}", fmt::join(model.config.missingInEngine, ", ")),
                     "parts that this engine's decoder has");
    return {};
  }

  Status makeBackend(Rank& rank) {
    if (Status status = usesCuda() ? makeCudaBackend(rank) : makeCpuBackend(rank); !status) return status;
    if (Status status = rank.communicator->attach(*rank.backend); !status) return status;
    if (usesCuda() && layout.tp > 1)
      if (Status status = rank.communicator->reserve(cudaMessageBytes(model.config, limits).count()); !status) return status;
    if (rank.fromPrevious) {
      if (Status status = rank.fromPrevious->attachReceiver(*rank.backend); !status) return status;
    }
    return rank.toNext ? rank.toNext->attachSender(*rank.backend) : Status{};
  }

  // One arena for what is planned, and what lies between its buffers.
  Status makeCudaBackend(Rank& rank) {
    const RankMemory& planned = memory.ranks[static_cast<size_t>(rank.slice->rank)];
    CudaBackendOptions cuda;
    cuda.device = rank.slice->gpu;
    cuda.arena =
        planned.weights + planned.kvCache + planned.activations + cudaRuntime(model.config, *rank.slice, layout.tp, limits).arena;
    cuda.exact = limits.computeDType == DType::F32;
    Result<std::unique_ptr<Backend>> backend = options.cuda->makeBackend(cuda);
    if (!backend) return tl::unexpected(backend.error());
    rank.backend = std::move(*backend);
    return {};
  }

  Status makeCpuBackend(Rank& rank) {
    CpuBackendOptions cpu;
    cpu.device = rank.slice->gpu;
    cpu.budget = machine.gpus[static_cast<size_t>(rank.slice->gpu)].totalMemory;
    cpu.threads = std::max(1, options.threads / static_cast<int>(ranks.size()));
    cpu.exact = limits.computeDType == DType::F32;
    cpu.spin = options.spin;
    rank.backend = engine::makeCpuBackend(cpu);
    return {};
  }

  Result<RankWeights> loadWeights(Rank& rank) {
    auto lastTold = std::chrono::steady_clock::now() - kProgressInterval;
    return loadRankWeights(model, *rank.slice, layout.tp, limits.computeDType, *rank.backend, [&](Bytes done, Bytes total) {
      rank.figures.loadTotal.store(total.count(), std::memory_order_relaxed);
      rank.figures.loadDone.store(done.count(), std::memory_order_relaxed);
      const auto now = std::chrono::steady_clock::now();
      if (callbacks.loadProgress && (done == total || now - lastTold >= kProgressInterval)) {
        lastTold = now;
        callbacks.loadProgress();
      }
      return !stopped.load(std::memory_order_acquire);
    });
  }

  static void note(std::atomic<int64_t>& figure, Bytes bytes, Rank& rank) {
    figure.store(bytes.count(), std::memory_order_relaxed);
    const Bytes used = rank.backend->allocatedBytes() + rank.backend->recordedBytes();
    rank.figures.deviceUsed.store(used.count(), std::memory_order_relaxed);
  }

  RankState stateOf(const Rank& rank) const {
    const RankSlice& slice = *rank.slice;
    const RankMemory& planned = memory.ranks[static_cast<size_t>(slice.rank)];
    RankState state;
    state.rank = slice.rank;
    state.replica = slice.replica;
    state.stage = slice.stage;
    state.tpRank = slice.tpRank;
    state.device = deviceOf(rank);
    state.layers = slice.layers;
    state.planned = {planned.weights.count(), planned.kvCache.count(), planned.activations.count(), planned.graphs.count()};
    state.allocated = {rank.figures.weights.load(), rank.figures.kvCache.load(), rank.figures.activations.load(),
                       rank.figures.graphs.load()};
    state.deviceUsedBytes = rank.figures.deviceUsed.load();
    state.deviceTotalBytes = machine.gpus[static_cast<size_t>(slice.gpu)].totalMemory.count();
    state.loadBytesDone = rank.figures.loadDone.load();
    state.loadBytesTotal = rank.figures.loadTotal.load();
    return state;
  }

  const ModelSource& model;
  const ParallelLayout& layout;
  const Machine& machine;
  const EngineLimits& limits;
  const EngineMemoryPlan& memory;
  RankGroupOptions options;
  LogitsConsumer& consumer;
  Callbacks callbacks;
  const std::optional<Fault> fault;

  std::vector<std::unique_ptr<PipelineLink>> links;
  std::vector<Rank> ranks;
  StepFeed feed;
  AbortableBarrier readyGate;
  std::atomic<int> ready{0};
  std::atomic<bool> stopping{false};  // the group is being destroyed
  std::atomic<bool> stopped{false};   // ranks shall end: stopping, or one has failed
  std::mutex failureMutex;
  bool failed = false;
};

RankGroup::RankGroup(const ModelSource& model, const ParallelLayout& layout, int replica, const Machine& machine,
                     const EngineLimits& limits, const EngineMemoryPlan& memory, const RankGroupOptions& options,
                     LogitsConsumer& consumer, Callbacks callbacks)
    : m_impl(std::make_unique<Impl>(model, layout, replica, machine, limits, memory, options, consumer, std::move(callbacks))) {}

RankGroup::~RankGroup() = default;

void RankGroup::submit(SharedStepPlan plan) { m_impl->feed.push(std::move(plan)); }

std::vector<RankState> RankGroup::rankStates() const {
  std::vector<RankState> states;
  for (const Impl::Rank& rank : m_impl->ranks) states.push_back(m_impl->stateOf(rank));
  return states;
}

void RankGroup::abort(const Error& reason) { m_impl->fail(reason); }

}  // namespace headroom::engine
