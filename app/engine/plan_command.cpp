// SPDX-License-Identifier: Apache-2.0
// headroom-engine plan: the grid of a model on a machine, as a table for people or as JSON for scripts. Reads headers only.
#include "app/engine/command.h"
#include "app/engine/option_checks.h"
#include "core/hardware/price_list.h"
#include "core/json_text.h"
#include "core/launch/plan_search.h"
#include "core/launch/start_log.h"
#include "engine/device/backend_registry.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

namespace headroom::app {
namespace {

constexpr size_t kTableWidth = 100;

struct PlanArguments {
  std::string model, gpus = "local", engine = "headroom", dtype = "auto", quantization, kvCacheDType = "auto", format = "table",
                     deviceMemory;
  std::optional<int64_t> maxModelLen, maxNumSeqs, maxNumBatchedTokens, inputLen, outputLen;
  std::optional<double> gpuMemoryUtilization;
  bool enforceEager = false;
  int64_t concurrency = 1;
  bool expertParallel = false, attentionDataParallel = false;
  bool compare = false, wish = false, gpusGiven = false;
  std::string compareWith, calibrate;
  Wish wished;
  std::vector<std::string> prices;
  bool noPrices = false;
  bool noCalibration = false;
};

// "auto" is empty; fp8_e4m3 and fp8_e5m2 are vLLM's spellings.
Result<std::optional<DType>> dtypeOption(const std::string& option, std::string name) {
  if (name == "auto") return std::optional<DType>();
  if (name == "fp8_e4m3") return std::optional(DType::F8E4M3);
  if (name == "fp8_e5m2") return std::optional(DType::F8E5M2);
  if (std::optional<DType> dtype = parseDType(name)) return dtype;
  return failure(
      option, fmt::format("\"{}\"", name),
      option == "--dtype" ? "auto, float32, float16 or bfloat16" : "auto, float32, float16, bfloat16, fp8, int8 or q8_0");
}

// Sentences broken at spaces, continued at `indent`.
std::string wrapped(const std::string& text, size_t indent) {
  std::string result, line;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && indent + line.size() + 1 + word.size() > kTableWidth) {
      result += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return result + line;
}

std::string symbolOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::Fits:
      return "✓";
    case Verdict::Tight:
      return "!";
    case Verdict::DoesNotFit:
      return "✗";
    case Verdict::Invalid:
      return "–";
  }
  return "";
}

std::string cellText(const LayoutPlan& plan) {
  if (plan.verdict == Verdict::Invalid) return symbolOf(plan.verdict);
  return fmt::format("{} {:.1f}{}", symbolOf(plan.verdict), plan.headroom ? plan.headroom->gib() : 0.0, plan.even ? "" : "u");
}

// Columns that a person can read: all of a small machine, the divisors and powers of two of a large one.
std::vector<int> shownSizes(int gpus) {
  constexpr int kColumns = 9;
  std::vector<int> sizes;
  for (int size = 1; size <= gpus; ++size) {
    if (gpus <= kColumns || gpus % size == 0 || (size & (size - 1)) == 0) sizes.push_back(size);
  }
  if (sizes.size() > kColumns) sizes.resize(kColumns);
  return sizes;
}

void printGrid(const PlanReport& report, int dp) {
  const std::vector<int> sizes = shownSizes(report.machine.size() / dp);
  fmt::print("\n{}\n        ", dp == 1 ? std::string("One replica") : fmt::format("{} replicas", dp));
  for (int tp : sizes) fmt::print("{:>9}", fmt::format("TP={}", tp));
  fmt::print("\n");
  for (int pp : sizes) {
    bool any = false;
    for (int tp : sizes) any = any || report.find(tp, pp, dp);
    if (!any) continue;
    fmt::print("  {:<6}", fmt::format("PP={}", pp));
    for (int tp : sizes) {
      const LayoutPlan* plan = report.find(tp, pp, dp);
      const std::string cell = plan ? cellText(*plan) : "";
      // Symbols take one column, whatever bytes they have.
      const size_t columns = plan ? cell.size() - symbolOf(plan->verdict).size() + 1 : 0;
      fmt::print("{}{}", std::string(columns < 9 ? 9 - columns : 1, ' '), cell);
    }
    fmt::print("\n");
  }
}

