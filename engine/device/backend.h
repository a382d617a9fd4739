// SPDX-License-Identifier: Apache-2.0
// The operations a device offers, coarse enough that one decoder runs on all of them. The CPU backend is the reference.
//
// Operations are launched as void; the first failure sticks and sync() returns it, so that the forward pass reads as maths.
// Activations are F32 on the CPU. Index arguments (ids, positions, slots, …) are I32 views in device memory.
// One backend belongs to one rank and is used from that rank's thread only.
#pragma once

#include "core/model/model_config.h"
#include "core/result.h"
#include "engine/device/tensor.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headroom::engine {

// One layer's keys and values: blocks of `blockTokens` tokens. The order of elements inside a block is the backend's own; K and V of a block
// take blockTokens * kvHeads * (headDim + vHeadDim) elements together.
struct KvLayerView {
  void* data = nullptr;
  DType dtype = DType::F32;  // F32, F16 or BF16
  int64_t blocks = 0, blockTokens = 16, kvHeads = 0, headDim = 0, vHeadDim = 0;
};

// The sequences of a step, for attention. Rows sequenceStart[i] … sequenceStart[i+1] of the batch belong to sequence i; they are its last
// tokens, at positions contextLength[i] - n … contextLength[i] - 1.
struct AttentionBatch {
  int64_t sequences = 0;
  TensorView sequenceStart;  // I32 (1, sequences + 1)
  TensorView contextLength;  // I32 (1, sequences), the step's own tokens included
  TensorView blockTable;     // I32 (sequences, blocksPerSequence); entries past the context are not read
};

struct AttentionParams {
  float scale = 1.0f;
  float softcap = 0.0f;                  // 0: none
  int64_t window = 0;                    // 0: all; else a token sees itself and window - 1 before it
  bool chunkedWindow = false;            // Llama 4: sees only the tokens of its own chunk of `window`
  int64_t qHeads = 0;                    // of this rank
  int64_t qHeadBegin = 0, kvHeadBegin = 0;  // this rank's first query and KV head in the whole model
  int64_t groupSize = 1;                 // query heads per KV head in the whole model: kv = (qHeadBegin + q) / groupSize - kvHeadBegin
  const float* sinks = nullptr;          // device memory, one logit per query head of this rank; may be null
};

struct LinearTask {
  TensorView out;                        // (tokens, weight.out)
  const WeightMatrix* weight = nullptr;
  const float* bias = nullptr;           // device memory, weight.out floats; may be null
};

struct BackendInfo {
  std::string name;         // "cpu", "cuda"
  std::string description;  // "AVX-512 VNNI, 1 thread"
  int device = 0;
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
  virtual void copyToDevice(void* to, const void* from, Bytes size) = 0;
  virtual void copyToHost(void* to, const void* from, Bytes size) = 0;
  // The host address of device memory where the host may read it in place (CPU), else null. Valid after sync().
  virtual const void* hostAddress(const void* device) const = 0;

  // ---- weights
  virtual Result<WeightMatrix> makeMatrix(DType dtype, int64_t out, int64_t in, std::string_view purpose) = 0;
  // Rows [firstRow, firstRow + rows) from host memory, row-major and without gaps, in `dtype`: either the matrix's own type or a floating
  // type that is converted. Rows may come in any order and in chunks of any size; each is written once.
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
  virtual void addRmsNorm(TensorView out, TensorView residual, TensorView delta, const float* weight, double epsilon, double offset) = 0;
  // RMS norm of each head of x (tokens, heads * headDim) in place; weight has headDim elements.
  virtual void headRmsNorm(TensorView x, int64_t headDim, const float* weight, double epsilon, double offset) = 0;
  // cosSin (tokens, rotaryDim): cosines then sines of position * inverseFrequency[i], times `factor`. Computed in double.
  virtual void ropeAngles(TensorView cosSin, TensorView positions, const double* inverseFrequencies, double factor) = 0;
  // Rotates the first rotaryDim elements of each head of x (tokens, heads * headDim) in place.
  virtual void applyRope(TensorView x, int64_t headDim, TensorView cosSin, RopeStyle style) = 0;
  // Writes k (tokens, kvHeads * headDim) and v (tokens, kvHeads * vHeadDim) into slots[t] = block * blockTokens + offset.
  virtual void storeKv(const KvLayerView& cache, TensorView k, TensorView v, TensorView slots) = 0;
  // Causal attention of q (tokens, qHeads * headDim) over the cache; out (tokens, qHeads * vHeadDim).
  virtual void pagedAttention(TensorView out, TensorView q, const KvLayerView& cache, const AttentionBatch& batch, const AttentionParams& params) = 0;
  // out = activation(gate) * up. out may be gate.
  virtual void gatedActivation(TensorView out, TensorView gate, TensorView up, Activation activation) = 0;
  virtual void activate(TensorView x, Activation activation) = 0;
  virtual void add(TensorView x, TensorView delta) = 0;             // x += delta
  virtual void scale(TensorView x, double factor) = 0;              // x *= factor
  virtual void softcap(TensorView x, double cap) = 0;               // x = cap * tanh(x / cap)
  virtual void gatherRows(TensorView out, TensorView in, TensorView rows) = 0;  // out(i) = in(rows[i])
  // Waits for all launched operations; the first failure since the last sync.
  virtual Status sync() = 0;
};

inline DeviceBuffer::~DeviceBuffer() {
  if (m_data) m_backend->release(m_data, m_size);
}

}  // namespace headroom::engine
