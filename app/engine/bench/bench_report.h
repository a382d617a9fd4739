// SPDX-License-Identifier: Apache-2.0
// A load test's figures as a table, JSON or CSV. Field names are those of vLLM's result files where it has them.
#pragma once

#include "app/engine/bench/bench_statistics.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace headroom::app {

struct BenchReport {
  std::string date, endpoint, backend, model, dataset;
  std::vector<RunReport> runs;
  bool interrupted = false;
  std::vector<std::string> notes;                                   // what a reader of the figures should know
  std::vector<std::string> metrics{"ttft", "tpot", "itl", "e2el"};  // to show
  bool detailed = false;                                            // each request, in JSON
};

std::string tableText(const BenchReport& report);
nlohmann::ordered_json reportJson(const BenchReport& report);  // "schema": "headroom.bench/1"
std::string csvText(const BenchReport& report);                // a row a run

}  // namespace headroom::app
