// SPDX-License-Identifier: Apache-2.0
// headroom-engine plan: the grid of a model on a machine, as a table for people or as JSON for scripts. Reads headers only.
#include "app/engine/command.h"
#include "core/launch/planner.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <set>

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
};

// "auto" is empty; fp8_e4m3 and fp8_e5m2 are vLLM's spellings.
Result<std::optional<DType>> dtypeOption(const std::string& option, std::string name) {
  if (name == "auto") return std::optional<DType>();
  if (name == "fp8_e4m3") return std::optional(DType::F8E4M3);
  if (name == "fp8_e5m2") return std::optional(DType::F8E5M2);
  if (std::optional<DType> dtype = parseDType(name)) return dtype;
  return failure(option, fmt::format("\"{}\"", name), "auto, float32, float16, bfloat16, fp8 or q8_0");
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

void printTable(const PlanReport& report, const std::string& modelArgument) {
  const ModelConfig& model = report.model;
  const ResolvedOptions& options = report.options;
  fmt::print("{}  {} layers, {} query heads, {} KV heads of {}, {:.2f} B parameters, {:.2f} GiB as {}\n", model.name,
             model.layerCount(), model.qHeads, model.kvHeads, model.headDim, static_cast<double>(report.parameters) / 1e9,
             report.checkpointBytes.gib(), model.quantization ? model.quantization->method : std::string(dtypeName(model.dtype)));
  fmt::print("{}  {} x {:.2f} GiB, utilization {:g}\n", report.machine.description, report.machine.size(),
             report.machine.gpus.front().totalMemory.gib(), options.gpuMemoryUtilization);
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

int runPlan(const PlanArguments& arguments) {
  PlanOptions options;
  Result<EngineSelection> engine = parseEngine(arguments.engine);
  if (!engine) return fail(kBadInput, engine.error().message());
  options.engine = *engine;
  Result<std::optional<DType>> dtype = dtypeOption("--dtype", arguments.dtype);
  if (!dtype) return fail(kBadInput, dtype.error().message());
  options.dtype = *dtype;
  Result<std::optional<DType>> kv = dtypeOption("--kv-cache-dtype", arguments.kvCacheDType);
  if (!kv) return fail(kBadInput, kv.error().message());
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
  HostDeviceSettings settings;
  if (!arguments.deviceMemory.empty()) {
    settings.memoryEach = parseMemory(arguments.deviceMemory);
    if (!settings.memoryEach)
      return fail(kBadInput,
                  fmt::format("--device-memory: found \"{}\", expected an amount such as 4GiB", arguments.deviceMemory));
  }
  Result<Machine> machine = parseMachine(arguments.gpus, settings);
  if (!machine) return fail(kBadInput, machine.error().message());
  Result<ModelSource> model = openModel(arguments.model);
  if (!model) return fail(kBadInput, model.error().message());
  Result<PlanReport> report = planModel(*model, *machine, options);
  if (!report) return fail(kBadInput, report.error().message());
  if (arguments.format == "json")
    fmt::print("{}\n", planToJson(*report).dump(2));
  else
    printTable(*report, arguments.model);
  return kDone;
}

}  // namespace

void addPlanCommand(CLI::App& app, Run& run) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* plan = app.add_subcommand("plan", "Every layout of a model on a machine: what fits, what an engine refuses and why");
  plan->add_option("MODEL", arguments->model, "config.json, model folder, .gguf file or catalog name")->required();
  plan->add_option("--gpus", arguments->gpus, "local, 6xA800-80GB, 2x24GiB,1x48GiB or 2n8xH100-80GB")->capture_default_str();
  plan->add_option("--engine", arguments->engine, "headroom, vllm[@VERSION], sglang, tensorrt-llm or llama.cpp")
      ->capture_default_str();
  plan->add_option("--dtype", arguments->dtype, "auto, float32, float16 or bfloat16")->capture_default_str();
  plan->add_option("--quantization", arguments->quantization, "the checkpoint's own, or fp8 (vllm)");
  plan->add_option("--kv-cache-dtype", arguments->kvCacheDType,
                   "auto, float32, float16, bfloat16, fp8 (servers) or q8_0 (llama.cpp)")
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
  plan->add_option("--device-memory", arguments->deviceMemory, "memory of each host device of --gpus local");
  plan->add_option("--format", arguments->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  plan->callback([&run, arguments] { run = [arguments] { return runPlan(*arguments); }; });
}

}  // namespace headroom::app
