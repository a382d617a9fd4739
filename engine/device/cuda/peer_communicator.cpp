// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cuda/peer_communicator.h"

#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/one_shot_sums.h"
#include "engine/parallel/abort_reason.h"
#include "engine/parallel/abortable_barrier.h"

#include <algorithm>
#include <array>

namespace headroom::engine::cuda {
namespace {

// What a rank shows its peers. Two buffers in turn: a peer may still read the one of the last collective while the next begins.
struct PeerRank {
  CudaBackend* backend = nullptr;
  int device = 0;
  struct Turn {
    void* data = nullptr;
    int64_t size = 0;
    cudaEvent_t ready = nullptr, done = nullptr;  // own data is there; this rank has read all peers'
  };
  std::array<Turn, 2> turns;
  std::vector<void*> outgrown;
};

struct PeerGroup {
  explicit PeerGroup(const std::vector<int>& devices)
      : oneShot(std::make_shared<OneShotGroup>(devices)),
        barrier(static_cast<int>(devices.size()), false),
        ranks(devices.size()) {
    for (size_t i = 0; i < devices.size(); ++i) ranks[i].device = devices[i];
  }
  ~PeerGroup() {
    for (PeerRank& rank : ranks) {
      cudaSetDevice(rank.device);
      for (PeerRank::Turn& turn : rank.turns) {
        if (turn.data) cudaFree(turn.data);
        for (cudaEvent_t event : {turn.ready, turn.done})
          if (event) cudaEventDestroy(event);
      }
      for (void* memory : rank.outgrown) cudaFree(memory);
    }
  }
  const std::shared_ptr<OneShotGroup> oneShot;
  AbortableBarrier barrier;
  AbortReason reason;
  std::vector<PeerRank> ranks;
};

class PeerCommunicator final : public Communicator {
 public:
  PeerCommunicator(std::shared_ptr<PeerGroup> group, int rank)
      : m_group(std::move(group)), m_rank(rank), m_oneShot(m_group->oneShot, rank) {}
  int rank() const override { return m_rank; }
  int size() const override { return static_cast<int>(m_group->ranks.size()); }

  Status attach(Backend& backend) override {
    m_backend = static_cast<CudaBackend*>(&backend);
    own().backend = m_backend;
    if (size() == 1) return {};
    for (PeerRank::Turn& turn : own().turns)
      for (cudaEvent_t* event : {&turn.ready, &turn.done})
        if (const cudaError_t error = cudaEventCreateWithFlags(event, cudaEventDisableTiming))
          return tl::unexpected(cudaFailure(own().device, "making events", error));
    m_backend->setWatch([group = m_group, rank = m_rank]() -> Status {
      if (group->reason.isSet()) return group->reason.failure();
      return group->oneShot->check(rank);
    });
    for (int peer = 0; peer < size(); ++peer)
      if (m_group->ranks[static_cast<size_t>(peer)].device != own().device)
        if (Status status = verifyPeerCopy(m_group->ranks[static_cast<size_t>(peer)].device, own().device); !status)
          return status;
    if (!m_oneShot.open(*m_backend) && m_group->reason.isSet()) return m_group->reason.failure();
    return useDevice(own().device);
  }

  Status reserve(int64_t bytes) override {
    if (size() == 1) return {};
    if (Status status = useDevice(own().device); !status) return status;
    for (PeerRank::Turn& turn : own().turns)
      if (Status status = grow(turn, bytes); !status) return status;
    const auto isElsewhere = [this](const PeerRank& peer) { return peer.device != own().device; };
    cudaError_t error = cudaSuccess;
    if (std::any_of(m_group->ranks.begin(), m_group->ranks.end(), isElsewhere)) m_backend->peerScratch().atLeast(bytes, error);
    if (error) return tl::unexpected(cudaFailure(own().device, "taking memory for collectives", error));
    return {};
  }

