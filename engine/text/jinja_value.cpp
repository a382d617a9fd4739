// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja_value.h"

#include "engine/text/jinja_text.h"
#include "engine/text/unicode.h"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace headroom::engine::jinja {

void destroyInTurn(void* object, void (*destroy)(void*)) {
  constexpr int kDeepestEnd = 50;
  thread_local int depth = 0;
  thread_local std::vector<std::pair<void*, void (*)(void*)>> waiting;
  if (depth == kDeepestEnd) {
    waiting.emplace_back(object, destroy);
    return;
  }
  ++depth;
  destroy(object);
  while (depth == 1 && !waiting.empty()) {
    const auto [next, end] = waiting.back();
    waiting.pop_back();
    end(next);
  }
  --depth;
}

void checkSize(size_t bytes) {
  if (bytes > kMostBytes) throw Fault(fmt::format("the template makes more than {} MiB of text", kMostBytes >> 20));
}

namespace {
thread_local WorkLimit* workLimit = nullptr;
}  // namespace

WorkLimit::WorkLimit(int64_t steps) : m_left(steps), m_outer(std::exchange(workLimit, this)) {}
WorkLimit::~WorkLimit() { workLimit = m_outer; }

void spend(int64_t steps) {
  if (workLimit && (workLimit->m_left -= steps) < 0) throw WorkFault("the template runs too long");
}

int64_t stepsOf(const Value& value) {
  if (value.isString()) return stepsOfText(value.string().size());
  if (value.isSequence()) return stepsOfItems(value.items().size());
  if (value.is(Kind::dict) || value.is(Kind::space)) return stepsOfItems(value.entries().entries.size());
  return 0;
}

namespace {
void checkDepth(int depth) {
  if (depth > kDeepest) throw Fault("values nest too deep");
}

int compareNumbers(const Value& a, const Value& b) {
  if (a.isInteger() && b.isInteger()) return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  return a.real() < b.real() ? -1 : a.real() > b.real();
}

std::string joined(const std::vector<Value>& items, int depth) {
  std::string text;
  for (const Value& item : items) {
    if (!text.empty()) text += ", ";
    text += item.repr(depth + 1);
    checkSize(text.size());
  }
  return text;
}
}  // namespace

const Value* Dict::findText(std::string_view key) const {
  spend(stepsOfItems(entries.size()));
  for (const auto& [name, value] : entries)
    if (name.isString() && name.string() == key) return &value;
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.isString()) return findText(key.string());
  if (key.is(Kind::list) || key.is(Kind::dict)) throw Fault("unhashable type: '" + key.typeName() + "'");
  for (const auto& [name, value] : entries)
    if (equal(name, key)) return &value;
  return nullptr;
}

void Dict::set(Value key, Value value) {
  if (const Value* found = find(key))
    *const_cast<Value*>(found) = std::move(value);
  else
    entries.emplace_back(std::move(key), std::move(value));
}

Value Value::fromJson(const nlohmann::ordered_json& json, int depth) {
  checkDepth(depth);
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::boolean:
      return Value(json.get<bool>());
    case Type::number_integer:
      return Value(json.get<int64_t>());
    case Type::number_unsigned: {
      const auto value = json.get<uint64_t>();
      return value > static_cast<uint64_t>(INT64_MAX) ? Value(static_cast<double>(value)) : Value(static_cast<int64_t>(value));
    }
    case Type::number_float:
      return Value(json.get<double>());
    case Type::string:
      return Value(json.get_ref<const std::string&>());
    case Type::array: {
      std::vector<Value> items;
      for (const auto& item : json) items.push_back(fromJson(item, depth + 1));
      return list(std::move(items));
    }
    case Type::object: {
      Dict entries;
      for (const auto& [key, item] : json.items()) entries.entries.emplace_back(Value(key), fromJson(item, depth + 1));
      return dict(std::move(entries));
    }
    default:
      return none();
  }
}

bool Value::truth() const {
  switch (m_kind) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return m_integer != 0;
    case Kind::real:
      return m_real != 0;
    case Kind::string:
      return !string().empty();
    case Kind::list:
    case Kind::tuple:
    case Kind::view:
    case Kind::range:
      return !items().empty();
    case Kind::dict:
      return !entries().entries.empty();
    default:
      return true;
  }
}

