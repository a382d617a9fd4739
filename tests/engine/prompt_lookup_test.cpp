// SPDX-License-Identifier: Apache-2.0
// Guesses from what a text repeats: where they come from, how many there are, and when there are none.
#include "engine/schedule/prompt_lookup.h"

#include <QtTest>

using namespace headroom::engine;

namespace {
using Tokens = std::vector<int32_t>;

Tokens proposed(PromptLookup& lookup, const Tokens& text, int64_t most = 8) {
  Tokens draft{-1};  // forgotten
  lookup.propose(text, most, draft);
  return draft;
}
}  // namespace

class PromptLookupTest : public QObject {
  Q_OBJECT
 private slots:
  void continuesTheLongestThenTheLatestMatch() {
    PromptLookup lookup;
    // "1 2 3" stands three times: the last but one, followed by 40, is the latest.
    QCOMPARE(proposed(lookup, {1, 2, 3, 30, 31, 9, 1, 2, 3, 40, 41, 8, 1, 2, 3}), (Tokens{40, 41}));
    // Four tokens agree with the first place, three with the second.
    QCOMPARE(proposed(lookup, {7, 1, 2, 3, 30, 31, 9, 1, 2, 3, 40, 41, 7, 1, 2, 3}), (Tokens{30, 31}));
  }

  void guessesNothingWithoutAMatch() {
    PromptLookup lookup;
    QCOMPARE(proposed(lookup, {5}), Tokens{});
    QCOMPARE(proposed(lookup, {1, 2, 3, 4, 5, 6}), Tokens{});
    QCOMPARE(proposed(lookup, {2, 3, 9, 2, 3}), Tokens{});  // two tokens are too few
    QCOMPARE(proposed(lookup, {1, 2, 3, 4, 1, 2, 3}, 0), Tokens{});
  }

  void goesRoundInAShortPeriod() {
    PromptLookup lookup;
    lookup.learn(4, 4);
    QCOMPARE(proposed(lookup, {9, 5, 6, 5, 6, 5, 6}), (Tokens{5, 6, 5, 6, 5, 6, 5, 6}));
    QCOMPARE(proposed(lookup, {4, 4, 4, 4}), Tokens(8, 4));
  }

  void guessesMoreWhereItIsRightAndLessWhereNot() {
    const Tokens text{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2, 3};
    PromptLookup lookup;
    QCOMPARE(proposed(lookup, text).size(), size_t(2));
    lookup.learn(2, 2);
    QCOMPARE(proposed(lookup, text), (Tokens{4, 5, 6, 7}));
    lookup.learn(4, 4);
    QCOMPARE(proposed(lookup, text), (Tokens{4, 5, 6, 7, 8, 9, 10, 11}));
    QCOMPARE(proposed(lookup, text, 3), (Tokens{4, 5, 6}));
    lookup.learn(8, 5);
    QCOMPARE(proposed(lookup, text).size(), size_t(6));
  }

  // Two wrong drafts, then eight steps without; wrong again, sixteen; a right one makes the next pause short again.
  void pausesWhereItHelpsNot() {
    const Tokens text{1, 2, 3, 4, 5, 6, 7, 1, 2, 3};
    PromptLookup lookup;
    const auto wrongTwice = [&] {
      lookup.learn(2, 0);
      QVERIFY(!proposed(lookup, text).empty());
      lookup.learn(1, 0);
    };
    const auto pauses = [&](int steps) {
      for (int i = 0; i < steps; ++i) QCOMPARE(proposed(lookup, text), Tokens{});
      QVERIFY(!proposed(lookup, text).empty());
    };
    wrongTwice();
    pauses(8);
    wrongTwice();
    pauses(16);
    lookup.learn(2, 2);
    wrongTwice();
    pauses(8);
  }

  // Drafts whose first token alone is right cost more rows than they save steps.
  void pausesWhereLittleIsRight() {
    PromptLookup lookup;
    int drafts = 0;
    const Tokens text{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3};
    lookup.learn(8, 8);
    for (int step = 0; step < 20 && !proposed(lookup, text).empty(); ++step, ++drafts) lookup.learn(8, 1);
    QVERIFY(drafts >= 2 && drafts < 10);
  }

  // A text of everyday length is looked through in no time that counts beside a step.
  void isQuick() {
    Tokens text(32768);
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<int32_t>(i * 2654435761u % 50000);
    PromptLookup lookup;
    QElapsedTimer timer;
    timer.start();
    for (int i = 0; i < 100; ++i) proposed(lookup, text);
    QVERIFY2(timer.elapsed() < 2000, qPrintable(QString::number(timer.elapsed())));
  }
};

QTEST_APPLESS_MAIN(PromptLookupTest)
#include "prompt_lookup_test.moc"
