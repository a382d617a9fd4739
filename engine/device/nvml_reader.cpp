// SPDX-License-Identifier: Apache-2.0
// NVML's calls are declared here as its reference manual documents them. A call that the library lacks leaves its figure empty.
#include "engine/device/nvml_reader.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>

namespace headroom::engine {
namespace {

using Device = struct nvmlDevice_st*;
constexpr int kSuccess = 0, kInsufficientSize = 7;

struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstance, computeInstance;
};
struct PciInfo {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};

constexpr unsigned kClockSm = 1, kClockMemory = 2, kPcieSend = 0, kPcieReceive = 1, kMostLinks = 18;

struct ThrottleName {
  unsigned long long bit;
  const char* name;
};
constexpr std::array kThrottles{ThrottleName{0x4, "power cap"},        ThrottleName{0x8, "hardware slowdown"}, ThrottleName{0x10, "sync boost"},
                                ThrottleName{0x20, "temperature"},      ThrottleName{0x40, "hardware temperature"},
                                ThrottleName{0x80, "external power brake"}};

}  // namespace

struct NvmlReader::Impl {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*pci)(Device, PciInfo*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*powerLimit)(Device, unsigned*) = nullptr;
  int (*temperature)(Device, unsigned, unsigned*) = nullptr;
  int (*clock)(Device, unsigned, unsigned*) = nullptr;
  int (*throttle)(Device, unsigned long long*) = nullptr;
  int (*pcieThroughput)(Device, unsigned, unsigned*) = nullptr;
  int (*pcieGeneration)(Device, unsigned*) = nullptr;
  int (*pcieWidth)(Device, unsigned*) = nullptr;
  int (*linkState)(Device, unsigned, unsigned*) = nullptr;
  int (*linkPeer)(Device, unsigned, PciInfo*) = nullptr;
  int (*ecc)(Device, unsigned, unsigned, unsigned long long*) = nullptr;
  int (*mig)(Device, unsigned*, unsigned*) = nullptr;
  int (*ancestor)(Device, Device, unsigned*) = nullptr;
  bool ready = false;

  ~Impl() {
    if (ready && shutdown) shutdown();
  }
  template <class Call>
  void find(Call& call, const char* symbol) {
    call = reinterpret_cast<Call>(dlsym(library, symbol));
  }
  Device device(int index) const {
    Device found = nullptr;
    return handle && handle(static_cast<unsigned>(index), &found) == kSuccess ? found : nullptr;
  }
  // A figure of one unsigned number.
  template <class Call, class... Arguments>
  static std::optional<double> number(Call call, Arguments... arguments) {
    unsigned value = 0;
    if (!call || call(arguments..., &value) != kSuccess) return {};
    return value;
  }
  std::optional<int> activeLinks(Device device) const {
    std::optional<int> active;
    for (unsigned link = 0; linkState && link < kMostLinks; ++link) {
      unsigned state = 0;
      if (linkState(device, link, &state) != kSuccess) break;
      active = active.value_or(0) + (state ? 1 : 0);
    }
    return active;
  }
};

NvmlReader::NvmlReader(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}
NvmlReader::~NvmlReader() = default;

