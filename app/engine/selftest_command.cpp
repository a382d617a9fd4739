// SPDX-License-Identifier: Apache-2.0
// headroom-engine selftest: every operation on the devices of this machine against the CPU backend, with errors and rates; then the collectives.
#include "app/engine/command.h"
#include "engine/device/backend_registry.h"
#include "engine/selftest.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

namespace headroom::app {
namespace {

struct Options {
  std::string device = "auto", format = "table";
  int index = 0;
  bool indexGiven = false, quick = false;
};

nlohmann::json rowJson(const engine::SelftestRow& row) {
  nlohmann::json json = {{"operation", row.operation}, {"dtype", row.dtype}, {"shape", row.shape}, {"error", row.error}, {"limit", row.limit}, {"passed", row.passed}};
  json["milliseconds"] = row.milliseconds ? nlohmann::json(*row.milliseconds) : nlohmann::json(nullptr);
  json["share_of_copy_bandwidth"] = row.bandwidthShare ? nlohmann::json(*row.bandwidthShare) : nlohmann::json(nullptr);
  json["share_of_gemm_peak"] = row.gemmShare ? nlohmann::json(*row.gemmShare) : nlohmann::json(nullptr);
  json["reason"] = row.reason.empty() ? nlohmann::json(nullptr) : nlohmann::json(row.reason);
  return json;
}

void printRow(const engine::SelftestRow& row) {
  const auto share = [](const std::optional<double>& value) { return value ? fmt::format("{:.0f} %", *value * 100) : std::string("—"); };
  fmt::print("{:<18}{:<10}{:<26}{:>10.2e}{:>10}{:>10}{:>8}{:>8}  {}\n", row.operation, row.dtype, row.shape, row.error,
             fmt::format("{:.0e}", row.limit), row.milliseconds ? fmt::format("{:.3f} ms", *row.milliseconds) : std::string("—"), share(row.bandwidthShare),
             share(row.gemmShare), row.passed ? "ok" : row.reason.empty() ? "WRONG" : row.reason);
  std::fflush(stdout);
}

int runSelftest(const Options& options) {
  const engine::FoundDevices found = engine::findDevices({});
  const bool cuda = options.device == "cuda" || (options.device == "auto" && found.cudaModule);
  if (cuda && !found.cudaModule) return fail(kBadInput, found.cudaOffReason);
  if (cuda && options.index >= found.cuda.size())
    return fail(kBadInput, fmt::format("--index: found {}, expected 0 to {}", options.index, found.cuda.size() - 1));
  if (!cuda && options.indexGiven)
    return fail(kBadInput, "--index: found with the CPU, expected a CUDA device: only these are numbered");
  if (!cuda && options.device == "auto" && options.format == "table") fmt::print("{}\n", found.cudaOffReason);
  engine::SelftestSettings settings;
  settings.cuda = cuda ? found.cudaModule : nullptr;
  settings.device = options.index;
  settings.quick = options.quick;
  nlohmann::json rows = nlohmann::json::array();
  bool header = false;
  const auto summary = engine::runSelftest(settings, [&](const engine::SelftestRow& row) {
    if (options.format == "json") {
      rows.push_back(rowJson(row));
      return;
    }
    if (!std::exchange(header, true))
      fmt::print("{:<18}{:<10}{:<26}{:>10}{:>10}{:>10}{:>8}{:>8}\n", "operation", "dtype", "shape", "error", "limit", "time", "of copy", "of GEMM");
    printRow(row);
  });
  if (!summary) return fail(kFailed, summary.error().message());
  if (options.format == "json") {
    nlohmann::json json = {{"schema", "headroom.selftest/1"}, {"device", summary->device}, {"failed", summary->failed}, {"rows", rows}};
    json["copy_gb_per_s"] = summary->copyGBs ? nlohmann::json(*summary->copyGBs) : nlohmann::json(nullptr);
    json["gemm_tflops"] = summary->gemmTflops ? nlohmann::json(*summary->gemmTflops) : nlohmann::json(nullptr);
    fmt::print("{}\n", reportText(json));
  } else {
    fmt::print("\n{}: {} of {} checks failed", summary->device, summary->failed, summary->checks);
    if (summary->copyGBs) fmt::print("; copies run at {:.1f} GB/s", *summary->copyGBs);
    if (summary->gemmTflops) fmt::print(", large products at {:.2f} TFLOP/s", *summary->gemmTflops);
    fmt::print(" (both measured here; they are what the shares are of)\n");
  }
  return summary->failed == 0 ? kDone : kFailed;
}

}  // namespace

void addSelftestCommand(CLI::App& app, Run& run) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("selftest", "Runs every operation and collective of a device against the CPU, with errors and rates.");
  command->add_option("--device", options->device, "auto, cuda or cpu")->check(CLI::IsMember({"auto", "cuda", "cpu"}))->capture_default_str();
  CLI::Option* index = command->add_option("--index", options->index, "Which CUDA device")->check(CLI::Range(0, 63))->capture_default_str();
  command->add_flag("--quick", options->quick, "Small shapes only: is it right? Rates then say little");
  command->add_option("--format", options->format, "table or json")->check(CLI::IsMember({"table", "json"}))->capture_default_str();
  command->callback([options, index, &run] {
    options->indexGiven = index->count() > 0;
    run = [options] { return runSelftest(*options); };
  });
}

}  // namespace headroom::app
