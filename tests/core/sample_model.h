// SPDX-License-Identifier: Apache-2.0
// A decoder model made by hand, for tests that must not lean on the readers of real files.
#pragma once

#include "core/model/tensor_inventory.h"

namespace headroom::test {

struct ModelShape {
  int64_t layers = 30, hidden = 576, qHeads = 9, kvHeads = 3, headDim = 64, intermediate = 1536, vocab = 49152;
  bool tied = true, fused = false, biases = false;
  DType matrixType = DType::BF16;
  int64_t maxPositions = 2048;
  // An expert model when experts > 0: expertWidth columns each and a shared expert of sharedWidth.
  int64_t experts = 0, expertWidth = 0, sharedWidth = 0;
};

inline ModelSource makeModel(const ModelShape& shape) {
  ModelSource model;
  ModelConfig& config = model.config;
  config.name = "sample";
  config.modelType = "llama";
  config.architecture = "LlamaForCausalLM";
  config.hiddenSize = shape.hidden;
  config.vocabSize = shape.vocab;
  config.maxPositionEmbeddings = shape.maxPositions;
  config.qHeads = shape.qHeads;
  config.kvHeads = shape.kvHeads;
  config.headDim = shape.headDim;
  config.intermediateSize = shape.intermediate;
  config.tieWordEmbeddings = shape.tied;
  config.dtype = isBlockQuantized(shape.matrixType) ? DType::F16 : shape.matrixType;
  config.rope.rotaryDim = shape.headDim;
  LayerSpec layer;
  layer.qHeads = shape.qHeads;
  layer.kvHeads = shape.kvHeads;
  layer.headDim = layer.vHeadDim = shape.headDim;
  layer.intermediateSize = shape.intermediate;
  if (shape.experts > 0) {
    layer.ffn = FfnKind::MixtureOfExperts;
    layer.moe.experts = shape.experts;
    layer.moe.expertsPerToken = 2;
    layer.moe.expertIntermediate = shape.expertWidth;
    layer.moe.sharedExperts = shape.sharedWidth > 0;
    layer.moe.sharedIntermediate = shape.sharedWidth;
  }
  config.layers.assign(shape.layers, layer);

  auto add = [&](TensorRole role, int at, std::vector<int64_t> extents, int splitDim, std::vector<SplitSegment> segments,
                 int expert = -1) {
    TensorEntry tensor;
    tensor.name = "t" + std::to_string(model.inventory.tensors.size());
    tensor.role = role;
    tensor.layer = at;
    tensor.expert = expert;
    tensor.dtype = extents.size() > 1 ? shape.matrixType : (isBlockQuantized(shape.matrixType) ? DType::F32 : shape.matrixType);
    tensor.shape = std::move(extents);
    tensor.splitDim = splitDim;
    tensor.segments = std::move(segments);
    model.inventory.tensors.push_back(std::move(tensor));
  };
  const int64_t q = shape.qHeads * shape.headDim, kv = shape.kvHeads * shape.headDim, h = shape.hidden, i = shape.intermediate;
  const SplitSegment qs{SplitUnit::QHeads, q, shape.headDim}, kvs{SplitUnit::KvHeads, kv, shape.headDim},
      cs{SplitUnit::MlpColumns, i, 1};
  add(TensorRole::TokenEmbedding, -1, {shape.vocab, h}, 0, {{SplitUnit::Vocabulary, shape.vocab, 1}});
  for (int at = 0; at < shape.layers; ++at) {
    add(TensorRole::AttentionNorm, at, {h}, -1, {});
    if (shape.fused) {
      add(TensorRole::Qkv, at, {q + 2 * kv, h}, 0, {qs, kvs, kvs});
      if (shape.biases) add(TensorRole::QkvBias, at, {q + 2 * kv}, 0, {qs, kvs, kvs});
    } else {
      add(TensorRole::Q, at, {q, h}, 0, {qs});
      add(TensorRole::K, at, {kv, h}, 0, {kvs});
      add(TensorRole::V, at, {kv, h}, 0, {kvs});
      if (shape.biases) {
        add(TensorRole::QBias, at, {q}, 0, {qs});
        add(TensorRole::KBias, at, {kv}, 0, {kvs});
        add(TensorRole::VBias, at, {kv}, 0, {kvs});
      }
    }
    add(TensorRole::O, at, {h, q}, 1, {qs});
    if (shape.biases) add(TensorRole::OBias, at, {h}, -1, {});
    add(TensorRole::FfnNorm, at, {h}, -1, {});
    if (shape.experts > 0) {
      const SplitSegment es{SplitUnit::ExpertColumns, shape.expertWidth, 1}, ss{SplitUnit::SharedColumns, shape.sharedWidth, 1};
      add(TensorRole::Router, at, {shape.experts, h}, -1, {});
      for (int expert = 0; expert < shape.experts; ++expert) {
        add(TensorRole::ExpertGate, at, {shape.expertWidth, h}, 0, {es}, expert);
        add(TensorRole::ExpertUp, at, {shape.expertWidth, h}, 0, {es}, expert);
        add(TensorRole::ExpertDown, at, {h, shape.expertWidth}, 1, {es}, expert);
      }
      if (shape.sharedWidth > 0) {
        add(TensorRole::SharedUp, at, {shape.sharedWidth, h}, 0, {ss});
        add(TensorRole::SharedDown, at, {h, shape.sharedWidth}, 1, {ss});
      }
    } else if (shape.fused) {
      add(TensorRole::GateUp, at, {2 * i, h}, 0, {cs, cs});
      add(TensorRole::Down, at, {h, i}, 1, {cs});
    } else {
      add(TensorRole::Gate, at, {i, h}, 0, {cs});
      add(TensorRole::Up, at, {i, h}, 0, {cs});
      if (shape.biases) add(TensorRole::UpBias, at, {i}, 0, {cs});
      add(TensorRole::Down, at, {h, i}, 1, {cs});
      if (shape.biases) add(TensorRole::DownBias, at, {h}, -1, {});
    }
  }
  add(TensorRole::FinalNorm, -1, {h}, -1, {});
  if (!shape.tied) add(TensorRole::LmHead, -1, {shape.vocab, h}, 0, {{SplitUnit::Vocabulary, shape.vocab, 1}});
  return model;
}

inline ModelShape smolShape() { return {}; }
inline ModelShape qwen72Shape() {
  ModelShape shape{80, 8192, 64, 8, 128, 29568, 152064};
  shape.tied = false;
  shape.biases = true;
  shape.maxPositions = 32768;
  return shape;
}

}  // namespace headroom::test
