// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja_lexer.h"

#include "engine/text/unicode.h"

#include <fmt/format.h>
#include <array>
#include <charconv>

namespace headroom::engine::jinja {
namespace {

bool isSpace(char32_t c) { return text::isWhitespace(c) || (c >= 0x1C && c <= 0x1F); }

// Newlines of any kind become \n; one at the end goes.
std::string withPlainNewlines(std::string_view source, bool dropLast) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (dropLast && out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : m_source(withPlainNewlines(text::toValidUtf8(source), true)) {}

  std::vector<Token> run() {
    while (m_at < m_source.size()) root();
    add(Token::end, "");
    return std::move(m_tokens);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Fault(fmt::format("{} (line {})", what, m_line)); }
  std::string_view rest() const { return std::string_view(m_source).substr(m_at); }
  void add(Token::Type type, std::string text, Value value = {}) {
    m_tokens.push_back({type, std::move(text), std::move(value), m_line});
  }
  void move(size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) m_line += m_source[m_at + i] == '\n';
    m_at += bytes;
    m_lineStarts = m_source[m_at - 1] == '\n';
  }
  size_t spacesAt(size_t at) const {
    size_t end = at;
    for (size_t next = at; next < m_source.size() && isSpace(text::nextCharacter(m_source, next)); end = next) {
    }
    return end - at;
  }

  // Text up to the next tag, without what the tag's control takes.
  void data(size_t end, char control, bool variable) {
    std::string_view text = std::string_view(m_source).substr(m_at, end - m_at);
    if (control == '-') {
      for (size_t at = text.size(); at > 0 && isSpace(text::previousCharacter(text, at)); text = text.substr(0, at)) {
      }
    } else if (control != '+' && !variable) {
      const size_t newline = text.rfind('\n');
      const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
      bool blank = begin > 0 || m_lineStarts;
      for (size_t at = begin; blank && at < text.size();) blank = isSpace(text::nextCharacter(text, at));
      if (blank) text = text.substr(0, begin);
    }
    if (!text.empty()) add(Token::data, std::string(text));
    if (end > m_at) move(end - m_at);
  }

  void root() {
    size_t open = m_at;
    while ((open = m_source.find('{', open)) != std::string::npos &&
           (open + 1 >= m_source.size() || std::string_view("{%#").find(m_source[open + 1]) == std::string_view::npos))
      ++open;
    if (open == std::string::npos) {
      add(Token::data, m_source.substr(m_at));
      m_at = m_source.size();
      return;
    }
    const char kind = m_source[open + 1];
    const char sign = open + 2 < m_source.size() ? m_source[open + 2] : ' ';
    const char control = sign == '-' || sign == '+' ? sign : ' ';
    data(open, control, kind == '{');
    if (kind == '%' && rawBlock()) return;
    move(control == ' ' ? 2 : 3);
    if (kind == '#') {
      comment();
    } else {
      add(kind == '{' ? Token::variableBegin : Token::blockBegin, "");
      tag(kind == '{');
    }
  }

  // Behind an end tag at `end` (its control included in `length`).
  void closeTag(size_t length, char control, bool block) {
    move(length);
    if (control == '-') {
      if (const size_t spaces = spacesAt(m_at)) move(spaces);
    } else if (control != '+' && block && m_at < m_source.size() && m_source[m_at] == '\n') {
      move(1);
    }
  }

  void comment() {
    const size_t close = m_source.find("#}", m_at);
    if (close == std::string::npos) fail("Missing end of comment tag");
    const char before = close > m_at ? m_source[close - 1] : ' ';
    const size_t length = close + 2 - m_at;
    closeTag(length, before == '-' || before == '+' ? before : ' ', true);
  }

  // {% raw %} … {% endraw %}: everything between is data.
  bool rawBlock() {
    size_t at = m_at + 2;
    if (at < m_source.size() && (m_source[at] == '-' || m_source[at] == '+')) ++at;
    at += spacesAt(at);
    if (m_source.compare(at, 3, "raw") != 0) return false;
    at += 3;
    at += spacesAt(at);
    const bool trims = m_source.compare(at, 3, "-%}") == 0;
    if (!trims && m_source.compare(at, 2, "%}") != 0) return false;
    at += trims ? 3 : 2;
    if (trims) at += spacesAt(at);
    move(at - m_at);
    for (size_t open = m_at; (open = m_source.find("{%", open)) != std::string::npos; open += 2) {
      size_t inner = open + 2;
      const char control =
          inner < m_source.size() && (m_source[inner] == '-' || m_source[inner] == '+') ? m_source[inner++] : ' ';
      inner += spacesAt(inner);
      if (m_source.compare(inner, 6, "endraw") != 0) continue;
      inner += 6;
      inner += spacesAt(inner);
      const char closing =
          inner < m_source.size() && (m_source[inner] == '-' || m_source[inner] == '+') ? m_source[inner++] : ' ';
      if (m_source.compare(inner, 2, "%}") != 0) continue;
      data(open, control, false);
      closeTag(inner + 2 - m_at, closing, true);
      return true;
    }
    fail("Missing end of raw directive");
  }

