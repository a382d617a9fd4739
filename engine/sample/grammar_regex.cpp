// SPDX-License-Identifier: Apache-2.0
#include "engine/sample/grammar_regex.h"

#include <algorithm>

namespace headroom::engine {
namespace {

using Node = GrammarBuilder::Node;
using Range = std::pair<char32_t, char32_t>;
using Ranges = std::vector<Range>;

constexpr char32_t kLastCharacter = 0x10FFFF;
constexpr int kDeepest = 250;
constexpr int64_t kMostRepeats = 100'000;

struct Problem {
  std::string found;
};

Ranges sorted(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges merged;
  for (const Range& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, range.second);
    else
      merged.push_back(range);
  }
  return merged;
}

Ranges complement(const Ranges& ranges) {
  Ranges rest;
  char32_t from = 0;
  for (const auto& [first, last] : sorted(ranges)) {
    if (first > from) rest.emplace_back(from, first - 1);
    from = last + 1;
  }
  if (from <= kLastCharacter) rest.emplace_back(from, kLastCharacter);
  return rest;
}

const Ranges kDigits{{'0', '9'}};
const Ranges kWordCharacters{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpaces{{'\t', '\r'}, {' ', ' '}};
// What some dialects count to the class and others do not: left out of its negation.
const Ranges kDoubtfulSpaces{{0x1C, 0x1F},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
                             {0x180E, 0x180E}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                             {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const Ranges kDoubtful{{0x80, kLastCharacter}};  // of digits and word characters

// A class with what must not be in its negation.
struct Class {
  Ranges ranges, doubtful;
  void add(const Ranges& more) { ranges.insert(ranges.end(), more.begin(), more.end()); }
  void doubt(const Ranges& more) { doubtful.insert(doubtful.end(), more.begin(), more.end()); }
  Ranges negated() const {
    Ranges all = ranges;
    all.insert(all.end(), doubtful.begin(), doubtful.end());
    return complement(all);
  }
};

class Parser {
 public:
  Parser(GrammarBuilder& builder, std::string_view pattern, RegexText text) : m_builder(builder), m_text(text) {
    for (size_t at = 0; at < pattern.size();) m_pattern.push_back(decode(pattern, at));
  }

  Node parse() {
    const Node node = alternatives(0);
    if (!atEnd()) throw Problem{"an unmatched )"};
    return node;
  }

 private:
  static char32_t decode(std::string_view text, size_t& at) {
    const auto lead = static_cast<unsigned char>(text[at++]);
    if (lead < 0x80) return lead;
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    char32_t character = lead & (0x3F >> more);
    for (int i = 0; i < more && at < text.size(); ++i)
      character = character << 6 | (static_cast<unsigned char>(text[at++]) & 0x3F);
    return character;
  }

  bool atEnd() const { return m_at >= m_pattern.size(); }
  char32_t peek(size_t ahead = 0) const { return m_at + ahead < m_pattern.size() ? m_pattern[m_at + ahead] : 0; }
  bool take(char32_t character) {
    if (atEnd() || peek() != character) return false;
    ++m_at;
    return true;
  }
  bool takeText(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i)
      if (m_at + i >= m_pattern.size() || peek(i) != static_cast<char32_t>(text[i])) return false;
    m_at += text.size();
    return true;
  }

  Node alternatives(int depth) {
    if (depth > kDeepest) throw Problem{fmt::format("groups nested deeper than {} levels", kDeepest)};
    std::vector<Node> options;
    do options.push_back(sequence(depth));
    while (take('|'));
    return m_builder.choice(std::move(options));
  }

  Node sequence(int depth) {
    const bool searches = m_text == RegexText::JsonSearch && depth == 0;
    bool opened = false, closed = false;
    std::vector<Node> parts;
    while (!atEnd() && peek() != '|' && peek() != ')') {
      if (closed) throw Problem{"$ before the end"};
      const size_t begin = m_at;
      if (take('^') || takeText("\\A")) {
        if (depth > 0 || !parts.empty()) throw Problem{"^ elsewhere than at the beginning"};
        opened = true;
        continue;
      }
      if (take('$') || takeText("\\Z") || takeText("\\z")) {
        if (depth > 0) throw Problem{"$ inside a group"};
        closed = true;
        continue;
      }
      parts.push_back(quantified(atom(depth), begin));
    }
    if (searches && !opened) parts.insert(parts.begin(), anything());
    if (searches && !closed) parts.push_back(anything());
    return m_builder.sequence(std::move(parts));
  }

  Node anything() { return m_builder.repeat(set({{0, kLastCharacter}}), 0, std::nullopt); }

  Node set(const Ranges& ranges) {
    std::vector<Node> options;
    for (const auto& [first, last] : sorted(ranges))
      options.push_back(m_text == RegexText::Plain ? m_builder.characters(first, last)
                                                   : addJsonCharacters(m_builder, first, last));
    return options.empty() ? m_builder.nothing() : m_builder.choice(std::move(options));
  }

  Node quantified(Node node, size_t begin) {
    int64_t least = 0;
    std::optional<int64_t> most;
    if (take('*')) {
    } else if (take('+')) {
      least = 1;
    } else if (take('?')) {
      most = 1;
    } else if (!braces(least, most)) {
      return node;
    }
    if (take('+')) throw Problem{"a possessive quantifier"};
    take('?');  // lazy: the same texts match
    if (!atEnd() && (peek() == '*' || peek() == '+' || peek() == '?')) throw Problem{"a quantifier behind a quantifier"};
    // A part that is repeated often is built once and called. Single characters are cheaper themselves.
    if (m_at - begin > 8 && (least > 1 || most.value_or(0) > 1)) node = m_builder.ruleOf(node);
    return m_builder.repeat(node, least, most);
  }

  // {n}, {n,}, {,m}, {n,m}; anything else is text.
  bool braces(int64_t& least, std::optional<int64_t>& most) {
    const size_t begin = m_at;
    if (!take('{')) return false;
    const auto low = count();
    least = low.value_or(0);
    most = low;
    if (take(',')) {
      most = count();
      if (!low && !most) return m_at = begin, false;
    } else if (!low) {
      return m_at = begin, false;
    }
    if (!take('}')) return m_at = begin, false;
    if (most && *most < least) throw Problem{fmt::format("{{{},{}}}", least, *most)};
    return true;
  }

  std::optional<int64_t> count() {
    std::optional<int64_t> value;
    while (!atEnd() && peek() >= '0' && peek() <= '9') {
      value = value.value_or(0) * 10 + static_cast<int64_t>(peek() - '0');
      if (*value > kMostRepeats) throw Problem{fmt::format("more than {} repetitions", kMostRepeats)};
      ++m_at;
    }
    return value;
  }

  Node atom(int depth) {
    const char32_t character = m_pattern[m_at++];
    switch (character) {
      case '.':
        return set(complement({{'\n', '\n'}}));
      case '[':
        return set(bracketed());
      case '(':
        return group(depth);
      case '*':
      case '+':
      case '?':
        throw Problem{"a quantifier without anything before it"};
      case '\\': {
        Class found;
        escape(found, false);
        return set(found.ranges);
      }
      case '{': {
        int64_t least = 0;
        std::optional<int64_t> most;
        --m_at;
        if (braces(least, most)) throw Problem{"a quantifier without anything before it"};
        ++m_at;
        return set({{'{', '{'}});
      }
      default:
        return set({{character, character}});
    }
  }

  Node group(int depth) {
    if (take('?')) {
      if (take(':')) {
      } else if (takeText("P<") || (peek() == '<' && peek(1) != '=' && peek(1) != '!' && take('<'))) {
        while (!atEnd() && peek() != '>') ++m_at;
        if (!take('>')) throw Problem{"a group name without >"};
      } else if (peek() == '=' || peek() == '!' || peek() == '<') {
        throw Problem{"lookahead or lookbehind"};
      } else {
        throw Problem{"a group of an unsupported kind, (?"};
      }
    }
    const Node node = alternatives(depth + 1);
    if (!take(')')) throw Problem{"an unmatched ("};
    return node;
  }

  static int digit(char32_t c) {
    return c >= '0' && c <= '9'   ? static_cast<int>(c - '0')
           : c >= 'a' && c <= 'f' ? static_cast<int>(c - 'a') + 10
           : c >= 'A' && c <= 'F' ? static_cast<int>(c - 'A') + 10
                                  : -1;
  }

  char32_t hexadecimal(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const int one = digit(peek());
      if (atEnd() || one < 0) throw Problem{"an escape with too few hexadecimal digits"};
      value = value * 16 + static_cast<char32_t>(one);
      ++m_at;
    }
    return value;
  }

  // Behind a backslash: adds a class, or returns the one character.
  std::optional<char32_t> escape(Class& into, bool inBrackets) {
    if (atEnd()) throw Problem{"a backslash at the end"};
    const char32_t c = m_pattern[m_at++];
    auto one = [&](char32_t character) {
      into.add({{character, character}});
      return std::optional(character);
    };
    Class known;
    switch (c) {
      case 'd':
        into.add(kDigits), into.doubt(kDoubtful);
        return std::nullopt;
      case 'w':
        into.add(kWordCharacters), into.doubt(kDoubtful);
        return std::nullopt;
      case 's':
        into.add(kSpaces), into.doubt(kDoubtfulSpaces);
        return std::nullopt;
      case 'D':
        known = {kDigits, kDoubtful}, into.add(known.negated()), into.doubt(kDoubtful);
        return std::nullopt;
      case 'W':
        known = {kWordCharacters, kDoubtful}, into.add(known.negated()), into.doubt(kDoubtful);
        return std::nullopt;
      case 'S':
        known = {kSpaces, kDoubtfulSpaces}, into.add(known.negated()), into.doubt(kDoubtfulSpaces);
        return std::nullopt;
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case '0':
        return one(0);
      case 'x':
        return one(hexadecimal(2));
      case 'u': {
        if (take('{')) {
          char32_t value = 0;
          while (digit(peek()) >= 0 && value <= kLastCharacter)
            value = value * 16 + static_cast<char32_t>(digit(m_pattern[m_at++]));
          if (!take('}') || value > kLastCharacter) throw Problem{"an escape of no character"};
          return one(value);
        }
        const char32_t value = hexadecimal(4);
        if (value >= 0xD800 && value < 0xDC00 && takeText("\\u")) {
          const char32_t low = hexadecimal(4);
          if (low < 0xDC00 || low > 0xDFFF) throw Problem{"an escape of half a character"};
          return one(0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00));
        }
        return one(value);
      }
      case 'b':
        if (inBrackets) return one('\b');
        throw Problem{"a word border, \\b"};
      default:
        if (c >= '1' && c <= '9') throw Problem{"a back reference"};
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) throw Problem{fmt::format("the escape \\{}", static_cast<char>(c))};
        return one(c);
    }
  }

