// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/cpu_delta_net.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace headroom::engine::cpu {
namespace {

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

// The rows of one sequence.
struct Rows {
  int64_t begin = 0, end = 0;
  bool isFirst = false;         // begin at position 0: nothing is remembered
  float* remembered = nullptr;  // the sequence's slot
};

// qkv's columns [first, first + count) become silu of their convolution; `remembered` (kernel - 1, channels) takes the last
// inputs.
void convolve(const DeltaNetCall& call, const Rows& rows, int64_t first, int64_t count) {
  const int64_t kernel = call.net.kernel, past = kernel - 1, channels = call.net.channels();
  thread_local std::vector<float> weights, inputs;
  weights.resize(static_cast<size_t>(kernel * count));
  inputs.resize(static_cast<size_t>(kernel * count));  // a ring of rows: that of token t stands at t % kernel
  for (int64_t j = 0; j < kernel; ++j)
    for (int64_t c = 0; c < count; ++c)
      weights[static_cast<size_t>(j * count + c)] = call.net.convolution[(first + c) * kernel + j];
  const auto row = [&](int64_t t) { return inputs.data() + (t + kernel) % kernel * count; };  // t from -past on
  for (int64_t j = 0; j < past; ++j) {
    const float* from = rows.remembered + j * channels + first;
    for (int64_t c = 0; c < count; ++c) row(j - past)[c] = rows.isFirst ? 0.0f : from[c];
  }
  const int64_t tokens = rows.end - rows.begin;
  for (int64_t t = 0; t < tokens; ++t) {
    float* x = call.qkv.row<float>(rows.begin + t) + first;
    std::copy_n(x, count, row(t));
    std::fill_n(x, count, 0.0f);
    for (int64_t j = 0; j < kernel; ++j) {
      const float *by = weights.data() + j * count, *from = row(t - past + j);
      for (int64_t c = 0; c < count; ++c) x[c] += by[c] * from[c];
    }
    for (int64_t c = 0; c < count; ++c) x[c] *= sigmoid(x[c]);
  }
  for (int64_t j = 0; j < past; ++j) std::copy_n(row(tokens - past + j), count, rows.remembered + j * channels + first);
}

void normalize(float* x, int64_t count, float factor) {
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) squares += static_cast<double>(x[i]) * x[i];
  const auto scale = static_cast<float>(factor / std::sqrt(squares + 1e-6));
  for (int64_t i = 0; i < count; ++i) x[i] *= scale;
}

// One token of one value head: the state (keyDim, valueDim) decays, takes in key and value, and answers the query into `answer`.
void recall(const GatedDeltaNet& net, float* state, const float* q, const float* k, const float* v, float decay, float beta,
            float* correction, float* answer) {
  const int64_t width = net.valueDim;
  std::fill_n(correction, width, 0.0f);
  std::fill_n(answer, width, 0.0f);
  for (int64_t i = 0; i < net.keyDim; ++i) {
    float* s = state + i * width;
    const float key = k[i];
    for (int64_t d = 0; d < width; ++d) {
      s[d] *= decay;
      correction[d] += key * s[d];
    }
  }
  for (int64_t d = 0; d < width; ++d) correction[d] = (v[d] - correction[d]) * beta;
  for (int64_t i = 0; i < net.keyDim; ++i) {
    float* s = state + i * width;
    const float key = k[i], query = q[i];
    for (int64_t d = 0; d < width; ++d) {
      s[d] += key * correction[d];
      answer[d] += query * s[d];
    }
  }
}

void normAndGate(const GatedDeltaNet& net, const float* answer, const float* z, float* out) {
  double squares = 0;
  for (int64_t d = 0; d < net.valueDim; ++d) squares += static_cast<double>(answer[d]) * answer[d];
  const auto factor = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(net.valueDim) + net.epsilon));
  for (int64_t d = 0; d < net.valueDim; ++d) out[d] = answer[d] * factor * net.norm[d] * z[d] * sigmoid(z[d]);
}

void runKeyHead(const DeltaNetCall& call, const Rows& rows, int64_t keyHead) {
  const GatedDeltaNet& net = call.net;
  const int64_t shared = net.valueHeads / net.keyHeads, keys = net.keyHeads * net.keyDim;
  const int64_t q = keyHead * net.keyDim, k = keys + q, v = 2 * keys + keyHead * shared * net.valueDim;
  convolve(call, rows, q, net.keyDim);
  convolve(call, rows, k, net.keyDim);
  convolve(call, rows, v, shared * net.valueDim);
  thread_local std::vector<float> work;
  work.resize(static_cast<size_t>(2 * net.valueDim));
  float* states = rows.remembered + (net.kernel - 1) * net.channels();
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    float* x = call.qkv.row<float>(t);
    normalize(x + q, net.keyDim, static_cast<float>(1.0 / std::sqrt(static_cast<double>(net.keyDim))));
    normalize(x + k, net.keyDim, 1.0f);
    for (int64_t h = keyHead * shared; h < (keyHead + 1) * shared; ++h) {
      float* state = states + h * net.keyDim * net.valueDim;
      if (rows.isFirst && t == rows.begin) std::fill_n(state, net.keyDim * net.valueDim, 0.0f);
      const float beta = call.betaAlpha.row<float>(t)[h], alpha = call.betaAlpha.row<float>(t)[net.valueHeads + h];
      const float decay = std::exp(-std::exp(net.decay[h]) * softplus(alpha + net.timeBias[h]));
      recall(net, state, x + q, x + k, x + 2 * keys + h * net.valueDim, decay, sigmoid(beta), work.data(),
             work.data() + net.valueDim);
      normAndGate(net, work.data() + net.valueDim, call.z.row<float>(t) + h * net.valueDim,
                  call.out.row<float>(t) + h * net.valueDim);
    }
  }
}

}  // namespace

void runDeltaNet(const DeltaNetCall& call, ThreadPool& pool) {
  const AttentionBatch& batch = call.batch;
  pool.run(batch.sequences * call.net.keyHeads, [&](int64_t item, int) {
    const int64_t sequence = item / call.net.keyHeads;
    Rows rows;
    rows.begin = batch.sequenceStart.row<int32_t>(0)[sequence];
    rows.end = batch.sequenceStart.row<int32_t>(0)[sequence + 1];
    rows.isFirst = batch.contextLength.row<int32_t>(0)[sequence] == rows.end - rows.begin;
    const int64_t slot = batch.stateSlots.row<int32_t>(0)[sequence];
    expects(slot >= 0 && slot < call.state.slots, "a sequence has no slot for its state");
    rows.remembered = static_cast<float*>(call.state.data) + slot * call.net.stateElements();
    runKeyHead(call, rows, item % call.net.keyHeads);
  });
}

}  // namespace headroom::engine::cpu
