// SPDX-License-Identifier: Apache-2.0
// Gated delta nets: the convolution, a thread an element; the recurrence, a block a sequence and value head, eight lanes a column
// of the state, which stays in registers over all tokens of the step; then the convolution's memory moves on. Roofline: a decode
// step reads and writes the state once (4 keyDim valueDim bytes a head, twice) at the copy bandwidth; a prompt is bound by one
// token after another, about 1.5 us each, heads side by side (an estimate; a form by chunks is faster and not here). Test:
// tests/engine/cuda_kernels_delta_net_test.cpp.
#include "engine/device/cuda/kernels/delta_net.h"

#include "engine/device/cuda/kernels/common.cuh"

namespace headroom::engine::cuda {
namespace {

constexpr int kParts = 8;       // lanes that share a column of the state
constexpr float kTiny = 1e-6f;  // under the roots of q's and k's lengths

template <class T>
struct Arguments {
  Rows<T> out;
  Rows<const T> qkv, z, betaAlpha;
  float* state;
  float* convolved;  // (tokens, channels)
  const int *sequenceStart, *contextLength, *stateSlots;
  int keyHeads, valueHeads, keyDim, valueDim, kernel, channels;
  const float *convolution, *timeBias, *decay, *norm;
  float epsilon;

  __device__ int64_t slotElements() const {
    return static_cast<int64_t>(kernel - 1) * channels + static_cast<int64_t>(valueHeads) * keyDim * valueDim;
  }
  __device__ float* slot(int sequence) const { return state + stateSlots[sequence] * slotElements(); }
  __device__ bool isNew(int sequence) const {
    return stateSlots[sequence] < 0 || contextLength[sequence] == sequenceStart[sequence + 1] - sequenceStart[sequence];
  }
  // The convolution's input `back` rows before the sequence's first of this step (1: the last that came before).
  __device__ float remembered(int sequence, int back, int channel) const {
    return isNew(sequence) ? 0.0f : slot(sequence)[static_cast<int64_t>(kernel - 1 - back) * channels + channel];
  }
};

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ inline float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

template <class T>
__global__ void convolveKernel(Arguments<T> net) {
  const int token = static_cast<int>(blockIdx.x), channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  if (channel >= net.channels) return;
  int sequence = 0;
  while (token >= net.sequenceStart[sequence + 1]) ++sequence;
  const int place = token - net.sequenceStart[sequence];
  float sum = 0.0f;
  for (int j = 0; j < net.kernel; ++j) {
    const int at = place - (net.kernel - 1) + j;
    const float x =
        at >= 0 ? toFloat(net.qkv.row(net.sequenceStart[sequence] + at)[channel]) : net.remembered(sequence, -at, channel);
    sum += net.convolution[channel * net.kernel + j] * x;
  }
  net.convolved[static_cast<int64_t>(token) * net.channels + channel] = sum * sigmoid(sum);
}

// The last kernel - 1 rows of what was remembered and what came; a thread a channel, from the oldest on: it reads ahead of what
// it writes.
template <class T>
__global__ void rememberKernel(Arguments<T> net) {
  const int sequence = static_cast<int>(blockIdx.x), channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const int begin = net.sequenceStart[sequence], tokens = net.sequenceStart[sequence + 1] - begin;
  if (channel >= net.channels || tokens == 0 || net.stateSlots[sequence] < 0) return;
  float* slot = net.slot(sequence);
  for (int row = 0; row < net.kernel - 1; ++row) {
    const int at = tokens - (net.kernel - 1) + row;
    slot[static_cast<int64_t>(row) * net.channels + channel] =
        at >= 0 ? toFloat(net.qkv.row(begin + at)[channel]) : net.remembered(sequence, -at, channel);
  }
}

// kRows: rows of the state that a lane can hold.
template <class T, int kRows>
__global__ void __launch_bounds__(kRows > 16 ? 256 : 1024, 1) recurKernel(Arguments<T> net) {
  HEADROOM_DYNAMIC_SHARED(float, query);  // the query, then the key, by lane: row i of lane p at p + kParts * i
  __shared__ float scratch[32];
  float* key = query + net.keyDim;
  const int head = static_cast<int>(blockIdx.x), sequence = static_cast<int>(blockIdx.y);
  const int begin = net.sequenceStart[sequence], end = net.sequenceStart[sequence + 1];
  if (begin == end) return;
  const int thread = static_cast<int>(threadIdx.x), column = thread / kParts, part = thread % kParts, warp = thread / kWarp,
            lane = thread % kWarp;
  const bool holds = column < net.valueDim;
  const int keyHead = head / (net.valueHeads / net.keyHeads);
  // Asked for twice in place of a pointer kept over all tokens: registers are short.
  const auto memoryOf = [&] {
    return net.slot(sequence) + static_cast<int64_t>(net.kernel - 1) * net.channels +
           static_cast<int64_t>(head) * net.keyDim * net.valueDim + column;
  };
  const float* before = memoryOf();
  const bool isNew = net.isNew(sequence);
  float state[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = part + kParts * i;
    state[i] = holds && !isNew && row < net.keyDim ? before[static_cast<int64_t>(row) * net.valueDim] : 0.0f;
  }
  const float rate = -expf(net.decay[head]), bias = net.timeBias[head];
#pragma unroll 1
  for (int token = begin; token < end; ++token) {
    const float* x = net.convolved + static_cast<int64_t>(token) * net.channels;
    if (warp < 2) {  // one warp the query, one the key, to unit length
      const float* from = x + (warp * net.keyHeads + keyHead) * net.keyDim;
      float squares = 0.0f;
      for (int i = lane; i < net.keyDim; i += kWarp) squares += from[i] * from[i];
      const float factor =
          1.0f / sqrtf(warpSum(squares) + kTiny) * (warp == 0 ? 1.0f / sqrtf(static_cast<float>(net.keyDim)) : 1.0f);
      for (int i = lane; i < net.keyDim; i += kWarp) (warp == 0 ? query : key)[i] = from[i] * factor;
    }
    __syncthreads();
    const T* gates = net.betaAlpha.row(token);
    const float beta = sigmoid(toFloat(gates[head]));
    const float fade = expf(rate * softplus(toFloat(gates[net.valueHeads + head]) + bias));
    float known = 0.0f;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = part + kParts * i;
      state[i] *= fade;
      if (row < net.keyDim) known += key[row] * state[i];
    }
    known += __shfl_xor_sync(kAllLanes, known, 1);
    known += __shfl_xor_sync(kAllLanes, known, 2);
    known += __shfl_xor_sync(kAllLanes, known, 4);
    const float value = holds ? x[2 * net.keyHeads * net.keyDim + head * net.valueDim + column] : 0.0f,
                change = beta * (value - known);
    float result = 0.0f;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = part + kParts * i;
      if (row < net.keyDim) {
        state[i] += key[row] * change;
        result += query[row] * state[i];
      }
    }
    result += __shfl_xor_sync(kAllLanes, result, 1);
    result += __shfl_xor_sync(kAllLanes, result, 2);
    result += __shfl_xor_sync(kAllLanes, result, 4);
    const float squares = blockSum(part == 0 && holds ? result * result : 0.0f, scratch);
    if (part == 0 && holds) {
      const int64_t at = static_cast<int64_t>(head) * net.valueDim + column;
      const float gate = toFloat(net.z.row(token)[at]),
                  scale = 1.0f / sqrtf(squares / static_cast<float>(net.valueDim) + net.epsilon);
      net.out.row(token)[at] = fromFloat<T>(result * scale * net.norm[column] * gate * sigmoid(gate));
    }
  }
  if (net.stateSlots[sequence] < 0) return;
  float* memory = memoryOf();
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = part + kParts * i;
    if (holds && row < net.keyDim) memory[static_cast<int64_t>(row) * net.valueDim] = state[i];
  }
}

}  // namespace

