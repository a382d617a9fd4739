// SPDX-License-Identifier: Apache-2.0
// To add a failure: a row with the words of its line, in lower case; `explain` where the line has numbers worth telling; and its
// line in tests/core/log_diagnosis_test.cpp.
#include "core/diagnosis/failure_table.h"

#include <fmt/format.h>

#include <cstdlib>
#include <regex>

namespace headroom {
namespace {

// All numbers of the line, in order. "9,876" is one number.
std::vector<double> numbersOf(const std::string& line) {
  std::vector<double> numbers;
  for (size_t at = 0; at < line.size();) {
    const bool begins = line[at] >= '0' && line[at] <= '9' && (at == 0 || !(std::isalnum(static_cast<unsigned char>(line[at - 1])) || line[at - 1] == '_'));
    if (!begins) {
      ++at;
      continue;
    }
    std::string text;
    while (at < line.size() && ((line[at] >= '0' && line[at] <= '9') || line[at] == '.' || line[at] == ',')) {
      if (line[at] != ',') text += line[at];
      ++at;
    }
    numbers.push_back(std::strtod(text.c_str(), nullptr));
  }
  return numbers;
}

// The number behind the words, as far as the line has it.
std::optional<double> numberAfter(const std::string& line, const char* words) {
  const size_t at = line.find(words);
  if (at == std::string::npos) return std::nullopt;
  const std::vector<double> numbers = numbersOf(line.substr(at + std::char_traits<char>::length(words)));
  return numbers.empty() ? std::nullopt : std::optional(numbers.front());
}

void explainContext(const std::string& line, LogPhase, LogFinding& finding) {
  std::smatch match;
  static const std::regex stored("max seq len \\(([0-9]+)\\).*stored in kv cache \\(([0-9]+)\\)", std::regex::icase);
  static const std::regex needed("max seq len \\(?([0-9]+)\\)?,? *\\(?([0-9.]+) ?gib.*available kv cache memory \\(([0-9.]+) ?gib\\)", std::regex::icase);
  static const std::regex estimated("estimated maximum model length is ([0-9]+)", std::regex::icase);
  if (std::regex_search(line, match, stored)) {
    finding.why = fmt::format("one request may have {} tokens, and the cache has room for {}", match[1].str(), match[2].str());
    finding.fixes.insert(finding.fixes.begin(), fmt::format("--max-model-len {}", match[2].str()));
  } else if (std::regex_search(line, match, needed)) {
    const double need = std::strtod(match[2].str().c_str(), nullptr), have = std::strtod(match[3].str().c_str(), nullptr);
    finding.why = fmt::format("one request of {} tokens needs {} GiB of cache, {} are left: {:.2f} GiB are missing", match[1].str(),
                              match[2].str(), match[3].str(), need - have);
    const double tokens = need > 0 ? std::strtod(match[1].str().c_str(), nullptr) * have / need : 0;
    if (tokens >= 256) finding.fixes.insert(finding.fixes.begin(), fmt::format("--max-model-len {} or less", static_cast<long long>(tokens) / 256 * 256));
  }
  if (std::regex_search(line, match, estimated) && match[1].str() != "0")
    finding.fixes.insert(finding.fixes.begin(), fmt::format("--max-model-len {} (the engine's own estimate)", match[1].str()));
}

void explainUtilization(const std::string& line, LogPhase, LogFinding& finding) {
  std::smatch match;
  static const std::regex free("\\(([0-9.]+)/([0-9.]+) ?gib\\).*utilization \\(([0-9.]+), ([0-9.]+) ?gib\\)", std::regex::icase);
  if (!std::regex_search(line, match, free)) return;
  const double have = std::strtod(match[1].str().c_str(), nullptr), all = std::strtod(match[2].str().c_str(), nullptr),
               want = std::strtod(match[4].str().c_str(), nullptr);
  finding.why = fmt::format("{:.2f} of {:.2f} GiB are free when the engine starts, it wants {:.2f}: other programs hold the rest", have,
                            all, want);
  if (all > 0) finding.fixes.insert(finding.fixes.begin(), fmt::format("--gpu-memory-utilization {:.2f}", static_cast<int>(have / all * 100) / 100.0));
}

void explainHeads(const std::string& line, LogPhase, LogFinding& finding) {
  std::smatch match;
  static const std::regex heads("attention heads \\(([0-9]+)\\).*size \\(([0-9]+)\\)", std::regex::icase);
  if (!std::regex_search(line, match, heads)) return;
  const long count = std::strtol(match[1].str().c_str(), nullptr, 10), tp = std::strtol(match[2].str().c_str(), nullptr, 10);
  if (tp <= 0) return;
  finding.why = fmt::format("{} / {} = {} remainder {}", count, tp, count / tp, count % tp);
  for (long size = tp / 2; size > 1; --size) {
    if (tp % size != 0 || count % size != 0) continue;
    finding.fixes.insert(finding.fixes.begin(), fmt::format("TP={} with PP={} uses all {} GPUs", size, tp / size, tp));
    break;
  }
  finding.fixes.push_back(fmt::format("TP=1 with PP={}", tp));
}

void explainDivision(const std::string& line, LogPhase, LogFinding& finding) {
  std::smatch match;
  static const std::regex division("([0-9]+) is not divisible by ([0-9]+)", std::regex::icase);
  if (!std::regex_search(line, match, division)) return;
  finding.why = fmt::format("a width of {} (vocabulary, heads or MLP columns) cannot be dealt to {} ranks", match[1].str(), match[2].str());
}

void explainWorld(const std::string& line, LogPhase, LogFinding& finding) {
  const std::vector<double> numbers = numbersOf(line.substr(line.find('(') == std::string::npos ? 0 : line.find('(')));
  if (numbers.size() >= 2)
    finding.why = fmt::format("TP x PP x DP asks for {:.0f} GPUs, {:.0f} are visible", numbers[0], numbers[1]);
}

// The same words before and after the server was ready mean opposite things.
void explainOutOfMemory(const std::string& line, LogPhase phase, LogFinding& finding) {
  std::string amount;
  if (const auto tried = numberAfter(line, "Tried to allocate ")) amount = fmt::format("; the piece that did not fit was {:g} {}", *tried, line.find("GiB", line.find("Tried to allocate")) != std::string::npos ? "GiB" : "MiB");
  switch (phase) {
    case LogPhase::Serving:
      finding.why = "the engine was serving: the share that it had set aside for activations was too small for this load" + amount;
      finding.fixes = {"lower the static share: --gpu-memory-utilization or --mem-fraction-static by 0.03 to 0.05",
                       "fewer tokens in a step: --max-num-batched-tokens or --chunked-prefill-size",
                       "fewer requests in a step: --max-num-seqs or --max-running-requests"};
      break;
    case LogPhase::GraphCapture:
      finding.why = "weights and cache were in place, recording CUDA graphs went beyond the rest" + amount;
      finding.fixes = {"lower the static share a little: --gpu-memory-utilization or --mem-fraction-static by 0.03",
                       "record fewer batch sizes: --cuda-graph-max-bs, --max-num-seqs, or --enforce-eager for none"};
      break;
    case LogPhase::CacheSizing:
      finding.why = "the weights are in place, the KV cache does not fit beside them" + amount;
      finding.fixes = {"a shorter context: --max-model-len or --context-length",
                       "raise the static share: --gpu-memory-utilization or --mem-fraction-static",
                       "more GPUs, or a quantized checkpoint"};
      break;
    default:
      finding.why = "the weights of a rank do not fit on its GPU, or another program holds part of it" + amount;
      finding.fixes = {"see nvidia-smi for other programs on this GPU",
                       "more ranks (TP or PP), or a quantized checkpoint",
                       "plan first: headroom-engine plan MODEL --gpus …"};
  }
}

void explainCapability(const std::string& line, LogPhase, LogFinding& finding) {
  std::smatch match;
  static const std::regex has("your (.+?) gpu has compute capability ([0-9.]+)", std::regex::icase);
  if (std::regex_search(line, match, has)) finding.why = fmt::format("{} has compute capability {}", match[1].str(), match[2].str());
}

void explainSplit(const std::string& line, LogPhase, LogFinding& finding) {
  std::smatch match;
  static const std::regex part("([^ '\"]+-[0-9]{5}-of-([0-9]{5})\\.gguf)");
  if (std::regex_search(line, match, part))
    finding.why = fmt::format("{} is missing: the model has {} parts, all in one folder", match[1].str(), std::strtol(match[2].str().c_str(), nullptr, 10));
}

void explainTensorType(const std::string& line, LogPhase, LogFinding& finding) {
  std::smatch match;
  static const std::regex type("invalid ggml type ([0-9]+)", std::regex::icase);
  if (std::regex_search(line, match, type))
    finding.why = fmt::format("the file uses tensor type {}{}, which is newer than this reader", match[1].str(), match[1].str() == "39" ? " (MXFP4)" : "");
}

}  // namespace

const std::vector<FailureRow>& failureTable() {
  static const std::vector<FailureRow> table{
      // Communication.
      {"shm_too_small", 3, {"shared memory segment", "/dev/shm"}, {}, "/dev/shm is too small for the ranks' exchange",
       "a container has 64 MiB of /dev/shm unless told otherwise; NCCL needs several MiB for each channel and pair of ranks",
       {"docker run --shm-size 16g (or --ipc=host)", "in Kubernetes an emptyDir of medium Memory at /dev/shm"}},
      {"shm_too_small", 3, {"no space left on device", "/dev/shm"}, {}, "/dev/shm is full",
       "a container has 64 MiB of /dev/shm unless told otherwise", {"docker run --shm-size 16g (or --ipc=host)"}},
      {"shm_too_small", 2, {"bus error"}, {}, "a shared mapping could not be filled, most often /dev/shm",
       "\"Bus error\" at the start of several ranks means that /dev/shm is full", {"docker run --shm-size 16g (or --ipc=host)"}},
      {"nccl_timeout", 2, {"watchdog caught collective operation timeout"}, {}, "a collective did not end",
       "one rank waits for another that hangs or is gone: peer-to-peer through an IOMMU, a dead worker, or a much slower one",
       {"look in the log for the rank that failed first", "NCCL_P2P_DISABLE=1 to test whether peer-to-peer is the cause",
        "turn off ACS or the IOMMU in the firmware"}},
      {"nccl_error", 1, {"nccl error"}, {}, "NCCL failed", "the line before names the call; NCCL_DEBUG=INFO names the cause",
       {"NCCL_DEBUG=INFO and read the first WARN line", "NCCL_P2P_DISABLE=1, NCCL_IB_DISABLE=1 to find the link that fails"}},
      {"nccl_error", 1, {"ncclsystemerror"}, {}, "a system call below NCCL failed", "the line \"Last error\" names it",
       {"read the line \"Last error\"", "check /dev/shm, network interfaces and ulimit -l"}},
      {"nccl_error", 1, {"ncclunhandledcudaerror"}, {}, "a CUDA call below NCCL failed", "driver, peer-to-peer or memory",
       {"NCCL_DEBUG=INFO and read the first WARN line"}},
      {"duplicate_gpu", 3, {"duplicate gpu detected"}, {}, "two ranks were given the same GPU", "NCCL takes one rank a GPU",
       {"fewer ranks, or CUDA_VISIBLE_DEVICES with as many GPUs as ranks"}},
      {"rendezvous_failed", 2, {"connection refused", "master"}, {}, "the ranks of another machine were not reached",
       "the first machine's address or port is not open", {"the first machine's address as the others reach it", "open the port in the firewall"}},
      {"port_in_use", 3, {"address already in use"}, {}, "the port is taken", "another server, or an orphan of this one, listens there",
       {"--port with another number", "end the old process: ss -ltnp shows it"}},

      // Host memory and processes.
      {"host_out_of_memory", 3, {"oom-kill"}, {}, "the kernel ended a process: main memory was full",
       "ranks read weights into main memory before the GPU has them, all at once", 
       {"load one rank after another (--max-parallel-loading-workers 1), or from memory-mapped safetensors", "more memory or swap, a higher limit of the container"}},
      {"host_out_of_memory", 3, {"sigkill", "oom"}, {}, "the kernel ended a worker: main memory was full",
       "ranks read weights into main memory before the GPU has them, all at once",
       {"load one rank after another, or from memory-mapped safetensors", "more memory or swap, a higher limit of the container"}},
      {"host_out_of_memory", 3, {"out of memory: killed process"}, {}, "the kernel ended a process: main memory was full",
       "main memory or the container's limit was reached", {"more memory or swap, a higher limit of the container", "load one rank after another"}},
      {"host_out_of_memory", 2, {"exitcode", "-9"}, {}, "a process was ended from outside (SIGKILL)",
       "most often the kernel, because main memory was full: dmesg tells", {"dmesg | grep -i oom", "more memory, or load one rank after another"}},
      {"host_out_of_memory", 2, {"signal 9"}, {}, "a process was ended from outside (SIGKILL)",
       "most often the kernel, because main memory was full: dmesg tells", {"dmesg | grep -i oom", "more memory, or load one rank after another"}},
      {"host_out_of_memory", 3, {"unexpectedly exits with connection error code 2"}, {}, "a worker of Ray was ended from outside",
       "most often the kernel, because main memory was full while ranks read weights", {"dmesg | grep -i oom", "more memory or swap; load one rank after another"}},
      {"host_out_of_memory", 3, {"defaultcpuallocator", "allocate memory"}, {}, "main memory is full", "an allocation in main memory failed",
       {"more memory or swap, or fewer ranks that load at once"}},
      {"too_many_files", 3, {"too many open files"}, {}, "the limit of open files was reached", "each connection and shard is a file",
       {"ulimit -n 65536"}},
      {"disk_full", 3, {"no space left on device"}, {"/dev/shm"}, "a disk is full", "a download, a cache of compiled kernels or a log found no room",
       {"free the disk, or set HF_HOME and the compile cache to another one"}},

      // Driver and device.
      {"driver_mismatch", 3, {"error 803"}, {}, "the CUDA library and the kernel driver do not belong together",
       "user-space CUDA (often the forward-compatibility libcuda of an image) does not match the kernel driver",
       {"update the driver", "take the compat libcuda off the library path (LD_LIBRARY_PATH, /usr/local/cuda/compat)"}},
      {"driver_mismatch", 3, {"unsupported display driver / cuda driver combination"}, {}, "the CUDA library and the kernel driver do not belong together",
       "user-space CUDA (often the forward-compatibility libcuda of an image) does not match the kernel driver",
       {"update the driver", "take the compat libcuda off the library path"}},
      {"driver_mismatch", 3, {"forward compatibility was attempted on non supported hw"}, {}, "forward compatibility is for data-centre cards only",
       "the image brings a newer libcuda than the driver, which GeForce cards do not take", {"update the driver", "an image for the installed CUDA version"}},
      {"driver_mismatch", 3, {"driver/library version mismatch"}, {}, "the driver was updated and its module was not reloaded",
       "NVML of the new version talks to the module of the old one", {"restart the machine, or reload the nvidia modules"}},
      {"driver_too_old", 3, {"cuda driver version is insufficient for cuda runtime version"}, {}, "the driver is older than the program's CUDA",
       "the program was built for a newer CUDA than the driver knows", {"update the driver", "an engine's build for the installed CUDA version"}},
      {"driver_too_old", 3, {"nvidia driver on your system is too old"}, {}, "the driver is older than the program's CUDA",
       "the program was built for a newer CUDA than the driver knows", {"update the driver", "an engine's build for the installed CUDA version"}},
      {"no_gpu", 3, {"no cuda gpus are available"}, {}, "the process sees no GPU", "CUDA_VISIBLE_DEVICES is empty or wrong, or the container has none",
       {"docker run --gpus all with the NVIDIA container toolkit", "check CUDA_VISIBLE_DEVICES and nvidia-smi inside the container"}},
      {"no_gpu", 3, {"found no nvidia driver on your system"}, {}, "there is no driver", "neither on the machine nor in the container",
       {"install the driver; in containers the NVIDIA container toolkit and --gpus all"}},
      {"no_gpu", 3, {"failed to infer device type"}, {}, "the process sees no GPU", "no driver, or a container without GPUs",
       {"docker run --gpus all with the NVIDIA container toolkit"}},
      {"no_gpu", 3, {"could not select device driver", "gpu"}, {}, "Docker has no access to GPUs", "the NVIDIA container toolkit is missing",
       {"install nvidia-container-toolkit and restart Docker"}},
      {"no_gpu", 3, {"libcuda.so.1: cannot open shared object"}, {}, "the driver's library is missing", "no driver, or a container without GPUs",
       {"docker run --gpus all with the NVIDIA container toolkit", "install the driver"}},
      {"wrong_device", 3, {"invalid device ordinal"}, {}, "a GPU was named that is not there", "CUDA_VISIBLE_DEVICES renumbers: the process counts from 0",
       {"as many ranks as visible GPUs", "CUDA_DEVICE_ORDER=PCI_BUS_ID so that numbers are those of nvidia-smi"}},
      {"wrong_device", 3, {"invalid literal for int() with base 10: 'gpu-"}, {}, "CUDA_VISIBLE_DEVICES holds an UUID, which this engine does not read",
       "it takes numbers", {"numbers in place of UUIDs, with CUDA_DEVICE_ORDER=PCI_BUS_ID"}},
      {"wrong_device", 3, {"invalid literal for int() with base 10: 'mig-"}, {}, "CUDA_VISIBLE_DEVICES holds a MIG id, which this engine does not read",
       "it takes numbers", {"numbers in place of ids"}},
      {"hardware_fault", 3, {"xid", "fallen off the bus"}, {}, "a GPU left the bus (Xid 79)", "power, heat or the slot",
       {"check power supply, cables and temperature", "a lower power limit: nvidia-smi -pl", "restart the machine"}},
      {"hardware_fault", 3, {"uncorrectable ecc error"}, {}, "a GPU's memory is faulty", "an error that ECC cannot correct",
       {"nvidia-smi -q -d ECC; reset or replace the card"}},
      {"hardware_fault", 2, {"nvrm: xid"}, {}, "the driver reports a fault of a GPU", "the number behind Xid says which",
       {"look the number up in NVIDIA's list of Xid errors", "check power and temperature"}},
      {"no_kernel_image", 3, {"no kernel image is available for execution on the device"}, {}, "the build has no code for this GPU",
       "too old a card, or one newer than the build", {"a build for this compute capability", "an older or newer version of the engine"}},
      {"illegal_access", 2, {"illegal memory access was encountered"}, {}, "a kernel read or wrote beyond its memory",
       "a fault of a kernel, often with one quantization or attention backend; rarely the card",
       {"another attention backend or --enforce-eager to find the kernel", "CUDA_LAUNCH_BLOCKING=1 names the call", "another version of the engine"}},

      // Layouts.
      {"heads_not_divisible", 3, {"attention heads", "divisible by tensor parallel size"}, {}, "the query heads do not divide by TP",
       "each rank takes the same number of heads", {"headroom-engine plan MODEL shows the sizes that work"}, explainHeads},
      {"not_divisible", 3, {"is not divisible by weight quantization block"}, {}, "TP cuts an FP8 block",
       "a rank's share of the columns is no multiple of the block", {"half the TP, with PP for the other GPUs", "--enable-expert-parallel keeps experts whole"}},
      {"not_divisible", 3, {"not aligned with the quantized weight shape"}, {}, "TP cuts a quantization group",
       "a rank's share of the columns is no multiple of the group", {"half the TP, with PP for the other GPUs", "a checkpoint with smaller groups or padded columns"}},
      {"not_divisible", 2, {"is not divisible by"}, {"quantization block", "attention heads"}, "a width does not divide by TP", "",
       {"headroom-engine plan MODEL shows the sizes that work", "PP in place of TP"}, explainDivision},
      {"not_divisible", 3, {"total_num_kv_heads % tp_size == 0"}, {}, "the KV heads do not divide by TP", "each rank takes the same number of KV heads",
       {"a TP that divides the KV heads, PP for the other GPUs"}},
      {"not_divisible", 3, {"tp_size % self.total_num_kv_heads == 0"}, {}, "TP is no multiple of the KV heads", "each KV head is copied the same number of times",
       {"a TP that is a multiple of the KV heads, or PP"}},
      {"too_few_gpus", 3, {"world size", "larger than the number of available gpus"}, {}, "the layout needs more GPUs than are visible", "",
       {"smaller TP or PP", "--nnodes for several machines", "check CUDA_VISIBLE_DEVICES"}, explainWorld},
      {"too_few_gpus", 3, {"placement group", "required", "gpu"}, {}, "Ray has not as many GPUs as the layout needs", "machines are missing in its cluster",
       {"ray status shows what is there; start Ray on the other machines"}},
      {"unbalanced_gpus", 3, {"memory capacity is unbalanced"}, {}, "SGLang wants equal free memory on TP ranks", "one GPU has less than nine tenths of another's free memory",
       {"end other programs on that GPU", "equal cards, or SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0"}},
      {"no_pipeline", 3, {"pipeline parallelism is not supported"}, {}, "this model has no pipeline stages in this engine", "its class lacks the interface",
       {"PP=1 with TP or replicas"}},

      // Memory of GPUs.
      {"no_cache_memory", 3, {"no available memory for the cache blocks"}, {}, "weights and activations leave nothing for the KV cache",
       "utilization x memory is less than weights, activation peak and graphs together",
       {"raise --gpu-memory-utilization if the GPU is otherwise free", "smaller --max-num-seqs and --max-num-batched-tokens lower the peak",
        "more ranks, or a quantized checkpoint"}},
      {"no_cache_memory", 3, {"not enough memory. please try to increase --mem-fraction-static"}, {}, "weights leave nothing for the KV cache",
       "the static share is less than the weights", {"raise --mem-fraction-static", "more ranks, or a quantized checkpoint"}},
      {"context_exceeds_cache", 3, {"max seq len", "kv cache"}, {}, "one request of the maximum length does not fit in the KV cache",
       "", {"raise --gpu-memory-utilization", "--kv-cache-dtype fp8 doubles the tokens", "more ranks"}, explainContext},
      {"context_exceeds_cache", 2, {"estimated maximum model length is"}, {}, "one request of the maximum length does not fit in the KV cache",
       "", {"raise --gpu-memory-utilization", "--kv-cache-dtype fp8 doubles the tokens"}, explainContext},
      {"less_free_than_wanted", 3, {"less than desired gpu memory utilization"}, {}, "other programs hold part of the GPU", "",
       {"nvidia-smi shows what holds the rest: end it"}, explainUtilization},
      {"gpu_out_of_memory", 2, {"cuda out of memory"}, {}, "a GPU ran out of memory", "", {}, explainOutOfMemory},
      {"gpu_out_of_memory", 2, {"cuda error: out of memory"}, {}, "a GPU ran out of memory", "", {}, explainOutOfMemory},
      {"gpu_out_of_memory", 2, {"cudamalloc failed: out of memory"}, {}, "a GPU ran out of memory", "", {}, explainOutOfMemory},
      {"gpu_out_of_memory", 2, {"outofmemoryerror"}, {}, "a GPU ran out of memory", "", {}, explainOutOfMemory},
      {"gpu_out_of_memory", 2, {"failed to allocate cuda"}, {}, "a GPU ran out of memory", "", {}, explainOutOfMemory},
      {"gpu_out_of_memory", 2, {"unable to allocate cuda"}, {}, "a GPU ran out of memory", "", {}, explainOutOfMemory},

      // Types and quantization.
      {"no_bfloat16", 3, {"bfloat16 is only supported on gpus with compute capability"}, {}, "this GPU has no bfloat16", "it came with compute capability 8.0",
       {"--dtype float16 (float32 for families that do not run in it)"}, explainCapability},
      {"no_float16", 3, {"does not support float16"}, {}, "this family does not run in float16", "its activations leave the range of the type",
       {"--dtype bfloat16, or float32 below compute capability 8.0"}},
      {"no_fp8", 3, {"type fp8e4nv not supported in this architecture"}, {}, "this GPU has no FP8", "kernels for FP8 need compute capability 8.9",
       {"a weight-only kernel (Marlin), a 16-bit, AWQ or GPTQ checkpoint", "an Ada, Hopper or newer GPU"}},
      {"quantization_removed", 3, {"unknown quantization method"}, {}, "this version does not know the checkpoint's quantization", "the line lists those it knows",
       {"an earlier version of the engine, or another quantization of the model"}},
      {"quantization_mismatch", 3, {"quantization method specified in the model config", "does not match"}, {}, "--quantization and the checkpoint disagree",
       "the checkpoint says how it was made", {"leave --quantization out"}},
      {"no_attention_backend", 3, {"no valid attention backend"}, {}, "no attention kernel fits this GPU and model", "head size, type or compute capability",
       {"a newer GPU, or another engine", "--dtype or --kv-cache-dtype of another width"}},

      // Files.
      {"lfs_pointer", 3, {"git-lfs.github.com/spec"}, {}, "a weight file is a Git LFS pointer, not the weights", "130 bytes of text stand in its place",
       {"git lfs pull, or download the file itself"}},
      {"lfs_pointer", 3, {"headertoolarge"}, {}, "a safetensors file does not begin with a header", "most often a Git LFS pointer or an error page saved as the file",
       {"look at its size and first bytes; git lfs pull, or download again"}},
      {"lfs_pointer", 3, {"header too large"}, {}, "a safetensors file does not begin with a header", "most often a Git LFS pointer or an error page saved as the file",
       {"look at its size and first bytes; git lfs pull, or download again"}},
      {"truncated_file", 3, {"incompletemetadata"}, {}, "a safetensors file is cut off", "its header promises more bytes than it has", {"download it again"}},
      {"truncated_file", 3, {"metadataincompletebuffer"}, {}, "a safetensors file is cut off", "its header promises more bytes than it has", {"download it again"}},
      {"truncated_file", 3, {"not within the file bounds"}, {}, "a GGUF file is cut off", "a tensor lies behind its end: a broken download, or one raw part (…part1of2) of several",
       {"download it again", "put raw parts together first: cat model.gguf.part* > model.gguf"}},
      {"gguf_part_missing", 3, {"failed to load gguf split"}, {}, "a part of the GGUF is missing", "all parts stand in one folder", {"download the other parts"}, explainSplit},
      {"gguf_part_missing", 3, {"-of-", ".gguf", "no such file"}, {}, "a part of the GGUF is missing", "all parts stand in one folder", {"download the other parts"}, explainSplit},
      {"gguf_new_type", 3, {"invalid ggml type"}, {}, "the GGUF uses a tensor type that this version does not know", "", {"a newer llama.cpp, or another quantization of the model"}, explainTensorType},
      {"not_a_gguf", 3, {"invalid magic"}, {}, "the file is no GGUF", "its first four bytes are not \"GGUF\": a Git LFS pointer, an error page or a broken download",
       {"look at its size and first bytes; download again"}},
      {"not_a_gguf", 3, {"bad magic"}, {}, "the file is no GGUF", "its first four bytes are not \"GGUF\"", {"look at its size and first bytes; download again"}},
      {"model_not_found", 3, {"repository not found"}, {}, "the model's name is not known", "a wrong name, or one that needs a login", {"check the spelling; log in for private models"}},
      {"model_not_found", 3, {"is not a local folder and is not a valid model identifier"}, {}, "the model's name is not known", "neither a folder here nor a model of the hub",
       {"check the path or the spelling"}},
      {"model_gated", 3, {"gated repo"}, {}, "the model needs its licence accepted", "and a login of the account that accepted it", {"accept it on the model's page, then log in"}},
      {"model_gated", 3, {"401 client error"}, {}, "the model needs a login", "the hub refused the download", {"log in with an account that may read it"}},
      {"hub_unreachable", 3, {"offline mode"}, {"offline mode is off"}, "the hub was not asked: offline mode is on", "and the model is not in the local cache", {"download the model first, or unset HF_HUB_OFFLINE"}},
      {"hub_unreachable", 2, {"couldn't connect to", "huggingface"}, {}, "the hub was not reached", "and the model is not in the local cache", {"download the model first, or check the network and proxy"}},
      {"remote_code", 3, {"trust_remote_code=true"}, {}, "the model brings code of its own", "which runs only when allowed", {"read it, then --trust-remote-code", "an engine or version that knows the model itself"}},
      {"remote_code", 3, {"--trust-remote-code"}, {"trust_remote_code=false"}, "the model brings code of its own", "which runs only when allowed", {"read it, then --trust-remote-code"}},

      // Models.
      {"architecture_unknown", 3, {"model architectures", "not supported"}, {}, "this version does not know the model's architecture", "newer or older than the engine",
       {"a version of the engine that knows it", "another engine: headroom-engine plan MODEL --compare"}},
      {"architecture_unknown", 3, {"unknown model architecture"}, {}, "this version does not know the model's architecture", "newer than the engine", {"a newer llama.cpp"}},
      {"architecture_unknown", 3, {"does not recognize this architecture"}, {}, "the installed Transformers does not know the model", "newer than the library", {"a newer transformers, as the model's page asks"}},
      {"architecture_unknown", 3, {"cannot run this model yet"}, {}, "Headroom's engine lacks a part that this model needs", "the line names it", {"another engine: headroom-engine plan MODEL --compare"}},
      {"context_longer_than_model", 3, {"is greater than the derived max_model_len"}, {}, "the asked length is longer than the model was made for", "its configuration says how long",
       {"a smaller --max-model-len", "rope scaling, where the model's page describes it"}},
      {"no_chat_template", 3, {"chat template", "not"}, {"chat template is"}, "the model has no chat template", "base models have none: completions work, chat needs one",
       {"/v1/completions", "--chat-template FILE, or the instruct version of the model"}},
      {"tensor_mismatch", 2, {"size mismatch for"}, {}, "a weight has another shape than the configuration says", "config.json and weights are not of one model, or the checkpoint is already sharded",
       {"take both from the same folder"}},
      {"tensor_mismatch", 2, {"has wrong shape; expected"}, {}, "a weight has another shape than the metadata says", "a broken conversion", {"convert or download again"}},
      {"llama_tensor_assert", 2, {"ggml-backend-meta", "assert"}, {}, "llama.cpp's tensor split stopped at an assertion", "it is experimental, and fails for some device counts", {"--split-mode layer", "a power of two of devices"}},

      // What only reports that something failed before.
      {"worker_died", 1, {"engine core initialization failed"}, {}, "the engine's core did not start", "the cause stands above this line", {"look at the first error above"}},
      {"worker_died", 1, {"worker died"}, {}, "a worker ended", "its own error stands above, or the kernel ended it", {"look at the first error above, and at dmesg"}},
      {"worker_died", 1, {"worker proc", "died unexpectedly"}, {}, "a worker ended", "its own error stands above, or the kernel ended it", {"look at the first error above, and at dmesg"}},
      {"worker_died", 1, {"ray.exceptions.actordiederror"}, {}, "a worker of Ray ended", "its own error stands above, or the kernel ended it", {"look at the first error above, and at dmesg"}},
  };
  return table;
}

}  // namespace headroom
