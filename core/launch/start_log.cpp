// SPDX-License-Identifier: Apache-2.0
#include "core/launch/start_log.h"

#include <algorithm>
#include <charconv>
#include <regex>

namespace headroom {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0, kMiB = 1024.0 * 1024.0;
constexpr size_t kLongestLine = 4096;  // configuration lines are long; nothing of use stands behind this
constexpr int64_t kMostFigure = int64_t{1} << 50;  // a pebibyte of memory

// "142,352" and "5.32"; empty when it is no number.
std::optional<double> numberOf(std::string text) {
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ',' || c == '_'; }), text.end());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// One figure that a line may hold.
struct Figure {
  const char* term;
  std::regex pattern;  // the first group is the number
  double scale;        // to bytes, tokens or requests
};

std::regex words(const char* pattern) { return std::regex(pattern, std::regex::ECMAScript | std::regex::icase | std::regex::optimize); }

const std::vector<Figure>& vllmFigures() {
  static const std::vector<Figure> figures{
      {"weights", words("model loading took ([0-9.]+) ?gi?b"), kGiB},
      {"weights", words("loading model weights took ([0-9.]+) ?gi?b"), kGiB},
      {"weights", words("model weights take ([0-9.]+) ?gi?b"), kGiB},
      {"weights", words("weights memory: ([0-9.]+) ?gi?b"), kGiB},
      {"activations", words("pytorch activation peak memory takes ([0-9.]+) ?gi?b"), kGiB},
      {"activations", words("torch peak memory increase: ([0-9.]+) ?gi?b"), kGiB},
      {"runtime", words("non_torch_memory takes ([0-9.]+) ?gi?b"), kGiB},
      {"runtime", words("non-torch forward increase memory: ([0-9.]+) ?gi?b"), kGiB},
      {"graphs", words("graph captur\\w+ finished in [0-9.]+ secs?, took ([0-9.]+) ?gi?b"), kGiB},
      {"kv_cache", words("available kv cache memory: (-?[0-9.]+) ?gi?b"), kGiB},
      {"kv_cache", words("memory reserved for kv cache is (-?[0-9.]+) ?gi?b"), kGiB},
      {"kv_tokens", words("gpu kv cache size: ([0-9,]+) tokens"), 1},
      {"max_concurrency", words("maximum concurrency for [0-9,]+ tokens per request: ([0-9.]+)x"), 1},
      {"max_model_len", words("maximum concurrency for ([0-9,]+) tokens per request"), 1},
      {"max_model_len", words("max_seq_len=([0-9]+)"), 1},
      {"max_model_len", words("'max_model_len': ([0-9]+)"), 1},
      {"gpu_blocks", words("# (?:gpu|cuda) blocks: ([0-9]+)"), 1},
      {"tp", words("tensor_parallel_size'?[=:] ?([0-9]+)"), 1},
      {"pp", words("pipeline_parallel_size'?[=:] ?([0-9]+)"), 1},
      {"dp", words("data_parallel_size'?[=:] ?([0-9]+)"), 1},
      {"utilization", words("gpu_memory_utilization'?[=:] ?([0-9.]+)"), 1},
      {"max_num_seqs", words("max_num_seqs'?[=:] ?([0-9]+)"), 1},
      {"max_num_batched_tokens", words("max_num_batched_tokens'?[=:] ?([0-9]+)"), 1},
  };
  return figures;
}

const std::vector<Figure>& sgLangFigures() {
  static const std::vector<Figure> figures{
      {"weights", words("load weight end\\..*mem usage=([0-9.]+) ?gi?b"), kGiB},
      {"graphs", words("capture cuda graph end\\..*mem usage=([0-9.]+) ?gi?b"), kGiB},
      {"k_cache", words("kv cache is allocated\\..*k size: ([0-9.]+) ?gi?b"), kGiB},
      {"v_cache", words("kv cache is allocated\\..*v size: ([0-9.]+) ?gi?b"), kGiB},
      {"kv_cache", words("kv cache is allocated\\..*kv size: ([0-9.]+) ?gi?b"), kGiB},
      {"kv_tokens", words("kv cache is allocated\\. #tokens: ([0-9]+)"), 1},
      {"kv_tokens", words("max_total_num_tokens=([0-9]+)"), 1},
      {"max_model_len", words("context_len=([0-9]+)"), 1},
      {"tp", words("tp_size=([0-9]+)"), 1},
      {"pp", words("pp_size=([0-9]+)"), 1},
      {"dp", words("dp_size=([0-9]+)"), 1},
      {"utilization", words("mem_fraction_static=([0-9.]+)"), 1},
  };
  return figures;
}