std::string sizesText(const LayoutPlan& plan) {
  return fmt::format("TP={} PP={}{}", plan.tp, plan.pp, plan.dp > 1 ? fmt::format(" DP={}", plan.dp) : "");
}

void printReasons(const PlanReport& report) {
  constexpr int kMostMisfits = 4;
  std::set<std::string> told;
  int misfits = 0;
  bool headed = false;
  for (const LayoutPlan& plan : report.layouts) {
    if (plan.reasons.empty() || plan.dp != 1) continue;
    const Reason& reason = plan.reasons.front();
    std::string key = reason.rule + reason.message;
    if (plan.verdict == Verdict::Invalid && !told.insert(key).second) continue;
    if (plan.verdict != Verdict::Invalid && ++misfits > kMostMisfits) continue;
    if (!headed) fmt::print("\nWhy\n");
    headed = true;
    const std::string name = plan.verdict == Verdict::Invalid && plan.pp == 1 ? fmt::format("TP={}", plan.tp) : sizesText(plan);
    fmt::print("  {} {}\n", symbolOf(plan.verdict), wrapped(fmt::format("{}: {}", name, reason.message), 4));
    if (!reason.fix.empty()) fmt::print("    {}\n", wrapped("Instead: " + reason.fix, 4));
  }
  if (misfits > kMostMisfits) fmt::print("  … and {} more; --format json has all\n", misfits - kMostMisfits);
}

std::string gibText(const std::optional<Bytes>& bytes) { return bytes ? fmt::format("{:.2f}", bytes->gib()) : "unknown"; }

void printRanks(const LayoutPlan& plan) {
  fmt::print("\n  {:>4} {:>6} {:>8} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9}   (GiB)\n", "GPU", "stage", "layers", "q heads",
             "kv heads", "weights", "KV cache", "activ.", "headroom");
  for (const RankPlan& rank : plan.ranks) {
    if (rank.slice.replica != 0) continue;
    auto range = [](Range r) { return fmt::format("{}-{}", r.begin, r.end - 1); };
    fmt::print("  {:>4} {:>6} {:>8} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9}\n", rank.slice.gpu, rank.slice.stage,
               range(rank.slice.layers), range(rank.slice.qHeads), range(rank.slice.kvHeads), gibText(rank.weights),
               gibText(rank.kvCache), gibText(rank.activations), gibText(rank.headroom));
  }
}

// "2 x 23.64 + 1 x 79.25 GiB": GPUs of one memory that follow one another.
std::string memoryText(const Machine& machine) {
  std::string text;
  for (size_t at = 0; at < machine.gpus.size();) {
    size_t end = at;
    while (end < machine.gpus.size() && machine.gpus[end].totalMemory == machine.gpus[at].totalMemory) ++end;
    text += fmt::format("{}{} x {:.2f}", text.empty() ? "" : " + ", end - at, machine.gpus[at].totalMemory.gib());
    at = end;
  }
  return text + " GiB";
}

