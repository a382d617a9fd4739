// SPDX-License-Identifier: Apache-2.0
// The filters of jinja2 that work on text and numbers, and Transformers' tojson; those of sequences are in
// jinja_sequence_filters.cpp.
#include "engine/text/jinja_filters.h"

#include "engine/text/jinja_text.h"
#include "engine/text/unicode.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>

namespace headroom::engine::jinja {
namespace {

std::string escaped(const std::string& source) {
  std::string out;
  for (char c : source) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '\'')
      out += "&#39;";
    else if (c == '"')
      out += "&#34;";
    else
      out += c;
  }
  return out;
}

Value tojson(Interpreter&, const Value& input, Call& call) {
  JsonStyle style;
  style.ascii = call.truth(0, "ensure_ascii", false);
  if (const Value* indent = call.get(1, "indent"); indent && !indent->isNone()) {
    style.lines = true;
    style.indent = indent->isInteger() ? std::string(static_cast<size_t>(std::clamp<int64_t>(indent->integer(), 0, 64)), ' ')
                                       : indent->str();
    style.itemSeparator = ",";
  }
  if (const Value* separators = call.get(2, "separators");
      separators && separators->isSequence() && separators->items().size() == 2) {
    style.itemSeparator = separators->items()[0].str();
    style.keySeparator = separators->items()[1].str();
  }
  style.sorted = call.truth(3, "sort_keys", false);
  return Value(toJson(input, style));
}

Value indent(Interpreter&, const Value& input, Call& call) {
  const Value* width = call.get(0, "width");
  const std::string prefix =
      width && width->isString()
          ? width->string()
          : std::string(static_cast<size_t>(std::clamp<int64_t>(call.integer(0, "width", 4), 0, 1000)), ' ');
  const bool first = call.truth(1, "first", false), blank = call.truth(2, "blank", false);
  std::string source = input.str() + "\n";  // so that a newline at the end begins one more line
  std::string out;
  const auto lines = splitLines(source, false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i) out += '\n';
    if ((i ? blank || !lines[i].empty() : first)) out += prefix;
    out += lines[i];
    checkSize(out.size());
  }
  return Value(std::move(out));
}

Value toInteger(Interpreter&, const Value& input, Call& call) {
  const Value* otherwise = call.get(0, "default");
  const Value fallback = otherwise ? *otherwise : Value(0);
  if (input.isInteger()) return Value(input.integer());
  if (input.is(Kind::real))
    return std::isfinite(input.real()) && std::fabs(input.real()) < 9.2e18 ? Value(static_cast<int64_t>(input.real())) : fallback;
  if (!input.isString()) return fallback;
  std::string text = strip(input.string(), std::nullopt, true, true);
  int base = static_cast<int>(call.integer(1, "base", 10));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.erase(0, 1);
  if (text.starts_with('-') || text.starts_with('+')) return fallback;
  if (text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == (base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : 0))
    text.erase(0, 2);
  std::erase(text, '_');
  int64_t value = 0;
  if (base >= 2 && base <= 36) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error == std::errc() && end == text.data() + text.size()) return Value(negative ? -value : value);
  }
  double real = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), real);
  if (error == std::errc() && end == text.data() + text.size() && std::fabs(real) < 9.2e18)
    return Value(static_cast<int64_t>(negative ? -real : real));
  return fallback;
}

Value toReal(Interpreter&, const Value& input, Call& call) {
  const Value* otherwise = call.get(0, "default");
  const Value fallback = otherwise ? *otherwise : Value(0.0);
  if (input.isNumber()) return Value(input.real());
  if (!input.isString()) return fallback;
  std::string text = strip(input.string(), std::nullopt, true, true);
  if (text.starts_with('+')) text.erase(0, text.starts_with("+-") ? 0 : 1);
  double real = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), real);
  return error == std::errc() && end == text.data() + text.size() ? Value(real) : fallback;
}

// To a multiple of 10 ** -precision, ties to the even one, as Python rounds an int.
int64_t roundedToTens(int64_t value, int64_t precision) {
  if (precision < -19) return 0;
  uint64_t scale = 1;
  for (int64_t i = precision; i < 0; ++i) scale *= 10;
  const uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const uint64_t rest = size % scale, above = scale - rest;
  uint64_t out = size / scale;
  if (rest > above || (rest == above && out % 2 != 0)) ++out;
  if (__builtin_mul_overflow(out, scale, &out) || out > static_cast<uint64_t>(INT64_MAX)) throw Fault("integer too large");
  return value < 0 ? -static_cast<int64_t>(out) : static_cast<int64_t>(out);
}

