// SPDX-License-Identifier: Apache-2.0
// The experts' MLPs as a row of launches; no kernel of its own. Roofline: at decode the bytes of the chosen experts' matrices,
// each read once however many tokens chose it. Test: tests/engine/cuda_kernels_expert_mlp_test.cpp.
#include "engine/device/cuda/kernels/expert_mlp.h"

#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/kernels/moe.h"

namespace headroom::engine::cuda {
namespace {

constexpr int64_t kAlign = 256;
int64_t padded(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
int64_t elementBytes(DType type) { return type == DType::F32 ? 4 : 2; }

// Rows begin on 16 bytes, as tensor-core kernels want them.
int64_t stride(DType type, int64_t columns) {
  const int64_t wide = 16 / elementBytes(type);
  return (columns + wide - 1) / wide * wide;
}

// Where things lie in the scratch.
struct Room {
  int64_t begin, tokenOf, rowOf, gate, up, result, rounded, bytes;
};
Room roomFor(int64_t slots, int64_t experts, int64_t hidden, int64_t columns, DType type) {
  Room room = {};
  int64_t at = 0;
  const auto take = [&](int64_t bytes) {
    const int64_t begin = at;
    at += padded(bytes);
    return begin;
  };
  room.begin = take(4 * (experts + 1));
  room.tokenOf = take(4 * slots);
  room.rowOf = take(4 * slots);
  room.gate = take(slots * stride(type, columns) * elementBytes(type));
  room.up = take(slots * stride(type, columns) * elementBytes(type));
  room.result = take(slots * stride(type, hidden) * elementBytes(type));
  const int64_t widest = stride(DType::F16, hidden > columns ? hidden : columns);
  room.rounded = take(type == DType::F32 ? slots * widest * elementBytes(DType::F16) : 0);
  room.bytes = at;
  return room;
}

TensorView viewAt(uint8_t* memory, DType type, int64_t rows, int64_t columns) {
  return {memory, type, rows, columns, stride(type, columns)};
}

// `in` as the matrices' product takes it; `rounded`: the room for that.
TensorView inputOf(Stream stream, const ExpertMatrices& matrices, TensorView in, uint8_t* rounded) {
  if (in.dtype != DType::F32 || matrices.product == DType::F32) return in;
  const TensorView view = viewAt(rounded, matrices.product, in.rows, in.cols);
  convert(stream, view, in);
  return view;
}

void run(Stream stream, TensorView out, TensorView in, const ExpertMatrices& matrices, ExpertRows rows, LinearOptions options) {
  options.tensorCores = options.tensorCores && in.dtype != DType::F32;
  rows.data = matrices.data;
  rows.scales = matrices.scales;
  rows.zeros = matrices.zeros;
  options.experts = &rows;
  if (matrices.packed) {
    const PackedTask task = {out, matrices.packedShape, matrices.bias};
    packedLinear(stream, in, std::span(&task, 1), options);
  } else {
    const DenseTask task = {out, matrices.denseShape, matrices.bias};
    denseLinear(stream, in, std::span(&task, 1), options);
  }
}

}  // namespace

int64_t expertMlpBytes(int64_t tokens, int64_t expertsPerToken, int64_t experts, int64_t hidden, int64_t columns,
                       DType activationType) {
  return roomFor(tokens * expertsPerToken, experts, hidden, columns, activationType).bytes;
}

void expertMlp(Stream stream, const ExpertMlp& task, const LinearOptions& options) {
  if (task.out.rows == 0) return;
  const int64_t slots = task.ids.rows * task.ids.cols, hidden = task.in.cols;
  const DType type = task.in.dtype;
  const Room room = roomFor(slots, task.experts, hidden, task.columns, type);
  auto* scratch = static_cast<uint8_t*>(task.scratch);
  auto* begin = reinterpret_cast<int*>(scratch + room.begin);
  auto* tokenOf = reinterpret_cast<int*>(scratch + room.tokenOf);
  auto* rowOf = reinterpret_cast<int*>(scratch + room.rowOf);
  const TensorView gate = viewAt(scratch + room.gate, type, slots, task.columns),
                   up = viewAt(scratch + room.up, type, slots, task.columns),
                   result = viewAt(scratch + room.result, type, slots, hidden);
  const TensorView unweighted = {};
  // Without columns no expert has a row, and the sum is empty.
  const int experts = task.columns > 0 ? task.experts : 0;
  sortByExpert(stream, begin, tokenOf, rowOf, task.ids, experts);
  if (experts > 0) {
    ExpertRows rows = {experts, begin, tokenOf, nullptr, nullptr, nullptr};
    TensorView in = task.in;
    if (task.weightsOnInput) {  // the results come later into the same memory
      gatherWeighted(stream, result, task.in, rowOf, task.weights);
      in = result;
      rows.inputRows = nullptr;
    }
    const TensorView forGate = inputOf(stream, task.gate, in, scratch + room.rounded);
    run(stream, gate, forGate, task.gate, rows, options);
    const bool same = task.up.product == task.gate.product;
    run(stream, up, same ? forGate : inputOf(stream, task.up, in, scratch + room.rounded), task.up, rows, options);
    if (task.swigluLimit > 0.0f)
      clampedSwiglu(stream, gate, gate, up, 1.702f, task.swigluLimit);
    else
      gatedActivation(stream, gate, gate, up, task.activation);
    rows.inputRows = nullptr;
    run(stream, result, inputOf(stream, task.down, gate, scratch + room.rounded), task.down, rows, options);
  }
  combineExperts(stream, task.out, result, rowOf, task.ids, task.weightsOnInput ? unweighted : task.weights, task.addToOut);
}

}  // namespace headroom::engine::cuda
