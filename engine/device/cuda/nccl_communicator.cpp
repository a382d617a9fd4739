// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cuda/nccl_communicator.h"

#include "engine/device/cuda/one_shot_sums.h"
#include "engine/parallel/abort_reason.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace headroom::engine::cuda {
namespace {

using Clock = std::chrono::steady_clock;

struct NcclGroup {
  NcclGroup(const NcclLibrary& library_, const std::vector<int>& devices_, double joinSeconds_)
      : library(library_), devices(devices_), joinSeconds(joinSeconds_), oneShot(std::make_shared<OneShotGroup>(devices_)) {}
  const NcclLibrary& library;
  const std::vector<int> devices;
  const double joinSeconds;
  const std::shared_ptr<OneShotGroup> oneShot;
  AbortReason reason;
  std::mutex mutex;
  bool hasId = false;
  NcclUniqueId id{};
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclGroup> group, int rank)
      : m_group(std::move(group)), m_rank(rank), m_oneShot(m_group->oneShot, rank) {}
  ~NcclCommunicator() override {
    if (!m_comm) return;
    // After an abort of any rank the others' kernels would wait for ever: all end the hard way.
    if (m_group->reason.isSet())
      abortComm();
    else
      m_group->library.commDestroy(m_comm);
  }
  int rank() const override { return m_rank; }
  int size() const override { return static_cast<int>(m_group->devices.size()); }

  Status attach(Backend& backend) override {
    m_backend = static_cast<CudaBackend*>(&backend);
    {
      std::lock_guard lock(m_group->mutex);
      if (!m_group->hasId) {
        if (const int result = nccl().getUniqueId(&m_group->id)) return failed("making an id", result);
        m_group->hasId = true;
      }
    }
    NcclConfig config;
    const auto begun = Clock::now();
    int result = nccl().commInitRankConfig(&m_comm, size(), m_group->id, m_rank, &config);
    while (result == kNcclInProgress || result == kNcclSuccess) {
      int state = kNcclSuccess;
      if (const int asked = nccl().commGetAsyncError(m_comm, &state)) return failed("joining", asked);
      result = state;
      if (state != kNcclInProgress) break;
      if (m_group->reason.isSet()) return abortWith(m_group->reason.failure().value());
      const double waited = std::chrono::duration<double>(Clock::now() - begun).count();
      if (waited > m_group->joinSeconds)
        return abortWith(Error{where(),
                               fmt::format("not all of {} ranks in the communicator after {:.0f} s", size(), waited),
                               {},
                               "look at what the other ranks say; NCCL_DEBUG=INFO tells more"});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (result != kNcclSuccess) return failed("joining", result);
    m_backend->setWatch([this] { return watch(); });
    const char* wanted = std::getenv("HEADROOM_CUDA_COMMUNICATOR");  // "nccl": NCCL for every sum
    if (!(wanted && std::string_view(wanted) == "nccl") && !m_oneShot.open(*m_backend) && m_group->reason.isSet())
      return abortWith(m_group->reason.failure().value());
    return {};
  }

  Status allReduceSum(TensorView inout) override {
    if (size() == 1 || inout.rows * inout.cols == 0) return {};
    if (m_group->reason.isSet()) return m_group->reason.failure();
    if (m_oneShot.takes(inout)) {
      m_oneShot.allReduce(inout);
      return {};
    }
    expects(inout.stride == inout.cols, "an all-reduce of rows with gaps");
    const size_t count = static_cast<size_t>(inout.rows * inout.cols);
    return finish(nccl().allReduce(inout.data, inout.data, count, kNcclFloat32, kNcclSum, m_comm, m_backend->stream()),
                  "all-reduce");
  }

  Status gatherColumns(TensorView out, TensorView in, std::span<const int64_t> columnsOfRank) override {
    if (m_group->reason.isSet()) return m_group->reason.failure();
    const cudaStream_t stream = m_backend->stream();
    if (m_rank > 0) {
      if (in.cols == 0) return {};
      expects(in.stride == in.cols, "gathered columns with gaps");
      return finish(nccl().send(in.data, static_cast<size_t>(in.rows * in.cols), kNcclFloat32, 0, m_comm, stream), "send");
    }
    int64_t others = 0;
    for (size_t peer = 1; peer < columnsOfRank.size(); ++peer) others += columnsOfRank[peer];
    if (others == 0) return {};
    cudaError_t error = cudaSuccess;
    auto* scratch = static_cast<float*>(m_backend->peerScratch().atLeast(others * in.rows * 4, error));
    m_backend->note(error, "taking scratch memory");
    if (!scratch) return m_backend->sync();
    int result = nccl().groupStart();
    float* at = scratch;
    for (size_t peer = 1; peer < columnsOfRank.size() && result == kNcclSuccess; ++peer) {
      const int64_t count = columnsOfRank[peer] * in.rows;
      if (count > 0) result = nccl().recv(at, static_cast<size_t>(count), kNcclFloat32, static_cast<int>(peer), m_comm, stream);
      if (result == kNcclInProgress) result = kNcclSuccess;
      at += count;
    }
    const int ended = nccl().groupEnd();
    if (Status status = finish(result != kNcclSuccess ? result : ended, "receive"); !status) return status;
    at = scratch;
    int64_t begin = columnsOfRank[0];
    for (size_t peer = 1; peer < columnsOfRank.size(); ++peer) {
      const int64_t columns = columnsOfRank[peer];
      if (columns > 0) {
        const size_t width = static_cast<size_t>(columns) * 4;
        m_backend->note(cudaMemcpy2DAsync(out.columns(begin, columns).data, static_cast<size_t>(out.stride) * 4, at, width, width,
                                          static_cast<size_t>(in.rows), cudaMemcpyDeviceToDevice, stream),
                        "gathering columns");
      }
      begin += columns;
      at += columns * in.rows;
    }
    return {};
  }

  // Any thread. The communicator itself is aborted on its rank's thread, which looks for the reason wherever it may wait.
  void abort(const Error& reason) override {
    m_group->reason.set(reason);
    m_group->oneShot->abort();
  }
  std::string description() const override {
    int version = 0;
    nccl().getVersion(&version);
    return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100) + describeOneShot(m_oneShot);
  }
  bool replays(int64_t) const override { return true; }

