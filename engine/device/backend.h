// SPDX-License-Identifier: Apache-2.0
// The operations a device offers, coarse enough that one decoder runs on all of them. The CPU backend is the reference.
//
// Operations are launched as void; the first failure sticks and sync() returns it, so that the forward pass reads as maths.
// Activations are F32 on the CPU. Index arguments (ids, positions, slots, …) are I32 views in device memory.
// One backend belongs to one rank and is used from that rank's thread only.
#pragma once

#include "core/model/model_config.h"
#include "core/result.h"
#include "engine/device/row_sampling.h"
#include "engine/device/tensor.h"

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace headroom::engine {

// One layer's keys and values: blocks of `blockTokens` tokens. The order of elements inside a block is the backend's own; K and V
// of a block take blockTokens * kvHeads * (headDim + vHeadDim) elements together.
struct KvLayerView {
  void* data = nullptr;
  DType dtype = DType::F32;  // F32, F16, BF16, F8E4M3, F8E5M2 or I8, which has scales (core/memory/kv_cache_size.h)
  int64_t blocks = 0, blockTokens = 16, kvHeads = 0, headDim = 0, vHeadDim = 0;
  // Latent attention: the values are the last vHeadDim elements of the keys and take no memory; storeKv's v is not read.
  bool valuesInKeys = false;
};

// The sequences of a step, for attention. Rows sequenceStart[i] … sequenceStart[i+1] of the batch belong to sequence i; they are
// its last tokens, at positions contextLength[i] - n … contextLength[i] - 1.
struct AttentionBatch {
  int64_t sequences = 0;
  TensorView sequenceStart;  // I32 (1, sequences + 1)
  TensorView contextLength;  // I32 (1, sequences), the step's own tokens included
  TensorView blockTable;     // I32 (sequences, blocksPerSequence); entries past the context are not read
  TensorView stateSlots;     // I32 (1, sequences): which slot of LinearState a sequence has; only models with linear attention
};

struct AttentionParams {
  float scale = 1.0f;
  float softcap = 0.0f;                     // 0: none
  int64_t window = 0;                       // 0: all; else a token sees itself and window - 1 before it
  bool chunkedWindow = false;               // Llama 4: sees only the tokens of its own chunk of `window`
  int64_t qHeads = 0;                       // of this rank
  int64_t qHeadBegin = 0, kvHeadBegin = 0;  // this rank's first query and KV head in the whole model
  int64_t groupSize = 1;         // query heads per KV head in the whole model: kv = (qHeadBegin + q) / groupSize - kvHeadBegin
  const float* sinks = nullptr;  // device memory, one logit per query head of this rank; may be null
};

struct LinearTask {
  TensorView out;  // (tokens, weight.out)
  const WeightMatrix* weight = nullptr;
  const float* bias = nullptr;  // device memory, weight.out floats; may be null
  // The rounding of activations shows most here (the logits): a device that rounds them to 8 bits keeps 8 more.
  bool fine = false;
};

// How logits (tokens, experts) become the chosen experts of each token and their weights.
struct ExpertRouting {
  RouterScoring scoring = RouterScoring::Softmax;
  const float* choiceBias = nullptr;       // device memory, (experts): added to the scores for the choice alone; may be null
  int64_t groups = 1, groupsPerToken = 1;  // choose from the best groupsPerToken of `groups` equal runs of experts
  bool groupByTopTwo = false;              // a group's score is the sum of its best two, else its best
  bool normalize = false;                  // chosen weights divided by their sum
  double scale = 1.0;                      // and multiplied by this
};

// The gated MLPs of one layer's experts. Matrices by expert: gate and up (columns, hidden), down (hidden, columns); `columns` are
// this rank's.
struct ExpertLayer {
  std::span<const WeightMatrix> gate, up, down;
  const float* gateBias = nullptr;  // device memory, (experts, columns); may be null
  const float* upBias = nullptr;    // the same
  const float* downBias = nullptr;  // (experts, hidden); null on all ranks but the first
  Activation activation = Activation::Silu;
  // Above 0, in place of the activation: min(gate, limit) * sigmoid(1.702 gate) * (clamp(up, -limit, limit) + 1), as gpt-oss.
  float swigluLimit = 0.0f;
  bool weightsOnInput = false;  // the weight multiplies the expert's input, not its output
  bool addToOut = false;        // out += the sum, else out = the sum
};

// One head of latent attention: a query or key is (rope, latent), a value the latent alone.
struct LatentHeads {
  int64_t nope = 0, rope = 0, latent = 0, value = 0;  // elements of a head; https://arxiv.org/abs/2405.04434
};

// What linear attention remembers of each sequence, F32: slot by slot the last kernel - 1 rows of the convolution's input
// (kernel - 1, channels), then the state (valueHeads, keyDim, valueDim).
struct LinearState {
  void* data = nullptr;
  int64_t slots = 0;
};

// One layer of a gated delta net as a rank holds it: value heads h … share key head h / (valueHeads / keyHeads).
struct GatedDeltaNet {
  int64_t keyHeads = 0, valueHeads = 0, keyDim = 0, valueDim = 0, kernel = 0;
  const float* convolution = nullptr;  // device memory: (channels, kernel), the newest token last
  const float* timeBias = nullptr;     // (valueHeads)
  const float* decay = nullptr;        // (valueHeads): log of A
  const float* norm = nullptr;         // (valueDim)
  double epsilon = 1e-6;
  int64_t channels() const { return 2 * keyHeads * keyDim + valueHeads * valueDim; }
  int64_t stateElements() const { return (kernel - 1) * channels() + valueHeads * keyDim * valueDim; }  // of one slot
};

struct BackendInfo {
  std::string name;         // "cpu", "cuda"
  std::string description;  // "AVX-512 VNNI, 1 thread"
  int device = 0;
};

// What lies between the projections of a step and attention over the cache.
struct HeadsOfStep {
  TensorView q, k, v;  // (tokens, heads * headDim), (tokens, kvHeads * headDim), (tokens, kvHeads * vHeadDim)
  int64_t headDim = 0;
  const float* qNorm = nullptr;  // device memory, headDim floats each: RMS norms of the heads; null: none
  const float* kNorm = nullptr;
  double epsilon = 1e-6, offset = 0.0;  // of the norms
  TensorView cosSin;                    // of ropeAngles; no data: no rotation
  RopeStyle style = RopeStyle::Neox;
  TensorView slots;  // of storeKv
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendInfo info() const = 0;

  // ---- memory
  // 64-byte aligned. Fails with the device, what was asked and what is free.
  virtual Result<DeviceBuffer> allocate(Bytes size, std::string_view purpose) = 0;
  virtual void release(void* data, Bytes size) noexcept = 0;
  virtual Bytes allocatedBytes() const = 0;
  // Device memory that operations work in, one after another, until the backend goes (core/memory/cuda_memory.h). Backends that
  // need none ignore it.
  virtual void workIn(void* /*memory*/, Bytes /*size*/) {}
  virtual void copyToDevice(void* to, const void* from, Bytes size) = 0;
  virtual void copyToHost(void* to, const void* from, Bytes size) = 0;
  // Rows of 4-byte numbers without gaps into a view whose rows may have some.
  virtual void copyRowsToDevice(TensorView to, const void* from) {
    const Bytes size = storageBytes(to.dtype, to.cols);
    for (int64_t row = 0; row < to.rows; ++row)
      copyToDevice(to.row<int32_t>(row), static_cast<const std::byte*>(from) + row * size.count(), size);
  }
  // The host address of device memory where the host may read it in place (CPU), else null. Valid after sync().
  virtual const void* hostAddress(const void* device) const = 0;

  // ---- weights
  virtual Result<WeightMatrix> makeMatrix(DType dtype, int64_t out, int64_t in, std::string_view purpose) = 0;
  // Rows [firstRow, firstRow + rows) from host memory, row-major and without gaps, in `dtype`: either the matrix's own type or a
  // floating type that is converted. Rows may come in any order and in chunks of any size; each is written once.
  virtual void writeRows(WeightMatrix& matrix, int64_t firstRow, int64_t rows, DType dtype, const void* data) = 0;
  virtual void finishMatrix(WeightMatrix& matrix) = 0;  // all rows are written

  // ---- operations; `tokens` is out.rows
  // out(t) = table row (ids[t] - firstId), or zeros when that is outside the table (another rank holds it).
  virtual void embed(TensorView out, const WeightMatrix& table, TensorView ids, int64_t firstId) = 0;
  // Several linear layers with one input: out = in · weightᵀ + bias.
  virtual void linear(TensorView in, std::span<const LinearTask> tasks) = 0;
  // out = norm(in) * (weight + offset). In place allowed.
  virtual void rmsNorm(TensorView out, TensorView in, const float* weight, double epsilon, double offset) = 0;
  virtual void layerNorm(TensorView out, TensorView in, const float* weight, const float* bias, double epsilon) = 0;
  // residual += delta; out = rmsNorm(residual).
  virtual void addRmsNorm(TensorView out, TensorView residual, TensorView delta, const float* weight, double epsilon,
                          double offset) = 0;
  // RMS norm of each head of x (tokens, heads * headDim) in place; weight has headDim elements, null: ones (offset is 0 then).
  virtual void headRmsNorm(TensorView x, int64_t headDim, const float* weight, double epsilon, double offset) = 0;
  // cosSin (tokens, rotaryDim): cosines then sines of position * inverseFrequency[i], times `factor`. Computed in double.
  virtual void ropeAngles(TensorView cosSin, TensorView positions, const double* inverseFrequencies, double factor) = 0;
  // Rotates the first rotaryDim elements of each head of x (tokens, heads * headDim) in place.
  virtual void applyRope(TensorView x, int64_t headDim, TensorView cosSin, RopeStyle style) = 0;
  // Writes k (tokens, kvHeads * headDim) and v (tokens, kvHeads * vHeadDim) into slots[t] = block * blockTokens + offset.
  virtual void storeKv(const KvLayerView& cache, TensorView k, TensorView v, TensorView slots) = 0;
  // Norms of q's and k's heads, their rotation, and the store of k and v. q is changed in place; what k holds afterwards is
  // undefined.
  virtual void rotateAndStoreKv(const KvLayerView& cache, const HeadsOfStep& heads) {
    if (heads.qNorm) headRmsNorm(heads.q, heads.headDim, heads.qNorm, heads.epsilon, heads.offset);
    if (heads.kNorm) headRmsNorm(heads.k, heads.headDim, heads.kNorm, heads.epsilon, heads.offset);
    if (heads.cosSin.data) {
      applyRope(heads.q, heads.headDim, heads.cosSin, heads.style);
      applyRope(heads.k, heads.headDim, heads.cosSin, heads.style);
    }
    storeKv(cache, heads.k, heads.v, heads.slots);
  }
  // Causal attention of q (tokens, qHeads * headDim) over the cache; out (tokens, qHeads * vHeadDim).
  virtual void pagedAttention(TensorView out, TensorView q, const KvLayerView& cache, const AttentionBatch& batch,
                              const AttentionParams& params) = 0;
  // out = activation(gate) * up. out may be gate.
  virtual void gatedActivation(TensorView out, TensorView gate, TensorView up, Activation activation) = 0;
  virtual void activate(TensorView x, Activation activation) = 0;
  virtual void add(TensorView x, TensorView delta) = 0;                         // x += delta
  virtual void scale(TensorView x, double factor) = 0;                          // x *= factor
  virtual void softcap(TensorView x, double cap) = 0;                           // x = cap * tanh(x / cap)
  virtual void gatherRows(TensorView out, TensorView in, TensorView rows) = 0;  // out(i) = in(rows[i])
  // Waits for all launched operations; the first failure since the last sync.
  virtual Status sync() = 0;

  // ---- recording; a device that launches each operation as it comes has none
  virtual bool records() const { return false; }
  // What `launch` launches is recorded in place of running, for replay() with the same memory and whatever it then holds.
  // `launch` neither copies from or to the host nor waits, and has run at least once before, so that all it needs is there.
  // Returns the recording's number.
  virtual Result<int> record([[maybe_unused]] const std::function<Status()>& launch) {
    return failure(info().name, "a device that records nothing");
  }
  // Launches a recording. False: memory that it uses has moved since, and it is of no more use.
  virtual bool replay([[maybe_unused]] int recording) { return false; }
  // What the device has taken for all recordings, measured.
  virtual Bytes recordedBytes() const { return {}; }

  // ---- sampling; a device without it hands out logits instead
  virtual bool samples() const { return false; }
  // ids (1, rows) I32 = the next token of each row of logits F32 (rows, vocabulary), which are changed; -1 where no logit is a
  // number above minus infinity, or nothing is allowed. The rules are engine/sample/sampler.h's.
  virtual void sampleRows([[maybe_unused]] TensorView ids, [[maybe_unused]] TensorView logits,
                          [[maybe_unused]] std::span<const RowSampling> rows) {
    lacks("sampleRows");
  }

  // ---- operations of some architectures only. A device that has none of its own throws, and the rank fails with its name.
  // Mixture of experts. ids I32 and weights F32 (tokens, expertsPerToken) from logits F32 (tokens, experts), a token's best
  // first.
  virtual void routeExperts([[maybe_unused]] TensorView ids, [[maybe_unused]] TensorView weights,
                            [[maybe_unused]] TensorView logits, [[maybe_unused]] const ExpertRouting& routing) {
    lacks("routeExperts");
  }
  // out(t) = sum over the token's experts e of weight * (down_e · (activation(gate_e · in(t)) * (up_e · in(t)))), in ascending
  // order of e. `scratch` F32 (1, expertScratch(tokens, hidden, columns) of core/memory/workspace.h) is free for use; who needs
  // more takes the tokens in several rounds.
  virtual void expertMlp([[maybe_unused]] TensorView out, [[maybe_unused]] TensorView in,
                         [[maybe_unused]] const ExpertLayer& experts, [[maybe_unused]] TensorView ids,
                         [[maybe_unused]] TensorView weights, [[maybe_unused]] TensorView scratch) {
    lacks("expertMlp");
  }
  // x = x * sigmoid(gate); gate has x's columns, or one for each row.
  virtual void sigmoidGate([[maybe_unused]] TensorView x, [[maybe_unused]] TensorView gate) { lacks("sigmoidGate"); }
  // An RMS norm over columns that several ranks hold: squares (tokens, 1) = the sum of x^2 along the row; then, summed over the
  // ranks, x = x / sqrt(squares / width + epsilon) * (weight + offset) in place. `squares` may be a column of a wider view.
  virtual void rowSquareSum([[maybe_unused]] TensorView squares, [[maybe_unused]] TensorView x) { lacks("rowSquareSum"); }
  virtual void normBySquareSum([[maybe_unused]] TensorView x, [[maybe_unused]] TensorView squares, [[maybe_unused]] int64_t width,
                               [[maybe_unused]] const float* weight, [[maybe_unused]] double epsilon,
                               [[maybe_unused]] double offset) {
    lacks("normBySquareSum");
  }
  // x(t) = x(t) * (1 + scale * log(1 + floor((positions[t] + 1) / floorScale))): Llama 4's queries in layers without RoPE.
  virtual void scaleByPosition([[maybe_unused]] TensorView x, [[maybe_unused]] TensorView positions,
                               [[maybe_unused]] double floorScale, [[maybe_unused]] double scale) {
    lacks("scaleByPosition");
  }
  // Latent attention, both ways through the latent space. q (tokens, heads * (nope + rope)): out head (rope + latent) = the rope
  // part of the query, then keyUp_h · its nope part; keyUp by head (latent, nope). in (tokens, heads * latent): out head (value)
  // = valueUp_h · in head; valueUp by head (value, latent). The spans have as many heads as the views.
  virtual void latentQueries([[maybe_unused]] TensorView out, [[maybe_unused]] TensorView q,
                             [[maybe_unused]] std::span<const WeightMatrix> keyUp, [[maybe_unused]] const LatentHeads& heads) {
    lacks("latentQueries");
  }
  virtual void latentValues([[maybe_unused]] TensorView out, [[maybe_unused]] TensorView in,
                            [[maybe_unused]] std::span<const WeightMatrix> valueUp, [[maybe_unused]] const LatentHeads& heads) {
    lacks("latentValues");
  }

  // Linear attention; https://arxiv.org/abs/2412.06464. qkv (tokens, channels): queries of all key heads, keys, values; z
  // (tokens, valueHeads * valueDim); betaAlpha (tokens, 2 * valueHeads): all betas, then all alphas. For each token, in the
  // sequence's order:
  //   x = silu(convolution over the last `kernel` rows of qkv); q = x_q / |x_q| / sqrt(keyDim), k = x_k / |x_k|, v = x_v
  //   S = exp(-exp(decay) * softplus(alpha + timeBias)) * S;  S = S + k (sigmoid(beta) * (v - Sᵀk))ᵀ;  o = Sᵀq
  //   out (tokens, valueHeads * valueDim) = rmsNorm(o) * norm * silu(z), head by head
  // A sequence whose rows begin at position 0 begins with an empty state, whatever its slot holds; out may be z.
  virtual void gatedDeltaNet([[maybe_unused]] TensorView out, [[maybe_unused]] TensorView qkv, [[maybe_unused]] TensorView z,
                             [[maybe_unused]] TensorView betaAlpha, [[maybe_unused]] const LinearState& state,
                             [[maybe_unused]] const AttentionBatch& batch, [[maybe_unused]] const GatedDeltaNet& net) {
    lacks("gatedDeltaNet");
  }

 protected:
  [[noreturn]] void lacks(const char* operation) const {
    throw std::runtime_error(info().name + " devices have no operation " + operation + " yet");
  }
};

inline DeviceBuffer::~DeviceBuffer() {
  if (m_data) m_backend->release(m_data, m_size);
}

}  // namespace headroom::engine
