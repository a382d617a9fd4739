// SPDX-License-Identifier: Apache-2.0
// Private to core/model: typed reading of a JSON object with the aliases of the families. The first wrong value becomes the
// error; reading goes on with defaults, so callers check once at the end.
#pragma once

#include "core/result.h"

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Parses JSON as Python's json module does: NaN, Infinity and -Infinity are values (read as null and ±the largest double).
Result<nlohmann::json> parsePythonJson(std::string_view text, const std::string& where);

// The language model's keys (text_config and its like) over the outer ones.
nlohmann::json languageModelKeys(const nlohmann::json& outer);
// The innermost model_type of the language model's own object; empty without such an object, or where it names none.
std::string languageModelType(const nlohmann::json& outer);

class ConfigReader {
 public:
  using Keys = std::initializer_list<std::string_view>;

  // `sink` keeps the first error of this reader and of its children; it outlives them.
  ConfigReader(const nlohmann::json& object, std::string where, std::optional<Error>& sink)
      : m_object(object), m_where(std::move(where)), m_sink(sink) {}

  // The value of the first of `keys` that is there and not null.
  const nlohmann::json* find(Keys keys) const;
  bool has(std::string_view key) const { return find({key}) != nullptr; }
  // True when the key is there, null or not.
  bool mentions(std::string_view key) const { return m_object.is_object() && m_object.contains(key); }

  std::optional<int64_t> integer(Keys keys, int64_t least, int64_t most) const;
  std::optional<double> number(Keys keys, double least, double most) const;
  std::optional<bool> flag(Keys keys) const;
  std::optional<std::string> text(Keys keys) const;
  std::vector<int64_t> integers(Keys keys, int64_t least, int64_t most) const;  // a list; empty when absent
  std::vector<double> numbers(Keys keys) const;
  std::vector<std::string> texts(Keys keys) const;
  // The object under the key; an empty one when absent.
  ConfigReader object(std::string_view key) const;

  void fail(std::string_view key, const nlohmann::json& found, std::string expected, std::string next = {}) const;
  void fail(Error error) const {
    if (!m_sink) m_sink = std::move(error);
  }
  const nlohmann::json& json() const { return m_object; }
  const std::string& where() const { return m_where; }

 private:
  std::string keyFound(Keys keys) const;

  const nlohmann::json& m_object;
  std::string m_where;
  std::optional<Error>& m_sink;
};

}  // namespace headroom
