// SPDX-License-Identifier: Apache-2.0
// headroom-engine serve: opens a model, sizes and starts the engine on its layout, and serves it until a signal or a failure ends
// it.
#include "app/engine/command.h"
#include "app/engine/serve_options.h"
#include "core/launch/planner.h"
#include "core/model/held_weights.h"
#include "engine/device/backend_registry.h"
#include "engine/engine.h"
#include "engine/server/server.h"

#include <fmt/chrono.h>
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
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>

namespace headroom::app {
namespace {

using namespace headroom::engine;

// One line each on stderr, with time and level. Thread-safe.
class Log {
 public:
  void info(const std::string& text) { line("INFO", text); }
  void warning(const std::string& text) { line("WARNING", text); }
  // Overwritten by the next one; terminals only.
  void progress(const std::string& text) {
    if (!m_terminal) return;
    std::lock_guard lock(m_mutex);
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
    m_progress = true;
  }
  void endProgress() {
    std::lock_guard lock(m_mutex);
    clearProgress();
  }

 private:
  void line(const char* level, const std::string& text) {
    const auto now = std::chrono::system_clock::now();
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
    const std::string stamp =
        fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03}", fmt::localtime(std::chrono::system_clock::to_time_t(now)), milliseconds);
    std::lock_guard lock(m_mutex);
    clearProgress();
    std::fprintf(stderr, "%s %s %s\n", stamp.c_str(), level, text.c_str());
  }
  void clearProgress() {
    if (!std::exchange(m_progress, false)) return;
    std::fputs("\r\033[K", stderr);
  }
  std::mutex m_mutex;
  bool m_progress = false;
  const bool m_terminal = isatty(STDERR_FILENO) != 0;
};

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

template <class T>
tl::unexpected<Error> pass(const Result<T>& result) {
  return tl::unexpected(result.error());
}

Result<std::optional<DType>> readDType(const std::string& option, const std::string& text) {
  if (text.empty() || text == "auto") return std::optional<DType>();
  const auto dtype = parseDType(text);
  if (!dtype || !isFloating(*dtype) || *dtype == DType::F64) return failure(option, text, "auto, float32, float16 or bfloat16");
  return dtype;
}

Result<std::optional<DType>> readKvDType(const std::string& text, DeviceKind device) {
  const auto dtype = parseDType(text);
  if (dtype != DType::F8E4M3 && dtype != DType::F8E5M2 && dtype != DType::I8) return readDType("--kv-cache-dtype", text);
  if (device == DeviceKind::Cpu) return dtype;
  return failure("--kv-cache-dtype", text + " on CUDA", "auto, float32, float16 or bfloat16",
                 "8-bit caches run on host devices: --device cpu");
}

Result<std::vector<int>> readGpus(const std::string& text) {
  std::vector<int> gpus;
  std::stringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    size_t used = 0;
    int gpu = -1;
    try {
      gpu = std::stoi(item, &used);
    } catch (const std::exception&) {
    }
    if (gpu < 0 || used != item.size()) return failure("--gpus", text, "device numbers such as 0,2,3");
    gpus.push_back(gpu);
  }
  return gpus;
}

// What is served where, before anything is loaded.
struct Prepared {
  ModelSource model;
  ParallelLayout layout;
  Machine machine;
  DeviceKind device = DeviceKind::Cpu;
  ResolvedOptions options;
  std::shared_ptr<const CudaModule> cuda = nullptr;  // for DeviceKind::Cuda
};

// The layout of --layout, if any; its sizes count as --tp, --pp and --dp.
Result<std::optional<ParallelLayout>> readLayout(ServeArguments& arguments) {
  if (arguments.layoutFile.empty()) return std::optional<ParallelLayout>();
  const std::string where = "--layout " + arguments.layoutFile;
  std::ifstream file(arguments.layoutFile);
  if (!file) return failure(where, "no file that can be read", "a layout from plan --format json");
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(file);
  } catch (const nlohmann::json::exception& problem) {
    return failure(where, problem.what(), "JSON");
  }
  auto layout = layoutFromJson(json, where);
  if (!layout) return pass(layout);
  for (auto [given, found, option] : {std::tuple{arguments.tp, layout->tp, "--tp"}, std::tuple{arguments.pp, layout->pp, "--pp"},
                                      std::tuple{arguments.dp, layout->dp, "--dp"}})
    if (given && *given != found)
      return failure(where, fmt::format("{} ranks for {}", found, option), fmt::format("{} as {} says", *given, option),
                     "leave one of the two out");
  arguments.tp = layout->tp;
  arguments.pp = layout->pp;
  arguments.dp = layout->dp;
  return std::optional(std::move(*layout));
}

