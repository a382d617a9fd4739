// SPDX-License-Identifier: Apache-2.0
// A rank's activation buffers, allocated once from core's list, and the views that the forward pass takes of them.
#pragma once

#include "core/memory/workspace.h"
#include "engine/device/backend.h"

#include <initializer_list>
#include <map>
#include <string>

namespace headroom::engine {

class Workspace {
 public:
  static Result<Workspace> allocate(const ModelConfig& config, const RankSlice& rank, int tp, int pp, const EngineLimits& limits,
                                    Backend& backend);
  const WorkspaceShape& shape() const { return m_shape; }
  Bytes allocated() const { return m_allocated; }

  // (rows, columns) at the begin of a buffer; data is null for a buffer that this rank does not have.
  TensorView view(const char* buffer, DType dtype, int64_t rows, int64_t columns) const;

  // The parts of the layer buffer, (tokens, width). Attention's and the MLP's overlap.
  TensorView q(int64_t tokens, int64_t width) const { return layerPart(0, tokens, width); }
  TensorView k(int64_t tokens, int64_t width) const { return layerPart(behind({m_shape.q}), tokens, width); }
  TensorView v(int64_t tokens, int64_t width) const { return layerPart(behind({m_shape.q, m_shape.k}), tokens, width); }
  TensorView attention(int64_t tokens, int64_t width) const {
    return layerPart(behind({m_shape.q, m_shape.k, m_shape.v}), tokens, width);
  }
  TensorView queryGate(int64_t tokens, int64_t width) const {
    return layerPart(behind({m_shape.q, m_shape.k, m_shape.v, m_shape.attention}), tokens, width);
  }
  TensorView queryLatent(int64_t tokens, int64_t width) const {
    return layerPart(behind({m_shape.q, m_shape.k, m_shape.v, m_shape.attention, m_shape.queryGate}), tokens, width);
  }
  TensorView latentKey(int64_t tokens, int64_t width) const {
    return layerPart(behind({m_shape.q, m_shape.k, m_shape.v, m_shape.attention, m_shape.queryGate, m_shape.queryLatent}), tokens,
                     width);
  }
  // (1, elements): all that latent attention may work in.
  TensorView latentWork() const {
    const int64_t begin =
        behind({m_shape.q, m_shape.k, m_shape.v, m_shape.attention, m_shape.queryGate, m_shape.queryLatent, m_shape.latentKey});
    return layerPart(begin, 1, m_shape.latentWork);
  }
  TensorView linearQkv(int64_t tokens, int64_t width) const { return layerPart(0, tokens, width); }
  TensorView linearZ(int64_t tokens, int64_t width) const { return layerPart(behind({m_shape.linearChannels}), tokens, width); }
  TensorView linearGates(int64_t tokens, int64_t width) const {
    return layerPart(behind({m_shape.linearChannels, m_shape.linearValues}), tokens, width);
  }
  TensorView up(int64_t tokens, int64_t width) const { return layerPart(0, tokens, width); }
  TensorView gate(int64_t tokens, int64_t width) const { return layerPart(m_shape.paddedElements(m_shape.mlp), tokens, width); }
  // (1, elements) for the experts of a layer.
  TensorView experts(int64_t elements) const { return layerPart(0, 1, elements); }

 private:
  int64_t behind(std::initializer_list<int64_t> widths) const {
    int64_t sum = 0;
    for (int64_t width : widths) sum += m_shape.paddedElements(width);
    return sum;
  }
  TensorView layerPart(int64_t firstElement, int64_t tokens, int64_t width) const;

  WorkspaceShape m_shape;
  std::map<std::string, DeviceBuffer, std::less<>> m_buffers;
  float* m_layer = nullptr;
  Bytes m_allocated;
};

}  // namespace headroom::engine
