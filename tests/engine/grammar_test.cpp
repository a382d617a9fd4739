// SPDX-License-Identifier: Apache-2.0
// Grammars, regular expressions and token masks: what is matched, what is refused, and that no text runs into a dead end.
#include "engine/sample/grammar.h"
#include "engine/sample/grammar_constraint.h"
#include "engine/sample/grammar_regex.h"
#include "engine/sample/sampler.h"

#include <QtTest>

#include <limits>
#include <random>

using namespace headroom;
using namespace headroom::engine;

namespace {

Result<std::shared_ptr<const Grammar>> regexGrammar(std::string_view pattern) {
  GrammarBuilder builder;
  const auto node = addRegex(builder, pattern, RegexText::Plain, "regex");
  if (!node) return tl::unexpected(node.error());
  return builder.build(*node, "regex");
}

// A vocabulary of all single bytes, then some longer tokens; the last two are special.
const std::vector<std::string> kWords{"ab", "abc", "yes", "ye", "no", "12", "345", "\xC3\xBC", "yes!", "", ""};
constexpr int32_t kEnd = 256 + 9, kOtherSpecial = 256 + 10, kWordsBegin = 256;

std::shared_ptr<const TokenTrie> vocabulary() {
  return std::make_shared<const TokenTrie>(256 + static_cast<int64_t>(kWords.size()), [](int32_t token) {
    return token < 256 ? std::string(1, static_cast<char>(token)) : kWords[static_cast<size_t>(token - 256)];
  });
}

std::vector<int32_t> allowed(TokenConstraint& constraint, int64_t vocab) {
  std::vector<float> logits(static_cast<size_t>(vocab), 0.5f);
  const std::vector<int32_t> ends{kEnd};
  constraint.mask(logits, ends);
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] != -std::numeric_limits<float>::infinity()) tokens.push_back(static_cast<int32_t>(i));
  return tokens;
}

}  // namespace

class GrammarTest : public QObject {
  Q_OBJECT
 private slots:
  // The expected answers are those of Python's re.fullmatch.
  void regexMatches_data() {
    QTest::addColumn<QByteArray>("pattern");
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<bool>("expected");
    auto row = [](const char* pattern, const char* text, bool expected) {
      QTest::addRow("%s on %s", pattern, text) << QByteArray(pattern) << QByteArray(text) << expected;
    };
    row("[0-9]{3}-[0-9]{4}", "555-1234", true);
    row("[0-9]{3}-[0-9]{4}", "555-123", false);
    row("(yes|no), (sir|madam)[.!]", "no, madam!", true);
    row("(yes|no), (sir|madam)[.!]", "no, madam", false);
    row("[a-f]{1,6}x{2,3}\\d", "abcxx7", true);
    row("[a-f]{1,6}x{2,3}\\d", "abcx7", false);
    row("(\\w{1,6} ){2}\xC3\xBC[^a-z]", "one two \xC3\xBC!", true);
    row("(\\w{1,6} ){2}\xC3\xBC[^a-z]",
        "one two \xC3\xBC"
        "a",
        false);
    row("^a.c$",
        "a\xF0\x9F\x99\x82"
        "c",
        true);
    row("^a.c$", "a\nc", false);
    row("a{,2}", "aa", true);
    row("a{,2}", "aaa", false);
    row("a{2,}b?", "aaaa", true);
    row("a{2,}b?", "ab", false);
    row("[]a-]+", "]-a", true);
    row("[^]a]", "]", false);
    row("\\x41\\u00e9\\.", "A\xC3\xA9.", true);
    row("(?P<one>a|b)(?:c)+?", "bcc", true);
    row("a{x}", "a{x}", true);
    row("", "", true);
    row("", "a", false);
    row("[\\s\\d]+", "1 \t2", true);
    row("[^\\s]", " ", false);
    row("(a|ab)(c|bcd)", "abcd", true);
  }
  void regexMatches() {
    QFETCH(QByteArray, pattern);
    QFETCH(QByteArray, text);
    QFETCH(bool, expected);
    const auto grammar = regexGrammar(pattern.toStdString());
    QVERIFY2(grammar.has_value(), grammar ? "" : grammar.error().message().c_str());
    QCOMPARE(matches(*grammar, text.toStdString()), expected);
  }

