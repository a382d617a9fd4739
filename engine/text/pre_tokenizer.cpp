// SPDX-License-Identifier: Apache-2.0
#include "engine/text/pre_tokenizer.h"

#include "engine/text/byte_level.h"
#include "engine/text/json_fields.h"
#include "engine/text/pattern.h"
#include "engine/text/script.h"
#include "engine/text/unicode.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

namespace headroom::engine::text {
namespace {

using nlohmann::json;
using Made = Result<std::unique_ptr<PreTokenizer>>;
// Cuts one word into matches and the rest.
using Cut = std::function<void(std::string_view, std::vector<Span>&)>;

enum class Behavior { removed, isolated, mergedWithPrevious, mergedWithNext, contiguous };

Result<Behavior> behaviorNamed(const std::string& name) {
  static const std::map<std::string, Behavior> known = {{"Removed", Behavior::removed},
                                                        {"Isolated", Behavior::isolated},
                                                        {"MergedWithPrevious", Behavior::mergedWithPrevious},
                                                        {"MergedWithNext", Behavior::mergedWithNext},
                                                        {"Contiguous", Behavior::contiguous}};
  const auto found = known.find(name);
  if (found == known.end())
    return failure("pre_tokenizer behavior", name, "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  return found->second;
}

// Joins matches with their neighbours as the behaviour says; the spans that are left unmatched are the words, in order.
void arrange(std::vector<Span>& spans, Behavior behavior) {
  std::vector<Span> words;
  bool previous = false;
  switch (behavior) {
    case Behavior::isolated:
      return;
    case Behavior::removed:
      std::erase_if(spans, [](const Span& span) { return span.matched; });
      return;
    case Behavior::contiguous:
      for (const Span& span : spans) {
        if (span.matched == previous && !words.empty())
          words.back().end = span.end;
        else
          words.push_back(span);
        previous = span.matched;
      }
      break;
    case Behavior::mergedWithPrevious:
      for (const Span& span : spans) {
        if (span.matched && !previous && !words.empty())
          words.back().end = span.end;
        else
          words.push_back(span);
        previous = span.matched;
      }
      break;
    case Behavior::mergedWithNext:
      for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
        if (span->matched && !previous && !words.empty())
          words.back().begin = span->begin;
        else
          words.push_back(*span);
        previous = span->matched;
      }
      std::reverse(words.begin(), words.end());
      break;
  }
  spans = std::move(words);
}

class Splitter : public PreTokenizer {
 public:
  Splitter(Cut cut, Behavior behavior, bool inverted = false)
      : m_cut(std::move(cut)), m_behavior(behavior), m_inverted(inverted) {}

  void apply(Words& words) const override {
    thread_local std::vector<Span> spans;
    words.next.clear();
    for (const Words::Range& range : words.ranges) {
      m_cut(words.text.substr(range.begin, range.end - range.begin), spans);
      if (m_inverted)
        for (Span& span : spans) span.matched = !span.matched;
      arrange(spans, m_behavior);
      for (const Span& span : spans)
        if (span.end > span.begin)
          words.next.push_back({range.begin + span.begin, range.begin + span.end, range.atStart && span.begin == 0});
    }
    words.ranges.swap(words.next);
  }

 private:
  Cut m_cut;
  Behavior m_behavior;
  bool m_inverted;
};

// Matches every character that `is` by itself.
Cut characters(std::function<bool(char32_t)> is) {
  return [is = std::move(is)](std::string_view text, std::vector<Span>& spans) {
    spans.clear();
    size_t covered = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t start = at;
      if (!is(nextCharacter(text, at))) continue;
      if (covered < start) spans.push_back({covered, start, false});
      spans.push_back({start, at, true});
      covered = at;
    }
    if (covered < text.size()) spans.push_back({covered, text.size(), false});
  };
}

Cut patternCut(std::unique_ptr<Pattern> pattern) {
  return [pattern = std::shared_ptr<Pattern>(std::move(pattern))](std::string_view text, std::vector<Span>& spans) {
    pattern->split(text, spans);
  };
}

// Runs of word characters, and runs of what is neither word nor space.
void cutWhitespaceAndWords(std::string_view text, std::vector<Span>& spans) {
  spans.clear();
  int last = -1;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t c = nextCharacter(text, at);
    const int kind = isWord(c) ? 0 : isWhitespace(c) ? 2 : 1;
    if (kind == last)
      spans.back().end = at;
    else
      spans.push_back({start, at, kind != 2});
    last = kind;
  }
}

