// SPDX-License-Identifier: Apache-2.0
// Plans asked the other way round: which GPUs a wish needs, and which engine suits a machine.
#pragma once

#include "core/launch/planner.h"

#include <map>
#include <string>
#include <vector>

namespace headroom {

class PreparedModel;  // core/launch/prepared_model.h

// Lengths and requests are those of PlanOptions (maxModelLen, concurrency, inputLen, outputLen).
struct Wish {
  std::optional<double> decodeTokensPerSecond;      // of each request, at the asked concurrency
  std::optional<double> throughputTokensPerSecond;  // of all requests
  std::optional<double> ttftMs;
  int mostGpus = 16;                     // of one machine
  std::map<std::string, double> prices;  // by catalog name, of one GPU, in any unit; empty: fewest GPUs first
};

// One machine of the catalog and the smallest layout on it that grants the wish.
struct WishAnswer {
  std::string gpus;  // "2xH100-80GB", as --gpus takes it
  int count = 0;
  Bytes memory;  // of all its GPUs
  std::optional<double> price;
  int tp = 1, pp = 1, dp = 1;
  Verdict verdict = Verdict::Fits;
  std::optional<Bytes> headroom;
  Prediction predicted;
  int year = 0;  // of the card; 0: unknown
};

struct WishReport {
  std::vector<WishAnswer> answers;  // best first: cheapest, or fewest GPUs, then least memory
  // Cards that cannot grant it with mostGpus, and what stands in the way.
  struct Refused {
    std::string gpu, why;
  };
  std::vector<Refused> refused;
};

// `cards`: catalog names to look among; empty: the whole catalog. Predictions that are unknown do not grant a speed.
Result<WishReport> searchMachines(const PreparedModel& model, const PlanOptions& options, const Wish& wish,
                                  const std::vector<std::string>& cards = {});
Result<WishReport> searchMachines(const ModelSource& model, const PlanOptions& options, const Wish& wish,
                                  const std::vector<std::string>& cards = {});
// The order of WishReport: those with a price first, the cheapest first; then by count and memory.
void sortAnswers(std::vector<WishAnswer>& answers);
nlohmann::json wishToJson(const WishReport& report, const PlanOptions& options, const Wish& wish);

// One engine's best layout on the machine.
struct EngineAnswer {
  EngineSelection engine;
  std::string error;  // options that it does not take; the rest is empty then
  int accepted = 0, fitting = 0, layouts = 0;
  std::optional<LayoutPlan> best;  // recommended
  std::string why;
  std::optional<int64_t> mostKvTokens;  // of any layout that fits, replicas together
  std::string firstRefusal;             // of the largest TP on all GPUs, where there is none that fits
};
// `engines` empty: all that are planned.
std::vector<EngineAnswer> compareEngines(const ModelSource& model, const Machine& machine, const PlanOptions& options,
                                         const std::vector<EngineSelection>& engines = {});
nlohmann::json comparisonToJson(const std::vector<EngineAnswer>& answers);

// The engines that planModel knows, Headroom first.
std::vector<EngineSelection> plannedEngines();

}  // namespace headroom
