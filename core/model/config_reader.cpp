// SPDX-License-Identifier: Apache-2.0
#include "core/model/config_reader.h"

#include "core/json_text.h"
#include "core/model/file_head.h"

#include <array>
#include <cmath>

namespace headroom {
namespace {

const nlohmann::json kEmptyObject = nlohmann::json::object();

std::string shortText(const nlohmann::json& value) {
  const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

bool isWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// Replaces the three words of Python's json, outside strings, by what strict JSON has.
std::string withoutPythonWords(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {{"NaN", "null"}, {"Infinity", "1.7976931348623157e308"}};
  std::string result;
  result.reserve(text.size());
  bool inString = false;
  for (size_t i = 0; i < text.size();) {
    if (inString) {
      if (text[i] == '\\' && i + 1 < text.size())
        result += text[i++];
      else if (text[i] == '"')
        inString = false;
      result += text[i++];
      continue;
    }
    if (text[i] == '"') inString = true;
    bool replaced = false;
    for (const auto& [word, value] : kWords) {
      if (!text.substr(i).starts_with(word) || (i + word.size() < text.size() && isWordCharacter(text[i + word.size()])))
        continue;
      if (i > 0 && isWordCharacter(text[i - 1])) continue;
      result += value;
      i += word.size();
      replaced = true;
      break;
    }
    if (!replaced) result += text[i++];
  }
  return result;
}

// An integer, also when it is written as 32.0.
std::optional<int64_t> integerOf(const nlohmann::json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (std::floor(number) != number || std::abs(number) > 9.0e15) return std::nullopt;
  return static_cast<int64_t>(number);
}

// Sub-objects that hold the language model of a model with several parts.
constexpr std::array kTextObjects = {"text_config", "llm_config", "language_config", "thinker_config"};

}  // namespace

nlohmann::json languageModelKeys(const nlohmann::json& outer) {
  for (const char* name : kTextObjects) {
    const auto inner = outer.find(name);
    if (inner == outer.end() || !inner->is_object()) continue;
    nlohmann::json merged = outer;
    merged.erase(name);
    const nlohmann::json text = languageModelKeys(*inner);
    for (const auto& [key, value] : text.items())
      if (!value.is_null() || !merged.contains(key)) merged[key] = value;
    merged["model_type"] = outer.value("model_type", nlohmann::json(nullptr));
    if (merged["model_type"].is_null() && text.contains("model_type")) merged["model_type"] = text["model_type"];
    return merged;
  }
  return outer;
}

std::string languageModelType(const nlohmann::json& outer) {
  for (const char* name : kTextObjects) {
    const auto inner = outer.find(name);
    if (inner == outer.end() || !inner->is_object()) continue;
    if (std::string deeper = languageModelType(*inner); !deeper.empty()) return deeper;
    const auto type = inner->find("model_type");
    return type != inner->end() && type->is_string() ? type->get<std::string>() : std::string();
  }
  return {};
}

Result<nlohmann::json> parsePythonJson(std::string_view text, const std::string& where) {
  if (auto foreign = explainForeignFile(text.substr(0, 256), static_cast<int64_t>(text.size()), where, "a JSON object"))
    return tl::unexpected(*foreign);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (isNestedTooDeep(text)) return failure(where, kTooDeepJson, "a JSON object", "is this the right file? fetch it again");
  nlohmann::json value = readJsonText(text);
  if (value.is_discarded()) {
    const std::string strict = withoutPythonWords(text);
    try {
      value = nlohmann::json::parse(strict);
    } catch (const nlohmann::json::exception& exception) {
      const std::string what = exception.what();
      const size_t detail = what.find("] ");
      return failure(where, detail == std::string::npos ? what : what.substr(detail + 2), "valid JSON",
                     "the file is damaged or truncated; fetch it again");
    }
  }
  if (!value.is_object()) return failure(where, fmt::format("JSON of type {}", value.type_name()), "a JSON object");
  return value;
}

const nlohmann::json* ConfigReader::find(Keys keys) const {
  if (!m_object.is_object()) return nullptr;
  for (std::string_view key : keys) {
    const auto found = m_object.find(key);
    if (found != m_object.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

std::string ConfigReader::keyFound(Keys keys) const {
  for (std::string_view key : keys)
    if (find({key})) return std::string(key);
  return {};
}

void ConfigReader::fail(std::string_view key, const nlohmann::json& found, std::string expected, std::string next) const {
  fail(Error{fmt::format("{}: {}", m_where, key), shortText(found), std::move(expected), std::move(next)});
}

std::optional<int64_t> ConfigReader::integer(Keys keys, int64_t least, int64_t most) const {
  const auto* value = find(keys);
  if (!value) return std::nullopt;
  const auto number = integerOf(*value);
  if (number && *number >= least && *number <= most) return number;
  fail(keyFound(keys), *value, fmt::format("an integer from {} to {}", least, most));
  return std::nullopt;
}

std::optional<double> ConfigReader::number(Keys keys, double least, double most) const {
  const auto* value = find(keys);
  if (!value) return std::nullopt;
  if (value->is_number() && value->get<double>() >= least && value->get<double>() <= most) return value->get<double>();
  fail(keyFound(keys), *value, fmt::format("a number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<bool> ConfigReader::flag(Keys keys) const {
  const auto* value = find(keys);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  if (value->is_number_integer() && (*value == 0 || *value == 1)) return *value == 1;
  fail(keyFound(keys), *value, "true or false");
  return std::nullopt;
}

std::optional<std::string> ConfigReader::text(Keys keys) const {
  const auto* value = find(keys);
  if (!value) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  fail(keyFound(keys), *value, "a string");
  return std::nullopt;
}

std::vector<int64_t> ConfigReader::integers(Keys keys, int64_t least, int64_t most) const {
  const auto* value = find(keys);
  std::vector<int64_t> result;
  if (!value) return result;
  const std::string expected = fmt::format("a list of integers from {} to {}", least, most);
  if (!value->is_array()) {
    fail(keyFound(keys), *value, expected);
    return result;
  }
  for (const auto& element : *value) {
    const auto number = element.is_boolean() ? std::optional<int64_t>(element.get<bool>()) : integerOf(element);
    if (!number || *number < least || *number > most) {
      fail(keyFound(keys), element, expected);
      return {};
    }
    result.push_back(*number);
  }
  return result;
}

std::vector<double> ConfigReader::numbers(Keys keys) const {
  const auto* value = find(keys);
  std::vector<double> result;
  if (!value) return result;
  if (value->is_array())
    for (const auto& element : *value)
      if (element.is_number()) result.push_back(element.get<double>());
  if (!value->is_array() || result.size() != value->size()) {
    fail(keyFound(keys), *value, "a list of numbers");
    return {};
  }
  return result;
}

std::vector<std::string> ConfigReader::texts(Keys keys) const {
  const auto* value = find(keys);
  std::vector<std::string> result;
  if (!value) return result;
  if (value->is_array())
    for (const auto& element : *value)
      if (element.is_string()) result.push_back(element.get<std::string>());
  if (!value->is_array() || result.size() != value->size()) {
    fail(keyFound(keys), *value, "a list of strings");
    return {};
  }
  return result;
}

ConfigReader ConfigReader::object(std::string_view key) const {
  const auto* value = find({key});
  if (value && !value->is_object()) {
    fail(key, *value, "an object");
    value = nullptr;
  }
  return ConfigReader(value ? *value : kEmptyObject, fmt::format("{}: {}", m_where, key), m_sink);
}

}  // namespace headroom
