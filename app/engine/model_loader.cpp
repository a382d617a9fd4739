// SPDX-License-Identifier: Apache-2.0
#include "app/engine/model_loader.h"

#include "core/json_text.h"
#include "core/launch/planner.h"
#include "core/memory/cuda_types.h"
#include "core/model/embedding_config.h"
#include "core/model/held_weights.h"
#include "engine/device/backend_registry.h"
#include "engine/engine.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

namespace headroom::app {
namespace {

using namespace headroom::engine;

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
  const bool onHost = device == DeviceKind::Cpu;
  const std::string expected = onHost ? "auto, float32, float16, bfloat16, fp8_e4m3, fp8_e5m2 or int8"
                                      : std::string("auto, ") + kCudaCacheTypes;
  if (dtype != DType::F8E4M3 && dtype != DType::F8E5M2 && dtype != DType::I8) {
    if (auto read = readDType("--kv-cache-dtype", text)) return read;
    return failure("--kv-cache-dtype", text, expected);
  }
  if (onHost || cudaHoldsCache(*dtype)) return dtype;
  return failure("--kv-cache-dtype", text + " on CUDA", expected,
                 "int8 caches run on host devices: --device cpu");
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

std::string deviceName(DeviceKind kind, int index) {
  return fmt::format("{}:{}", kind == DeviceKind::Cuda ? "cuda" : "cpu", index);
}

constexpr int64_t kMostRanks = 4096;

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
Result<std::optional<ParallelLayout>> readLayout(ModelArguments& arguments) {
  if (arguments.layoutFile.empty()) return std::optional<ParallelLayout>();
  const std::string where = "--layout " + arguments.layoutFile;
  std::ifstream file(arguments.layoutFile);
  if (!file) return failure(where, "no file that can be read", "a layout from plan --format json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (isNestedTooDeep(text)) return failure(where, kTooDeepJson, "a layout from plan --format json");
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
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

Result<DeviceKind> chooseDevice(const DeviceArguments& arguments, const FoundDevices& found, Log& log) {
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
    log.warning(
        fmt::format("cuda:{} ({}, compute capability {:.1f}) has no bfloat16: plain matrices stay bfloat16 and are multiplied in "
                    "float32, which is "
                    "slow; --dtype float16 uses its tensor cores, --dtype float32 is exact",
                    rank.gpu, spec.name, *spec.computeCapability));
    return;
  }
}

Result<Prepared> prepare(ModelArguments& arguments, const DeviceArguments& devices, std::optional<Bytes>& memoryEach, Log& log) {
  auto model = openModel(arguments.model);
  if (!model) return pass(model);
  if (!model->canBeLoaded())
    return failure(arguments.model, "a configuration without weights", "a model folder with weights, or a .gguf file",
                   "headroom-engine plan plans without weights");
  if (!model->config.missingInEngine.empty()) {
    std::string missing;
    for (const std::string& part : model->config.missingInEngine) missing += (missing.empty() ? "" : ", ") + part;
    // What is said of the tensors names them.
    for (const std::string& warning : model->config.warnings)
      if (warning.starts_with("the files lack ") || warning.find(" has shape [") != std::string::npos) missing += "; " + warning;
    return failure(arguments.model, model->config.architecture + " with " + missing,
                   "an architecture that the engine has all parts of", "headroom-engine plan works for it");
  }
  *model = heldByEngine(std::move(*model));
  auto given = readLayout(arguments);
  if (!given) return pass(given);
  const int tp = arguments.tp.value_or(1), pp = arguments.pp.value_or(1), dp = arguments.dp.value_or(1);
  if (const int64_t ranks = int64_t{tp} * pp * dp; ranks > kMostRanks)
    return failure(fmt::format("--tp {} --pp {} --dp {}", tp, pp, dp), fmt::format("{} ranks", ranks),
                   fmt::format("{} at most", kMostRanks));

  HostDeviceSettings host;
  host.count = tp * pp * dp;
  if (!devices.deviceMemory.empty()) {
    memoryEach = parseMemory(devices.deviceMemory);
    if (!memoryEach) return failure("--device-memory", devices.deviceMemory, "an amount such as 4GiB");
  }
  // Models after the first stand on devices of the same size.
  host.memoryEach = memoryEach;
  const FoundDevices found = findDevices(host);
  const auto device = chooseDevice(devices, found, log);
  if (!device) return pass(device);
  if (*device == DeviceKind::Cuda && (!devices.deviceMemory.empty() || devices.threads > 0))
    return failure(devices.deviceMemory.empty() ? "--threads" : "--device-memory", "CUDA devices", "host devices",
                   devices.deviceMemory.empty() ? "leave it out, or serve with --device cpu"
                                                : "--gpu-memory-utilization is the share of a GPU; --device cpu takes host devices");
  auto gpus = readGpus(arguments.gpus);
  if (!gpus) return pass(gpus);
  if (!gpus->empty() && *device == DeviceKind::Cpu)
    return failure("--gpus " + arguments.gpus, "host devices", "CUDA devices",
                   "host devices need no numbers; --device-memory sizes them");

  Prepared prepared{std::move(*model), {}, *device == DeviceKind::Cuda ? found.cuda : found.host, *device, {}};
  prepared.cuda = found.cudaModule;
  if (*device == DeviceKind::Cpu) memoryEach = found.host.gpus.front().totalMemory;
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
      return failure(
          "--device-memory",
          fmt::format("{} for each of {} host devices",
                      devices.deviceMemory.empty() ? fmt::format("{} MiB", host.memoryEach->count() >> 20) : devices.deviceMemory,
                      host.count),
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

// What the model makes vectors of, if anything; else the reason.
void readPooling(const ModelSource& model, const std::string& asked, ModelText& text, Log& log) {
  text.embeddingSize = model.config.hiddenSize;
  if (lacksHead(model))
    text.noGenerationReason = "This model makes embeddings and no text: its files have no language model head.";
  if (!asked.empty()) {
    text.embedding = EmbeddingConfig{*parsePooling(asked), true};
    return;
  }
  auto declared = readEmbeddingConfig(model);
  if (!declared) {
    log.warning(text.noEmbeddingReason = "This model's embeddings are not computed here: " + declared.error().message());
    return;
  }
  text.embedding = *declared;
  if (!text.embedding)
    text.noEmbeddingReason =
        "This model's files declare no pooling of its hidden states, so it makes text and no embeddings; serve --pooling last or "
        "mean chooses one.";
}

// All that a served model needs; lives as long as anyone knows the model.
struct Standing {
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chatTemplate;
  std::unique_ptr<EngineService> service;
  std::optional<ServedModel> served;
};

constexpr const char* kFreeMemory =
    "lower the maximum length, unload another model, or start it with a smaller --gpu-memory-utilization";

// What other models leave of the devices of a layout.
struct MemoryLeft {
  double share = 0;    // of each device's memory
  std::string others;  // what they take on the fullest device; empty: nothing
};

// All models together stay below the usual share of a device, or below the asked one where that is larger.
MemoryLeft memoryLeft(const Prepared& prepared, double asked, const std::map<std::string, Bytes>& taken) {
  MemoryLeft left{asked, {}};
  for (const RankSlice& rank : prepared.layout.ranks) {
    const std::string device = deviceName(prepared.device, rank.gpu);
    const auto held = taken.find(device);
    if (held == taken.end()) continue;
    const Bytes total = prepared.machine.gpus[static_cast<size_t>(rank.gpu)].totalMemory;
    const double share =
        std::max(asked, kShareOfMemory) - static_cast<double>(held->second.count()) / static_cast<double>(total.count());
    if (share >= left.share && !left.others.empty()) continue;
    left.share = std::min(left.share, share);
    left.others = fmt::format("other models take {:.1f} of {:.1f} MiB of {}", static_cast<double>(held->second.count()) / 0x1p20,
                              static_cast<double>(total.count()) / 0x1p20, device);
  }
  return left;
}

// Planned bytes of an engine by device.
std::map<std::string, Bytes> memoryOf(const EngineState& state) {
  std::map<std::string, Bytes> memory;
  for (const RankState& rank : state.ranks)
    for (const auto& part : {rank.planned.weights, rank.planned.kvCache, rank.planned.activations, rank.planned.graphs})
      memory[rank.device] += Bytes(part.value_or(0));
  return memory;
}

// One argument as a shell would quote it for parse().
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + '"';
}

Result<ModelArguments> parsed(std::vector<std::string> words, const std::string& where) {
  ModelArguments arguments;
  CLI::App app{"A model and its options", where};
  app.set_help_flag();
  app.add_option("MODEL", arguments.model)->required();
  addModelOptions(app, arguments);
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
    app.parse(std::move(words));
  } catch (const CLI::ParseError& problem) {
    return failure(where, problem.what(),
                   "MODEL and serve's options of a model: --tp, --max-model-len, --served-model-name and so on");
  }
  return arguments;
}

}  // namespace

Result<ModelArguments> parseModelArguments(const std::string& text) {
  return parsed(CLI::detail::split_up(text), "--also " + quoted(text));
}

Result<StartedModel> ModelLoader::start(ModelArguments arguments, double share) {
  std::lock_guard lock(m_mutex);
  auto prepared = prepare(arguments, m_devices, m_hostMemoryEach, m_log);
  if (!prepared) return pass(prepared);
  const ModelSource& model = prepared->model;
  const std::string name = arguments.servedModelName.empty() ? model.config.name : arguments.servedModelName;
  for (const std::string& warning : model.config.warnings) m_log.warning(warning);

  const auto standing = std::make_shared<Standing>();
  ModelText text;
  const std::filesystem::path textFiles = model.path.extension() == ".gguf" ? model.path : model.folder;
  if (auto tokenizer = Tokenizer::open(textFiles))
    standing->tokenizer = std::move(*tokenizer);
  else
    m_log.warning(text.noTokenizerReason = tokenizer.error().message());
  if (auto chatTemplate = ChatTemplate::open(textFiles))
    standing->chatTemplate = std::move(*chatTemplate);
  else
    m_log.warning(text.noTemplateReason = chatTemplate.error().message());
  text.tokenizer = standing->tokenizer.get();
  text.chatTemplate = standing->chatTemplate.get();
  readPooling(model, arguments.pooling, text, m_log);

  EngineSettings settings;
  settings.ranks.device = prepared->device;
  settings.ranks.cuda = prepared->cuda;
  settings.ranks.threads = m_devices.threads;
  settings.ranks.spin = m_taken.empty();  // two engines on the same cores would spin on each other's
  settings.prefixCaching = !arguments.noPrefixCaching;
  // On host devices a token's result is the same alone and beside others, to the bit.
  settings.draftTokens = arguments.speculativeTokens.value_or(prepared->device == DeviceKind::Cpu ? 8 : 0);
  settings.modelName = name;
  settings.eosTokenIds = model.config.eosTokenIds;
  if (standing->tokenizer)
    for (int32_t id : standing->tokenizer->eosTokenIds())
      if (std::find(settings.eosTokenIds.begin(), settings.eosTokenIds.end(), id) == settings.eosTokenIds.end())
        settings.eosTokenIds.push_back(id);

  const ParallelLayout layout = prepared->layout;
  const ResolvedOptions& options = prepared->options;
  m_log.info(fmt::format("{} as TP{} PP{} DP{} on {}: {} weights, {} KV cache, context {}, {} sequences, {} tokens a step", name,
                         layout.tp, layout.pp, layout.dp, prepared->device == DeviceKind::Cuda ? "CUDA devices" : "host devices",
                         dtypeName(options.dtype), dtypeName(options.kvCacheDType), options.maxModelLen, options.maxNumSeqs,
                         options.maxNumBatchedTokens));
  EngineLimits limits = engineLimits(options);
  if (arguments.noPrefixCaching) limits.cachedStates = 0;
  const MemoryLeft left = memoryLeft(*prepared, arguments.gpuMemoryUtilization.value_or(share), m_taken);
  if (left.share <= 0) return failure(name, left.others, "memory for one more", kFreeMemory);
  if (arguments.gpuMemoryUtilization && left.share < *arguments.gpuMemoryUtilization)
    m_log.warning(fmt::format("{} gets {:.2f} of each device's memory in place of the {:g} of --gpu-memory-utilization: {}", name,
                              left.share, *arguments.gpuMemoryUtilization, left.others));
  auto engine = Engine::start(model, layout, prepared->machine, limits, left.share, std::move(settings), m_changed);
  if (!engine && left.others.empty()) return pass(engine);
  if (!engine) {
    Error error = engine.error();
    error.found += "; " + left.others;
    error.next = kFreeMemory;
    return tl::unexpected(std::move(error));
  }
  const std::map<std::string, Bytes> memory = memoryOf((*engine)->state());
  for (const auto& [device, bytes] : memory) m_taken[device] += bytes;
  standing->service = std::make_unique<EngineService>(std::move(*engine));
  standing->served.emplace(name, *standing->service, std::move(text));
  StartedModel started;
  started.layout = layout;
  started.loaded.served = std::shared_ptr<ServedModel>(standing, &*standing->served);
  started.loaded.close = [this, standing, memory] {
    standing->service->close();
    std::lock_guard lock(m_mutex);
    for (const auto& [device, bytes] : memory)
      if ((m_taken[device] -= bytes).count() <= 0) m_taken.erase(device);
  };
  return started;
}

ApiResult<LoadedModel> ModelLoader::load(const nlohmann::ordered_json& request) {
  auto refuse = [](const std::string& param, const std::string& message) {
    return tl::unexpected(ApiError{400, message, param, "invalid_request_error", {}});
  };
  std::vector<std::string> words;
  for (const auto& [key, value] : request.items()) {
    if (value.is_null() || value == false) continue;
    if (key == "model") {
      if (!value.is_string() || value.get_ref<const std::string&>().starts_with('-'))
        return refuse(key, "model: found " + dumpJson(value) + ", expected a path or name.");
      words.insert(words.begin(), value.get<std::string>());
      continue;
    }
    std::string option = key == "name" ? "served_model_name" : key;
    std::replace(option.begin(), option.end(), '_', '-');
    if (value == true)
      words.push_back("--" + option);
    else if (value.is_string() || value.is_number())
      words.push_back(fmt::format("--{}={}", option, value.is_string() ? value.get<std::string>() : dumpJson(value)));
    else
      return refuse(key, fmt::format("{}: found {}, expected a text, a number, true or false.", key, dumpJson(value)));
  }
  if (!request.contains("model")) return refuse("model", "model: is missing, expected the path of a model.");
  auto arguments = parsed(std::move(words), "POST /engine/models");
  if (!arguments) return refuse({}, arguments.error().message() + ".");
  auto started = start(std::move(*arguments), kShareOfMemory);
  if (!started) return refuse("model", started.error().message() + ".");
  return std::move(started->loaded);
}

}  // namespace headroom::app