const std::vector<Figure>& llamaCppFigures() {
  static const std::vector<Figure> figures{
      {"weights", words("(?:cuda|rocm|vulkan|metal)[0-9]* model buffer size *= *([0-9.]+) mib"), kMiB},
      {"kv_cache", words("(?:cuda|rocm|vulkan|metal)[0-9]* kv buffer size *= *([0-9.]+) mib"), kMiB},
      {"activations", words("(?:cuda|rocm|vulkan|metal)[0-9]* compute buffer size *= *([0-9.]+) mib"), kMiB},
      {"kv_tokens", words("llama_context: n_ctx *= *([0-9]+)"), 1},
      {"kv_tokens", words("llama_new_context_with_model: n_ctx *= *([0-9]+)"), 1},
      {"max_model_len", words("n_ctx_(?:per_seq|seq) *(?:= *|\\()([0-9]+)"), 1},
  };
  return figures;
}

std::optional<std::string> firstGroup(const std::string& line, const std::regex& pattern) {
  std::smatch match;
  return std::regex_search(line, match, pattern) ? std::optional(match[1].str()) : std::nullopt;
}

EngineKind kindOf(std::string_view text, bool& known) {
  known = true;
  auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (has("sglang") || has("Load weight begin") || has("max_total_num_tokens=") || has("KV Cache is allocated")) return EngineKind::SgLang;
  if (has("llama_model_loader") || has("model buffer size") || has("llama_context:") || has("llama_new_context")) return EngineKind::LlamaCpp;
  known = has("vllm") || has("vLLM") || has("GPU KV cache size") || has("Model loading took") || has("Available KV cache memory");
  return EngineKind::Vllm;
}

class Reader {
 public:
  explicit Reader(StartLog& log) : m_log(log) {}

  void take(const std::string& term, double value, int number, const std::string& line) {
    const Bytes bytes(static_cast<int64_t>(value));
    const auto count = static_cast<int64_t>(value);
    bool kept = true;
    // The fullest rank weighs, the one with the least cache decides.
    if (term == "weights") keepLargest(m_log.weights, bytes);
    else if (term == "activations") keepLargest(m_log.activations, bytes);
    else if (term == "runtime") keepLargest(m_log.runtime, bytes);
    else if (term == "graphs") keepLargest(m_log.graphs, bytes);
    else if (term == "kv_cache") m_log.kvCache = m_log.kvCache ? std::min(*m_log.kvCache, bytes) : bytes;
    else if (term == "k_cache") m_log.kvCache = bytes;
    else if (term == "v_cache")
      m_log.kvCache = std::min(m_log.kvCache.value_or(Bytes()), Bytes(kMostFigure)) + bytes;
    else if (term == "kv_tokens") m_log.kvTokens = m_log.kvTokens ? std::min(*m_log.kvTokens, count) : count;
    else if (term == "gpu_blocks") m_log.kvTokens = count * 16;
    else if (term == "max_concurrency") m_log.maxConcurrency = value;
    else if (kept = false; term == "max_model_len") m_log.maxModelLen = count;
    else if (term == "tp") m_log.tp = static_cast<int>(std::clamp<int64_t>(count, 1, 4096));
    else if (term == "pp") m_log.pp = static_cast<int>(std::clamp<int64_t>(count, 1, 4096));
    else if (term == "dp") m_log.dp = static_cast<int>(std::clamp<int64_t>(count, 1, 4096));
    else if (term == "utilization") m_log.utilization = value;
    else if (term == "max_num_seqs") m_log.maxNumSeqs = count;
    else if (term == "max_num_batched_tokens") m_log.maxNumBatchedTokens = count;
    if (kept) m_log.lines.push_back({number, term == "k_cache" || term == "v_cache" ? "kv_cache" : term, line.substr(0, 200)});
  }

