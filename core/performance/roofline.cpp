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

// What kernels reach on one generation of GPUs. Timed with vLLM's kernels (aiconfigurator 0.12 data, condensed); block FP8 with
// SGLang's.
struct Generation {
  std::string_view name;
  KernelFit gemm16, gemmFp8, gemmFp8Blocks;
  KernelFit experts16, expertsFp8;  // fused expert layer; compute share at many tokens an expert
  double attentionStartUs, attentionShare;
  std::array<double, 5> prefillShare;  // of the 16-bit peak, at prompts of 512, 1k, 2k, 8k, 16k tokens
  double nvlinkStartUs, nvlinkShare;   // all-reduce
};
constexpr std::array<Generation, 5> kGenerations{{
    {"Ampere",
     {5.6, .73, .80},
     {5.6, .73, .80},
     {5.6, .73, .80},
     {35, .86, .45},
     {35, .86, .45},
     20,
     .73,
     {.23, .37, .48, .60, .62},
     5.2,
     .65},
    {"Hopper",
     {3.4, .88, .84},
     {7.3, .86, .43},
     {6.3, .87, .55},
     {20, .86, .52},
     {37, .94, .31},
     11.5,
     .89,
     {.17, .31, .42, .62, .61},
     4.5,
     .72},
    {"Blackwell",
     {3.1, .80, .73},
     {7.7, .85, .38},
     {8.6, .91, .59},
     {20, .75, .42},
     {32, .80, .19},
     9.5,
     .92,
     {.10, .17, .31, .50, .54},
     7.2,
     .58},
    {"Ada",
     {1.0, .75, .64},
     {5.0, .74, .50},
     {3.0, .78, .30},
     {5, .78, .42},
     {5, .78, .42},
     9.5,
     .82,
     {.29, .37, .44, .56, .55},
     5.0,
     .65},
    {"BlackwellRtx",
     {3.9, .83, .84},
     {10, .86, .78},
     {11, .86, .53},
     {8, .81, .42},
     {20, .90, .50},
     12,
     .85,
     {.25, .38, .52, .69, .72},
     5.0,
     .65},
}};

// Element-wise kernels: a start and their bytes at this share of the bandwidth.
constexpr double kElementwiseStartUs = 3.0, kElementwiseShare = 0.8;
// Point to point between stages.
constexpr double kSendStartUs = 10.0;
// All-reduce over PCIe with 2 ranks; both get worse with more.
constexpr double kPcieReduceStartUs = 4.5, kPcieReduceShare = 0.58;
// A packed weight is unpacked while it is read.
constexpr double kPackedShare = 0.75;
// Several requests in a closed loop that all start together. The first token waits for the share of the others' prompts that is
// read before, for the host to launch the layers' kernels, and for it to parse the requests.
constexpr double kOwnPrompt = 0.8, kPromptsBefore = 1.0 / 22.0;
constexpr double kLaunchUsOfLayer = 400.0, kParseUsOfRequest = 1500.0;

// Nine of ten timed cases of a kind lie within these shares of the prediction: time between tokens under load, and the time of a
// single prompt. From some 350 published runs and interpolated kernel timings.
struct ErrorBand {
  double itl, ttft;
};
ErrorBand errorBandOf(const std::vector<LayerGroup>& layers, MatrixFormat format) {
  bool latent = false, experts = false;
  for (const LayerGroup& group : layers) {
    latent = latent || group.layer->attention == AttentionKind::Latent;
    experts = experts || group.layer->ffn == FfnKind::MixtureOfExperts;
  }
  if (latent) return {0.25, 0.35};
  if (experts) return {0.27, 0.40};
  return format == MatrixFormat::SixteenBit ? ErrorBand{0.18, 0.20} : ErrorBand{0.25, 0.45};
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
  Device(const GpuSpec& gpu, MatrixFormat format, int tp) : m_generation(generationOf(gpu)), m_tp(tp) {
    bandwidth = *gpu.bandwidthGBs * 1e3;
    const double sixteen = gpu.bf16Tflops ? *gpu.bf16Tflops : gpu.fp16Tflops.value_or(0);
    peak16 = std::max(sixteen, gpu.fp32Tflops.value_or(0)) * 1e6;
    peakMatrix = peak16;
    if (format == MatrixFormat::ThirtyTwoBit) peakMatrix = gpu.fp32Tflops.value_or(0) * 1e6;
    eightBit = (format == MatrixFormat::Fp8 || format == MatrixFormat::Fp8Blocks) && gpu.fp8Tflops.has_value();
    if (eightBit) peakMatrix = *gpu.fp8Tflops * 1e6;
    gemm = eightBit ? (format == MatrixFormat::Fp8 ? m_generation.gemmFp8 : m_generation.gemmFp8Blocks) : m_generation.gemm16;
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
  double expertsUs(double bytes, double operations) const {
    return experts.startUs +
           std::hypot(bytes / (experts.bandwidthShare * bandwidth), operations / (experts.computeShare * peakMatrix));
  }
  double allReduceUs(double bytes) const {
    if (m_tp == 1) return 0;
    const double traffic = 2.0 * (m_tp - 1) / m_tp * bytes;
    if (nvlink) return m_generation.nvlinkStartUs + traffic / (m_generation.nvlinkShare * link);
    const double doublings = std::log2(m_tp) - 1;
    return kPcieReduceStartUs * std::pow(2.4, doublings) + traffic / (kPcieReduceShare * std::pow(0.8, doublings) * link);
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
    time += device.expertsUs(touched * 3 * hidden * width * weight, 2 * rows * chosen * 3 * hidden * width);
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
  const Device device(*q.gpu, q.format, q.tp);
  if (!device.known()) {
    answer.source = "unknown: no figures for this GPU";
    return answer;
  }
  const double pp = static_cast<double>(q.stages), input = static_cast<double>(std::max<int64_t>(1, q.inputLen));
  const double output = static_cast<double>(std::max<int64_t>(1, q.outputLen)),
               requests = static_cast<double>(std::max<int64_t>(1, q.concurrency));
  const double context = input + output / 2;
  const double alone = stepUs(q, device, {1, context, 0});
  const double prompt = stepUs(q, device, {0, 0, input});
  const double batch = std::max(1.0, requests / pp);
  const double decode = stepUs(q, device, {batch, context, 0});
  const double mixed = stepUs(q, device, {batch - 1, context, input});
  // While `batch` requests make `output` tokens each, their prompts are read beside the others' decoding.
  double itl = decode;
  if (batch > 1) itl = batch >= output ? mixed : (batch * mixed + (output - batch) * decode) / output;
  answer.decodeTokensPerSecond = 1e6 / alone;
  answer.itlMs = itl / 1e3;
  answer.prefillTokensPerSecond = input * 1e6 / prompt;
  // A single prompt: without the host's time.
  const double ttft = requests > 1
                          ? prompt * (kOwnPrompt + requests * kPromptsBefore) +
                                kLaunchUsOfLayer * static_cast<double>(q.config->layerCount()) + kParseUsOfRequest * requests
                          : prompt;
  answer.ttftMs = ttft / 1e3;
  answer.throughputTokensPerSecond = requests * output * 1e6 / (ttft + itl * std::max(0.0, output - 1));
  const ErrorBand band = errorBandOf(q.layers, q.format);
  answer.itlError = band.itl;
  answer.ttftError = band.ttft;
  answer.source = "modelled: bandwidth, compute and links of the catalog at shares that timed kernels reach";
  return answer;
}

}  // namespace headroom
