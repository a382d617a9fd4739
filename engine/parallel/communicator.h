// SPDX-License-Identifier: Apache-2.0
// Collectives of one group of ranks (a TP group) and the links between pipeline stages. Called unconditionally: with one rank they do nothing.
// The reduction is in rank order, so every rank gets the same bits in each run.
#pragma once

#include "core/result.h"
#include "engine/device/tensor.h"

#include <span>
#include <string>

namespace headroom::engine {

// Used from its rank's thread only, except abort(), which any thread may call and which wakes all ranks of the group: their calls return the
// reason from then on.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Once, before the first collective, on the rank's thread: the device whose memory the views are in. Ranks of a group attach together.
  virtual Status attach([[maybe_unused]] Backend& backend) { return {}; }
  // After attach(): takes what messages of up to so many bytes need, so that no collective takes memory later.
  virtual Status reserve([[maybe_unused]] int64_t bytes) { return {}; }
  virtual Status allReduceSum(TensorView inout) = 0;
  // out (rows, sum of columns) on rank 0 gets every rank's `in` (rows, own columns) side by side; on other ranks `out` is not touched.
  virtual Status gatherColumns(TensorView out, TensorView in, std::span<const int64_t> columnsOfRank) = 0;
  virtual void abort(const Error& reason) = 0;
  // How collectives are done, for people; after attach().
  virtual std::string description() const { return "through the host"; }
  // Whether an all-reduce of so many bytes, and a gather, may be recorded with a step and replayed (Backend::record): the host has no part in them.
  virtual bool replays([[maybe_unused]] int64_t bytes) const { return size() == 1; }
};

// Hidden states from a pipeline stage to the next, one link per TP rank. Bounded: send() waits only when `depth` messages are not yet received.
class PipelineLink {
 public:
  virtual ~PipelineLink() = default;
  // Memory of the slots on the receiver's device, (depth * largest message, columns), borrowed. Before the first send.
  virtual void setSlots(TensorView slots) = 0;
  // Once each, on the sender's and on the receiver's thread, before the first message.
  virtual Status attachSender([[maybe_unused]] Backend& backend) { return {}; }
  virtual Status attachReceiver([[maybe_unused]] Backend& backend) { return {}; }
  virtual Status send(TensorView hidden) = 0;
  virtual Status receive(TensorView hidden) = 0;  // as many rows as the matching send
  virtual void abort(const Error& reason) = 0;
};

}  // namespace headroom::engine