Result<std::unique_ptr<NvmlReader>> NvmlReader::open(const std::string& library) {
  const char* other = std::getenv("HEADROOM_NVML_LIBRARY");
  const std::string file = !library.empty() ? library : other && *other ? other : "libnvidia-ml.so.1";
  auto impl = std::make_unique<Impl>();
  impl->library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!impl->library) return failure("NVML", "no " + file, "the NVIDIA driver's library", "GPUs cannot be watched without it");
  Impl& nvml = *impl;
  nvml.find(nvml.init, "nvmlInit_v2");
  nvml.find(nvml.shutdown, "nvmlShutdown");
  nvml.find(nvml.driver, "nvmlSystemGetDriverVersion");
  nvml.find(nvml.count, "nvmlDeviceGetCount_v2");
  nvml.find(nvml.handle, "nvmlDeviceGetHandleByIndex_v2");
  nvml.find(nvml.name, "nvmlDeviceGetName");
  nvml.find(nvml.uuid, "nvmlDeviceGetUUID");
  nvml.find(nvml.pci, "nvmlDeviceGetPciInfo_v3");
  nvml.find(nvml.memory, "nvmlDeviceGetMemoryInfo");
  nvml.find(nvml.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  nvml.find(nvml.utilization, "nvmlDeviceGetUtilizationRates");
  nvml.find(nvml.power, "nvmlDeviceGetPowerUsage");
  nvml.find(nvml.powerLimit, "nvmlDeviceGetEnforcedPowerLimit");
  nvml.find(nvml.temperature, "nvmlDeviceGetTemperature");
  nvml.find(nvml.clock, "nvmlDeviceGetClockInfo");
  nvml.find(nvml.throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  nvml.find(nvml.pcieThroughput, "nvmlDeviceGetPcieThroughput");
  nvml.find(nvml.pcieGeneration, "nvmlDeviceGetCurrPcieLinkGeneration");
  nvml.find(nvml.pcieWidth, "nvmlDeviceGetCurrPcieLinkWidth");
  nvml.find(nvml.linkState, "nvmlDeviceGetNvLinkState");
  nvml.find(nvml.linkPeer, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  nvml.find(nvml.ecc, "nvmlDeviceGetTotalEccErrors");
  nvml.find(nvml.mig, "nvmlDeviceGetMigMode");
  nvml.find(nvml.ancestor, "nvmlDeviceGetTopologyCommonAncestor");
  if (!nvml.init || !nvml.count || !nvml.handle) return failure("NVML", file + " without nvmlInit_v2", "NVML of driver 450 or above", "update the driver");
  if (const int result = nvml.init()) return failure("NVML", fmt::format("result {} of nvmlInit_v2", result), "a running NVIDIA driver", "see nvidia-smi");
  nvml.ready = true;
  return std::unique_ptr<NvmlReader>(new NvmlReader(std::move(impl)));
}

int NvmlReader::deviceCount() const {
  unsigned count = 0;
  return m_impl->count(&count) == kSuccess ? static_cast<int>(count) : 0;
}

std::string NvmlReader::driverVersion() const {
  char version[96] = "";
  return m_impl->driver && m_impl->driver(version, sizeof version) == kSuccess ? version : "";
}

GpuReading NvmlReader::read(int index) const {
  const Impl& nvml = *m_impl;
  GpuReading reading;
  reading.index = index;
  const Device device = nvml.device(index);
  if (!device) return reading;
  char text[96] = "";
  if (nvml.name && nvml.name(device, text, sizeof text) == kSuccess) reading.name = text;
  if (nvml.uuid && nvml.uuid(device, text, sizeof text) == kSuccess) reading.uuid = text;
  PciInfo pci{};
  if (nvml.pci && nvml.pci(device, &pci) == kSuccess) reading.pciBusId = pci.busId;
  Memory memory{};
  if (nvml.memory && nvml.memory(device, &memory) == kSuccess) {
    reading.totalMemory = Bytes(static_cast<int64_t>(memory.total));
    reading.usedMemory = Bytes(static_cast<int64_t>(memory.used));
    reading.freeMemory = Bytes(static_cast<int64_t>(memory.free));
  }
  if (nvml.processes) {
    std::array<ProcessInfo, 64> found{};
    unsigned count = found.size();
    const int result = nvml.processes(device, &count, found.data());
    if (result == kSuccess || result == kInsufficientSize)
      for (unsigned i = 0; result == kSuccess && i < count; ++i) {
        GpuProcessMemory process{found[i].pid, {}};
        if (found[i].usedGpuMemory != ~0ull) process.used = Bytes(static_cast<int64_t>(found[i].usedGpuMemory));  // all ones: not told
        reading.processes.push_back(process);
      }
  }
  Utilization utilization{};
  if (nvml.utilization && nvml.utilization(device, &utilization) == kSuccess) {
    reading.gpuUtilization = utilization.gpu / 100.0;
    reading.memoryUtilization = utilization.memory / 100.0;
  }
  const auto scaled = [](std::optional<double> value, double factor) { return value ? std::optional(*value * factor) : value; };
  const auto whole = [](std::optional<double> value) { return value ? std::optional(static_cast<int>(*value)) : std::optional<int>(); };
  reading.powerWatts = scaled(Impl::number(nvml.power, device), 1e-3);
  reading.powerLimitWatts = scaled(Impl::number(nvml.powerLimit, device), 1e-3);
  reading.temperatureCelsius = Impl::number(nvml.temperature, device, 0u);
  reading.smClockMHz = Impl::number(nvml.clock, device, kClockSm);
  reading.memoryClockMHz = Impl::number(nvml.clock, device, kClockMemory);
  reading.pcieSendMBs = scaled(Impl::number(nvml.pcieThroughput, device, kPcieSend), 1e-3);
  reading.pcieReceiveMBs = scaled(Impl::number(nvml.pcieThroughput, device, kPcieReceive), 1e-3);
  reading.pcieGeneration = whole(Impl::number(nvml.pcieGeneration, device));
  reading.pcieWidth = whole(Impl::number(nvml.pcieWidth, device));
  reading.nvlinks = nvml.activeLinks(device);
  unsigned long long bits = 0;
  if (nvml.throttle && nvml.throttle(device, &bits) == kSuccess)
    for (const ThrottleName& throttle : kThrottles)
      if (bits & throttle.bit) reading.throttleReasons.push_back(throttle.name);
  unsigned long long errors = 0;
  if (nvml.ecc && nvml.ecc(device, 1, 0, &errors) == kSuccess) reading.eccErrors = static_cast<int64_t>(errors);
  unsigned current = 0, pending = 0;
  if (nvml.mig && nvml.mig(device, &current, &pending) == kSuccess) reading.mig = current != 0;
  return reading;
}

std::optional<GpuPath> NvmlReader::path(int from, int to) const {
  const Impl& nvml = *m_impl;
  const Device a = nvml.device(from), b = nvml.device(to);
  if (!a || !b) return {};
  PciInfo peer{}, remote{};
  if (nvml.linkPeer && nvml.linkState && nvml.pci && nvml.pci(b, &peer) == kSuccess)
    for (unsigned link = 0; link < kMostLinks; ++link) {
      unsigned state = 0;
      if (nvml.linkState(a, link, &state) != kSuccess) break;
      if (state && nvml.linkPeer(a, link, &remote) == kSuccess && remote.domain == peer.domain && remote.bus == peer.bus && remote.device == peer.device)
        return GpuPath::NvLink;
    }
  unsigned level = 0;
  if (!nvml.ancestor || nvml.ancestor(a, b, &level) != kSuccess) return {};
  switch (level) {
    case 0: return GpuPath::SameBoard;
    case 10: return GpuPath::OneSwitch;
    case 20: return GpuPath::SeveralSwitches;
    case 30: return GpuPath::HostBridge;
    case 40: return GpuPath::SameNode;
    default: return GpuPath::AcrossNodes;
  }
}

std::string gpuPathName(GpuPath path) {
  switch (path) {
    case GpuPath::SameBoard: return "the same board";
    case GpuPath::OneSwitch: return "one PCIe switch";
    case GpuPath::SeveralSwitches: return "PCIe switches";
    case GpuPath::HostBridge: return "the host bridge";
    case GpuPath::SameNode: return "one NUMA node";
    case GpuPath::AcrossNodes: return "across NUMA nodes";
    case GpuPath::NvLink: return "NVLink";
  }
  return "unknown";
}

}  // namespace headroom::engine