  Status allReduceSum(TensorView inout) override {
    if (size() == 1) return {};
    const int64_t elements = inout.rows * inout.cols;
    if (m_oneShot.takes(inout) && elements > 0) {
      if (m_group->reason.isSet()) return m_group->reason.failure();
      m_oneShot.allReduce(inout);
      return {};
    }
    if (Status status = publish(inout); !status) return status;
    const cudaStream_t stream = m_backend->stream();
    const PeerRank::Turn& mine = turnOf(m_rank);
    void* scratch = nullptr;
    for (int peer = 0; peer < size(); ++peer) {
      const PeerRank& other = m_group->ranks[static_cast<size_t>(peer)];
      const void* from = turnOf(peer).data;
      if (peer != m_rank) m_backend->note(cudaStreamWaitEvent(stream, turnOf(peer).ready, 0), "waiting for a peer");
      if (other.device != own().device) {
        cudaError_t error = cudaSuccess;
        if (!scratch) scratch = m_backend->peerScratch().atLeast(elements * 4, error);
        m_backend->note(error, "taking scratch memory");
        if (!scratch) break;
        m_backend->note(cudaMemcpyPeerAsync(scratch, own().device, from, other.device, static_cast<size_t>(elements) * 4, stream),
                        "copying from a peer");
        from = scratch;
      }
      const TensorView view = TensorView::of(const_cast<void*>(from), DType::F32, inout.rows, inout.cols);
      if (peer == 0)
        cuda::convert(stream, inout, view);
      else
        cuda::add(stream, inout, view);
    }
    m_backend->note(cudaEventRecord(mine.done, stream), "recording an event");
    ++m_collectives;
    return {};
  }

  Status gatherColumns(TensorView out, TensorView in, std::span<const int64_t> columnsOfRank) override {
    if (size() == 1) {
      if (out.data != in.data) cuda::convert(m_backend->stream(), out, in);
      return {};
    }
    expects(in.cols == columnsOfRank[static_cast<size_t>(m_rank)], "gathered columns of the ranks do not add up");
    if (Status status = publish(in); !status) return status;
    const cudaStream_t stream = m_backend->stream();
    int64_t begin = 0;
    for (int peer = 0; m_rank == 0 && peer < size(); ++peer) {
      const int64_t columns = columnsOfRank[static_cast<size_t>(peer)];
      const TensorView to = out.columns(begin, columns);
      begin += columns;
      if (columns == 0 || to.data == in.data) continue;
      const PeerRank& other = m_group->ranks[static_cast<size_t>(peer)];
      if (peer != m_rank) m_backend->note(cudaStreamWaitEvent(stream, turnOf(peer).ready, 0), "waiting for a peer");
      const size_t bytes = static_cast<size_t>(in.rows * columns) * 4;
      void* from = turnOf(peer).data;
      if (other.device != own().device) {
        cudaError_t error = cudaSuccess;
        void* scratch = m_backend->peerScratch().atLeast(static_cast<int64_t>(bytes), error);
        m_backend->note(error, "taking scratch memory");
        if (!scratch) break;
        m_backend->note(cudaMemcpyPeerAsync(scratch, own().device, from, other.device, bytes, stream), "copying from a peer");
        from = scratch;
      }
      const size_t width = static_cast<size_t>(columns) * 4;
      m_backend->note(cudaMemcpy2DAsync(to.data, static_cast<size_t>(to.stride) * 4, from, width, width,
                                        static_cast<size_t>(in.rows), cudaMemcpyDeviceToDevice, stream),
                      "gathering columns");
    }
    m_backend->note(cudaEventRecord(turnOf(m_rank).done, stream), "recording an event");
    ++m_collectives;
    return {};
  }

  void abort(const Error& reason) override {
    m_group->reason.set(reason);
    m_group->barrier.abort();
    m_group->oneShot->abort();
  }
  std::string description() const override { return "copies between the ranks' memory" + describeOneShot(m_oneShot); }

 private:
  PeerRank& own() { return m_group->ranks[static_cast<size_t>(m_rank)]; }
  PeerRank::Turn& turnOf(int rank) {
    return m_group->ranks[static_cast<size_t>(rank)].turns[static_cast<size_t>(m_collectives % 2)];
  }

  // What peers may still read is kept.
  Status grow(PeerRank::Turn& turn, int64_t bytes) {
    if (turn.size >= bytes) return {};
    if (turn.data) own().outgrown.push_back(turn.data);
    turn.data = nullptr;
    turn.size = 0;
    if (const cudaError_t error = cudaMalloc(&turn.data, static_cast<size_t>(bytes))) {
      cudaGetLastError();
      return tl::unexpected(cudaFailure(own().device, "taking memory for collectives", error));
    }
    turn.size = bytes;
    return {};
  }