void printTable(const PlanReport& report, const std::string& modelArgument) {
  const ModelConfig& model = report.model;
  const ResolvedOptions& options = report.options;
  fmt::print("{}  {} layers, {} query heads, {} KV heads of {}, {:.2f} B parameters, {:.2f} GiB as {}\n", model.name,
             model.layerCount(), model.qHeads, model.kvHeads, model.headDim, static_cast<double>(report.parameters) / 1e9,
             report.checkpointBytes.gib(), model.quantization ? model.quantization->method : std::string(dtypeName(model.dtype)));
  fmt::print("{}  {}, utilization {:g}\n", report.machine.description, memoryText(report.machine), options.gpuMemoryUtilization);
  const std::string load = options.inputLen + options.outputLen > 0
                               ? fmt::format("{} in + {} out tokens", options.inputLen, options.outputLen)
                               : fmt::format("{} tokens each", options.maxModelLen);
  fmt::print(
      "{}{}  {}, KV cache {}{}, length {}, {} request{} at once, {}\n", engineName(options.engine.kind),
      options.engine.version.empty() ? "" : " " + options.engine.version, dtypeName(options.dtype),
      dtypeName(options.kvCacheDType),
      report.kvBytesPerToken ? fmt::format(" ({:.0f} KiB a token)", static_cast<double>(*report.kvBytesPerToken) / 1024.0) : "",
      options.maxModelLen, options.concurrency, options.concurrency > 1 ? "s" : "", load);
  for (const std::string& warning : model.warnings) fmt::print("  note: {}\n", wrapped(warning, 8));
  fmt::print("\nGiB left on the fullest GPU: ✓ fits  ! tight  ✗ does not fit  – invalid  u uneven ranks\n");
  std::set<int> replicas;
  for (const LayoutPlan& plan : report.layouts) replicas.insert(plan.dp);
  const std::vector<int> shown = shownSizes(report.machine.size());
  for (int dp : replicas) {
    if (std::find(shown.begin(), shown.end(), dp) != shown.end()) printGrid(report, dp);
  }
  printReasons(report);
  if (!report.recommended) {
    fmt::print("\nNo layout fits this machine.\n");
    return;
  }
  const LayoutPlan* best = report.find(report.recommended->tp, report.recommended->pp, report.recommended->dp);
  fmt::print("\nRecommended\n  {}\n", wrapped(report.recommended->why, 2));
  printRanks(*best);
  if (best->kvTokens)
    fmt::print("\n  KV cache of {} tokens: {:.1f} requests of {}\n", *best->kvTokens, best->maxConcurrency.value_or(0),
               options.maxModelLen);
  for (const Reason& warning : best->warnings) fmt::print("  note: {}\n", wrapped(warning.message, 8));
  if (const auto command = launchCommand(report, *best, modelArgument)) {
    fmt::print("\nTo start it\n  {}\n", command->text);
    for (const auto& option : command->explained) fmt::print("    {:<42} {}\n", option.option, option.why);
    if (!command->docker.empty()) fmt::print("  or in its container\n  {}\n", command->docker);
  }
}

// What was measured on this machine before: one JSON object, key -> list of corrections.
std::filesystem::path calibrationFile() {
  if (const char* given = std::getenv("HEADROOM_CALIBRATION"); given && *given) return given;
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config && *config)
    return std::filesystem::path(config) / "headroom" / "calibration.json";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".config" / "headroom" / "calibration.json";
  return {};
}

nlohmann::json readCalibrations() {
  std::ifstream file(calibrationFile());
  if (!file) return nlohmann::json::object();
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  nlohmann::json json = readJsonText(text);
  return json.is_object() ? json : nlohmann::json::object();
}

std::vector<MemoryCorrection> storedCorrections(const Machine& machine, const EngineSelection& engine) {
  const nlohmann::json all = readCalibrations();
  const auto found = all.find(correctionKey(machine, engine));
  std::vector<MemoryCorrection> corrections;
  if (found == all.end() || !found->is_array()) return corrections;
  for (const nlohmann::json& entry : *found) {
    if (const auto correction = correctionFromJson(entry)) corrections.push_back(*correction);
  }
  return corrections;
}

// Replaces the correction of the same kind of layout; written beside and moved, so that a full disk leaves the old file.
Status storeCorrection(const std::string& key, const MemoryCorrection& correction) {
  const std::filesystem::path path = calibrationFile();
  if (path.empty()) return failure("calibration", "neither HEADROOM_CALIBRATION nor HOME", "a place to keep it");
  nlohmann::json all = readCalibrations();
  nlohmann::json kept = nlohmann::json::array({correctionToJson(correction)});
  if (const auto old = all.find(key); old != all.end() && old->is_array()) {
    for (const nlohmann::json& entry : *old) {
      const auto other = correctionFromJson(entry);
      if (other && other->severalRanks != correction.severalRanks) kept.push_back(entry);
    }
  }
  all[key] = kept;
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  std::filesystem::path beside = path;
  beside += ".new";
  {
    std::ofstream file(beside);
    file << reportText(all) << "\n";
    if (!file.flush()) return failure(beside.string(), "a file that cannot be written", "room and permission");
  }
  std::filesystem::rename(beside, path, error);
  if (error) return failure(path.string(), error.message(), "a file that can be replaced");
  return {};
}