  Ranges bracketed() {
    const bool negated = take('^');
    Class all;
    bool first = true;
    while (true) {
      if (atEnd()) throw Problem{"an unmatched ["};
      if (peek() == ']' && !first) break;
      first = false;
      std::optional<char32_t> low;
      char32_t c = m_pattern[m_at++];
      if (c == '\\') {
        low = escape(all, true);
        if (!low) continue;
      } else {
        low = c;
      }
      if (peek() != '-' || peek(1) == ']' || m_at + 1 >= m_pattern.size()) {
        all.add({{*low, *low}});
        continue;
      }
      ++m_at;
      char32_t high = m_pattern[m_at++];
      if (high == '\\') {
        Class end;
        const auto escaped = escape(end, true);
        if (!escaped) throw Problem{"a range that ends in a class"};
        high = *escaped;
      }
      if (high < *low) throw Problem{"a range whose end comes before its begin"};
      all.add({{*low, high}});
    }
    ++m_at;
    return negated ? all.negated() : sorted(all.ranges);
  }

  GrammarBuilder& m_builder;
  RegexText m_text;
  std::u32string m_pattern;
  size_t m_at = 0;
};

}  // namespace

Node addJsonCharacters(GrammarBuilder& builder, char32_t first, char32_t last) {
  std::vector<Node> options;
  auto plain = [&](char32_t low, char32_t high) {
    low = std::max(low, first);
    high = std::min(high, last);
    if (low <= high) options.push_back(builder.characters(low, high));
  };
  plain(' ', '!');
  plain('#', '[');
  plain(']', kLastCharacter);
  auto has = [&](char32_t character) { return character >= first && character <= last; };
  if (has('"')) options.push_back(builder.literal("\\\""));
  if (has('\\')) options.push_back(builder.literal("\\\\"));
  constexpr std::string_view kShort("btn\0fr", 6);  // \b to \r; there is none of 0x0B
  for (char32_t c = first; c < 0x20 && c <= last; ++c) {
    const char letter = c >= 8 && c <= 13 ? kShort[c - 8] : '\0';
    options.push_back(builder.literal(letter ? fmt::format("\\{}", letter) : fmt::format("\\u{:04x}", static_cast<uint32_t>(c))));
  }
  return options.empty() ? builder.nothing() : builder.choice(std::move(options));
}

