// SPDX-License-Identifier: Apache-2.0
// Private to core/model: collects the tensors of a formula inventory. A linear weight becomes what the quantization format stores
// for it.
#pragma once

#include "core/model/config_reader.h"
#include "core/model/model_family.h"
#include "core/model/tensor_inventory.h"

#include <string>
#include <unordered_set>
#include <vector>

namespace headroom {

// A matrix (out, in), or one for each of `experts`. Roles that assignSplit does not know bring their own split.
struct Linear {
  std::string module;  // name without ".weight"
  int64_t out = 0, in = 0;
  TensorRole role = TensorRole::Other;
  TensorRole biasRole = TensorRole::Other;
  bool bias = false;
  int layer = -1;
  int64_t experts = 0;
  int splitDim = -1;
  std::vector<SplitSegment> segments = {};
};

class InventoryBuilder {
 public:
  explicit InventoryBuilder(const ModelConfig& config);

  const ModelConfig& config() const { return m_config; }
  const ModelFamily& family() const { return m_family; }
  const TensorNames& names() const { return m_names; }
  const ConfigReader& keys() const { return m_keys; }
  // "model." or "language_model.model.".
  const std::string& prefix() const { return m_prefix; }
  // Before the names of all parts: "thinker." where what thinks stands beside what speaks (Qwen's omni models), else empty.
  const std::string& outer() const { return m_outer; }

  // A tensor that no quantization touches.
  TensorEntry& tensor(TensorRole role, std::string name, std::vector<int64_t> shape, int layer = -1);
  TensorEntry& tensor(std::string name, std::vector<int64_t> shape, int layer = -1) {
    return tensor(TensorRole::Other, std::move(name), std::move(shape), layer);
  }
  void layerNorm(const std::string& name, int64_t width, bool bias);  // outside the layers
  void linear(Linear linear);
  // Outside the language model's layers, never quantized: towers and projectors.
  void plainLinear(const std::string& module, int64_t out, int64_t in, bool bias);

  // Until the end of the scope, what is added is stored but not loaded (multi-token prediction layers).
  class Unloaded {
   public:
    explicit Unloaded(InventoryBuilder& builder) : m_builder(builder) { m_builder.m_unloaded = true; }
    ~Unloaded() { m_builder.m_unloaded = false; }
    Unloaded(const Unloaded&) = delete;
    Unloaded& operator=(const Unloaded&) = delete;

   private:
    InventoryBuilder& m_builder;
  };

  TensorInventory take() { return std::move(m_inventory); }

 private:
  friend class QuantizedLinear;
  bool isQuantized(const std::string& module) const;

  const ModelConfig& m_config;
  const ModelFamily& m_family;
  const TensorNames& m_names;
  nlohmann::json m_keysJson;
  std::optional<Error> m_ignoredError;  // parseModelConfig has reported it
  ConfigReader m_keys;
  std::string m_prefix, m_outer;
  bool m_unloaded = false;
  std::unordered_set<std::string> m_ignoredModules;
  std::vector<std::string> m_ignoredPatterns;
  TensorInventory m_inventory;
};

// Whether a module name matches an entry of an ignore list: the name itself, one of its parents, its last parts, a glob with *,
// or "re:" and a regular expression of literals, ".", "*", "+", "?", classes and groups. Unsupported expressions match nothing.
bool matchesModulePattern(std::string_view pattern, std::string_view module);

}  // namespace headroom