  void tag(bool variable) {
    const std::string_view closing = variable ? "}}" : "%}";
    std::string open;  // brackets that wait for their ends
    while (true) {
      if (const size_t spaces = spacesAt(m_at)) move(spaces);
      if (m_at >= m_source.size())
        fail(variable ? "unexpected end of template, expected '}}'" : "unexpected end of template, expected '%}'");
      if (open.empty()) {
        const char control =
            (m_source[m_at] == '-' || (m_source[m_at] == '+' && !variable)) && rest().substr(1).starts_with(closing)
                ? m_source[m_at]
                : ' ';
        if (control != ' ' || rest().starts_with(closing)) {
          add(variable ? Token::variableEnd : Token::blockEnd, "");
          closeTag(control == ' ' ? 2 : 3, control, !variable);
          return;
        }
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const char c = m_source[m_at];
    size_t next = m_at;
    const char32_t character = text::nextCharacter(m_source, next);
    if (c == '"' || c == '\'') return string(c);
    if (c >= '0' && c <= '9') return number();
    if (text::isWord(character)) {
      size_t end = next;
      while (next < m_source.size() && text::isWord(text::nextCharacter(m_source, next))) end = next;
      add(Token::name, m_source.substr(m_at, end - m_at));
      return move(end - m_at);
    }
    for (std::string_view two : {"//", "**", "==", "!=", ">=", "<="})
      if (rest().starts_with(two)) {
        add(Token::sign, std::string(two));
        return move(2);
      }
    if (std::string_view("+-*/%~[](){}<>=.:|,;").find(c) == std::string_view::npos)
      fail(fmt::format("unexpected char {}", pythonQuoted(m_source.substr(m_at, next - m_at))));
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) fail(fmt::format("unexpected '{}'", c));
      if (open.back() != c) fail(fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    add(Token::sign, std::string(1, c));
    move(1);
  }

  void number() {
    size_t end = m_at;
    const auto digits = [&](auto isDigit) {
      while (end < m_source.size() &&
             (isDigit(m_source[end]) || (m_source[end] == '_' && end + 1 < m_source.size() && isDigit(m_source[end + 1]))))
        ++end;
    };
    const auto decimal = [](char c) { return c >= '0' && c <= '9'; };
    const auto plain = [&](size_t begin) {
      std::string text;
      for (char c : m_source.substr(begin, end - begin))
        if (c != '_') text += c;
      return text;
    };
    int base = 10;
    if (m_source[m_at] == '0' && m_at + 1 < m_source.size()) {
      const char kind = m_source[m_at + 1] | 0x20;
      base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    }
    if (base != 10) {
      end += 2;
      const size_t begin = end;
      digits([&](char c) { return base == 16 ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c >= '0' && c < '0' + base; });
      return integer(plain(begin), base, end);
    }
    digits(decimal);
    bool real = false;
    if (end + 1 < m_source.size() && m_source[end] == '.' && decimal(m_source[end + 1])) {
      real = true;
      ++end;
      digits(decimal);
    }
    size_t exponent = end + 1;
    if (exponent < m_source.size() && (m_source[exponent] == '+' || m_source[exponent] == '-')) ++exponent;
    if (end < m_source.size() && (m_source[end] | 0x20) == 'e' && exponent < m_source.size() && decimal(m_source[exponent])) {
      real = true;
      end = exponent;
      digits(decimal);
    }
    const std::string text = plain(m_at);
    if (!real) return integer(text, 10, end);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    add(Token::real, text, Value(value));
    move(end - m_at);
  }

  void integer(const std::string& text, int base, size_t end) {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || stop != text.data() + text.size()) fail("integer " + text + " is too large");
    add(Token::integer, text, Value(value));
    move(end - m_at);
  }

  void string(char quote) {
    size_t end = m_at + 1;
    while (end < m_source.size() && m_source[end] != quote) end += m_source[end] == '\\' ? 2 : 1;
    if (end >= m_source.size()) fail(fmt::format("unexpected char {}", pythonQuoted(std::string(1, quote))));
    std::string text = unescaped(std::string_view(m_source).substr(m_at + 1, end - m_at - 1));
    add(Token::string, text, Value(text));
    move(end + 1 - m_at);
  }

  // Python's string escapes.
  std::string unescaped(std::string_view source) const {
    static constexpr std::string_view kPlain = "\\'\"abfnrtv", kMeaning = "\\'\"\a\b\f\n\r\t\v";
    std::string out;
    for (size_t at = 0; at < source.size(); ++at) {
      if (source[at] != '\\' || at + 1 >= source.size()) {
        out += source[at];
        continue;
      }
      const char c = source[++at];
      const size_t plain = kPlain.find(c);
      const size_t width = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
      if (plain != std::string_view::npos) {
        out += kMeaning[plain];
      } else if (c == '\n') {
        continue;
      } else if (width) {
        uint32_t value = 0;
        const char* begin = source.data() + at + 1;
        const char* stop = begin + std::min(width, source.size() - at - 1);
        if (std::from_chars(begin, stop, value, 16).ptr != begin + width || value > 0x10FFFF)
          fail("truncated or illegal escape in a string");
        text::appendUtf8(out, value >= 0xD800 && value < 0xE000 ? text::kReplacement : static_cast<char32_t>(value));
        at += width;
      } else if (c >= '0' && c <= '7') {
        uint32_t value = 0;
        size_t count = 0;
        for (; count < 3 && at + count < source.size() && source[at + count] >= '0' && source[at + count] <= '7'; ++count)
          value = value * 8 + (source[at + count] - '0');
        text::appendUtf8(out, value);
        at += count - 1;
      } else {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  std::string m_source;
  size_t m_at = 0;
  int m_line = 1;
  bool m_lineStarts = true;
  std::vector<Token> m_tokens;
};

}  // namespace

std::vector<Token> lex(std::string_view source) {
  constexpr size_t kLongestSource = size_t{4} << 20;  // a hundred times the longest that models come with
  if (source.size() > kLongestSource)
    throw Fault(fmt::format("the template has {} bytes, and at most {} are read", source.size(), kLongestSource));
  return Lexer(source).run();
}

}  // namespace headroom::engine::jinja
