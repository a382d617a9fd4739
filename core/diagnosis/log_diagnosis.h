// SPDX-License-Identifier: Apache-2.0
// What went wrong, from an engine's log: the innermost cause first, in which phase it happened, and what to do. A table of known
// failures; each row says by which words it is known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Where in its life the engine was when a line was written.
enum class LogPhase : unsigned char { Unknown, Start, Loading, CacheSizing, GraphCapture, Serving };
std::string_view phaseName(LogPhase phase);

struct LogFinding {
  std::string kind;   // stable id: "shm_too_small"
  std::string title;  // one clause
  std::string why;    // with the numbers of the log
  std::vector<std::string> fixes;  // cheapest first
  LogPhase phase = LogPhase::Unknown;
  int line = 0;      // from 1
  std::string text;  // of that line, shortened
  int certainty = 0;  // rows that name a cause stand above rows that name a symptom
};

struct LogDiagnosis {
  std::string engine;  // "vllm", "sglang", "llama.cpp", "tensorrt-llm", "headroom"; empty: not recognized
  std::vector<LogFinding> findings;  // the cause first; each kind once, at its first line
  std::optional<LogFinding> unknown;  // the last error of a log in which nothing known was found
  int lines = 0;
  LogPhase reached = LogPhase::Unknown;  // the last phase of the log
};

LogDiagnosis diagnoseLog(std::string_view log);

// All ids, for tests and documentation.
std::vector<std::string> knownFailures();

}  // namespace headroom
