// SPDX-License-Identifier: Apache-2.0
// What a load test measures and how it is summed up. Definitions are those of vLLM's `vllm bench serve`, so that figures compare:
// TTFT from sending to the first text, ITL between two pieces of text, TPOT = (E2E - TTFT) / (output tokens - 1), E2E from
// sending to the last piece; percentiles interpolate linearly as numpy's do; deviations are of the population.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headroom::app {

// One request, times in seconds.
struct RequestRecord {
  double sentAt = 0;           // since the run began
  std::optional<double> ttft;  // empty: no text came
  std::vector<double> itl;     // gaps between pieces of text
  double latency = 0;          // to the last piece
  int64_t promptTokens = 0;    // as the server counted, else as planned
  int64_t outputTokens = 0;    // as the server counted, else pieces
  bool countedByServer = false;
  int status = 0;            // of HTTP; 0: none came
  std::string error;         // empty: it completed
  bool interrupted = false;  // ended by the user: neither completed nor failed
  std::string text;          // the answer
  bool completed() const { return error.empty() && !interrupted; }
  std::optional<double> tpot() const;  // empty with fewer than two output tokens
};

struct Summary {
  size_t count = 0;
  double mean = 0, median = 0, deviation = 0, least = 0, most = 0;
  std::vector<std::pair<double, double>> percentiles;  // asked for, value
};

// Linear interpolation between the two nearest of `sorted`, which is not empty; `percent` from 0 to 100.
double percentile(const std::vector<double>& sorted, double percent);
// Empty without values.
std::optional<Summary> summarize(std::vector<double> values, const std::vector<double>& percents);

// Upper limits in milliseconds; a request is good when it keeps all that are given.
struct Objectives {
  std::optional<double> ttftMs, tpotMs, e2eMs;
  bool any() const { return ttftMs || tpotMs || e2eMs; }
  bool areKeptBy(const RequestRecord& record) const;
};

struct RunReport {
  double requestRate = 0;  // asked for; infinity: all at once
  double burstiness = 1;
  int64_t maxConcurrency = 0;  // 0: without limit
  size_t planned = 0, completed = 0, failed = 0, interrupted = 0;
  double duration = 0;                                                      // seconds from the first request to the last answer
  int64_t inputTokens = 0, outputTokens = 0;                                // of completed requests
  bool countedByServer = true;                                              // output tokens of all completed requests
  double requestThroughput = 0, outputThroughput = 0, totalThroughput = 0;  // per second
  std::optional<double> goodput;  // requests per second that keep the objectives; empty: none given
  int64_t peakConcurrency = 0;
  double peakOutputThroughput = 0;  // pieces of text in the busiest second
  std::optional<Summary> ttftMs, tpotMs, itlMs, e2eMs;
  std::map<std::string, size_t> errors;  // what failed, how often
  std::vector<RequestRecord> records;    // in order of planning
};

// `duration` in seconds.
RunReport report(std::vector<RequestRecord> records, double duration, const Objectives& objectives,
                 const std::vector<double>& percents);

}  // namespace headroom::app
