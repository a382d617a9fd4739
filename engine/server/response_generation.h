// SPDX-License-Identifier: Apache-2.0
// The answer of /v1/responses: a response object, or the typed events that build it up; kept for later requests where asked for.
#pragma once

#include "engine/server/generation.h"
#include "engine/server/response_output.h"
#include "engine/server/responses_requests.h"

namespace headroom::engine {

class ResponseGeneration final : public Generation {
 public:
  ResponseGeneration(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<ServedModel> model, ResponsesRequest request,
                     std::vector<PreparedPrompt> prompts, std::shared_ptr<ResponseStore> store);

 private:
  void takeAnswer(Choice& choice, std::string reasoning, std::string text, std::vector<ToolCallReader::Part> calls) override;
  void sendChoice(Choice& choice) override;
  void sendEnd() override;
  void respondWhole() override;
  void sendFailure(const ApiError& error) override;
  std::string object(std::string_view status, const ApiError* error = nullptr) const;
  std::string finish();  // the final object, kept where asked for
  std::string_view finalStatus() const;

  const std::string m_id;
  const std::string m_shown;  // members of the object that repeat the request, without the braces
  const bool m_isStored;
  nlohmann::ordered_json m_items;
  const std::shared_ptr<ResponseStore> m_store;
  ResponseOutput m_output;
};

}  // namespace headroom::engine
