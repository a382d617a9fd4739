// SPDX-License-Identifier: Apache-2.0
#include "app/engine/engine_process.h"

#include "core/json_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

namespace headroom::app {
namespace {

constexpr std::chrono::seconds kPatience{15};  // with an engine that is told to stop

}  // namespace

Result<std::unique_ptr<EngineProcess>> EngineProcess::start(const std::string& model, std::vector<std::string> arguments,
                                                            const std::atomic<bool>& stop) {
  std::vector<std::string> words{"headroom-engine", "serve", model};
  if (std::find(arguments.begin(), arguments.end(), "--port") == arguments.end()) words.insert(words.end(), {"--port", "0"});
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  int output[2], errors[2];
  if (pipe2(output, O_CLOEXEC) != 0) return failure("headroom-engine serve", std::strerror(errno), "a pipe");
  if (pipe2(errors, O_CLOEXEC) != 0) {
    close(output[0]);
    close(output[1]);
    return failure("headroom-engine serve", std::strerror(errno), "a pipe");
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);  // Ctrl-C is for the test, which then stops the engine
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    dup2(output[1], STDOUT_FILENO);
    dup2(errors[1], STDERR_FILENO);
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    execv("/proc/self/exe", pointers.data());
    _exit(127);
  }
  close(output[1]);
  close(errors[1]);
  auto process = std::unique_ptr<EngineProcess>(new EngineProcess);
  process->m_process = child;
  process->m_output = output[0];
  if (child < 0) {
    close(errors[0]);
    return failure("headroom-engine serve", std::strerror(errno), "a process");
  }

  std::string line, log, lastLog;
  auto passOn = [&](std::string_view bytes) {
    log += bytes;
    for (size_t end; (end = log.find('\n')) != std::string::npos; log.erase(0, end + 1)) {
      if (!lastLog.empty()) std::fprintf(stderr, "%s\n", lastLog.c_str());
      lastLog = log.substr(0, end);
    }
  };
  bool ended = false;
  while (!ended && !stop && line.find('\n') == std::string::npos) {
    pollfd files[2] = {{output[0], POLLIN, 0}, {errors[0], POLLIN, 0}};
    poll(files, 2, 100);
    char bytes[4096];
    if (files[1].revents) {
      const ssize_t count = read(errors[0], bytes, sizeof bytes);
      if (count > 0) passOn({bytes, static_cast<size_t>(count)});
    }
    if (files[0].revents) {
      const ssize_t count = read(output[0], bytes, sizeof bytes);
      if (count > 0) line.append(bytes, static_cast<size_t>(count));
      ended = count == 0;
    }
  }
  const nlohmann::json ready = readJsonText(line);
  if (ready.is_object() && ready.contains("url") && ready["url"].is_string()) {
    process->m_url = ready["url"].get<std::string>();
    if (!lastLog.empty()) std::fprintf(stderr, "%s\n", lastLog.c_str());
    // Its later lines go where ours go.
    std::thread([file = errors[0]] {
      char bytes[4096];
      for (ssize_t count; (count = read(file, bytes, sizeof bytes)) > 0;)
        std::fwrite(bytes, 1, static_cast<size_t>(count), stderr);
      close(file);
    }).detach();
    return process;
  }
  for (char bytes[4096];;) {
    pollfd file{errors[0], POLLIN, 0};
    if (poll(&file, 1, 0) <= 0) break;
    const ssize_t count = read(errors[0], bytes, sizeof bytes);
    if (count <= 0) break;
    passOn({bytes, static_cast<size_t>(count)});
  }
  close(errors[0]);
  int status = 0;
  if (stop) return failure("headroom-engine serve", "a signal", "a server that is ready");
  waitpid(child, &status, 0);
  process->m_process = -1;
  constexpr std::string_view kName = "headroom-engine: ";
  if (lastLog.starts_with(kName)) lastLog.erase(0, kName.size());
  return failure("headroom-engine serve", lastLog.empty() ? "the engine ended without a word" : lastLog, {},
                 fmt::format("status {}", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
}

EngineProcess::~EngineProcess() {
  if (m_process > 0) {
    kill(m_process, SIGTERM);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (waitpid(m_process, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) kill(m_process, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  if (m_output >= 0) close(m_output);
}

}  // namespace headroom::app
