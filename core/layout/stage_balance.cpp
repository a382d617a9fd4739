// SPDX-License-Identifier: Apache-2.0
#include "core/layout/stage_balance.h"

#include <algorithm>
#include <limits>

namespace headroom {
namespace {

// Deals layers in order, each stage as many as `holds(stage, begin, end)` allows; empty when layers are left over. A stage that
// could take more leaves one layer for each stage behind it, so the greedy choice is the best one.
template <class Holds>
std::vector<Range> dealt(int64_t layers, int stages, Holds holds) {
  std::vector<Range> ranges;
  int64_t begin = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const int64_t most = layers - (stages - 1 - stage);
    int64_t end = stage + 1 == stages ? layers : begin + 1;
    if (!holds(stage, begin, end)) return {};
    while (stage + 1 < stages && end < most && holds(stage, begin, end + 1)) ++end;
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

struct Sums {
  explicit Sums(const StageLoad& load) : layers(static_cast<int64_t>(load.layerBytes.size())) {
    bytes.assign(load.layerBytes.size() + 1, 0);
    units.assign(load.layerBytes.size() + 1, 0);
    for (size_t i = 0; i < load.layerBytes.size(); ++i) {
      bytes[i + 1] = bytes[i] + load.layerBytes[i];
      units[i + 1] = units[i] + load.unitBytes[i];
    }
  }
  int64_t bytesOf(const StageLoad& load, int64_t begin, int64_t end) const {
    return bytes[end] - bytes[begin] + (begin == 0 ? load.firstExtra : 0) + (end == layers ? load.lastExtra : 0);
  }
  int64_t layers;
  std::vector<int64_t> bytes, units;  // before a layer
};

}  // namespace

int64_t unitsOfPartition(const StageLoad& load, const std::vector<int64_t>& rooms, const std::vector<Range>& stages) {
  const Sums sums(load);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < stages.size(); ++i) {
    const int64_t left = rooms[i] - sums.bytesOf(load, stages[i].begin, stages[i].end);
    const int64_t unit = sums.units[stages[i].end] - sums.units[stages[i].begin];
    if (left < 0) return -1;
    if (unit > 0) least = std::min(least, left / unit);
  }
  return least;
}

std::vector<Range> stagesByRoom(const StageLoad& load, const std::vector<int64_t>& rooms) {
  const Sums sums(load);
  const int stages = static_cast<int>(rooms.size());
  expects(stages >= 1 && stages <= sums.layers, "every stage needs a layer");
  auto withUnits = [&](int64_t units) {
    return dealt(sums.layers, stages, [&](int stage, int64_t begin, int64_t end) {
      const int64_t taken = sums.bytesOf(load, begin, end), each = sums.units[end] - sums.units[begin];
      return taken <= rooms[stage] && (each == 0 || (rooms[stage] - taken) / each >= units);
    });
  };
  if (std::vector<Range> best = withUnits(0); !best.empty()) {
    int64_t low = 0, high = 1;
    const int64_t unit = sums.units[sums.layers];
    if (unit == 0) return best;
    int64_t all = 0;
    for (int64_t room : rooms) all += std::max<int64_t>(0, room);
    high = all / std::max<int64_t>(1, unit) + 1;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      if (std::vector<Range> ranges = withUnits(middle); !ranges.empty()) {
        best = std::move(ranges);
        low = middle;
      } else {
        high = middle;
      }
    }
    return best;
  }
  // Nothing fits: the least overload, as a multiple of the rooms.
  auto withShare = [&](double share) {
    return dealt(sums.layers, stages, [&](int stage, int64_t begin, int64_t end) {
      return static_cast<double>(sums.bytesOf(load, begin, end)) <= share * static_cast<double>(std::max<int64_t>(1, rooms[stage]));
    });
  };
  double low = 1, high = 2;
  while (withShare(high).empty() && high < 1e12) high *= 2;
  for (int round = 0; round < 40; ++round) {
    const double middle = low + (high - low) / 2;
    (withShare(middle).empty() ? low : high) = middle;
  }
  std::vector<Range> ranges = withShare(high);
  return ranges.empty() ? splitRange(sums.layers, stages) : ranges;
}

}  // namespace headroom