std::string Value::typeName() const {
  switch (m_kind) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::view:
    case Kind::generator:
      return sequenceObject().name;
    case Kind::range:
      return "range";
    case Kind::dict:
      return "dict";
    case Kind::space:
      return "Namespace";
    case Kind::function:
      return "function";
    case Kind::loop:
      return "LoopContext";
  }
  return "object";
}

std::string Value::str() const { return isString() ? string() : isUndefined() ? std::string() : repr(); }

std::string Value::repr(int depth) const {
  checkDepth(depth);
  switch (m_kind) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "None";
    case Kind::boolean:
      return m_integer ? "True" : "False";
    case Kind::integer:
      return std::to_string(m_integer);
    case Kind::real:
      return formatReal(m_real);
    case Kind::string:
      return pythonQuoted(string());
    case Kind::list:
      return "[" + joined(items(), depth) + "]";
    case Kind::tuple:
      return "(" + joined(items(), depth) + (items().size() == 1 ? ",)" : ")");
    case Kind::view:
      return std::string(sequenceObject().name) + "([" + joined(items(), depth) + "])";
    case Kind::range: {
      const Sequence& range = sequenceObject();
      return fmt::format("range({}, {}{})", range.start, range.stop, range.step == 1 ? "" : ", " + std::to_string(range.step));
    }
    case Kind::dict: {
      std::string text = "{";
      for (const auto& [key, value] : entries().entries) {
        if (text.size() > 1) text += ", ";
        text += key.repr(depth + 1) + ": " + value.repr(depth + 1);
        checkSize(text.size());
      }
      return text + "}";
    }
    case Kind::function:
      return "<function " + function().name + ">";
    case Kind::loop:
      return fmt::format("<LoopContext {}/{}>", loopState().index0 + 1, loopState().items.size());
    case Kind::space: {
      std::string text = "<Namespace {";
      for (const auto& [key, value] : entries().entries) {
        text += (text.back() == '{' ? "" : ", ") + key.repr(depth + 1) + ": " + value.repr(depth + 1);
        checkSize(text.size());
      }
      return text + "}>";
    }
    case Kind::generator:
      return "<generator object>";
  }
  return {};
}

std::string formatReal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char shortest[40];
  const auto end = std::to_chars(shortest, shortest + sizeof shortest, value, std::chars_format::scientific).ptr;
  // d.ddde±xx: Python writes it plain for exponents from -4 to 15.
  const std::string text(shortest, end);
  const size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent < -4 || exponent > 15) return text;
  std::string digits;
  for (char c : text.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  std::string out = text[0] == '-' ? "-" : "";
  const int count = static_cast<int>(digits.size());
  if (exponent < 0) return out + "0." + std::string(-exponent - 1, '0') + digits;
  if (count <= exponent + 1) return out + digits + std::string(exponent + 1 - count, '0') + ".0";
  return out + digits.substr(0, exponent + 1) + "." + digits.substr(exponent + 1);
}

std::string pythonQuoted(std::string_view source) {
  const bool doubled = source.find('\'') != std::string_view::npos && source.find('"') == std::string_view::npos;
  const char quote = doubled ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < source.size();) {
    const size_t start = at;
    const char32_t c = text::nextCharacter(source, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (c == ' ' || !(U_GET_GC_MASK(static_cast<UChar32>(c)) & (U_GC_C_MASK | U_GC_Z_MASK))) {
      out.append(source, start, at - start);
    } else {
      out += c < 0x100     ? fmt::format("\\x{:02x}", static_cast<uint32_t>(c))
             : c < 0x10000 ? fmt::format("\\u{:04x}", static_cast<uint32_t>(c))
                           : fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  return out + quote;
}

bool equal(const Value& a, const Value& b, int depth) {
  checkDepth(depth);
  spend(1);
  if (a.isNumber() && b.isNumber()) return compareNumbers(a, b) == 0 && !(a.real() != a.real());
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      if (a.string().size() != b.string().size()) return false;
      spend(stepsOfText(a.string().size()));
      return a.string() == b.string();
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
    case Kind::view: {
      if (a.items().size() != b.items().size()) return false;
      for (size_t i = 0; i < a.items().size(); ++i)
        if (!equal(a.items()[i], b.items()[i], depth + 1)) return false;
      return true;
    }
    case Kind::dict: {
      if (a.entries().entries.size() != b.entries().entries.size()) return false;
      for (const auto& [key, value] : a.entries().entries) {
        const Value* other = b.entries().find(key);
        if (!other || !equal(value, *other, depth + 1)) return false;
      }
      return true;
    }
    default:
      return a.identity() == b.identity();
  }
}

bool less(const Value& a, const Value& b, const char* sign, int depth) {
  checkDepth(depth);
  spend(1);
  a.need();
  b.need();
  if (a.isNumber() && b.isNumber()) return compareNumbers(a, b) < 0;
  if (a.isString() && b.isString()) {
    spend(stepsOfText(std::min(a.string().size(), b.string().size())));
    return a.string() < b.string();
  }
  if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    for (size_t i = 0; i < a.items().size() && i < b.items().size(); ++i)
      if (!equal(a.items()[i], b.items()[i])) return less(a.items()[i], b.items()[i], sign, depth + 1);
    return a.items().size() < b.items().size();
  }
  throw Fault(fmt::format("'{}' not supported between instances of '{}' and '{}'", sign, a.typeName(), b.typeName()));
}

