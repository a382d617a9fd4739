// SPDX-License-Identifier: Apache-2.0
// headroom-engine serve: starts the engines of one or more models and serves them until a signal or a failure ends it.
#include "app/engine/command.h"
#include "app/engine/option_checks.h"
#include "app/engine/model_loader.h"
#include "app/engine/serve_log.h"
#include "app/engine/serve_options.h"
#include "engine/server/server.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>

namespace headroom::app {
namespace {

using namespace headroom::engine;

// SIGINT and SIGTERM as something to wait for. Made before any thread, which all inherit the blocked signals.
class Signals {
 public:
  Signals() {
    std::signal(SIGPIPE, SIG_IGN);
    sigemptyset(&m_set);
    sigaddset(&m_set, SIGINT);
    sigaddset(&m_set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &m_set, nullptr);
    m_signals = signalfd(-1, &m_set, SFD_CLOEXEC | SFD_NONBLOCK);
    m_changes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    expects(m_signals >= 0 && m_changes >= 0, "signalfd and eventfd");
  }
  ~Signals() {
    close(m_signals);
    close(m_changes);
  }
  // Any thread: wait() returns.
  void wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = write(m_changes, &one, sizeof one);
  }
  // The signal that came, or 0 after a wake or half a second.
  int wait() {
    pollfd files[2] = {{m_signals, POLLIN, 0}, {m_changes, POLLIN, 0}};
    poll(files, 2, 500);
    uint64_t count = 0;
    while (read(m_changes, &count, sizeof count) > 0) {
    }
    signalfd_siginfo info{};
    return read(m_signals, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }
  // From now on a signal ends the process at once.
  void letThrough() {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &m_set, nullptr);
  }

 private:
  sigset_t m_set{};
  int m_signals = -1, m_changes = -1;
};

void raiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void showProgress(const ModelSet& models, Log& log) {
  int64_t done = 0, total = 0;
  std::string ranks;
  for (const auto& model : models.all())
    for (const RankState& rank : model->service().state().ranks) {
      done += rank.loadBytesDone;
      total += rank.loadBytesTotal;
      ranks += fmt::format(" {}:{}%", rank.rank, rank.loadBytesTotal ? 100 * rank.loadBytesDone / rank.loadBytesTotal : 0);
    }
  if (total > 0) log.progress(fmt::format("loading {:.2f} of {:.2f} GiB; ranks{}", Bytes(done).gib(), Bytes(total).gib(), ranks));
}

// The line that scripts wait for.
void printReady(const std::vector<StartedModel>& models, const std::string& url) {
  const ParallelLayout& layout = models.front().layout;
  nlohmann::ordered_json line{{"ready", true},
                              {"url", url},
                              {"model", models.front().loaded.served->name()},
                              {"layout", {{"tp", layout.tp}, {"pp", layout.pp}, {"dp", layout.dp}}}};
  if (models.size() > 1) {
    line["models"] = nlohmann::ordered_json::array();
    for (const StartedModel& model : models) line["models"].push_back(model.loaded.served->name());
  }
  std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

// Follows the engines until a signal comes, or one of those that it was started with fails; the exit status.
int follow(const std::vector<StartedModel>& started, Server& server, Signals& signals, double drainSeconds, Log& log) {
  bool ready = false;
  const auto begun = std::chrono::steady_clock::now();
  while (true) {
    bool allReady = true;
    std::string failed;
    for (const StartedModel& model : started) {
      const EngineState state = model.loaded.served->service().state();
      if (state.phase == EnginePhase::Failed && failed.empty()) failed = state.error;
      allReady = allReady && state.phase == EnginePhase::Ready;
    }
    if (!failed.empty()) {
      log.endProgress();
      server.notifyStateChanged();
      server.stop(1);  // open requests get their error
      return fail(kFailed, failed);
    }
    if (!ready && allReady) {
      ready = true;
      for (const StartedModel& model : started) {
        const EngineState state = model.loaded.served->service().state();
        log.info(fmt::format("ready after {:.2f} s: {} KV blocks of {} tokens; serving {} on {}",
                             std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(), state.kvBlocksTotal,
                             state.blockTokens, model.loaded.served->name(), server.url()));
      }
      printReady(started, server.url());
    } else if (!ready) {
      showProgress(server.models(), log);
    }
    const int signal = signals.wait();
    if (signal == 0) continue;
    signals.letThrough();
    log.info(fmt::format("stopping: {}", signal == SIGINT ? "SIGINT" : "SIGTERM"));
    if (!ready) {
      server.stop(0);
      return signal == SIGINT ? kInterrupted : kDone;
    }
    for (const auto& model : server.models().all()) model->service().drain();
    server.notifyStateChanged();
    server.stop(drainSeconds);
    return kDone;
  }
}

int serve(ServeArguments arguments) {
  Signals signals;
  Log log;
  raiseFileLimit();
  std::vector<ModelArguments> wanted{arguments.model};
  for (const std::string& text : arguments.also) {
    auto model = parseModelArguments(text);
    if (!model) return fail(kBadInput, model.error().message());
    wanted.push_back(std::move(*model));
  }
  auto server = Server::bind(arguments.server);
  if (!server) return fail(kBadInput, server.error().message());
  Server& http = **server;
  // Engines that stand are ended by the server: the loader outlives what it does.
  ModelLoader loader(arguments.devices, log, [&signals, &http] {
    http.notifyStateChanged();
    signals.wake();
  });
  std::vector<StartedModel> started;
  auto refuse = [&](const std::string& why) {
    for (StartedModel& model : started) model.loaded.close();
    return fail(kBadInput, why);
  };
  for (const ModelArguments& model : wanted) {
    auto one = loader.start(model, kShareOfMemory / static_cast<double>(wanted.size()));
    if (!one) return refuse(one.error().message());
    const std::string& name = one->loaded.served->name();
    const bool isTwice = std::any_of(started.begin(), started.end(),
                                     [&](const StartedModel& other) { return other.loaded.served->name() == name; });
    started.push_back(std::move(*one));
    if (isTwice)
      return refuse(
          fmt::format("--also {}: found the name {} twice, expected models of different names; --served-model-name gives "
                      "one another",
                      model.model, name));
  }
  for (const StartedModel& model : started) http.models().add(model.loaded);
  if (arguments.managesModels)
    http.models().allowLoading([&loader](const nlohmann::ordered_json& request) { return loader.load(request); });
  http.serve();
  const int status = follow(started, http, signals, arguments.drainSeconds, log);
  http.stop(0);
  return status;
}

}  // namespace

void addModelOptions(CLI::App& command, ModelArguments& a) {
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 30);
  command.add_option("--tp", a.tp, "Ranks that share each layer (1)")->check(CLI::Range(1, 1024));
  command.add_option("--pp", a.pp, "Stages that share the layers (1)")->check(CLI::Range(1, 1024));
  command.add_option("--dp", a.dp, "Replicas of the whole model (1)")->check(CLI::Range(1, 1024));
  command.add_option("--layout", a.layoutFile, "A layout from plan --format json, in place of --tp, --pp and --dp");
  command.add_option("--gpus", a.gpus, "CUDA devices by number, one a rank: 0,2,3")->check(notEmpty());
  command.add_option("--served-model-name", a.servedModelName, "The name that requests use (the model's own)")->check(notEmpty());
  command.add_option("--max-model-len", a.maxModelLen, "Tokens of one sequence, prompt and answer")->check(positive);
  command.add_option("--max-num-seqs", a.maxNumSeqs, "Sequences in one step")->check(positive);
  command.add_option("--max-num-batched-tokens", a.maxNumBatchedTokens, "Tokens in one step")->check(positive);
  command
      .add_option("--gpu-memory-utilization", a.gpuMemoryUtilization,
                  "Share of each device's memory to use (0.9; with --also, 0.9 divided by the models)")
      ->check(numberIn(0.01, 1));
  command.add_option("--dtype", a.dtype, "auto, float32 (exact), bfloat16 or float16")->capture_default_str();
  command.add_option("--kv-cache-dtype", a.kvCacheDType, "auto, float32, bfloat16, float16, fp8_e4m3, fp8_e5m2 or int8")
      ->capture_default_str();
  command
      .add_option("--pooling", a.pooling,
                  "How /v1/embeddings makes a vector of the hidden states, normalized: last, cls, mean, max, mean_sqrt_len or "
                  "weighted_mean (what the "
                  "model's files say)")
      ->check(CLI::IsMember({"last", "cls", "mean", "max", "mean_sqrt_len", "weighted_mean"}));
  command.add_flag("--no-prefix-caching", a.noPrefixCaching, "Compute every prompt whole");
  command
      .add_option("--speculative-tokens", a.speculativeTokens,
                  "Tokens that a step may guess for a request from what its text repeats; 0 for none (8; on CUDA 0)")
      ->check(CLI::Range(0, 64));
  command.add_flag("--enforce-eager", a.enforceEager, "No CUDA graphs: less memory, slower decoding");
}

