// SPDX-License-Identifier: Apache-2.0
// What a model's configuration says, normalized over the spellings of the families. One ModelConfig serves the planner
// (sizes), the rules (divisibility) and the engine's decoder (arithmetic).
#pragma once

#include "core/model/dtype.h"
#include "core/result.h"

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

enum class AttentionKind : uint8_t {
  Full,
  SlidingWindow,
  ChunkedWindow,
  Latent /* MLA */,
  LinearAttention,
  Mamba,
  ShortConvolution,
  CrossAttention,
  None,
  Compressed /* DeepSeek V4 */
};
enum class FfnKind : uint8_t { Dense, MixtureOfExperts, None };
enum class NormKind : uint8_t { RmsNorm, LayerNorm };
enum class Activation : uint8_t { Silu, Gelu, GeluTanh, Relu2 };
// Neox rotates halves (x[i], x[i + d/2]); Interleaved rotates neighbours (GGUF files of the llama family are permuted for it).
enum class RopeStyle : uint8_t { Neox, Interleaved };
enum class RopeScaling : uint8_t { None, Linear, Dynamic, Llama3, Yarn, LongRope };

struct RopeParameters {
  RopeStyle style = RopeStyle::Neox;
  double theta = 10000.0;
  int64_t rotaryDim = 0;  // rotated elements of each head; headDim unless partial
  RopeScaling scaling = RopeScaling::None;
  double factor = 1.0;
  double lowFrequencyFactor = 1.0, highFrequencyFactor = 4.0;  // llama3
  int64_t originalContext = 0;
  double betaFast = 32.0, betaSlow = 1.0, mscale = 0.0, mscaleAllDim = 0.0;  // yarn; mscale 0: not given
  std::optional<double> attentionFactor;
  bool truncate = true;
  std::vector<double> shortFactors, longFactors;  // longrope, or explicit frequency divisors of a GGUF's rope_freqs
};

// How a router's logits become the weights of the chosen experts.
enum class RouterScoring : uint8_t { Softmax /* over all experts */, Sigmoid };

struct MoeParameters {
  int64_t experts = 0, expertsPerToken = 0, expertIntermediate = 0;
  int64_t sharedExperts = 0, sharedIntermediate = 0;  // sharedIntermediate: width of all shared experts together
  bool sharedGate = false;
  bool routerBias = false;
  RouterScoring scoring = RouterScoring::Softmax;
  bool biasOnlyChooses = false;   // the router's bias is added to scores for the choice alone (DeepSeek V3), not to the logits
  bool normalizeWeights = false;  // the chosen weights sum to 1
  double weightScale = 1.0;       // multiplies the chosen weights
  int64_t groups = 1, groupsPerToken = 1;  // experts are chosen from the best groups of experts only
  bool groupByTopTwo = false;              // a group's score: the sum of its best two (DeepSeek V3), else its best (V2)
  bool weightsOnInput = false;             // the weight multiplies the expert's input (Llama 4), not its output
  double swigluLimit = 0.0;                // above 0: gpt-oss's clamped SwiGLU in place of the activation
};

struct LatentAttention {  // MLA; https://arxiv.org/abs/2405.04434
  int64_t qLoraRank = 0 /* 0: plain q_proj */, kvLoraRank = 0, qkNopeHeadDim = 0, qkRopeHeadDim = 0, vHeadDim = 0;
};

struct LinearAttention {  // gated delta net; https://arxiv.org/abs/2412.06464
  int64_t keyHeads = 0, valueHeads = 0, keyDim = 0, valueDim = 0, kernel = 0;  // kernel: tokens of the short convolution
  int64_t channels() const { return 2 * keyHeads * keyDim + valueHeads * valueDim; }
};

// What a recurrent layer keeps for each sequence, whatever its length: the last inputs of its convolution, and a state.
struct RecurrentState {
  int64_t taps = 0;                       // inputs kept of each channel
  int64_t channels = 0;                   // of the convolution, as far as tensor parallelism divides them
  int64_t groups = 0, groupChannels = 0;  // Mamba 2: channels that come by groups; ranks beyond the groups hold copies
  int64_t elements = 0;                   // of the state
  bool exact = false;                     // the state is kept in 32 bits
  bool second = false;                    // Mamba 2
};

// One decoder layer. Layers may differ: the planner sums over them, the decoder reads its own.
struct LayerSpec {
  AttentionKind attention = AttentionKind::Full;
  int64_t window = 0;  // tokens seen by SlidingWindow and ChunkedWindow
  int64_t qHeads = 0, kvHeads = 0, headDim = 0, vHeadDim = 0;
  bool rope = true;
  bool localRope = false;  // uses ModelConfig::localRope in place of rope
  FfnKind ffn = FfnKind::Dense;
  int64_t intermediateSize = 0;  // dense width
  MoeParameters moe;
  LatentAttention latent;
  LinearAttention linear;
  bool sinks = false;          // a learned logit for each query head
  bool indexer = false;        // sparse latent attention selects its tokens by an indexer
  int64_t indexDim = 0;        // width of the key that the indexer keeps of each token
  bool valuesAreKeys = false;  // no v_proj: the keys serve as values (Gemma 4)
  bool sharesKv = false;       // reads the cache of an earlier layer, keeps none itself (Gemma 3n)
  bool mambaBeside = false;    // a Mamba 2 mixer reads the same norm as the attention (Falcon H1)
  RecurrentState recurrent;
  friend bool sameKvShape(const LayerSpec& a, const LayerSpec& b) {
    return a.attention == b.attention && a.window == b.window && a.kvHeads == b.kvHeads && a.headDim == b.headDim &&
           a.vHeadDim == b.vHeadDim;
  }
};

