// SPDX-License-Identifier: Apache-2.0
#include "app/engine/bench/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headroom::app {
namespace {

using Json = nlohmann::ordered_json;

struct Metric {
  const char* key;
  const char* name;
  const char* title;
  std::optional<Summary> RunReport::*summary;
};
constexpr Metric kMetrics[] = {
    {"ttft", "TTFT", "Time to first token", &RunReport::ttftMs},
    {"tpot", "TPOT", "Time per output token, without the first", &RunReport::tpotMs},
    {"itl", "ITL", "Time between tokens", &RunReport::itlMs},
    {"e2el", "E2E", "Time of a whole request", &RunReport::e2eMs},
};

std::vector<Metric> shownMetrics(const BenchReport& report) {
  std::vector<Metric> shown;
  for (const Metric& metric : kMetrics)
    if (std::find(report.metrics.begin(), report.metrics.end(), metric.key) != report.metrics.end()) shown.push_back(metric);
  return shown;
}

// 99 as "99", 99.9 as "99.9".
std::string percentName(double percent) { return fmt::format("{}", percent); }
std::string rateText(double rate) { return std::isfinite(rate) ? fmt::format("{:g}", rate) : std::string("inf"); }
std::string limitText(int64_t limit) { return limit > 0 ? std::to_string(limit) : std::string("none"); }

std::string cell(const std::optional<Summary>& summary, double Summary::*value) {
  return summary ? fmt::format("{:.2f}", (*summary).*value) : std::string("-");
}

void appendRun(std::string& out, const BenchReport& report, const RunReport& run) {
  auto line = [&](std::string_view name, const std::string& value) { out += fmt::format("  {:<44}{:>14}\n", name, value); };
  auto number = [](double value) { return fmt::format("{:.2f}", value); };
  line("Request rate asked for (1/s)", rateText(run.requestRate));
  if (run.burstiness != 1) line("Burstiness", fmt::format("{:g}", run.burstiness));
  line("Concurrency limit", limitText(run.maxConcurrency));
  line("Completed requests", fmt::format("{} of {}", run.completed, run.planned));
  if (run.failed) line("Failed requests", std::to_string(run.failed));
  if (run.interrupted) line("Not finished", std::to_string(run.interrupted));
  line("Duration (s)", number(run.duration));
  line("Input tokens", std::to_string(run.inputTokens));
  line(run.countedByServer ? "Output tokens" : "Output tokens (pieces of text)", std::to_string(run.outputTokens));
  line("Requests per second", number(run.requestThroughput));
  if (run.goodput) line("Goodput: requests within the limits per second", number(*run.goodput));
  line("Output tokens per second", number(run.outputThroughput));
  line("All tokens per second", number(run.totalThroughput));
  line("Most pieces in one second", fmt::format("{:.0f}", run.peakOutputThroughput));
  line("Most requests at once", std::to_string(run.peakConcurrency));
  for (const Metric& metric : shownMetrics(report)) {
    const std::optional<Summary>& summary = run.*metric.summary;
    out += fmt::format("  {}\n", metric.title);
    line(fmt::format("  mean {} (ms)", metric.name), cell(summary, &Summary::mean));
    line(fmt::format("  median {} (ms)", metric.name), cell(summary, &Summary::median));
    if (summary)
      for (const auto& [percent, value] : summary->percentiles)
        line(fmt::format("  P{} {} (ms)", percentName(percent), metric.name), number(value));
  }
  for (const auto& [error, count] : run.errors) out += fmt::format("  failed {}x: {}\n", count, error);
}

// One row a run.
void appendSweep(std::string& out, const BenchReport& report) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> head{"rate", "limit", "done", "req/s"};
  const bool hasGoodput = !report.runs.empty() && report.runs.front().goodput.has_value();
  if (hasGoodput) head.push_back("goodput/s");
  head.push_back("out tok/s");
  const double last = [&] {
    for (const RunReport& run : report.runs)
      if (run.e2eMs && !run.e2eMs->percentiles.empty()) return run.e2eMs->percentiles.back().first;
    return 99.0;
  }();
  for (const Metric& metric : shownMetrics(report)) {
    head.push_back(fmt::format("{} median", metric.name));
    head.push_back(fmt::format("P{}", percentName(last)));
  }
  rows.push_back(head);
  for (const RunReport& run : report.runs) {
    std::vector<std::string> row{rateText(run.requestRate), limitText(run.maxConcurrency),
                                 fmt::format("{}/{}", run.completed, run.planned), fmt::format("{:.2f}", run.requestThroughput)};
    if (hasGoodput) row.push_back(fmt::format("{:.2f}", run.goodput.value_or(0)));
    row.push_back(fmt::format("{:.1f}", run.outputThroughput));
    for (const Metric& metric : shownMetrics(report)) {
      const std::optional<Summary>& summary = run.*metric.summary;
      row.push_back(cell(summary, &Summary::median));
      row.push_back(summary && !summary->percentiles.empty() ? fmt::format("{:.2f}", summary->percentiles.back().second) : "-");
    }
    rows.push_back(std::move(row));
  }
  std::vector<size_t> widths(head.size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  out += "All runs, times in ms\n";
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) out += fmt::format("  {:>{}}", row[i], widths[i]);
    out += '\n';
  }
}

