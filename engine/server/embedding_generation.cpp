// SPDX-License-Identifier: Apache-2.0
#include "engine/server/embedding_generation.h"

#include "engine/sample/pooler.h"

#include <fmt/format.h>

#include <bit>

namespace headroom::engine {
namespace {

std::string bytesOf(std::span<const float> vector) {
  std::string bytes;
  bytes.reserve(vector.size() * 4);
  for (const float value : vector) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((bits >> shift) & 0xFF);
  }
  return bytes;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i) text += at + i > bytes.size() ? '=' : kDigits[(group >> (18 - 6 * i)) & 63];
  }
  return text;
}

EmbeddingGeneration::EmbeddingGeneration(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<ServedModel> model,
                                         EmbeddingRequest request, std::vector<PreparedPrompt> prompts)
    : Generation(std::move(exchange), std::move(model), std::move(request.prompts), std::move(prompts)),
      m_normalizes(request.normalizes),
      m_isBase64(request.isBase64),
      m_dimensions(request.dimensions) {}

void EmbeddingGeneration::respondWhole() {
  int64_t tokens = 0, cached = 0;
  std::string data;
  for (Choice& choice : m_choices) {
    tokens += static_cast<int64_t>(m_prompts[static_cast<size_t>(choice.prompt)].tokens.size());
    cached += choice.cachedTokens;
    std::span<float> vector = choice.embedding;
    if (m_dimensions) vector = vector.first(std::min(vector.size(), static_cast<size_t>(*m_dimensions)));
    if (m_normalizes) normalize(vector);
    fmt::format_to(std::back_inserter(data), R"({}{{"object":"embedding","index":{},"embedding":)", choice.index ? "," : "",
                   choice.index);
    if (m_isBase64)
      data += '"' + base64(bytesOf(vector)) + '"';
    else
      fmt::format_to(std::back_inserter(data), "[{}]", fmt::join(vector, ","));
    data += '}';
  }
  HttpResponse response;
  response.body =
      fmt::format(R"({{"id":"{}","object":"list","created":{},"model":{},"data":[{}],)"
                  R"("usage":{{"prompt_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}}}})",
                  randomId("embd-"), m_created, jsonString(m_model->name()), data, tokens, tokens, cached);
  m_exchange->respond(std::move(response));
}

}  // namespace headroom::engine