Value rounded(Interpreter&, const Value& input, Call& call) {
  input.need();
  if (!input.isNumber()) throw Fault("type " + input.typeName() + " doesn't define __round__ method");
  const int64_t precision = call.integer(0, "precision", 0);
  const std::string how = call.text(1, "method", "common");
  if (how != "common" && how != "ceil" && how != "floor") throw Fault("method must be common, ceil or floor");
  if (how == "common") {
    if (input.isInteger()) return precision >= 0 ? Value(input.integer()) : Value(roundedToTens(input.integer(), precision));
    // A double has no digit behind the 1074th, and none before the 309th.
    if (precision > 1100 || !std::isfinite(input.real())) return Value(input.real());
    if (precision < -310) return Value(std::copysign(0.0, input.real()));
    if (precision >= 0) return Value(std::strtod(fmt::format("{:.{}f}", input.real(), precision).c_str(), nullptr));
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    return Value(std::nearbyint(input.real() / scale) * scale);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  return Value((how == "ceil" ? std::ceil(input.real() * scale) : std::floor(input.real() * scale)) / scale);
}

Value absolute(Interpreter&, const Value& input, Call&) {
  input.need();
  if (input.is(Kind::real)) return Value(std::fabs(input.real()));
  if (!input.isInteger() || input.integer() == INT64_MIN) throw Fault("bad operand type for abs(): '" + input.typeName() + "'");
  return Value(std::abs(input.integer()));
}

Value orDefault(Interpreter&, const Value& input, Call& call) {
  const Value* otherwise = call.get(0, "default_value");
  const bool replaces = input.isUndefined() || (call.truth(1, "boolean", false) && !input.truth());
  return replaces ? (otherwise ? *otherwise : Value("")) : input;
}

// jinja2's own: a word begins after spaces, hyphens and opening brackets.
Value title(Interpreter&, const Value& input, Call&) {
  const std::string source = input.str();
  std::string out;
  size_t begin = 0;
  const auto put = [&](size_t end) {
    if (end <= begin) return;
    const std::string word = source.substr(begin, end - begin);
    const size_t first = byteOffset(word, 1);
    out += text::upperText(word.substr(0, first)) + text::lowerText(word.substr(first));
  };
  for (size_t at = 0; at < source.size();) {
    const size_t start = at;
    const char32_t c = text::nextCharacter(source, at);
    if (!isPythonSpace(c) && c != '-' && c != '(' && c != '{' && c != '[' && c != '<') continue;
    put(start);
    out.append(source, start, at - start);
    begin = at;
  }
  put(source.size());
  return Value(std::move(out));
}

Value truncate(Interpreter&, const Value& input, Call& call) {
  const std::string source = input.str();
  // No text is longer than kMostBytes, so neither bound need be.
  const auto bounded = [](int64_t characters) { return std::clamp<int64_t>(characters, -(int64_t{1} << 32), int64_t{1} << 32); };
  const int64_t most = bounded(call.integer(0, "length", 255));
  const bool killWords = call.truth(1, "killwords", false);
  const std::string end = call.text(2, "end", "...");
  const int64_t leeway = bounded(call.integer(3, "leeway", 5));
  if (text::countCharacters(source) <= most + leeway) return Value(source);
  std::string kept = source.substr(0, byteOffset(source, std::max<int64_t>(0, most - text::countCharacters(end))));
  if (!killWords && kept.rfind(' ') != std::string::npos) kept = kept.substr(0, kept.rfind(' '));
  return Value(kept + end);
}

Value wordWrap(Interpreter&, const Value& input, Call& call) {
  const int64_t width = std::max<int64_t>(1, call.integer(0, "width", 79));
  const std::string newline = call.text(2, "wrapstring", "\n");
  std::string out;
  bool firstLine = true;
  for (const std::string& line : splitLines(input.str(), false)) {
    if (!firstLine) out += newline;
    firstLine = false;
    checkSize(out.size());
    int64_t column = 0;
    for (const std::string& word : splitAtSpaces(line, -1, false)) {
      const int64_t length = text::countCharacters(word);
      if (column > 0 && column + 1 + length > width) {
        out += newline;
        column = 0;
      }
      out += (column ? " " : "") + word;
      checkSize(out.size());
      column += length + (column ? 1 : 0);
    }
  }
  return Value(std::move(out));
}

Value urlEncode(Interpreter&, const Value& input, Call&) {
  std::string out;
  for (char c : input.str()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return Value(std::move(out));
}

Value stripTags(Interpreter&, const Value& input, Call&) {
  std::string out;
  bool inside = false;
  for (char c : input.str()) {
    if (c == '<')
      inside = true;
    else if (c == '>' && inside)
      inside = false;
    else if (!inside)
      out += c;
  }
  std::string joined;
  for (const std::string& word : splitAtSpaces(out, -1, false)) joined += (joined.empty() ? "" : " ") + word;
  return Value(std::move(joined));
}

int64_t countWords(const std::string& source) {
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; at < source.size();) {
    const bool word = text::isWord(text::nextCharacter(source, at));
    count += word && !inside;
    inside = word;
  }
  return count;
}

}  // namespace