Json orNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json recordJson(const RequestRecord& record) {
  auto milliseconds = [](double seconds) { return seconds * 1e3; };
  Json gaps = Json::array();
  for (const double gap : record.itl) gaps.push_back(milliseconds(gap));
  Json json{{"sent_at_s", record.sentAt}, {"prompt_tokens", record.promptTokens}, {"output_tokens", record.outputTokens}};
  json["ttft_ms"] = record.ttft ? Json(milliseconds(*record.ttft)) : Json(nullptr);
  json["e2el_ms"] = record.completed() ? Json(milliseconds(record.latency)) : Json(nullptr);
  json["itls_ms"] = std::move(gaps);
  json["error"] = record.interrupted ? Json("interrupted") : record.error.empty() ? Json(nullptr) : Json(record.error);
  json["generated_text"] = record.text;
  return json;
}

}  // namespace

std::string tableText(const BenchReport& report) {
  std::string out =
      fmt::format("Load test of {} at {} ({}); prompts: {}\n", report.model, report.endpoint, report.backend, report.dataset);
  if (report.interrupted) out += "Interrupted: the figures are of what was finished by then.\n";
  for (size_t i = 0; i < report.runs.size(); ++i) {
    if (report.runs.size() > 1) out += fmt::format("Run {} of {}\n", i + 1, report.runs.size());
    appendRun(out, report, report.runs[i]);
  }
  if (report.runs.size() > 1) appendSweep(out, report);
  for (const std::string& note : report.notes) out += "Note: " + note + "\n";
  return out;
}

Json reportJson(const BenchReport& report) {
  Json json{{"schema", "headroom.bench/1"},      {"date", report.date},      {"endpoint", report.endpoint},
            {"backend", report.backend},         {"model_id", report.model}, {"dataset", report.dataset},
            {"interrupted", report.interrupted}, {"notes", report.notes}};
  Json runs = Json::array();
  for (const RunReport& run : report.runs) {
    Json entry;
    entry["request_rate"] = std::isfinite(run.requestRate) ? Json(run.requestRate) : Json("inf");
    entry["burstiness"] = run.burstiness;
    entry["max_concurrency"] = run.maxConcurrency > 0 ? Json(run.maxConcurrency) : Json(nullptr);
    entry["num_prompts"] = run.planned;
    entry["completed"] = run.completed;
    entry["failed"] = run.failed;
    entry["interrupted"] = run.interrupted;
    entry["duration"] = run.duration;
    entry["total_input_tokens"] = run.inputTokens;
    entry["total_output_tokens"] = run.outputTokens;
    entry["output_tokens_counted_by"] = run.countedByServer ? "server" : "pieces";
    entry["request_throughput"] = run.requestThroughput;
    entry["request_goodput"] = orNull(run.goodput);
    entry["output_throughput"] = run.outputThroughput;
    entry["total_token_throughput"] = run.totalThroughput;
    entry["max_output_tokens_per_s"] = run.peakOutputThroughput;
    entry["max_concurrent_requests"] = run.peakConcurrency;
    for (const Metric& metric : shownMetrics(report)) {
      const std::optional<Summary>& summary = run.*metric.summary;
      auto set = [&](const std::string& name, std::optional<double> value) {
        entry[fmt::format("{}_{}_ms", name, metric.key)] = orNull(value);
      };
      set("mean", summary ? std::optional(summary->mean) : std::nullopt);
      set("median", summary ? std::optional(summary->median) : std::nullopt);
      set("std", summary ? std::optional(summary->deviation) : std::nullopt);
      set("min", summary ? std::optional(summary->least) : std::nullopt);
      set("max", summary ? std::optional(summary->most) : std::nullopt);
      if (summary)
        for (const auto& [percent, value] : summary->percentiles) set("p" + percentName(percent), value);
    }
    entry["errors"] = Json::object();
    for (const auto& [error, count] : run.errors) entry["errors"][error] = count;
    if (report.detailed) {
      entry["requests"] = Json::array();
      for (const RequestRecord& record : run.records) entry["requests"].push_back(recordJson(record));
    }
    runs.push_back(std::move(entry));
  }
  json["runs"] = std::move(runs);
  return json;
}

std::string csvText(const BenchReport& report) {
  const Json json = reportJson(report);
  // Percentiles are the same in all runs; a run without figures lacks their columns, so the widest run names them.
  std::vector<std::string> columns;
  for (const Json& run : json["runs"])
    for (const auto& [key, value] : run.items())
      if (!value.is_structured() && std::find(columns.begin(), columns.end(), key) == columns.end()) columns.push_back(key);
  std::string out;
  for (size_t i = 0; i < columns.size(); ++i) out += (i ? "," : "") + columns[i];
  out += '\n';
  for (const Json& run : json["runs"]) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i) out += ',';
      const auto value = run.find(columns[i]);
      if (value == run.end() || value->is_null()) continue;
      out += value->is_string() ? value->get<std::string>() : value->dump();
    }
    out += '\n';
  }
  return out;
}

}  // namespace headroom::app
