// SPDX-License-Identifier: Apache-2.0
#include "engine/server/parameters.h"

#include <fmt/format.h>

#include <cmath>

namespace headroom::engine {

using Json = nlohmann::ordered_json;

std::string shown(const Json& value) {
  std::string text = dumpJson(value);
  if (text.size() <= 80) return text;
  text.resize(77);
  return validUtf8(text) + "...";
}

const Json* Parameters::find(const char* name) const {
  const auto found = m_object.find(name);
  return found == m_object.end() || found->is_null() ? nullptr : &*found;
}

void Parameters::wrong(const std::string& name, const std::string& found, const std::string& expected) {
  refuse(name, fmt::format("{}: found {}, expected {}.", m_prefix + name, found, expected));
}

void Parameters::refuse(const std::string& name, const std::string& message) {
  if (!m_error) m_error = ApiError{400, message, m_prefix + name, "invalid_request_error", {}};
}

void Parameters::unsupported(const std::string& name) {
  refuse(name, fmt::format("{} is not supported by this server.", m_prefix + name));
}

bool Parameters::boolean(const char* name, bool absent) {
  const Json* value = find(name);
  if (!value) return absent;
  if (!value->is_boolean()) return wrong(name, *value, "true or false"), absent;
  return value->get<bool>();
}

std::optional<int64_t> Parameters::integer(const char* name, int64_t least, int64_t most) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (auto number = integerIn(*value, least, most)) return number;
  wrong(name, *value,
        most == kMaxInt ? fmt::format("an integer of at least {}", least) : fmt::format("an integer from {} to {}", least, most));
  return std::nullopt;
}

std::optional<double> Parameters::number(const char* name, double least, double most, const char* expected) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (std::isfinite(number) && number >= least && number <= most) return number;
  wrong(name, *value, expected);
  return std::nullopt;
}

std::optional<std::string> Parameters::string(const char* name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  wrong(name, *value, "a string");
  return std::nullopt;
}

const Json* Parameters::object(const char* name) {
  const Json* value = find(name);
  if (value && !value->is_object()) return wrong(name, *value, "an object"), nullptr;
  return value;
}

std::optional<int64_t> Parameters::integerIn(const Json& value, int64_t least, int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMaxInt)) return std::nullopt;
  const auto number = value.get<int64_t>();
  return number >= least && number <= most ? std::optional(number) : std::nullopt;
}

}  // namespace headroom::engine
