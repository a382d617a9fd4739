// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cuda/one_shot_sums.h"

#include "engine/device/cuda/peer_communicator.h"

namespace headroom::engine::cuda {
namespace {

// Looks at a flag before a kernel gives its peer up: some seconds in the trial; later abort() ends waits, and this bounds them.
constexpr uint32_t kTrialPatience = 1u << 24, kPatience = 0xffffffffu;
constexpr int kStopped = -1;  // in a rank's `failed` word: abort() was called

}  // namespace

OneShotGroup::OneShotGroup(const std::vector<int>& devices)
    : m_ranks(devices.size()), m_barrier(static_cast<int>(devices.size()), false) {
  for (size_t i = 0; i < devices.size(); ++i) {
    m_ranks[i].device = devices[i];
    void* word = nullptr;
    if (cudaHostAlloc(&word, 64, cudaHostAllocPortable) != cudaSuccess) {
      cudaGetLastError();
      continue;
    }
    m_ranks[i].failed = static_cast<int*>(word);
    *m_ranks[i].failed = 0;
  }
}

OneShotGroup::~OneShotGroup() {
  for (Rank& rank : m_ranks) {
    cudaSetDevice(rank.device);
    for (void* memory : {rank.buffers[0], rank.buffers[1], rank.flags, rank.turns})
      if (memory) cudaFree(memory);
    if (rank.failed) cudaFreeHost(rank.failed);
  }
}

void OneShotGroup::abort() {
  m_aborted.store(true, std::memory_order_release);
  for (Rank& rank : m_ranks)
    if (rank.failed) std::atomic_ref<int>(*rank.failed).store(kStopped, std::memory_order_release);
  m_barrier.abort();
}

bool OneShotSums::agree(const std::string& reason) {
  own().reason = reason;
  if (!m_group->m_barrier.arriveAndWait()) {
    m_reason = "a rank failed";
    return false;
  }
  for (const OneShotGroup::Rank& rank : m_group->m_ranks)
    if (!rank.reason.empty()) {
      m_reason = rank.reason;
      return false;
    }
  return true;
}

bool OneShotSums::open(CudaBackend& backend) {
  m_backend = &backend;
  backend.keepUntilEnd(m_group);
  const int ranks = static_cast<int>(m_group->m_ranks.size());
  if (ranks < 2 || ranks > kOneShotRanks) {  // the same on all of them
    m_reason = fmt::format("{} ranks, where 2 to {} can", ranks, kOneShotRanks);
    return false;
  }
  if (!agree(prepare())) return false;
  m_peers.ranks = ranks;
  m_peers.rank = m_rank;
  for (int peer = 0; peer < ranks; ++peer) {
    const OneShotGroup::Rank& other = m_group->m_ranks[static_cast<size_t>(peer)];
    for (size_t turn = 0; turn < 2; ++turn) m_peers.buffers[turn][peer] = other.buffers[turn];
    m_peers.flags[peer] = static_cast<uint32_t*>(other.flags);
  }
  m_peers.turns = static_cast<uint32_t*>(own().turns);
  m_peers.failed = own().failed;
  // The reasons of the first meeting are read by all before one of the second may be written.
  if (!m_group->m_barrier.arriveAndWait()) return false;
  m_peers.patience = kTrialPatience;
  if (!agree(addUpPattern())) return false;
  m_peers.patience = kPatience;
  m_ready = true;
  return true;
}

std::string OneShotSums::prepare() {
  OneShotGroup::Rank& mine = own();
  if (!mine.failed) return "no pinned memory";
  const auto problem = [&](const char* doing, cudaError_t error) {
    cudaGetLastError();
    return fmt::format("cuda:{}: {} while {}", mine.device, cudaGetErrorString(error), doing);
  };
  for (size_t peer = 0; peer < m_group->m_ranks.size(); ++peer) {
    const int other = m_group->m_ranks[peer].device;
    if (static_cast<int>(peer) == m_rank) continue;
    if (other == mine.device) return fmt::format("two ranks on cuda:{}", other);
    int can = 0;
    if (const cudaError_t error = cudaDeviceCanAccessPeer(&can, mine.device, other))
      return problem("asking for peer access", error);
    if (!can) return fmt::format("cuda:{} does not reach the memory of cuda:{}", mine.device, other);
    cudaError_t error = cudaSetDevice(mine.device);
    if (!error) error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();
      error = cudaSuccess;
    }
    if (error) return problem("turning on peer access", error);
    if (const Status status = verifyPeerCopy(other, mine.device); !status) return status.error().message();
  }
  cudaError_t error = cudaSetDevice(mine.device);
  for (void*& buffer : mine.buffers)
    if (!error) error = cudaMalloc(&buffer, static_cast<size_t>(kOneShotBytes));
  if (!error) error = cudaMalloc(&mine.flags, static_cast<size_t>(kOneShotFlagBytes));
  if (!error) error = cudaMalloc(&mine.turns, kOneShotBlocks * sizeof(uint32_t));
  // For the trial, pinned memory of copies included: a rank that has none then would leave its peers' kernels waiting.
  void* trial = error ? nullptr : m_backend->peerScratch().atLeast(kOneShotBytes, error);
  if (trial) {
    std::vector<float> copied(static_cast<size_t>(kOneShotBytes / 4));
    m_backend->copyToDevice(trial, copied.data(), Bytes(kOneShotBytes));
    m_backend->copyToHost(copied.data(), trial, Bytes(kOneShotBytes));
    if (const Status status = m_backend->sync(); !status) return status.error().message();
  }
  const cudaStream_t stream = m_backend->stream();
  if (!error) error = cudaMemsetAsync(mine.flags, 0, static_cast<size_t>(kOneShotFlagBytes), stream);
  if (!error) error = cudaMemsetAsync(mine.turns, 0, kOneShotBlocks * sizeof(uint32_t), stream);
  if (error) return problem("taking memory for sums", error);
  const Status status = m_backend->sync();
  return status ? std::string() : status.error().message();
}

