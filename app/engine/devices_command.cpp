// SPDX-License-Identifier: Apache-2.0
// headroom-engine devices: what this machine offers to run models on, and why CUDA is off when it is.
#include "app/engine/command.h"
#include "app/engine/option_checks.h"
#include "core/hardware/local_gpus.h"
#include "engine/device/backend_registry.h"
#include "engine/device/nvml_reader.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

namespace headroom::app {
namespace {

using engine::FoundDevices;

int cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

nlohmann::json devicesJson(const FoundDevices& found) {
  nlohmann::json devices = nlohmann::json::array(), levels = nlohmann::json::array();
  for (const MachineGpu& gpu : found.cuda.gpus) devices.push_back(deviceToJson(gpu));
  for (const MachineGpu& gpu : found.host.gpus) devices.push_back(deviceToJson(gpu));
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

template <class T>
nlohmann::json orNull(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}
nlohmann::json orNull(const std::optional<Bytes>& value) { return value ? nlohmann::json(value->count()) : nlohmann::json(nullptr); }

nlohmann::json readingJson(const engine::GpuReading& gpu) {
  nlohmann::json processes = nlohmann::json::array();
  for (const engine::GpuProcessMemory& process : gpu.processes) processes.push_back({{"pid", process.pid}, {"used_bytes", orNull(process.used)}});
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"uuid", gpu.uuid},
          {"pci_bus_id", gpu.pciBusId},
          {"total_bytes", orNull(gpu.totalMemory)},
          {"used_bytes", orNull(gpu.usedMemory)},
          {"free_bytes", orNull(gpu.freeMemory)},
          {"processes", processes},
          {"gpu_utilization", orNull(gpu.gpuUtilization)},
          {"memory_utilization", orNull(gpu.memoryUtilization)},
          {"power_watts", orNull(gpu.powerWatts)},
          {"power_limit_watts", orNull(gpu.powerLimitWatts)},
          {"temperature_celsius", orNull(gpu.temperatureCelsius)},
          {"sm_clock_mhz", orNull(gpu.smClockMHz)},
          {"memory_clock_mhz", orNull(gpu.memoryClockMHz)},
          {"throttle_reasons", gpu.throttleReasons},
          {"pcie_receive_mb_per_s", orNull(gpu.pcieReceiveMBs)},
          {"pcie_send_mb_per_s", orNull(gpu.pcieSendMBs)},
          {"pcie_generation", orNull(gpu.pcieGeneration)},
          {"pcie_width", orNull(gpu.pcieWidth)},
          {"nvlinks", orNull(gpu.nvlinks)},
          {"ecc_errors", orNull(gpu.eccErrors)},
          {"mig", orNull(gpu.mig)}};
}

// One line of JSON a reading, for a window or a script that follows the devices; until nobody reads it.
int watchDevices(double seconds) {
  const auto reader = engine::NvmlReader::open();
  if (!reader) return fail(kFailed, reader.error().message());
  for (;;) {
    nlohmann::json gpus = nlohmann::json::array();
    for (int i = 0; i < (*reader)->deviceCount(); ++i) gpus.push_back(readingJson((*reader)->read(i)));
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const nlohmann::json line = {{"schema", "headroom.gpu_readings/1"}, {"time", now}, {"driver", (*reader)->driverVersion()}, {"gpus", gpus}};
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    if (std::fflush(stdout) != 0) return kDone;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
}

// What NVML tells now, and how the devices reach each other.
void printReadings() {
  const auto reader = engine::NvmlReader::open();
  if (!reader) return;
  const auto shown = [](const auto& value, const char* unit) { return value ? fmt::format("{:.0f} {}", *value, unit) : std::string("—"); };
  const int count = (*reader)->deviceCount();
  for (int i = 0; i < count; ++i) {
    const engine::GpuReading gpu = (*reader)->read(i);
    fmt::print("GPU {}: {}, {} used of {}, {} busy, {}, {}, SM clock {}{}\n", i, gpu.name,
               gpu.usedMemory ? fmt::format("{:.2f} GiB", gpu.usedMemory->gib()) : "—", gpu.totalMemory ? fmt::format("{:.2f} GiB", gpu.totalMemory->gib()) : "—",
               gpu.gpuUtilization ? fmt::format("{:.0f} %", *gpu.gpuUtilization * 100) : "—", shown(gpu.powerWatts, "W"), shown(gpu.temperatureCelsius, "°C"),
               shown(gpu.smClockMHz, "MHz"), gpu.throttleReasons.empty() ? "" : fmt::format(", slowed by {}", fmt::join(gpu.throttleReasons, ", ")));
  }
  for (int a = 0; a < count; ++a)
    for (int b = a + 1; b < count; ++b) {
      const auto path = (*reader)->path(a, b);
      fmt::print("GPU {} to GPU {}: {}\n", a, b, path ? engine::gpuPathName(*path) : "unknown");
    }
}

struct Options {
  double watchSeconds = 0;
  std::string format = "table";
  int count = HostDeviceSettings().count;
};

int runDevices(const Options& options) {
  if (options.watchSeconds > 0) return watchDevices(options.watchSeconds);
  HostDeviceSettings settings;
  settings.count = options.count;
  const FoundDevices found = engine::findDevices(settings);
  if (options.format == "json") {
    fmt::print("{}\n", reportText(devicesJson(found)));
  } else {
    printTable(found);
    printReadings();
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
  command->add_option("--watch", options->watchSeconds, "Follow the GPUs: every so many seconds one line of JSON with what NVML tells")
      ->check(numberIn(0.1, 3600));
  command->add_option("--format", options->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([options, command, &run] {
    const std::string idle =
        idleOption(*command, {{options->watchSeconds > 0, "with --watch", "one of the two: it follows GPUs", {"--host-devices"}},
                              {options->watchSeconds > 0 && options->format == "table", "table with --watch",
                               "json: it prints a line of JSON each time", {"--format"}}});
    run = [options, idle] { return idle.empty() ? runDevices(*options) : fail(kBadInput, idle); };
  });
}

}  // namespace headroom::app
