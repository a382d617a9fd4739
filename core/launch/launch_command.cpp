// SPDX-License-Identifier: Apache-2.0
// What to type to start a layout, quoted for a POSIX shell, with a clause on each option.
#include "core/launch/planner.h"

#include <algorithm>

namespace headroom {
namespace {

// As it is where nothing could be special to a shell, else in single quotes.
std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("-_./:=,+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

class CommandText {
 public:
  explicit CommandText(std::string program) : m_words(std::move(program)), m_programWords(m_words.size()) {}
  void variable(const std::string& name, const std::string& value, std::string why) {
    m_variables += name + "=" + quoted(value) + " ";
    if (name != "CUDA_VISIBLE_DEVICES") m_environment.emplace_back(name, value);
    m_command.explained.push_back({name + "=" + value, std::move(why)});
  }
  void word(const std::string& text) { m_words += " " + quoted(text); }
  void option(const std::string& name, const std::string& value, std::string why) {
    m_words += " " + name + (value.empty() ? "" : " " + quoted(value));
    m_command.explained.push_back({name + (value.empty() ? "" : " " + value), std::move(why)});
  }
  // The same start in the engine's container: variables as -e, model folders of this machine mounted where they are.
  std::string inDocker(const std::string& image, const std::string& gpus, const std::string& model) const {
    std::string text =
        "docker run --rm --gpus " + quoted(gpus.empty() ? "all" : "\"device=" + gpus + "\"") + " --shm-size 16g -p 8000:8000";
    for (const auto& [name, value] : m_environment) text += " -e " + quoted(name + "=" + value);
    if (!model.empty() && model.front() == '/') text += " -v " + quoted(model + ":" + model + ":ro");
    return text + " " + image + m_words.substr(m_programWords);
  }
  LaunchCommand take() {
    m_command.text = m_variables + m_words;
    return std::move(m_command);
  }

 private:
  LaunchCommand m_command;
  std::string m_variables, m_words;
  size_t m_programWords;
  std::vector<std::pair<std::string, std::string>> m_environment;
};

std::string gpuList(const LayoutPlan& layout) {
  std::string list;
  for (const RankPlan& rank : layout.ranks) list += (list.empty() ? "" : ",") + std::to_string(rank.slice.gpu);
  return list;
}

// The layers a stage gets when bytes, not counts, are balanced; empty when the engine's own split is as good.
std::vector<int64_t> betterPartition(const LayoutPlan& layout) {
  std::vector<int64_t> layers, bytes;
  for (const RankPlan& rank : layout.ranks) {
    if (rank.slice.replica != 0 || rank.slice.tpRank != 0 || !rank.weights) continue;
    layers.push_back(rank.slice.layers.size());
    bytes.push_back(rank.weights->count());
  }
  if (layers.size() < 3 || *std::min_element(layers.begin(), layers.end()) < 2) return {};
  // A layer's bytes, from a middle stage; what the ends hold besides.
  const int64_t layer = bytes[1] / layers[1];
  const int64_t first = bytes.front() - layers.front() * layer, last = bytes.back() - layers.back() * layer;
  int64_t total = 0;
  for (int64_t count : layers) total += count;
  const auto ranges = balanceStages(std::vector<int64_t>(total, layer), std::max<int64_t>(0, first), std::max<int64_t>(0, last),
                                    static_cast<int>(layers.size()));
  std::vector<int64_t> better;
  int64_t fullest = 0, fullestNow = *std::max_element(bytes.begin(), bytes.end());
  for (size_t i = 0; i < ranges.size(); ++i) {
    better.push_back(ranges[i].size());
    fullest = std::max(fullest, ranges[i].size() * layer + (i == 0 ? first : 0) + (i + 1 == ranges.size() ? last : 0));
  }
  constexpr double kWorthwhile = 0.99;
  if (static_cast<double>(fullest) > kWorthwhile * static_cast<double>(fullestNow)) return {};
  return better;
}

int64_t requestsPerServer(const ResolvedOptions& options, int dp) {
  return ceilDiv(std::max<int64_t>(1, options.concurrency), dp);
}

LaunchCommand headroomCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& model) {
  const ResolvedOptions& options = report.options;
  const bool host = report.machine.gpus.front().spec.hostDevice;
  CommandText command("headroom-engine serve");
  command.word(model);
  command.option("--tp", std::to_string(layout.tp), "ranks that share each layer");
  command.option("--pp", std::to_string(layout.pp), "stages that follow one another");
  if (layout.dp > 1) command.option("--dp", std::to_string(layout.dp), "replicas that share the requests");
  if (host) {
    command.option("--device", "cpu", "host devices of this machine");
    command.option("--device-memory", fmt::format("{}MiB", report.machine.gpus.front().totalMemory.count() >> 20),
                   "memory of each host device");
  } else {
    command.option("--gpus", gpuList(layout), "the GPUs of the ranks, in their order");
  }
  command.option("--max-model-len", std::to_string(options.maxModelLen), "tokens of one request, prompt and answer");
  command.option("--dtype", std::string(dtypeName(options.dtype)), "type of weights and arithmetic");
  return command.take();
}

LaunchCommand vllmCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& model) {
  const ResolvedOptions& options = report.options;
  CommandText command("vllm serve");
  if (const std::vector<int64_t> partition = betterPartition(layout); !partition.empty()) {
    std::string list;
    for (int64_t layers : partition) list += (list.empty() ? "" : ",") + std::to_string(layers);
    command.variable("VLLM_PP_LAYER_PARTITION", list,
                     "layers of each stage, balanced by bytes; vLLM's own split counts layers only");
  }
  if (layout.tp * layout.pp * layout.dp < report.machine.size())
    command.variable("CUDA_VISIBLE_DEVICES", gpuList(layout), "the GPUs of this layout");
  command.word(model);
  command.option("--tensor-parallel-size", std::to_string(layout.tp), "GPUs that share each layer");
  if (layout.pp > 1) command.option("--pipeline-parallel-size", std::to_string(layout.pp), "stages that follow one another");
  if (layout.dp > 1) command.option("--data-parallel-size", std::to_string(layout.dp), "replicas that share the requests");
  if (report.machine.nodes > 1)
    command.option("--nnodes", std::to_string(report.machine.nodes), "machines; run it on each with its --node-rank");
  command.option("--max-model-len", std::to_string(options.maxModelLen), "tokens of one request, prompt and answer");
  command.option("--gpu-memory-utilization", fmt::format("{:g}", options.gpuMemoryUtilization),
                 "share of each GPU that vLLM may take");
  if (options.dtype != report.model.dtype)
    command.option("--dtype", std::string(dtypeName(options.dtype)), "type of weights and arithmetic");
  if (options.kvCacheDType != options.dtype) {
    const bool eight = dtypeInfo(options.kvCacheDType).blockBytes == 1;
    command.option(
        "--kv-cache-dtype",
        eight ? (options.kvCacheDType == DType::F8E5M2 ? "fp8_e5m2" : "fp8") : std::string(dtypeName(options.kvCacheDType)),
        "type of the KV cache");
  }
  if (!options.quantization.empty() && !report.model.quantization)
    command.option("--quantization", options.quantization, "made while loading");
  if (options.enforceEager) command.option("--enforce-eager", "", "no CUDA graphs: less memory, slower decoding");
  const bool all = layout.tp * layout.pp * layout.dp == report.machine.size();
  const std::string docker =
      report.machine.nodes > 1 ? "" : command.inDocker("vllm/vllm-openai", all ? "" : gpuList(layout), model);
  LaunchCommand made = command.take();
  made.docker = docker;
  return made;
}

LaunchCommand sgLangCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& model) {
  const ResolvedOptions& options = report.options;
  CommandText command("python3 -m sglang.launch_server");
  if (const std::vector<int64_t> partition = betterPartition(layout); !partition.empty()) {
    std::string list;
    for (int64_t layers : partition) list += (list.empty() ? "" : ",") + std::to_string(layers);
    command.variable("SGLANG_PP_LAYER_PARTITION", list,
                     "layers of each stage, balanced by bytes; its own split counts layers only");
  }
  if (layout.tp * layout.pp * layout.dp < report.machine.size())
    command.variable("CUDA_VISIBLE_DEVICES", gpuList(layout), "the GPUs of this layout");
  command.option("--model-path", model, "the model");
  command.option("--tp-size", std::to_string(layout.tp), "GPUs that share each layer");
  if (layout.pp > 1) command.option("--pp-size", std::to_string(layout.pp), "stages that follow one another");
  if (layout.dp > 1) command.option("--dp-size", std::to_string(layout.dp), "replicas that share the requests");
  if (report.machine.nodes > 1)
    command.option("--nnodes", std::to_string(report.machine.nodes),
                   "machines; run it on each with its --node-rank and --dist-init-addr");
  command.option("--context-length", std::to_string(options.maxModelLen), "tokens of one request, prompt and answer");
  if (options.kvCacheDType != options.dtype && dtypeInfo(options.kvCacheDType).blockBytes == 1)
    command.option("--kv-cache-dtype", options.kvCacheDType == DType::F8E5M2 ? "fp8_e5m2" : "fp8_e4m3", "type of the KV cache");
  if (options.dtype != report.model.dtype)
    command.option("--dtype", std::string(dtypeName(options.dtype)), "type of weights and arithmetic");
  return command.take();
}

