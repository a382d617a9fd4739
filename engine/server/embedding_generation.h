// SPDX-License-Identifier: Apache-2.0
// The answer of /v1/embeddings: a vector a prompt, as numbers or as base64 of little-endian float32.
#pragma once

#include "engine/server/generation.h"

namespace headroom::engine {

class EmbeddingGeneration final : public Generation {
 public:
  EmbeddingGeneration(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<ServedModel> model, EmbeddingRequest request,
                      std::vector<PreparedPrompt> prompts);

 private:
  void respondWhole() override;
  // It is never a stream.
  void sendChoice(Choice&) override {}
  void sendEnd() override {}
  void sendFailure(const ApiError&) override {}

  const bool m_normalizes, m_isBase64;
  const std::optional<int64_t> m_dimensions;
};

std::string base64(std::string_view bytes);

}  // namespace headroom::engine