 private:
  const NcclLibrary& nccl() const { return m_group->library; }
  std::string where() const {
    return fmt::format("NCCL rank {} on cuda:{}", m_rank, m_group->devices[static_cast<size_t>(m_rank)]);
  }
  tl::unexpected<Error> failed(const char* doing, int result) {
    Error error{where(), fmt::format("{} (NCCL result {}) while {}", nccl().getErrorString(result), result, doing), {}, {}};
    return abortWith(std::move(error));
  }
  tl::unexpected<Error> abortWith(Error error) {
    abortComm();
    return tl::unexpected<Error>(std::move(error));
  }
  void abortComm() {
    if (NcclComm comm = std::exchange(m_comm, nullptr)) nccl().commAbort(comm);
  }
  // Calls of a non-blocking communicator may still be on their way.
  Status finish(int result, const char* doing) {
    const auto begun = Clock::now();
    while (result == kNcclInProgress) {
      if (m_group->reason.isSet()) return abortWith(m_group->reason.failure().value());
      if (std::chrono::duration<double>(Clock::now() - begun).count() > m_group->joinSeconds) return failed(doing, result);
      int state = kNcclSuccess;
      const int asked = nccl().commGetAsyncError(m_comm, &state);
      result = asked ? asked : state;
      if (result == kNcclInProgress) std::this_thread::yield();
    }
    if (result != kNcclSuccess) return failed(doing, result);
    return {};
  }
  // While sync() waits.
  Status watch() {
    if (Status status = m_group->oneShot->check(m_rank); !status) return status;
    if (m_group->reason.isSet()) return abortWith(m_group->reason.failure().value());
    if (!m_comm) return {};
    int state = kNcclSuccess;
    if (const int asked = nccl().commGetAsyncError(m_comm, &state)) return failed("waiting for peers", asked);
    if (state != kNcclSuccess && state != kNcclInProgress) return failed("waiting for peers", state);
    return {};
  }

  const std::shared_ptr<NcclGroup> m_group;
  const int m_rank;
  CudaBackend* m_backend = nullptr;
  NcclComm m_comm = nullptr;
  OneShotSums m_oneShot;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> makeNcclCommunicators(const NcclLibrary& library, const std::vector<int>& devices,
                                                                 double joinSeconds) {
  auto group = std::make_shared<NcclGroup>(library, devices, joinSeconds);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (size_t rank = 0; rank < devices.size(); ++rank)
    communicators.push_back(std::make_unique<NcclCommunicator>(group, static_cast<int>(rank)));
  return communicators;
}

}  // namespace headroom::engine::cuda