LaunchCommand tensorRtCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& model) {
  const ResolvedOptions& options = report.options;
  CommandText command("trtllm-serve serve");
  const std::vector<RankPlan>& ranks = layout.ranks;
  const int each = layout.tp * layout.pp;
  if (each < report.machine.size()) {
    std::string list;
    for (int i = 0; i < each && i < static_cast<int>(ranks.size()); ++i)
      list += (list.empty() ? "" : ",") + std::to_string(ranks[i].slice.gpu);
    command.variable("CUDA_VISIBLE_DEVICES", list,
                     layout.dp > 1 ? "the GPUs of the first replica; start each replica on its own" : "the GPUs of this layout");
  }
  command.word(model);
  command.option("--tp_size", std::to_string(layout.tp), "GPUs that share each layer");
  if (layout.pp > 1) command.option("--pp_size", std::to_string(layout.pp), "stages that follow one another");
  command.option("--max_seq_len", std::to_string(options.maxModelLen), "tokens of one request, prompt and answer");
  command.option("--max_num_tokens", std::to_string(options.maxNumBatchedTokens), "tokens in one step");
  command.option("--kv_cache_free_gpu_memory_fraction", fmt::format("{:g}", options.gpuMemoryUtilization),
                 "share of what weights and activations leave");
  return command.take();
}