const std::map<std::string_view, Filter>& textFilters() {
  static const std::map<std::string_view, Filter> filters = {
      {"tojson", tojson},
      {"indent", indent},
      {"int", toInteger},
      {"float", toReal},
      {"round", rounded},
      {"abs", absolute},
      {"default", orDefault},
      {"d", orDefault},
      {"title", title},
      {"truncate", truncate},
      {"wordwrap", wordWrap},
      {"urlencode", urlEncode},
      {"striptags", stripTags},
      {"string", [](Interpreter&, const Value& input, Call&) { return Value(input.str()); }},
      {"safe", [](Interpreter&, const Value& input, Call&) { return Value(input.str()); }},
      {"escape", [](Interpreter&, const Value& input, Call&) { return Value(escaped(input.str())); }},
      {"e", [](Interpreter&, const Value& input, Call&) { return Value(escaped(input.str())); }},
      {"forceescape", [](Interpreter&, const Value& input, Call&) { return Value(escaped(input.str())); }},
      {"pprint", [](Interpreter&, const Value& input, Call&) { return Value(input.repr()); }},
      {"upper", [](Interpreter&, const Value& input, Call&) { return Value(text::upperText(input.str())); }},
      {"lower", [](Interpreter&, const Value& input, Call&) { return Value(text::lowerText(input.str())); }},
      {"capitalize", [](Interpreter&, const Value& input, Call&) { return Value(capitalized(input.str())); }},
      {"wordcount", [](Interpreter&, const Value& input, Call&) { return Value(countWords(input.str())); }},
      {"center", [](Interpreter&, const Value& input,
                    Call& call) { return Value(pad(input.str(), call.integer(0, "width", 80), " ", 0.5)); }},
      {"trim",
       [](Interpreter&, const Value& input, Call& call) {
         const Value* characters = call.get(0, "chars");
         return Value(strip(input.str(), characters && !characters->isNone() ? std::optional(characters->str()) : std::nullopt,
                            true, true));
       }},
      {"replace",
       [](Interpreter&, const Value& input, Call& call) {
         return Value(replaced(input.str(), call.need(0, "old", "replace").str(), call.need(1, "new", "replace").str(),
                               call.integer(2, "count", -1)));
       }},
      {"format",
       [](Interpreter&, const Value& input, Call& call) {
         if (call.named.empty()) return Value(percentFormat(input.str(), Value::tuple(call.values)));
         Dict named;
         for (auto& [name, value] : call.named) named.set(Value(name), value);
         return Value(percentFormat(input.str(), Value::dict(std::move(named))));
       }},
      {"attr",
       [](Interpreter&, const Value& input, Call& call) {
         const std::string name = call.need(0, "name", "attr").str();
         Value found = method(input, name);
         if (input.is(Kind::space))
           if (const Value* value = input.entries().findText(name)) found = *value;
         return found.isUndefined() && !found.identity()
                    ? Value::undefined(fmt::format("'{} object' has no attribute '{}'", input.typeName(), name))
                    : found;
       }},
  };
  return filters;
}

Filter findFilter(std::string_view name) {
  for (const auto* filters : {&textFilters(), &sequenceFilters()}) {
    const auto found = filters->find(name);
    if (found != filters->end()) return found->second;
  }
  return nullptr;
}

}  // namespace headroom::engine::jinja
