// SPDX-License-Identifier: Apache-2.0
// headroom-engine check: is this machine ready, and for this model? Starts nothing; exit status 3 when a check failed.
#include "app/engine/command.h"
#include "core/diagnosis/preflight.h"
#include "core/launch/planner.h"
#include "engine/device/backend_registry.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

namespace headroom::app {
namespace {

struct Options {
  std::string model, format = "table";
};

std::optional<Bytes> meminfo(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  for (std::string name, rest; file >> name; std::getline(file, rest)) {
    int64_t kib = 0;
    if (name == key + ":" && file >> kib) return Bytes(kib * 1024);
  }
  return std::nullopt;
}

void readShared(MachineFacts& facts) {
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) != 0) return;
  facts.sharedMemory = Bytes(static_cast<int64_t>(shm.f_blocks) * static_cast<int64_t>(shm.f_frsize));
  facts.sharedMemoryFree = Bytes(static_cast<int64_t>(shm.f_bavail) * static_cast<int64_t>(shm.f_frsize));
}

MachineFacts readFacts(const engine::FoundDevices& found) {
  MachineFacts facts;
  facts.memory = hostMemory();
  facts.memoryAvailable = meminfo("MemAvailable");
  if (facts.memoryAvailable) facts.memoryAvailable = std::min(*facts.memoryAvailable, *facts.memory);
  facts.swap = meminfo("SwapFree");
  readShared(facts);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    facts.openFiles = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, int64_t(1) << 40));
  std::error_code error;
  facts.container = std::filesystem::exists("/.dockerenv", error) || std::filesystem::exists("/run/.containerenv", error);
  const std::filesystem::path iommu("/sys/class/iommu");
  facts.iommu = std::filesystem::is_directory(iommu, error) && !std::filesystem::is_empty(iommu, error);
  facts.gpus = found.cuda.size();
  facts.cudaOffReason = found.cudaOffReason;
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}) {
    if (const char* value = std::getenv(name)) facts.environment.push_back(fmt::format("{}={}", name, value));
  }
  return facts;
}

// What the model asks of this machine, and whether a layout of it fits.
std::optional<ModelNeeds> checkModel(const std::string& argument, const engine::FoundDevices& found,
                                     std::vector<PreflightCheck>& checks) {
  Result<ModelSource> model = openModel(argument);
  if (!model) {
    checks.push_back({"model", CheckState::Failed, model.error().message(), ""});
    return std::nullopt;
  }
  PreflightCheck opened{"model", CheckState::Good,
                        fmt::format("{}: {:.2f} GiB in {} weight file{}", model->config.name, model->inventory.checkpointBytes().gib(),
                                    model->weightFiles.size(), model->weightFiles.size() == 1 ? "" : "s"),
                        ""};
  if (!model->canBeLoaded()) {
    opened.state = CheckState::Warning;
    opened.found = fmt::format("{}: no weight files, planning only", model->config.name);
    opened.fix = "download the weights beside config.json";
  }
  checks.push_back(opened);
  for (const std::string& warning : model->config.warnings) checks.push_back({"model_note", CheckState::Warning, warning, ""});
  const Machine& machine = found.cuda.size() > 0 ? found.cuda : found.host;
  Result<PlanReport> report = planModel(*model, machine, PlanOptions());
  if (!report) {
    checks.push_back({"layout", CheckState::Failed, report.error().message(), ""});
    return std::nullopt;
  }
  if (!report->recommended) {
    const LayoutPlan* told = report->layouts.empty() ? nullptr : &report->layouts.back();
    for (const LayoutPlan& plan : report->layouts) {
      if (plan.dp == 1 && plan.tp == 1 && plan.pp == 1) told = &plan;
    }
    const bool reason = told && !told->reasons.empty();
    checks.push_back({"layout", CheckState::Failed, reason ? told->reasons.front().message : "no layout fits this machine",
                      reason ? told->reasons.front().fix : ""});
    return std::nullopt;
  }
  const LayoutPlan* best = report->find(report->recommended->tp, report->recommended->pp, report->recommended->dp);
  checks.push_back({"layout", CheckState::Good, report->recommended->why, ""});
  ModelNeeds needs;
  needs.checkpoint = model->inventory.checkpointBytes();
  needs.ranks = best->tp * best->pp * best->dp;
  for (const RankPlan& rank : best->ranks) needs.largestRank = std::max(needs.largestRank, rank.weights.value_or(Bytes()));
  return needs;
}

std::string symbolOf(CheckState state) {
  return state == CheckState::Good ? "✓" : state == CheckState::Warning ? "!" : state == CheckState::Failed ? "✗" : "?";
}

int runCheck(const Options& options) {
  const engine::FoundDevices found = engine::findDevices(HostDeviceSettings());
  std::vector<PreflightCheck> ofModel;
  std::optional<ModelNeeds> needs;
  if (!options.model.empty()) needs = checkModel(options.model, found, ofModel);
  std::vector<PreflightCheck> checks = preflight(readFacts(found), needs);
  checks.insert(checks.end(), ofModel.begin(), ofModel.end());
  const bool failed =
      std::any_of(checks.begin(), checks.end(), [](const PreflightCheck& check) { return check.state == CheckState::Failed; });
  if (options.format == "json") {
    nlohmann::json list = nlohmann::json::array();
    for (const PreflightCheck& check : checks)
      list.push_back({{"id", check.id}, {"state", checkStateName(check.state)}, {"found", check.found}, {"fix", check.fix}});
    fmt::print("{}\n", reportText(nlohmann::json{{"schema", "headroom.check/1"}, {"ready", !failed}, {"checks", list}}));
  } else {
    for (const PreflightCheck& check : checks) {
      fmt::print("{} {:<16}{}\n", symbolOf(check.state), check.id, check.found);
      if (!check.fix.empty()) fmt::print("  {:<16}{}\n", "", check.fix);
    }
    fmt::print("\n{}\n", failed ? "Not ready." : "Ready.");
  }
  return failed ? kFailed : kDone;
}

}  // namespace

void addCheckCommand(CLI::App& app, Run& run) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("check", "Is this machine ready to serve, and for this model? Starts nothing");
  command->add_option("MODEL", options->model, "config.json, model folder, .gguf file or catalog name");
  command->add_option("--format", options->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([options, &run] { run = [options] { return runCheck(*options); }; });
}

}  // namespace headroom::app
