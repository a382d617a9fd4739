// SPDX-License-Identifier: Apache-2.0
// Methods of Python's str, dict and list that a sandboxed template may call, and the attributes of `loop`.
#include "engine/text/jinja_interpreter.h"
#include "engine/text/jinja_text.h"
#include "engine/text/unicode.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

namespace headroom::engine::jinja {
namespace {

using TextMethod = Value (*)(const std::string&, Call&);

const std::string& textArgument(const Call& call, size_t place, const char* name, const char* function) {
  const Value& value = call.need(place, name, function);
  value.need();
  if (!value.isString()) throw Fault(fmt::format("{}() argument must be str, not {}", function, value.typeName()));
  return value.string();
}

// The argument, or nothing where it is absent or None.
std::optional<std::string> optionalText(const Call& call, size_t place, const char* name) {
  const Value* value = call.get(place, name);
  if (!value || value->isNone()) return std::nullopt;
  value->need();
  if (!value->isString()) throw Fault("expected str, not " + value->typeName());
  return value->string();
}

// s[start:stop] as bytes, with the place where it begins in characters.
std::string_view window(const std::string& text, const Call& call, size_t first, int64_t& start) {
  const int64_t count = text::countCharacters(text);
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count); };
  start = clamp(call.integer(first, nullptr, 0));
  const int64_t stop = clamp(call.integer(first + 1, nullptr, count));
  const size_t begin = byteOffset(text, start), end = byteOffset(text, std::max(start, stop));
  return std::string_view(text).substr(begin, end - begin);
}

Value find(const std::string& text, Call& call, bool last, bool raises) {
  int64_t start = 0;
  const std::string_view part = window(text, call, 1, start);
  const std::string& wanted = textArgument(call, 0, nullptr, "find");
  const size_t at = last ? findLastText(part, wanted) : findText(part, wanted);
  if (at == std::string_view::npos) {
    if (raises) throw Fault("substring not found");
    return Value(-1);
  }
  return Value(start + text::countCharacters(part.substr(0, at)));
}

bool affix(const std::string& text, Call& call, bool start) {
  const Value& wanted = call.need(0, nullptr, start ? "startswith" : "endswith");
  int64_t offset = 0;
  const std::string_view part = window(text, call, 1, offset);
  wanted.need();
  const auto one = [&](const Value& value) {
    if (!value.isString())
      throw Fault(
          fmt::format("{} first arg must be str or a tuple of str, not {}", start ? "startswith" : "endswith", value.typeName()));
    return start ? part.starts_with(value.string()) : part.ends_with(value.string());
  };
  if (wanted.is(Kind::tuple)) return std::any_of(wanted.items().begin(), wanted.items().end(), one);
  return one(wanted);
}

Value split(const std::string& text, Call& call, bool fromRight) {
  const auto separator = optionalText(call, 0, "sep");
  const int64_t most = call.integer(1, "maxsplit", -1);
  if (separator && separator->empty()) throw Fault("empty separator");
  std::vector<Value> parts;
  for (std::string& part : separator ? splitAt(text, *separator, most, fromRight) : splitAtSpaces(text, most, fromRight))
    parts.emplace_back(std::move(part));
  return Value::list(std::move(parts));
}

Value partition(const std::string& text, Call& call, bool fromRight) {
  const std::string& separator = textArgument(call, 0, nullptr, "partition");
  if (separator.empty()) throw Fault("empty separator");
  const size_t at = fromRight ? findLastText(text, separator) : findText(text, separator);
  if (at == std::string::npos) {
    if (fromRight) return Value::tuple({Value(""), Value(""), Value(text)});
    return Value::tuple({Value(text), Value(""), Value("")});
  }
  return Value::tuple({Value(text.substr(0, at)), Value(separator), Value(text.substr(at + separator.size()))});
}

Value padded(const std::string& text, Call& call, double leftShare) {
  const int64_t width = call.integer(0, nullptr, 0);
  const std::string fill = call.get(1) ? textArgument(call, 1, nullptr, "just") : " ";
  if (text::countCharacters(fill) != 1) throw Fault("The fill character must be exactly one character long");
  return Value(pad(text, width, fill, leftShare));
}

Value join(const std::string& text, Call& call) {
  std::string out;
  bool first = true;
  const Value& list = call.need(0, nullptr, "join");
  list.need();
  int64_t number = 0;
  for (const Value& each : iterate(list)) {
    if (!each.isString()) throw Fault(fmt::format("sequence item {}: expected str instance, {} found", number, each.typeName()));
    if (!first) out += text;
    first = false;
    out += each.string();
    checkSize(out.size());
    ++number;
  }
  return Value(std::move(out));
}

