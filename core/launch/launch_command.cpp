// SPDX-License-Identifier: Apache-2.0
// What to type to start a layout, quoted for a POSIX shell, with a clause on each option.
#include "core/launch/evaluator.h"
#include "core/launch/planner.h"

#include <algorithm>
#include <cctype>
#include <set>

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
  // `words` is what the image's entry point needs before the options; the program's own words are left out.
  void inDocker(const std::string& image, const std::string& words, const std::string& gpus, const std::string& model, int port) {
    std::vector<LaunchCommand::Option>& why = m_command.dockerExplained;
    const std::string devices = quoted(gpus.empty() ? "all" : "\"device=" + gpus + "\"");
    std::string text = fmt::format("docker run --rm --gpus {} --shm-size 16g -p {}:{}", devices, port, port);
    why.push_back({"--gpus " + devices, gpus.empty() ? "all GPUs of the machine" : "the GPUs of this layout"});
    why.push_back({"--shm-size 16g", "ranks exchange data through /dev/shm; a container has 64 MiB of it unless told otherwise"});
    why.push_back({fmt::format("-p {}:{}", port, port), "the server's port, on the machine"});
    for (const auto& [name, value] : m_environment) {
      text += " -e " + quoted(name + "=" + value);
      why.push_back({"-e " + quoted(name + "=" + value), "as explained for the variable"});
    }
    if (!model.empty() && model.front() == '/') {
      const std::string mount = quoted(model + ":" + model + ":ro");
      text += " -v " + mount;
      why.push_back({"-v " + mount, "the model's files, where they are, read-only"});
    }
    m_command.docker = text + " " + image + (words.empty() ? "" : " " + words) + m_words.substr(m_programWords);
  }
  // What to type on each of several machines; `own` gives the options of a machine.
  template <class Own>
  void onNodes(int nodes, Own own) {
    for (int node = 0; node < nodes; ++node) m_command.nodes.push_back({node, m_variables + m_words + own(node)});
  }
  void onNode(int node, const std::string& text) { m_command.nodes.push_back({node, text}); }
  std::string text() const { return m_variables + m_words; }
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

// The partition variable where another split than the engine's own has room for more tokens.
void addPartition(CommandText& command, const LayoutPlan& layout, const char* variable) {
  if (layout.partition.empty()) return;
  const PartitionAdvice& advice = layout.partition.front();
  std::string list;
  for (int64_t layers : advice.layers) list += (list.empty() ? "" : ",") + std::to_string(layers);
  command.variable(variable, list,
                   advice.gain > 0 ? fmt::format("layers of each stage, balanced by bytes: about {:.0f} % more tokens than the "
                                                 "engine's own split by count",
                                                 advice.gain * 100)
                                   : "layers of each stage, balanced by bytes; the engine's own split by count does not fit");
}

bool usesAll(const PlanReport& report, const LayoutPlan& layout) {
  return layout.tp * layout.pp * layout.dp == report.machine.size();
}

int usedNodes(const PlanReport& report, const LayoutPlan& layout) {
  if (report.machine.nodes < 2) return 1;
  std::set<int> nodes;
  for (const RankPlan& rank : layout.ranks) nodes.insert(report.machine.gpus[rank.slice.gpu].node);
  return static_cast<int>(nodes.size());
}

int64_t requestsPerServer(const ResolvedOptions& options, int dp) {
  return ceilDiv(std::max<int64_t>(1, options.concurrency), dp);
}

// The limits of a step that were asked for.
void addLimits(CommandText& command, const ResolvedOptions& options, const char* sequences, const char* tokens) {
  if (options.asksNumSeqs) command.option(sequences, std::to_string(options.maxNumSeqs), "sequences in one step");
  if (options.asksBatchedTokens) command.option(tokens, std::to_string(options.maxNumBatchedTokens), "tokens in one step");
}

// As servers spell them: 8-bit floats have their own names.
std::string cacheName(DType type) {
  return type == DType::F8E4M3 ? "fp8_e4m3" : type == DType::F8E5M2 ? "fp8_e5m2" : std::string(dtypeName(type));
}

