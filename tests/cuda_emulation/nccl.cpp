// SPDX-License-Identifier: Apache-2.0
// NCCL between emulated devices: communicators meet by their id; collectives run in stream order and wait for all ranks, until
// one aborts.
#include "tests/cuda_emulation/runtime.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct UniqueId {
  char bytes[128];
};
constexpr int kSuccess = 0, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7;

struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  int ranks = 0, joined = 0;
  std::atomic<bool> aborted{false};
  std::atomic<int> error{kSuccess};
  struct Meeting {
    std::vector<const float*> from;
    int arrived = 0, left = 0;
    size_t count = 0;
  };
  std::map<uint64_t, Meeting> meetings;                                 // all-reduces, by number
  std::map<std::pair<int, int>, std::vector<std::vector<float>>> mail;  // by sender and receiver
};
std::mutex g_mutex;
std::map<std::string, std::weak_ptr<Clique>> g_cliques;
std::atomic<int> g_ids{0}, g_collectives{0};

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  bool dead = false;
  uint64_t reductions = 0;
  std::atomic<bool> aborted{false};
};

namespace {

template <class Ready>
bool waitFor(std::unique_lock<std::mutex>& lock, Clique& clique, const std::function<bool()>& stop, Ready ready) {
  while (!ready()) {
    if (clique.aborted || stop()) return false;
    clique.changed.wait_for(lock, std::chrono::milliseconds(2));
  }
  return true;
}

// The fault that strikes this collective: the call never ends by itself.
cudaError_t stuck(Clique& clique, const std::function<bool()>& stop) {
  std::unique_lock lock(clique.mutex);
  waitFor(lock, clique, stop, [] { return false; });
  return cudaSuccess;
}

}  // namespace

extern "C" {
#define HEADROOM_EXPORTED __attribute__((visibility("default")))

HEADROOM_EXPORTED int ncclGetVersion(int* version) {
  *version = 22703;
  return kSuccess;
}
HEADROOM_EXPORTED const char* ncclGetErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    case kInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}
HEADROOM_EXPORTED int ncclGetUniqueId(UniqueId* id) {
  *id = {};
  std::snprintf(id->bytes, sizeof id->bytes, "clique %d", ++g_ids);
  g_collectives = 0;
  return kSuccess;
}
HEADROOM_EXPORTED int ncclCommInitRankConfig(ncclComm** comm, int ranks, UniqueId id, int rank, void*) {
  if (rank < 0 || rank >= ranks) return kInvalidUsage;
  std::lock_guard lock(g_mutex);
  std::shared_ptr<Clique> clique = g_cliques[id.bytes].lock();
  if (!clique) g_cliques[id.bytes] = clique = std::make_shared<Clique>();
  *comm = new ncclComm;
  (*comm)->clique = clique;
  (*comm)->rank = rank;
  (*comm)->dead = headroom::emulation::faultNumber("nccl-dead") == rank;
  std::lock_guard inside(clique->mutex);
  clique->ranks = ranks;
  if (!(*comm)->dead) ++clique->joined;
  return kInProgress;
}
HEADROOM_EXPORTED int ncclCommGetAsyncError(ncclComm* comm, int* error) {
  std::lock_guard lock(comm->clique->mutex);
  *error = comm->clique->joined < comm->clique->ranks ? kInProgress : comm->clique->error.load();
  return kSuccess;
}
HEADROOM_EXPORTED int ncclCommAbort(ncclComm* comm) {
  comm->clique->aborted = true;  // peers' operations would wait for ever; the emulation ends them too
  comm->clique->changed.notify_all();
  return kSuccess;  // operations in streams may still hold the object; it is small
}
HEADROOM_EXPORTED int ncclCommDestroy(ncclComm*) { return kSuccess; }
HEADROOM_EXPORTED int ncclGroupStart() { return kSuccess; }
HEADROOM_EXPORTED int ncclGroupEnd() { return kSuccess; }

HEADROOM_EXPORTED int ncclAllReduce(const void* from, void* to, size_t count, int type, int operation, ncclComm* comm,
                                    cudaStream_t stream) {
  if (type != 7 || operation != 0) return kInvalidUsage;
  // Numbers are given when it runs: a graph runs it again and again.
  const cudaError_t error = headroom::emulation::enqueue(stream, [=, clique = comm->clique](const std::function<bool()>& stop) {
    const int number = ++g_collectives;
    const bool hangs = headroom::emulation::faultNumber("nccl-hang") == number,
               fails = headroom::emulation::faultNumber("nccl-error") == number;
    const uint64_t turn = comm->reductions++;
    if (fails) clique->error = kRemoteError;
    if (fails || hangs) return stuck(*clique, stop);
    std::unique_lock lock(clique->mutex);
    Clique::Meeting& meeting = clique->meetings[turn];
    if (meeting.from.empty()) meeting.from.resize(static_cast<size_t>(clique->ranks));
    meeting.from[static_cast<size_t>(comm->rank)] = static_cast<const float*>(from);
    meeting.count = std::max(meeting.count, count);
    if (meeting.count != count) clique->error = kInvalidUsage;  // ranks disagree
    ++meeting.arrived;
    clique->changed.notify_all();
    if (!waitFor(lock, *clique, stop, [&] { return meeting.arrived == clique->ranks; })) return cudaSuccess;
    std::vector<float> sum(meeting.from[0], meeting.from[0] + count);
    for (int rank = 1; rank < clique->ranks; ++rank)
      for (size_t i = 0; i < count; ++i) sum[i] += meeting.from[static_cast<size_t>(rank)][i];
    ++meeting.left;
    clique->changed.notify_all();
    // Sums are written when all have read.
    if (!waitFor(lock, *clique, stop, [&] { return meeting.left >= clique->ranks; })) return cudaSuccess;
    std::memcpy(to, sum.data(), count * sizeof(float));
    if (++meeting.left == 2 * clique->ranks) clique->meetings.erase(turn);
    return cudaSuccess;
  });
  return error == cudaSuccess ? kSuccess : 1;
}

HEADROOM_EXPORTED int ncclSend(const void* from, size_t count, int type, int peer, ncclComm* comm, cudaStream_t stream) {
  if (type != 7) return kInvalidUsage;
  const cudaError_t error = headroom::emulation::enqueue(stream, [=, clique = comm->clique](const std::function<bool()>&) {
    std::lock_guard lock(clique->mutex);
    const float* values = static_cast<const float*>(from);
    clique->mail[{comm->rank, peer}].emplace_back(values, values + count);
    clique->changed.notify_all();
    return cudaSuccess;
  });
  return error == cudaSuccess ? kSuccess : 1;
}
HEADROOM_EXPORTED int ncclRecv(void* to, size_t count, int type, int peer, ncclComm* comm, cudaStream_t stream) {
  if (type != 7) return kInvalidUsage;
  const cudaError_t error = headroom::emulation::enqueue(stream, [=, clique = comm->clique](const std::function<bool()>& stop) {
    std::unique_lock lock(clique->mutex);
    auto& box = clique->mail[{peer, comm->rank}];
    if (!waitFor(lock, *clique, stop, [&] { return !box.empty(); })) return cudaSuccess;
    if (box.front().size() != count) {
      clique->error = kInvalidUsage;
      return cudaSuccess;
    }
    std::memcpy(to, box.front().data(), count * sizeof(float));
    box.erase(box.begin());
    return cudaSuccess;
  });
  return error == cudaSuccess ? kSuccess : 1;
}

}  // extern "C"
