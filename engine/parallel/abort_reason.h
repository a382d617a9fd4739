// SPDX-License-Identifier: Apache-2.0
// Why a group of ranks was woken: the first reason given. Any thread.
#pragma once

#include "core/result.h"

#include <mutex>
#include <optional>

namespace headroom::engine {

class AbortReason {
 public:
  void set(const Error& reason) {
    std::lock_guard lock(m_mutex);
    if (!m_reason) m_reason = reason;
  }
  bool isSet() const {
    std::lock_guard lock(m_mutex);
    return m_reason.has_value();
  }
  tl::unexpected<Error> failure() const {
    std::lock_guard lock(m_mutex);
    return tl::unexpected<Error>(m_reason.value_or(Error{"ranks", "a wait that was given up", {}, {}}));
  }

 private:
  mutable std::mutex m_mutex;
  std::optional<Error> m_reason;
};

}  // namespace headroom::engine
