// SPDX-License-Identifier: Apache-2.0
// Guesses a sequence's next tokens from what its text repeats: where its last tokens stood before, the same may follow. Decides by
// the outcome how many it guesses, and pauses where guesses fail. One sequence; the scheduler's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headroom::engine {

class PromptLookup {
 public:
  static constexpr int64_t kLeastMatch = 3, kLongestMatch = 8;  // tokens that must, and may, agree
  static constexpr int64_t kLookBack = 32768;                   // tokens that are looked through

  // Up to `most` tokens after the end of `text`, from the longest match of its end, of equal ones the latest; empty while it pauses
  // and where nothing matches. Called once a step.
  void propose(std::span<const int32_t> text, int64_t most, std::vector<int32_t>& draft);
  // Of `drafted` tokens (at least one) the first `accepted` were right. All right: twice as many next time. Else as many as were
  // right and one; and where two drafts in a row were wrong from the first token, or less than 2 of 5 tokens of late were right,
  // none for a while, twice as long each time until a draft is right again.
  void learn(int64_t drafted, int64_t accepted);

 private:
  static constexpr int64_t kFirstPause = 8, kLongestPause = 512;  // steps
  int64_t m_length = 2, m_pause = 0, m_nextPause = kFirstPause;
  int m_misses = 0;
  double m_recent = 1.0;  // share of right tokens, the latest draft with a weight of 1/4
};

}  // namespace headroom::engine