int64_t deltaNetBytes(int64_t tokens, int64_t channels) { return tokens * channels * 4; }

void gatedDeltaNet(Stream stream, const DeltaNet& net) {
  if (net.out.rows == 0 || net.sequences == 0) return;
  kernelExpects(net.keyDim <= 256 && net.valueDim <= (net.keyDim > 128 ? 32 : 128) && net.keyHeads > 0 &&
                    net.valueHeads % net.keyHeads == 0 && net.kernel >= 1,
                "a delta net has sizes that its kernel does not hold");
  withActivationType(net.out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Arguments<T> arguments = {rowsOf<T>(net.out),
                              rowsOf<const T>(net.qkv),
                              rowsOf<const T>(net.z),
                              rowsOf<const T>(net.betaAlpha),
                              net.state,
                              static_cast<float*>(net.scratch),
                              net.sequenceStart,
                              net.contextLength,
                              net.stateSlots,
                              static_cast<int>(net.keyHeads),
                              static_cast<int>(net.valueHeads),
                              static_cast<int>(net.keyDim),
                              static_cast<int>(net.valueDim),
                              static_cast<int>(net.kernel),
                              static_cast<int>(net.channels()),
                              net.convolution,
                              net.timeBias,
                              net.decay,
                              net.norm,
                              static_cast<float>(net.epsilon)};
    const unsigned pieces = blocksFor(net.channels(), 128);
    launchKernel(convolveKernel<T>, dim3(static_cast<unsigned>(net.out.rows), pieces), dim3(128), 0, stream, arguments);
    const int64_t lanes = net.valueDim * kParts;
    const unsigned threads =
        static_cast<unsigned>(lanes < 64 ? 64 : (lanes + kWarp - 1) / kWarp * kWarp);  // two warps at least: q's and k's
    const dim3 grid(static_cast<unsigned>(net.valueHeads), static_cast<unsigned>(net.sequences));
    const auto shared = static_cast<size_t>(2 * net.keyDim * 4);
    if (net.keyDim <= 32)
      launchKernel(recurKernel<T, 4>, grid, dim3(threads), shared, stream, arguments);
    else if (net.keyDim <= 128)
      launchKernel(recurKernel<T, 16>, grid, dim3(threads), shared, stream, arguments);
    else
      launchKernel(recurKernel<T, 32>, grid, dim3(threads), shared, stream, arguments);
    if (net.kernel > 1)
      launchKernel(rememberKernel<T>, dim3(static_cast<unsigned>(net.sequences), pieces), dim3(128), 0, stream, arguments);
  });
}

}  // namespace headroom::engine::cuda
