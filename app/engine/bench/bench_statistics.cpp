// SPDX-License-Identifier: Apache-2.0
#include "app/engine/bench/bench_statistics.h"

#include <algorithm>
#include <cmath>

namespace headroom::app {

std::optional<double> RequestRecord::tpot() const {
  if (!ttft || outputTokens < 2) return std::nullopt;
  return (latency - *ttft) / static_cast<double>(outputTokens - 1);
}

double percentile(const std::vector<double>& sorted, double percent) {
  const double place = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

std::optional<Summary> summarize(std::vector<double> values, const std::vector<double>& percents) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  Summary summary;
  summary.count = values.size();
  const auto count = static_cast<double>(values.size());
  for (const double value : values) summary.mean += value / count;
  for (const double value : values) summary.deviation += (value - summary.mean) * (value - summary.mean) / count;
  summary.deviation = std::sqrt(summary.deviation);
  summary.median = percentile(values, 50);
  summary.least = values.front();
  summary.most = values.back();
  for (const double percent : percents) summary.percentiles.emplace_back(percent, percentile(values, percent));
  return summary;
}

bool Objectives::areKeptBy(const RequestRecord& record) const {
  if (!record.completed()) return false;
  if (ttftMs && (!record.ttft || *record.ttft * 1e3 > *ttftMs)) return false;
  // One token has no time between tokens: it keeps any limit.
  if (const auto tpot = record.tpot(); tpotMs && tpot && *tpot * 1e3 > *tpotMs) return false;
  return !e2eMs || record.latency * 1e3 <= *e2eMs;
}

namespace {

// Requests under way at the same time, at most.
int64_t peakOf(const std::vector<RequestRecord>& records) {
  std::vector<std::pair<double, int>> changes;
  for (const RequestRecord& record : records) {
    if (record.status == 0 && record.latency == 0) continue;  // never sent
    changes.emplace_back(record.sentAt, 1);
    changes.emplace_back(record.sentAt + record.latency, -1);
  }
  std::sort(changes.begin(), changes.end());  // an end comes before a begin at the same time
  int64_t open = 0, peak = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, open += change);
  return peak;
}

double peakOutputOf(const std::vector<RequestRecord>& records) {
  std::map<int64_t, int64_t> seconds;
  for (const RequestRecord& record : records) {
    if (!record.ttft) continue;
    double at = record.sentAt + *record.ttft;
    ++seconds[static_cast<int64_t>(at)];
    for (const double gap : record.itl) ++seconds[static_cast<int64_t>(at += gap)];
  }
  int64_t peak = 0;
  for (const auto& [second, pieces] : seconds) peak = std::max(peak, pieces);
  return static_cast<double>(peak);
}

}  // namespace

RunReport report(std::vector<RequestRecord> records, double duration, const Objectives& objectives,
                 const std::vector<double>& percents) {
  RunReport run;
  run.planned = records.size();
  run.duration = duration;
  std::vector<double> ttft, tpot, itl, e2e;
  size_t good = 0;
  for (const RequestRecord& record : records) {
    if (record.interrupted) {
      ++run.interrupted;
      continue;
    }
    if (!record.completed()) {
      ++run.failed;
      ++run.errors[record.error];
      continue;
    }
    ++run.completed;
    good += objectives.areKeptBy(record);
    run.inputTokens += record.promptTokens;
    run.outputTokens += record.outputTokens;
    run.countedByServer = run.countedByServer && record.countedByServer;
    if (record.ttft) ttft.push_back(*record.ttft * 1e3);
    if (const auto value = record.tpot()) tpot.push_back(*value * 1e3);
    for (const double gap : record.itl) itl.push_back(gap * 1e3);
    e2e.push_back(record.latency * 1e3);
  }
  auto perSecond = [&](double amount) { return duration > 0 ? amount / duration : 0; };
  run.requestThroughput = perSecond(static_cast<double>(run.completed));
  run.outputThroughput = perSecond(static_cast<double>(run.outputTokens));
  run.totalThroughput = perSecond(static_cast<double>(run.inputTokens + run.outputTokens));
  if (objectives.any()) run.goodput = perSecond(static_cast<double>(good));
  run.ttftMs = summarize(std::move(ttft), percents);
  run.tpotMs = summarize(std::move(tpot), percents);
  run.itlMs = summarize(std::move(itl), percents);
  run.e2eMs = summarize(std::move(e2e), percents);
  run.peakConcurrency = peakOf(records);
  run.peakOutputThroughput = peakOutputOf(records);
  run.records = std::move(records);
  return run;
}

}  // namespace headroom::app
