// SPDX-License-Identifier: Apache-2.0
#include "engine/server/api_error.h"

#include <fmt/format.h>

#include <vector>

namespace headroom::engine {
namespace {

constexpr int kMaxDepth = 128;
constexpr size_t kMaxKeysOfObject = 4096, kMaxKeys = 200'000;  // ordered objects find a key by walking over all

struct TooMuch {
  std::string message;
};

// Length of the valid sequence at the front of `text` (0: invalid), and how many bytes belong to the bad part.
size_t sequenceLength(std::string_view text, size_t& bad) {
  bad = 1;
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  size_t length = 0;
  unsigned low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF)
    length = 2;
  else if (first >= 0xE0 && first <= 0xEF)
    length = 3, low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
  else if (first >= 0xF0 && first <= 0xF4)
    length = 4, low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
  else
    return 0;
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return 0;
    bad = i + 1;
    low = 0x80, high = 0xBF;
  }
  return length;
}

}  // namespace

bool isValidUtf8(std::string_view text) {
  size_t bad = 0;
  while (!text.empty()) {
    const size_t length = sequenceLength(text, bad);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string validUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  size_t bad = 0;
  while (!text.empty()) {
    const size_t length = sequenceLength(text, bad);
    if (length)
      valid += text.substr(0, length);
    else
      valid += "\xEF\xBF\xBD";
    text.remove_prefix(length ? length : bad);
  }
  return valid;
}

void appendJsonString(std::string& out, std::string_view text) {
  out += '"';
  size_t bad = 0;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    size_t length = 1;
    switch (byte) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (byte < 0x20) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
        } else if (byte < 0x80) {
          out += text[0];
        } else if ((length = sequenceLength(text, bad)) != 0) {
          out += text.substr(0, length);
        } else {
          out += "\xEF\xBF\xBD";
          length = bad;
        }
    }
    text.remove_prefix(length);
  }
  out += '"';
}

std::string jsonString(std::string_view text) {
  std::string out;
  appendJsonString(out, text);
  return out;
}

std::string errorJson(const ApiError& error) {
  auto orNull = [](const std::string& text) { return text.empty() ? std::string("null") : jsonString(text); };
  return fmt::format(R"({{"error":{{"message":{},"type":{},"param":{},"code":{}}}}})", jsonString(error.message),
                     jsonString(error.type), orNull(error.param), orNull(error.code));
}

ApiResult<nlohmann::ordered_json> parseJsonObject(std::string_view body) {
  using Json = nlohmann::ordered_json;
  auto refuse = [](std::string message) {
    return tl::unexpected(ApiError{400, std::move(message), {}, "invalid_request_error", {}});
  };
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return refuse("The request body is empty (byte 0); expected a JSON object.");
  std::vector<size_t> keysOfOpenObjects;
  size_t keys = 0;
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json&) {
    switch (event) {
      case Json::parse_event_t::array_start:
      case Json::parse_event_t::object_start:
        if (depth > kMaxDepth) throw TooMuch{fmt::format("The request body nests deeper than {} levels.", kMaxDepth)};
        if (event == Json::parse_event_t::object_start) keysOfOpenObjects.push_back(0);
        break;
      case Json::parse_event_t::object_end:
        keysOfOpenObjects.pop_back();
        break;
      case Json::parse_event_t::key:
        if (++keysOfOpenObjects.back() > kMaxKeysOfObject)
          throw TooMuch{fmt::format("The request body has an object of more than {} keys.", kMaxKeysOfObject)};
        if (++keys > kMaxKeys) throw TooMuch{fmt::format("The request body has more than {} keys.", kMaxKeys)};
        break;
      default:
        break;
    }
    return true;
  };
  try {
    Json value = Json::parse(body.begin(), body.end(), watch);
    if (!value.is_object()) return refuse(fmt::format("The request body is a JSON {}; expected an object.", value.type_name()));
    return value;
  } catch (const TooMuch& problem) {
    return refuse(problem.message);
  } catch (const nlohmann::json::exception& problem) {
    std::string_view text = problem.what();
    if (const size_t end = text.find("] "); text.starts_with("[json.exception") && end != std::string_view::npos)
      text.remove_prefix(end + 2);
    return refuse("The request body is not valid JSON: " + validUtf8(text));
  }
}

}  // namespace headroom::engine