std::string amountText(const std::optional<double>& value, const std::string& unit) {
  if (!value) return "unknown";
  return unit == "bytes" ? fmt::format("{:.2f} GiB", *value / (1024.0 * 1024.0 * 1024.0))
                         : fmt::format("{:.6g} {}", *value, unit);
}

// Reads the log, shows predicted beside measured, and keeps the correction for the next plan of this machine and engine.
int runCalibrate(const PlanArguments& arguments, const ModelSource& model, const Machine& machine, PlanOptions options) {
  std::ifstream file(arguments.calibrate, std::ios::binary);
  if (!file)
    return fail(kBadInput, fmt::format("{}: found no file that can be read, expected a start-up log", arguments.calibrate));
  std::ostringstream text;
  text << file.rdbuf();
  Result<StartLog> log = readStartLog(text.str(), arguments.calibrate);
  if (!log) return fail(kBadInput, log.error().message());
  // The log decides what was started; what it does not say comes from the options.
  options.engine = log->engine;
  if (log->maxModelLen) options.maxModelLen = log->maxModelLen;
  if (log->utilization && log->engine.kind != EngineKind::LlamaCpp) options.gpuMemoryUtilization = log->utilization;
  if (log->maxNumSeqs) options.maxNumSeqs = log->maxNumSeqs;
  if (log->maxNumBatchedTokens) options.maxNumBatchedTokens = log->maxNumBatchedTokens;
  if (log->enforceEager) options.enforceEager = *log->enforceEager;
  options.corrections.clear();
  const bool llama = log->engine.kind == EngineKind::LlamaCpp;
  const int tp = log->tp.value_or(1), pp = log->pp.value_or(llama ? machine.size() : 1), dp = log->dp.value_or(1);
  Result<LayoutPlan> plan = planLayout(model, machine, options, tp, pp, dp);
  if (!plan) return fail(kBadInput, plan.error().message());
  if (plan->verdict == Verdict::Invalid)
    return fail(kBadInput, fmt::format("{}: the log is of TP={} PP={}, which the plan refuses: {}", arguments.calibrate, tp, pp,
                                       plan->reasons.front().message));
  const std::vector<MeasuredTerm> terms = compareWithLog(*plan, *log);
  constexpr double kSameModel = 0.3;
  for (const MeasuredTerm& term : terms) {
    if (term.name != "weights" || !term.predicted || !term.measured) continue;
    if (std::abs(*term.measured / *term.predicted - 1) > kSameModel)
      return fail(
          kBadInput,
          fmt::format("{}: found weights of {} a rank{}, expected about {} for {} at TP={} PP={}; is it the log of "
                      "another model or layout?",
                      arguments.calibrate, amountText(term.measured, "bytes"), log->model.empty() ? "" : " (" + log->model + ")",
                      amountText(term.predicted, "bytes"), model.config.name, tp, pp));
  }
  const std::optional<MemoryCorrection> correction = correctionFrom(*plan, *log);
  const std::string key = correctionKey(machine, log->engine);
  if (correction) {
    if (Status stored = storeCorrection(key, *correction); !stored) return fail(kFailed, stored.error().message());
  }
  std::optional<LayoutPlan> after;
  if (correction) {
    options.corrections = {*correction};
    if (Result<LayoutPlan> again = planLayout(model, machine, options, tp, pp, dp)) after = *again;
  }
  if (arguments.format == "json") {
    nlohmann::json list = nlohmann::json::array();
    for (const MeasuredTerm& term : terms) {
      list.push_back({{"term", term.name},
                      {"predicted", term.predicted ? nlohmann::json(*term.predicted) : nlohmann::json()},
                      {"measured", term.measured ? nlohmann::json(*term.measured) : nlohmann::json()},
                      {"unit", term.unit}});
    }
    nlohmann::json json = {
        {"schema", "headroom.calibration/1"},
        {"engine", engineName(log->engine.kind)},
        {"engine_version", log->engine.version.empty() ? nlohmann::json() : nlohmann::json(log->engine.version)},
        {"model", log->model.empty() ? nlohmann::json() : nlohmann::json(log->model)},
        {"layout", {{"tp", tp}, {"pp", pp}, {"dp", dp}}},
        {"terms", list},
        {"correction", correction ? correctionToJson(*correction) : nlohmann::json()},
        {"kept_under", correction ? nlohmann::json(key) : nlohmann::json()},
        {"kv_tokens_after", after && after->kvTokens ? nlohmann::json(*after->kvTokens) : nlohmann::json()}};
    fmt::print("{}\n", reportText(json));
    return kDone;
  }
  fmt::print("{} {}, TP={} PP={}{}\n\n  {:<16}{:>18}{:>18}{:>10}\n", engineName(log->engine.kind), log->engine.version, tp, pp,
             dp > 1 ? fmt::format(" DP={}", dp) : "", "", "predicted", "measured", "");
  for (const MeasuredTerm& term : terms) {
    const bool both = term.predicted && term.measured && *term.measured != 0;
    fmt::print("  {:<16}{:>18}{:>18}{:>10}\n", term.name, amountText(term.predicted, term.unit),
               amountText(term.measured, term.unit),
               both ? fmt::format("{:+.1f} %", (*term.predicted / *term.measured - 1) * 100) : "");
  }
  if (correction) {
    fmt::print("\nKept for {}: {:+.2f} GiB activations, {:+.2f} graphs, {:+.2f} everything else a rank ({}).\n", key,
               correction->activations.gib(), correction->graphs.gib(), correction->runtime.gib(), correction->source);
    if (after && after->kvTokens) fmt::print("The next plan says {} tokens of KV cache.\n", *after->kvTokens);
  } else {
    fmt::print("\nNothing to correct by: the log has no memory figures.\n");
  }
  return kDone;
}

