// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/local_gpus.h"

#include <fmt/format.h>

#include <utility>

namespace headroom {
namespace {

using nlohmann::json;

template <class T>
json orNull(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

template <class T>
std::optional<T> numberAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? std::optional(found->get<T>()) : std::nullopt;
}

std::string textAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

MachineGpu localGpu(int index, const std::string& name, std::optional<double> computeCapability, std::optional<double> bandwidthGBs,
                    Bytes total, std::optional<Bytes> usedByOthers) {
  MachineGpu gpu;
  gpu.index = index;
  if (const GpuSpec* known = findGpu(name)) gpu.spec = *known;
  gpu.spec.name = name;
  if (computeCapability) gpu.spec.computeCapability = computeCapability;
  if (bandwidthGBs) gpu.spec.bandwidthGBs = bandwidthGBs;
  gpu.spec.memory = gpu.totalMemory = total;
  gpu.usedByOthers = usedByOthers;
  return gpu;
}

Machine gpuMachine(std::vector<MachineGpu> gpus) {
  Machine machine;
  machine.isLocal = true;
  machine.gpus = std::move(gpus);
  // "2x NVIDIA L40S, 1x NVIDIA A40": what was measured on it is kept under this name.
  for (size_t first = 0; first < machine.gpus.size();) {
    size_t next = first;
    while (next < machine.gpus.size() && machine.gpus[next].spec.name == machine.gpus[first].spec.name) ++next;
    machine.description += fmt::format("{}{}x {}", first == 0 ? "" : ", ", next - first, machine.gpus[first].spec.name);
    first = next;
  }
  return machine;
}

json deviceToJson(const MachineGpu& device) {
  const std::optional<int64_t> used = device.usedByOthers ? std::optional(device.usedByOthers->count()) : std::nullopt;
  return {{"kind", device.spec.hostDevice ? "host" : "cuda"},
          {"index", device.index},
          {"name", device.spec.name},
          {"compute_capability", orNull(device.spec.computeCapability)},
          {"bandwidth_gb_per_s", orNull(device.spec.bandwidthGBs)},
          {"total_bytes", device.totalMemory.count()},
          {"used_by_others_bytes", orNull(used)}};
}

Result<LocalGpus> localGpusFromJson(const json& devices, const std::string& where) {
  const json none;
  const json& list = devices.is_object() && devices.contains("devices") ? devices["devices"] : none;
  if (!list.is_array()) return failure(where, "no list of devices", "what headroom-engine devices --format json writes");
  LocalGpus found;
  for (const json& device : list) {
    if (!device.is_object() || textAt(device, "kind") != "cuda") continue;
    const auto index = numberAt<int>(device, "index");
    const auto total = numberAt<int64_t>(device, "total_bytes");
    if (!index || !total || *index < 0 || *total <= 0)
      return failure(where, "a CUDA device without its number or memory", "index and total_bytes");
    const auto used = numberAt<int64_t>(device, "used_by_others_bytes");
    found.gpus.push_back(localGpu(*index, textAt(device, "name"), numberAt<double>(device, "compute_capability"),
                                  numberAt<double>(device, "bandwidth_gb_per_s"), Bytes(*total),
                                  used ? std::optional(Bytes(*used)) : std::nullopt));
  }
  if (devices.contains("cuda") && devices["cuda"].is_object()) found.offReason = textAt(devices["cuda"], "reason");
  return found;
}

}  // namespace headroom
