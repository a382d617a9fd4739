// SPDX-License-Identifier: Apache-2.0
// The normalizers of tokenizer.json, with the meaning that the `tokenizers` library gives them. Input and output are valid UTF-8.
#pragma once

#include "core/result.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace headroom::engine::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(std::string& text) const = 0;
};

// The "normalizer" member: null gives no normalizer.
Result<std::unique_ptr<Normalizer>> makeNormalizer(const nlohmann::json& json);
// SentencePiece's precompiled character map: in base64, as tokenizer.json has it, and as bytes. An empty one gives no normalizer.
Result<std::unique_ptr<Normalizer>> makePrecompiledNormalizer(const std::string& base64);
Result<std::unique_ptr<Normalizer>> makeCharacterMapNormalizer(const std::string& blob);
// One after the other; null ones are left out.
std::unique_ptr<Normalizer> makeNormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps);

}  // namespace headroom::engine::text
