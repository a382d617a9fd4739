// SPDX-License-Identifier: Apache-2.0
// headroom-engine diagnose: what went wrong, from an engine's log.
#include "app/engine/command.h"
#include "core/diagnosis/log_diagnosis.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

namespace headroom::app {
namespace {

struct Options {
  std::string file = "-", format = "table";
};

nlohmann::json findingJson(const LogFinding& finding) {
  return {{"kind", finding.kind},   {"title", finding.title}, {"why", finding.why}, {"fixes", finding.fixes},
          {"phase", phaseName(finding.phase)}, {"line", finding.line},   {"text", finding.text}};
}

void printFinding(const LogFinding& finding) {
  fmt::print("{}\n", finding.title);
  if (!finding.why.empty()) fmt::print("  {}\n", finding.why);
  for (size_t i = 0; i < finding.fixes.size(); ++i) fmt::print("  {} {}\n", i == 0 ? "do:" : "or:", finding.fixes[i]);
  fmt::print("  line {}{}: {}\n", finding.line,
             finding.phase == LogPhase::Unknown ? std::string() : fmt::format(", {}", phaseName(finding.phase)), finding.text);
}

int runDiagnose(const Options& options) {
  std::string text;
  if (options.file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    std::ifstream file(options.file, std::ios::binary);
    if (!file) return fail(kBadInput, fmt::format("{}: found no file that can be read, expected an engine's log, or - for stdin", options.file));
    text.assign(std::istreambuf_iterator<char>(file), {});
    if (file.bad()) return fail(kBadInput, fmt::format("{}: found a file that cannot be read, expected an engine's log", options.file));
  }
  const LogDiagnosis diagnosis = diagnoseLog(text);
  if (options.format == "json") {
    nlohmann::json findings = nlohmann::json::array();
    for (const LogFinding& finding : diagnosis.findings) findings.push_back(findingJson(finding));
    const nlohmann::json json = {{"schema", "headroom.diagnosis/1"},
                                 {"engine", diagnosis.engine.empty() ? nlohmann::json() : nlohmann::json(diagnosis.engine)},
                                 {"lines", diagnosis.lines},
                                 {"findings", findings},
                                 {"unknown", diagnosis.unknown ? findingJson(*diagnosis.unknown) : nlohmann::json()}};
    fmt::print("{}\n", reportText(json));
    return kDone;
  }
  if (!diagnosis.engine.empty()) fmt::print("a log of {}, {} lines\n\n", diagnosis.engine, diagnosis.lines);
  for (size_t i = 0; i < diagnosis.findings.size(); ++i) {
    if (i == 1) fmt::print("\nalso found\n\n");
    printFinding(diagnosis.findings[i]);
  }
  if (diagnosis.findings.empty() && diagnosis.unknown) printFinding(*diagnosis.unknown);
  if (diagnosis.findings.empty() && !diagnosis.unknown) fmt::print("no error found in {} lines\n", diagnosis.lines);
  return kDone;
}

}  // namespace

void addDiagnoseCommand(CLI::App& app, Run& run) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("diagnose", "Explain an engine's log: the cause first, and what to do");
  command->add_option("FILE", options->file, "the log, or - for stdin")->capture_default_str();
  command->add_option("--format", options->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([options, &run] { run = [options] { return runDiagnose(*options); }; });
}

}  // namespace headroom::app
