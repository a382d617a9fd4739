// SPDX-License-Identifier: Apache-2.0
// How texts are cut into words before byte pairs are joined, by the name that a GGUF gives it (tokenizer.ggml.pre). A GGUF
// holds the name alone, so that every reader must know what the name stands for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

namespace headroom::engine::text {

struct GgufSplitting {
  // Regular expressions, applied one after the other: what one matches and what lies between is cut on by the next.
  std::vector<const char*> patterns;
  bool ignoresMerges = false;  // a word that the vocabulary holds is one token
  bool addsBos = false;        // where the file does not say
  bool composes = false;       // texts are brought to Unicode's form NFC first
};

// Null where the name is not known.
const GgufSplitting* ggufSplitting(std::string_view pre);
// What the name "default" stands for: also taken where there is no name.
const GgufSplitting& defaultGgufSplitting();
// As a "pre_tokenizer" of tokenizer.json.
nlohmann::json preTokenizerOf(const GgufSplitting& splitting);

}  // namespace headroom::engine::text
