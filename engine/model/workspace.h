// SPDX-License-Identifier: Apache-2.0
// A rank's activation buffers, allocated once from core's list, and the views that the forward pass takes of them.
#pragma once

#include "core/memory/workspace.h"
#include "engine/device/backend.h"

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
  TensorView k(int64_t tokens, int64_t width) const { return layerPart(m_shape.paddedElements(m_shape.q), tokens, width); }
  TensorView v(int64_t tokens, int64_t width) const {
    return layerPart(m_shape.paddedElements(m_shape.q) + m_shape.paddedElements(m_shape.k), tokens, width);
  }
  TensorView attention(int64_t tokens, int64_t width) const {
    return layerPart(m_shape.paddedElements(m_shape.q) + m_shape.paddedElements(m_shape.k) + m_shape.paddedElements(m_shape.v),
                     tokens, width);
  }
  TensorView up(int64_t tokens, int64_t width) const { return layerPart(0, tokens, width); }
  TensorView gate(int64_t tokens, int64_t width) const { return layerPart(m_shape.paddedElements(m_shape.mlp), tokens, width); }

 private:
  TensorView layerPart(int64_t firstElement, int64_t tokens, int64_t width) const;

  WorkspaceShape m_shape;
  std::map<std::string, DeviceBuffer, std::less<>> m_buffers;
  float* m_layer = nullptr;
  Bytes m_allocated;
};

}  // namespace headroom::engine