LaunchCommand llamaCppCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& model) {
  const ResolvedOptions& options = report.options;
  CommandText command("llama-server");
  const std::vector<RankPlan>& ranks = layout.ranks;
  const int each = layout.tp * layout.pp;
  std::string gpus, layers;
  for (int i = 0; i < each && i < static_cast<int>(ranks.size()); ++i) {
    gpus += (gpus.empty() ? "" : ",") + std::to_string(ranks[i].slice.gpu);
    layers += (layers.empty() ? "" : ",") + std::to_string(ranks[i].slice.layers.size() + (i + 1 == each ? 1 : 0));
  }
  if (each < report.machine.size()) {
    command.variable("CUDA_VISIBLE_DEVICES", gpus,
                     layout.dp > 1 ? "the GPUs of the first replica; start each replica on its own" : "the GPUs of this layout");
  }
  command.option("-m", model, "a GGUF file");
  command.option("-ngl", "999", "all layers on GPUs");
  if (each > 1) command.option("-sm", layout.tp > 1 ? "tensor" : "layer", "how devices share the model");
  if (layout.pp > 1) command.option("-ts", layers, "layers of each device, the output layer counted");
  if (layout.tp > 1) command.option("-fa", "on", "the tensor split needs flash attention");
  const int64_t requests = requestsPerServer(options, layout.dp);
  command.option("-c", std::to_string(options.maxModelLen * requests), "tokens of all requests together");
  command.option("-np", std::to_string(requests), "requests at once");
  if (options.kvCacheDType != DType::F16) {
    command.option("-ctk", std::string(dtypeName(options.kvCacheDType)), "type of the cached keys");
    command.option("-ctv", std::string(dtypeName(options.kvCacheDType)), "type of the cached values");
  }
  return command.take();
}

}  // namespace

std::optional<LaunchCommand> launchCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& modelArgument) {
  if (layout.verdict == Verdict::Invalid) return std::nullopt;
  switch (report.options.engine.kind) {
    case EngineKind::Headroom:
      return headroomCommand(report, layout, modelArgument);
    case EngineKind::Vllm:
      return vllmCommand(report, layout, modelArgument);
    case EngineKind::SgLang:
      return sgLangCommand(report, layout, modelArgument);
    case EngineKind::TensorRtLlm:
      return tensorRtCommand(report, layout, modelArgument);
    case EngineKind::LlamaCpp:
      return llamaCppCommand(report, layout, modelArgument);
  }
  return std::nullopt;
}

}  // namespace headroom
