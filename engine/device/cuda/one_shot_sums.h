// SPDX-License-Identifier: Apache-2.0
// Small sums of ranks on devices of their own, each in one kernel that reads the peers' memory (kernels/all_reduce.h). Used by a
// communicator for messages up to kOneShotBytes, and only where every pair of devices has peer access and a pattern added up to
// the right bits on every rank; else the communicator's own way stays.
#pragma once

#include "engine/device/cuda/cuda_backend.h"
#include "engine/device/cuda/kernels/all_reduce.h"
#include "engine/parallel/abortable_barrier.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace headroom::engine::cuda {

inline constexpr int64_t kOneShotBytes = int64_t{256} << 10;

// What the ranks share. It frees their memory when the last of them has gone, so none reads what is no more.
class OneShotGroup {
 public:
  explicit OneShotGroup(const std::vector<int>& devices);
  ~OneShotGroup();
  OneShotGroup(const OneShotGroup&) = delete;
  OneShotGroup& operator=(const OneShotGroup&) = delete;
  // Any thread: wakes ranks that meet, and ends kernels that wait for a peer.
  void abort();
  // A peer that did not come to one of the rank's sums; the rank's thread.
  Status check(int rank) const;

 private:
  friend class OneShotSums;
  struct Rank {
    int device = 0;
    std::array<void*, 2> buffers{};
    void *flags = nullptr, *turns = nullptr;
    int* failed = nullptr;  // pinned, so that host and kernel both see it
    std::string reason;     // why this rank cannot; empty: it can
  };
  std::vector<Rank> m_ranks;
  AbortableBarrier m_barrier;
  std::atomic<bool> m_aborted{false};
};

// One rank's part; its rank's thread only.
class OneShotSums {
 public:
  OneShotSums(std::shared_ptr<OneShotGroup> group, int rank) : m_group(std::move(group)), m_rank(rank) {}
  // All ranks together. False: not used, and reason() says why; an abort of a peer also ends it so.
  bool open(CudaBackend& backend);
  bool isReady() const { return m_ready; }
  const std::string& reason() const { return m_reason; }
  // By the sizes alone, so that all ranks say the same.
  bool takes(TensorView view) const {
    return m_ready && view.rows * view.cols * 4 <= kOneShotBytes && (view.rows <= 1 || view.stride == view.cols);
  }
  void allReduce(TensorView inout);

 private:
  std::string prepare();                  // own memory and access to the peers'; empty: done
  std::string addUpPattern();             // the trial
  bool agree(const std::string& reason);  // whether all ranks can
  OneShotGroup::Rank& own() { return m_group->m_ranks[static_cast<size_t>(m_rank)]; }

  const std::shared_ptr<OneShotGroup> m_group;
  const int m_rank;
  CudaBackend* m_backend = nullptr;
  OneShotPeers m_peers;
  bool m_ready = false;
  std::string m_reason;
};

// For a communicator's description.
inline std::string describeOneShot(const OneShotSums& sums) {
  if (sums.isReady()) return fmt::format(", sums up to {} KiB in one kernel over peer access", kOneShotBytes >> 10);
  return sums.reason().empty() ? std::string() : ", no sums over peer access: " + sums.reason();
}

}  // namespace headroom::engine::cuda
