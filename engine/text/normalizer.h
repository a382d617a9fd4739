// SPDX-License-Identifier: Apache-2.0
// The normalizers of tokenizer.json, with the meaning that the `tokenizers` library gives them. Input and output are valid UTF-8.
#pragma once

#include "core/result.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace headroom::engine::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(std::string& text) const = 0;
};

// The "normalizer" member: null gives no normalizer.
Result<std::unique_ptr<Normalizer>> makeNormalizer(const nlohmann::json& json);
// SentencePiece's precompiled character map (base64).
Result<std::unique_ptr<Normalizer>> makePrecompiledNormalizer(const std::string& base64);

}  // namespace headroom::engine::text