Node addJsonCharacter(GrammarBuilder& builder) {
  auto set = [&](std::string_view characters) {
    std::vector<Node> options;
    for (const char c : characters) options.push_back(builder.literal(std::string_view(&c, 1)));
    return builder.choice(std::move(options));
  };
  auto hex = [&] { return builder.choice({builder.bytes('0', '9'), builder.bytes('a', 'f'), builder.bytes('A', 'F')}); };
  const Node d = set("dD");
  const Node other = builder.choice({builder.bytes('0', '9'), set("abcefABCEF")});
  // \uXXXX outside the surrogates, or a high and a low one.
  const Node single = builder.choice(
      {builder.sequence({other, hex(), hex(), hex()}), builder.sequence({d, builder.bytes('0', '7'), hex(), hex()})});
  const Node pair =
      builder.sequence({d, set("89abAB"), hex(), hex(), builder.literal("\\u"), set("dD"), set("cdefCDEF"), hex(), hex()});
  const Node escaped =
      builder.choice({set("\"\\/bfnrt"), builder.sequence({builder.literal("u"), builder.choice({single, pair})})});
  return builder.choice({builder.characters(' ', '!'), builder.characters('#', '['), builder.characters(']', kLastCharacter),
                         builder.sequence({builder.literal("\\"), escaped})});
}

Result<Node> addRegex(GrammarBuilder& builder, std::string_view pattern, RegexText text, const std::string& where) {
  try {
    return Parser(builder, pattern, text).parse();
  } catch (const Problem& problem) {
    return failure(where, problem.found, "a regular expression without it");
  }
}

}  // namespace headroom::engine
