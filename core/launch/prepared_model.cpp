// SPDX-License-Identifier: Apache-2.0
#include "core/launch/prepared_model.h"

#include "core/model/held_weights.h"
#include "core/model/what_if_quantization.h"

namespace headroom {

PreparedModel::PreparedModel(std::shared_ptr<const ModelSource> opened) : m_opened(std::move(opened)) {}

const CondensedModel& PreparedModel::condensed() const {
  std::call_once(m_condensedOnce, [this] { m_condensed.emplace(*m_opened); });
  return *m_condensed;
}

const ModelSource& PreparedModel::held() const {
  if (!differsHeld()) return *m_opened;
  std::call_once(m_heldOnce, [this] { m_held = heldByEngine(*m_opened); });
  return *m_held;
}

const CondensedModel& PreparedModel::heldCondensed() const {
  if (!differsHeld()) return condensed();
  std::call_once(m_heldCondensedOnce, [this] { m_heldCondensed.emplace(held()); });
  return *m_heldCondensed;
}

Result<std::shared_ptr<const PreparedModel>> PreparedModel::quantized(const std::string& method) const {
  const std::lock_guard lock(m_mutex);
  if (m_quantized && m_method == method) return m_quantized;
  Result<ModelSource> made = quantizedAs(*m_opened, method);
  if (!made) return tl::unexpected(made.error());
  m_method = method;
  m_quantized = std::make_shared<const PreparedModel>(std::make_shared<const ModelSource>(std::move(*made)));
  return m_quantized;
}

}  // namespace headroom
