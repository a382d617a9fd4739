// SPDX-License-Identifier: Apache-2.0
// An engine that another command starts for itself: headroom-engine serve on a free port, in a process of its own, so that what
// drives it takes nothing of what it measures.
#pragma once

#include "core/result.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace headroom::app {

class EngineProcess {
 public:
  // Starts serve with `model` and `arguments` and waits until it serves. When it ends before, the Error has its last line on
  // stderr in `found` and "status N" in `next`. Its other lines go to our stderr. Gives up once `stop` is set.
  static Result<std::unique_ptr<EngineProcess>> start(const std::string& model, std::vector<std::string> arguments,
                                                      const std::atomic<bool>& stop);
  ~EngineProcess();  // ends it
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;
  const std::string& url() const { return m_url; }

 private:
  EngineProcess() = default;
  pid_t m_process = -1;
  int m_output = -1;
  std::string m_url;
};

}  // namespace headroom::app
