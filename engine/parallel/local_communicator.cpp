// SPDX-License-Identifier: Apache-2.0
// Collectives over shared memory: each rank reduces its own part of the elements and writes the sum to all ranks, so the work is
// divided and the bits are the same everywhere.
#include "engine/parallel/local_communicator.h"

#include "engine/parallel/abort_reason.h"
#include "engine/parallel/abortable_barrier.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace headroom::engine {
namespace {

void copyRows(TensorView to, TensorView from) {
  if (from.cols == 0) return;  // a rank without columns has no memory to name
  if (to.data == from.data) return;
  for (int64_t row = 0; row < from.rows; ++row)
    std::memcpy(to.row<float>(row), from.row<float>(row), static_cast<size_t>(from.cols) * sizeof(float));
}

struct LocalGroup {
  LocalGroup(int size, bool spin) : barrier(size, spin), published(size) {}
  AbortableBarrier barrier;
  std::vector<TensorView> published;
  TensorView gathered;  // of rank 0
  AbortReason reason;
};

class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<LocalGroup> group, int rank) : m_group(std::move(group)), m_rank(rank) {}
  int rank() const override { return m_rank; }
  int size() const override { return static_cast<int>(m_group->published.size()); }

  Status allReduceSum(TensorView inout) override {
    if (size() == 1) return {};
    m_group->published[m_rank] = inout;
    if (!m_group->barrier.arriveAndWait()) return m_group->reason.failure();
    reduceOwnPart(inout);
    if (!m_group->barrier.arriveAndWait()) return m_group->reason.failure();
    return {};
  }

  Status gatherColumns(TensorView out, TensorView in, std::span<const int64_t> columnsOfRank) override {
    if (size() == 1) {
      copyRows(out, in);
      return {};
    }
    if (m_rank == 0) m_group->gathered = out;
    if (!m_group->barrier.arriveAndWait()) return m_group->reason.failure();
    int64_t begin = 0;
    for (int peer = 0; peer < m_rank; ++peer) begin += columnsOfRank[peer];
    expects(in.cols == columnsOfRank[m_rank] && begin + in.cols <= m_group->gathered.cols,
            "gathered columns of the ranks do not add up");
    copyRows(m_group->gathered.columns(begin, in.cols), in);
    if (!m_group->barrier.arriveAndWait()) return m_group->reason.failure();
    return {};
  }

  void abort(const Error& reason) override {
    m_group->reason.set(reason);
    m_group->barrier.abort();
  }

 private:
  // Sums this rank's part of the elements in rank order and writes it to every rank.
  void reduceOwnPart(TensorView shape) {
    constexpr int64_t kLine = 16;  // floats of a cache line: two ranks never write the same line of an aligned buffer
    const int64_t elements = shape.rows * shape.cols;
    const int64_t part = roundUp(ceilDiv(elements, size()), kLine);
    const int64_t begin = std::min(m_rank * part, elements), end = std::min(begin + part, elements);
    for (int64_t at = begin; at < end;) {
      const int64_t row = at / shape.cols, column = at % shape.cols;
      const int64_t count = std::min(end - at, shape.cols - column);
      reduceRun(row, column, count);
      at += count;
    }
  }

  void reduceRun(int64_t row, int64_t column, int64_t count) {
    std::array<float, 256> sum;
    for (int64_t at = 0; at < count; at += static_cast<int64_t>(sum.size())) {
      const int64_t n = std::min<int64_t>(count - at, sum.size());
      const float* first = m_group->published[0].row<float>(row) + column + at;
      std::copy_n(first, n, sum.data());
      for (int peer = 1; peer < size(); ++peer) {
        const float* values = m_group->published[peer].row<float>(row) + column + at;
        for (int64_t i = 0; i < n; ++i) sum[i] += values[i];
      }
      for (const TensorView& view : m_group->published) std::copy_n(sum.data(), n, view.row<float>(row) + column + at);
    }
  }

  std::shared_ptr<LocalGroup> m_group;
  const int m_rank;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> makeLocalCommunicators(int size, bool spin) {
  auto group = std::make_shared<LocalGroup>(size, spin);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) communicators.push_back(std::make_unique<LocalCommunicator>(group, rank));
  return communicators;
}

struct LocalPipelineLink::State {
  State(int depth, bool spin) : depth(depth), spin(spin) {}
  const int depth;
  const bool spin;
  TensorView slots;
  std::atomic<int> sent{0}, received{0};  // messages so far, modulo 2^32
  std::atomic<bool> aborted{false};
  AbortReason reason;

  TensorView slot(int message, TensorView like) const {
    const int64_t rows = slots.rows / depth;
    expects(slots.data && like.rows <= rows && like.cols == slots.cols, "a pipeline message is larger than its slot");
    const int64_t index = static_cast<uint32_t>(message) % static_cast<uint32_t>(depth);
    return TensorView::of(slots.row<float>(index * rows), slots.dtype, like.rows, like.cols);
  }
};

LocalPipelineLink::LocalPipelineLink(int depth, bool spin) : m_state(std::make_unique<State>(depth, spin)) {
  expects(depth > 0 && (depth & (depth - 1)) == 0, "the depth of a pipeline link is a power of two");
}
LocalPipelineLink::~LocalPipelineLink() = default;

void LocalPipelineLink::setSlots(TensorView slots) { m_state->slots = slots; }

// The counters differ by depth at most. Unsigned arithmetic lets them wrap around.
Status LocalPipelineLink::send(TensorView hidden) {
  const int message = m_state->sent.load(std::memory_order_relaxed);
  for (;;) {
    const int received = m_state->received.load(std::memory_order_acquire);
    if (m_state->aborted.load(std::memory_order_acquire)) return m_state->reason.failure();
    if (static_cast<uint32_t>(message) - static_cast<uint32_t>(received) < static_cast<uint32_t>(m_state->depth)) break;
    waitWhileEqual(m_state->received, received, m_state->spin);
  }
  copyRows(m_state->slot(message, hidden), hidden);
  m_state->sent.fetch_add(1, std::memory_order_acq_rel);
  m_state->sent.notify_all();
  return {};
}

Status LocalPipelineLink::receive(TensorView hidden) {
  const int message = m_state->received.load(std::memory_order_relaxed);
  for (;;) {
    const int sent = m_state->sent.load(std::memory_order_acquire);
    if (m_state->aborted.load(std::memory_order_acquire)) return m_state->reason.failure();
    if (sent != message) break;
    waitWhileEqual(m_state->sent, sent, m_state->spin);
  }
  copyRows(hidden, m_state->slot(message, hidden));
  m_state->received.fetch_add(1, std::memory_order_acq_rel);
  m_state->received.notify_all();
  return {};
}

void LocalPipelineLink::abort(const Error& reason) {
  m_state->reason.set(reason);
  m_state->aborted.store(true, std::memory_order_release);
  // Both counters move, so that whoever waits on them looks again.
  for (std::atomic<int>* counter : {&m_state->sent, &m_state->received}) {
    counter->fetch_add(1, std::memory_order_acq_rel);
    counter->notify_all();
  }
}

}  // namespace headroom::engine
