// SPDX-License-Identifier: Apache-2.0
#include "core/launch/plan_search.h"

#include "core/launch/prepared_model.h"

#include <algorithm>

namespace headroom {
namespace {

using nlohmann::json;

bool usable(const LayoutPlan& plan) { return plan.verdict == Verdict::Fits || plan.verdict == Verdict::Tight; }

// Empty: granted. Else what is missing.
std::string missing(const LayoutPlan& plan, const Wish& wish) {
  const Prediction& p = plan.predicted;
  auto speed = [](const char* what, const std::optional<double>& wished, const std::optional<double>& found, bool least) {
    if (!wished) return std::string();
    if (!found) return fmt::format("{} is unknown for it", what);
    const bool good = least ? *found >= *wished : *found <= *wished;
    return good ? std::string() : fmt::format("{} {:.4g} is predicted, {:.4g} wished", what, *found, *wished);
  };
  const std::optional<double> each = p.itlMs && *p.itlMs > 0 ? std::optional(1000.0 / *p.itlMs) : std::nullopt;
  for (const std::string& text : {speed("tokens/s of a request", wish.decodeTokensPerSecond, each, true),
                                  speed("tokens/s of all requests", wish.throughputTokensPerSecond, p.throughputTokensPerSecond, true),
                                  speed("milliseconds to the first token", wish.ttftMs, p.ttftMs, false)}) {
    if (!text.empty()) return text;
  }
  return {};
}

template <class T>
json valueJson(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json predictionJson(const Prediction& p) {
  if (p.source.empty()) return {};
  return {{"decode_tokens_per_s", valueJson(p.decodeTokensPerSecond)},
          {"throughput_tokens_per_s", valueJson(p.throughputTokensPerSecond)},
          {"itl_ms", valueJson(p.itlMs)},
          {"prefill_tokens_per_s", valueJson(p.prefillTokensPerSecond)},
          {"ttft_ms", valueJson(p.ttftMs)},
          {"source", p.source}};
}

// The smallest count of the card that grants the wish: machines of 1, 2, 4 … are what people buy, but any count runs.
std::optional<WishAnswer> smallestMachine(const PreparedModel& model, const PlanOptions& options, const Wish& wish,
                                          const GpuSpec& spec, Error* error, std::string& why) {
  const int64_t least =
      std::max<int64_t>(1, model.condensed().checkpointBytes().count() / 2 / std::max<int64_t>(1, spec.memory.count()));
  for (int count = static_cast<int>(std::min<int64_t>(least, wish.mostGpus)); count <= wish.mostGpus; ++count) {
    const std::string gpus = fmt::format("{}x{}", count, spec.name);
    const Result<Machine> machine = parseMachine(gpus);
    if (!machine) continue;
    const Result<PlanReport> report = planModel(model, *machine, options);
    if (!report) {
      *error = report.error();
      return std::nullopt;
    }
    // A length that was lowered to fit grants nothing that was asked.
    const LayoutPlan* best = nullptr;
    for (const LayoutPlan& plan : report->layouts) {
      if (plan.tp * plan.pp * plan.dp != count) continue;
      if (!usable(plan)) {
        if (!plan.reasons.empty() && count == wish.mostGpus) why = plan.reasons.front().message;
        continue;
      }
      if (const std::string lacks = missing(plan, wish); !lacks.empty()) {
        why = fmt::format("{} GPUs: {}", count, lacks);
        continue;
      }
      auto speed = [](const LayoutPlan& p) { return p.predicted.throughputTokensPerSecond.value_or(0); };
      const bool better = !best || (plan.verdict == Verdict::Fits && best->verdict != Verdict::Fits) ||
                          (plan.verdict == best->verdict && speed(plan) > speed(*best));
      if (better) best = &plan;
    }
    if (!best) continue;
    WishAnswer answer;
    answer.gpus = gpus;
    answer.count = count;
    answer.memory = spec.memory * count;
    if (const auto price = wish.prices.find(spec.name); price != wish.prices.end()) answer.price = price->second * count;
    answer.tp = best->tp;
    answer.pp = best->pp;
    answer.dp = best->dp;
    answer.verdict = best->verdict;
    answer.headroom = best->headroom;
    answer.predicted = best->predicted;
    answer.year = spec.year.value_or(0);
    return answer;
  }
  return std::nullopt;
}

}  // namespace

std::vector<EngineSelection> plannedEngines() {
  std::vector<EngineSelection> engines;
  for (const EngineKind kind : {EngineKind::Headroom, EngineKind::Vllm, EngineKind::SgLang, EngineKind::TensorRtLlm,
                                EngineKind::LmDeploy, EngineKind::LlamaCpp})
    engines.push_back({kind, {}});
  return engines;
}

Result<WishReport> searchMachines(const ModelSource& model, const PlanOptions& options, const Wish& wish,
                                  const std::vector<std::string>& cards) {
  return searchMachines(PreparedModel::borrowed(model), options, wish, cards);
}

Result<WishReport> searchMachines(const PreparedModel& model, const PlanOptions& options, const Wish& wish,
                                  const std::vector<std::string>& cards) {
  if (wish.mostGpus < 1 || wish.mostGpus > 64)
    return failure("--max-gpus", std::to_string(wish.mostGpus), "1 to 64");
  PlanOptions asked = options;
  if (!asked.maxModelLen) {  // a wish is for a length, not for what happens to fit
    const int64_t load = asked.inputLen.value_or(0) + asked.outputLen.value_or(0);
    const int64_t positions = model.opened().config.maxPositionEmbeddings;
    asked.maxModelLen = load > 0 ? load : positions > 0 ? positions : 4096;
  }
  std::vector<const GpuSpec*> specs;
  for (const std::string& name : cards) {
    const GpuSpec* spec = findGpu(name);
    if (!spec) return failure("--gpus", fmt::format("\"{}\"", name), "cards of the catalog, such as H100-80GB,L40S");
    specs.push_back(spec);
  }
  if (cards.empty()) {
    for (const GpuSpec& spec : gpuCatalog()) specs.push_back(&spec);
  }
  for (const auto& [name, price] : wish.prices) {
    if (!findGpu(name)) return failure("--price", fmt::format("\"{}\"", name), "a card of the catalog");
  }
  Wish named = wish;  // prices under the catalog's own names
  named.prices.clear();
  for (const auto& [name, price] : wish.prices) named.prices[findGpu(name)->name] = price;
  WishReport report;
  for (const GpuSpec* spec : specs) {
    Error error;
    std::string why = "the model does not fit";
    if (auto answer = smallestMachine(model, asked, named, *spec, &error, why))
      report.answers.push_back(std::move(*answer));
    else if (!error.where.empty())
      return tl::unexpected(error);
    else
      report.refused.push_back({spec->name, why});
  }
  sortAnswers(report.answers);
  return report;
}

void sortAnswers(std::vector<WishAnswer>& answers) {
  std::stable_sort(answers.begin(), answers.end(), [](const WishAnswer& a, const WishAnswer& b) {
    if (a.price.has_value() != b.price.has_value()) return a.price.has_value();
    if (a.price && *a.price != *b.price) return *a.price < *b.price;
    if (a.count != b.count) return a.count < b.count;
    return a.memory < b.memory;
  });
}

json wishToJson(const WishReport& report, const PlanOptions& options, const Wish& wish) {
  json answers = json::array(), refused = json::array();
  for (const WishAnswer& answer : report.answers) {
    answers.push_back({{"gpus", answer.gpus},
                       {"count", answer.count},
                       {"memory_bytes", answer.memory.count()},
                       {"price", valueJson(answer.price)},
                       {"tp", answer.tp},
                       {"pp", answer.pp},
                       {"dp", answer.dp},
                       {"verdict", verdictName(answer.verdict)},
                       {"headroom_bytes", answer.headroom ? json(answer.headroom->count()) : json()},
                       {"predicted", predictionJson(answer.predicted)}});
  }
  for (const WishReport::Refused& card : report.refused) refused.push_back({{"gpu", card.gpu}, {"why", card.why}});
  return {{"schema", "headroom.wish/1"},
          {"wish",
           {{"engine", engineName(options.engine.kind)},
            {"max_model_len", valueJson(options.maxModelLen)},
            {"concurrency", options.concurrency},
            {"input_len", valueJson(options.inputLen)},
            {"output_len", valueJson(options.outputLen)},
            {"decode_tokens_per_s", valueJson(wish.decodeTokensPerSecond)},
            {"throughput_tokens_per_s", valueJson(wish.throughputTokensPerSecond)},
            {"ttft_ms", valueJson(wish.ttftMs)},
            {"max_gpus", wish.mostGpus}}},
          {"answers", std::move(answers)},
          {"refused", std::move(refused)}};
}

std::vector<EngineAnswer> compareEngines(const ModelSource& model, const Machine& machine, const PlanOptions& options,
                                         const std::vector<EngineSelection>& engines) {
  const PreparedModel prepared = PreparedModel::borrowed(model);
  std::vector<EngineAnswer> answers;
  for (const EngineSelection& engine : engines.empty() ? plannedEngines() : engines) {
    EngineAnswer answer;
    answer.engine = engine;
    PlanOptions asked = options;
    asked.engine = engine;
    if (engine.kind == EngineKind::LlamaCpp) asked.gpuMemoryUtilization.reset();  // it has no such option
    const Result<PlanReport> report = planModel(prepared, machine, asked);
    if (!report) {
      answer.error = report.error().message();
      answers.push_back(std::move(answer));
      continue;
    }
    answer.engine = report->options.engine;
    answer.layouts = static_cast<int>(report->layouts.size());
    for (const LayoutPlan& plan : report->layouts) {
      if (plan.verdict != Verdict::Invalid) ++answer.accepted;
      if (plan.verdict == Verdict::Invalid && plan.tp == machine.size() && !plan.reasons.empty())
        answer.firstRefusal = plan.reasons.front().message;
      if (!usable(plan)) continue;
      ++answer.fitting;
      if (plan.kvTokens) answer.mostKvTokens = std::max(answer.mostKvTokens.value_or(0), *plan.kvTokens * plan.dp);
    }
    if (report->recommended) {
      answer.best = *report->find(report->recommended->tp, report->recommended->pp, report->recommended->dp);
      answer.why = report->recommended->why;
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

json comparisonToJson(const std::vector<EngineAnswer>& answers) {
  json list = json::array();
  for (const EngineAnswer& answer : answers) {
    json best;
    if (answer.best) {
      const LayoutPlan& plan = *answer.best;
      best = {{"tp", plan.tp},
              {"pp", plan.pp},
              {"dp", plan.dp},
              {"verdict", verdictName(plan.verdict)},
              {"headroom_bytes", plan.headroom ? json(plan.headroom->count()) : json()},
              {"kv_tokens", valueJson(plan.kvTokens)},
              {"longest_context", plan.answers.empty() ? json() : valueJson(plan.answers.front().longestContext)},
              {"most_requests", plan.answers.empty() ? json() : valueJson(plan.answers.front().mostRequests)},
              {"predicted", predictionJson(plan.predicted)},
              {"why", answer.why}};
    }
    list.push_back({{"engine", engineName(answer.engine.kind)},
                    {"engine_version", answer.engine.version.empty() ? json() : json(answer.engine.version)},
                    {"error", answer.error.empty() ? json() : json(answer.error)},
                    {"layouts", answer.layouts},
                    {"accepted", answer.accepted},
                    {"fitting", answer.fitting},
                    {"most_kv_tokens", valueJson(answer.mostKvTokens)},
                    {"first_refusal", answer.firstRefusal.empty() ? json() : json(answer.firstRefusal)},
                    {"best", std::move(best)}});
  }
  return list;
}

}  // namespace headroom
