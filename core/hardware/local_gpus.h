// SPDX-License-Identifier: Apache-2.0
// This machine's GPUs as the program that can open CUDA tells of them, and the JSON in which it tells other programs.
#pragma once

#include "core/hardware/machine.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct LocalGpus {
  std::vector<MachineGpu> gpus;  // that can be used, by CUDA's numbers
  std::string offReason;         // one sentence, where there are none
};

// A device under the catalog's figures, where the catalog knows its name; what the device itself tells counts before them.
MachineGpu localGpu(int index, const std::string& name, std::optional<double> computeCapability, std::optional<double> bandwidthGBs,
                    Bytes total, std::optional<Bytes> usedByOthers);

// The machine of these GPUs, on which a layout can be started. Empty without any.
Machine gpuMachine(std::vector<MachineGpu> gpus);

// One of "devices" as `headroom-engine devices --format json` writes them. Unknown figures are null.
nlohmann::json deviceToJson(const MachineGpu& device);
// Reads all that `headroom-engine devices --format json` writes about CUDA; `where` names it in errors.
Result<LocalGpus> localGpusFromJson(const nlohmann::json& devices, const std::string& where);

}  // namespace headroom
