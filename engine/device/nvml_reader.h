// SPDX-License-Identifier: Apache-2.0
// Live figures of NVIDIA devices by NVML, opened at run time: no CUDA module and no toolkit is needed. What a device or driver does not tell is
// empty, never 0. One thread at a time; a reading takes some milliseconds, so it stays off the ranks' threads.
#pragma once

#include "core/result.h"
#include "core/units.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom::engine {

struct GpuProcessMemory {
  unsigned pid = 0;
  std::optional<Bytes> used;
};

struct GpuReading {
  int index = 0;
  std::string name, uuid, pciBusId;
  std::optional<Bytes> totalMemory, usedMemory, freeMemory;
  std::vector<GpuProcessMemory> processes;            // compute processes
  std::optional<double> gpuUtilization, memoryUtilization;  // 0 … 1
  std::optional<double> powerWatts, powerLimitWatts, temperatureCelsius;
  std::optional<double> smClockMHz, memoryClockMHz;
  std::vector<std::string> throttleReasons;           // "power cap", "temperature"; empty: none, or the driver does not tell
  std::optional<double> pcieReceiveMBs, pcieSendMBs;
  std::optional<int> pcieGeneration, pcieWidth;
  std::optional<int> nvlinks;                         // active ones
  std::optional<int64_t> eccErrors;                   // uncorrected, since the driver was loaded
  std::optional<bool> mig;
};

// How two devices reach each other, nearest first, as NVML names the levels.
enum class GpuPath : uint8_t { SameBoard, OneSwitch, SeveralSwitches, HostBridge, SameNode, AcrossNodes, NvLink };
std::string gpuPathName(GpuPath path);

class NvmlReader {
 public:
  // The reason where NVML is not there. `library`: another file than libnvidia-ml.so.1 (tests); HEADROOM_NVML_LIBRARY says the same.
  static Result<std::unique_ptr<NvmlReader>> open(const std::string& library = {});
  ~NvmlReader();
  int deviceCount() const;
  GpuReading read(int index) const;
  std::optional<GpuPath> path(int from, int to) const;
  std::string driverVersion() const;  // empty: unknown

 private:
  struct Impl;
  explicit NvmlReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> m_impl;
};

}  // namespace headroom::engine
