// SPDX-License-Identifier: Apache-2.0
// GPUs as the planner sees them: catalog figures, or devices found on this machine.
#pragma once

#include "core/model/dtype.h"
#include "core/result.h"
#include "core/units.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

enum class LinkKind : uint8_t { Pcie, NvLink, HostMemory };

// One model of card. Unknown figures are empty, never 0. Rates are per second, dense (no sparsity).
struct GpuSpec {
  std::string name;                              // "A800-80GB"
  std::vector<std::string> aliases;
  std::string architecture;                      // "Ampere"
  Bytes memory;                                  // as the driver reports it
  std::optional<double> bandwidthGBs;            // 1e9 bytes/s
  std::optional<double> fp32Tflops, fp16Tflops, bf16Tflops, fp8Tflops, fp4Tflops, int8Tops;
  std::optional<double> computeCapability;       // 8.0; empty for host devices
  LinkKind link = LinkKind::Pcie;
  std::optional<double> linkGBs;                 // one direction, to the peers of the node
  std::optional<int> year;
  std::string source;                            // where the figures come from
  bool hostDevice = false;                       // a share of this machine's CPU and memory
  bool custom = false;                           // "24GiB": memory only
};

const std::vector<GpuSpec>& gpuCatalog();
const GpuSpec* findGpu(std::string_view name);

struct MachineGpu {
  int index = 0;
  int node = 0;
  GpuSpec spec;
  Bytes totalMemory;
  std::optional<Bytes> usedByOthers;  // measured on this machine; a program that asks by CUDA counts its own context too
  Bytes leftByOthers() const { return totalMemory - usedByOthers.value_or(Bytes()); }
  // What an engine may take that keeps to a share of the memory, and to what others leave.
  Bytes budget(double share) const {
    return std::min(Bytes(static_cast<int64_t>(static_cast<double>(totalMemory.count()) * share)), leftByOthers());
  }
};

struct Machine {
  std::string description;  // as written: "6xA800-80GB"
  std::vector<MachineGpu> gpus;
  int nodes = 1;
  bool isLocal = false;     // devices of this machine: a layout on it can be started
  int size() const { return static_cast<int>(gpus.size()); }
  bool isHostOnly() const;  // host devices and no card; false of an empty machine
};

// How many host devices `local` means without CUDA, and the memory of each; serve, plan and the window share it.
struct HostDeviceSettings {
  int count = 6;
  std::optional<Bytes> memoryEach;  // empty: half of the machine's memory, divided by count
};
// The local machine as host devices.
Machine hostMachine(const HostDeviceSettings& settings = {});
// Installed memory of this machine (cgroup limit included).
Bytes hostMemory();

// "24GiB", "79.19GiB", "24GB" (1e9 bytes), "512MiB"; empty when it is no amount of memory.
std::optional<Bytes> parseMemory(std::string_view text);

// Whether the text means this machine's own GPUs, if it has any: "local".
bool meansLocalGpus(std::string_view text);
// "local", "host", "6xA800-80GB", "2x24GiB,1x48GiB", "2n8xH100-80GB" (two nodes of eight). "local" is `localGpus` where there are
// any, else the host devices that "host" always is.
Result<Machine> parseMachine(std::string_view text, const HostDeviceSettings& settings = {},
                             const std::vector<MachineGpu>& localGpus = {});

}  // namespace headroom