LaunchCommand headroomCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& model) {
  const ResolvedOptions& options = report.options;
  const bool host = report.machine.isHostOnly();
  CommandText command("headroom-engine serve");
  command.word(model);
  if (needsLayoutFile(report, layout))
    command.option("--layout", "layout.json", "this layout as plan --format json prints it: its stages follow the cards' memory");
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
  const HeadroomDefaults defaults = headroomDefaults(host);
  if (options.maxNumSeqs != defaults.maxNumSeqs)
    command.option("--max-num-seqs", std::to_string(options.maxNumSeqs), "sequences in one step");
  if (options.maxNumBatchedTokens != defaults.maxNumBatchedTokens)
    command.option("--max-num-batched-tokens", std::to_string(options.maxNumBatchedTokens), "tokens in one step");
  if (options.gpuMemoryUtilization != defaults.gpuMemoryUtilization)
    command.option("--gpu-memory-utilization", fmt::format("{:g}", options.gpuMemoryUtilization),
                   "share of each device's memory to use");
  command.option("--dtype", std::string(dtypeName(options.dtype)), "type of weights and arithmetic");
  if (options.kvCacheDType != options.dtype)
    command.option("--kv-cache-dtype", cacheName(options.kvCacheDType), "type of the KV cache");
  if (options.enforceEager && !host) command.option("--enforce-eager", "", "no CUDA graphs: less memory, slower decoding");
  return command.take();
}

LaunchCommand vllmCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& model) {
  const ResolvedOptions& options = report.options;
  CommandText command("vllm serve");
  addPartition(command, layout, "VLLM_PP_LAYER_PARTITION");
  if (layout.tp * layout.pp * layout.dp < report.machine.size())
    command.variable("CUDA_VISIBLE_DEVICES", gpuList(layout), "the GPUs of this layout");
  command.word(model);
  command.option("--tensor-parallel-size", std::to_string(layout.tp), "GPUs that share each layer");
  if (layout.pp > 1) command.option("--pipeline-parallel-size", std::to_string(layout.pp), "stages that follow one another");
  if (layout.dp > 1) command.option("--data-parallel-size", std::to_string(layout.dp), "replicas that share the requests");
  if (layout.ep > 1 || options.expertParallel)
    command.option("--enable-expert-parallel", "", "whole experts on each rank in place of columns of all of them");
  // --nnodes came with 0.12; before, several machines needed Ray.
  const bool several = usedNodes(report, layout) > 1, ray = several && versionOf(options.engine) < EngineVersion{0, 12, 0};
  if (ray) {
    command.option("--distributed-executor-backend", "ray", "several machines: a Ray cluster that was started before");
  } else if (several) {
    command.option("--nnodes", std::to_string(usedNodes(report, layout)), "machines; run it on each with its own --node-rank");
    command.option("--master-addr", "FIRST_MACHINE", "address of the first machine, as the others reach it");
  }
  command.option("--max-model-len", std::to_string(options.maxModelLen), "tokens of one request, prompt and answer");
  command.option("--gpu-memory-utilization", fmt::format("{:g}", options.gpuMemoryUtilization),
                 "share of each GPU that vLLM may take");
  addLimits(command, options, "--max-num-seqs", "--max-num-batched-tokens");
  if (options.dtype != report.model.dtype)
    command.option("--dtype", std::string(dtypeName(options.dtype)), "type of weights and arithmetic");
  if (options.kvCacheDType != options.dtype) {
    command.option("--kv-cache-dtype", options.kvCacheDType == DType::F8E4M3 ? "fp8" : cacheName(options.kvCacheDType),
                   "type of the KV cache");
  }
  if (!options.quantization.empty() && !report.model.quantization)
    command.option("--quantization", options.quantization, "made while loading");
  if (options.enforceEager) command.option("--enforce-eager", "", "no CUDA graphs: less memory, slower decoding");
  if (ray) {
    command.onNode(0, "ray start --head --port 6379");
    for (int node = 1; node < usedNodes(report, layout); ++node) command.onNode(node, "ray start --address FIRST_MACHINE:6379");
    command.onNode(0, command.text());
  } else if (several) {
    command.onNodes(usedNodes(report, layout),
                    [](int node) { return fmt::format(" --node-rank {}{}", node, node > 0 ? " --headless" : ""); });
  } else {
    command.inDocker("vllm/vllm-openai", "", usesAll(report, layout) ? "" : gpuList(layout), model, 8000);
  }
  return command.take();
}

