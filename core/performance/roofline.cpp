// SPDX-License-Identifier: Apache-2.0
#include "core/performance/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom {
namespace {

// t = start + hypot(bytes / (bandwidthShare x bandwidth), operations / (computeShare x peak)), fitted to timed kernels.
struct KernelFit {
  double startUs, bandwidthShare, computeShare;
};

// What kernels reach on one generation of GPUs: fitted to whole steps of three engines, held near the shares that single kernels
// reach (aiconfigurator 0.12 data, condensed; vLLM's kernels, block FP8 SGLang's). 8-bit matrices reach another share of the peak
// with each engine's kernels.
struct Generation {
  std::string_view name;
  KernelFit gemm16, gemmFp8, gemmFp8Blocks;
  double fp8ShareSgLang, fp8ShareTensorRt;
  KernelFit experts16, expertsFp8;  // fused expert layer, reading and computing one after the other
  double attentionStartUs, attentionShare;
  std::array<double, 5> prefillShare;  // of the 16-bit peak, at prompts of 512, 1k, 2k, 8k, 16k tokens
  double nvlinkStartUs, nvlinkShare;   // all-reduce
};
constexpr std::array<Generation, 5> kGenerations{{
    {"Ampere",
     {6.5, .73, .80},
     {6.5, .73, .80},
     {6.5, .73, .80},
     .80,
     .80,
     {11, .85, .58},
     {11, .85, .58},
     22,
     .66,
     {.23, .37, .48, .60, .62},
     5.8,
     .51},
    {"Hopper",
     {4.4, .88, .84},
     {7.3, .86, .43},
     {6.5, .87, .55},
     .50,
     .59,
     {21, .89, .77},
     {26, .97, .29},
     14,
     .88,
     {.17, .31, .42, .62, .61},
     4.4,
     .66},
    {"Blackwell",
     {3.6, .80, .73},
     {6.2, .85, .38},
     {8.7, .91, .59},
     .47,
     .52,
     {16, .82, .27},
     {49, .93, .20},
     9.8,
     .94,
     {.10, .17, .31, .50, .54},
     7.1,
     .43},
    {"Ada",
     {0.9, .75, .64},
     {5.0, .74, .50},
     {2.7, .78, .30},
     .45,
     .52,
     {4.1, .88, .50},
     {4.1, .88, .50},
     7.4,
     .83,
     {.29, .37, .44, .56, .55},
     5.0,
     .65},
    {"BlackwellRtx",
     {3.4, .83, .84},
     {9.5, .86, .78},
     {20, .86, .53},
     .78,
     .73,
     {6.4, .80, .51},
     {19, .90, .49},
     11,
     .83,
     {.25, .38, .52, .69, .72},
     5.0,
     .65},
}};

// Element-wise kernels: a start and their bytes at this share of the bandwidth.
constexpr double kElementwiseStartUs = 2.5, kElementwiseShare = 0.8;
// Point to point between stages.
constexpr double kSendStartUs = 10.0;
// All-reduce over PCIe with 2 ranks; both get worse with more.
constexpr double kPcieReduceStartUs = 4.2, kPcieReduceShare = 0.56;
// A packed weight is unpacked while it is read.
constexpr double kPackedShare = 0.75;
// The rows of an expert layer's inputs and outputs (gathered, between the two products, summed) are moved about twice.
constexpr double kExpertRowPasses = 1.8;
// Clients in a closed loop that all start together: of the ten requests that each sends, the first waits for half of the others'
// prompts, so that on average a request waits for a twentieth of them. The host launches the layers' kernels of a prompt one by
// one and parses every request.
constexpr double kPromptsBefore = 1.0 / 20.0;
constexpr double kLaunchUsOfLayer = 450.0, kParseUsOfRequest = 300.0;
// Until it schedules ahead (0.14), vLLM's host works between two steps: once, and for every running request.
constexpr EngineVersion kVllmSchedulesAhead{0, 14, 0};
constexpr double kHostUsOfStep = 1200.0, kHostUsOfRequest = 50.0;

// Nine of ten timed cases of a kind lie within these shares of the prediction: time between tokens under load, and the time of a
// single prompt. From some 350 published runs and interpolated kernel timings. Under load the wait for others' prompts depends on
// how the clients come, which no question tells: nine of ten published runs lie within half.
struct ErrorBand {
  double itl, ttft;
};
constexpr double kTtftUnderLoad = 0.50;
ErrorBand errorBandOf(const std::vector<LayerGroup>& layers, MatrixFormat format) {
  bool latent = false, experts = false;
  for (const LayerGroup& group : layers) {
    latent = latent || group.layer->attention == AttentionKind::Latent;
    experts = experts || group.layer->ffn == FfnKind::MixtureOfExperts;
  }
  if (latent || experts) return {0.20, 0.25};
  return format == MatrixFormat::SixteenBit ? ErrorBand{0.12, 0.18} : ErrorBand{0.18, 0.25};
}

const Generation& generationOf(const GpuSpec& gpu) {
  std::string_view name = gpu.architecture;
  if (name == "Blackwell" && gpu.computeCapability.value_or(10.0) >= 12.0) name = "BlackwellRtx";
  for (const Generation& generation : kGenerations) {
    if (generation.name == name) return generation;
  }
  return kGenerations.front();  // older cards: Ampere's shares of their own peaks
}

// Speeds in bytes and operations a microsecond.
class Device {
 public:
  Device(const GpuSpec& gpu, MatrixFormat format, EngineKind engine, int tp) : m_generation(generationOf(gpu)), m_tp(tp) {
    bandwidth = *gpu.bandwidthGBs * 1e3;
    const double sixteen = gpu.bf16Tflops ? *gpu.bf16Tflops : gpu.fp16Tflops.value_or(0);
    peak16 = std::max(sixteen, gpu.fp32Tflops.value_or(0)) * 1e6;
    peakMatrix = peak16;
    if (format == MatrixFormat::ThirtyTwoBit) peakMatrix = gpu.fp32Tflops.value_or(0) * 1e6;
    eightBit = (format == MatrixFormat::Fp8 || format == MatrixFormat::Fp8Blocks) && gpu.fp8Tflops.has_value();
    if (eightBit) peakMatrix = *gpu.fp8Tflops * 1e6;
    gemm = eightBit ? (format == MatrixFormat::Fp8 ? m_generation.gemmFp8 : m_generation.gemmFp8Blocks) : m_generation.gemm16;
    if (eightBit && format == MatrixFormat::Fp8 && engine == EngineKind::SgLang) gemm.computeShare = m_generation.fp8ShareSgLang;
    if (eightBit && format == MatrixFormat::Fp8 && engine == EngineKind::TensorRtLlm)
      gemm.computeShare = m_generation.fp8ShareTensorRt;
    experts = eightBit ? m_generation.expertsFp8 : m_generation.experts16;
    if (format == MatrixFormat::PackedWeights) gemm.bandwidthShare *= kPackedShare;
    link = gpu.linkGBs.value_or(16.0) * 1e3;
    nvlink = gpu.link == LinkKind::NvLink;
  }
  bool known() const { return bandwidth > 0 && peakMatrix > 0; }