  void refusesRegex_data() {
    QTest::addColumn<QByteArray>("pattern");
    QTest::addColumn<QByteArray>("named");
    auto row = [](const QByteArray& pattern, const char* named) {
      QTest::addRow("%s", pattern.left(30).constData()) << pattern << QByteArray(named);
    };
    row("([", "unmatched [");
    row("(a", "unmatched (");
    row("a)", "unmatched )");
    row("*a", "quantifier");
    row("a**", "quantifier");
    row("a{3,1}", "{3,1}");
    row("[z-a]", "range");
    row("(a)\\1", "back reference");
    row("(?=a)b", "lookahead");
    row("a\\b", "word border");
    row("a\\", "backslash");
    row("\\uD83D\\u0041", "half a character");
    row("a^b", "^");
    row(QByteArray(20000, '(') + "a" + QByteArray(20000, ')'), "nested deeper");
    row("((a?b?c?){1,1000}x){1,1000}y((a?b?c?){1,1000}x){1,200000}", "repetitions");
    row("a{90000}b{90000}c{90000}", "states");
  }
  void refusesRegex() {
    QFETCH(QByteArray, pattern);
    QFETCH(QByteArray, named);
    const auto grammar = regexGrammar(pattern.toStdString());
    QVERIFY(!grammar.has_value());
    QVERIFY2(grammar.error().message().starts_with("regex"), grammar.error().message().c_str());
    QVERIFY2(grammar.error().message().find(named.toStdString()) != std::string::npos, grammar.error().message().c_str());
  }