// Whole numbers that only the right sum of all ranks' gives, over both buffers, the largest message and one that no block
// divides.
std::string OneShotSums::addUpPattern() {
  const int ranks = m_peers.ranks;
  const auto value = [](int rank, int64_t i, int turn) { return static_cast<float>((i * 31 + rank * 7 + turn) % 1009 << rank); };
  for (int turn = 0; turn < 3; ++turn) {
    const int64_t count = turn == 2 ? 77 : kOneShotBytes / 4;
    std::vector<float> sent(static_cast<size_t>(count)), received(sent.size());
    for (int64_t i = 0; i < count; ++i) sent[static_cast<size_t>(i)] = value(m_rank, i, turn);
    cudaError_t error = cudaSuccess;
    void* memory = m_backend->peerScratch().atLeast(kOneShotBytes, error);
    if (!memory) return fmt::format("no memory for a trial: {}", cudaGetErrorString(error));
    const Bytes size(count * 4);
    m_backend->copyToDevice(memory, sent.data(), size);
    oneShotAllReduce(m_backend->stream(), TensorView::of(memory, DType::F32, 1, count), m_peers);
    m_backend->copyToHost(received.data(), memory, size);
    if (const Status status = m_backend->sync(); !status) return status.error().message();
    if (const Status status = m_group->check(m_rank); !status) return status.error().message();
    for (int64_t i = 0; i < count; ++i) {
      float expected = 0;
      for (int rank = 0; rank < ranks; ++rank) expected += value(rank, i, turn);
      if (received[static_cast<size_t>(i)] != expected)
        return fmt::format("a sum over peers' memory on cuda:{} gave {} for {}", own().device, received[static_cast<size_t>(i)],
                           expected);
    }
  }
  return {};
}

void OneShotSums::allReduce(TensorView inout) { oneShotAllReduce(m_backend->stream(), inout, m_peers); }

Status OneShotGroup::check(int rank) const {
  const int* word = m_ranks[static_cast<size_t>(rank)].failed;
  const int failed = word ? std::atomic_ref<int>(*const_cast<int*>(word)).load(std::memory_order_acquire) : 0;
  if (failed <= 0) return {};
  return failure(fmt::format("rank {} of {}", rank, m_ranks.size()), fmt::format("rank {} did not come to a sum", failed - 1),
                 "all ranks in every step", "look at what that rank says");
}

}  // namespace headroom::engine::cuda