  double gemmUs(double rows, double in, double out, double weightBytes) const {
    const double bytes = weightBytes + rows * (in + out) * 2;
    return gemm.startUs +
           std::hypot(bytes / (gemm.bandwidthShare * bandwidth), 2 * rows * in * out / (gemm.computeShare * peakMatrix));
  }
  double elementwiseUs(double bytes) const { return kElementwiseStartUs + bytes / (kElementwiseShare * bandwidth); }
  double decodeAttentionUs(double bytes) const {
    return m_generation.attentionStartUs + bytes / (m_generation.attentionShare * bandwidth);
  }
  double prefillAttentionUs(double operations, double prompt) const {
    constexpr std::array<double, 5> kLengths{512, 1024, 2048, 8192, 16384};
    const auto& shares = m_generation.prefillShare;
    double share = shares.back();
    if (prompt <= kLengths.front()) {
      share = shares.front();
    } else {
      for (size_t i = 1; i < kLengths.size(); ++i) {
        if (prompt > kLengths[i]) continue;
        const double part = std::log(prompt / kLengths[i - 1]) / std::log(kLengths[i] / kLengths[i - 1]);
        share = shares[i - 1] + part * (shares[i] - shares[i - 1]);
        break;
      }
    }
    return m_generation.attentionStartUs + operations / (share * peak16);
  }
  // Tiles of an expert's few rows leave nothing to compute while the next weights are read: the times add up.
  double expertsUs(double weightBytes, double rowBytes, double operations) const {
    return experts.startUs + weightBytes / (experts.bandwidthShare * bandwidth) + rowBytes / (kElementwiseShare * bandwidth) +
           operations / (experts.computeShare * peakMatrix);
  }
  double allReduceUs(double bytes) const {
    if (m_tp == 1) return 0;
    const double traffic = 2.0 * (m_tp - 1) / m_tp * bytes;
    if (nvlink) return m_generation.nvlinkStartUs + traffic / (m_generation.nvlinkShare * link);
    const double doublings = std::log2(m_tp) - 1;
    return kPcieReduceStartUs * std::pow(2.3, doublings) + traffic / (kPcieReduceShare * std::pow(0.79, doublings) * link);
  }
  double sendUs(double bytes) const { return kSendStartUs + bytes / link; }