int runWish(const PlanArguments& arguments, const ModelSource& model, const PlanOptions& options) {
  Wish wish = arguments.wished;
  PriceList prices = arguments.noPrices ? PriceList() : readPrices(priceFile());
  for (const std::string& text : arguments.prices) {
    const auto price = parsePrice(text);
    if (!price) return fail(kBadInput, price.error().message());
    if (price->second > 0)
      prices[price->first] = price->second;
    else
      prices.erase(price->first);
  }
  if (!arguments.prices.empty()) {
    if (const Status kept = writePrices(priceFile(), prices); !kept) return fail(kFailed, kept.error().message());
  }
  wish.prices = prices;
  std::vector<std::string> cards;
  if (arguments.gpusGiven) {
    std::istringstream list(arguments.gpus);
    for (std::string card; std::getline(list, card, ',');) cards.push_back(card);
  }
  Result<WishReport> report = searchMachines(model, options, wish, cards);
  if (!report) return fail(kBadInput, report.error().message());
  if (arguments.format == "json") {
    fmt::print("{}\n", reportText(wishToJson(*report, options, wish)));
    return kDone;
  }
  fmt::print("{} under {}: the smallest machine of each card that grants it, {}\n\n", model.config.name,
             engineName(options.engine.kind), wish.prices.empty() ? "fewest GPUs first" : "the cheapest first");
  size_t widest = 0;
  for (const WishAnswer& answer : report->answers) widest = std::max(widest, answer.gpus.size());
  widest = std::max<size_t>(24, widest + 1);
  fmt::print("  {:<{}}{:>8}{:>10}  {:<20}{:>9}{:>12}{:>12}{:>10}\n", "GPUs", widest, "GiB", "price", "layout", "left", "tokens/s",
             "each", "TTFT ms");
  auto number = [](const std::optional<double>& value, int digits) {
    return value ? fmt::format("{:.{}f}", *value, digits) : "–";
  };
  for (const WishAnswer& answer : report->answers) {
    const std::optional<double> each =
        answer.predicted.itlMs && *answer.predicted.itlMs > 0 ? std::optional(1000.0 / *answer.predicted.itlMs) : std::nullopt;
    fmt::print("  {:<{}}{:>8.0f}{:>10}  {:<20}{:>9.1f}{:>12}{:>12}{:>10}\n", answer.gpus, widest, answer.memory.gib(),
               number(answer.price, 2),
               fmt::format("TP={} PP={}{}", answer.tp, answer.pp, answer.dp > 1 ? fmt::format(" DP={}", answer.dp) : ""),
               answer.headroom ? answer.headroom->gib() : 0.0, number(answer.predicted.throughputTokensPerSecond, 0),
               number(each, 1), number(answer.predicted.ttftMs, 0));
  }
  if (report->answers.empty()) fmt::print("  none with {} GPUs or fewer\n", wish.mostGpus);
  if (wish.prices.empty()) {
    fmt::print(
        "\n  The catalog knows no prices: --price L40S=0.9,H100-80GB=2.5 writes them, of one card and in any unit, and is "
        "kept.\n");
  } else {
    std::string written;
    for (const auto& [card, price] : wish.prices) written += fmt::format("{}{} {:g}", written.empty() ? "" : ", ", card, price);
    fmt::print("\n  {}\n",
               wrapped("Prices as written, of one card: " + written + ". Cards without a price follow, fewest GPUs first.", 2));
  }
  if (!report->refused.empty()) {
    constexpr size_t kShown = 3;
    fmt::print("\nNot with {} or fewer: {} cards", wish.mostGpus, report->refused.size());
    for (size_t i = 0; i < std::min(kShown, report->refused.size()); ++i)
      fmt::print("\n  {}: {}", report->refused[i].gpu, wrapped(report->refused[i].why, 4));
    fmt::print("\n");
  }
  return kDone;
}