  // A class over characters is a class over their UTF-8: all borders of length, and surrogates left out.
  void characterRangesAreUtf8() {
    auto encoded = [](uint32_t c) {
      std::string text;
      if (c < 0x80) return std::string(1, static_cast<char>(c));
      const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
      text += static_cast<char>((more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0) | c >> (6 * more));
      for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (c >> (6 * i) & 63));
      return text;
    };
    for (const auto& [first, last] : std::vector<std::pair<uint32_t, uint32_t>>{{0x7E, 0x81},
                                                                                {0x41, 0x7FF},
                                                                                {0x7FF, 0x10001},
                                                                                {0x123, 0x4567},
                                                                                {0xD7FF, 0xE000},
                                                                                {0x80, 0x10FFFF},
                                                                                {0x10400, 0x1F642}}) {
      GrammarBuilder builder;
      const auto grammar = builder.build(builder.characters(first, last), "range");
      QVERIFY(grammar.has_value());
      for (uint32_t c : {0x40u,    0x41u,    0x7Du,    0x7Eu,    0x7Fu,    0x80u,    0x81u,    0x82u,    0x122u,  0x123u,
                         0x7FEu,   0x7FFu,   0x800u,   0x4567u,  0x4568u,  0xD7FEu,  0xD7FFu,  0xE000u,  0xE001u, 0xFFFFu,
                         0x10000u, 0x10001u, 0x10002u, 0x103FFu, 0x10400u, 0x1F642u, 0x1F643u, 0x10FFFFu})
        QCOMPARE(matches(*grammar, encoded(c)), c >= first && c <= last);
      QVERIFY(!matches(*grammar, "\xED\xA0\x80"));
    }
  }

  void literalsShareBeginnings() {
    GrammarBuilder builder;
    std::vector<std::string> texts;
    for (int i = 0; i < 20000; ++i) texts.push_back("choice " + std::to_string(i));
    const auto grammar = builder.build(builder.literals(texts), "choice");
    QVERIFY(grammar.has_value());
    QVERIFY((*grammar)->states() < 50'000);
    QVERIFY(matches(*grammar, "choice 0"));
    QVERIFY(matches(*grammar, "choice 19999"));
    QVERIFY(!matches(*grammar, "choice 20000"));
    QVERIFY(!matches(*grammar, "choice "));
  }

  // a rule may call itself behind a byte: brackets of any depth.
  void rulesRecurse() {
    GrammarBuilder builder;
    const auto rule = builder.addRule();
    builder.define(rule, builder.sequence(
                             {builder.literal("("), builder.repeat(builder.call(rule), 0, std::nullopt), builder.literal(")")}));
    const auto grammar = builder.build(builder.call(rule), "brackets");
    QVERIFY(grammar.has_value());
    QVERIFY(matches(*grammar, "(()(()))"));
    QVERIFY(!matches(*grammar, "(()"));
    QVERIFY(matches(*grammar, std::string(50'000, '(') + std::string(50'000, ')')));
  }

  void refusesWhatNothingSatisfies() {
    GrammarBuilder loop;
    const auto rule = loop.addRule();
    loop.define(rule, loop.sequence({loop.literal("a"), loop.call(rule)}));
    QVERIFY(!loop.build(loop.call(rule), "x").has_value());
    GrammarBuilder left;
    const auto self = left.addRule();
    left.define(self, left.choice({left.sequence({left.call(self), left.literal("a")}), left.literal("b")}));
    const auto refused = left.build(left.call(self), "x");
    QVERIFY(!refused.has_value());
    QVERIFY(refused.error().message().find("refers to itself") != std::string::npos);
  }

  // A branch without an end is never entered.
  void branchesWithoutEndAreCut() {
    GrammarBuilder builder;
    const auto endless = builder.addRule();
    builder.define(endless, builder.sequence({builder.literal("a"), builder.call(endless)}));
    const auto grammar = builder.build(builder.choice({builder.call(endless), builder.literal("b")}), "x");
    QVERIFY(grammar.has_value());
    GrammarMatcher matcher(*grammar);
    QCOMPARE(matcher.next(matcher.start(), 'a'), GrammarMatcher::kDead);
    QVERIFY(matcher.isComplete(matcher.next(matcher.start(), 'b')));
  }

  // Two ways to each of forty rules are more places than can be held: some are left out, and what is followed can still be
  // finished.
  void ambiguityIsLimited() {
    GrammarBuilder builder;
    GrammarBuilder::Node below = builder.literal("a");
    for (int i = 0; i < 40; ++i)
      below = builder.ruleOf(
          builder.choice({builder.sequence({below, builder.literal("x")}), builder.sequence({below, builder.literal("y")})}));
    const auto grammar = builder.build(below, "ambiguous");
    QVERIFY(grammar.has_value());
    GrammarMatcher matcher(*grammar);
    GrammarMatcher::Set at = matcher.start();
    std::string text;
    while (!matcher.isComplete(at) && text.size() < 50) {
      const GrammarMatcher::Uniform uniform = matcher.uniform(at);
      QVERIFY(uniform.target != GrammarMatcher::kDead);
      char byte = 0;
      for (const char c : {'a', 'x', 'y'})
        if (uniform.bytes[static_cast<size_t>(c) / 64] >> (c % 64) & 1) byte = c;
      QCOMPARE(matcher.next(at, static_cast<uint8_t>(byte)), uniform.target);
      text += byte;
      at = uniform.target;
    }
    QCOMPARE(text.size(), size_t{41});
    QVERIFY(matcher.isComplete(at));
  }

  // Of every token a mask says what following its bytes says.
  void masksAgreeWithBytes() {
    const auto trie = vocabulary();
    for (const char* pattern : {"(yes|no)[!?]?", "[0-9]{2,5}", "a*b?c{0,2}", "\xC3\xBC+", ".{3}"}) {
      const auto grammar = regexGrammar(pattern);
      QVERIFY(grammar.has_value());
      std::mt19937 random(7);
      for (int run = 0; run < 20; ++run) {
        GrammarConstraint constraint(*grammar, trie);
        std::string text;
        while (!constraint.isOver()) {
          const std::vector<int32_t> tokens = allowed(constraint, trie->vocabSize());
          GrammarMatcher matcher(*grammar);
          const auto at = matcher.next(matcher.start(), text);
          std::vector<int32_t> expected;
          for (int32_t token = 0; token < trie->vocabSize(); ++token) {
            if (!trie->bytes(token).empty() && matcher.next(at, trie->bytes(token)) != GrammarMatcher::kDead)
              expected.push_back(token);
            if (token == kEnd && matcher.isComplete(at)) expected.push_back(token);
          }
          QCOMPARE(tokens, expected);
          QVERIFY(!tokens.empty());
          const int32_t token = tokens[random() % tokens.size()];
          if (token == kEnd || text.size() > 30) break;
          constraint.accept(token);
          text += trie->bytes(token);
        }
      }
    }
  }

  void endTokensComeWhereTheTextMayEnd() {
    const auto trie = vocabulary();
    GrammarConstraint constraint(*regexGrammar("ye(s|s!)?"), trie);
    QVERIFY(!constraint.isComplete());
    constraint.accept(kWordsBegin + 3);  // "ye"
    QVERIFY(constraint.isComplete());
    QVERIFY(!constraint.isOver());
    QCOMPARE(allowed(constraint, trie->vocabSize() + 5), (std::vector<int32_t>{'s', kEnd}));
    constraint.accept('s');
    QCOMPARE(allowed(constraint, trie->vocabSize()), (std::vector<int32_t>{'!', kEnd}));
    constraint.accept('!');
    QVERIFY(constraint.isOver());
    QVERIFY(constraint.isComplete());
  }

  // Long texts forget what they have seen, never where they are.
  void longTextsKeepTheirPlace() {
    const auto trie = vocabulary();
    GrammarConstraint constraint(*regexGrammar("(a{0,20000}b){1,3}"), trie);
    for (int i = 0; i < 20000; ++i) constraint.accept('a');
    QCOMPARE(allowed(constraint, trie->vocabSize()), (std::vector<int32_t>{'b'}));
    constraint.accept('b');
    QVERIFY(constraint.isComplete());
    constraint.accept(kWordsBegin);  // "ab"
    QVERIFY(constraint.isComplete());
    QVERIFY(!constraint.isOver());
  }

  void samplerObeysTheConstraint() {
    const auto trie = vocabulary();
    SamplingParams params;
    params.temperature = 0;
    params.constraint = std::make_shared<GrammarConstraint>(*regexGrammar("yes!"), trie);
    params.logitBias = {{kOtherSpecial, 100.0f}, {'n', 100.0f}};
    Sampler sampler(params, {}, {kEnd});
    std::string text;
    while (!sampler.isOver()) {
      std::vector<float> logits(static_cast<size_t>(trie->vocabSize()), 0.0f);
      logits[kEnd] = 50;
      logits['n'] = 60;
      logits['y'] = 1;
      const auto choice = sampler.sample(logits);
      QVERIFY(choice.has_value());
      text += trie->bytes(choice->token);
      QVERIFY(text.size() < 10);
    }
    QCOMPARE(text, std::string("yes!"));
  }

  void tellsWhenTheVocabularyCannotSpellIt() {
    const auto words = std::make_shared<const TokenTrie>(2, [](int32_t token) { return std::string(token ? "b" : "a"); });
    SamplingParams params;
    params.constraint = std::make_shared<GrammarConstraint>(*regexGrammar("c"), words);
    Sampler sampler(params, {}, {});
    std::vector<float> logits{0.0f, 1.0f};
    QVERIFY(!sampler.sample(logits).has_value());
    QVERIFY(sampler.isStuck());
  }

  // A shared constraint makes its masks ahead on another thread; they are those of one that does not.
  void masksMadeAheadAreTheSame() {
    const auto trie = vocabulary();
    const auto grammar = *regexGrammar("(ab|[b-z]{2,30}|\"[^\"]{0,12}\"| )*!");
    std::mt19937 random(5);
    for (int walk = 0; walk < 20; ++walk) {
      GrammarConstraint plain(grammar, trie);
      const auto ahead = std::make_shared<GrammarConstraint>(grammar, trie);
      ahead->prepareSoon();
      for (int step = 0; step < 60; ++step) {
        std::vector<float> a(static_cast<size_t>(trie->vocabSize()), 0.0f), b = a;
        plain.mask(a, {});
        ahead->mask(b, {});
        QVERIFY(a == b);
        std::vector<int32_t> open;
        for (int32_t token = 0; token < trie->vocabSize(); ++token)
          if (a[static_cast<size_t>(token)] == 0.0f) open.push_back(token);
        if (open.empty()) break;
        const int32_t token = open[random() % open.size()];
        plain.accept(token);
        ahead->accept(token);
        QCOMPARE(ahead->isOver(), plain.isOver());
        QCOMPARE(ahead->isComplete(), plain.isComplete());
      }
    }
  }
};

QTEST_GUILESS_MAIN(GrammarTest)
#include "grammar_test.moc"