  double bandwidth = 0, peak16 = 0, peakMatrix = 0, link = 0;
  bool eightBit = false, nvlink = false;
  KernelFit gemm, experts;

 private:
  const Generation& m_generation;
  int m_tp;
};

// One step: `decoding` requests with `context` tokens each, and one prompt of `prompt` tokens beside them (0: none).
struct Step {
  double decoding = 0, context = 0, prompt = 0;
  double rows() const { return decoding + prompt; }
};

double layerUs(const RooflineQuestion& q, const Device& device, const LayerSpec& layer, const Step& step) {
  const double hidden = static_cast<double>(q.config->hiddenSize), rows = step.rows(), weight = q.layerBytesPerElement;
  double time = 0;
  auto gemm = [&](double in, double out) { time += device.gemmUs(rows, in, out, in * out * weight); };
  const double vHeadDim = static_cast<double>(layer.vHeadDim > 0 ? layer.vHeadDim : layer.headDim),
               headDim = static_cast<double>(layer.headDim);
  const double qHeads = static_cast<double>(layer.qHeads) * q.qShare;
  double cachePerToken = 0, scoreWidth = headDim + vHeadDim;
  if (layer.attention == AttentionKind::Latent) {
    const LatentAttention& mla = layer.latent;
    const double nope = static_cast<double>(mla.qkNopeHeadDim), rope = static_cast<double>(mla.qkRopeHeadDim),
                 value = static_cast<double>(mla.vHeadDim);
    const double latent = static_cast<double>(mla.kvLoraRank);
    if (mla.qLoraRank > 0) {
      gemm(hidden, static_cast<double>(mla.qLoraRank) + latent + rope);
      gemm(static_cast<double>(mla.qLoraRank), qHeads * (nope + rope));
    } else {
      gemm(hidden, qHeads * (nope + rope) + latent + rope);
    }
    gemm(latent, qHeads * (nope + value));
    gemm(qHeads * value, hidden);
    cachePerToken = (latent + rope) * q.kvBytesPerElement;
    scoreWidth = nope + rope + value;
  } else {
    const double kvHeads = std::max(1.0, static_cast<double>(layer.kvHeads) * q.kvShare);
    gemm(hidden, qHeads * headDim + kvHeads * (headDim + vHeadDim));
    gemm(qHeads * vHeadDim, hidden);
    cachePerToken = kvHeads * (headDim + vHeadDim) * q.kvBytesPerElement;
  }
  const bool windowed = layer.attention == AttentionKind::SlidingWindow || layer.attention == AttentionKind::ChunkedWindow;
  const double seen = windowed && layer.window > 0 ? std::min(step.context, static_cast<double>(layer.window)) : step.context;
  if (step.decoding > 0) time += device.decodeAttentionUs(step.decoding * seen * cachePerToken);
  if (step.prompt > 0) {
    const double span =
        windowed && layer.window > 0 ? std::min(step.prompt, 2.0 * static_cast<double>(layer.window)) : step.prompt;
    time += device.prefillAttentionUs(step.prompt * span * qHeads * scoreWidth, step.prompt);
  }
  double columns = static_cast<double>(layer.intermediateSize) * q.columnShare;
  if (layer.ffn == FfnKind::MixtureOfExperts) {
    const double all = static_cast<double>(layer.moe.experts), chosen = static_cast<double>(layer.moe.expertsPerToken);
    const double width = static_cast<double>(layer.moe.expertIntermediate) * q.columnShare;
    const double touched = all * (1 - std::pow(1 - chosen / all, rows));
    time +=
        device.expertsUs(touched * 3 * hidden * width * weight, kExpertRowPasses * rows * chosen * (2 * hidden + 3 * width) * 2,
                         2 * rows * chosen * 3 * hidden * width);
    gemm(hidden, all);  // router
    columns = static_cast<double>(layer.moe.sharedIntermediate) * q.columnShare;
  }
  if (columns > 0) {
    gemm(hidden, (q.config->decoder.gatedMlp ? 2 : 1) * columns);
    gemm(columns, hidden);
  }
  time += 2 * device.elementwiseUs(rows * hidden * 2 * 3) + device.elementwiseUs(rows * std::max(columns, hidden / 4) * 2 * 3);
  time += 2 * device.allReduceUs(rows * hidden * 2);
  return time;
}

// Time of every stage for one step, microseconds.
double stepUs(const RooflineQuestion& q, const Device& device, const Step& step) {
  const double hidden = static_cast<double>(q.config->hiddenSize),
               vocabulary = static_cast<double>(q.config->vocabSize) * q.vocabularyShare;
  double time = 0;
  for (const LayerGroup& group : q.layers) time += static_cast<double>(group.count) * layerUs(q, device, *group.layer, step);
  time += static_cast<double>(q.stages - 1) * device.sendUs(step.rows() * hidden * 2 * 2);
  const double heads = step.decoding + (step.prompt > 0 ? 1 : 0);
  time += device.gemmUs(heads, hidden, vocabulary, hidden * vocabulary * q.headBytesPerElement);
  time += device.allReduceUs(step.rows() * hidden * 2);
  return time;
}

}  // namespace