Result<std::vector<EngineSelection>> comparedEngines(const std::string& text) {
  std::vector<EngineSelection> engines;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) {
    Result<EngineSelection> engine = parseEngine(name);
    if (!engine) {
      Error error = engine.error();
      error.where = "--compare-with";
      return tl::unexpected(std::move(error));
    }
    engines.push_back(*engine);
  }
  return engines;
}

void printComparison(const std::vector<EngineAnswer>& answers) {
  fmt::print("\nEngines on this machine\n  {:<20}{:>9}{:>9}  {:<18}{:>9}{:>12}{:>11}{:>10}{:>12}\n", "", "accepted", "fitting",
             "best layout", "left GiB", "KV tokens", "longest", "requests", "tokens/s");
  auto count = [](const std::optional<int64_t>& value) { return value ? std::to_string(*value) : std::string("–"); };
  for (const EngineAnswer& answer : answers) {
    const std::string name = fmt::format("{} {}", engineName(answer.engine.kind), answer.engine.version);
    if (!answer.error.empty()) {
      fmt::print("  {:<20}{}\n", name, wrapped(answer.error, 22));
      continue;
    }
    if (!answer.best) {
      fmt::print("  {:<20}{:>9}{:>9}  {}\n", name, answer.accepted, answer.fitting,
                 wrapped(answer.firstRefusal.empty() ? "does not fit" : answer.firstRefusal, 42));
      continue;
    }
    const LayoutPlan& plan = *answer.best;
    const std::optional<double> speed = plan.predicted.throughputTokensPerSecond;
    fmt::print("  {:<20}{:>9}{:>9}  {:<18}{:>9.1f}{:>12}{:>11}{:>10}{:>12}\n", name, answer.accepted, answer.fitting,
               sizesText(plan), plan.headroom ? plan.headroom->gib() : 0.0, count(plan.kvTokens),
               plan.answers.empty() ? "–" : count(plan.answers.front().longestContext),
               plan.answers.empty() ? "–" : count(plan.answers.front().mostRequests),
               speed ? fmt::format("{:.0f}", *speed) : "–");
  }
}

Result<PlanOptions> optionsOf(const PlanArguments& arguments) {
  PlanOptions options;
  Result<EngineSelection> engine = parseEngine(arguments.engine);
  if (!engine) return tl::unexpected(engine.error());
  options.engine = *engine;
  Result<std::optional<DType>> dtype = dtypeOption("--dtype", arguments.dtype);
  if (!dtype) return tl::unexpected(dtype.error());
  options.dtype = *dtype;
  Result<std::optional<DType>> kv = dtypeOption("--kv-cache-dtype", arguments.kvCacheDType);
  if (!kv) return tl::unexpected(kv.error());
  options.kvCacheDType = *kv;
  if (!arguments.quantization.empty() && arguments.quantization != "auto") options.quantization = arguments.quantization;
  options.maxModelLen = arguments.maxModelLen;
  options.maxNumSeqs = arguments.maxNumSeqs;
  options.maxNumBatchedTokens = arguments.maxNumBatchedTokens;
  options.gpuMemoryUtilization = arguments.gpuMemoryUtilization;
  options.enforceEager = arguments.enforceEager;
  options.concurrency = arguments.concurrency;
  options.inputLen = arguments.inputLen;
  options.outputLen = arguments.outputLen;
  options.expertParallel = arguments.expertParallel;
  options.attentionDataParallel = arguments.attentionDataParallel;
  return options;
}

