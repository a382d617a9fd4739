// SPDX-License-Identifier: Apache-2.0
#include "core/model/inventory_builder.h"

#include "core/model/tensor_split.h"

#include <algorithm>
#include <regex>

namespace headroom {
namespace {

constexpr ModelFamily kLlamaLike{.modelTypes = "", .architecture = ""};
constexpr TensorNames kLlamaNames;

bool matchesGlob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Expressions whose matching time could explode are not tried: many repetitions, repeated groups, back references.
bool isHarmless(std::string_view expression) {
  if (expression.size() > 200) return false;
  int repetitions = 0;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '\\' && i + 1 < expression.size() && expression[i + 1] >= '1' && expression[i + 1] <= '9') return false;
    if (c == '\\') {
      ++i;
      continue;
    }
    if (c == '{' || ((c == '*' || c == '+') && i > 0 && expression[i - 1] == ')')) return false;
    repetitions += c == '*' || c == '+';
  }
  return repetitions <= 4;
}

bool matchesExpression(std::string_view expression, std::string_view module) {
  if (!isHarmless(expression)) return false;
  try {
    const std::regex compiled(expression.begin(), expression.end());
    // Python's re.match: from the begin, not up to the end.
    return std::regex_search(module.begin(), module.end(), compiled, std::regex_constants::match_continuous);
  } catch (const std::regex_error&) {
    return false;
  }
}

}  // namespace

bool matchesModulePattern(std::string_view pattern, std::string_view module) {
  if (pattern.starts_with("re:")) return matchesExpression(pattern.substr(3), module);
  if (pattern.find('*') != std::string_view::npos) {
    if (matchesGlob(pattern, module)) return true;
    // "model.layers.*.self_attn" names everything beneath.
    return matchesGlob(std::string(pattern) + ".*", module);
  }
  if (module == pattern) return true;
  if (module.size() > pattern.size() && module.starts_with(pattern) && module[pattern.size()] == '.') return true;
  return module.size() > pattern.size() && module.ends_with(pattern) && module[module.size() - pattern.size() - 1] == '.';
}

InventoryBuilder::InventoryBuilder(const ModelConfig& config)
    : m_config(config),
      m_family(findModelFamily(config.modelType) ? *findModelFamily(config.modelType) : kLlamaLike),
      m_names(m_family.names ? *m_family.names : kLlamaNames),
      m_keysJson(config.raw.is_object() ? languageModelKeys(config.raw) : nlohmann::json::object()),
      m_keys(m_keysJson, config.name, m_ignoredError) {
  const bool severalParts = config.raw.is_object() && config.raw.contains("text_config");
  if (config.raw.is_object() && config.raw.contains("thinker_config")) m_outer = "thinker.";
  m_prefix = m_outer + (severalParts ? "language_model." : "") + std::string(m_names.model);
  if (!config.quantization) return;
  for (const auto& name : config.quantization->ignored)
    if (name.starts_with("re:") || name.find('*') != std::string::npos || name.find('.') == std::string::npos)
      m_ignoredPatterns.push_back(name);
    else
      m_ignoredModules.insert(name);
}

TensorEntry& InventoryBuilder::tensor(TensorRole role, std::string name, std::vector<int64_t> shape, int layer) {
  TensorEntry entry;
  entry.name = std::move(name);
  entry.role = m_unloaded ? TensorRole::Other : role;
  entry.layer = layer;
  entry.dtype = m_config.dtype;
  entry.shape = std::move(shape);
  entry.loaded = !m_unloaded;
  expects(assignSplit(entry, m_config), "a formula's shape follows its configuration");
  m_inventory.tensors.push_back(std::move(entry));
  return m_inventory.tensors.back();
}

void InventoryBuilder::layerNorm(const std::string& name, int64_t width, bool bias) {
  tensor(name + ".weight", {width});
  if (bias) tensor(name + ".bias", {width});
}

void InventoryBuilder::plainLinear(const std::string& module, int64_t out, int64_t in, bool bias) {
  tensor(module + ".weight", {out, in});
  if (bias) tensor(module + ".bias", {out});
}

bool InventoryBuilder::isQuantized(const std::string& module) const {
  if (!m_config.quantization || m_config.quantization->method == "gguf") return false;
  for (size_t end = module.size(); end != std::string::npos && end > 0; end = module.rfind('.', end - 1))
    if (m_ignoredModules.contains(module.substr(0, end))) return false;
  return std::none_of(m_ignoredPatterns.begin(), m_ignoredPatterns.end(),
                      [&](const auto& pattern) { return matchesModulePattern(pattern, module); });
}

}  // namespace headroom
