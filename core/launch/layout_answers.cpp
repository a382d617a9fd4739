// SPDX-License-Identifier: Apache-2.0
// What is asked of a layout after its plan: how long, how many, what a longer context takes, what a better partition gains, and
// what memory serves nothing. All made when first read.
#include "core/launch/evaluator.h"
#include "core/layout/stage_balance.h"

#include <algorithm>
#include <limits>

namespace headroom {

int64_t blocksFor(const ReplicaPlan& replica, int64_t tokens, int64_t requests) {
  return replica.unitsFor ? replica.unitsFor(tokens, requests) : ceilDiv(tokens, replica.unitTokens) * requests;
}

int64_t largestNumber(int64_t most, const std::function<bool(int64_t)>& good) {
  if (!good(1)) return 0;
  int64_t low = 1, high = 2;
  while (high <= most && good(high)) {
    low = high;
    high *= 2;
  }
  high = std::min(high, most + 1);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (good(middle) ? low : high) = middle;
  }
  return low;
}

namespace {

// A rank of a kind on a GPU of a kind.
struct Seat {
  const PartBytes* part = nullptr;
  int gpu = 0;
  Bytes budget;
};

std::vector<Seat> seatsOf(const GridContext& context, const ReplicaPlan& replica, int dp) {
  std::vector<Seat> seats;
  auto add = [&](const PartBytes& part, int gpu) {
    seats.push_back({&part, gpu, budgetOf(context, context.gpus[gpu], replica, part)});
  };
  const int each = replica.tp * replica.pp;
  for (int rank = 0; rank < each * (context.alike ? 1 : dp); ++rank) {
    const int within = rank % each;
    if (context.alike && replica.classes == 1 && within % replica.tp != 0) continue;  // all TP ranks of a stage are alike
    add(replica.part(within / replica.tp, within % replica.tp), context.order[rank]);
  }
  return seats;
}

// What a seat holds when the engine is sized for `tokens` and `requests` have grown to them.
Bytes takenAt(const ReplicaPlan& replica, const Seat& seat, int64_t tokens, int64_t requests, int64_t planned) {
  const int64_t longer = ceilDiv(tokens, std::max<int64_t>(1, replica.unitTokens)) - replica.unitsPerRequest;
  return seat.part->taken() + seat.part->lengthUnit * longer + seat.part->cacheFixedOfRequest * (requests - planned);
}

bool holds(const ReplicaPlan& replica, const std::vector<Seat>& seats, int64_t tokens, int64_t requests, int64_t planned) {
  const int64_t units = blocksFor(replica, tokens, requests);
  return std::all_of(seats.begin(), seats.end(), [&](const Seat& seat) {
    return takenAt(replica, seat, tokens, requests, planned) + seat.part->cacheUnit * units <= seat.budget;
  });
}

constexpr int64_t kMostTokens = int64_t(1) << 26, kMostRequests = int64_t(1) << 20;

std::vector<LayoutAnswers> answersOf(const GridContext& context, const ReplicaPlan& replica, int dp, int64_t requests) {
  const std::vector<Seat> seats = seatsOf(context, replica, dp);
  const bool cached = std::any_of(seats.begin(), seats.end(), [](const Seat& s) { return s.part->cacheUnit.count() > 0; });
  LayoutAnswers answers;
  const int64_t positions = context.positions > 0 ? context.positions : kMostTokens;
  answers.longestContext =
      largestNumber(positions, [&](int64_t tokens) { return holds(replica, seats, tokens, requests, requests); });
  if (cached) {
    // The engine starts only when one request of the maximum length fits.
    const bool starts = holds(replica, seats, context.maxModelLen, 1, requests);
    answers.mostRequests =
        !starts ? 0 : dp * largestNumber(kMostRequests, [&](int64_t many) {
                        const int64_t units =
                            std::max(blocksFor(replica, context.tokensPerRequest, many), replica.unitsPerRequest);
                        return std::all_of(seats.begin(), seats.end(), [&](const Seat& seat) {
                          return takenAt(replica, seat, context.maxModelLen, many, requests) + seat.part->cacheUnit * units <=
                                 seat.budget;
                        });
                      });
  }
  return {answers};
}

// The longest length, below the asked one, for which the asked load fits; 0 where none does. Without lengths that were asked for,
// each request grows to all of it.
int64_t shorterLength(const GridContext& context, const ReplicaPlan& replica, const std::vector<Seat>& seats, int64_t requests) {
  constexpr int64_t kLeast = 256, kStep = 16;
  const bool asked = context.tokensPerRequest != context.maxModelLen;
  const int64_t longest = largestNumber(context.maxModelLen, [&](int64_t tokens) {
    if (!asked) return holds(replica, seats, tokens, requests, requests);
    const int64_t units = std::max(blocksFor(replica, context.tokensPerRequest, requests), blocksFor(replica, tokens, 1));
    return std::all_of(seats.begin(), seats.end(), [&](const Seat& seat) {
      return takenAt(replica, seat, tokens, requests, requests) + seat.part->cacheUnit * units <= seat.budget;
    });
  });
  const int64_t length = longest / kStep * kStep;
  return length >= std::max(kLeast, asked ? context.tokensPerRequest : 0) && length < context.maxModelLen ? length : 0;
}

// A larger share of the memory that would hold what is asked for, where the engines take one: up to 0.97, beyond which context
// and communication have no room. Empty: none would.
std::optional<double> largerShare(const GridContext& context, const ReplicaPlan& replica, const std::vector<Seat>& seats) {
  constexpr int kMost = 97;
  // A length that was lowered to what fits grows with the share.
  if ((context.engine != EngineKind::Vllm && context.engine != EngineKind::Headroom) || context.lengthIsLowered)
    return std::nullopt;
  ReplicaPlan with;  // for the engine's own rule of the budget
  for (int percent = static_cast<int>(replica.utilization * 100) + 1; percent <= kMost; ++percent) {
    with.utilization = percent / 100.0;
    if (std::all_of(seats.begin(), seats.end(), [&](const Seat& seat) {
          const MachineGpu& gpu = context.gpus[seat.gpu];
          const Bytes budget = budgetOf(context, gpu, with, *seat.part);
          return budget <= gpu.leftByOthers() && seat.part->taken() + seat.part->cacheUnit * seat.part->unitsNeeded <= budget;
        }))
      return with.utilization;
  }
  return std::nullopt;
}

std::vector<ContextPoint> seriesOf(const GridContext& context, const ReplicaPlan& replica, int dp, int64_t requests) {
  constexpr int kPoints = 24;
  const std::vector<Seat> seats = seatsOf(context, replica, dp);
  const int64_t most = std::max(context.positions > 0 ? context.positions : 0, context.maxModelLen);
  std::vector<ContextPoint> points;
  int64_t last = 0;
  for (int i = 1; i <= kPoints; ++i) {
    const int64_t tokens = i == kPoints ? most : std::max<int64_t>(1, most * i / kPoints / 256 * 256);
    if (tokens == last) continue;
    last = tokens;
    const int64_t units = blocksFor(replica, tokens, requests);
    ContextPoint fullest;
    std::optional<Bytes> least;
    for (const Seat& seat : seats) {
      const Bytes fixed = takenAt(replica, seat, tokens, requests, requests) - seat.part->cacheFixed;
      const Bytes cache = seat.part->cacheFixed + seat.part->cacheUnit * units, left = seat.budget - fixed - cache;
      if (least && !(left < *least)) continue;
      least = left;
      fullest = {tokens, context.gpus[seat.gpu].index, fixed, cache, seat.budget};
    }
    if (least) points.push_back(fullest);
  }
  return points;
}

std::vector<PartitionAdvice> partitionOf(const GridContext& context, const ReplicaPlan& replica, int dp, int64_t blocks) {
  if (!replica.costs || replica.pp < 2 || replica.pp > context.layers) return {};
  const ReplicaPlan::StageCosts& costs = *replica.costs;
  StageLoad load{costs.layerBytes, {}, costs.first, costs.last};
  for (int stage = 0; stage < replica.pp; ++stage) {  // layers of a stage take the same, but for hybrid models
    const int64_t layers = replica.stages[stage].size(), unit = replica.parts[stage * replica.classes].cacheUnit.count();
    load.unitBytes.insert(load.unitBytes.end(), static_cast<size_t>(layers), layers > 0 ? unit / layers : 0);
  }
  std::vector<int64_t> rooms;
  for (int stage = 0; stage < replica.pp; ++stage) {
    // What a stage takes beside its layers stays with its place; the tightest replica decides.
    int64_t room = std::numeric_limits<int64_t>::max();
    const PartBytes& part = replica.parts[stage * replica.classes];
    for (int rep = 0; rep < (context.alike ? 1 : dp); ++rep) {
      for (int tpRank = 0; tpRank < replica.tp; ++tpRank) {
        const MachineGpu& gpu = context.gpus[context.order[(rep * replica.pp + stage) * replica.tp + tpRank]];
        room = std::min(room, (budgetOf(context, gpu, replica, part) - (part.taken() - part.weights)).count());
      }
    }
    rooms.push_back(room - costs.everywhere);
  }
  const int64_t own = unitsOfPartition(load, rooms, replica.stages);
  const std::vector<Range> better = stagesByRoom(load, rooms);
  const int64_t units = unitsOfPartition(load, rooms, better);
  constexpr double kWorthwhile = 1.01;
  if (units <= 0 || static_cast<double>(units) < kWorthwhile * static_cast<double>(std::max<int64_t>(own, 0))) return {};
  PartitionAdvice advice;
  for (const Range& range : better) advice.layers.push_back(range.size());
  const double ratio = own > 0 ? static_cast<double>(units) / static_cast<double>(own) : 0;
  advice.gain = own > 0 ? ratio - 1 : 0;
  const double tokensOfBlock = replica.tokensByUnits
                                   ? static_cast<double>(replica.unitTokens) / static_cast<double>(replica.unitGroups)
                                   : static_cast<double>(context.maxModelLen) / static_cast<double>(replica.unitsPerRequest);
  advice.kvTokens =
      static_cast<int64_t>((own > 0 ? ratio * static_cast<double>(blocks) : static_cast<double>(units)) * tokensOfBlock);
  return {advice};
}

std::vector<WasteItem> wasteOf(const GridContext& context, const ReplicaPlan& replica, int dp, int64_t blocks) {
  std::vector<WasteItem> items;
  const int each = replica.tp * replica.pp;
  Bytes copies, surplus, outside;
  for (int rank = 0; rank < each * dp; ++rank) {
    const int within = rank % each;
    const PartBytes& part = replica.part(within / replica.tp, within % replica.tp);
    const MachineGpu& gpu = context.gpus[context.order[rank]];
    const Bytes budget = budgetOf(context, gpu, replica, part);
    const Bytes cache = part.cacheFixed + part.cacheUnit * blocks;
    if (replica.kvCopies > 1) copies += Bytes(cache.count() / replica.kvCopies * (replica.kvCopies - 1));
    const Bytes left = budget - part.taken() - part.cacheUnit * blocks;
    if (left > part.cacheUnit) surplus += left;
    outside += gpu.totalMemory - budget;
  }
  if (copies.count() > 0)
    items.push_back({"kv_copies", copies,
                     fmt::format("each token's cache stands on {} ranks of a stage: there are fewer KV heads than ranks, or one "
                                 "latent for all heads",
                                 replica.kvCopies)});
  if (surplus.count() > 0 && blocks > 0)
    items.push_back(
        {"stage_surplus", surplus,
         "the tightest rank decides how many blocks all ranks have; what others have room for beyond that stays empty"});
  if (outside.count() > 0 && context.engine != EngineKind::LlamaCpp)
    items.push_back(
        {"outside_budget", outside, "memory that the engine leaves alone, for its context, communication and other programs"});
  Bytes idle;
  const int used = each * dp, all = static_cast<int>(context.order.size());
  for (int at = used; at < all; ++at) idle += context.gpus[context.order[at]].totalMemory;
  if (idle.count() > 0) items.push_back({"idle_gpus", idle, fmt::format("{} of {} GPUs are not used", all - used, all)});
  return items;
}

}  // namespace

