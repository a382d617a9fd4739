// SPDX-License-Identifier: Apache-2.0
// Optional members of JSON objects, with a value for what is absent, null or of another type; values in errors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace headroom::engine::text {

inline bool flag(const nlohmann::json& json, const char* name, bool otherwise) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}
inline std::string word(const nlohmann::json& json, const char* name, const std::string& otherwise = {}) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : otherwise;
}
inline int64_t whole(const nlohmann::json& json, const char* name, int64_t otherwise) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}
// The member, or null.
inline const nlohmann::json& member(const nlohmann::json& json, const char* name) {
  static const nlohmann::json nothing;
  if (!json.is_object()) return nothing;
  const auto found = json.find(name);
  return found == json.end() ? nothing : *found;
}

// A value's JSON for an error's text, cut behind about `most` bytes, between characters.
inline std::string shortJson(const nlohmann::json& value, size_t most = 60) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most) + "...";
}

}  // namespace headroom::engine::text