std::vector<CLI::Option*> addServeOptions(CLI::App& command, ServeArguments& a) {
  const size_t before = command.get_options().size();
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 30);
  addModelOptions(command, a.model);
  command.add_option("--device", a.devices.device, "auto takes CUDA where it is on")
      ->check(CLI::IsMember({"auto", "cuda", "cpu"}))
      ->capture_default_str();
  command.add_option("--device-memory", a.devices.deviceMemory, "Memory of each host device: 4GiB");
  command.add_option("--threads", a.devices.threads, "Threads of all host devices together (the machine's cores)")
      ->check(CLI::Range(1, 4096));
  command
      .add_option(
          "--also", a.also,
          "One more model on the same devices, with its options in the same quotes: --also \"MODEL --tp 2\"; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--manage-models", a.managesModels,
                   "POST and DELETE /engine/models may load and unload models of this machine");
  command.add_option("--host", a.server.host, "Address to listen on; 0.0.0.0 is the network")->capture_default_str();
  command.add_option("--port", a.server.port, "0 picks a free one")->check(CLI::Range(0, 65535))->capture_default_str();
  command.add_option("--api-key", a.server.apiKey, "Clients must send it as \"Authorization: Bearer KEY\"")->check(notEmpty());
  command
      .add_option("--max-requests", a.server.maxRequests, "Requests answered at the same time; more get status 429 (no limit)")
      ->check(positive);
  command
      .add_option("--request-timeout", a.server.requestTimeout,
                  "Seconds for a whole answer; a later one ends with an error (no limit)")
      ->check(numberIn(0.001, 1e6));
  command.add_option("--drain-seconds", a.drainSeconds, "How long running requests may go on after SIGTERM or SIGINT")
      ->check(numberIn(0, 1e6))
      ->capture_default_str();
  const std::vector<CLI::Option*> all = command.get_options();
  return {all.begin() + static_cast<ptrdiff_t>(before), all.end()};
}

void addServeCommand(CLI::App& app, Run& run) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* command = app.add_subcommand("serve", "Start a layout of a model and serve it over HTTP");
  command->add_option("MODEL", arguments->model.model, "A model folder or a .gguf file (the first of several)")->required();
  addServeOptions(*command, *arguments);
  command->callback([arguments, &run] { run = [arguments] { return serve(*arguments); }; });
}

}  // namespace headroom::app