 private:
  static void keepLargest(std::optional<Bytes>& kept, Bytes value) { kept = kept ? std::max(*kept, value) : value; }
  StartLog& m_log;
};

double bytesOf(const std::optional<Bytes>& bytes) { return static_cast<double>(bytes ? bytes->count() : 0); }

// The rank that a log's figures of the fullest rank are about: the one with the most weights.
const RankPlan* fullestRank(const LayoutPlan& plan) {
  const RankPlan* fullest = nullptr;
  for (const RankPlan& rank : plan.ranks) {
    if (!fullest || bytesOf(rank.weights) > bytesOf(fullest->weights)) fullest = &rank;
  }
  return fullest;
}

}  // namespace

Result<StartLog> readStartLog(std::string_view text, const std::string& where) {
  StartLog log;
  bool known = false;
  log.engine.kind = kindOf(text, known);
  if (!known) return failure(where, "no line of an engine's start", "a start-up log of vLLM, SGLang or llama.cpp");
  const std::vector<Figure>& figures = log.engine.kind == EngineKind::SgLang     ? sgLangFigures()
                                       : log.engine.kind == EngineKind::LlamaCpp ? llamaCppFigures()
                                                                                 : vllmFigures();
  static const std::regex vllmVersion = words("v?llm(?: api server version| engine)[^0-9]{0,12}\\(?v?([0-9]+\\.[0-9]+(?:\\.[0-9]+)?)");
  static const std::regex sgLangVersion = words("sglang[^0-9=]{0,20}(?:version)?[ =:v]*([0-9]+\\.[0-9]+(?:\\.[0-9]+)?)");
  static const std::regex vllmModel = words("(?:model=|'model': |'model_tag': )'([^']+)'"), sgLangModel = words("model_path='([^']+)'"),
                          llamaModel = words("loaded meta data .* from ([^ ]+) \\(");
  Reader reader(log);
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string line(text.substr(0, std::min(end, kLongestLine)));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    ++number;
    for (const Figure& figure : figures) {
      if (const auto found = firstGroup(line, figure.pattern)) {
        // What no machine holds is no figure.
        if (const auto value = numberOf(*found); value && *value * figure.scale <= static_cast<double>(kMostFigure))
          reader.take(figure.term, *value * figure.scale, number, line);
      }
    }
    const bool sgLang = log.engine.kind == EngineKind::SgLang, vllm = log.engine.kind == EngineKind::Vllm;
    if (log.engine.version.empty() && (vllm || sgLang)) {
      if (const auto version = firstGroup(line, vllm ? vllmVersion : sgLangVersion)) log.engine.version = *version;
    }
    if (log.model.empty()) {
      if (const auto model = firstGroup(line, vllm ? vllmModel : sgLang ? sgLangModel : llamaModel)) log.model = *model;
    }
    if (vllm && line.find("enforce_eager=True") != std::string::npos) log.enforceEager = true;
    if (vllm && line.find("'enforce_eager': True") != std::string::npos) log.enforceEager = true;
  }
  if (!log.weights && !log.kvCache && !log.kvTokens) {
    return failure(where, fmt::format("a log of {} without memory figures", engineName(log.engine.kind)),
                   "lines such as \"Model loading took …\" or \"GPU KV cache size: …\"", "log at the level INFO, from the start on");
  }
  return log;
}

