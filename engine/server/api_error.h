// SPDX-License-Identifier: Apache-2.0
// OpenAI's error object, and the JSON that comes over the wire: bodies of any bytes become a value or such an error.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace headroom::engine {

struct ApiError {
  int status = 400;
  std::string message;
  std::string param;  // empty: null
  std::string type = "invalid_request_error";
  std::string code;  // empty: null
};

template <class T>
using ApiResult = tl::expected<T, ApiError>;

// {"error": {"message", "type", "param", "code"}}
std::string errorJson(const ApiError& error);

// The body as a JSON object. Refuses by position: anything that is not JSON of RFC 8259 in valid UTF-8 (NaN, lone surrogates,
// numbers out of range, text behind the value), nesting deeper than 128 and objects of thousands of keys, so that no body costs
// more than its length.
ApiResult<nlohmann::ordered_json> parseJsonObject(std::string_view body);

// Appends `text` as a JSON string with quotes; invalid UTF-8 becomes U+FFFD.
void appendJsonString(std::string& out, std::string_view text);
std::string jsonString(std::string_view text);
// Invalid UTF-8 as U+FFFD, one for each maximal bad part.
std::string validUtf8(std::string_view text);
bool isValidUtf8(std::string_view text);
// Compact JSON; invalid UTF-8 inside becomes U+FFFD.
template <class Json>
std::string dumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headroom::engine
