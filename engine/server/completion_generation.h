// SPDX-License-Identifier: Apache-2.0
// The answer of a completion or a chat completion, whole or as a stream of chunks.
#pragma once

#include "engine/server/generation.h"

namespace headroom::engine {

class CompletionGeneration final : public Generation {
 public:
  CompletionGeneration(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<ServedModel> model, OpenAiRequest request,
                       std::vector<PreparedPrompt> prompts);

 private:
  void sendChoice(Choice& choice) override;
  void sendEnd() override;
  void respondWhole() override;
  void sendFailure(const ApiError& error) override;
  std::string usage() const;
  void keepBest();
  std::string chunk(std::string_view choices, std::string_view more = {}) const;
  std::string callsJson(const std::vector<ToolCallReader::Part>& calls, bool asDelta) const;
  std::string completionLogprobs(Choice& choice, bool withPrompt) const;
  std::string promptLogprobsJson(const Choice& choice) const;
  std::string echoText(const Choice& choice) const;

  std::string m_prefix;  // "id" … "model" of every chunk
};

}  // namespace headroom::engine