void cutScripts(std::string_view text, std::vector<Span>& spans) {
  spans.clear();
  Script last = Script::any;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const Script script = scriptOf(nextCharacter(text, at));
    const bool cut = script != Script::any && last != Script::any && script != last;
    if (cut || spans.empty())
      spans.push_back({start, at, false});
    else
      spans.back().end = at;
    if (script != Script::any) last = script;
  }
}

// Puts respelled words side by side into a new text.
template <class Respell>
void respell(Words& words, Respell write) {
  std::string text;
  text.reserve(words.text.size() * 2);
  for (Words::Range& range : words.ranges) {
    const size_t begin = text.size();
    write(words.text.substr(range.begin, range.end - range.begin), range.atStart, text);
    range.begin = begin;
    range.end = text.size();
  }
  std::erase_if(words.ranges, [](const Words::Range& range) { return range.begin == range.end; });
  words.own = std::move(text);
  words.text = words.own;
}

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool prefixSpace, std::unique_ptr<PreTokenizer> splitter, bool rawBytes)
      : m_prefixSpace(prefixSpace), m_splitter(std::move(splitter)), m_rawBytes(rawBytes) {}

  void apply(Words& words) const override {
    const auto lacksSpace = [&](const Words::Range& range) { return words.text[range.begin] != ' '; };
    if (m_prefixSpace && std::any_of(words.ranges.begin(), words.ranges.end(), lacksSpace))
      respell(words, [](std::string_view word, bool, std::string& out) {
        if (word[0] != ' ') out += ' ';
        out += word;
      });
    if (m_splitter) m_splitter->apply(words);
    words.rawBytes = m_rawBytes;
    if (!m_rawBytes)
      respell(words, [](std::string_view word, bool, std::string& out) {
        for (char byte : word) out += byteCharacters()[static_cast<unsigned char>(byte)];
      });
  }

 private:
  bool m_prefixSpace;
  std::unique_ptr<PreTokenizer> m_splitter;
  bool m_rawBytes;
};

class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string replacement, const std::string& prepend, bool split)
      : m_replacement(std::move(replacement)), m_always(prepend == "always"), m_first(prepend == "first") {
    if (split) m_splitter.emplace(patternCut(Pattern::literal(m_replacement)), Behavior::mergedWithNext);
  }

  void apply(Words& words) const override {
    respell(words, [&](std::string_view word, bool atStart, std::string& out) {
      const bool begins = word.starts_with(m_replacement) || word[0] == ' ';
      if (!begins && (m_always || (m_first && atStart))) out += m_replacement;
      for (char c : word)
        if (c == ' ')
          out += m_replacement;
        else
          out += c;
    });
    if (m_splitter) m_splitter->apply(words);
  }

 private:
  std::string m_replacement;
  bool m_always, m_first;
  std::optional<Splitter> m_splitter;
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : m_steps(std::move(steps)) {}
  void apply(Words& words) const override {
    for (const auto& step : m_steps) step->apply(words);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> m_steps;
};

std::unique_ptr<PreTokenizer> splitter(Cut cut, Behavior behavior, bool inverted = false) {
  return std::make_unique<Splitter>(std::move(cut), behavior, inverted);
}

Made splitPattern(const json& pattern, const std::string& behaviorName, bool inverted) {
  auto behavior = behaviorNamed(behaviorName);
  if (!behavior) return tl::unexpected(behavior.error());
  auto made = Pattern::fromJson(pattern);
  if (!made) return tl::unexpected(made.error());
  return splitter(patternCut(std::move(*made)), *behavior, inverted);
}