int runPlan(const PlanArguments& arguments) {
  Result<PlanOptions> options = optionsOf(arguments);
  if (!options) return fail(kBadInput, options.error().message());
  Result<std::vector<EngineSelection>> engines = comparedEngines(arguments.compareWith);
  if (!engines) return fail(kBadInput, engines.error().message());
  HostDeviceSettings settings;
  if (!arguments.deviceMemory.empty()) {
    settings.memoryEach = parseMemory(arguments.deviceMemory);
    if (!settings.memoryEach)
      return fail(kBadInput,
                  fmt::format("--device-memory: found \"{}\", expected an amount such as 4GiB", arguments.deviceMemory));
  }
  if (arguments.wish) {
    Result<ModelSource> model = openModel(arguments.model);
    if (!model) return fail(kBadInput, model.error().message());
    return runWish(arguments, *model, *options);
  }
  // To look for GPUs opens the driver: only where this machine's own are meant.
  Result<Machine> machine =
      parseMachine(arguments.gpus, settings,
                   meansLocalGpus(arguments.gpus) ? engine::findDevices(settings).cuda.gpus : std::vector<MachineGpu>());
  if (!machine) return fail(kBadInput, machine.error().message());
  if (settings.memoryEach && !machine->isHostOnly())
    return fail(kBadInput,
                fmt::format("--device-memory: found --gpus {}, GPUs with a memory of their own, expected host devices: "
                            "--gpus host",
                            arguments.gpus));
  Result<ModelSource> model = openModel(arguments.model);
  if (!model) return fail(kBadInput, model.error().message());
  if (!arguments.calibrate.empty()) return runCalibrate(arguments, *model, *machine, *options);
  if (!arguments.noCalibration) options->corrections = storedCorrections(*machine, options->engine);
  Result<PlanReport> report = planModel(*model, *machine, *options);
  if (!report) return fail(kBadInput, report.error().message());
  std::vector<EngineAnswer> answers;
  if (arguments.compare || !arguments.compareWith.empty()) {
    PlanOptions plain = *options;
    plain.corrections.clear();  // they are of one engine
    answers = compareEngines(*model, *machine, plain, *engines);
  }
  if (arguments.format == "json") {
    const nlohmann::json comparison = answers.empty() ? nlohmann::json() : comparisonToJson(answers);
    writePlanJson(*report, arguments.model, comparison, [](std::string_view part) { fmt::print("{}", part); });
    fmt::print("\n");
  } else {
    printTable(*report, arguments.model);
    if (!answers.empty()) printComparison(answers);
  }
  return kDone;
}

}  // namespace

