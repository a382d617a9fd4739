// SPDX-License-Identifier: Apache-2.0
// Parameters of a request's body by name. Every reader of bodies uses it, so that a wrong value reads the same on all routes.
#pragma once

#include "engine/server/api_error.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace headroom::engine {

// A value as an error shows it: compact, cut when long.
std::string shown(const nlohmann::ordered_json& value);

// Reads parameters of one object by name; null counts as absent. Keeps the first problem, so that reading goes on in straight
// lines.
class Parameters {
 public:
  static constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();
  explicit Parameters(const nlohmann::ordered_json& object, std::string prefix = {})
      : m_object(object), m_prefix(std::move(prefix)) {}

  const nlohmann::ordered_json* find(const char* name) const;

  void wrong(const std::string& name, const std::string& found, const std::string& expected);
  void wrong(const std::string& name, const nlohmann::ordered_json& found, const std::string& expected) {
    wrong(name, shown(found), expected);
  }
  void refuse(const std::string& name, const std::string& message);
  void unsupported(const std::string& name);
  void take(const ApiError& error) {
    if (!m_error) m_error = error;
  }

  bool boolean(const char* name, bool absent);
  std::optional<int64_t> integer(const char* name, int64_t least, int64_t most = kMaxInt);
  std::optional<double> number(const char* name, double least, double most, const char* expected);
  std::optional<std::string> string(const char* name);
  const nlohmann::ordered_json* object(const char* name);

  // Numbers without a fraction count as integers when they are written as integers; 1.5 and 1e3 do not, as in vLLM's strict
  // reading of integers.
  static std::optional<int64_t> integerIn(const nlohmann::ordered_json& value, int64_t least, int64_t most);

  const std::optional<ApiError>& error() const { return m_error; }

 private:
  const nlohmann::ordered_json& m_object;
  std::string m_prefix;
  std::optional<ApiError> m_error;
};

// `value`, or the first problem of its parameters.
template <class T>
ApiResult<T> resultOf(const Parameters& parameters, T&& value) {
  if (parameters.error()) return tl::unexpected(*parameters.error());
  return std::move(value);
}

}  // namespace headroom::engine
