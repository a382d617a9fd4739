// SPDX-License-Identifier: Apache-2.0
// Partitions of layers over stages by what each GPU has room for: the fewest tokens that any stage can hold are made as many as
// possible. Engines split by count; what that costs is the difference.
#pragma once

#include "core/layout/parallel_layout.h"

#include <optional>
#include <vector>

namespace headroom {

// `layerBytes` and `unitBytes` (cache of one unit) of each layer; the first and the last stage hold `firstExtra` and `lastExtra`
// besides. Every stage gets at least one layer.
struct StageLoad {
  std::vector<int64_t> layerBytes, unitBytes;
  int64_t firstExtra = 0, lastExtra = 0;
};
// `rooms`: bytes of each stage for its layers, their cache and what the ends hold.

// Units that the tightest stage of a partition has room for; negative when its layers alone do not fit.
int64_t unitsOfPartition(const StageLoad& load, const std::vector<int64_t>& rooms, const std::vector<Range>& stages);

// The partition with the most units. Where no partition holds the layers, the one whose fullest stage is least over its room.
std::vector<Range> stagesByRoom(const StageLoad& load, const std::vector<int64_t>& rooms);

}  // namespace headroom