LaunchCommand sgLangCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& model) {
  const ResolvedOptions& options = report.options;
  CommandText command("python3 -m sglang.launch_server");
  addPartition(command, layout, "SGLANG_PP_LAYER_PARTITION");
  if (layout.tp * layout.pp * layout.dp < report.machine.size())
    command.variable("CUDA_VISIBLE_DEVICES", gpuList(layout), "the GPUs of this layout");
  command.option("--model-path", model, "the model");
  const int world = layout.sharedExperts ? layout.tp * layout.dp : layout.tp;
  command.option("--tp-size", std::to_string(world), layout.sharedExperts ? "GPUs of a stage; attention uses a share of them" : "GPUs that share each layer");
  if (layout.pp > 1) command.option("--pp-size", std::to_string(layout.pp), "stages that follow one another");
  if (layout.dp > 1) {
    command.option("--dp-size", std::to_string(layout.dp),
                   layout.sharedExperts ? "replicas of the attention, each with its own requests" : "replicas that share the requests");
  }
  if (layout.sharedExperts) command.option("--enable-dp-attention", "", "attention in replicas, experts shared by all of them");
  if (layout.ep > 1) command.option("--ep-size", std::to_string(layout.ep), "ranks that whole experts are dealt to");
  const int nodes = usedNodes(report, layout);
  if (nodes > 1) {
    command.option("--nnodes", std::to_string(nodes), "machines; run it on each with its own --node-rank");
    command.option("--dist-init-addr", "FIRST_MACHINE:5000", "address of the first machine, as the others reach it");
  }
  command.option("--context-length", std::to_string(options.maxModelLen), "tokens of one request, prompt and answer");
  if (options.asksUtilization)
    command.option("--mem-fraction-static", fmt::format("{:g}", options.gpuMemoryUtilization),
                   "share of each GPU's free memory for weights and KV cache");
  addLimits(command, options, "--max-running-requests", "--chunked-prefill-size");
  if (options.enforceEager) command.option("--disable-cuda-graph", "", "no CUDA graphs: less memory, slower decoding");
  if (options.kvCacheDType != options.dtype && dtypeInfo(options.kvCacheDType).blockBytes == 1)
    command.option("--kv-cache-dtype", cacheName(options.kvCacheDType), "type of the KV cache");
  if (options.dtype != report.model.dtype)
    command.option("--dtype", std::string(dtypeName(options.dtype)), "type of weights and arithmetic");
  if (!options.quantization.empty() && !report.model.quantization)
    command.option("--quantization", options.quantization, "made while loading");
  if (nodes > 1)
    command.onNodes(nodes, [](int node) { return fmt::format(" --node-rank {}", node); });
  else
    command.inDocker("lmsysorg/sglang", "python3 -m sglang.launch_server", usesAll(report, layout) ? "" : gpuList(layout), model, 30000);
  return command.take();
}

LaunchCommand tensorRtCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& model) {
  const ResolvedOptions& options = report.options;
  CommandText command("trtllm-serve serve");
  const std::vector<RankPlan>& ranks = layout.ranks;
  const int each = layout.tp * layout.pp * (layout.sharedExperts ? layout.dp : 1);
  std::string devices;
  if (each < report.machine.size()) {
    std::string list;
    for (int i = 0; i < each && i < static_cast<int>(ranks.size()); ++i)
      list += (list.empty() ? "" : ",") + std::to_string(ranks[i].slice.gpu);
    devices = list;
    command.variable("CUDA_VISIBLE_DEVICES", list,
                     layout.dp > 1 && !layout.sharedExperts ? "the GPUs of the first replica; start each replica on its own" : "the GPUs of this layout");
  }
  command.word(model);
  command.option("--tp_size", std::to_string(layout.sharedExperts ? layout.tp * layout.dp : layout.tp), "GPUs that share each layer");
  if (layout.pp > 1) command.option("--pp_size", std::to_string(layout.pp), "stages that follow one another");
  if (layout.ep > 1) command.option("--ep_size", std::to_string(layout.ep), "ranks that whole experts are dealt to");
  // What trtllm-serve takes from a file alone.
  std::string lines;
  const auto line = [&lines](const std::string& text) { lines += (lines.empty() ? "\"" : ", \"") + text + "\""; };
  if (layout.sharedExperts) line("enable_attention_dp: true");
  if (options.kvCacheDType != options.dtype) line("kv_cache_config: {dtype: fp8}");
  if (options.enforceEager) line("cuda_graph_config: null");
  if (!lines.empty()) command.option("--extra_llm_api_options", "options.yaml", "a file with the lines " + lines);
  if (options.asksNumSeqs) command.option("--max_batch_size", std::to_string(options.maxNumSeqs), "sequences in one step");
  command.option("--max_seq_len", std::to_string(options.maxModelLen), "tokens of one request, prompt and answer");
  command.option("--max_num_tokens", std::to_string(options.maxNumBatchedTokens), "tokens in one step");
  command.option("--kv_cache_free_gpu_memory_fraction", fmt::format("{:g}", options.gpuMemoryUtilization),
                 "share of what weights and activations leave");
  if (const int nodes = usedNodes(report, layout); nodes > 1)
    command.onNode(0, fmt::format("mpirun -H {} -n {} trtllm-llmapi-launch {}", "FIRST_MACHINE,…", each, command.text()));
  else
    command.inDocker("nvcr.io/nvidia/tensorrt-llm/release", "trtllm-serve serve", devices, model, 8000);
  return command.take();
}