  // Copies `view` where peers may read it, and meets them. When a rank is through the meeting, all have recorded the events of
  // this collective and all that came before.
  Status publish(TensorView view) {
    PeerRank::Turn& turn = turnOf(m_rank);
    const cudaStream_t stream = m_backend->stream();
    const int64_t bytes = std::max<int64_t>(view.rows * view.cols * 4, 4);
    if (m_collectives >= 2)
      for (int peer = 0; peer < size(); ++peer)
        if (peer != m_rank) m_backend->note(cudaStreamWaitEvent(stream, turnOf(peer).done, 0), "waiting for a peer");
    if (Status status = grow(turn, bytes); !status) return status;
    if (view.cols > 0) {
      const size_t width = static_cast<size_t>(view.cols) * 4;
      m_backend->note(cudaMemcpy2DAsync(turn.data, width, view.data, static_cast<size_t>(view.stride) * 4, width,
                                        static_cast<size_t>(view.rows), cudaMemcpyDeviceToDevice, stream),
                      "copying for peers");
    }
    m_backend->note(cudaEventRecord(turn.ready, stream), "recording an event");
    if (!m_group->barrier.arriveAndWait()) return m_group->reason.failure();
    return {};
  }

  const std::shared_ptr<PeerGroup> m_group;
  const int m_rank;
  CudaBackend* m_backend = nullptr;
  int64_t m_collectives = 0;
  OneShotSums m_oneShot;
};

// The counters and slots of LocalPipelineLink, with events in place of host copies.
class PeerLink final : public PipelineLink {
 public:
  explicit PeerLink(int depth) : m_slots(static_cast<size_t>(depth)) {}
  ~PeerLink() override {
    for (Slot& slot : m_slots) {
      if (slot.sent) cudaEventDestroy(slot.sent);
      if (slot.freed) cudaEventDestroy(slot.freed);
    }
  }
  void setSlots(TensorView slots) override { m_memory = slots; }
  Status attachSender(Backend& backend) override {
    m_sender = static_cast<CudaBackend*>(&backend);
    return makeEvents(*m_sender, &Slot::sent);
  }
  Status attachReceiver(Backend& backend) override {
    m_receiver = static_cast<CudaBackend*>(&backend);
    return makeEvents(*m_receiver, &Slot::freed);
  }

  Status send(TensorView hidden) override {
    const int message = m_sent.load(std::memory_order_relaxed);
    for (;;) {
      const int received = m_received.load(std::memory_order_acquire);
      if (m_aborted.load(std::memory_order_acquire)) return m_reason.failure();
      if (static_cast<uint32_t>(message) - static_cast<uint32_t>(received) < m_slots.size()) break;
      waitWhileEqual(m_received, received, false);
    }
    Slot& slot = m_slots[static_cast<uint32_t>(message) % m_slots.size()];
    const cudaStream_t stream = m_sender->stream();
    if (slot.wasFreed) m_sender->note(cudaStreamWaitEvent(stream, slot.freed, 0), "waiting for the next stage");
    m_sender->note(cudaMemcpyPeerAsync(slotView(message, hidden).data, m_receiver->device(), hidden.data, m_sender->device(),
                                       bytesOf(hidden), stream),
                   "sending hidden states");
    m_sender->note(cudaEventRecord(slot.sent, stream), "recording an event");
    m_sent.fetch_add(1, std::memory_order_acq_rel);
    m_sent.notify_all();
    return {};
  }

  Status receive(TensorView hidden) override {
    const int message = m_received.load(std::memory_order_relaxed);
    for (;;) {
      const int sent = m_sent.load(std::memory_order_acquire);
      if (m_aborted.load(std::memory_order_acquire)) return m_reason.failure();
      if (sent != message) break;
      waitWhileEqual(m_sent, sent, false);
    }
    Slot& slot = m_slots[static_cast<uint32_t>(message) % m_slots.size()];
    const cudaStream_t stream = m_receiver->stream();
    m_receiver->note(cudaStreamWaitEvent(stream, slot.sent, 0), "waiting for the stage before");
    m_receiver->note(
        cudaMemcpyAsync(hidden.data, slotView(message, hidden).data, bytesOf(hidden), cudaMemcpyDeviceToDevice, stream),
        "receiving hidden states");
    m_receiver->note(cudaEventRecord(slot.freed, stream), "recording an event");
    slot.wasFreed = true;
    m_received.fetch_add(1, std::memory_order_acq_rel);
    m_received.notify_all();
    return {};
  }