Made byteLevel(const json& json, bool rawBytes) {
  std::unique_ptr<PreTokenizer> words;
  if (flag(json, "use_regex", true)) {
    auto pattern = Pattern::regex(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
    if (!pattern) return tl::unexpected(pattern.error());
    words = splitter(patternCut(std::move(*pattern)), Behavior::isolated);
  }
  return std::make_unique<ByteLevel>(flag(json, "add_prefix_space", true), std::move(words), rawBytes);
}

Made metaspace(const json& json) {
  std::string prepend = word(json, "prepend_scheme", "always");
  if (!json.contains("prepend_scheme") && !flag(json, "add_prefix_space", true)) prepend = "never";
  return std::make_unique<Metaspace>(word(json, "replacement", "▁"), prepend, flag(json, "split", true));
}

Made sequence(const json& json, bool rawBytes) {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  const auto& listed = member(json, "pretokenizers");
  for (size_t i = 0; i < listed.size(); ++i) {
    auto made = makePreTokenizer(listed[i], rawBytes && i + 1 == listed.size());
    if (!made) return made;
    if (*made) steps.push_back(std::move(*made));
  }
  if (steps.empty()) return nullptr;
  return std::make_unique<Sequence>(std::move(steps));
}

Made fixedLength(int64_t length) {
  if (length < 1) return failure("pre_tokenizer FixedLength", std::to_string(length), "a length of at least 1");
  return splitter(
      [length](std::string_view text, std::vector<Span>& spans) {
        spans.clear();
        for (size_t at = 0; at < text.size();) {
          const size_t start = at;
          for (int64_t i = 0; i < length && at < text.size(); ++i) nextCharacter(text, at);
          spans.push_back({start, at, false});
        }
      },
      Behavior::isolated);
}

}  // namespace

Made makePreTokenizer(const json& json, bool rawBytes) {
  if (json.is_null()) return nullptr;
  if (!json.is_object()) return failure("pre_tokenizer", shortJson(json, 80), "an object");
  const std::string type = word(json, "type");
  if (type == "Sequence") return sequence(json, rawBytes);
  if (type == "ByteLevel") return byteLevel(json, rawBytes);
  if (type == "Split")
    return splitPattern(member(json, "pattern"), word(json, "behavior", "Isolated"), flag(json, "invert", false));
  if (type == "Metaspace") return metaspace(json);
  if (type == "Digits")
    return splitter(characters(isNumeric), flag(json, "individual_digits", false) ? Behavior::isolated : Behavior::contiguous);
  if (type == "Whitespace") return splitter(cutWhitespaceAndWords, Behavior::removed, true);
  if (type == "WhitespaceSplit") return splitter(characters(isWhitespace), Behavior::removed);
  if (type == "UnicodeScripts") return splitter(cutScripts, Behavior::isolated);
  if (type == "FixedLength") return fixedLength(whole(json, "length", 5));
  if (type == "Punctuation") {
    auto behavior = behaviorNamed(word(json, "behavior", "Isolated"));
    if (!behavior) return tl::unexpected(behavior.error());
    return splitter(characters(isPunctuation), *behavior);
  }
  if (type == "CharDelimiterSplit") {
    const std::string delimiter = word(json, "delimiter");
    return splitter(patternCut(Pattern::literal(delimiter)), Behavior::removed);
  }
  if (type == "BertPreTokenizer") {
    std::vector<std::unique_ptr<PreTokenizer>> steps;
    steps.push_back(splitter(characters(isWhitespace), Behavior::removed));
    steps.push_back(splitter(characters(isPunctuation), Behavior::isolated));
    return std::make_unique<Sequence>(std::move(steps));
  }
  return failure("pre_tokenizer", type.empty() ? shortJson(json, 80) : type, "a pre-tokenizer of the tokenizers library",
                 "the file may be newer than this program");
}

}  // namespace headroom::engine::text
