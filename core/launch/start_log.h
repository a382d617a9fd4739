// SPDX-License-Identifier: Apache-2.0
// What an engine printed while it started, beside what was predicted for the same start; and what the difference says about the
// next plan of this machine and engine.
#pragma once

#include "core/launch/planner.h"

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Figures of one start. Of a rank: of the fullest one that was printed.
struct StartLog {
  EngineSelection engine;
  std::string model;  // as the log names it
  std::optional<int> tp, pp, dp;
  std::optional<int64_t> maxModelLen, maxNumSeqs, maxNumBatchedTokens;
  std::optional<double> utilization;  // gpu_memory_utilization, mem_fraction_static
  std::optional<bool> enforceEager;
  std::optional<Bytes> weights, activations, runtime, graphs, kvCache;  // of a rank
  std::optional<int64_t> kvTokens;
  std::optional<double> maxConcurrency;
  struct Line {
    int number = 0;    // from 1
    std::string term;  // "weights"
    std::string text;
  };
  std::vector<Line> lines;  // where the figures stand
};

// Start-up logs of vLLM, SGLang and llama.cpp. An error names what is missing.
Result<StartLog> readStartLog(std::string_view text, const std::string& where);

struct MeasuredTerm {
  std::string name;  // "weights", "activations", "runtime", "graphs", "kv_cache", "kv_tokens", "max_concurrency"
  std::optional<double> predicted, measured;  // bytes, tokens or requests
  std::string unit;                           // "bytes", "tokens", "requests"
};
// Predicted beside measured, of the layout that the log is about.
std::vector<MeasuredTerm> compareWithLog(const LayoutPlan& plan, const StartLog& log);

// The correction that makes the plan say what was measured. Empty: the log has nothing to correct by.
std::optional<MemoryCorrection> correctionFrom(const LayoutPlan& plan, const StartLog& log);

nlohmann::json correctionToJson(const MemoryCorrection& correction);
std::optional<MemoryCorrection> correctionFromJson(const nlohmann::json& json);
// Under which a correction is kept: machine and engine with major and minor version.
std::string correctionKey(const Machine& machine, const EngineSelection& engine);

}  // namespace headroom