// As llama.cpp spells types: "f16", "q8_0".
std::string ggmlName(DType type) {
  if (type == DType::F32) return "f32";
  if (type == DType::F16) return "f16";
  if (type == DType::BF16) return "bf16";
  std::string name(dtypeName(type));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
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
  if (options.enforceEager) command.variable("GGML_CUDA_DISABLE_GRAPHS", "1", "no CUDA graphs: less memory, slower decoding");
  constexpr int64_t kBatch = 2048;  // -b, which a micro-batch cannot exceed
  if (options.asksBatchedTokens && options.maxNumBatchedTokens > kBatch)
    command.option("-b", std::to_string(options.maxNumBatchedTokens), "tokens in one step");
  if (options.asksBatchedTokens) command.option("-ub", std::to_string(options.maxNumBatchedTokens), "tokens in one step");
  const int64_t requests = requestsPerServer(options, layout.dp);
  command.option("-c", std::to_string(options.maxModelLen * requests), "tokens of all requests together");
  command.option("-np", std::to_string(requests), "requests at once");
  if (options.kvCacheDType != DType::F16) {
    command.option("-ctk", ggmlName(options.kvCacheDType), "type of the cached keys");
    command.option("-ctv", ggmlName(options.kvCacheDType), "type of the cached values");
  }
  command.inDocker("ghcr.io/ggml-org/llama.cpp:server-cuda", "", each < report.machine.size() ? gpus : "", model, 8080);
  return command.take();
}

LaunchCommand lmDeployCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& model) {
  const ResolvedOptions& options = report.options;
  CommandText command("lmdeploy serve api_server");
  if (!usesAll(report, layout)) command.variable("CUDA_VISIBLE_DEVICES", gpuList(layout), "the GPUs of this layout");
  command.word(model);
  command.option("--backend", "turbomind", "the engine whose rules this plan follows");
  command.option("--tp", std::to_string(layout.tp), "GPUs that share each layer");
  if (layout.dp > 1) command.option("--dp", std::to_string(layout.dp), "replicas that share the requests");
  command.option("--session-len", std::to_string(options.maxModelLen), "tokens of one request, prompt and answer");
  addLimits(command, options, "--max-batch-size", "--max-prefill-token-num");
  if (options.dtype != report.model.dtype)
    command.option("--dtype", std::string(dtypeName(options.dtype)), "type of weights and arithmetic");
  command.option("--cache-max-entry-count", fmt::format("{:g}", options.gpuMemoryUtilization),
                 "share of what the weights leave for the KV cache");
  command.inDocker("openmmlab/lmdeploy", "lmdeploy serve api_server", usesAll(report, layout) ? "" : gpuList(layout), model, 23333);
  return command.take();
}

// A model as engines take it: servers want the folder of a configuration, not its file.
std::string startable(const std::string& model) {
  if (!model.ends_with(".json")) return model;
  const size_t slash = model.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : model.substr(0, slash);
}

}  // namespace

bool needsLayoutFile(const PlanReport& report, const LayoutPlan& layout) {
  return report.options.engine.kind == EngineKind::Headroom && layout.pp > 1 && !areAlike(report.machine, report.options);
}

std::optional<LaunchCommand> launchCommand(const PlanReport& report, const LayoutPlan& layout, const std::string& modelArgument) {
  if (layout.verdict == Verdict::Invalid) return std::nullopt;
  // What was opened is not what was planned: a name to fill in stands for it.
  constexpr const char* kAssumed = "QUANTIZED_CHECKPOINT";
  const bool isAssumed = !report.assumedQuantization.empty();
  const std::string model = isAssumed ? kAssumed : startable(modelArgument);
  const auto made = [&]() -> std::optional<LaunchCommand> {
    switch (report.options.engine.kind) {
      case EngineKind::Headroom:
        return headroomCommand(report, layout, model);
      case EngineKind::Vllm:
        return vllmCommand(report, layout, model);
      case EngineKind::SgLang:
        return sgLangCommand(report, layout, model);
      case EngineKind::TensorRtLlm:
        return tensorRtCommand(report, layout, model);
      case EngineKind::LlamaCpp:
        return llamaCppCommand(report, layout, model);
      case EngineKind::LmDeploy:
        return lmDeployCommand(report, layout, model);
    }
    return std::nullopt;
  };
  std::optional<LaunchCommand> command = made();
  if (command && isAssumed)
    command->explained.insert(command->explained.begin(), {kAssumed, fmt::format("a checkpoint of this model in {}: the plan assumes one",
                                                                                 report.assumedQuantization)});
  return command;
}

}  // namespace headroom