void addPlanCommand(CLI::App& app, Run& run) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* plan = app.add_subcommand("plan", "Every layout of a model on a machine: what fits, what an engine refuses and why");
  plan->add_option("MODEL", arguments->model, "config.json, model folder, .gguf file or catalog name")->required();
  CLI::Option* gpus = plan->add_option("--gpus", arguments->gpus,
                                       "local (this machine's GPUs, or host devices without any), host, 6xA800-80GB, "
                                       "2x24GiB,1x48GiB or 2n8xH100-80GB; with --wish the cards to look among: H100-80GB,L40S")
                          ->capture_default_str();
  plan->add_option("--engine", arguments->engine, "headroom, vllm[@VERSION], sglang, tensorrt-llm, lmdeploy or llama.cpp")
      ->capture_default_str();
  plan->add_option("--dtype", arguments->dtype, "auto, float32, float16 or bfloat16")->capture_default_str();
  plan->add_option("--quantization", arguments->quantization,
                   "the checkpoint's own; or what if: fp8, awq, gptq, w4a16, nvfp4, Q4_K_M, …");
  plan->add_option("--kv-cache-dtype", arguments->kvCacheDType,
                   "auto, float32, float16, bfloat16, fp8, int8 (Headroom) or q8_0 (llama.cpp)")
      ->capture_default_str();
  plan->add_option("--max-model-len", arguments->maxModelLen, "tokens of one request, prompt and answer");
  plan->add_option("--gpu-memory-utilization", arguments->gpuMemoryUtilization, "share of each GPU the engine may take");
  plan->add_option("--max-num-seqs", arguments->maxNumSeqs, "requests in one step");
  plan->add_option("--max-num-batched-tokens", arguments->maxNumBatchedTokens, "tokens in one step");
  plan->add_flag("--enforce-eager", arguments->enforceEager, "no CUDA graphs");
  plan->add_option("--concurrency", arguments->concurrency, "requests at once that headroom and predictions are for")
      ->capture_default_str();
  plan->add_option("--input-len", arguments->inputLen, "prompt tokens of each");
  plan->add_option("--output-len", arguments->outputLen, "answer tokens of each");
  plan->add_option("--device-memory", arguments->deviceMemory, "memory of each host device of --gpus local or host");
  plan->add_flag("--expert-parallel", arguments->expertParallel, "whole experts on each rank (vllm, sglang, tensorrt-llm)");
  plan->add_flag("--attention-data-parallel", arguments->attentionDataParallel,
                 "replicas of the attention share one set of experts (sglang, tensorrt-llm)");
  plan->add_flag("--compare", arguments->compare, "all engines on this machine, beside the plan");
  plan->add_option("--compare-with", arguments->compareWith, "the engines to compare: vllm@0.21,sglang");
  plan->add_option(
      "--calibrate", arguments->calibrate,
      "a start-up log of vLLM, SGLang or llama.cpp: predicted beside measured, kept for the next plans of this machine");
  plan->add_flag("--no-calibration", arguments->noCalibration, "as if nothing had been measured on this machine");
  plan->add_flag("--wish", arguments->wish,
                 "the fewest GPUs of the catalog for --max-model-len, --concurrency and the speeds below");
  plan->add_option("--min-tokens-per-s", arguments->wished.decodeTokensPerSecond, "wish: of each request")
      ->check(numberIn(0, 1e9));
  plan->add_option("--min-throughput", arguments->wished.throughputTokensPerSecond, "wish: tokens a second of all requests");
  plan->add_option("--max-ttft-ms", arguments->wished.ttftMs, "wish: milliseconds to the first token")->check(numberIn(0, 1e9));
  plan->add_option("--max-gpus", arguments->wished.mostGpus, "wish: of one machine")->capture_default_str();
  plan->add_option("--price", arguments->prices,
                   "wish: CARD=PRICE of one card, in any unit: the cheapest machine first; kept for the next wish and for the "
                   "window, CARD=0 forgets it")
      ->delimiter(',');
  plan->add_flag("--no-prices", arguments->noPrices, "wish: as if no price had been written");
  plan->add_option("--format", arguments->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  plan->callback([&run, arguments, gpus, plan] {
    arguments->gpusGiven = gpus->count() > 0;
    const bool wish = arguments->wish;
    const std::string idle = idleOption(
        *plan, {{!wish,
                 "without --wish",
                 "with it: it is part of a wish for GPUs",
                 {"--min-tokens-per-s", "--min-throughput", "--max-ttft-ms", "--max-gpus", "--price", "--no-prices"}},
                {wish,
                 "with --wish",
                 "a plan of one machine: a wish looks among the cards of the catalog",
                 {"--device-memory", "--compare", "--compare-with", "--calibrate", "--no-calibration"}},
                {!arguments->calibrate.empty(),
                 "with --calibrate",
                 "no comparison: the log is of one engine",
                 {"--compare", "--compare-with"}},
                {!arguments->calibrate.empty(),
                 "with --calibrate",
                 "one of the two: the log is what was measured",
                 {"--no-calibration"}},
                {arguments->noPrices, "with --no-prices", "one of the two", {"--price"}},
                {arguments->compare, "with --compare, which takes all engines", "one of the two", {"--compare-with"}}});
    if (!idle.empty()) {
      run = [idle] { return fail(kBadInput, idle); };
      return;
    }
    run = [arguments] { return runPlan(*arguments); };
  });
}

}  // namespace headroom::app
