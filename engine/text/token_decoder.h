// SPDX-License-Identifier: Apache-2.0
// The decoders of tokenizer.json: from spellings of the vocabulary back to text.
#pragma once

#include "core/result.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace headroom::engine::text {

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  // In place; the texts joined are the result.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
  // The bytes one token adds in the middle of a text: partial characters, nothing stripped.
  virtual std::string bytes(std::string token) const = 0;
};

// The "decoder" member: null gives none.
Result<std::unique_ptr<TokenDecoder>> makeTokenDecoder(const nlohmann::json& json);

}  // namespace headroom::engine::text
