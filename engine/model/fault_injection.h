// SPDX-License-Identifier: Apache-2.0
// Makes a rank fail on purpose, so that tests can see what its peers and the process do. Off unless the environment asks for it:
//
//   HEADROOM_FAULT="rank=2,step=5,kind=throw"
//
// rank: as in the layout; step: counts the rank's own steps from 0, or "load" for while it loads its weights; kind: "throw" (an
// exception), "error" (an operation that fails), "memory" (std::bad_alloc), "stall" (the rank stops moving until it is told to
// stop).
#pragma once

#include "core/result.h"

#include <atomic>
#include <cstdint>
#include <optional>

namespace headroom::engine {

struct Fault {
  enum class Kind : uint8_t { Throw, Error, Memory, Stall };
  int rank = 0;
  int64_t step = 0;  // -1: while loading
  Kind kind = Kind::Throw;

  // Reads the variable. A text that is not understood is reported on stderr and ignored.
  static std::optional<Fault> fromEnvironment();
  // Does what `kind` says. `stopped` ends a stall.
  Status strike(const std::atomic<bool>& stopped) const;
};

}  // namespace headroom::engine
