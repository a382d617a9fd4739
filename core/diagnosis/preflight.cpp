// SPDX-License-Identifier: Apache-2.0
#include "core/diagnosis/preflight.h"

#include <fmt/format.h>

#include <string_view>

namespace headroom {
namespace {

std::string gib(Bytes bytes) { return fmt::format("{:.2f} GiB", bytes.gib()); }

PreflightCheck memoryCheck(const MachineFacts& facts, const std::optional<ModelNeeds>& model) {
  PreflightCheck check{"host_memory", CheckState::Unknown, "unknown", ""};
  if (!facts.memory) return check;
  check.found = gib(*facts.memory) + (facts.memoryAvailable ? fmt::format(", {} available", gib(*facts.memoryAvailable)) : "");
  check.state = CheckState::Good;
  if (!model) return check;
  // Engines stage a rank's weights in main memory, all ranks at once; files that are mapped need their pages only.
  const Bytes available = facts.memoryAvailable.value_or(*facts.memory), staged = model->largestRank * model->ranks;
  if (available < model->largestRank) {
    check.state = CheckState::Failed;
    check.found += fmt::format("; one rank reads {} of weights", gib(model->largestRank));
    check.fix = "more memory, or a higher limit of the container: a loader that stages weights is ended by the kernel";
  } else if (available < staged) {
    check.state = CheckState::Warning;
    check.found += fmt::format("; {} ranks at once stage up to {}", model->ranks, gib(staged));
    check.fix = "load from memory-mapped safetensors, or one rank after another";
  }
  return check;
}

PreflightCheck sharedMemoryCheck(const MachineFacts& facts) {
  PreflightCheck check{"shared_memory", CheckState::Unknown, "unknown", ""};
  if (!facts.sharedMemory) return check;
  const Bytes free = facts.sharedMemoryFree.value_or(*facts.sharedMemory);
  check.found = fmt::format("/dev/shm: {} of {} free", gib(free), gib(*facts.sharedMemory));
  check.state = CheckState::Good;
  constexpr Bytes kLeast = 512_MiB, kWanted = 1_GiB;
  if (free < kLeast) {
    // Headroom's ranks are threads of one process; others exchange through it.
    check.state = facts.gpus > 1 ? CheckState::Failed : CheckState::Warning;
    check.fix = facts.container ? "docker run --shm-size 16g (or --ipc=host); engines with a process a GPU need it"
                                : "mount -o remount,size=16G /dev/shm; engines with a process a GPU need it";
  } else if (free < kWanted) {
    check.state = CheckState::Warning;
    check.fix = "1 GiB or more for engines with a process a GPU";
  }
  return check;
}

PreflightCheck openFilesCheck(const MachineFacts& facts) {
  PreflightCheck check{"open_files", CheckState::Unknown, "unknown", ""};
  if (!facts.openFiles) return check;
  constexpr int64_t kWanted = 4096;
  check.found = fmt::format("a limit of {}", *facts.openFiles);
  check.state = *facts.openFiles < kWanted ? CheckState::Warning : CheckState::Good;
  if (check.state == CheckState::Warning) check.fix = "ulimit -n 65536: each connection and shard is a file";
  return check;
}

PreflightCheck devicesCheck(const MachineFacts& facts) {
  if (facts.gpus > 0) return {"devices", CheckState::Good, fmt::format("{} CUDA device{}", facts.gpus, facts.gpus > 1 ? "s" : ""), ""};
  return {"devices", CheckState::Warning, facts.cudaOffReason.empty() ? "no CUDA device" : facts.cudaOffReason,
          "host devices are used: the CPU and a share of its memory each"};
}

}  // namespace

std::string_view checkStateName(CheckState state) {
  switch (state) {
    case CheckState::Good:
      return "good";
    case CheckState::Warning:
      return "warning";
    case CheckState::Failed:
      return "failed";
    case CheckState::Unknown:
      break;
  }
  return "unknown";
}

std::vector<PreflightCheck> preflight(const MachineFacts& facts, const std::optional<ModelNeeds>& model) {
  std::vector<PreflightCheck> checks{devicesCheck(facts), memoryCheck(facts, model), sharedMemoryCheck(facts), openFilesCheck(facts)};
  if (facts.gpus > 1) {
    PreflightCheck peers{"peer_to_peer", CheckState::Good, "no IOMMU remapping", ""};
    if (facts.iommu) {
      peers.state = CheckState::Warning;
      peers.found = "an IOMMU remaps: peer-to-peer over PCIe may hang or corrupt";
      peers.fix = "headroom-engine selftest tries every pair; NCCL_P2P_DISABLE=1 goes around it; turn off ACS in the firmware";
    }
    checks.push_back(peers);
  }
  for (const std::string& variable : facts.environment)
    checks.push_back({"environment", CheckState::Warning, variable, "it changes which devices are seen, and how they are numbered"});
  return checks;
}

}  // namespace headroom