RooflineAnswer predictSpeed(const RooflineQuestion& q) {
  RooflineAnswer answer;
  if (q.gpu->hostDevice) {
    answer.source = "unknown: the memory bandwidth of this machine was not measured";
    return answer;
  }
  if (!q.gpu->bandwidthGBs || q.gpu->custom) {
    answer.source = "unknown: no figures for this GPU";
    return answer;
  }
  for (const LayerGroup& group : q.layers) {
    const AttentionKind kind = group.layer->attention;
    const bool modelled = kind == AttentionKind::Full || kind == AttentionKind::SlidingWindow ||
                          kind == AttentionKind::ChunkedWindow || kind == AttentionKind::Latent;
    if (!modelled) {
      answer.source = "unknown: layers without attention are not modelled";
      return answer;
    }
  }
  const Device device(*q.gpu, q.format, q.engine, q.tp);
  if (!device.known()) {
    answer.source = "unknown: no figures for this GPU";
    return answer;
  }
  const double pp = static_cast<double>(q.stages), input = static_cast<double>(std::max<int64_t>(1, q.inputLen));
  const double output = static_cast<double>(std::max<int64_t>(1, q.outputLen)),
               clients = static_cast<double>(std::max<int64_t>(1, q.concurrency));
  const double running = std::clamp(static_cast<double>(q.running), 1.0, clients);
  const double context = input + output / 2;
  const double batch = std::max(1.0, running / pp);
  const auto hostUs = [&](double requests) {
    return q.engine == EngineKind::Vllm && q.version < kVllmSchedulesAhead ? kHostUsOfStep + kHostUsOfRequest * requests : 0.0;
  };
  const double alone = stepUs(q, device, {1, context, 0}) + hostUs(1);
  const double prompt = stepUs(q, device, {0, 0, input});
  const double decode = stepUs(q, device, {batch, context, 0}) + hostUs(batch);
  const double mixed = stepUs(q, device, {batch - 1, context, input}) + hostUs(batch);
  // While a request makes `output` tokens, the prompts of the others in its batch are read beside its decoding.
  const double prompts = std::min(batch - 1, output);
  const double itl = (prompts * mixed + (output - prompts) * decode) / output;
  answer.decodeTokensPerSecond = 1e6 / alone;
  answer.itlMs = itl / 1e3;
  answer.prefillTokensPerSecond = input * 1e6 / prompt;
  // A single prompt: without the host's time.
  double ttft = prompt;
  if (clients > 1)
    ttft = mixed + prompt * kPromptsBefore * (running - 1) + kLaunchUsOfLayer * static_cast<double>(q.config->layerCount()) +
           kParseUsOfRequest * running;
  const double served = ttft + itl * (output - 1);  // of one request that runs
  ttft += served * (clients - running) / running;   // Little's law: what has no place waits for one
  answer.ttftMs = ttft / 1e3;
  answer.throughputTokensPerSecond = running * output * 1e6 / served;
  const ErrorBand band = errorBandOf(q.layers, q.format);
  answer.itlError = band.itl;
  answer.ttftError = clients > 1 ? kTtftUnderLoad : band.ttft;
  answer.source = "modelled: bandwidth, compute and links of the catalog at shares that timed kernels reach";
  return answer;
}

}  // namespace headroom