struct QuantizationConfig {
  std::string method;  // "awq", "gptq", "fp8", "compressed-tensors", "mxfp4", "gguf", …
  int bits = 0;
  int64_t groupSize = 0;             // 0: none; -1: one group a column
  std::vector<int64_t> weightBlock;  // fp8 block, e.g. {128, 128}
  bool descAct = false, symmetric = true, zeroPoint = false;
  std::vector<std::string> ignored;  // module names or "re:…" patterns that stay unquantized
  nlohmann::json raw;
};

// What the forward pass needs beyond shapes. Defaults are Llama's.
struct DecoderTraits {
  NormKind norm = NormKind::RmsNorm;
  double normEpsilon = 1e-5;
  double normWeightOffset = 0.0;  // Gemma: 1 (weights are stored minus one)
  Activation activation = Activation::Silu;
  bool gatedMlp = true;
  bool qkNorm = false;           // RMS norm of each query and key head before RoPE
  bool qkNormFullWidth = false;  // OLMo 2: over all heads at once
  bool plainQkNorm = false;      // Llama 4: RMS norm without weights, behind RoPE and in its layers alone
  bool preNorm = true;           // norm before attention and MLP (OLMo 2: false)
  bool postNorm = false;         // norm of each branch's output before the residual (Gemma 2/3, OLMo 2, GLM-4)
  bool parallelBlock = false;    // attention and MLP read the same norm (Cohere)
  bool attentionSinks = false;
  double attentionScale = 0.0;  // 0: 1/sqrt(headDim)
  // Llama 4: in layers without RoPE, queries grow by positionScale * log(1 + floor((position + 1) / positionFloor)); 0: not.
  double positionScale = 0.0, positionFloor = 8192.0;
  double attentionSoftcap = 0.0, finalSoftcap = 0.0;  // 0: none
  double embeddingMultiplier = 1.0, residualMultiplier = 1.0, logitsMultiplier = 1.0;
};

// What a checkpoint of the family stores beside the shapes above; the inventory's formula reads it.
struct CheckpointTraits {
  bool qkvBias = false, outputBias = false, mlpBias = false, headBias = false, normBias = false;
  bool fusedQkv = false, fusedGateUp = false;
  bool queryGate = false;  // q_proj also makes a gate for each query head (Qwen3-Next)
  bool expertBias = false;
  bool singleNorm = false;  // both branches read one norm, which stands before the attention
  bool plainNorms = false;  // the layers' norms have no weights
  bool qkNormBias = false;
  int64_t additionalEmbeddings = 0;  // rows of the embedding beyond the head's (Llama 3.2 Vision)
  bool tiedHeadStored = false;       // lm_head is in the file although it equals the embedding
  bool inverseFrequencies = false;   // rotary_emb.inv_freq of each layer (Transformers before 4.32)
  int64_t mtpLayers = 0;             // multi-token prediction layers behind the decoder's
  bool mtpEmbeddings = false;        // they bring their own embedding and head
};

struct ModelConfig {
  std::string name;          // for people: the folder's or file's name, or general.name
  std::string modelType;     // "qwen2", as in config.json (of the language model); GGUF: general.architecture
  std::string wrapperType;   // "mistral3": the model around it, where that is a type of its own
  std::string architecture;  // "Qwen2ForCausalLM"; GGUF: the closest class name
  int64_t hiddenSize = 0, vocabSize = 0, maxPositionEmbeddings = 0;
  // Of the first full-attention layer, for tables and rules; per-layer truth is in `layers`.
  int64_t qHeads = 0, kvHeads = 0, headDim = 0, intermediateSize = 0;
  bool tieWordEmbeddings = false;
  DType dtype = DType::BF16;  // of the checkpoint
  // Of the KV cache, where the quantized checkpoint was made for one ("kv_cache_quant_algo", "kv_cache_scheme").
  std::optional<DType> kvCacheDType;
  RopeParameters rope, localRope;
  DecoderTraits decoder;
  CheckpointTraits checkpoint;
  std::vector<LayerSpec> layers;
  std::optional<QuantizationConfig> quantization;
  std::vector<int32_t> eosTokenIds;
  std::optional<int32_t> bosTokenId;
  // What the engine's decoder lacks for this model ("latent attention"), empty when it can run it.
  std::vector<std::string> missingInEngine;
  // Every assumption that was made where the file is silent or unknown; shown to the user.
  std::vector<std::string> warnings;
  nlohmann::json raw;  // config.json as read; null for GGUF

  int64_t layerCount() const { return static_cast<int64_t>(layers.size()); }
};

// Reads the text of a config.json. `where` names it in errors. Accepts what Python's json accepts (Infinity, NaN).
Result<ModelConfig> parseModelConfig(std::string_view text, const std::string& where);

}  // namespace headroom
