// SPDX-License-Identifier: Apache-2.0
// Every operation of a device against the CPU backend in F32: the largest error relative to the largest value, and how fast it ran as a share of what
// the device's own copies and large products reach. Collectives of four ranks on the one device at the end.
#pragma once

#include "core/result.h"
#include "engine/device/cuda/cuda_module.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace headroom::engine {

struct SelftestRow {
  std::string operation, dtype, shape;
  double error = 0, limit = 0;  // largest difference / largest value of the reference
  bool passed = false;
  std::optional<double> milliseconds, bandwidthShare, gemmShare;
  std::string reason;           // of a failure that is no wrong number
};

struct SelftestSettings {
  std::shared_ptr<const CudaModule> cuda;  // null: the CPU backend at its fastest level
  int device = 0;
  bool quick = false;
};

struct SelftestSummary {
  std::string device;
  int checks = 0, failed = 0;
  std::optional<double> copyGBs, gemmTflops;
};

Result<SelftestSummary> runSelftest(const SelftestSettings& settings, const std::function<void(const SelftestRow&)>& report);

}  // namespace headroom::engine
