// SPDX-License-Identifier: Apache-2.0
#include "engine/model/workspace.h"

namespace headroom::engine {

Result<Workspace> Workspace::allocate(const ModelConfig& config, const RankSlice& rank, int tp, int pp,
                                      const EngineLimits& limits, Backend& backend) {
  Workspace workspace;
  workspace.m_shape = workspaceShape(config, rank, tp, pp, limits);
  for (const WorkspaceBuffer& planned : workspaceBuffers(config, rank, tp, pp, limits)) {
    Result<DeviceBuffer> buffer = backend.allocate(planned.bytes, "activations: " + planned.name);
    if (!buffer) return tl::unexpected(buffer.error());
    workspace.m_allocated += buffer->size();
    workspace.m_buffers.emplace(planned.name, std::move(*buffer));
  }
  if (const auto scratch = workspace.m_buffers.find(std::string_view("scratch")); scratch != workspace.m_buffers.end())
    backend.workIn(scratch->second.data(), scratch->second.size());
  workspace.m_layer = static_cast<float*>(workspace.view("layer", DType::F32, 0, 0).data);
  return workspace;
}

TensorView Workspace::view(const char* buffer, DType dtype, int64_t rows, int64_t columns) const {
  const auto found = m_buffers.find(std::string_view(buffer));
  if (found == m_buffers.end()) return TensorView::of(nullptr, dtype, rows, columns);
  expects(storageBytes(dtype, rows * columns) <= found->second.size(), "a view is larger than its buffer");
  return TensorView::of(found->second.data(), dtype, rows, columns);
}

TensorView Workspace::layerPart(int64_t firstElement, int64_t tokens, int64_t width) const {
  expects(firstElement + tokens * width <= m_shape.layerElements(), "a layer's view is larger than the layer buffer");
  return TensorView::of(m_layer + firstElement, DType::F32, tokens, width);
}

}  // namespace headroom::engine
