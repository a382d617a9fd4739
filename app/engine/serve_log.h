// SPDX-License-Identifier: Apache-2.0
// What serve writes on stderr: one line each, with time and level. Thread-safe.
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

namespace headroom::app {

class Log {
 public:
  void info(const std::string& text) { line("INFO", text); }
  void warning(const std::string& text) { line("WARNING", text); }
  // Overwritten by the next one; terminals only.
  void progress(const std::string& text) {
    if (!m_terminal) return;
    std::lock_guard lock(m_mutex);
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
    m_progress = true;
  }
  void endProgress() {
    std::lock_guard lock(m_mutex);
    clearProgress();
  }

 private:
  void line(const char* level, const std::string& text) {
    const auto now = std::chrono::system_clock::now();
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
    const std::string stamp =
        fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03}", fmt::localtime(std::chrono::system_clock::to_time_t(now)), milliseconds);
    std::lock_guard lock(m_mutex);
    clearProgress();
    std::fprintf(stderr, "%s %s %s\n", stamp.c_str(), level, text.c_str());
  }
  void clearProgress() {
    if (!std::exchange(m_progress, false)) return;
    std::fputs("\r\033[K", stderr);
  }
  std::mutex m_mutex;
  bool m_progress = false;
  const bool m_terminal = isatty(STDERR_FILENO) != 0;
};

}  // namespace headroom::app
