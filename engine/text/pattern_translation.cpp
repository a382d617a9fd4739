// SPDX-License-Identifier: Apache-2.0
// Where Oniguruma and PCRE2 read a pattern differently, this rewrites it. Oniguruma's syntax:
// https://github.com/kkos/oniguruma/blob/master/doc/RE
#include "engine/text/pattern.h"
#include "engine/text/unicode.h"

namespace headroom::engine::text {
namespace {

// White_Space as Oniguruma's \s has it (PCRE2 adds U+180E), and the rest.
constexpr const char* kSpaces =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr const char* kNoSpaces =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr const char* kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

class Translator {
 public:
  static constexpr int kDeepest = 100;  // brackets in brackets
  explicit Translator(std::string_view source) : m_source(source) {}
  bool isTooDeep() const { return m_isTooDeep; }

  std::string run() {
    std::string out;
    while (m_at < m_source.size()) {
      const char c = m_source[m_at];
      if (c == '\\')
        out += escape();
      else if (c == '[')
        out += bracket();
      else if (c == '(' && m_source.substr(m_at, 2) == "(?")
        out += group();
      else
        out += m_source[m_at++];
    }
    return out;
  }

 private:
  // Options of a group: Oniguruma's m is PCRE2's s.
  std::string group() {
    std::string out = "(?";
    m_at += 2;
    size_t end = m_at;
    while (end < m_source.size() && (m_source[end] == '-' || (m_source[end] >= 'a' && m_source[end] <= 'z'))) ++end;
    if (end < m_source.size() && (m_source[end] == ':' || m_source[end] == ')'))
      for (; m_at < end; ++m_at) out += m_source[m_at] == 'm' ? 's' : m_source[m_at];
    return out;
  }

  // The escape at m_at with its braces: \p{…}, \x{…}, or one character.
  std::string rawEscape() {
    std::string out(m_source.substr(m_at, 2));
    m_at = std::min(m_at + 2, m_source.size());
    if (out.size() == 2 && m_at < m_source.size() && m_source[m_at] == '{' &&
        std::string_view("pPxo").find(out[1]) != std::string_view::npos) {
      const size_t close = std::min(m_source.find('}', m_at), m_source.size() - 1);
      std::string name(m_source.substr(m_at, close + 1 - m_at));
      m_at = close + 1;
      return out + name;
    }
    if (out == "\\u") {  // four hexadecimal digits
      out = "\\x{" + std::string(m_source.substr(m_at, 4)) + "}";
      m_at = std::min(m_at + 4, m_source.size());
    }
    return out;
  }

  std::string escape() {
    const std::string raw = rawEscape();
    if (raw == "\\s") return std::string("[") + kSpaces + "]";
    if (raw == "\\S") return std::string("[^") + kSpaces + "]";
    if (raw == "\\w") return std::string("[") + kWord + "]";
    if (raw == "\\W") return std::string("[^") + kWord + "]";
    if (raw == "\\h") return "[0-9a-fA-F]";
    if (raw == "\\H") return "[^0-9a-fA-F]";
    const std::string word = std::string("[") + kWord + "]";
    const std::string border = "(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + ")";
    if (raw == "\\b") return "(?:" + border + ")";
    if (raw == "\\B") return "(?!" + border + ")";
    if (raw == "\\O") return "(?s:.)";
    return raw;
  }

  // One bracket expression. Plain ones stay one class; unions with nested brackets become alternatives, intersections
  // look-aheads.
  std::string bracket() {
    if (++m_depth > kDeepest) {
      m_isTooDeep = true;
      m_at = m_source.size();
    }
    std::string made = bracketBody();
    --m_depth;
    return made;
  }

  std::string bracketBody() {
    ++m_at;  // [
    bool negated = false;
    if (m_at < m_source.size() && m_source[m_at] == '^') {
      negated = true;
      ++m_at;
    }
    std::vector<std::string> operands;  // each matches one character
    std::string items;
    std::vector<std::string> nested;
    bool first = true;
    const auto finishOperand = [&] {
      std::vector<std::string> alternatives = nested;
      if (!items.empty()) alternatives.insert(alternatives.begin(), "[" + items + "]");
      std::string joined;
      for (const std::string& alternative : alternatives) joined += (joined.empty() ? "" : "|") + alternative;
      operands.push_back(alternatives.size() == 1 ? joined : "(?:" + joined + ")");
    };
    while (m_at < m_source.size() && (m_source[m_at] != ']' || first)) {
      first = false;
      const char c = m_source[m_at];
      if (c == '\\') {
        items += classEscape(nested);
      } else if (m_source.substr(m_at, 2) == "[:") {
        const size_t close = m_source.find(":]", m_at);
        if (close == std::string_view::npos) {
          items += "\\[";
          ++m_at;
        } else {
          items += m_source.substr(m_at, close + 2 - m_at);
          m_at = close + 2;
        }
      } else if (c == '[') {
        nested.push_back(bracket());
      } else if (m_source.substr(m_at, 2) == "&&") {
        finishOperand();
        items.clear();
        nested.clear();
        m_at += 2;
      } else {
        items += c;
        ++m_at;
      }
    }
    ++m_at;  // ]
    if (operands.empty() && nested.empty()) return (negated ? "[^" : "[") + items + "]";
    finishOperand();
    std::string out;
    for (size_t i = 0; i + 1 < operands.size(); ++i) out += "(?=" + operands[i] + ")";
    out += operands.back();
    return negated ? "(?:(?!" + out + ")(?s:.))" : "(?:" + out + ")";
  }

  std::string classEscape(std::vector<std::string>& nested) {
    const std::string raw = rawEscape();
    if (raw == "\\s") return kSpaces;
    if (raw == "\\S") return kNoSpaces;
    if (raw == "\\w") return kWord;
    if (raw == "\\h") return "0-9a-fA-F";
    if (raw == "\\b") return "\\x{8}";
    if (raw == "\\W") {
      nested.push_back(std::string("[^") + kWord + "]");
      return "";
    }
    return raw;
  }

  std::string_view m_source;
  size_t m_at = 0;
  int m_depth = 0;
  bool m_isTooDeep = false;
};

}  // namespace

Result<std::string> translatePattern(std::string_view oniguruma) {
  Translator translator(oniguruma);
  std::string translated = translator.run();
  if (translator.isTooDeep())
    return failure("pattern " + std::string(oniguruma.substr(0, 60)), "brackets nested too deep",
                   fmt::format("at most {} levels", Translator::kDeepest));
  return translated;
}

}  // namespace headroom::engine::text
