// SPDX-License-Identifier: Apache-2.0
// Communicators and pipeline links between ranks that are threads of this process. Views are F32 in host memory.
//
// A collective writes into the buffers of all its ranks, also after one of them was woken by abort(): the buffers must live until
// all threads of the group have ended.
#pragma once

#include "engine/parallel/communicator.h"

#include <memory>
#include <vector>

namespace headroom::engine {

// One communicator a rank, in rank order. `spin`: ranks may spin shortly while they wait, because each has a core.
std::vector<std::unique_ptr<Communicator>> makeLocalCommunicators(int size, bool spin);

// A bounded queue of preallocated slots. send() on one thread, receive() on one other, abort() on any.
class LocalPipelineLink : public PipelineLink {
 public:
  LocalPipelineLink(int depth, bool spin);
  ~LocalPipelineLink() override;
  void setSlots(TensorView slots) override;
  Status send(TensorView hidden) override;
  Status receive(TensorView hidden) override;
  void abort(const Error& reason) override;

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

}  // namespace headroom::engine
