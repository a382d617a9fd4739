// SPDX-License-Identifier: Apache-2.0
// Ranks of one process that reach each other's device memory by copies: several ranks on one device (which NCCL refuses), and
// devices without NCCL. Events order the streams, the host threads meet once a collective; sums are in rank order, so all ranks
// have the same bits.
#pragma once

#include "engine/device/cuda/cuda_backend.h"
#include "engine/parallel/communicator.h"

namespace headroom::engine::cuda {

// One a rank, in rank order. Copies between different devices are tried with a pattern when the ranks attach: bytes that arrive
// changed are a reason.
std::vector<std::unique_ptr<Communicator>> makePeerCommunicators(const std::vector<int>& devices);

// Slots in the receiver's memory; the sender writes into them.
std::unique_ptr<PipelineLink> makePeerLink(int depth);

// A pattern from `from`'s memory to `to`'s and back to the host; an error where it does not arrive as it was sent.
Status verifyPeerCopy(int from, int to);

}  // namespace headroom::engine::cuda
