// SPDX-License-Identifier: Apache-2.0
// headroom-engine bench: a load test of an OpenAI endpoint, or of a model that it serves itself for as long. Options are called
// as in `vllm bench serve`.
#include "app/engine/bench/bench_client.h"
#include "app/engine/bench/bench_report.h"
#include "app/engine/command.h"
#include "app/engine/engine_process.h"
#include "app/engine/option_checks.h"
#include "app/engine/serve_options.h"
#include "core/json_text.h"
#include "core/launch/planner.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

namespace headroom::app {
namespace {

using Json = nlohmann::ordered_json;

struct BenchArguments {
  std::string target, backend = "openai", modelName, tokenizer;
  ServeArguments serve;
  std::vector<CLI::Option*> serveOptions;
  std::string dataset = "random", datasetPath;
  size_t numPrompts = 100, numWarmups = 1;
  RandomLoad random;
  std::string distribution = "uniform";
  std::optional<int64_t> shareGptOutputLen;
  int64_t customOutputLen = 256;
  bool disableShuffle = false;
  std::string requestRates = "inf", concurrencies = "0";
  double burstiness = 1;
  uint64_t seed = 0;
  double temperature = 0;
  std::optional<double> topP, minP;
  std::optional<int64_t> topK;
  bool ignoreEos = false;
  std::string extraBody;
  std::vector<std::string> headers, goodput;
  std::string metrics = "ttft,tpot,itl,e2el", percentiles = "90,99";
  std::string format = "table", output;
  bool saveDetailed = false, noProgress = false;
  double readySeconds = 600, requestTimeout = 600;
};

// Set by SIGINT and SIGTERM; a second one ends the process.
std::atomic<bool> stopAsked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void catchSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = [](int) { stopAsked = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

std::vector<std::string> partsOf(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<double> readNumber(const std::string& text) {
  if (text == "inf") return INFINITY;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !std::isnan(number) ? std::optional(number) : std::nullopt;
}

Result<std::vector<double>> readNumbers(const std::string& option, const std::string& text, double least, double most,
                                        const char* expected) {
  std::vector<double> numbers;
  for (const std::string& part : partsOf(text, ',')) {
    const auto number = readNumber(part);
    if (!number || *number < least || *number > most) return failure(option, text, expected);
    numbers.push_back(*number);
  }
  return numbers;
}

Result<Objectives> readObjectives(const std::vector<std::string>& texts) {
  Objectives objectives;
  for (const std::string& text : texts) {
    const size_t colon = text.find(':');
    const auto limit = colon == std::string::npos ? std::nullopt : readNumber(text.substr(colon + 1));
    const std::string name = text.substr(0, colon);
    std::optional<double>* place = name == "ttft"   ? &objectives.ttftMs
                                   : name == "tpot" ? &objectives.tpotMs
                                   : name == "e2el" ? &objectives.e2eMs
                                                    : nullptr;
    if (!place || !limit || *limit < 0)
      return failure("--goodput", text, "limits in milliseconds such as ttft:500 tpot:50 e2el:5000");
    *place = *limit;
  }
  return objectives;
}

// What all parts of a test share once the arguments are read.
struct Bench {
  BenchArguments& arguments;
  ClientOptions client;
  std::vector<double> rates, concurrencies, percents;
  Objectives objectives;
  Json extraBody = Json::object();
  bool isChat = false;
  std::unique_ptr<engine::Tokenizer> tokenizer;
  TextSource source;
  std::string model;
  std::vector<std::string> notes;

  std::string path() const { return isChat ? "/v1/chat/completions" : "/v1/completions"; }
};

Result<Bench> readArguments(BenchArguments& arguments) {
  Bench bench{arguments, {}, {}, {}, {}, {}, Json::object(), false, nullptr, {}, {}, {}};
  auto rates = readNumbers("--request-rate", arguments.requestRates, 1e-9, INFINITY, "rates above 0, or inf: 1,2,inf");
  if (!rates) return tl::unexpected(rates.error());
  bench.rates = std::move(*rates);
  auto limits =
      readNumbers("--max-concurrency", arguments.concurrencies, 0, 1e6, "numbers of requests at once: 1,4,16 (0: no limit)");
  if (!limits) return tl::unexpected(limits.error());
  bench.concurrencies = std::move(*limits);
  auto percents = readNumbers("--metric-percentiles", arguments.percentiles, 0, 100, "percentiles from 0 to 100: 50,90,99");
  if (!percents) return tl::unexpected(percents.error());
  bench.percents = std::move(*percents);
  auto objectives = readObjectives(arguments.goodput);
  if (!objectives) return tl::unexpected(objectives.error());
  bench.objectives = *objectives;
  for (const std::string& metric : partsOf(arguments.metrics, ','))
    if (metric != "ttft" && metric != "tpot" && metric != "itl" && metric != "e2el")
      return failure("--percentile-metrics", metric, "some of ttft, tpot, itl and e2el");
  if (!arguments.extraBody.empty()) {
    bench.extraBody = readJsonText<Json>(arguments.extraBody);
    if (!bench.extraBody.is_object()) return failure("--extra-body", arguments.extraBody, "a JSON object");
  }
  if (arguments.dataset != "random" && arguments.datasetPath.empty())
    return failure("--dataset-name " + arguments.dataset, "no --dataset-path", "the dataset's file");
  if (arguments.dataset == "random" && !arguments.datasetPath.empty())
    return failure("--dataset-path " + arguments.datasetPath, "--dataset-name random", "sharegpt or jsonl with a file");
  arguments.random.distribution = arguments.distribution == "normal"      ? LengthDistribution::Normal
                                  : arguments.distribution == "lognormal" ? LengthDistribution::Lognormal
                                                                          : LengthDistribution::Uniform;
  if (arguments.distribution == "uniform" && arguments.random.rangeRatio >= 1)
    return failure("--random-range-ratio", fmt::format("{:g}", arguments.random.rangeRatio), "less than 1 for uniform lengths");
  bench.isChat = arguments.backend == "openai-chat";
  for (const std::string& header : arguments.headers) {
    const size_t mark = header.find_first_of("=:");
    if (mark == 0 || mark == std::string::npos || header.find_first_of("\r\n") != std::string::npos)
      return failure("--header", header, "NAME=VALUE");
    bench.client.headers.emplace_back(header.substr(0, mark), header.substr(header.find_first_not_of(' ', mark + 1)));
  }
  bench.client.idleTimeout = std::chrono::milliseconds(static_cast<int64_t>(arguments.requestTimeout * 1e3));
  std::string key = arguments.serve.server.apiKey;
  if (const char* fromEnvironment = std::getenv("OPENAI_API_KEY"); key.empty() && fromEnvironment) key = fromEnvironment;
  if (!key.empty()) bench.client.headers.emplace_back("Authorization", "Bearer " + key);
  return bench;
}

std::string bodyOf(const Bench& bench, const PlannedRequest& request) {
  const BenchArguments& arguments = bench.arguments;
  Json body{{"model", bench.model}};
  if (bench.isChat) {
    body["messages"] = request.messages.is_null()
                           ? Json::array({{{"role", "user"}, {"content", std::get<std::string>(request.prompt)}}})
                           : request.messages;
    body["max_completion_tokens"] = request.outputTokens;
  } else {
    std::visit([&](const auto& prompt) { body["prompt"] = prompt; }, request.prompt);
    body["max_tokens"] = request.outputTokens;
  }
  body["temperature"] = arguments.temperature;
  if (arguments.topP) body["top_p"] = *arguments.topP;
  if (arguments.minP) body["min_p"] = *arguments.minP;
  if (arguments.topK) body["top_k"] = *arguments.topK;
  if (arguments.ignoreEos) body["ignore_eos"] = true;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  body.update(bench.extraBody);
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Waits until the endpoint lists its models; the name of the first, or of the one that was asked for.
Result<std::string> findModel(const Bench& bench) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(bench.arguments.readySeconds);
  while (true) {
    const auto answer = fetch(bench.client, "GET", "/v1/models", {}, stopAsked);
    if (answer && answer->status == 200) {
      if (!bench.arguments.modelName.empty()) return bench.arguments.modelName;
      const Json json = readJsonText<Json>(answer->body);
      if (json.is_object() && json.contains("data") && json["data"].is_array() && !json["data"].empty() &&
          json["data"][0].is_object() && json["data"][0].contains("id") && json["data"][0]["id"].is_string())
        return json["data"][0]["id"].get<std::string>();
      return failure("/v1/models", answer->body.substr(0, 100), "a list of models", "--model names one");
    }
    // Some endpoints list no models; a name that was given will do.
    if (answer && (answer->status == 404 || answer->status == 405) && !bench.arguments.modelName.empty())
      return bench.arguments.modelName;
    if (answer && answer->status >= 400 && answer->status < 500 && answer->status != 408 && answer->status != 429)
      return failure("/v1/models", fmt::format("HTTP {}: {}", answer->status, answer->body.substr(0, 200)), "a list of models",
                     "--api-key gives a key, --model a name");
    if (stopAsked) return failure(bench.arguments.target, "a signal", "an answer");
    if (std::chrono::steady_clock::now() >= end) {
      if (!answer) return tl::unexpected(answer.error());
      return failure("/v1/models", fmt::format("HTTP {}", answer->status),
                     fmt::format("an answer within {:g} s", bench.arguments.readySeconds));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

// Token ids of the server's own vocabulary, where it tells them: prompts of exact lengths without a tokenizer here.
void askForTokens(Bench& bench) {
  std::string text;
  for (const PlannedRequest& request : randomLoad(1, {2000, 1, 0, LengthDistribution::Uniform, 0}, {}, 1))
    text = std::get<std::string>(request.prompt);
  const auto answer = fetch(bench.client, "POST", "/tokenize",
                            Json{{"model", bench.model}, {"prompt", text}, {"add_special_tokens", false}}.dump(
                                -1, ' ', false, Json::error_handler_t::replace),
                            stopAsked);
  if (!answer || answer->status != 200) return;
  const Json json = readJsonText<Json>(answer->body);
  if (!json.is_object() || !json.contains("tokens") || !json["tokens"].is_array()) return;
  for (const Json& id : json["tokens"])
    if (id.is_number_unsigned()) bench.source.tokenIds.push_back(id.get<int32_t>());
}

Result<std::vector<PlannedRequest>> makeLoad(const Bench& bench, size_t count, uint64_t seed) {
  const BenchArguments& arguments = bench.arguments;
  Result<std::vector<PlannedRequest>> load;
  if (arguments.dataset == "sharegpt")
    load = shareGptLoad(arguments.datasetPath, count, arguments.shareGptOutputLen, bench.tokenizer.get(),
                        !arguments.disableShuffle, seed);
  else if (arguments.dataset == "jsonl")
    load = jsonLinesLoad(arguments.datasetPath, count, arguments.customOutputLen, bench.tokenizer.get(),
                         !arguments.disableShuffle, seed);
  else
    load = randomLoad(count, arguments.random, bench.source, seed);
  if (!load) return load;
  for (const PlannedRequest& request : *load) {
    if (bench.isChat && request.messages.is_null() && !std::holds_alternative<std::string>(request.prompt))
      return failure(arguments.datasetPath, "a prompt of token ids", "a text or messages for --backend openai-chat");
    if (!bench.isChat && !request.messages.is_null())
      return failure(arguments.datasetPath, "messages", "prompts for --backend openai", "--backend openai-chat sends messages");
  }
  return load;
}

LoadRun plannedRun(const Bench& bench, const std::vector<PlannedRequest>& load, double rate, int64_t concurrency, uint64_t seed) {
  LoadRun run;
  run.path = bench.path();
  run.arrivals = arrivalTimes(load.size(), rate, bench.arguments.burstiness, seed);
  run.maxConcurrency = concurrency;
  for (const PlannedRequest& request : load) {
    run.bodies.push_back(bodyOf(bench, request));
    run.promptTokens.push_back(request.promptTokens);
  }
  return run;
}

void prepareTexts(Bench& bench) {
  const BenchArguments& arguments = bench.arguments;
  bench.source.tokenizer = bench.tokenizer.get();
  if (!bench.tokenizer && arguments.dataset == "random" && !bench.isChat) askForTokens(bench);
  if (bench.tokenizer || !bench.source.tokenIds.empty()) return;
  if (arguments.dataset == "random")
    bench.notes.push_back(
        "Prompts are common words, about a token each: no tokenizer was given, and the server tells no tokens. Input tokens are "
        "as the server counted.");
  if (arguments.dataset == "sharegpt" && !arguments.shareGptOutputLen)
    bench.notes.push_back("Answer lengths were taken as a token for 4 bytes: --tokenizer counts them.");
}

std::string datasetText(const BenchArguments& arguments) {
  if (arguments.dataset != "random") return fmt::format("{} {}", arguments.dataset, arguments.datasetPath);
  std::string text = fmt::format("random, {} tokens in, {} out", arguments.random.inputLen, arguments.random.outputLen);
  if (arguments.random.rangeRatio > 0) text += fmt::format(", {} +-{:g}", arguments.distribution, arguments.random.rangeRatio);
  if (arguments.random.prefixLen > 0) text += fmt::format(", {} shared before", arguments.random.prefixLen);
  return text;
}

// Runs the whole sweep; false: nothing could be measured.
Result<BenchReport> measure(Bench& bench) {
  BenchArguments& arguments = bench.arguments;
  auto model = findModel(bench);
  if (!model) return tl::unexpected(model.error());
  bench.model = *model;
  prepareTexts(bench);

  BenchReport result;
  result.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  result.endpoint = fmt::format("{}://{}:{}{}{}", bench.client.endpoint.tls ? "https" : "http", bench.client.endpoint.host,
                                bench.client.endpoint.port, bench.client.endpoint.prefix, bench.path());
  result.backend = arguments.backend;
  result.model = bench.model;
  result.dataset = datasetText(arguments);
  result.metrics = partsOf(arguments.metrics, ',');
  result.detailed = arguments.saveDetailed;

  const bool showsProgress = !arguments.noProgress && isatty(STDERR_FILENO) != 0;
  if (arguments.numWarmups > 0 && !stopAsked) {
    // Of another seed, so that no prompt of the test is known before.
    const auto load = makeLoad(bench, arguments.numWarmups, arguments.seed + 7919);
    if (!load) return tl::unexpected(load.error());
    const LoadResult warm =
        runLoad(bench.client, plannedRun(bench, *load, INFINITY, 0, 0), stopAsked, [](const LoadProgress&) {});
    for (const RequestRecord& record : warm.records)
      if (!record.error.empty()) return failure("the first request", record.error, "an answer");
  }
  const size_t runs = bench.rates.size() * bench.concurrencies.size();
  size_t number = 0;
  for (const double rate : bench.rates) {
    for (const double concurrency : bench.concurrencies) {
      if (stopAsked) break;
      const uint64_t seed = arguments.seed + number++;  // each run has prompts of its own, which no cache knows
      const auto load = makeLoad(bench, arguments.numPrompts, seed);
      if (!load) return tl::unexpected(load.error());
      auto last = std::chrono::steady_clock::time_point();
      LoadResult found = runLoad(
          bench.client, plannedRun(bench, *load, rate, static_cast<int64_t>(concurrency), seed), stopAsked,
          [&](const LoadProgress& progress) {
            const auto now = std::chrono::steady_clock::now();
            if (!showsProgress || now - last < std::chrono::milliseconds(200)) return;
            last = now;
            std::fprintf(stderr, "\r\033[Krun %zu of %zu: %zu of %zu done, %zu running, %zu failed, %.1f tokens/s, %.0f s",
                         number, runs, progress.done, progress.planned, progress.running, progress.failed,
                         progress.seconds > 0 ? static_cast<double>(progress.pieces) / progress.seconds : 0.0, progress.seconds);
            std::fflush(stderr);
          });
      if (showsProgress) std::fputs("\r\033[K", stderr);
      RunReport run = report(std::move(found.records), found.duration, bench.objectives, bench.percents);
      run.requestRate = rate;
      run.burstiness = arguments.burstiness;
      run.maxConcurrency = static_cast<int64_t>(concurrency);
      result.runs.push_back(std::move(run));
    }
  }
  result.interrupted = stopAsked;
  result.notes = bench.notes;
  return result;
}

int writeReport(const BenchReport& report, const BenchArguments& arguments) {
  const std::string text = arguments.format == "json"  ? reportText(reportJson(report)) + "\n"
                           : arguments.format == "csv" ? csvText(report)
                                                       : tableText(report);
  if (arguments.output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::fflush(stdout) == 0 ? kDone : fail(kFailed, "the report could not be written");
  }
  std::ofstream file(arguments.output, std::ios::binary);
  file << text;
  file.close();
  return file ? kDone : fail(kFailed, arguments.output + ": the report could not be written");
}

int bench(BenchArguments& arguments) {
  auto read = readArguments(arguments);
  if (!read) return fail(kBadInput, read.error().message());
  Bench& bench = *read;
  catchSignals();

  const bool isUrl = arguments.target.find("://") != std::string::npos;
  std::vector<std::string> forwarded;
  for (const CLI::Option* option : arguments.serveOptions) {
    if (option->count() == 0) continue;
    if (isUrl && option->get_name() != "--api-key")
      return fail(kBadInput, fmt::format("{}: found beside the address {}, expected with a model that is served here",
                                         option->get_name(), arguments.target));
    forwarded.push_back(option->get_name());
    for (const std::string& value : option->results())
      if (option->get_items_expected_max() > 0) forwarded.push_back(value);
  }
  std::string tokenizerPath = arguments.tokenizer;
  std::string url = arguments.target;
  std::unique_ptr<EngineProcess> served;
  if (!isUrl) {
    const auto model = openModel(arguments.target);
    if (!model) return fail(kBadInput, model.error().message());
    if (tokenizerPath.empty()) tokenizerPath = (model->path.extension() == ".gguf" ? model->path : model->folder).string();
    auto started = EngineProcess::start(arguments.target, forwarded, stopAsked);
    if (!started)
      return stopAsked ? kInterrupted : fail(started.error().next == "status 2" ? kBadInput : kFailed, started.error().found);
    served = std::move(*started);
    url = served->url();
  }
  auto endpoint = readEndpoint(url);
  if (!endpoint) return fail(kBadInput, endpoint.error().message());
  bench.client.endpoint = std::move(*endpoint);
  if (!tokenizerPath.empty()) {
    auto tokenizer = engine::Tokenizer::open(tokenizerPath);
    if (!tokenizer && !arguments.tokenizer.empty()) return fail(kBadInput, tokenizer.error().message());
    if (tokenizer) bench.tokenizer = std::move(*tokenizer);
  }
  // A dataset that cannot be read shows before anything is sent.
  if (const auto load = makeLoad(bench, 1, arguments.seed); !load) return fail(kBadInput, load.error().message());
  const auto report = measure(bench);
  if (!report) return stopAsked ? kInterrupted : fail(kFailed, report.error().message());
  if (const int status = writeReport(*report, arguments); status != kDone) return status;
  if (report->interrupted) return kInterrupted;
  size_t completed = 0;
  for (const RunReport& run : report->runs) completed += run.completed;
  return completed > 0 ? kDone : fail(kFailed, "no request completed");
}

}  // namespace

void addBenchCommand(CLI::App& app, Run& run) {
  auto arguments = std::make_shared<BenchArguments>();
  BenchArguments& a = *arguments;
  CLI::App* command = app.add_subcommand("bench", "Load test of an OpenAI endpoint or a model: TTFT, ITL, throughput, goodput");
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 40);
  command->add_option("TARGET", a.target, "http://HOST:PORT of a server, or a model to serve here for the test")->required();
  command->add_option("--backend", a.backend, "openai sends completions, openai-chat chats")
      ->check(CLI::IsMember({"openai", "openai-chat"}))
      ->capture_default_str();
  command->add_option("--model", a.modelName, "The model's name in requests (the first that the server lists)");
  command->add_option("--tokenizer", a.tokenizer,
                      "Folder or file of a tokenizer, for prompts of exact lengths (a served model's own)");
  command->add_option("--dataset-name", a.dataset, "random, sharegpt or jsonl")
      ->check(CLI::IsMember({"random", "sharegpt", "jsonl"}))
      ->capture_default_str();
  command->add_option("--dataset-path", a.datasetPath, "ShareGPT's JSON, or JSON lines with prompt or messages");
  command->add_option("--num-prompts", a.numPrompts, "Requests of each run")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command->add_option("--num-warmups", a.numWarmups, "Requests before the first run, not counted")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  command->add_option("--random-input-len", a.random.inputLen, "Tokens of a random prompt")
      ->check(positive)
      ->capture_default_str();
  command->add_option("--random-output-len", a.random.outputLen, "Tokens of an answer to it")
      ->check(positive)
      ->capture_default_str();
  command->add_option("--random-range-ratio", a.random.rangeRatio, "Spread of both lengths: 0.5 is 50 % to 150 %")
      ->check(numberIn(0.0, 10.0))
      ->capture_default_str();
  command
      ->add_option("--random-distribution", a.distribution,
                   "uniform within the spread; normal and lognormal have it as their deviation")
      ->check(CLI::IsMember({"uniform", "normal", "lognormal"}))
      ->capture_default_str();
  command->add_option("--random-prefix-len", a.random.prefixLen, "Tokens that all prompts begin with")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command->add_option("--sharegpt-output-len", a.shareGptOutputLen, "Tokens of each answer (as long as the dataset's)")
      ->check(positive);
  command->add_option("--custom-output-len", a.customOutputLen, "Tokens of each answer where a line of JSON says nothing")
      ->check(positive)
      ->capture_default_str();
  command->add_flag("--disable-shuffle", a.disableShuffle, "Take a dataset in its order");
  command->add_option("--request-rate", a.requestRates, "Requests per second, or inf; several by commas are a sweep")
      ->capture_default_str();
  command->add_option("--burstiness", a.burstiness, "Shape of the gaps: 1 is a Poisson process, less comes in bursts")
      ->check(numberIn(0.001, 1e6))
      ->capture_default_str();
  command->add_option("--max-concurrency", a.concurrencies, "Requests at once, 0: no limit; several by commas are a sweep")
      ->capture_default_str();
  command->add_option("--seed", a.seed, "Of prompts, lengths and arrivals")->capture_default_str();
  command->add_option("--temperature", a.temperature, "Of each request")->check(numberIn(0.0, 100.0))->capture_default_str();
  command->add_option("--top-p", a.topP, "Of each request")->check(numberIn(0.0, 1.0));
  command->add_option("--top-k", a.topK, "Of each request");
  command->add_option("--min-p", a.minP, "Of each request")->check(numberIn(0.0, 1.0));
  command->add_flag("--ignore-eos", a.ignoreEos, "Answers have their whole length; servers other than vLLM's kind may refuse it");
  command->add_option("--extra-body", a.extraBody, "A JSON object that is put into each request");
  command->add_option("--header", a.headers, "NAME=VALUE, sent with each request");
  command->add_option("--goodput", a.goodput, "Limits in ms: ttft:500 tpot:50 e2el:5000; counts requests within them");
  command->add_option("--percentile-metrics", a.metrics, "What to report")->capture_default_str();
  command->add_option("--metric-percentiles", a.percentiles, "Percentiles to report")->capture_default_str();
  command->add_option("--format", a.format, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->capture_default_str();
  command->add_option("--output", a.output, "A file for the report (standard output)");
  command->add_flag("--save-detailed", a.saveDetailed, "Every request's figures and answer, in JSON");
  command->add_flag("--no-progress", a.noProgress, "No progress on a terminal");
  command->add_option("--ready-check-timeout-sec", a.readySeconds, "How long to wait for the server")
      ->check(numberIn(0.0, 1e6))
      ->capture_default_str();
  command->add_option("--answer-timeout", a.requestTimeout, "Seconds without a byte of an answer")
      ->check(numberIn(0.001, 1e6))
      ->capture_default_str();
  a.serveOptions = addServeOptions(*command, a.serve);
  for (CLI::Option* option : a.serveOptions) option->group("Serving, where TARGET is a model");
  command->callback([arguments, command, &run] {
    const BenchArguments& given = *arguments;
    const bool random = given.dataset == "random", allAtOnce = given.requestRates == "inf";
    const std::string idle = idleOption(
        *command,
        {{!random,
          "with --dataset-name sharegpt or jsonl",
          "it with --dataset-name random: a file has its own lengths",
          {"--random-input-len", "--random-output-len", "--random-range-ratio", "--random-distribution", "--random-prefix-len"}},
         {random, "with random prompts", "it with --dataset-name sharegpt or jsonl", {"--disable-shuffle"}},
         {given.dataset != "sharegpt", "without --dataset-name sharegpt", "it with that", {"--sharegpt-output-len"}},
         {given.dataset != "jsonl", "without --dataset-name jsonl", "it with that", {"--custom-output-len"}},
         {allAtOnce, "with --request-rate inf", "it with a rate: there are no gaps between requests", {"--burstiness"}},
         {given.format != "json", "without --format json", "it with that", {"--save-detailed"}}});
    run = [arguments, idle] { return idle.empty() ? bench(*arguments) : fail(kBadInput, idle); };
  });
}

}  // namespace headroom::app