Result<DeviceKind> chooseDevice(const ServeArguments& arguments, const FoundDevices& found, Log& log) {
  if (arguments.device == "cpu") return DeviceKind::Cpu;
  if (found.cudaModule) return DeviceKind::Cuda;
  if (arguments.device == "cuda") {
    std::string reason = found.cudaOffReason;
    if (reason.ends_with('.')) reason.pop_back();
    return failure("--device cuda", reason, "a CUDA device that can be used", "--device cpu runs on host devices");
  }
  log.info(found.cudaOffReason + " Serving on host devices.");
  return DeviceKind::Cpu;
}

// Devices without bfloat16 compute, and what their user may choose.
void warnOfBfloat16(const Prepared& prepared, Log& log) {
  for (const RankSlice& rank : prepared.layout.ranks) {
    const GpuSpec& spec = prepared.machine.gpus[static_cast<size_t>(rank.gpu)].spec;
    if (!spec.computeCapability || *spec.computeCapability >= 8.0) continue;
    log.warning(fmt::format("cuda:{} ({}, compute capability {:.1f}) has no bfloat16: plain matrices stay bfloat16 and are multiplied in float32, which is "
                            "slow; --dtype float16 uses its tensor cores, --dtype float32 is exact",
                            rank.gpu, spec.name, *spec.computeCapability));
    return;
  }
}

Result<Prepared> prepare(ServeArguments& arguments, Log& log) {
  auto model = openModel(arguments.model);
  if (!model) return pass(model);
  if (!model->canBeLoaded())
    return failure(arguments.model, "a configuration without weights", "a model folder with weights, or a .gguf file",
                   "headroom-engine plan plans without weights");
  if (!model->config.missingInEngine.empty()) {
    std::string missing;
    for (const std::string& part : model->config.missingInEngine) missing += (missing.empty() ? "" : ", ") + part;
    return failure(arguments.model, model->config.architecture + " with " + missing,
                   "an architecture that the engine has all parts of", "headroom-engine plan works for it");
  }
  *model = heldByEngine(std::move(*model));
  auto given = readLayout(arguments);
  if (!given) return pass(given);
  const int tp = arguments.tp.value_or(1), pp = arguments.pp.value_or(1), dp = arguments.dp.value_or(1);

  HostDeviceSettings host;
  host.count = tp * pp * dp;
  if (!arguments.deviceMemory.empty()) {
    host.memoryEach = parseMemory(arguments.deviceMemory);
    if (!host.memoryEach) return failure("--device-memory", arguments.deviceMemory, "an amount such as 4GiB");
  }
  const FoundDevices found = findDevices(host);
  const auto device = chooseDevice(arguments, found, log);
  if (!device) return pass(device);
  auto gpus = readGpus(arguments.gpus);
  if (!gpus) return pass(gpus);
  if (!gpus->empty() && *device == DeviceKind::Cpu)
    return failure("--gpus " + arguments.gpus, "host devices", "CUDA devices",
                   "host devices need no numbers; --device-memory sizes them");

  Prepared prepared{std::move(*model), {}, *device == DeviceKind::Cuda ? found.cuda : found.host, *device, {}};
  prepared.cuda = found.cudaModule;
  for (int gpu : *gpus)
    if (gpu >= prepared.machine.size())
      return failure(fmt::format("--gpus {}", arguments.gpus), fmt::format("device {}", gpu),
                     fmt::format("0 to {}", prepared.machine.size() - 1));
  auto layout = *given ? Result<ParallelLayout>(std::move(**given)) : makeHeadroomLayout(prepared.model, tp, pp, dp, *gpus);
  if (!layout) return pass(layout);
  if (const Status status = checkLayout(*layout, prepared.model); !status) return pass(status);
  prepared.layout = std::move(*layout);
  for (const RankSlice& rank : prepared.layout.ranks)
    if (rank.gpu < 0 || rank.gpu >= prepared.machine.size())
      return failure(fmt::format("rank {}", rank.rank), fmt::format("device {}", rank.gpu),
                     fmt::format("one of the {} devices of this machine", prepared.machine.size()),
                     "use smaller --tp, --pp or --dp");
  if (*device == DeviceKind::Cpu && host.memoryEach)
    if (const Bytes most(hostMemory().count() / host.count); *host.memoryEach > most)
      return failure("--device-memory", fmt::format("{} for each of {} host devices", arguments.deviceMemory, host.count),
                     fmt::format("at most {} MiB each, which is all the memory of this machine", most.count() >> 20));

  PlanOptions options;
  const auto dtype = readDType("--dtype", arguments.dtype);
  if (!dtype) return pass(dtype);
  const auto kvDType = readKvDType(arguments.kvCacheDType, prepared.device);
  if (!kvDType) return pass(kvDType);
  options.dtype = *dtype;
  options.kvCacheDType = *kvDType;
  options.maxModelLen = arguments.maxModelLen;
  options.maxNumSeqs = arguments.maxNumSeqs;
  options.maxNumBatchedTokens = arguments.maxNumBatchedTokens;
  options.gpuMemoryUtilization = arguments.gpuMemoryUtilization;
  options.enforceEager = arguments.enforceEager;
  auto resolved = resolveHeadroomOptions(prepared.model, prepared.machine, options);
  if (!resolved) return pass(resolved);
  prepared.options = std::move(*resolved);
  if (prepared.device == DeviceKind::Cuda && prepared.options.dtype == DType::BF16) warnOfBfloat16(prepared, log);
  return prepared;
}

void raiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void showProgress(const EngineState& state, Log& log) {
  int64_t done = 0, total = 0;
  std::string ranks;
  for (const RankState& rank : state.ranks) {
    done += rank.loadBytesDone;
    total += rank.loadBytesTotal;
    ranks += fmt::format(" {}:{}%", rank.rank, rank.loadBytesTotal ? 100 * rank.loadBytesDone / rank.loadBytesTotal : 0);
  }
  if (total > 0) log.progress(fmt::format("loading {:.2f} of {:.2f} GiB; ranks{}", Bytes(done).gib(), Bytes(total).gib(), ranks));
}

// Follows the engine until it fails or a signal comes; the exit status.
int follow(Engine& engine, Server& server, Signals& signals, const std::string& name, const ParallelLayout& layout,
           double drainSeconds, Log& log) {
  bool ready = false;
  const auto begun = std::chrono::steady_clock::now();
  while (true) {
    const EngineState state = engine.state();
    if (state.phase == EnginePhase::Failed) {
      log.endProgress();
      server.notifyStateChanged();
      server.stop(1);  // open requests get their error
      return fail(kFailed, state.error);
    }
    if (!ready && state.phase == EnginePhase::Ready) {
      ready = true;
      log.info(fmt::format("ready after {:.2f} s: {} KV blocks of {} tokens; serving {} on {}",
                           std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(), state.kvBlocksTotal,
                           state.blockTokens, name, server.url()));
      const nlohmann::ordered_json line{{"ready", true},
                                        {"url", server.url()},
                                        {"model", name},
                                        {"layout", {{"tp", layout.tp}, {"pp", layout.pp}, {"dp", layout.dp}}}};
      std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
      std::fflush(stdout);
    } else if (!ready) {
      showProgress(state, log);
    }
    const int signal = signals.wait();
    if (signal == 0) continue;
    signals.letThrough();
    log.info(fmt::format("stopping: {}", signal == SIGINT ? "SIGINT" : "SIGTERM"));
    if (!ready) {
      server.stop(0);
      return signal == SIGINT ? kInterrupted : kDone;
    }
    engine.drain();
    server.notifyStateChanged();
    server.stop(drainSeconds);
    return kDone;
  }
}

int serve(ServeArguments arguments) {
  Signals signals;
  Log log;
  raiseFileLimit();
  auto prepared = prepare(arguments, log);
  if (!prepared) return fail(kBadInput, prepared.error().message());
  const ModelSource& model = prepared->model;
  if (arguments.server.servedModelName.empty()) arguments.server.servedModelName = model.config.name;
  const std::string name = arguments.server.servedModelName;
  for (const std::string& warning : model.config.warnings) log.warning(warning);

  auto server = Server::bind(arguments.server);
  if (!server) return fail(kBadInput, server.error().message());

  const std::filesystem::path textFiles = model.path.extension() == ".gguf" ? model.path : model.folder;
  std::string noTokenizer, noTemplate;
  auto tokenizer = Tokenizer::open(textFiles);
  if (!tokenizer) log.warning(noTokenizer = tokenizer.error().message());
  auto chatTemplate = ChatTemplate::open(textFiles);
  if (!chatTemplate) log.warning(noTemplate = chatTemplate.error().message());

  EngineSettings settings;
  settings.ranks.device = prepared->device;
  settings.ranks.cuda = prepared->cuda;
  settings.ranks.threads = arguments.threads;
  settings.prefixCaching = !arguments.noPrefixCaching;
  // On host devices a token's result is the same alone and beside others, to the bit.
  settings.draftTokens = arguments.speculativeTokens.value_or(prepared->device == DeviceKind::Cpu ? 8 : 0);
  settings.modelName = name;
  settings.eosTokenIds = model.config.eosTokenIds;
  if (tokenizer)
    for (int32_t id : (*tokenizer)->eosTokenIds())
      if (std::find(settings.eosTokenIds.begin(), settings.eosTokenIds.end(), id) == settings.eosTokenIds.end())
        settings.eosTokenIds.push_back(id);

  const ParallelLayout layout = prepared->layout;
  const ResolvedOptions& options = prepared->options;
  log.info(fmt::format("{} as TP{} PP{} DP{} on {}: {} weights, {} KV cache, context {}, {} sequences, {} tokens a step", name,
                       layout.tp, layout.pp, layout.dp, prepared->device == DeviceKind::Cuda ? "CUDA devices" : "host devices",
                       dtypeName(options.dtype), dtypeName(options.kvCacheDType), options.maxModelLen, options.maxNumSeqs,
                       options.maxNumBatchedTokens));
  Server& http = **server;
  auto engine = Engine::start(model, layout, prepared->machine, engineLimits(options), options.gpuMemoryUtilization,
                              std::move(settings), [&signals, &http] {
                                http.notifyStateChanged();
                                signals.wake();
                              });
  if (!engine) return fail(kBadInput, engine.error().message());
  EngineService service(**engine);
  http.serve(service, tokenizer ? tokenizer->get() : nullptr, noTokenizer, chatTemplate ? chatTemplate->get() : nullptr,
             noTemplate);
  const int status = follow(**engine, http, signals, name, layout, arguments.drainSeconds, log);
  http.stop(0);
  engine->reset();
  return status;
}

}  // namespace