template <bool (*Is)(char32_t)>
Value every(const std::string& text, Call&) {
  for (size_t at = 0; at < text.size();)
    if (!Is(text::nextCharacter(text, at))) return Value(false);
  return Value(!text.empty());
}

const std::map<std::string_view, TextMethod>& textMethods() {
  static const std::map<std::string_view, TextMethod> methods = {
      {"upper", [](const std::string& s, Call&) { return Value(text::upperText(s)); }},
      {"lower", [](const std::string& s, Call&) { return Value(text::lowerText(s)); }},
      {"casefold", [](const std::string& s, Call&) { return Value(text::foldedText(s)); }},
      {"title", [](const std::string& s, Call&) { return Value(titleText(s)); }},
      {"capitalize", [](const std::string& s, Call&) { return Value(capitalized(s)); }},
      {"swapcase", [](const std::string& s, Call&) { return Value(swappedCase(s)); }},
      {"strip", [](const std::string& s, Call& call) { return Value(strip(s, optionalText(call, 0, nullptr), true, true)); }},
      {"lstrip", [](const std::string& s, Call& call) { return Value(strip(s, optionalText(call, 0, nullptr), true, false)); }},
      {"rstrip", [](const std::string& s, Call& call) { return Value(strip(s, optionalText(call, 0, nullptr), false, true)); }},
      {"split", [](const std::string& s, Call& call) { return split(s, call, false); }},
      {"rsplit", [](const std::string& s, Call& call) { return split(s, call, true); }},
      {"splitlines",
       [](const std::string& s, Call& call) {
         std::vector<Value> lines;
         for (std::string& line : splitLines(s, call.truth(0, "keepends", false))) lines.emplace_back(std::move(line));
         return Value::list(std::move(lines));
       }},
      {"partition", [](const std::string& s, Call& call) { return partition(s, call, false); }},
      {"rpartition", [](const std::string& s, Call& call) { return partition(s, call, true); }},
      {"startswith", [](const std::string& s, Call& call) { return Value(affix(s, call, true)); }},
      {"endswith", [](const std::string& s, Call& call) { return Value(affix(s, call, false)); }},
      {"removeprefix",
       [](const std::string& s, Call& call) {
         const std::string& prefix = textArgument(call, 0, nullptr, "removeprefix");
         return Value(s.starts_with(prefix) ? s.substr(prefix.size()) : s);
       }},
      {"removesuffix",
       [](const std::string& s, Call& call) {
         const std::string& suffix = textArgument(call, 0, nullptr, "removesuffix");
         return Value(s.ends_with(suffix) ? s.substr(0, s.size() - suffix.size()) : s);
       }},
      {"find", [](const std::string& s, Call& call) { return find(s, call, false, false); }},
      {"rfind", [](const std::string& s, Call& call) { return find(s, call, true, false); }},
      {"index", [](const std::string& s, Call& call) { return find(s, call, false, true); }},
      {"rindex", [](const std::string& s, Call& call) { return find(s, call, true, true); }},
      {"count",
       [](const std::string& s, Call& call) {
         int64_t start = 0, count = 0;
         const std::string_view part = window(s, call, 1, start);
         const std::string& wanted = textArgument(call, 0, nullptr, "count");
         if (wanted.empty()) return Value(text::countCharacters(part) + 1);
         for (size_t at = findText(part, wanted); at != std::string_view::npos; at = findText(part, wanted, at + wanted.size()))
           ++count;
         return Value(count);
       }},
      {"replace",
       [](const std::string& s, Call& call) {
         return Value(replaced(s, textArgument(call, 0, "old", "replace"), textArgument(call, 1, "new", "replace"),
                               call.integer(2, "count", -1)));
       }},
      {"join", join},
      {"center", [](const std::string& s, Call& call) { return padded(s, call, 0.5); }},
      {"ljust", [](const std::string& s, Call& call) { return padded(s, call, 0.0); }},
      {"rjust", [](const std::string& s, Call& call) { return padded(s, call, 1.0); }},
      {"zfill",
       [](const std::string& s, Call& call) {
         const size_t sign = !s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0;
         return Value(s.substr(0, sign) + pad(s.substr(sign),
                                              std::max<int64_t>(call.integer(0, nullptr, 0), 0) - static_cast<int64_t>(sign), "0",
                                              1.0));
       }},
      {"expandtabs", [](const std::string& s, Call& call) { return Value(expandedTabs(s, call.integer(0, "tabsize", 8))); }},
      {"format", [](const std::string& s, Call& call) { return Value(braceFormat(s, call)); }},
      {"isspace", every<isPythonSpace>},
      {"isalpha", every<isLetter>},
      {"isalnum", every<isLetterOrDigit>},
      {"isnumeric", every<text::isNumeric>},
      {"isdigit", every<isDigit>},
      {"isdecimal", every<isDecimal>},
      {"isascii",
       [](const std::string& s, Call&) { return Value(std::none_of(s.begin(), s.end(), [](char c) { return c & 0x80; })); }},
      {"islower", [](const std::string& s, Call&) { return Value(isCased(s, false)); }},
      {"isupper", [](const std::string& s, Call&) { return Value(isCased(s, true)); }},
  };
  return methods;
}