std::string LayoutDetails::fix() const {
  const std::vector<Seat> seats = seatsOf(*context, *replica, dp);
  std::string text;
  const auto offer = [&text](const std::string& words) { text += (text.empty() ? "" : ", or ") + words; };
  const int64_t fewer = answersOf(*context, *replica, dp, requests).front().mostRequests.value_or(0);
  if (fewer >= 1 && fewer < context->concurrency)
    offer(fmt::format("{} request{} at once instead of {}", fewer, fewer > 1 ? "s" : "", context->concurrency));
  else if (const int64_t length = shorterLength(*context, *replica, seats, requests); length > 0)
    offer(fmt::format("--max-model-len {}", length));
  if (const auto share = largerShare(*context, *replica, seats)) offer(fmt::format("--gpu-memory-utilization {:.2f}", *share));
  if (!context->fitting.empty()) offer(context->fitting);
  if (text.empty()) return context->quantized ? "more GPUs, or more memory on each" : "more GPUs, or a quantized checkpoint";
  return text;
}

std::vector<LayoutAnswers> LayoutDetails::layoutAnswers() const { return answersOf(*context, *replica, dp, requests); }
std::vector<ContextPoint> LayoutDetails::contextPoints() const { return seriesOf(*context, *replica, dp, requests); }
std::vector<PartitionAdvice> LayoutDetails::partitionAdvice() const { return partitionOf(*context, *replica, dp, blocks); }
std::vector<WasteItem> LayoutDetails::wasteItems() const { return wasteOf(*context, *replica, dp, blocks); }

}  // namespace headroom