std::vector<MeasuredTerm> compareWithLog(const LayoutPlan& plan, const StartLog& log) {
  std::vector<MeasuredTerm> terms;
  const RankPlan* rank = fullestRank(plan);
  auto add = [&](const char* name, const std::optional<Bytes>& predicted, const std::optional<Bytes>& measured) {
    if (!measured) return;
    MeasuredTerm term{name, {}, bytesOf(measured), "bytes"};
    if (predicted) term.predicted = bytesOf(predicted);
    terms.push_back(term);
  };
  std::optional<Bytes> leastCache;
  for (const RankPlan& each : plan.ranks) {
    if (each.kvCache) leastCache = leastCache ? std::min(*leastCache, *each.kvCache) : *each.kvCache;
  }
  add("weights", rank ? rank->weights : std::nullopt, log.weights);
  add("activations", rank ? rank->activations : std::nullopt, log.activations);
  add("runtime", rank ? rank->runtime : std::nullopt, log.runtime);
  add("graphs", rank ? rank->graphs : std::nullopt, log.graphs);
  // llama.cpp makes a cache of the asked length, not of what is left: compare it at that length.
  const bool asAsked = log.engine.kind == EngineKind::LlamaCpp;
  if (asAsked && leastCache && log.kvTokens && plan.kvTokens.value_or(0) > 0) {
    leastCache = Bytes(static_cast<int64_t>(bytesOf(leastCache) * static_cast<double>(*log.kvTokens) / static_cast<double>(*plan.kvTokens)));
  }
  add("kv_cache", leastCache, log.kvCache);
  if (log.kvTokens && !asAsked) {
    MeasuredTerm term{"kv_tokens", {}, static_cast<double>(*log.kvTokens), "tokens"};
    if (plan.kvTokens) term.predicted = static_cast<double>(*plan.kvTokens);
    terms.push_back(term);
  }
  if (log.maxConcurrency) terms.push_back({"max_concurrency", plan.maxConcurrency, log.maxConcurrency, "requests"});
  return terms;
}

std::optional<MemoryCorrection> correctionFrom(const LayoutPlan& plan, const StartLog& log) {
  MemoryCorrection correction;
  correction.severalRanks = plan.tp > 1;
  const RankPlan* rank = fullestRank(plan);
  if (!rank) return std::nullopt;
  int64_t explained = 0;
  auto differ = [&](const std::optional<Bytes>& predicted, const std::optional<Bytes>& measured, Bytes& into) {
    if (!predicted || !measured) return;
    into = *measured - *predicted;
    explained += into.count();
  };
  // Weights are counted, and differ from model to model: what the log says of them goes into the rest.
  differ(rank->activations, log.activations, correction.activations);
  // vLLM prints what graphs took, not what it had charged for them.
  if (log.engine.kind != EngineKind::Vllm) differ(rank->graphs, log.graphs, correction.graphs);
  std::optional<Bytes> cache;
  for (const RankPlan& each : plan.ranks) {
    if (each.kvCache) cache = cache ? std::min(*cache, *each.kvCache) : *each.kvCache;
  }
  if (cache && log.kvCache && log.engine.kind != EngineKind::LlamaCpp) {
    // What the other terms do not explain of the cache that is missing.
    correction.runtime = *cache - *log.kvCache - Bytes(explained);
  } else {
    differ(rank->runtime, log.runtime, correction.runtime);
    if (!log.weights && !log.activations && !log.runtime) return std::nullopt;
  }
  correction.source = fmt::format("start-up log of {} {}", engineName(log.engine.kind), log.engine.version);
  return correction;
}

nlohmann::json correctionToJson(const MemoryCorrection& c) {
  return {{"weights_bytes", c.weights.count()},         {"activation_bytes", c.activations.count()},
          {"graph_bytes", c.graphs.count()},            {"runtime_bytes", c.runtime.count()},
          {"several_ranks", c.severalRanks},            {"source", c.source}};
}

std::optional<MemoryCorrection> correctionFromJson(const nlohmann::json& json) {
  if (!json.is_object()) return std::nullopt;
  MemoryCorrection correction;
  for (const auto& [key, into] : {std::pair{"weights_bytes", &correction.weights}, std::pair{"activation_bytes", &correction.activations},
                                  std::pair{"graph_bytes", &correction.graphs}, std::pair{"runtime_bytes", &correction.runtime}}) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number_integer()) return std::nullopt;
    *into = Bytes(found->get<int64_t>());
  }
  const auto several = json.find("several_ranks"), source = json.find("source");
  if (several == json.end() || !several->is_boolean() || source == json.end() || !source->is_string()) return std::nullopt;
  correction.severalRanks = several->get<bool>();
  correction.source = source->get<std::string>();
  return correction;
}

std::string correctionKey(const Machine& machine, const EngineSelection& engine) {
  const EngineVersion version = versionOf(engine);
  return fmt::format("{} | {} {}.{}", machine.description, engineName(engine.kind), version.major, version.minor);
}

}  // namespace headroom
