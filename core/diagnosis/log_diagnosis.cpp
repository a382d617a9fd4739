// SPDX-License-Identifier: Apache-2.0
#include "core/diagnosis/log_diagnosis.h"

#include "core/diagnosis/failure_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace headroom {
namespace {

constexpr size_t kLongestLine = 8192, kShownText = 240;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

struct PhaseMark {
  std::string_view words;  // lower case
  LogPhase phase;
};
constexpr PhaseMark kPhases[] = {
    {"loading safetensors checkpoint", LogPhase::Loading},
    {"starting to load model", LogPhase::Loading},
    {"load weight begin", LogPhase::Loading},
    {"loading model weights", LogPhase::Loading},
    {"loading weights", LogPhase::Loading},
    {"load_tensors:", LogPhase::Loading},
    {"model loading took", LogPhase::CacheSizing},
    {"load weight end", LogPhase::CacheSizing},
    {"memory profiling", LogPhase::CacheSizing},
    {"determine_available_memory", LogPhase::CacheSizing},
    {"determine_num_available_blocks", LogPhase::CacheSizing},
    {"init_memory_pool", LogPhase::CacheSizing},
    {"gpu kv cache size", LogPhase::CacheSizing},
    {"kv cache is allocated", LogPhase::CacheSizing},
    {"kv buffer size", LogPhase::CacheSizing},
    {"capturing cuda graph", LogPhase::GraphCapture},
    {"capture cuda graph begin", LogPhase::GraphCapture},
    {"graph capturing", LogPhase::GraphCapture},
    {"capture_model", LogPhase::GraphCapture},
    {"cuda graph capture", LogPhase::GraphCapture},
    {"application startup complete", LogPhase::Serving},
    {"the server is fired up", LogPhase::Serving},
    {"avg prompt throughput", LogPhase::Serving},
    {"prefill batch", LogPhase::Serving},
    {"decode batch", LogPhase::Serving},
    {"server is listening", LogPhase::Serving},
    {"post /v1/", LogPhase::Serving},
    {"\"ready\": true", LogPhase::Serving},
};

std::string engineOf(const std::string& text) {
  for (const auto& [words, engine] : {std::pair{"sglang", "sglang"}, std::pair{"tensorrt_llm", "tensorrt-llm"},
                                      std::pair{"trtllm", "tensorrt-llm"}, std::pair{"llama_model_load", "llama.cpp"},
                                      std::pair{"ggml_", "llama.cpp"}, std::pair{"llama_context", "llama.cpp"},
                                      std::pair{"gguf_init", "llama.cpp"}, std::pair{"headroom-engine", "headroom"},
                                      std::pair{"vllm", "vllm"}}) {
    if (text.find(words) != std::string::npos) return engine;
  }
  return {};
}

// A line that ends in the words of an exception or an error.
bool looksLikeError(const std::string& line) {
  for (const char* words : {"error:", "error ", "exception:", "fatal", "failed", "assert", "abort"}) {
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

std::string shortened(std::string_view line) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front()))) line.remove_prefix(1);
  std::string text(line.substr(0, kShownText));
  // Not in the middle of a character.
  while (line.size() > kShownText && !text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
  if (line.size() > kShownText && !text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
  return text;
}

bool matches(const FailureRow& row, const std::string& line) {
  if (!std::all_of(row.all.begin(), row.all.end(), [&](const char* words) { return line.find(words) != std::string::npos; }))
    return false;
  return row.none.empty() ||
         std::none_of(row.none.begin(), row.none.end(), [&](const char* words) { return line.find(words) != std::string::npos; });
}

}  // namespace

std::string_view phaseName(LogPhase phase) {
  switch (phase) {
    case LogPhase::Start:
      return "start";
    case LogPhase::Loading:
      return "loading weights";
    case LogPhase::CacheSizing:
      return "sizing the KV cache";
    case LogPhase::GraphCapture:
      return "capturing CUDA graphs";
    case LogPhase::Serving:
      return "serving";
    case LogPhase::Unknown:
      break;
  }
  return "unknown";
}

std::vector<std::string> knownFailures() {
  std::vector<std::string> kinds;
  for (const FailureRow& row : failureTable()) {
    if (std::find(kinds.begin(), kinds.end(), row.kind) == kinds.end()) kinds.emplace_back(row.kind);
  }
  return kinds;
}

LogDiagnosis diagnoseLog(std::string_view log) {
  LogDiagnosis diagnosis;
  LogPhase phase = LogPhase::Unknown;
  std::set<std::string> seen;
  std::string lastError;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view whole = log.substr(0, end);
    log = end == std::string_view::npos ? std::string_view() : log.substr(end + 1);
    ++diagnosis.lines;
    const std::string_view shown = whole.substr(0, kLongestLine);
    const std::string line = lower(shown);
    if (diagnosis.engine.empty()) diagnosis.engine = engineOf(line);
    for (const FailureRow& row : failureTable()) {
      if (seen.count(row.kind) || !matches(row, line)) continue;
      LogFinding finding;
      finding.kind = row.kind;
      finding.title = row.title;
      finding.phase = phase;
      finding.line = diagnosis.lines;
      finding.text = shortened(shown);
      finding.certainty = row.certainty;
      finding.why = row.why;
      for (const char* fix : row.fixes) finding.fixes.emplace_back(fix);
      if (row.explain) row.explain(std::string(shown), phase, finding);
      seen.insert(row.kind);
      diagnosis.findings.push_back(std::move(finding));
    }
    // A mark that an error line brings (a stack frame's name) counts for it too, so phases follow the match of other lines only.
    for (const PhaseMark& mark : kPhases) {
      if (line.find(mark.words) == std::string::npos) continue;
      if (mark.phase > phase || phase == LogPhase::Unknown) phase = mark.phase;
    }
    if (looksLikeError(line)) {
      LogFinding unknown;
      unknown.kind = "unknown";
      unknown.title = "an error that is not in the table of known failures";
      unknown.phase = phase;
      unknown.line = diagnosis.lines;
      unknown.text = shortened(shown);
      diagnosis.unknown = std::move(unknown);
    }
  }
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const LogFinding& a, const LogFinding& b) { return a.certainty > b.certainty; });
  if (!diagnosis.findings.empty()) diagnosis.unknown.reset();
  diagnosis.reached = phase;
  return diagnosis;
}

}  // namespace headroom
