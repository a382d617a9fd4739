// SPDX-License-Identifier: Apache-2.0
// The pre-tokenizers of tokenizer.json: they cut a text into the words that the model splits, and may respell it.
#pragma once

#include "core/result.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine::text {

// A text in work and its words. The words lie in order within `text`; empty ones are left out.
struct Words {
  struct Range {
    size_t begin, end;
    bool atStart;  // of everything that is encoded (Metaspace's "first")
  };
  std::string_view text;
  std::vector<Range> ranges;
  bool rawBytes = false;  // the words' bytes are yet to be spelled GPT-2's way: byte-level models look bytes up directly
  std::string own;        // what `text` points to once it was respelled
  std::vector<Range> next;

  void reset(std::string_view whole, bool atStart) {
    text = whole;
    rawBytes = false;
    ranges.clear();
    if (!whole.empty()) ranges.push_back({0, whole.size(), atStart});
  }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Words& words) const = 0;
};

// The "pre_tokenizer" member: null gives none. `rawBytes`: a ByteLevel at the end may leave the bytes unspelled.
Result<std::unique_ptr<PreTokenizer>> makePreTokenizer(const nlohmann::json& json, bool rawBytes);

}  // namespace headroom::engine::text
