// SPDX-License-Identifier: Apache-2.0
// What a sampler asks of a rule over a sequence's text: which tokens may come next. One a sequence; used by the thread that
// samples it.
#pragma once

#include <cstdint>
#include <span>

namespace headroom::engine {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // Sets the logits of all tokens that may not come next to minus infinity; `endTokens` may come exactly where the text may end.
  virtual void mask(std::span<float> logits, std::span<const int32_t> endTokens) = 0;
  // The sequence goes on with this token, one that the mask left.
  virtual void accept(int32_t token) = 0;
  virtual bool isComplete() const = 0;  // the text may end here
  virtual bool isOver() const = 0;      // nothing can follow
};

}  // namespace headroom::engine