  void abort(const Error& reason) override {
    m_reason.set(reason);
    m_aborted.store(true, std::memory_order_release);
    for (std::atomic<int>* counter : {&m_sent, &m_received}) {
      counter->fetch_add(1, std::memory_order_acq_rel);
      counter->notify_all();
    }
  }

 private:
  struct Slot {
    cudaEvent_t sent = nullptr, freed = nullptr;
    bool wasFreed = false;  // written by the receiver before it counts the message, read by the sender after
  };
  Status makeEvents(CudaBackend& backend, cudaEvent_t Slot::*which) {
    for (Slot& slot : m_slots)
      if (const cudaError_t error = cudaEventCreateWithFlags(&(slot.*which), cudaEventDisableTiming))
        return tl::unexpected(cudaFailure(backend.device(), "making events", error));
    return {};
  }
  static size_t bytesOf(TensorView view) {
    expects(view.stride == view.cols, "hidden states with gaps were sent");
    return static_cast<size_t>(view.rows * view.cols) * 4;
  }
  TensorView slotView(int message, TensorView shape) const {
    const int64_t rows = m_memory.rows / static_cast<int64_t>(m_slots.size());
    expects(shape.rows <= rows && shape.cols <= m_memory.cols, "a message is larger than a slot");
    const int64_t first = static_cast<int64_t>(static_cast<uint32_t>(message) % m_slots.size()) * rows;
    return TensorView::of(m_memory.row<float>(first), DType::F32, shape.rows, shape.cols);
  }

  std::vector<Slot> m_slots;
  TensorView m_memory;
  CudaBackend *m_sender = nullptr, *m_receiver = nullptr;
  std::atomic<int> m_sent{0}, m_received{0};
  std::atomic<bool> m_aborted{false};
  AbortReason m_reason;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> makePeerCommunicators(const std::vector<int>& devices) {
  auto group = std::make_shared<PeerGroup>(devices);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (size_t rank = 0; rank < devices.size(); ++rank)
    communicators.push_back(std::make_unique<PeerCommunicator>(group, static_cast<int>(rank)));
  return communicators;
}

std::unique_ptr<PipelineLink> makePeerLink(int depth) { return std::make_unique<PeerLink>(depth); }

Status verifyPeerCopy(int from, int to) {
  constexpr size_t kWords = 1 << 14;
  std::vector<uint32_t> sent(kWords), received(kWords);
  for (size_t i = 0; i < kWords; ++i) sent[i] = static_cast<uint32_t>(i * 2654435761u + static_cast<uint32_t>(from * 131 + to));
  const size_t bytes = kWords * sizeof(uint32_t);
  void *source = nullptr, *target = nullptr;
  cudaStream_t stream = nullptr;
  cudaError_t error = cudaSetDevice(from);
  if (!error) error = cudaMalloc(&source, bytes);
  if (!error) error = cudaSetDevice(to);
  if (!error) error = cudaMalloc(&target, bytes);
  if (!error) error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (!error) error = cudaMemcpyAsync(source, sent.data(), bytes, cudaMemcpyHostToDevice, stream);
  if (!error) error = cudaMemcpyPeerAsync(target, to, source, from, bytes, stream);
  if (!error) error = cudaMemcpyAsync(received.data(), target, bytes, cudaMemcpyDeviceToHost, stream);
  if (!error) error = cudaStreamSynchronize(stream);
  if (stream) cudaStreamDestroy(stream);
  if (target) cudaFree(target);
  if (source) cudaFree(source);
  if (error) return tl::unexpected(cudaFailure(to, fmt::format("trying a copy from cuda:{}", from), error));
  for (size_t i = 0; i < kWords; ++i)
    if (sent[i] != received[i])
      return failure(fmt::format("copy from cuda:{} to cuda:{}", from, to),
                     fmt::format("{:#010x} at byte {}", received[i], i * 4), fmt::format("{:#010x}", sent[i]),
                     "turn off PCIe ACS or the IOMMU's translation, or use one device");
  return {};
}

}  // namespace headroom::engine::cuda
