// SPDX-License-Identifier: Apache-2.0
// Python's two ways to format: "%s" % x and "{}".format(x).
#include "engine/text/jinja_interpreter.h"
#include "engine/text/jinja_text.h"
#include "engine/text/unicode.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <optional>

namespace headroom::engine::jinja {
namespace {

struct Spec {
  std::string fill = " ";
  char align = 0, sign = '-', grouping = 0, type = 0;
  bool alternative = false, zero = false;
  int64_t width = 0, precision = -1;
};

int64_t digits(const std::string& text, size_t& at) {
  int64_t value = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9')
    value = std::min<int64_t>(value * 10 + (text[at++] - '0'), 1 << 20);
  return value;
}

// Digits of a number without its sign.
std::string magnitude(const Value& value, const Spec& spec) {
  const char type = spec.type;
  if (std::string_view("eEfFgG%").find(type) != std::string_view::npos && type) {
    const double number = std::abs(value.real()) * (type == '%' ? 100 : 1);
    const auto precision = static_cast<int>(std::clamp<int64_t>(spec.precision < 0 ? 6 : spec.precision, 0, 500));
    char out[1024];
    const char pattern[] = {'%', '.', '*', type == '%' ? 'f' : type, 0};
    std::snprintf(out, sizeof out, pattern, precision, number);
    return std::string(out) + (type == '%' ? "%" : "");
  }
  if (value.is(Kind::real)) {
    if (spec.precision >= 0) {
      char out[1024];
      std::snprintf(out, sizeof out, "%.*g", static_cast<int>(std::clamp<int64_t>(spec.precision, 1, 500)),
                    std::abs(value.real()));
      return out;
    }
    return formatReal(std::abs(value.real()));
  }
  const uint64_t number =
      value.integer() < 0 ? 0 - static_cast<uint64_t>(value.integer()) : static_cast<uint64_t>(value.integer());
  switch (type) {
    case 'x':
      return (spec.alternative ? "0x" : "") + fmt::format("{:x}", number);
    case 'X':
      return (spec.alternative ? "0X" : "") + fmt::format("{:X}", number);
    case 'o':
      return (spec.alternative ? "0o" : "") + fmt::format("{:o}", number);
    case 'b':
      return (spec.alternative ? "0b" : "") + fmt::format("{:b}", number);
    default:
      return std::to_string(number);
  }
}

std::string number(const Value& value, const Spec& spec) {
  std::string text = magnitude(value, spec);
  if (spec.grouping) {
    size_t end = 0;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    for (size_t at = end; at > 3; at -= 3) text.insert(at - 3, 1, spec.grouping);
  }
  const bool negative = value.is(Kind::real) ? std::signbit(value.real()) : value.integer() < 0;
  const std::string sign = negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
  if (spec.align == '=' || (spec.zero && !spec.align))
    return sign + pad(text, spec.width - static_cast<int64_t>(sign.size()), spec.zero ? "0" : spec.fill, 1.0);
  text = sign + text;
  const char align = spec.align ? spec.align : '>';
  return align == '^' ? pad(pad(text, (spec.width + text::countCharacters(text)) / 2, spec.fill, 1.0), spec.width, spec.fill, 0.0)
                      : pad(text, spec.width, spec.fill, align == '<' ? 0.0 : 1.0);
}

std::string aligned(std::string text, const Spec& spec) {
  if (spec.precision >= 0) text = text.substr(0, byteOffset(text, spec.precision));
  const int64_t missing = spec.width - text::countCharacters(text);
  if (spec.align == '^' && missing > 0)
    return pad(pad(text, spec.width - (missing - missing / 2), spec.fill, 1.0), spec.width, spec.fill, 0.0);
  return pad(text, spec.width, spec.fill, spec.align == '>' ? 1.0 : 0.0);
}

Spec parseSpec(const std::string& text) {
  Spec spec;
  size_t at = 0;
  const auto isAlign = [](char c) { return c == '<' || c == '>' || c == '=' || c == '^'; };
  if (!text.empty()) {
    const size_t first = byteOffset(text, 1);
    if (first < text.size() && isAlign(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      at = first + 1;
    } else if (isAlign(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  if (at < text.size() && std::string_view("+- ").find(text[at]) != std::string_view::npos) spec.sign = text[at++];
  if (at < text.size() && text[at] == '#') spec.alternative = ++at > 0;
  if (at < text.size() && text[at] == '0') spec.zero = ++at > 0;
  spec.width = digits(text, at);
  if (at < text.size() && (text[at] == ',' || text[at] == '_')) spec.grouping = text[at++];
  if (at < text.size() && text[at] == '.') spec.precision = digits(text, ++at);
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) throw Fault("Invalid format specifier '" + text + "'");
  return spec;
}

std::string formatted(const Value& value, const std::string& specText) {
  if (specText.empty()) return value.str();
  const Spec spec = parseSpec(specText);
  if (value.is(Kind::boolean) && !spec.type) return aligned(value.str(), spec);
  if (value.isNumber() && spec.type != 's') return number(value, spec);
  if (spec.type && spec.type != 's')
    throw Fault(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type, value.typeName()));
  if (!value.isString()) throw Fault(fmt::format("unsupported format string passed to {}.__format__", value.typeName()));
  return aligned(value.str(), spec);
}

}  // namespace

std::string percentFormat(const std::string& pattern, const Value& arguments) {
  const bool several = arguments.is(Kind::tuple);
  std::string out;
  size_t used = 0;
  bool byName = false;
  const auto nextArgument = [&]() -> Value {
    if (several ? used >= arguments.items().size() : used > 0) throw Fault("not enough arguments for format string");
    ++used;
    return several ? arguments.items()[used - 1] : arguments;
  };
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '%') {
      out += pattern[at++];
      continue;
    }
    Spec spec;
    std::optional<Value> named;
    if (++at < pattern.size() && pattern[at] == '(') {
      const size_t close = pattern.find(')', at);
      if (close == std::string::npos) throw Fault("incomplete format key");
      if (!arguments.is(Kind::dict)) throw Fault("format requires a mapping");
      const std::string name = pattern.substr(at + 1, close - at - 1);
      const Value* found = arguments.entries().findText(name);
      if (!found) throw Fault(pythonQuoted(name));
      named = *found;
      byName = true;
      at = close + 1;
    }
    for (; at < pattern.size() && std::string_view("#0- +").find(pattern[at]) != std::string_view::npos; ++at) {
      if (pattern[at] == '#') spec.alternative = true;
      if (pattern[at] == '0') spec.zero = true;
      if (pattern[at] == '-') spec.align = '<';
      if (pattern[at] == ' ' || pattern[at] == '+') spec.sign = pattern[at];
    }
    if (at < pattern.size() && pattern[at] == '*') {
      const Value width = nextArgument();
      if (!width.isInteger()) throw Fault("* wants int");
      if (width.integer() < 0) spec.align = '<';
      spec.width = std::min<int64_t>(std::abs(std::max<int64_t>(width.integer(), -(1 << 20))), 1 << 20);
      ++at;
    } else {
      spec.width = digits(pattern, at);
    }
    if (at < pattern.size() && pattern[at] == '.') spec.precision = digits(pattern, ++at);
    if (at >= pattern.size()) throw Fault("incomplete format");
    const char type = pattern[at++];
    if (type == '%') {
      out += '%';
      continue;
    }
    const Value value = named ? *named : nextArgument();
    if (!spec.align) spec.align = spec.zero ? 0 : '>';
    if (type == 's' || type == 'r') {
      if (!spec.align) spec.align = '>';
      out += aligned(type == 's' ? value.str() : value.repr(), spec);
    } else if (type == 'c') {
      std::string character;
      if (value.isInteger())
        text::appendUtf8(character, static_cast<char32_t>(std::clamp<int64_t>(value.integer(), 0, 0x10FFFF)));
      out += aligned(value.isInteger() ? character : value.str(), spec);
    } else if (std::string_view("diuxXoeEfFgG").find(type) != std::string_view::npos) {
      value.need();
      if (!value.isNumber()) throw Fault(fmt::format("%{} format: a real number is required, not {}", type, value.typeName()));
      spec.type = type == 'i' || type == 'u' ? 'd' : type;
      const bool whole = std::string_view("dxXo").find(spec.type) != std::string_view::npos;
      if (whole && value.is(Kind::real) && !(std::fabs(value.real()) < 0x1p63)) throw Fault("integer too large");
      out += number(whole ? Value(value.isInteger() ? value.integer() : static_cast<int64_t>(value.real())) : value, spec);
    } else {
      throw Fault(fmt::format("unsupported format character '{}'", type));
    }
    checkSize(out.size());
  }
  if (!byName && !arguments.is(Kind::dict) && used < (several ? arguments.items().size() : 1))
    throw Fault("not all arguments converted during string formatting");
  return out;
}

namespace {
// `automatic` is the place of the next {}, counted through the specs that hold arguments themselves.
std::string braceFormat(const std::string& pattern, const Call& call, size_t& automatic, int depth) {
  if (depth > 1) throw Fault("Max string recursion exceeded");
  std::string out;
  for (size_t at = 0; at < pattern.size();) {
    const char c = pattern[at++];
    if ((c == '{' || c == '}') && at < pattern.size() && pattern[at] == c) {
      out += c;
      ++at;
      continue;
    }
    if (c == '}') throw Fault("Single '}' encountered in format string");
    if (c != '{') {
      out += c;
      continue;
    }
    size_t end = at;
    for (int depth = 1; end < pattern.size(); ++end) {
      depth += pattern[end] == '{' ? 1 : pattern[end] == '}' ? -1 : 0;
      if (depth == 0) break;
    }
    if (end >= pattern.size()) throw Fault("expected '}' before end of string");
    std::string field = pattern.substr(at, end - at), spec;
    at = end + 1;
    const size_t colon = field.find(':');
    if (colon != std::string::npos) {
      spec = field.substr(colon + 1);
      field.resize(colon);
    }
    char conversion = 0;
    if (field.size() >= 2 && field[field.size() - 2] == '!') {
      conversion = field.back();
      field.resize(field.size() - 2);
    }
    const size_t nameEnd = std::min(field.find_first_of(".["), field.size());
    const std::string name = field.substr(0, nameEnd);
    const bool place = std::all_of(name.begin(), name.end(), [](char digit) { return digit >= '0' && digit <= '9'; });
    const Value* argument = nullptr;
    if (place) {
      size_t position = 0;
      const size_t index = name.empty() ? automatic++ : static_cast<size_t>(digits(name, position));
      if (index >= call.values.size())
        throw Fault("Replacement index " + std::to_string(index) + " out of range for positional args tuple");
      argument = &call.values[index];
    } else {
      for (const auto& [given, value] : call.named)
        if (given == name) argument = &value;
      if (!argument) throw Fault(pythonQuoted(name));
    }
    if (spec.find_first_of("{}") != std::string::npos) spec = braceFormat(spec, call, automatic, depth + 1);  // {:{width}}
    Value value = *argument;
    for (size_t step = nameEnd; step < field.size();) {
      const bool index = field[step] == '[';
      const size_t stop =
          index ? std::min(field.find(']', step), field.size()) : std::min(field.find_first_of(".[", step + 1), field.size());
      const std::string part = field.substr(step + 1, stop - step - 1);
      size_t position = 0;
      const bool isNumber = index && !part.empty() &&
                            std::all_of(part.begin(), part.end(), [](char digit) { return digit >= '0' && digit <= '9'; });
      value = index ? Interpreter::item(value, isNumber ? Value(digits(part, position)) : Value(part))
                    : Interpreter::attribute(value, part);
      step = stop + (index ? 1 : 0);
    }
    out += conversion == 'r'   ? formatted(Value(value.repr()), spec)
           : conversion == 's' ? formatted(Value(value.str()), spec)
                               : formatted(value, spec);
    checkSize(out.size());
  }
  return out;
}
}  // namespace

std::string braceFormat(const std::string& pattern, const Call& call) {
  size_t automatic = 0;
  return braceFormat(pattern, call, automatic, 0);
}

}  // namespace headroom::engine::jinja
