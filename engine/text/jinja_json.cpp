// SPDX-License-Identifier: Apache-2.0
// json.dumps as Python's standard library writes it.
#include "engine/text/jinja_value.h"
#include "engine/text/unicode.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace headroom::engine::jinja {
namespace {

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : m_style(style) {}
  std::string out;

  void write(const Value& value, int depth) {
    if (depth > kDeepest) throw Fault("values nest too deep");
    checkSize(out.size());
    switch (value.kind()) {
      case Kind::none:
        out += "null";
        return;
      case Kind::boolean:
        out += value.integer() ? "true" : "false";
        return;
      case Kind::integer:
        out += std::to_string(value.integer());
        return;
      case Kind::real:
        out += real(value.real());
        return;
      case Kind::string:
        string(value.string());
        return;
      case Kind::list:
      case Kind::tuple:
        list(value.items(), depth);
        return;
      case Kind::dict:
        dict(value.entries(), depth);
        return;
      default:
        throw Fault("Object of type " + value.typeName() + " is not JSON serializable");
    }
  }

 private:
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return formatReal(value);
  }

  void string(std::string_view source) {
    out += '"';
    for (size_t at = 0; at < source.size();) {
      const size_t start = at;
      const char32_t c = text::nextCharacter(source, at);
      if (c == '"' || c == '\\') {
        out += '\\';
        out += static_cast<char>(c);
      } else if (c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == '\b') {
        out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : c == '\f' ? "\\f" : "\\b";
      } else if (c < 0x20 || (m_style.ascii && c > 0x7E && c < 0x10000)) {
        out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
      } else if (m_style.ascii && c >= 0x10000) {
        const uint32_t rest = static_cast<uint32_t>(c) - 0x10000;
        out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 | rest >> 10, 0xDC00 | (rest & 0x3FF));
      } else {
        out.append(source, start, at - start);
      }
    }
    out += '"';
  }

  void newLine(int depth) {
    if (!m_style.lines) return;
    out += '\n';
    for (int i = 0; i < depth; ++i) out += m_style.indent;
  }

  void list(const std::vector<Value>& items, int depth) {
    if (items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out += m_style.itemSeparator;
      newLine(depth + 1);
      write(items[i], depth + 1);
    }
    newLine(depth);
    out += ']';
  }

  static std::string key(const Value& key) {
    if (key.isString()) return key.string();
    if (key.isNone()) return "null";
    if (key.is(Kind::boolean)) return key.integer() ? "true" : "false";
    if (key.is(Kind::integer)) return std::to_string(key.integer());
    if (key.is(Kind::real)) return real(key.real());
    throw Fault("keys must be str, int, float, bool or None, not " + key.typeName());
  }

  void dict(const Dict& source, int depth) {
    if (source.entries.empty()) {
      out += "{}";
      return;
    }
    auto entries = source.entries;
    if (m_style.sorted)
      std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return less(a.first, b.first); });
    out += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i) out += m_style.itemSeparator;
      newLine(depth + 1);
      string(key(entries[i].first));
      out += m_style.keySeparator;
      write(entries[i].second, depth + 1);
    }
    newLine(depth);
    out += '}';
  }

  const JsonStyle& m_style;
};

}  // namespace

std::string toJson(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace headroom::engine::jinja
