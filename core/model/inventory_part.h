// SPDX-License-Identifier: Apache-2.0
// Private to core/model: the sizes of one part of a model of several parts, by the object of config.json that describes it.
#pragma once

#include "core/model/inventory_builder.h"

#include <string>
#include <string_view>

namespace headroom {

inline constexpr int64_t kMostPartWidth = 1 << 17;

class InventoryPart {
 public:
  InventoryPart(InventoryBuilder& builder, std::string_view key) : m_keys(builder.keys().object(key)) {}
  // Under the first of the names that is there, else as the configuration class has it.
  int64_t operator()(ConfigReader::Keys names, int64_t otherwise) const {
    return m_keys.integer(names, 1, kMostPartWidth).value_or(otherwise);
  }
  // A number, or a list of one for each direction of which the first counts.
  int64_t side(std::string_view key, int64_t otherwise) const {
    const auto* value = m_keys.find({key});
    if (!value || !value->is_array()) return m_keys.integer({key}, 1, kMostPartWidth).value_or(otherwise);
    const auto list = m_keys.integers({key}, 1, kMostPartWidth);
    return list.empty() ? otherwise : list.front();
  }
  bool flag(std::string_view key, bool otherwise) const { return m_keys.flag({key}).value_or(otherwise); }
  std::string text(std::string_view key) const { return m_keys.text({key}).value_or(""); }
  bool present() const { return !m_keys.json().empty(); }
  const ConfigReader& keys() const { return m_keys; }

 private:
  ConfigReader m_keys;
};

// "vision_tower.layers.3."
inline std::string numbered(std::string_view prefix, int64_t index) { return fmt::format("{}{}.", prefix, index); }

}  // namespace headroom
