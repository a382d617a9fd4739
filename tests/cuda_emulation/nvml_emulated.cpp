// SPDX-License-Identifier: Apache-2.0
// NVML of an emulated machine, a library of its own: HEADROOM_EMULATED_GPUS devices. The second one tells nothing but its name
// and memory, as old cards and virtual ones do; HEADROOM_EMULATED_FAULT=nvml makes it fail to start.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define HEADROOM_EXPORTED extern "C" __attribute__((visibility("default")))

namespace {
int devices() {
  const char* text = std::getenv("HEADROOM_EMULATED_GPUS");
  return text ? std::atoi(text) : 1;
}
constexpr int kNotSupported = 3, kInvalid = 2, kDriverNotLoaded = 9;
unsigned indexOf(void* device) { return static_cast<unsigned>(reinterpret_cast<uintptr_t>(device)) - 1; }
bool tells(void* device) { return indexOf(device) != 1; }
struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpuInstance, computeInstance;
};
}  // namespace

HEADROOM_EXPORTED int nvmlInit_v2() {
  const char* fault = std::getenv("HEADROOM_EMULATED_FAULT");
  return fault && std::strcmp(fault, "nvml") == 0 ? kDriverNotLoaded : 0;
}
HEADROOM_EXPORTED int nvmlShutdown() { return 0; }
HEADROOM_EXPORTED int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return std::snprintf(text, size, "580.00") > 0 ? 0 : 1;
}
HEADROOM_EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(devices());
  return 0;
}
HEADROOM_EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (static_cast<int>(index) >= devices()) return kInvalid;
  *device = reinterpret_cast<void*>(static_cast<uintptr_t>(index + 1));
  return 0;
}
HEADROOM_EXPORTED int nvmlDeviceGetName(void*, char* text, unsigned size) {
  return std::snprintf(text, size, "Emulated GPU") > 0 ? 0 : 1;
}
HEADROOM_EXPORTED int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {4ull << 30, 3ull << 30, 1ull << 30};
  return 0;
}
HEADROOM_EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* found) {
  if (!tells(device)) return kNotSupported;
  found[0] = {4711, 512ull << 20, 0, 0};
  found[1] = {4712, ~0ull, 0, 0};
  *count = 2;
  return 0;
}
HEADROOM_EXPORTED int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  if (!tells(device)) return kNotSupported;
  *rates = {75, 0};
  return 0;
}
HEADROOM_EXPORTED int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (!tells(device)) return kNotSupported;
  *milliwatts = 250500;
  return 0;
}
HEADROOM_EXPORTED int nvmlDeviceGetTemperature(void* device, unsigned, unsigned* degrees) {
  if (!tells(device)) return kNotSupported;
  *degrees = 61;
  return 0;
}
HEADROOM_EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
  if (!tells(device)) return kNotSupported;
  *bits = 0x1 | 0x4;  // idle is no throttle; the power cap is
  return 0;
}
HEADROOM_EXPORTED int nvmlDeviceGetTopologyCommonAncestor(void*, void*, unsigned* level) {
  *level = 30;
  return 0;
}