Value refused(const Value& object, const std::string& name) {
  return Value::undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, object.typeName()));
}

Value dictMethod(const Value& object, const std::string& name) {
  if (name == "get")
    return Value::function(name, [object](Call& call) {
      const Value* found = object.entries().find(call.need(0, "key", "get"));
      const Value* otherwise = call.get(1, "default");
      return found ? *found : otherwise ? *otherwise : Value::none();
    });
  const int part = name == "keys" ? 0 : name == "values" ? 1 : name == "items" ? 2 : -1;
  if (part >= 0)
    return Value::function(name, [object, part](Call&) {
      std::vector<Value> items;
      for (const auto& [key, value] : object.entries().entries)
        items.push_back(part == 0 ? key : part == 1 ? value : Value::tuple({key, value}));
      return Value::sequence(Kind::view, std::move(items), part == 0 ? "dict_keys" : part == 1 ? "dict_values" : "dict_items");
    });
  if (name == "copy") return Value::function(name, [object](Call&) { return Value::dict(object.entries()); });
  for (std::string_view changes : {"clear", "pop", "popitem", "setdefault", "update"})
    if (name == changes) return refused(object, name);
  return {};
}

Value listMethod(const Value& object, const std::string& name) {
  if (name == "count")
    return Value::function(name, [object](Call& call) {
      const Value& wanted = call.need(0, nullptr, "count");
      return Value(static_cast<int64_t>(
          std::count_if(object.items().begin(), object.items().end(), [&](const Value& each) { return equal(each, wanted); })));
    });
  if (name == "index")
    return Value::function(name, [object](Call& call) {
      const Value& wanted = call.need(0, nullptr, "index");
      for (size_t i = 0; i < object.items().size(); ++i)
        if (equal(object.items()[i], wanted)) return Value(static_cast<int64_t>(i));
      throw Fault(wanted.repr() + " is not in list");
    });
  if (object.is(Kind::list)) {
    if (name == "copy") return Value::function(name, [object](Call&) { return Value::list(object.items()); });
    for (std::string_view changes : {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"})
      if (name == changes) return refused(object, name);
  }
  return {};
}

Value loopAttribute(const Value& object, const std::string& name) {
  Loop& loop = object.loopState();
  const auto count = static_cast<int64_t>(loop.items.size());
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "index0") return Value(loop.index0);
  if (name == "revindex") return Value(count - loop.index0);
  if (name == "revindex0") return Value(count - loop.index0 - 1);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.index0 + 1 == count);
  if (name == "length") return Value(count);
  if (name == "depth") return Value(loop.depth0 + 1);
  if (name == "depth0") return Value(loop.depth0);
  if (name == "previtem") return loop.index0 > 0 ? loop.items[loop.index0 - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem")
    return loop.index0 + 1 < count ? loop.items[loop.index0 + 1] : Value::undefined("there is no next item");
  if (name == "cycle")
    return Value::function(name, [object](Call& call) {
      if (call.values.empty()) throw Fault("no items for cycling given");
      return call.values[static_cast<size_t>(object.loopState().index0) % call.values.size()];
    });
  if (name == "changed")
    return Value::function(name, [object](Call& call) {
      Loop& state = object.loopState();
      if (!state.anyChanged) state.willKeep();
      const bool same = state.anyChanged && equal(Value::tuple(state.lastChanged), Value::tuple(call.values));
      state.lastChanged = call.values;
      state.anyChanged = true;
      return Value(!same);
    });
  return {};
}

}  // namespace

Value method(const Value& object, const std::string& name) {
  switch (object.kind()) {
    case Kind::string: {
      const auto found = textMethods().find(name);
      if (found == textMethods().end()) return {};
      return Value::function(name, [object, run = found->second](Call& call) {
        spend(stepsOf(object));
        return run(object.string(), call);
      });
    }
    case Kind::dict:
      return dictMethod(object, name);
    case Kind::list:
    case Kind::tuple:
      return listMethod(object, name);
    case Kind::loop:
      return loopAttribute(object, name);
    case Kind::real:
      if (name == "is_integer")
        return Value::function(
            name, [object](Call&) { return Value(std::isfinite(object.real()) && object.real() == std::trunc(object.real())); });
      return {};
    case Kind::function:
      if (name == "name") return Value(object.function().name);
      return {};
    default:
      return {};
  }
}

}  // namespace headroom::engine::jinja