std::vector<CLI::Option*> addServeOptions(CLI::App& command, ServeArguments& a) {
  const size_t before = command.get_options().size();
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 40);
  command.add_option("--tp", a.tp, "Ranks that share each layer (1)")->check(CLI::Range(1, 1024));
  command.add_option("--pp", a.pp, "Stages that share the layers (1)")->check(CLI::Range(1, 1024));
  command.add_option("--dp", a.dp, "Replicas of the whole model (1)")->check(CLI::Range(1, 1024));
  command.add_option("--layout", a.layoutFile, "A layout from plan --format json, in place of --tp, --pp and --dp");
  command.add_option("--device", a.device, "auto takes CUDA where it is on")
      ->check(CLI::IsMember({"auto", "cuda", "cpu"}))
      ->capture_default_str();
  command.add_option("--gpus", a.gpus, "CUDA devices by number, one a rank: 0,2,3");
  command.add_option("--device-memory", a.deviceMemory, "Memory of each host device: 4GiB");
  command.add_option("--threads", a.threads, "Threads of all host devices together (the machine's cores)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--host", a.server.host, "Address to listen on; 0.0.0.0 is the network")->capture_default_str();
  command.add_option("--port", a.server.port, "0 picks a free one")->check(CLI::Range(0, 65535))->capture_default_str();
  command.add_option("--api-key", a.server.apiKey, "Clients must send it as \"Authorization: Bearer KEY\"");
  command.add_option("--served-model-name", a.server.servedModelName, "The name that requests use (the model's own)");
  command.add_option("--max-model-len", a.maxModelLen, "Tokens of one sequence, prompt and answer")->check(positive);
  command.add_option("--max-num-seqs", a.maxNumSeqs, "Sequences in one step")->check(positive);
  command.add_option("--max-num-batched-tokens", a.maxNumBatchedTokens, "Tokens in one step")->check(positive);
  command.add_option("--gpu-memory-utilization", a.gpuMemoryUtilization, "Share of each device's memory to use (0.9)")
      ->check(CLI::Range(0.01, 1.0));
  command.add_option("--dtype", a.dtype, "auto, float32 (exact), bfloat16 or float16")->capture_default_str();
  command.add_option("--kv-cache-dtype", a.kvCacheDType, "auto, float32, bfloat16, float16, fp8_e4m3, fp8_e5m2 or int8")
      ->capture_default_str();
  command
      .add_option("--max-requests", a.server.maxRequests, "Requests answered at the same time; more get status 429 (no limit)")
      ->check(positive);
  command
      .add_option("--request-timeout", a.server.requestTimeout,
                  "Seconds for a whole answer; a later one ends with an error (no limit)")
      ->check(CLI::Range(0.001, 1e6));
  command.add_option("--drain-seconds", a.drainSeconds, "How long running requests may go on after SIGTERM or SIGINT")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command.add_flag("--no-prefix-caching", a.noPrefixCaching, "Compute every prompt whole");
  command
      .add_option("--speculative-tokens", a.speculativeTokens,
                  "Tokens that a step may guess for a request from what its text repeats; 0 for none (8; on CUDA 0)")
      ->check(CLI::Range(0, 64));
  command.add_flag("--enforce-eager", a.enforceEager, "No CUDA graphs: less memory, slower decoding");
  const std::vector<CLI::Option*> all = command.get_options();
  return {all.begin() + static_cast<ptrdiff_t>(before), all.end()};
}

void addServeCommand(CLI::App& app, Run& run) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* command = app.add_subcommand("serve", "Start a layout of a model and serve it over HTTP");
  command->add_option("MODEL", arguments->model, "A model folder or a .gguf file (the first of several)")->required();
  addServeOptions(*command, *arguments);
  command->callback([arguments, &run] { run = [arguments] { return serve(*arguments); }; });
}

}  // namespace headroom::app
