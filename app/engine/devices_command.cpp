// SPDX-License-Identifier: Apache-2.0
// headroom-engine devices: what this machine offers to run models on, and why CUDA is off when it is.
#include "app/engine/command.h"
#include "engine/device/backend_registry.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <thread>

namespace headroom::app {
namespace {

using engine::FoundDevices;

int cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

nlohmann::json gpuJson(const MachineGpu& gpu, const char* kind) {
  nlohmann::json json = {{"kind", kind}, {"index", gpu.index}, {"name", gpu.spec.name}, {"total_bytes", gpu.totalMemory.count()}};
  json["used_by_others_bytes"] = gpu.usedByOthers ? nlohmann::json(gpu.usedByOthers->count()) : nlohmann::json(nullptr);
  return json;
}

nlohmann::json devicesJson(const FoundDevices& found) {
  nlohmann::json devices = nlohmann::json::array(), levels = nlohmann::json::array();
  for (const MachineGpu& gpu : found.cuda.gpus) devices.push_back(gpuJson(gpu, "cuda"));
  for (const MachineGpu& gpu : found.host.gpus) devices.push_back(gpuJson(gpu, "host"));
  for (engine::CpuLevel level : engine::availableCpuLevels()) levels.push_back(engine::cpuLevelName(level));
  return {{"schema", "headroom.devices/1"},
          {"cpu",
           {{"cores", cores()},
            {"level", engine::cpuLevelName(engine::bestCpuLevel())},
            {"available_levels", levels},
            {"memory_bytes", hostMemory().count()}}},
          {"cuda",
           {{"available", found.cudaOffReason.empty()},
            {"reason", found.cudaOffReason.empty() ? nlohmann::json(nullptr) : nlohmann::json(found.cudaOffReason)}}},
          {"devices", devices}};
}

void printTable(const FoundDevices& found) {
  fmt::print("{:<8}{:<7}{:<28}{:>12}\n", "kind", "index", "name", "memory");
  for (const auto* machine : {&found.cuda, &found.host})
    for (const MachineGpu& gpu : machine->gpus)
      fmt::print("{:<8}{:<7}{:<28}{:>8.2f} GiB\n", machine == &found.cuda ? "cuda" : "host", gpu.index, gpu.spec.name,
                 gpu.totalMemory.gib());
  fmt::print("\nCPU: {} core{}, instruction set {}, {:.2f} GiB of memory\n", cores(), cores() == 1 ? "" : "s",
             engine::cpuLevelName(engine::bestCpuLevel()), hostMemory().gib());
  fmt::print("{}\n", found.cudaOffReason.empty() ? "CUDA is on." : found.cudaOffReason);
}

struct Options {
  std::string format = "table";
  int count = HostDeviceSettings().count;
};

int runDevices(const Options& options) {
  HostDeviceSettings settings;
  settings.count = options.count;
  const FoundDevices found = engine::findDevices(settings);
  if (options.format == "json") {
    fmt::print("{}\n", devicesJson(found).dump(2));
  } else {
    printTable(found);
  }
  return kDone;
}

}  // namespace

void addDevicesCommand(CLI::App& app, Run& run) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("devices", "Lists the devices of this machine, and says why others are missing.");
  command->add_option("--host-devices", options->count, "How many host devices share the CPU and its memory")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--format", options->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([options, &run] { run = [options] { return runDevices(*options); }; });
}

}  // namespace headroom::app
