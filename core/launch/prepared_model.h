// SPDX-License-Identifier: Apache-2.0
// A model with what all of its plans have in common, for callers that plan it more than once: a window whose options are dragged,
// a search over machines, a comparison of engines.
#pragma once

#include "core/launch/planner.h"
#include "core/layout/condensed_model.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace headroom {

// Each part is made when it is first needed and kept. May be used from several threads. The model must not be changed while this
// lives.
class PreparedModel {
 public:
  explicit PreparedModel(std::shared_ptr<const ModelSource> opened);
  PreparedModel(const PreparedModel&) = delete;
  PreparedModel& operator=(const PreparedModel&) = delete;
  // Of a model that its caller keeps alive.
  static PreparedModel borrowed(const ModelSource& opened) { return PreparedModel({std::shared_ptr<void>(), &opened}); }

  const ModelSource& opened() const { return *m_opened; }
  const CondensedModel& condensed() const;
  // As Headroom's own engine holds it: quantized weights have forms of their own there, other models are as they were opened.
  const ModelSource& held() const;
  const CondensedModel& heldCondensed() const;
  // As if it were quantized; of a model that is not. The latest answer is kept.
  Result<std::shared_ptr<const PreparedModel>> quantized(const std::string& method) const;

 private:
  bool differsHeld() const { return m_opened->config.quantization.has_value(); }

  std::shared_ptr<const ModelSource> m_opened;
  mutable std::once_flag m_condensedOnce, m_heldOnce, m_heldCondensedOnce;
  mutable std::optional<CondensedModel> m_condensed, m_heldCondensed;
  mutable std::optional<ModelSource> m_held;
  mutable std::mutex m_mutex;  // of the two below
  mutable std::string m_method;
  mutable std::shared_ptr<const PreparedModel> m_quantized;
};

Result<PlanReport> planModel(const PreparedModel& model, const Machine& machine, const PlanOptions& options);

}  // namespace headroom
