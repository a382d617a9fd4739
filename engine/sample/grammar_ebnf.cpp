// SPDX-License-Identifier: Apache-2.0
#include "engine/sample/grammar_ebnf.h"

#include "engine/sample/grammar_regex.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace headroom::engine {
namespace {

using Node = GrammarBuilder::Node;

constexpr int kDeepest = 200;
constexpr int64_t kMostRepeats = 10'000;
constexpr int kMostMarks = 16;  // * + ? {} behind one part

// Terminals of Lark's library, as patterns.
const std::map<std::string_view, std::string_view> kCommon{
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9A-Fa-f]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"FLOAT", "[0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"NUMBER", "([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER", "[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"LETTER", "[A-Za-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LCASE_LETTER", "[a-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[_A-Za-z][_A-Za-z0-9]*"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"WS_INLINE", "[ \\t]+"},
    {"NEWLINE", "(\\r?\\n)+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\.)*\""}};

struct Problem {
  Error error;
};

class EbnfReader {
 public:
  EbnfReader(GrammarBuilder& builder, std::string_view text, const std::string& where)
      : m_builder(builder), m_text(text), m_where(where) {}

  Node read() {
    findRules();
    while (skip(), m_at < m_text.size()) {
      if (m_text[m_at] == '%')
        directive();
      else
        rule();
    }
    const auto start =
        std::find_if(m_order.begin(), m_order.end(), [](const std::string& name) { return name == "root" || name == "start"; });
    if (start == m_order.end())
      throw Problem{Error{m_where, "no rule named root or start", "one that the whole text matches", ""}};
    for (const auto& [name, place] : m_wanted)
      if (!m_defined.contains(name))
        throw Problem{Error{fmt::format("{} line {}", m_where, lineAt(place)),
                            fmt::format("the rule {}, which is not defined", name), "rules of the grammar", ""}};
    return m_builder.call(m_rules.at(*start));
  }

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw Problem{Error{fmt::format("{} line {}", m_where, lineAt(m_at)), found, expected, ""}};
  }
  int64_t lineAt(size_t place) const {
    return 1 + std::count(m_text.begin(), m_text.begin() + static_cast<ptrdiff_t>(std::min(place, m_text.size())), '\n');
  }
  std::string next() const {
    return m_at < m_text.size() ? fmt::format("\"{}\"", m_text.substr(m_at, 12)) : std::string("the end");
  }

  // ---- the text

  void skip() {
    while (m_at < m_text.size()) {
      if (std::isspace(static_cast<unsigned char>(m_text[m_at]))) {
        ++m_at;
      } else if (m_text[m_at] == '#' || m_text.substr(m_at).starts_with("//")) {
        m_at = std::min(m_text.find('\n', m_at), m_text.size());
      } else {
        return;
      }
    }
  }
  bool eat(std::string_view word) {
    skip();
    if (!m_text.substr(m_at).starts_with(word)) return false;
    m_at += word.size();
    return true;
  }
  static bool isName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }
  std::string name() {
    skip();
    size_t end = m_at;
    while (end < m_text.size() && isName(m_text[end]) && !m_text.substr(end).starts_with("->")) ++end;
    std::string found(m_text.substr(m_at, end - m_at));
    if (found.empty() || std::isdigit(static_cast<unsigned char>(found[0]))) fail(next(), "a rule's name");
    m_at = end;
    return found;
  }
  // Whether a definition begins here.
  bool atDefinition() {
    const size_t before = m_at;
    skip();
    size_t at = m_at;
    if (m_isLark)
      while (at < m_text.size() && (m_text[at] == '?' || m_text[at] == '!')) ++at;
    const size_t begin = at;
    while (at < m_text.size() && isName(m_text[at])) ++at;
    const bool hasName = at > begin;
    if (m_isLark && at < m_text.size() && m_text[at] == '.')  // a priority
      for (++at; at < m_text.size() && std::isdigit(static_cast<unsigned char>(m_text[at])); ++at) {
      }
    while (at < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[at]))) ++at;
    const std::string_view rest = m_text.substr(std::min(at, m_text.size()));
    m_at = before;
    return hasName && (m_isLark ? rest.starts_with(":") : rest.starts_with("::=") || rest.starts_with("="));
  }
  void findRules() {
    const size_t define = m_text.find("::=");
    m_isLark = define == std::string_view::npos && m_text.find(':') != std::string_view::npos;
    if (m_text.find_first_not_of(" \t\r\n") == std::string_view::npos) fail("nothing", "rules such as root ::= \"yes\" | \"no\"");
  }

  // ---- rules

  GrammarBuilder::RuleId ruleOf(const std::string& name) {
    const auto [found, isNew] = m_rules.try_emplace(name, 0);
    if (isNew) found->second = m_builder.addRule();
    return found->second;
  }

  void directive() {
    if (!eat("%import")) fail(next(), "rules; of the directives %import common.NAME");
    if (!eat("common")) fail(next(), "%import common.NAME");
    std::vector<std::string> names;
    if (eat(".")) {
      names.push_back(name());
    } else if (eat("(")) {
      do names.push_back(name());
      while (eat(","));
      if (!eat(")")) fail(next(), ")");
    }
    for (const std::string& found : names) {
      const auto pattern = kCommon.find(found);
      if (pattern == kCommon.end()) fail("common." + found, "one of the terminals that the library has");
      std::string alias = found;
      if (names.size() == 1 && eat("->")) alias = name();
      define(alias, regex(pattern->second));
    }
  }

  void define(const std::string& name, Node body) {
    if (!m_defined.insert({name, true}).second) fail("a second definition of " + name, "one");
    m_order.push_back(name);
    m_builder.define(ruleOf(name), body);
  }

  void rule() {
    if (m_isLark)
      while (eat("?") || eat("!")) {
      }
    const std::string found = name();
    if (m_isLark && m_text.substr(m_at).starts_with(".")) {
      ++m_at;
      while (m_at < m_text.size() && std::isdigit(static_cast<unsigned char>(m_text[m_at]))) ++m_at;
    }
    if (m_isLark ? !eat(":") : !eat("::=") && !eat("=")) fail(next(), m_isLark ? "a colon" : "::=");
    m_current = found;
    m_recursive.clear();
    std::vector<Node> options;
    parseOptions(0, options);
    // NAME ::= NAME rest | other  is  other rest*.
    Node body = options.empty() ? m_builder.nothing() : m_builder.choice(std::move(options));
    if (!m_recursive.empty())
      body = m_builder.sequence({body, m_builder.repeat(m_builder.ruleOf(m_builder.choice(m_recursive)), 0, std::nullopt)});
    define(found, body);
  }

  void parseOptions(int depth, std::vector<Node>& options) {
    do {
      const bool isTop = depth == 0;
      bool isRecursive = false;
      const Node node = sequence(depth, isTop ? &isRecursive : nullptr);
      if (isRecursive)
        m_recursive.push_back(node);
      else
        options.push_back(node);
      if (m_isLark && eat("->")) name();
    } while (eat("|"));
  }
  Node alternatives(int depth) {
    if (depth > kDeepest) fail("parentheses deeper than 200", "fewer");
    std::vector<Node> options;
    parseOptions(depth, options);
    return m_builder.choice(std::move(options));
  }

  // With `isRecursive` a leading call of the rule itself is left out and told.
  Node sequence(int depth, bool* isRecursive) {
    std::vector<Node> parts;
    for (bool first = true;; first = false) {
      skip();
      if (m_at >= m_text.size() || std::string_view("|)]%").find(m_text[m_at]) != std::string_view::npos ||
          m_text.substr(m_at).starts_with("->"))
        break;
      if (depth == 0 && atDefinition()) break;
      if (first && isRecursive && startsWithItself()) {
        *isRecursive = true;
        continue;
      }
      parts.push_back(repeated(item(depth)));
    }
    if (isRecursive && *isRecursive && parts.empty())
      fail(fmt::format("{} as an option of itself", m_current), "something behind it");
    return m_builder.sequence(std::move(parts));
  }

  bool startsWithItself() {
    const std::string_view rest = m_text.substr(m_at);
    if (!rest.starts_with(m_current)) return false;
    const size_t end = m_current.size();
    if (end < rest.size() && (isName(rest[end]) || std::string_view("*+?{~").find(rest[end]) != std::string_view::npos))
      return false;
    m_at += end;
    return true;
  }

  Node item(int depth) {
    const char c = m_text[m_at];
    if (c == '"' || c == '\'') return quoted();
    if (c == '(') {
      ++m_at;
      const Node node = alternatives(depth + 1);
      if (!eat(")")) fail(next(), ")");
      return m_builder.ruleOf(node);
    }
    if (c == '[' && m_isLark) {
      ++m_at;
      const Node node = alternatives(depth + 1);
      if (!eat("]")) fail(next(), "]");
      return m_builder.optional(m_builder.ruleOf(node));
    }
    if (c == '[') return characterClass();
    if (c == '.' && !m_isLark) {
      ++m_at;
      return m_builder.characters(0, 0x10FFFF);
    }
    if (c == '/' && m_isLark) {
      size_t end = m_at + 1;
      while (end < m_text.size() && m_text[end] != '/') end += m_text[end] == '\\' ? 2 : 1;
      if (end >= m_text.size()) fail("a pattern without an end", "/pattern/");
      std::string pattern;
      for (size_t at = m_at + 1; at < end; ++at)
        if (m_text[at] != '\\' || m_text[at + 1] != '/') pattern += m_text[at];
      if (end + 1 < m_text.size() && std::isalpha(static_cast<unsigned char>(m_text[end + 1]))) {
        m_at = end + 1;
        fail("flags of a pattern", "none");
      }
      const Node node = regex(pattern);
      m_at = end + 1;
      return node;
    }
    if (c == '<') fail(next(), "rules of characters; tokens are not supported");
    const size_t at = m_at;
    const std::string found = name();
    if (m_isLark && m_text.substr(m_at).starts_with("{")) fail("the template " + found, "rules without parameters");
    m_wanted.emplace(found, at);
    return m_builder.call(ruleOf(found));
  }

  Node regex(std::string_view pattern) {
    const auto node = addRegex(m_builder, pattern, RegexText::Plain, m_where);
    if (!node) throw Problem{node.error()};
    return *node;
  }

  Node repeated(Node node) {
    // Right behind the item, as * alone could begin nothing else.
    for (int marks = 0;; ++marks) {
      skip();
      const std::string_view rest = m_text.substr(m_at);
      if (marks > kMostMarks) fail(fmt::format("more than {} repetitions of one part", kMostMarks), "fewer, or parentheses");
      if (rest.starts_with('*')) {
        node = m_builder.repeat(m_builder.ruleOf(node), 0, std::nullopt);
      } else if (rest.starts_with('+')) {
        node = m_builder.repeat(m_builder.ruleOf(node), 1, std::nullopt);
      } else if (rest.starts_with('?') && !(m_isLark && atDefinition())) {
        node = m_builder.optional(node);
      } else if (rest.starts_with('{') && !m_isLark) {
        node = counted(node);
        continue;
      } else if (rest.starts_with('~') && m_isLark) {
        ++m_at;
        const int64_t least = count();
        const int64_t most = eat("..") ? count() : least;
        if (most < least) fail(fmt::format("~{}..{}", least, most), "a range");
        node = m_builder.repeat(m_builder.ruleOf(node), least, most);
        continue;
      } else {
        return node;
      }
      ++m_at;
    }
  }
  int64_t count() {
    skip();
    size_t end = m_at;
    while (end < m_text.size() && std::isdigit(static_cast<unsigned char>(m_text[end]))) ++end;
    if (end == m_at || end - m_at > 6) fail(next(), "a number of repetitions");
    const int64_t number = std::stoll(std::string(m_text.substr(m_at, end - m_at)));
    if (number > kMostRepeats) fail(std::to_string(number), fmt::format("at most {} repetitions", kMostRepeats));
    m_at = end;
    return number;
  }
  Node counted(Node node) {
    eat("{");
    skip();
    const int64_t least = m_text.substr(m_at).starts_with(',') ? 0 : count();
    std::optional<int64_t> most = least;
    if (eat(",")) {
      skip();
      most = m_text.substr(m_at).starts_with('}') ? std::nullopt : std::optional(count());
    }
    if (!eat("}")) fail(next(), "}");
    if (most && *most < least) fail(fmt::format("{{{},{}}}", least, *most), "a range");
    return m_builder.repeat(m_builder.ruleOf(node), least, most);
  }

  // ---- characters

  char32_t hex(size_t digits) {
    char32_t code = 0;
    for (size_t i = 0; i < digits; ++i) {
      const char c = m_at < m_text.size() ? m_text[m_at] : ' ';
      if (!std::isxdigit(static_cast<unsigned char>(c))) fail(next(), fmt::format("{} hexadecimal digits", digits));
      code = code * 16 + static_cast<char32_t>(std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : (c | 32) - 'a' + 10);
      ++m_at;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      fail(fmt::format("U+{:X}", static_cast<uint32_t>(code)), "a character");
    return code;
  }
  // One character, escaped or in UTF-8.
  char32_t character() {
    if (m_at >= m_text.size()) fail("the end", "a character");
    const auto c = static_cast<unsigned char>(m_text[m_at++]);
    if (c == '\\') {
      if (m_at >= m_text.size()) fail("the end", "an escape");
      const char escape = m_text[m_at++];
      switch (escape) {
        case 'n':
          return '\n';
        case 't':
          return '\t';
        case 'r':
          return '\r';
        case 'f':
          return '\f';
        case 'v':
          return '\v';
        case '0':
          return 0;
        case 'x':
          return hex(2);
        case 'u':
          return hex(4);
        case 'U':
          return hex(8);
        default:
          if (std::isalnum(static_cast<unsigned char>(escape)))
            fail(fmt::format("\\{}", escape), "an escape: n, t, r, x, u, U or a mark");
          return static_cast<unsigned char>(escape);
      }
    }
    if (c < 0x80) return c;
    const int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
    char32_t code = c & (0x3F >> more);
    for (int i = 0; i < more; ++i) {
      if (m_at >= m_text.size() || (static_cast<unsigned char>(m_text[m_at]) & 0xC0) != 0x80)
        fail("bytes that are no UTF-8", "characters");
      code = code << 6 | (static_cast<unsigned char>(m_text[m_at++]) & 0x3F);
    }
    return code;
  }
  Node quoted() {
    const char quote = m_text[m_at++];
    std::vector<char32_t> characters;
    while (true) {
      if (m_at >= m_text.size() || m_text[m_at] == '\n') fail("a text without an end", "its quote");
      if (m_text[m_at] == quote) break;
      characters.push_back(character());
    }
    ++m_at;
    // "a".."z"
    if (m_isLark && characters.size() == 1 && eat("..")) {
      skip();
      if (m_at >= m_text.size() || (m_text[m_at] != '"' && m_text[m_at] != '\'')) fail(next(), "the range's last character");
      const char other = m_text[m_at++];
      const char32_t last = character();
      if (m_at >= m_text.size() || m_text[m_at++] != other || last < characters[0]) fail("a range that is none", "\"a\"..\"z\"");
      return m_builder.characters(characters[0], last);
    }
    const bool anyCase = m_at < m_text.size() && m_text[m_at] == 'i' && (m_at + 1 >= m_text.size() || !isName(m_text[m_at + 1]));
    if (anyCase) ++m_at;
    std::vector<Node> parts;
    for (const char32_t c : characters) {
      const bool isLetter = c < 0x80 && std::isalpha(static_cast<int>(c));
      if (anyCase && isLetter)
        parts.push_back(m_builder.choice({m_builder.characters(c | 32, c | 32), m_builder.characters(c & ~32u, c & ~32u)}));
      else
        parts.push_back(m_builder.characters(c, c));
    }
    return m_builder.sequence(std::move(parts));
  }
  Node characterClass() {
    ++m_at;
    const bool negated = m_at < m_text.size() && m_text[m_at] == '^';
    if (negated) ++m_at;
    std::vector<std::pair<char32_t, char32_t>> ranges;
    while (true) {
      if (m_at >= m_text.size()) fail("a class without an end", "]");
      if (m_text[m_at] == ']') break;
      const char32_t first = character();
      char32_t last = first;
      if (m_text.substr(m_at).starts_with('-') && m_at + 1 < m_text.size() && m_text[m_at + 1] != ']') {
        ++m_at;
        last = character();
      }
      if (last < first) fail("a range that goes down", "one that goes up");
      ranges.emplace_back(first, last);
    }
    ++m_at;
    if (negated) {
      std::sort(ranges.begin(), ranges.end());
      std::vector<std::pair<char32_t, char32_t>> others;
      char32_t begin = 0;
      for (const auto& [first, last] : ranges) {
        if (first > begin) others.emplace_back(begin, first - 1);
        begin = std::max(begin, static_cast<char32_t>(last + 1));
      }
      if (begin <= 0x10FFFF) others.emplace_back(begin, 0x10FFFF);
      ranges = std::move(others);
    }
    std::vector<Node> options;
    for (const auto& [first, last] : ranges) options.push_back(m_builder.characters(first, last));
    return options.empty() ? m_builder.nothing() : m_builder.choice(std::move(options));
  }

  GrammarBuilder& m_builder;
  const std::string_view m_text;
  const std::string& m_where;
  size_t m_at = 0;
  bool m_isLark = false;
  std::string m_current;
  std::vector<Node> m_recursive;
  std::map<std::string, GrammarBuilder::RuleId> m_rules;
  std::map<std::string, bool> m_defined;
  std::map<std::string, size_t> m_wanted;  // names that rules use, and where first
  std::vector<std::string> m_order;
};

}  // namespace

Result<GrammarBuilder::Node> addEbnf(GrammarBuilder& builder, std::string_view text, const std::string& where) {
  try {
    return EbnfReader(builder, text, where).read();
  } catch (const Problem& problem) {
    return tl::unexpected(problem.error);
  }
}

}  // namespace headroom::engine