bool contains(const Value& container, const Value& item) {
  if (container.isString()) {
    item.need();
    if (!item.isString()) throw Fault("'in <string>' requires string as left operand, not " + item.typeName());
    spend(stepsOf(container));
    return findText(container.string(), item.string()) != std::string::npos;
  }
  if (container.is(Kind::dict)) return container.entries().find(item) != nullptr;
  if (!container.isSequence() && !container.isUndefined())
    throw Fault("argument of type '" + container.typeName() + "' is not iterable");
  for (const Value& each : iterate(container))
    if (equal(each, item)) return true;
  return false;
}

std::vector<Value> iterate(const Value& value) {
  if (value.isUndefined()) return {};
  if (value.isString())
    spend(stepsOfItems(value.string().size()));
  else
    spend(stepsOf(value));
  if (value.is(Kind::generator)) {  // yields once
    auto& sequence = const_cast<Sequence&>(value.sequenceObject());
    return std::exchange(sequence.items, {});
  }
  if (value.isSequence()) return value.items();
  std::vector<Value> items;
  if (value.isString()) {
    const std::string& all = value.string();
    checkSize(all.size() * sizeof(Value));
    for (size_t at = 0; at < all.size();) {
      const size_t start = at;
      text::nextCharacter(all, at);
      items.emplace_back(all.substr(start, at - start));
    }
    return items;
  }
  if (value.is(Kind::dict)) {
    for (const auto& entry : value.entries().entries) items.push_back(entry.first);
    return items;
  }
  throw Fault("'" + value.typeName() + "' object is not iterable");
}

int64_t length(const Value& value) {
  if (value.isUndefined()) return 0;
  if (value.isString()) {
    spend(stepsOf(value));
    return text::countCharacters(value.string());
  }
  if (value.is(Kind::dict)) return static_cast<int64_t>(value.entries().entries.size());
  if (value.is(Kind::loop)) return static_cast<int64_t>(value.loopState().items.size());
  if (value.isSequence() && !value.is(Kind::generator)) return static_cast<int64_t>(value.items().size());
  throw Fault("object of type '" + value.typeName() + "' has no len()");
}

const Value* Call::get(size_t place, const char* name) const {
  if (place < values.size()) return &values[place];
  if (name)
    for (const auto& [given, value] : named)
      if (given == name) return &value;
  return nullptr;
}

const Value& Call::need(size_t place, const char* name, const char* function) const {
  const Value* value = get(place, name);
  if (!value) throw Fault(fmt::format("{}() missing required argument: '{}'", function, name ? name : "value"));
  return *value;
}

std::string Call::text(size_t place, const char* name, std::string otherwise) const {
  const Value* value = get(place, name);
  return value ? value->str() : otherwise;
}

int64_t Call::integer(size_t place, const char* name, int64_t otherwise) const {
  const Value* value = get(place, name);
  if (!value || value->isNone()) return otherwise;
  value->need();
  if (!value->isInteger()) throw Fault("'" + value->typeName() + "' object cannot be interpreted as an integer");
  return value->integer();
}

bool Call::truth(size_t place, const char* name, bool otherwise) const {
  const Value* value = get(place, name);
  return value ? value->truth() : otherwise;
}

}  // namespace headroom::engine::jinja
